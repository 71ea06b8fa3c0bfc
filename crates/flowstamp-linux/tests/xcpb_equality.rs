//! Compares the kernel's XCP-b in C with the law in Rust: bpf/xcpb.h on random traces of intervals, within
//! the error bounds stated there. It runs 10^4 traces, or 10^6 with FLOWSTAMP_NIGHTLY=1. Packets' shares of
//! the feedback are XCP's: equality.rs.

#![expect(clippy::cast_precision_loss, reason = "bounds are of 2^-29, f64's rounding is of 2^-53")]

#[macro_use]
mod c_laws;

use c_laws::{U, Xcp, XcpParams, XcpSums, config, log_uniform, q16, variables};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::router::{LinkView, PacketIn, RouterLaw, RouterView};
use flowstamp_laws::units::QueueLength;
use flowstamp_laws::xcp::Throughput;
use flowstamp_laws::xcp::blind::{Detection, Params, Router};
use flowstamp_laws::xcp::shares::Shuffle;
use flowstamp_laws::{Bytes, Stamp, Time};
use proptest::prelude::*;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct XcpBParams {
    kappa_q16: u64,
    in_packets: u64,
    most_q16: u64,
    n: u64,
    weight_q32: u64,
    rest_q32: u64,
    border_q24: u64,
    shuffle_rest: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct XcpBSums {
    frames: u64,
    packets: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct XcpB {
    persistent_frames: u64,
    min_frames: u64,
    each_q16: u64,
    mean_packet_q16: u64,
    average_q24: u64,
    empty: u64,
    under_used: u64,
}

#[link(name = "flowstamp_laws", kind = "static")]
unsafe extern "C" {
    safe fn fs_host_xcp_x_q4(rtt_us: u64, in_flight: u64) -> u64;
    safe fn fs_host_xcp_arrival(
        p: &XcpParams,
        s: &mut XcpSums,
        bytes: u64,
        packets: u64,
        rtt_us: u64,
        x_q4: u64,
    );
    safe fn fs_host_xcp_b_decide(
        x: &XcpParams,
        p: &XcpBParams,
        s: &mut Xcp,
        b: &mut XcpB,
        sums: &XcpSums,
        came: &XcpBSums,
        interval_ns: u64,
        queue_bytes: u64,
        queue_frames: u64,
    );
}

/// A gain that 32 fraction bits have exactly.
fn gain() -> impl Strategy<Value = f64> {
    ((1u64 << 24)..=(2 << 32)).prop_map(|v| v as f64 / 4_294_967_296.0)
}

/// One packet: the queue that it finds, and what it carries.
#[derive(Clone, Copy, Debug)]
struct Packet {
    bytes: u32,
    queue: Queue,
    rtt_us: u64,
    in_flight: u64,
    stamped: bool,
}

/// Frames of `size` bytes.
#[derive(Clone, Copy, Debug)]
struct Queue {
    frames: u32,
    size: u32,
}

impl Queue {
    fn bytes(self) -> u64 {
        u64::from(self.frames) * u64::from(self.size)
    }
}

fn queue() -> impl Strategy<Value = Queue> {
    let frames = prop_oneof![4 => Just(0u32), 4 => 0u32..12, 1 => 0u32..5000];
    (frames, 40u32..9000).prop_map(|(frames, size)| Queue { frames, size })
}

fn packet() -> impl Strategy<Value = Packet> {
    let rtt = prop_oneof![9 => log_uniform(10.0, 3_999_999.0).prop_map(|v| v as u64), 1 => Just(0)];
    (40u32..9000, queue(), rtt, 1u64..65536, prop::bool::weighted(0.8)).prop_map(
        |(bytes, queue, rtt_us, in_flight, stamped)| Packet { bytes, queue, rtt_us, in_flight, stamped },
    )
}

/// The arrivals in an interval, and the queue at its end.
type Interval = (Vec<Packet>, Queue);

#[derive(Clone, Debug)]
struct Case {
    law: Params,
    q_max: u64,
    intervals: Vec<Interval>,
}

fn case() -> impl Strategy<Value = Case> {
    let kappa = prop_oneof![
        2 => (1u32..100).prop_map(|n| QueueLength::Packets(f64::from(n) / 4.0)),
        1 => Just(QueueLength::Packets(3.0)),
        2 => (1u64..100_000).prop_map(|n| QueueLength::Bytes(Bytes::new(n))),
    ];
    // The paper's weight, and others; of either detection's parameters the other has none.
    let average = (
        prop_oneof![Just(None), (1u64 << 20..4_200_000_000).prop_map(|v| Some(v as f64 / 4_294_967_296.0))],
        prop_oneof![2 => Just(None), 1 => (0.01..1.0).prop_map(Some)],
    );
    let detection = prop_oneof![
        2 => average.prop_map(|(weight, tau)| (Detection::Average, weight, tau)),
        1 => Just((Detection::Counter, None, None)),
    ];
    let parts = (
        (
            gain(),
            gain(),
            (0u64..=1 << 32).prop_map(|v| v as f64 / 4_294_967_296.0),
            prop_oneof![Just(Shuffle::Full), Just(Shuffle::Rest)],
        ),
        kappa,
        detection,
        1.0..9.0,
        prop::option::of(1e-3..1.0),
        log_uniform(1500.0, 4e9).prop_map(|v| v as u64),
        (100u64..5000, prop::option::weighted(0.7, 100u64..500_000)),
        prop::collection::vec((prop::collection::vec(packet(), 0..8), queue()), 1..12),
    );
    parts
        .prop_map(
            |(
                (alpha, beta, gamma, shuffle),
                kappa,
                (detection, weight, tau),
                n,
                chi,
                q_max,
                (least, first),
                intervals,
            )| {
                let law = Params {
                    alpha,
                    beta,
                    gamma,
                    shuffle,
                    kappa,
                    q_max: None,
                    chi,
                    detection,
                    n,
                    tau,
                    weight,
                    initial_interval: first.map(Time::from_micros),
                    min_interval: Time::from_micros(least),
                    max_rtt: Some(Time::from_secs(4)),
                    max_weight: None,
                };
                Case { law, q_max, intervals }
            },
        )
        // Where alpha and beta are 5 together there is no chi.
        .prop_filter("a law that the registry takes", |case| Router::<Throughput>::check(&case.law).is_ok())
}

/// As src/law/xcpb.rs has them.
fn in_c(case: &Case) -> (XcpParams, XcpBParams, Xcp, XcpB) {
    let law = &case.law;
    let q32 = |v: f64| (v * 4_294_967_296.0).round() as u64;
    let (in_packets, kappa) = match law.kappa {
        QueueLength::Packets(n) => (1, n),
        QueueLength::Bytes(n) => (0, n.as_f64()),
    };
    let n = if law.detection == Detection::Counter { law.n.ceil() as u64 } else { 0 };
    let weight_q32 = q32(law.weight());
    let x = XcpParams {
        alpha_q32: q32(law.alpha),
        beta_q32: q32(law.beta),
        gamma_q32: q32(law.gamma),
        min_interval_ns: law.min_interval.as_ps() / 1000,
        max_rtt_us: 4_000_000,
        ..XcpParams::default()
    };
    let p = XcpBParams {
        kappa_q16: (kappa * 65536.0).round() as u64,
        in_packets,
        most_q16: (law.chi() * case.q_max as f64 * 65536.0).round() as u64,
        n,
        weight_q32,
        rest_q32: (1 << 32) - weight_q32,
        border_q24: (law.tau() * kappa * 16_777_216.0).ceil() as u64,
        shuffle_rest: u64::from(law.shuffle == Shuffle::Rest),
    };
    let s =
        Xcp { avg_rtt_q8: law.initial_interval.map_or(0, |time| time.as_ps() / 1000) << 8, ..Xcp::default() };
    let b =
        XcpB { each_q16: 1 << 16, mean_packet_q16: 1514 << 16, empty: n, under_used: 1, ..XcpB::default() };
    (x, p, s, b)
}

fn router(case: &Case) -> Router<Throughput> {
    let view = RouterView { capacity: None, limit: Limit::Bytes(case.q_max), packet_bytes: 1514 };
    Router::new(&case.law, &view)
}

fn view(queue: Queue) -> LinkView {
    LinkView { now: Time::ZERO, queue_bytes: queue.bytes(), queue_packets: queue.frames }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn xcp_b_over_many_intervals(case in case()) {
        let mut rust = router(&case);
        let (x, p, mut s, mut b) = in_c(&case);
        let law = &case.law;
        let kappa = q16(p.kappa_q16);
        let (mut bound_average, mut border_may_differ) = (0.0, false);
        let mut size = 1514.0;
        let mut before = 0.0;
        for (packets, at_end) in &case.intervals {
            let interval_ns = (rust.interval_s() * 1e9).round() as u64;
            let (mut sums, mut came) = (XcpSums::default(), XcpBSums::default());
            let mut least = (s.min_queue_bytes, b.min_frames);
            for packet in packets {
                // As router.bpf.c does.
                least = (least.0.min(packet.queue.bytes()), least.1.min(packet.queue.frames.into()));
                came.frames += 1;
                came.packets += 1;
                let x_q4 = fs_host_xcp_x_q4(packet.rtt_us, packet.in_flight);
                let stamp = Stamp([x_q4 as f64 / 16e9, packet.rtt_us as f64 / 1e6, 0.0]);
                if packet.stamped {
                    fs_host_xcp_arrival(&x, &mut sums, packet.bytes.into(), 1, packet.rtt_us, x_q4);
                } else {
                    sums.input_bytes += u64::from(packet.bytes);
                }
                rust.on_arrival(view(packet.queue), PacketIn::of(packet.bytes, packet.stamped.then_some(&stamp)));
            }
            (s.min_queue_bytes, b.min_frames) = least;
            fs_host_xcp_b_decide(&x, &p, &mut s, &mut b, &sums, &came, interval_ns, at_end.bytes(), at_end.frames.into());
            rust.on_timer(0, view(*at_end));
            let v = variables(&rust);

            // XCP's own: bpf/laws.h.
            let (d, least_s) = (v["avg_rtt_s"], law.min_interval.as_secs_f64());
            let bound_d = 2.0 / 256e9 + 2.0 * U * d;
            close!(s.avg_rtt_q8 as f64 / 256e9, d, bound_d, "d");
            let delay = rust.interval_s();
            prop_assert!(delay >= least_s);
            let e = if d > 0.0 { bound_d / d } else { 0.0 };
            let y = v["input_rate_bps"] / 8.0;
            // An interval is of whole nanoseconds here.
            let bound_y = 2f64.powi(-16) + U * y + y * 0.5 / interval_ns as f64;
            close!(q16(s.input_rate_q16), y, bound_y, "y");

            // The queue, exactly.
            let bytes = least.0.min(at_end.bytes());
            let frames = least.1.min(at_end.frames.into());
            prop_assert_eq!((s.persistent_queue_bytes, b.persistent_frames), (bytes, frames));
            prop_assert_eq!(bytes as f64, v["persistent_queue_bytes"]);
            prop_assert_eq!((s.min_queue_bytes, b.min_frames), (at_end.bytes(), at_end.frames.into()));
            let queue = if p.in_packets == 1 { frames as f64 } else { bytes as f64 };

            // lambda, and whether the link is under-used.
            let average = v["average_queue"];
            bound_average = (1.0 - law.weight()) * bound_average + 2.0 * U * average + 2f64.powi(-23)
                // The weight is rounded to 32 bits where it is set.
                + 2f64.powi(-32) * (queue + average);
            close!(b.average_q24 as f64 / 16_777_216.0, average, bound_average, "lambda");
            let border = law.tau() * kappa;
            if p.n == 0 && (average - border).abs() <= bound_average + 2f64.powi(-23) + border * 1e-15 {
                border_may_differ = true;
            } else {
                prop_assert_eq!(b.under_used == 1, rust.under_used(), "lambda {} of {}", average, border);
            }
            // Where they differ, what is given does as well.
            if (b.under_used == 1) != rust.under_used() {
                prop_assert!(border_may_differ);
                return Ok(());
            }

            // F.
            if at_end.frames > 0 {
                size = f64::from(at_end.size);
            } else if !packets.is_empty() {
                size = packets.iter().map(|p| f64::from(p.bytes)).sum::<f64>() / packets.len() as f64;
            }
            let of_units = if p.in_packets == 1 { size } else { 1.0 };
            let (a, by_length) = (law.alpha * (queue - before).abs(), law.beta * (queue - kappa).abs());
            before = queue;
            let most = rust.most_bytes() / delay;
            let bound_most = most * (2.0 * U + e) + 2f64.powi(-16) / delay + 2f64.powi(-15);
            let bound_f = if rust.under_used() {
                bound_most
            } else {
                bound_most.max(
                    (a + by_length) * of_units / delay * (6.0 * U + e)
                        + (2f64.powi(-14) * of_units + 2f64.powi(-15) * (a + by_length) + 2f64.powi(-14)) / delay
                        + 2f64.powi(-15),
                )
            };
            prop_assume!((a + by_length) * of_units / delay < 2f64.powi(45));
            let f = v["aggregate_feedback_bps"] / 8.0;
            close!(s.aggregate_q16 as f64 / 65536.0, f, bound_f, "F");
            // Figure 4's bound rests on it.
            prop_assert!(s.aggregate_q16 as f64 / 65536.0 <= most + bound_most);
            let bound_pool = 2.0 * bound_f + 2f64.powi(-15) + law.gamma * (2.0 * U * y + bound_y);
            let (pos, neg) = rust.residues();
            close!(q16(s.residue_pos_q16), pos, bound_pool, "pool to give");
            close!(q16(s.residue_neg_q16), neg, bound_pool, "pool to take");
        }
    }

    // Deviation 2: the queue is the same for frames of one packet and of many.
    #[test]
    fn frames_of_many_packets_are_as_many_packets(case in case(), kappa in 1u32..100, each in 1u64..64, frames in 1u64..1000) {
        let law = Params { kappa: QueueLength::Packets(f64::from(kappa)), ..case.law };
        let (x, p, s, b) = in_c(&Case { law, ..case });
        let decide = |each: u64, frames: u64| {
            let (mut s, mut b) = (s, b);
            let came = XcpBSums { frames: 10, packets: 10 * each };
            let sums = XcpSums { input_bytes: 1500 * came.packets, ..XcpSums::default() };
            for frames in [frames, 2 * frames, 3 * frames] {
                let bytes = 1500 * each * frames;
                (s.min_queue_bytes, b.min_frames) = (bytes, frames);
                fs_host_xcp_b_decide(&x, &p, &mut s, &mut b, &sums, &came, 1_000_000, bytes, frames);
            }
            (s.aggregate_q16, b.average_q24, b.under_used)
        };
        prop_assert_eq!(decide(each, frames), decide(1, each * frames));
    }
}

/// Equation 9's law of a queue that rested at kappa and is gone: under-used after n = 6 intervals, as in the paper, and not after 5.
#[test]
fn a_queue_that_is_gone_for_six_intervals_is_found_by_both() {
    for detection in [Detection::Average, Detection::Counter] {
        let law = Params { detection, ..Params::default() };
        let case = Case { law, q_max: 64_000, intervals: vec![] };
        let (x, p, mut s, mut b) = in_c(&case);
        let mut rust = router(&case);
        let mut step = |queue: Queue| {
            (s.min_queue_bytes, b.min_frames) = (queue.bytes(), queue.frames.into());
            let came = XcpBSums { frames: 1, packets: 1 };
            let sums = XcpSums { input_bytes: 1500, ..XcpSums::default() };
            fs_host_xcp_b_decide(
                &x,
                &p,
                &mut s,
                &mut b,
                &sums,
                &came,
                1_000_000,
                queue.bytes(),
                queue.frames.into(),
            );
            rust.on_timer(0, view(queue));
            (b.under_used == 1, rust.under_used())
        };
        let (rest, none) = (Queue { frames: 3, size: 1500 }, Queue { frames: 0, size: 1500 });
        // Long enough for lambda to be kappa in 24 bits.
        for _ in 0..100 {
            step(rest);
        }
        assert_eq!(step(rest), (false, false));
        let empty: Vec<_> = (0..7).map(|_| step(none)).collect();
        assert_eq!(empty[4], (false, false), "{detection:?}: {empty:?}");
        assert_eq!(empty[5], (true, true), "{detection:?}: {empty:?}");
    }
}
