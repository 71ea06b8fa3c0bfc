//! Compares the kernel's laws in C with those in Rust: every function of bpf/laws.h, within the error bound
//! stated there (for bpf/sender.h see sender_equality.rs). It runs 10^4 cases of each function, or 10^6 with
//! FLOWSTAMP_NIGHTLY=1. A failure prints the smallest failing case; PROPTEST_RNG_SEED=N repeats a run.

#![expect(clippy::cast_precision_loss, reason = "bounds are of 2^-29, f64's rounding is of 2^-53")]

#[macro_use]
mod c_laws;

use c_laws::{Gain, U, Xcp, XcpParams, XcpSums, config, log_uniform, q16, q32, variables};
use flowstamp_laws::router::{LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::xcp::Throughput;
use flowstamp_laws::{Bytes, Rate, Stamp, Time};
use flowstamp_laws::{rcp, xcp};
use flowstamp_wire::option::MicrosFloat;
use proptest::prelude::*;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RcpParams {
    link_rate_q16: u64,
    target_rate_q16: u64,
    alpha_q32: u64,
    beta_q32: u64,
    mtu_bytes: u64,
    max_interval_ns: u64,
    min_interval_ns: u64,
    max_rtt_us: u64,
    max_rtt_factor_q16: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RcpSums {
    input_bytes: u64,
    sum_rtt_us: u64,
    sum_weight: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Rcp {
    rate_q16: u64,
    avg_rtt_q8: u64,
    input_rate_q16: u64,
    mean_rtt_q8: u64,
    mean_bytes_q16: u64,
    most_rtt_us: u64,
}

#[link(name = "flowstamp_laws", kind = "static")]
unsafe extern "C" {
    safe fn fs_host_bits(v: u64) -> u32;
    safe fn fs_host_mul_div(a: u64, b: u64, c: u64) -> u64;
    safe fn fs_host_rcp_update(
        p: &RcpParams,
        s: &mut Rcp,
        sums: &RcpSums,
        interval_ns: u64,
        queue_bytes: u64,
    );
    safe fn fs_host_rcp_interval_ns(p: &RcpParams, s: &Rcp) -> u64;
    safe fn fs_host_rcp_offer(p: &RcpParams, s: &Rcp) -> u32;
    safe fn fs_host_rcp_stamp(offer: u32, carried: u32) -> u32;
    safe fn fs_host_rcp_input(sums: &mut RcpSums, bytes: u64);
    safe fn fs_host_rcp_rtt(sums: &mut RcpSums, max_rtt_us: u64, most_rtt_us: u64, rtt_us: u64, weight: u64);
    safe fn fs_host_xcp_x_q4(rtt_us: u64, in_flight: u64) -> u64;
    safe fn fs_host_xcp_bounded(s: &Xcp, bytes: u64, x_q4: u64) -> u64;
    safe fn fs_host_xcp_arrival(
        p: &XcpParams,
        s: &mut XcpSums,
        bytes: u64,
        packets: u64,
        rtt_us: u64,
        x_q4: u64,
    );
    safe fn fs_host_xcp_decide(p: &XcpParams, s: &mut Xcp, sums: &XcpSums, interval_ns: u64);
    safe fn fs_host_xcp_interval_ns(p: &XcpParams, s: &Xcp) -> u64;
    safe fn fs_host_xcp_queue_ns(p: &XcpParams, s: &mut Xcp, queue_bytes: u64) -> u64;
    safe fn fs_host_xcp_departure(
        s: &mut Xcp,
        bytes: u64,
        packets: u32,
        rtt_us: u64,
        x_q4: u64,
        carried: i32,
    ) -> i32;
    safe fn fs_host_rtt_pack(us: u64) -> u32;
    safe fn fs_host_rtt_unpack(bits: u32) -> u64;
}

/// Bytes/s with 16 fraction bits: 100 kb/s to 100 Gb/s.
fn link_rate_q16() -> impl Strategy<Value = u64> {
    log_uniform(12_500.0, 12.5e9).prop_map(|v| (v * 65536.0) as u64)
}

/// 10 us to just below 20 s.
fn rtt_us() -> impl Strategy<Value = u64> {
    log_uniform(10.0, 19_999_999.0).prop_map(|v| v as u64)
}

/// A gain above 0 and up to `most`, with 32 fraction bits.
fn gain_q32(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![3 => (1u64 << 24)..=(1 << 32), 1 => (1u64 << 24)..=(most << 32)]
}

fn link(queue_bytes: u64) -> LinkView {
    LinkView { now: Time::ZERO, queue_bytes, queue_packets: 0 }
}

/// `size` bytes of traffic without a stamp, however many.
fn arrive(law: &mut impl RouterLaw, mut size: u64) {
    while size > 0 {
        let part = size.min(u64::from(u32::MAX));
        law.on_arrival(link(0), PacketIn::of(part as u32, None));
        size -= part;
    }
}

/// An RCP router of both kinds, in one state.
#[derive(Clone, Debug)]
struct RcpCase {
    c: RcpParams,
    rust: rcp::router::Params,
    capacity: Rate,
    state: Rcp,
}

fn rcp_case(
    least_rtt_us: f64,
    intervals_us: std::ops::RangeInclusive<u64>,
) -> impl Strategy<Value = RcpCase> {
    let parts = (
        link_rate_q16(),
        0.1..=1.0,
        log_uniform(1e-6, 1.0),
        gain_q32(10),
        gain_q32(10),
        log_uniform(least_rtt_us, 19_999_999.0),
        intervals_us,
        prop_oneof![Just(20_000_000), 10_u64..=20_000_000],
        1_u64..=65_535,
    );
    parts.prop_map(
        |(link_rate_q16, eta, share, alpha_q32, beta_q32, rtt_us, interval_us, max_rtt_us, mtu_bytes)| {
            let target_rate_q16 = (link_rate_q16 as f64 * eta) as u64;
            let rate_q16 = (target_rate_q16 as f64 * share).max(1.0) as u64;
            let (avg_rtt_ns, max_interval_ns) = (rtt_us as u64 * 1000, interval_us * 1000);
            RcpCase {
                c: RcpParams {
                    link_rate_q16,
                    target_rate_q16,
                    alpha_q32,
                    beta_q32,
                    mtu_bytes,
                    max_interval_ns,
                    min_interval_ns: 1000,
                    max_rtt_us,
                    max_rtt_factor_q16: 0,
                },
                rust: rcp::router::Params {
                    alpha: q32(alpha_q32),
                    beta: q32(beta_q32),
                    eta: target_rate_q16 as f64 / link_rate_q16 as f64,
                    max_interval: Time::from_nanos(max_interval_ns),
                    max_allowable_rtt: Some(Time::from_micros(max_rtt_us)),
                    mtu: Bytes::new(mtu_bytes),
                    initial_rate: rate_q16 as f64 / link_rate_q16 as f64,
                    initial_rtt: Some(Time::from_nanos(avg_rtt_ns)),
                    ..rcp::router::Params::default()
                },
                capacity: Rate::from_bytes_per_sec(q16(link_rate_q16)),
                state: Rcp { rate_q16, avg_rtt_q8: avg_rtt_ns << 8, ..Rcp::default() },
            }
        },
    )
}

/// The traffic of an interval: input and queue as shares of the link's capacity in it, and RTTs, each with its frame's
/// packets.
#[derive(Clone, Debug)]
struct Interval {
    input: f64,
    queue: f64,
    rtts_us: Vec<(u64, u64)>,
}

fn interval() -> impl Strategy<Value = Interval> {
    let queue = prop_oneof![Just(0.0), log_uniform(1e-4, 10.0)];
    // From 20 s on they are not believed.
    let rtt = prop_oneof![6 => rtt_us(), 1 => 20_000_000u64..134_000_000];
    (0.0..3.0, queue, prop::collection::vec((rtt, 1u64..4), 0..6))
        .prop_map(|(input, queue, rtts_us)| Interval { input, queue, rtts_us })
}

/// One interval of both; then whether they agree, with relative errors `before` of R and d; returns those after it.
fn rcp_step(
    case: &RcpCase,
    rust: &mut rcp::Router,
    c: &mut Rcp,
    interval_ns: u64,
    it: &Interval,
    before: (f64, f64),
) -> Result<(f64, f64), TestCaseError> {
    let (rate, d, rate_q16) = (rust.rate(), rust.avg_rtt_s(), c.rate_q16);
    let seconds = interval_ns as f64 / 1e9;
    let capacity = q16(case.c.link_rate_q16);
    let (mut sums, input_bytes) = (RcpSums::default(), (capacity * seconds * it.input) as u64);
    // While d is unknown, of an interval.
    let queue = (capacity * if d > 0.0 { d } else { seconds } * it.queue) as u64;
    arrive(rust, input_bytes);
    fs_host_rcp_input(&mut sums, input_bytes / 3);
    fs_host_rcp_input(&mut sums, input_bytes - input_bytes / 3);
    for (rtt, packets) in &it.rtts_us {
        for _ in 0..*packets {
            rust.on_arrival(link(0), PacketIn::of(0, Some(&Stamp([0.0, *rtt as f64 / 1e6, 0.0]))));
        }
        fs_host_rcp_rtt(&mut sums, case.c.max_rtt_us, 0, *rtt, *packets);
    }
    rust.on_timer(0, link(queue));
    fs_host_rcp_update(&case.c, c, &sums, interval_ns, queue);

    // The bounds of fs_rcp_update, and what the errors before it become.
    let after = rust.avg_rtt_s();
    let (sum, count) = it
        .rtts_us
        .iter()
        .filter(|(rtt, _)| *rtt < case.c.max_rtt_us)
        .fold((0, 0), |(sum, count), (rtt, packets)| (sum + rtt * packets, count + packets));
    let sample = if count == 0 { d } else { sum as f64 / 1e6 / count as f64 };
    let weight = (seconds / d).min(1.0)
        * if count > 0 && d <= 0.0 {
            0.0
        } else if sample < d {
            (rate / capacity) * (sample / d)
        } else {
            1.0
        };
    let change_d = weight * (sample - d).abs();
    let bound_d = 4.0 / 256e9
        + 4.0 * U * ((sample - d).abs() + d + sample)
        + before.1 * (d + 2.0 * change_d)
        + before.0 * change_d;
    close!(c.avg_rtt_q8 as f64 / 256e9, after, bound_d, "d");
    let input_rate = input_bytes as f64 / seconds;
    close!(q16(c.input_rate_q16), input_rate, U * input_rate + 2f64.powi(-16), "y");
    if d <= 0.0 {
        // Deviation 5 of rcp.rs: d is found out, or not, and R stays.
        prop_assert_eq!(c.avg_rtt_q8 > 0, count > 0);
        prop_assert_eq!((c.rate_q16, rust.rate()), (rate_q16, rate));
        return Ok((before.0, if count > 0 { bound_d / after } else { 0.0 }));
    }
    let e = bound_d / after;
    let target = q16(case.c.target_rate_q16);
    let spare = case.rust.alpha * (target + input_rate);
    let min_rate = 0.01 * case.c.mtu_bytes as f64 / after;
    // Where d has fallen below T, T stands for it in line 8: deviation 1, which the Rust law does not have.
    let delay = after.max(seconds);
    let drain = case.rust.beta * queue as f64 / delay;
    let change = (case.rust.alpha * (target - input_rate) - drain) / target * (seconds / delay);
    let expected = if after < seconds {
        (rate * (1.0 + change)).min(target).max(min_rate.min(target))
    } else {
        rust.rate()
    };
    let factor = 1.0 + change.abs();
    let bound = 2f64.powi(-13) * case.rust.alpha.max(case.rust.beta).max(1.0)
        + 2f64.powi(-16)
        + min_rate * (U + e)
        + rate * (seconds / delay) * (spare + drain) / target * (8.0 * U + 4.0 * e)
        + before.0 * rate * factor;
    close!(q16(c.rate_q16), expected, bound, "R");
    Ok((bound / rust.rate(), e))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bits(v in any::<u64>(), shift in 0u32..64) {
        let v = v >> shift;
        prop_assert_eq!(fs_host_bits(v), 64 - v.leading_zeros());
    }

    #[test]
    fn products(a in any::<u64>(), b in any::<u64>(), c in any::<u64>(), shifts in (0u32..64, 0u32..64, 0u32..65)) {
        let (a, b, c) = (a >> shifts.0, b >> shifts.1, c.checked_shr(shifts.2).unwrap_or(0));
        let got = fs_host_mul_div(a, b, c);
        if c == 0 {
            prop_assert_eq!(got, u64::MAX);
        } else {
            let exact = u128::from(a) * u128::from(b) / u128::from(c);
            let small = [a, b, c].iter().all(|v| *v <= u64::from(u32::MAX));
            let bound = if small { 0 } else { (exact >> 29) + 1 };
            let fits = u64::try_from(exact.saturating_add(bound)).is_ok();
            if fits || got != u64::MAX {
                prop_assert!(u128::from(got).abs_diff(exact) <= bound, "{} is not {}", got, exact);
            } else {
                prop_assert!(exact.saturating_add(bound) > u128::from(u64::MAX));
            }
        }
    }

    #[test]
    fn rcp_router_in_one_interval(case in rcp_case(10.0, 10..=10_000), it in interval()) {
        let mut rust = rcp::Router::new(&case.rust, &RouterView::of(case.capacity));
        let mut c = case.state;
        let interval_ns = case.c.max_interval_ns.min(c.avg_rtt_q8 >> 8);
        rcp_step(&case, &mut rust, &mut c, interval_ns, &it, (0.0, 0.0))?;
        // Line 13, and what packets get.
        let e_ns = 4.0 / 256.0 + 1.0 + 16.0 * U * rust.avg_rtt_s() * 1e9;
        close!(fs_host_rcp_interval_ns(&case.c, &c) as f64, variables(&rust)["interval_s"] * 1e9, e_ns, "T");
        let offer = fs_host_rcp_offer(&case.c, &c);
        let exact = (q16(c.rate_q16.min(case.c.link_rate_q16)) / 1000.0).floor().max(1.0);
        prop_assert_eq!(f64::from(offer), exact);
    }

    // T is 10 ms throughout, so that both laws' intervals are the same to the ns.
    #[test]
    fn rcp_router_over_many_intervals(
        case in rcp_case(20_000.0, 10_000..=10_000),
        intervals in prop::collection::vec(interval(), 1..20),
    ) {
        let mut rust = rcp::Router::new(&case.rust, &RouterView::of(case.capacity));
        let mut c = case.state;
        let mut errors = (0.0, 0.0);
        for it in &intervals {
            // A d below T is another interval's length.
            if rust.avg_rtt_s() < 0.0101 {
                break;
            }
            errors = rcp_step(&case, &mut rust, &mut c, 10_000_000, it, errors)?;
        }
    }

    // Nobody has told them of the path.
    #[test]
    fn rcp_router_whose_first_rtt_is_the_packets(
        case in rcp_case(20_000.0, 10_000..=10_000),
        intervals in prop::collection::vec(interval(), 1..8),
    ) {
        let mut rust = rcp::Router::new(&rcp::router::Params { initial_rtt: None, ..case.rust }, &RouterView::of(case.capacity));
        let mut c = Rcp { avg_rtt_q8: 0, ..case.state };
        let mut errors = (0.0, 0.0);
        for it in &intervals {
            if rust.avg_rtt_s() > 0.0 && rust.avg_rtt_s() < 0.0101 {
                break;
            }
            prop_assert_eq!(fs_host_rcp_interval_ns(&case.c, &c), 10_000_000);
            errors = rcp_step(&case, &mut rust, &mut c, 10_000_000, it, errors)?;
        }
    }

    // RTTs by bytes and bounded, in whole us: an interval's mean errs by its bounds' error and 1 us, 1e-4 of 10 ms and
    // more. m and d have the same error, and R has it times the gains, which are up to 10.
    #[test]
    fn rcp_router_that_bounds_rtts(
        case in rcp_case(20_000.0, 10_000..=10_000),
        known in any::<bool>(),
        factor_q16 in (1u64 << 16)..(20 << 16),
        intervals in prop::collection::vec(
            prop::collection::vec((log_uniform(10_000.0, 30e6), 40u64..9000), 0..8), 1..20),
    ) {
        let params = rcp::router::Params {
            max_rtt_factor: Some(q16(factor_q16)),
            initial_rtt: case.rust.initial_rtt.filter(|_| known),
            ..case.rust
        };
        let c_params = RcpParams { max_rtt_factor_q16: factor_q16, ..case.c };
        let mut rust = rcp::Router::new(&params, &RouterView::of(case.capacity));
        let mut c = Rcp { avg_rtt_q8: if known { case.state.avg_rtt_q8 } else { 0 }, ..case.state };
        let mut off = 0.0;
        for packets in &intervals {
            if rust.avg_rtt_s() > 0.0 && rust.avg_rtt_s() < 0.0101 {
                break;
            }
            let mut sums = RcpSums::default();
            for (rtt, bytes) in packets {
                let rtt = *rtt as u64;
                rust.on_arrival(link(0), PacketIn::of(*bytes as u32, Some(&Stamp([0.0, rtt as f64 / 1e6, 0.0]))));
                fs_host_rcp_input(&mut sums, *bytes);
                fs_host_rcp_rtt(&mut sums, c_params.max_rtt_us, c.most_rtt_us, rtt, *bytes);
            }
            rust.on_timer(0, link(0));
            fs_host_rcp_update(&c_params, &mut c, &sums, 10_000_000, 0);
            off += 1e-4;
            let d = rust.avg_rtt_s();
            close!(c.avg_rtt_q8 as f64 / 256e9, d, d * off, "d");
            close!(q16(c.rate_q16), rust.rate(), rust.rate() * off * 10.0 + 1.0, "R");
            prop_assert!(c.most_rtt_us == 0 || c.avg_rtt_q8 <= (c.most_rtt_us + 1) * 256_000);
        }
    }

    #[test]
    fn rcp_stamps(offer in 1u32.., carried in any::<u32>()) {
        let mut law = rcp::Router::new(
            &rcp::router::Params { initial_rate: 1.0, ..rcp::router::Params::default() }, &RouterView::of(Rate::from_bytes_per_sec(f64::from(offer))));
        let mut stamp = Stamp([f64::from(carried), 0.0, 0.0]);
        law.on_departure(link(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
        let got = fs_host_rcp_stamp(offer, carried);
        prop_assert_eq!(f64::from(got), stamp.0[0]);
        prop_assert!(got <= carried);
    }

    #[test]
    fn rtts_in_the_option(us in prop_oneof![0_u64..134_000_000, any::<u64>()]) {
        let time = MicrosFloat::from_micros(us);
        prop_assert_eq!(fs_host_rtt_pack(us), u32::from(time.to_bits()), "{} us", us);
        prop_assert_eq!(Some(fs_host_rtt_unpack(time.to_bits().into())), time.to_micros().map(u64::from));
    }

    #[test]
    fn xcp_times_between_packets(rtt in rtt_us(), in_flight in 1u64..65536) {
        let exact = rtt as f64 / in_flight as f64 * 16e3;
        close!(fs_host_xcp_x_q4(rtt, in_flight) as f64, exact, 1.0, "X");
    }
}

/// One packet of XCP.
#[derive(Clone, Copy, Debug)]
struct Packet {
    bytes: u32,
    rtt_us: u64,
    in_flight: u64,
    carried: i32,
}

fn packet() -> impl Strategy<Value = Packet> {
    let rtt = prop_oneof![9 => rtt_us(), 1 => Just(0)];
    let carried = prop_oneof![any::<i32>(), -100_000..100_000, Just(i32::MAX)];
    (40u32..9000, rtt, 1u64..65536, carried).prop_map(|(bytes, rtt_us, in_flight, carried)| Packet {
        bytes,
        rtt_us,
        in_flight,
        carried,
    })
}

#[derive(Clone, Debug)]
struct XcpCase {
    c: XcpParams,
    rust: xcp::router::Params,
    capacity: Rate,
    interval_ns: u64,
    /// Whether the first RTT is known.
    told: bool,
    queues: [u64; 2],
    other_bytes: u64,
    packets: Vec<Packet>,
    departures: Vec<Packet>,
}

/// An interval that the kernel's timer can keep, mostly short: 100 us to 20 s.
fn timer_us() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 100u64..5000, 1 => 100u64..=20_000_000]
}

fn xcp_case() -> impl Strategy<Value = XcpCase> {
    let parts = (
        link_rate_q16(),
        gain_q32(10),
        gain_q32(10),
        gain_q32(1),
        prop::array::uniform2(0.0..3.0),
        0.0..3.0,
        prop::collection::vec(packet(), 0..12),
        prop::collection::vec(packet(), 0..12),
        prop::option::weighted(0.7, rtt_us()),
        (
            log_uniform(0.001, 16.0),
            rtt_us(),
            prop::array::uniform2(timer_us()),
            prop::option::of((1u64 << 16)..(64 << 16)),
        ),
    );
    parts.prop_map(
        |(
            capacity_q16,
            alpha_q32,
            beta_q32,
            gamma_q32,
            queues,
            input,
            packets,
            departures,
            told_us,
            more,
        )| {
            let (queue_window, max_rtt_us, [min_interval_us, min_queue_us], max_weight_q16) = more;
            let queue_window_q32 = (queue_window * 4_294_967_296.0) as u64;
            // A router without an RTT looks for it every millisecond.
            let interval_us = told_us.unwrap_or(min_interval_us.max(1000));
            let capacity = q16(capacity_q16);
            let seconds = interval_us as f64 / 1e6;
            let rust = xcp::router::Params {
                alpha: q32(alpha_q32),
                beta: q32(beta_q32),
                gamma: q32(gamma_q32),
                initial_interval: told_us.map(Time::from_micros),
                max_rtt: Some(Time::from_micros(max_rtt_us)),
                min_interval: Time::from_micros(min_interval_us),
                queue_window: q32(queue_window_q32),
                min_queue_interval: Time::from_micros(min_queue_us),
                max_weight: max_weight_q16.map(q16),
                max_fill: None,
                ..Default::default()
            };
            XcpCase {
                c: XcpParams {
                    capacity_q16,
                    alpha_q32,
                    beta_q32,
                    gamma_q32,
                    min_interval_ns: min_interval_us * 1000,
                    max_rtt_us,
                    queue_window_q32,
                    min_queue_interval_ns: min_queue_us * 1000,
                    max_weight_q16: max_weight_q16.unwrap_or(0),
                },
                rust,
                capacity: Rate::from_bytes_per_sec(capacity),
                interval_ns: interval_us * 1000,
                told: told_us.is_some(),
                queues: queues.map(|q| (q * capacity * seconds.min(0.1)) as u64),
                other_bytes: (input * capacity * seconds) as u64,
                packets,
                departures,
            }
        },
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn xcp_router(case in xcp_case()) {
        let mut rust = xcp::Router::<Throughput>::new(&case.rust, &RouterView::of(case.capacity));
        let first_rtt_q8 = if case.told { case.interval_ns << 8 } else { 0 };
        let mut c = Xcp { avg_rtt_q8: first_rtt_q8, ..Xcp::default() };
        let capacity = q16(case.c.capacity_q16);

        // The search for the persistent queue, twice: the first finds none.
        for queue in case.queues {
            let wait = rust.on_timer(1, link(queue)).as_secs_f64() * 1e9;
            let got = fs_host_xcp_queue_ns(&case.c, &mut c, queue) as f64;
            let local_ns = queue as f64 / capacity * 1e9;
            let window = case.rust.queue_window;
            let bound = 2.0 * U * (wait + window * local_ns) + 2.0 * window + 2.0;
            close!(got, wait, bound, "wait for the queue");
        }
        prop_assert_eq!(c.persistent_queue_bytes as f64, variables(&rust)["persistent_queue_bytes"]);

        // First block.
        let mut sums = XcpSums { input_bytes: case.other_bytes, ..XcpSums::default() };
        arrive(&mut rust, case.other_bytes);
        let stamp = |p: &Packet, x_q4: u64| Stamp([x_q4 as f64 / 16e9, p.rtt_us as f64 / 1e6, f64::from(p.carried)]);
        for p in &case.packets {
            let x_q4 = fs_host_xcp_x_q4(p.rtt_us, p.in_flight);
            fs_host_xcp_arrival(&case.c, &mut sums, u64::from(p.bytes), 1, p.rtt_us, x_q4);
            rust.on_arrival(link(u64::MAX), PacketIn::of(p.bytes, Some(&stamp(p, x_q4))));
        }

        // Second block.
        fs_host_xcp_decide(&case.c, &mut c, &sums, case.interval_ns);
        rust.on_timer(0, link(0));
        let v = variables(&rust);
        let (d, least) = (v["avg_rtt_s"], case.c.min_interval_ns as f64 / 1e9);
        let bound_d = 2.0 / 256e9 + 2.0 * U * d;
        close!(c.avg_rtt_q8 as f64 / 256e9, d, bound_d, "d");
        close!(
            fs_host_xcp_interval_ns(&case.c, &c) as f64,
            if d > 0.0 { d.max(least) * 1e9 } else { least.max(0.001) * 1e9 },
            bound_d * 1e9 + 1.0,
            "interval"
        );
        let y = v["input_rate_bps"] / 8.0;
        close!(q16(c.input_rate_q16), y, 2f64.powi(-16) + U * y, "y");
        let delay = if d > 0.0 { d.max(least) } else { least.max(0.001) };
        let drain = case.rust.beta * c.persistent_queue_bytes as f64 / delay;
        // 281 Tb/s: more saturates.
        prop_assume!(drain < 2f64.powi(45));
        let bound_f = 2f64.powi(-13) * case.rust.alpha.max(case.rust.beta).max(1.0)
            + 4.0 * U * (case.rust.alpha * (capacity + y) + drain)
            + if d > 0.0 { drain * bound_d / d } else { 0.0 };
        prop_assert!(case.told || c.residue_pos_q16 | c.residue_neg_q16 == 0, "nothing is given of an RTT that is new");
        close!(c.aggregate_q16 as f64 / 65536.0, v["aggregate_feedback_bps"] / 8.0, bound_f, "F");
        let bound_pool = 2.0 * bound_f + 2f64.powi(-15) + 3.0 * U * case.rust.gamma * y;
        let (pos, neg) = rust.residues();
        close!(q16(c.residue_pos_q16), pos, bound_pool, "pool to give");
        close!(q16(c.residue_neg_q16), neg, bound_pool, "pool to take");
        // From bytes/s (q16) for 1/16 ns to bytes/s for a second.
        let (give, take) = (c.give.value() / 65536.0 * 16e9, c.take.value() / 65536.0);
        let gain_u = 2f64.powi(-22);
        let (xi_pos, xi_neg) = (v["xi_pos"], v["xi_neg"]);
        let sum_x = sums.sum_x_q4 as f64 / 16e9;
        let bound_give = if sums.sum_x_q4 > 0 { gain_u * xi_pos + bound_pool / sum_x } else { 0.0 };
        let taken_from = if case.rust.max_weight.is_some() { sums.x_bytes } else { sums.input_bytes };
        let bound_take = if sums.sum_x_q4 > 0 { gain_u * xi_neg + bound_pool / taken_from as f64 } else { 0.0 };
        close!(give, xi_pos, bound_give, "xi_p");
        close!(take, xi_neg, bound_take, "xi_n");

        // Third block, from the pools that are; their errors stay.
        let mut slack = bound_pool;
        let (mut given, mut taken) = (0.0, 0.0);
        for p in &case.departures {
            let x_q4 = fs_host_xcp_x_q4(p.rtt_us, p.in_flight);
            let before = rust.residues();
            let pools = (c.residue_pos_q16, c.residue_neg_q16);
            let mut carried = stamp(p, x_q4);
            rust.on_departure(link(0), PacketOut { size: p.bytes, stamp: &mut carried, bits: &mut 0 }, || 0.5);
            let named = x_q4 as f64 / 16e9;
            let x_q4 = fs_host_xcp_bounded(&c, u64::from(p.bytes), x_q4);
            let got = fs_host_xcp_departure(&mut c, u64::from(p.bytes), 1, p.rtt_us, x_q4, p.carried);
            prop_assert!(got <= p.carried, "{} raised to {}", p.carried, got);
            prop_assert!(c.residue_pos_q16 <= pools.0 && c.residue_neg_q16 <= pools.1);
            if p.rtt_us > 0 && got > 0 {
                given += f64::from(got);
            }
            taken += q16(pools.1 - c.residue_neg_q16);
            // The Rust law's bound, for its own sums.
            let most = case.rust.max_weight.filter(|_| sum_x > 0.0).map_or(f64::INFINITY, |c| c * sum_x / sums.x_bytes as f64);
            let size = f64::from(p.bytes);
            let x = named.min(most * size);
            let bound_x = if x < named { gain_u * x + 1.0 / 16e9 } else { 0.0 };
            close!(x_q4 as f64 / 16e9, x, bound_x, "bounded X");
            let (g, t) = ((xi_pos * x).min(before.0), (xi_neg * size).min(before.1));
            let step = bound_give * x + xi_pos * bound_x + bound_take * size + 2.0 * slack + 2f64.powi(-15);
            close!(f64::from(got), carried.0[2], 1.0 + step, "feedback");
            if p.rtt_us > 0 && (f64::from(p.carried) - (g - t)).abs() <= 1.0 + step {
                // Either branch may have been taken, and they leave different pools.
                break;
            }
            slack += step;
            let after = rust.residues();
            close!(q16(c.residue_pos_q16), after.0, slack, "rest to give");
            close!(q16(c.residue_neg_q16), after.1, slack, "rest to take");
        }
        prop_assert!(given <= pos + neg + bound_pool && taken <= neg + bound_pool);
    }

    // A frame that becomes many packets gets at most the sum of their shares, except for rounding each.
    #[test]
    fn xcp_segments(p in packet(), segments in 1u32..64, gains in (0u64..1 << 24, 0u64..1 << 24), pools in (0u64..1 << 40, 0u64..1 << 40)) {
        let start = Xcp {
            give: Gain { mantissa: gains.0, shift: 20 },
            take: Gain { mantissa: gains.1, shift: 8 },
            residue_pos_q16: pools.0,
            residue_neg_q16: pools.1,
            ..Xcp::default()
        };
        let (mut one, mut all) = (start, start);
        let x_q4 = fs_host_xcp_x_q4(p.rtt_us, p.in_flight);
        let bytes = u64::from(p.bytes);
        let frame = fs_host_xcp_departure(&mut all, bytes * u64::from(segments), segments, p.rtt_us, x_q4, p.carried);
        prop_assert!(frame <= p.carried);
        let given = pools.0 - all.residue_pos_q16;
        if frame > 0 {
            prop_assert!((frame as u64 * u64::from(segments)) << 16 <= given);
        }
        let single = fs_host_xcp_departure(&mut one, bytes, 1, p.rtt_us, x_q4, p.carried);
        prop_assert!(single <= p.carried);
        // Where the pools are not the limit, all are treated alike. Their remainder says nothing: if the packet
        // requests less, only that is taken from them.
        let give = ((u128::from(gains.0) * u128::from(x_q4)) >> 20) * u128::from(segments);
        let take = (u128::from(gains.1) * u128::from(bytes * u64::from(segments))) >> 8;
        if give <= pools.0.into() && take <= pools.1.into() {
            prop_assert!(frame.abs_diff(single) <= 1, "{} for {}, {} alone", frame, segments, single);
        }
    }
}
