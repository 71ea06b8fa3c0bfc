//! BBR against the arithmetic of draft-cardwell-iccrg-bbr-congestion-control-00: gains, filters, states.

use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::sender::{Ack, Congestion, FlowView, RateSample, Recovery, SenderLaw};
use flowstamp_laws::tcp::bbr::model::{MaxOverRounds, MinRtt};
use flowstamp_laws::tcp::bbr::v1::{Bbr, Params, State};
use flowstamp_laws::transport::{Agreed, Params as Transport};
use flowstamp_laws::{Stamp, Time};
use proptest::prelude::*;

const PACKET: f64 = 1000.0;
const FLOW: FlowView = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };
/// 10 Mb/s in packets, and a pipe of 50.
const RATE: f64 = 1250.0;
const RTT: Time = Time::from_millis(40);

/// A flow on a link of `RATE` and `RTT`, a round trip at a time: each brings a sample of what the link delivered in it.
struct Flow {
    law: Bbr,
    now: Time,
    delivered: u32,
}

impl Flow {
    fn new() -> Self {
        Self { law: Bbr::new(&Params::default(), &FLOW), now: Time::from_secs(1), delivered: 0 }
    }

    /// An ack of as many packets as a round trip delivers at this rate, which left when `flight` were in flight.
    fn ack(&mut self, packets_per_s: f64, rtt: Time, flight: u32) {
        let newly = (packets_per_s * rtt.as_secs_f64()).round().max(1.0) as u32;
        let prior_delivered = self.delivered;
        self.now += rtt;
        self.delivered += newly;
        let rate = RateSample::of_flight(newly, prior_delivered, rtt);
        let stamp = Stamp::default();
        self.law.on_ack(&Ack {
            newly_acked: newly,
            delivered: self.delivered,
            rate: Some(rate),
            flight,
            ..Ack::of_one(self.now, rtt, &stamp)
        });
    }

    /// Round trips of the link alone until the law is in a state.
    fn until(&mut self, state: State) -> u32 {
        (0..1000)
            .find(|_| {
                self.law.state() == state || {
                    self.ack(RATE, RTT, 50);
                    false
                }
            })
            .expect("the state")
    }

    fn window(&self) -> f64 {
        self.law.cwnd() / PACKET
    }

    fn pace(&self) -> f64 {
        self.law.pacing().expect("a paced law").rate.bytes_per_sec() / PACKET
    }
}

#[test]
fn it_asks_for_rates_and_selective_acks() {
    let law = SenderSpec::Bbr(Params::default()).traits();
    let agreed = Agreed::between(&Transport::default(), &law);
    assert_eq!((agreed.recovery, agreed.delivery_rate), (Recovery::Sack, true));
}

/// Section 4.3.2.1: 2/ln(2), 2.885; section 4.3.3: Drain paces at its inverse, 0.347.
#[test]
fn gains_are_those_of_the_draft() {
    let mut flow = Flow::new();
    assert!((flow.law.pacing_gain() - 2.885).abs() < 5e-4);
    // Section 4.2.1: before any sample as if a round trip took a millisecond; the first sample's round trip then.
    assert!((flow.pace() - 2.885 * 10.0 / 1e-3).abs() < 5.0);
    flow.ack(250.0, RTT, 10);
    let pace = 2.885 * f64::max(250.0, 10.0 / 0.04);
    assert!((flow.pace() / pace - 1.0).abs() < 1e-3, "{}", flow.pace());
    while flow.law.state() != State::Drain {
        flow.ack(RATE, RTT, 200);
    }
    assert!((flow.law.pacing_gain() - 0.34657).abs() < 1e-5, "ln(2) / 2");
    assert!((flow.pace() / (0.34657 * RATE) - 1.0).abs() < 1e-4);
}

/// Section 4.3.2.2: the pipe is full when three round trips have not brought a quarter more.
#[test]
fn startup_ends_after_three_round_trips_without_a_quarter_more() {
    let mut flow = Flow::new();
    for rate in [100.0, 130.0, 170.0, 220.0, 280.0] {
        flow.ack(rate, Time::from_secs(1), 10);
        assert_eq!(flow.law.state(), State::Startup);
    }
    // 340 is 1.21 times 280, and so is not enough, and 345 and 349 are not either.
    for (rate, state) in [(340.0, State::Startup), (345.0, State::Startup), (349.0, State::Drain)] {
        flow.ack(rate, Time::from_secs(1), 2000);
        assert_eq!(flow.law.state(), state, "{rate}");
    }
}

/// Section 4.3.3: Drain is over when no more is in flight than the pipe holds.
#[test]
fn drain_ends_with_the_pipe_just_full() {
    let mut flow = Flow::new();
    while flow.law.state() != State::Drain {
        flow.ack(RATE, RTT, 200);
    }
    flow.ack(RATE, RTT, 120); // leaves 70 in flight
    assert_eq!(flow.law.state(), State::Drain);
    flow.ack(RATE, RTT, 102); // leaves 52: 50 of the pipe and 3 more
    assert_eq!(flow.law.state(), State::ProbeBw);
}

/// Section 4.3.4.3: 5/4, 3/4 and six times 1, a least round-trip time each; not begun with 3/4.
#[test]
fn the_cycle_has_eight_phases() {
    for start_ms in 0..20 {
        let mut flow = Flow::new();
        flow.now += Time::from_millis(start_ms);
        flow.until(State::ProbeBw);
        assert!(flow.law.pacing_gain() >= 1.0, "begun with 3/4");
        let mut gains = vec![];
        for _ in 0..80 {
            gains.push(flow.law.pacing_gain());
            // The phase of 5/4 lasts until 1.25 pipes are in flight; an ack a little later than RTprop ends each other.
            flow.now += Time::from_micros(1);
            flow.ack(RATE, RTT, 66);
        }
        let first = gains.iter().position(|g| *g == 1.25).expect("a probe");
        for cycle in gains[first..].chunks_exact(8) {
            assert_eq!(cycle, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "{start_ms}");
        }
        // Section 4.2.3.2 and 4.3.4: twice the pipe and three packets.
        assert!((flow.window() - 103.0).abs() < 1e-6, "{}", flow.window());
    }
}

/// Section 4.1.1: the largest of 10 round trips, and not of 11.
#[test]
fn the_rate_is_the_largest_of_ten_round_trips() {
    let mut filter = MaxOverRounds::new(10);
    filter.next_round();
    filter.add(100.0);
    for _ in 0..9 {
        filter.next_round();
        filter.add(50.0);
        assert_eq!(filter.max(), 100.0);
    }
    filter.next_round();
    filter.add(50.0);
    assert_eq!(filter.max(), 50.0);
    filter.add(70.0);
    filter.add(60.0);
    assert_eq!(filter.max(), 70.0);
}

/// Linux' `minmax_running_max` (lib/win_minmax.c) is called only for samples that count, and forgets only then: 200 ms of ProbeRTT at a round trip of
/// 8 ms are 25 round trips without one.
#[test]
fn the_largest_rate_ages_only_when_a_sample_enters() {
    let mut filter = MaxOverRounds::new(10);
    filter.add(100.0);
    for _ in 0..1000 {
        filter.next_round();
        assert_eq!(filter.max(), 100.0);
    }
    filter.add(90.0);
    assert_eq!(filter.max(), 90.0);
    // After nine more round trips, of which the last alone brings something, 90 is the tenth.
    (0..9).for_each(|_| filter.next_round());
    filter.add(10.0);
    assert_eq!(filter.max(), 90.0);
    filter.next_round();
    filter.add(20.0);
    assert_eq!(filter.max(), 20.0);
}

/// Section 4.1.2: the least of 10 s; a sample as small as it renews it.
#[test]
fn the_least_round_trip_time_lasts_ten_seconds() {
    let mut filter = MinRtt::new(None, Time::from_secs(10));
    let (at, ms) = (Time::from_secs, Time::from_millis);
    filter.add(at(1), ms(40));
    filter.add(at(8), ms(50));
    filter.add(at(9), ms(40));
    filter.add(at(19), ms(60));
    assert_eq!((filter.rtt, filter.expired), (ms(40), false));
    filter.add(Time::from_millis(19_001), ms(60));
    assert_eq!((filter.rtt, filter.expired), (ms(60), true));
}

/// Deviation 8: ten round trips of 6 s, unless a window is given.
#[test]
fn the_least_round_trip_time_lasts_ten_round_trips() {
    let at = Time::from_secs;
    for (given, expires) in [(None, 60), (Some(at(30)), 30)] {
        let mut filter = MinRtt::new(given, at(10));
        filter.add(at(100), at(6));
        filter.add(at(100 + expires), at(7));
        assert_eq!((filter.rtt, filter.expired), (at(6), false));
        filter.add(at(101 + expires), at(7));
        assert_eq!((filter.rtt, filter.expired), (at(7), true));
    }
}

/// Section 4.3.5: 4 packets for 200 ms and a round trip once the pipe has run down to that, then the window before it.
#[test]
fn probe_rtt_empties_the_pipe_for_200_ms() {
    let mut flow = Flow::new();
    flow.until(State::ProbeBw);
    (0..20).for_each(|_| flow.ack(RATE, RTT, 66));
    let before = flow.window();
    // The least is not seen for ten seconds.
    let longer = Time::from_millis(60);
    let waited = flow.now;
    while flow.law.state() == State::ProbeBw {
        flow.ack(RATE, longer, 90);
    }
    let after = (flow.now - waited).as_secs_f64();
    assert!((10.0..10.07).contains(&after), "{after}");
    assert_eq!((flow.law.state(), flow.window()), (State::ProbeRtt, 4.0));
    flow.ack(100.0, RTT, 8); // 4 are left
    let empty = flow.now;
    while flow.law.state() == State::ProbeRtt {
        assert_eq!(flow.window(), 4.0);
        flow.ack(100.0, RTT, 8);
    }
    let held = (flow.now - empty).as_secs_f64();
    assert!((0.2..0.245).contains(&held), "{held} s");
    assert_eq!((flow.law.state(), flow.law.rt_prop()), (State::ProbeBw, RTT));
    assert!(flow.window() >= before);
    // The rates of ProbeRTT are the law's own doing (section 4.3.5): they do not lower the estimate.
    assert!((flow.law.btl_bw() - RATE).abs() < 1e-9);
}

/// Section 4.2.3.4.
#[test]
fn a_loss_conserves_packets_and_leaves_the_window_that_was() {
    let mut flow = Flow::new();
    flow.until(State::ProbeBw);
    (0..20).for_each(|_| flow.ack(RATE, RTT, 66));
    let before = flow.window();
    flow.ack(RATE, RTT, 80); // 50 of these arrive, 30 are left
    flow.law.on_congestion(flow.now, Congestion::Loss { flight: 80 });
    assert_eq!(flow.window(), 80.0, "in flight and delivered: as many leave as arrive");
    flow.ack(RATE, RTT, 30); // not in recovery any more
    assert!((flow.window() - before).abs() < 1e-9);
    flow.law.on_congestion(flow.now, Congestion::Mark { flight: 80 });
    assert!((flow.window() - before).abs() < 1e-9, "version 1 knows no marks");
    flow.law.on_congestion(flow.now, Congestion::Timeout { flight: 80 });
    assert_eq!(flow.window(), 1.0);
    flow.ack(25.0, RTT, 1);
    assert_eq!(flow.window(), 4.0);
    (0..4).for_each(|_| flow.ack(RATE, RTT, 50));
    assert!((flow.window() - before).abs() < 1e-9, "what was in flight is repaired");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (params, name) in [
        (Params { high_gain: 0.5, ..Params::default() }, "high_gain"),
        (Params { cwnd_gain: f64::NAN, ..Params::default() }, "cwnd_gain"),
        (Params { probe_gain: 1.0, ..Params::default() }, "probe_gain"),
        (Params { bandwidth_rounds: 0, ..Params::default() }, "bandwidth_rounds"),
        (Params { min_window: 0.0, ..Params::default() }, "min_window"),
    ] {
        assert_eq!(Bbr::check(&params).expect_err(name).0, name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn window_and_pace_stay_finite(
        acks in prop::collection::vec(
            (1u32..50, 0u32..500, 1u64..2_000_000_000, prop::option::of(1u64..2_000_000_000), any::<[bool; 3]>(), 0u8..12),
            1..400,
        ),
    ) {
        let mut flow = Flow::new();
        let stamp = Stamp::default();
        let mut min_rtt = Time::MAX;
        for (newly, more, rtt_ns, interval_ns, [app_limited, in_recovery, window_limited], event) in acks {
            let rtt = Time::from_nanos(rtt_ns);
            min_rtt = min_rtt.min(rtt);
            flow.now += Time::from_nanos(rtt_ns / 7);
            let prior_delivered = flow.delivered.saturating_sub(more);
            flow.delivered += newly;
            let rate = interval_ns.map(|ns| {
                let delivered = flow.delivered - prior_delivered;
                RateSample { app_limited, ..RateSample::of_flight(delivered, prior_delivered, Time::from_nanos(ns)) }
            });
            flow.law.on_ack(&Ack {
                newly_acked: newly,
                delivered: flow.delivered,
                rate,
                min_rtt,
                flight: newly + more,
                in_recovery,
                window_limited,
                ..Ack::of_one(flow.now, rtt, &stamp)
            });
            match event {
                0 => flow.law.on_congestion(flow.now, Congestion::Loss { flight: newly + more }),
                1 => flow.law.on_congestion(flow.now, Congestion::Timeout { flight: newly + more }),
                2 => flow.law.on_congestion(flow.now, Congestion::Mark { flight: newly + more }),
                _ => {}
            }
            prop_assert!(flow.window().is_finite() && flow.window() >= 1.0, "{}", flow.window());
            prop_assert!(flow.pace().is_finite() && flow.pace() > 0.0, "{}", flow.pace());
        }
    }
}
