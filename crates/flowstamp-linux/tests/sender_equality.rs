//! Compares the kernel's sender arithmetic in C with the Rust laws: every function of bpf/sender.h. It runs
//! 10^4 cases of each function, or 10^6 with FLOWSTAMP_NIGHTLY=1. A failure prints the smallest failing case;
//! PROPTEST_RNG_SEED=N repeats a run.
//!
//! If sender.h deviates from the law by a stated amount (the room for bursts, the minimum window, the
//! pacing), the expected value is the law's with that amount included.

#![expect(clippy::cast_precision_loss, reason = "bounds are of a part in 256, f64's rounding is of 2^-53")]

#[macro_use]
mod c_laws;

use c_laws::{config, log_uniform};
use flowstamp_laws::sender::{Ack, Congestion, Feedback, FlowView, SenderLaw};
use flowstamp_laws::xcp::Throughput;
use flowstamp_laws::{Rate, Stamp, Time};
use flowstamp_laws::{rcp, xcp};
use proptest::prelude::*;

/// bpf/sender.h: `FS_BURST_US`, `FS_WINDOW_MIN`, `FS_WINDOW_MAX`, fractions of a byte, `FS_XCP_UNBOUNDED`, `FS_DOUBLED_US`.
const BURST_US: u32 = 2000;
const WINDOW: std::ops::RangeInclusive<f64> = 2.0..=(1u32 << 19) as f64;
const FRACTIONS: f64 = 256.0;
const UNBOUNDED: f64 = 0x7fff_ffff as f64;
const DOUBLED_US: u32 = 100_000;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Switch {
    round_end_us: u64,
    least_srtt_us: u32,
    round_rates: [u32; 4],
    doubled_us: u64,
}

/// bpf/shun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Shunned {
    until_ns: u64,
    doublings: u32,
    reserved: u32,
}

#[link(name = "flowstamp_laws", kind = "static")]
unsafe extern "C" {
    safe fn fs_host_shun_until(s: &mut Shunned, now_ns: u64);
    safe fn fs_host_rcp_window(rate: u32, srtt_us: u32, packet_bytes: u32) -> u32;
    safe fn fs_host_rcp_pace(rate: u32, mss: u32, header_bytes: u32) -> u64;
    safe fn fs_host_xcp_window(window: u64, change: i64, srtt_us: u32, packet_bytes: u32) -> u64;
    safe fn fs_host_xcp_stated(packets: u32, inverse_price_q16: u64) -> u16;
    safe fn fs_host_xcp_packets(window: u64, packet_bytes: u32, least: u32) -> u32;
    safe fn fs_host_xcp_pace(window: u64, srtt_us: u32, mss: u32, header_bytes: u32) -> u64;
    safe fn fs_host_xcp_wish(desired: u64, window: u64, srtt_us: u32, packets: u32) -> i32;
    safe fn fs_host_switch_watch(
        s: &mut Switch,
        now_us: u64,
        sent_us: u64,
        srtt_us: u32,
        rate: u32,
        idle: i32,
    ) -> i32;
    safe fn fs_host_switch_doubled(s: &Switch, rtt_us: u32) -> i32;
    safe fn fs_host_xcp_lost(window: u64, timeout: i32, packet_bytes: u32) -> u64;
    safe fn fs_host_rcp_lost(
        s: &Switch,
        lost: &mut u32,
        lost_us: &mut u64,
        now_us: u64,
        srtt_us: u32,
        rate: u32,
    ) -> i32;
}

/// The kernel's own for TCP Fast Open (`tcp_fastopen_active_should_disable`: 2^min(times - 1, 6) of the first), from a minute on.
#[test]
fn a_peer_is_shunned_for_twice_as_long_each_time() {
    const MINUTE: u64 = 60_000_000_000;
    let (mut s, mut now) = (Shunned::default(), 1);
    for minutes in [1, 2, 4, 8, 16, 32, 64, 64, 64] {
        fs_host_shun_until(&mut s, now);
        assert_eq!(s.until_ns, now + minutes * MINUTE);
        // Another connection that was there already changes nothing.
        let before = s.until_ns;
        fs_host_shun_until(&mut s, before - 1);
        assert_eq!(s.until_ns, before);
        // The last moment at which it counts as found again.
        now = s.until_ns + minutes * MINUTE - 1;
    }
    now += 1;
    fs_host_shun_until(&mut s, now);
    assert_eq!(s.until_ns, now + MINUTE);
}

/// 10 us to 4 s, what an XCP router believes.
fn srtt_us() -> impl Strategy<Value = u32> {
    log_uniform(10.0, 4e6).prop_map(|v| v as u32)
}

fn flow(packet_bytes: u32, window_bytes: f64) -> FlowView {
    FlowView { packet_bytes, initial_window: window_bytes / f64::from(packet_bytes), app_rate: None }
}

fn micros(us: u32) -> Time {
    Time::from_micros(u64::from(us))
}

fn ack<'a>(now_us: u64, srtt_us: u32, stamp: &'a Stamp) -> Ack<'a> {
    Ack { flight: 10, ..Ack::of_one(Time::from_micros(now_us), micros(srtt_us), stamp) }
}

fn rate_stamp(bytes_per_ms: u32, srtt_us: u32) -> Stamp {
    let rtt_s = f64::from(srtt_us) / 1e6;
    flowstamp_laws::rcp::Header { rate: f64::from(bytes_per_ms) * 1e3, rtt_s, age_bytes: 0.0 }.into()
}

proptest! {
    #![proptest_config(config())]

    /// Whole packets of the law's window at an RTT that is longer by the room for bursts. Error: the packet cut off.
    #[test]
    fn rcp_windows(rate in log_uniform(1.0, 1.25e7), srtt in srtt_us(), packet in 64u32..9000) {
        let rate = rate as u32;
        let mut law = rcp::Sender::new(&rcp::sender::Params::default(), &flow(packet, f64::from(packet)));
        law.on_feedback(&Feedback { now: Time::ZERO, srtt: micros(srtt + BURST_US), stamp: &rate_stamp(rate, srtt), bits: 0, carried: 0.0 });
        let exact = (law.cwnd() / f64::from(packet)).clamp(*WINDOW.start(), *WINDOW.end());
        let got = f64::from(fs_host_rcp_window(rate, srtt, packet));
        prop_assert!(got <= exact * (1.0 + 1e-12) && exact - got <= 1.0, "C {got}, Rust {exact}");
    }

    /// Payload's part of the law's pace. Error: a byte/s cut off.
    #[test]
    fn rcp_paces(rate in log_uniform(1.0, 1.25e7), mss in 24u32..9000, header in 40u32..120) {
        let rate = rate as u32;
        let mut law = rcp::Sender::new(&rcp::sender::Params::default(), &flow(mss + header, 1e4));
        law.on_feedback(&Feedback { now: Time::ZERO, srtt: micros(1000), stamp: &rate_stamp(rate, 1000), bits: 0, carried: 0.0 });
        let pace = law.pacing().map_or(0.0, |pacing| pacing.rate.bytes_per_sec());
        let exact = pace * f64::from(mss) / f64::from(mss + header);
        let got = fs_host_rcp_pace(rate, mss, header) as f64;
        prop_assert!(got <= exact * (1.0 + 1e-12) && exact - got <= 1.0 + exact * 1e-12, "C {got}, Rust {exact}");
    }

    /// The law's window after a granted change. Error: 1/256 byte cut off.
    #[test]
    fn xcp_windows(cwnd in log_uniform(3000.0, 6e10), change in any::<i32>(), srtt in srtt_us(), packet in 64u32..3000) {
        // A wish that never limits: sender.h's caller holds the window to what the host may use.
        let params = xcp::sender::Params { desired_rate: Some(Rate::from_bytes_per_sec(1e18)), ..xcp::sender::Params::default() };
        let mut law = xcp::Sender::<Throughput>::new(&params, &flow(packet, cwnd.floor()));
        let stamp = Stamp([0.0, f64::from(srtt) / 1e6, f64::from(change)]);
        law.on_ack(&ack(0, srtt, &stamp));
        let exact = law.cwnd();
        let got = fs_host_xcp_window((cwnd.floor() * FRACTIONS) as u64, i64::from(change), srtt, packet) as f64 / FRACTIONS;
        // Multiplying by packets in `initial_window` rounds in the 53rd bit; the least window may cut the last fraction.
        prop_assert!((got - exact).abs() <= 2.0 / FRACTIONS + exact * 1e-12, "C {got}, Rust {exact}");
    }

    /// The law's inter-packet time at a price: the RTT over what is stated. Error: half a packet, and the price's fixed point.
    #[test]
    fn xcp_states_its_price(packets in 2u32..60_000, price in log_uniform(0.001, 1000.0)) {
        let law = xcp::Sender::<Throughput>::new(&xcp::sender::Params { price, ..Default::default() }, &flow(1000, f64::from(packets) * 1000.0));
        let Stamp([x, rtt_s, _]) = law.stamp(Time::ZERO, micros(100_000));
        let got = f64::from(fs_host_xcp_stated(packets, (65536.0 / price).round() as u64));
        let exact = (rtt_s / x).clamp(1.0, 65535.0);
        prop_assert!((got - exact).abs() <= 0.51 + exact * 0.01, "C {got}, Rust {exact}");
    }

    /// Whole packets, and the pace of 1.2 windows an RTT for the payload. Errors: what is cut off.
    #[test]
    fn xcp_packets_and_paces(cwnd in log_uniform(3000.0, 6e10), srtt in srtt_us(), mss in 24u32..9000, header in 40u32..120) {
        let window = (cwnd * FRACTIONS) as u64;
        let packet = mss + header;
        let packets = (cwnd / f64::from(packet)).clamp(2.0, *WINDOW.end());
        let got = f64::from(fs_host_xcp_packets(window, packet, 2));
        prop_assert!(got <= packets * (1.0 + 1e-12) && packets - got <= 1.0, "{got} packets, exact {packets}");
        // 4 TB/s is the most: faster than any wire.
        let rate = (1.2e6 * cwnd / f64::from(srtt)).min((1u64 << 42) as f64);
        let exact = rate * f64::from(mss) / f64::from(packet);
        let got = fs_host_xcp_pace(window, srtt, mss, header) as f64;
        // A byte of the window is cut off before it is divided by the RTT, and a byte/s twice after.
        let bound = 1.2e6 / f64::from(srtt) + 2.0 + exact * 1e-12;
        prop_assert!((got - exact).abs() <= bound, "pace {got}, exact {exact}");
    }

    /// The law's wish, spread over the packets of a round trip, in throughput. Error: the byte/s cut off twice.
    #[test]
    fn xcp_wishes(desired in log_uniform(1e3, 1e11), packets in 2u32..60_000, srtt in srtt_us(), packet in 64u32..9000) {
        let cwnd = f64::from(packets) * f64::from(packet);
        let desired = desired as u64;
        let params = xcp::sender::Params { desired_rate: Some(Rate::from_bytes_per_sec(desired as f64)), ..xcp::sender::Params::default() };
        let law = xcp::Sender::<Throughput>::new(&params, &flow(packet, cwnd));
        let Stamp([_, _, exact]) = law.stamp(Time::ZERO, micros(srtt));
        let exact = exact.clamp(-UNBOUNDED, UNBOUNDED - 1.0);
        let got = f64::from(fs_host_xcp_wish(desired, (cwnd * FRACTIONS) as u64, srtt, packets));
        prop_assert!((got - exact).abs() <= 2.0 + exact.abs() * 1e-9, "C {got}, Rust {exact}");
    }

    /// The switch on a doubled RTT: the same ack decides, whatever rates and RTTs come. A round trip is beyond the 5 ms and
    /// 100 ms that sender.h asks for besides, and what is acked was sent just now: its deviation 8 is tested below.
    #[test]
    fn switches(
        base in DOUBLED_US..400_000,
        acks in prop::collection::vec((1u32..120_000, 0.5f64..4.0, 1u32..100_000), 1..80),
    ) {
        let params = rcp::sender::Params { switch: true, ..rcp::sender::Params::default() };
        let mut law = rcp::Sender::new(&params, &flow(1000, 1e4));
        let mut c = Switch::default();
        let mut now = 0;
        for (gap, stretch, rate) in acks {
            now += u64::from(gap);
            // Whole multiples of 1 us, at least `base`, so that twice the least is always 5 ms above it.
            let srtt = base.max((f64::from(base) * stretch) as u32);
            law.on_ack(&ack(now, srtt, &rate_stamp(rate, srtt)));
            let said = fs_host_switch_watch(&mut c, now, now, srtt, rate, 0);
            prop_assert_eq!(said & 2 != 0, law.report().fallen_back.is_some(), "at {} us", now);
            if law.report().fallen_back.is_some() {
                break;
            }
        }
    }

    /// The law's window after a loss and after a timeout, where all of it is in flight (deviation 9). Error: 1/256 byte cut off.
    #[test]
    fn xcp_losses(cwnd in log_uniform(3000.0, 6e10), packet in 64u32..3000, timeout in any::<bool>()) {
        let mut law = xcp::Sender::<Throughput>::new(&xcp::sender::Params::default(), &flow(packet, cwnd.floor()));
        if timeout { law.on_congestion(Time::ZERO, Congestion::Timeout { flight: u32::MAX }) } else { law.on_congestion(Time::ZERO, Congestion::Loss { flight: u32::MAX }) }
        let got = fs_host_xcp_lost((cwnd.floor() * FRACTIONS) as u64, i32::from(timeout), packet) as f64 / FRACTIONS;
        prop_assert!((got - law.cwnd()).abs() <= 1.0 / FRACTIONS + law.cwnd() * 1e-12, "C {got}, Rust {}", law.cwnd());
    }

    /// RCP's switch after a loss: both leave or both stay. The law judges at the end of the round trip after the loss, C
    /// when one and 5 ms have passed: its deviation 7.
    #[test]
    fn rcp_losses(srtt in 6000u32..400_000, before in 10u32..100_000, to in 0.05f64..2.0, first in 60u64..100) {
        let after = ((f64::from(before) * to) as u32).max(1);
        // There 0.9 of a rate, which f64 rounds, decides.
        prop_assume!(u64::from(after) * 10 != u64::from(before) * 9);
        let params = rcp::sender::Params { switch: true, ..rcp::sender::Params::default() };
        let mut law = rcp::Sender::new(&params, &flow(1000, 1e4));
        let (mut c, mut lost, mut lost_us) = (Switch::default(), 0, 0);
        let (gap, mut left) = (u64::from(srtt) / 10, None);
        let loss_us = first * gap;
        for now in (first - 50..first + 60).map(|number| number * gap) {
            let rate = if now < loss_us { before } else { after };
            if now == loss_us {
                law.on_congestion(Time::from_micros(now), Congestion::Loss { flight: 10 });
                lost = 1;
            }
            law.on_ack(&ack(now, srtt, &rate_stamp(rate, srtt)));
            prop_assert_eq!(fs_host_switch_watch(&mut c, now, now, srtt, rate, 0) & 2, 0);
            if fs_host_rcp_lost(&c, &mut lost, &mut lost_us, now, srtt, rate) != 0 {
                left.get_or_insert(now);
            }
        }
        let law_left = law.report().fallen_back;
        prop_assert_eq!(left.is_some(), law_left.is_some(), "C {:?}, Rust {:?}", left, law_left);
        let round = u64::from(srtt);
        if let (Some(at), Some(law_at)) = (left, law_left) {
            prop_assert!((round + 5000..=round + 5001 + gap).contains(&(at - loss_us)), "{at} after {loss_us}");
            let law_after = law_at.as_secs_f64() * 1e6 - loss_us as f64;
            prop_assert!((round as f64 - 1.0..(2 * round + 2 * gap) as f64).contains(&law_after), "{law_after}");
        }
        prop_assert_eq!((lost, lost_us), (0, 0));
    }
}

/// Data every `gap_us` and their acks, as the host's program sees them: whether it switches. The smoothed RTT is the kernel's, with
/// an eighth of each packet's. `rtt_us` by the instant of sending; none: the window does not let it be sent.
fn watched(gap_us: usize, rtt_us: impl Fn(u64) -> Option<u64>) -> bool {
    let (mut c, mut srtt_us) = (Switch::default(), 0.0);
    let sent =
        (0..10_000_000).step_by(gap_us).filter_map(|sent_us| Some((sent_us + rtt_us(sent_us)?, sent_us)));
    let mut acks: Vec<(u64, u64)> = sent.collect();
    acks.sort_unstable();
    acks.into_iter().any(|(now_us, sent_us)| {
        let rtt_us = (now_us - sent_us) as u32;
        srtt_us =
            if srtt_us == 0.0 { f64::from(rtt_us) } else { srtt_us * 0.875 + f64::from(rtt_us) * 0.125 };
        let idle = i32::from(fs_host_switch_doubled(&c, rtt_us) == 0);
        fs_host_switch_watch(&mut c, now_us, sent_us, srtt_us as u32, 1000, idle) & 2 != 0
    })
}

/// A host that stands still for a while delays a flight; a queue delays all that follow.
#[test]
fn a_standstill_is_no_queue() {
    const LEAST_US: u64 = 10_000;
    for still_us in [15_000, 25_000, 40_000, 90_000, 200_000, 500_000] {
        let once = |sent_us: u64| match (sent_us % 1_000_000).checked_sub(300_000) {
            // The flight that the standstill holds, and what its acks no longer let go.
            Some(into) if into < LEAST_US => Some(LEAST_US + still_us - into),
            Some(into) if into < still_us => None,
            _ => Some(LEAST_US),
        };
        for gap_us in [100, 1000, 2500] {
            assert!(!watched(gap_us, once), "{still_us} us, a packet every {gap_us} us");
        }
    }
    let queue = |us: u64| watched(100, |sent_us| Some(LEAST_US + if sent_us > 1_000_000 { us } else { 0 }));
    assert!(queue(11_000) && queue(40_000) && queue(500_000));
    assert!(!queue(9_000));
}

/// Hosts under load hold acks back for half of the 100 ms, and nobody is to leave for that.
#[test]
fn what_lasts_less_than_100_ms_is_the_hosts() {
    let queue_of = |us: u64| {
        let waits = |sent_us: u64| (1_000_000..1_000_000 + us).contains(&sent_us);
        watched(1000, |sent_us| Some(10_000 + if waits(sent_us) { 20_000 } else { 0 }))
    };
    assert!(!queue_of(120_000) && queue_of(200_000));
}
