//! The numbers of each section, a round trip at a time. A flow on 10 Mb/s and 40 ms: a pipe of 50 packets.

use crate::path::{PACKET, RATE, RTT};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::sender::{Ack, Congestion, FlowView, LostPacket, RateSample, Recovery, SenderLaw};
use flowstamp_laws::tcp::Bbr3;
use flowstamp_laws::tcp::bbr::v3::{Params, State};
use flowstamp_laws::transport::{Agreed, Params as Transport};
use flowstamp_laws::{Ratio, Stamp, Time};
use proptest::prelude::*;
use std::collections::BTreeSet;

const FLOW: FlowView = FlowView { packet_bytes: PACKET, initial_window: 10.0, app_rate: None };

struct Flow {
    law: Bbr3,
    now: Time,
    delivered: u32,
    in_recovery: bool,
}

impl Flow {
    fn new() -> Self {
        Self::at(Time::from_secs(1))
    }

    fn at(now: Time) -> Self {
        Self { law: Bbr3::new(&Params::default(), &FLOW), now, delivered: 0, in_recovery: false }
    }

    /// An ack of all that was in flight a round trip ago, of which `left` packets follow.
    fn ack(&mut self, packets_per_s: f64, rtt: Time, left: u32) {
        self.ack_with(packets_per_s, rtt, left, |_| {});
    }

    fn ack_with(&mut self, packets_per_s: f64, rtt: Time, left: u32, change: impl FnOnce(&mut RateSample)) {
        let newly = (packets_per_s * rtt.as_secs_f64()).round().max(1.0) as u32;
        let prior_delivered = self.delivered;
        self.now += rtt;
        self.delivered += newly;
        let mut rate = RateSample::of_flight(newly, prior_delivered, rtt);
        change(&mut rate);
        let stamp = Stamp::default();
        self.law.on_ack(&Ack {
            newly_acked: newly,
            delivered: self.delivered,
            rate: Some(rate),
            flight: newly + left,
            in_recovery: self.in_recovery,
            ..Ack::of_one(self.now, rtt, &stamp)
        });
    }

    /// A packet that left with `tx_in_flight` in flight is found lost, as so many since it left.
    fn lose(&mut self, seq: u32, tx_in_flight: u32, lost: u32) {
        let delivered = self.delivered;
        let packet = LostPacket { seq, tx_in_flight, lost, delivered, app_limited: false, selective: true };
        self.law.on_congestion(self.now, Congestion::Packet(&packet));
    }

    /// Round trips of the link alone, with a full pipe after each, until the law is in a state.
    fn until(&mut self, state: State) {
        for _ in 0..1000 {
            if self.law.state() == state {
                return;
            }
            self.ack(RATE, RTT, 50);
        }
        panic!("never {state:?}");
    }

    fn window(&self) -> f64 {
        self.law.cwnd() / f64::from(PACKET)
    }

    fn pace(&self) -> f64 {
        self.law.pacing().expect("a paced law").rate.bytes_per_sec() / f64::from(PACKET)
    }
}

fn near(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() <= 1e-9 * wanted.abs()
}

#[test]
fn it_asks_for_rates_and_selective_acks() {
    let traits = SenderSpec::Bbr3(Params::default()).traits();
    let agreed = Agreed::between(&Transport::default(), &traits);
    assert_eq!((agreed.recovery, agreed.delivery_rate), (Recovery::Sack, true));
    assert!(!traits.ecn, "section 3.7 specifies no response");
}

/// The table of section 5.6.1, and the pace that is 1% less (section 5.6.2).
#[test]
fn gains_are_those_of_the_table() {
    let mut flow = Flow::new();
    assert_eq!(flow.law.gains(), (2.77, 2.0));
    // Section 5.6.2: before any sample as if a round trip took a millisecond; the first sample's round trip then.
    assert!(near(flow.pace(), 2.77 * 10.0 / 1e-3));
    flow.ack(250.0, RTT, 10);
    assert!(near(flow.pace(), 2.77 * 10.0 / 0.04), "2.77 99% 250 is less");
    flow.ack(400.0, RTT, 10);
    assert!(near(flow.pace(), 2.77 * 400.0 * 0.99));
    for (state, gains) in [
        (State::Drain, (0.5, 2.0)),
        (State::Down, (0.9, 2.0)),
        (State::Cruise, (1.0, 2.0)),
        (State::Refill, (1.0, 2.0)),
        (State::Up, (1.25, 2.25)),
        (State::Down, (0.9, 2.0)),
        (State::ProbeRtt, (1.0, 0.5)),
    ] {
        while flow.law.state() != state {
            flow.ack(RATE, RTT, if flow.law.state() == State::Startup { 100 } else { 50 });
        }
        assert_eq!(flow.law.gains(), gains, "{state:?}");
        assert!(near(flow.pace(), gains.0 * RATE * 0.99), "{state:?}: {}", flow.pace());
    }
}

/// Section 5.6.4.2: a gain times the pipe, what acks aggregate, and 2 packets more in Up. Here 50 packets come at once, which is
/// section 5.5.9's extra: 50 beyond the none that were due at that time.
#[test]
fn the_window_is_the_gain_times_the_pipe_and_what_acks_aggregate() {
    let mut flow = Flow::new();
    for (state, window) in [(State::Cruise, 2.0 * 50.0 + 50.0), (State::Up, 2.25 * 50.0 + 50.0 + 2.0)] {
        flow.until(state);
        (0..2).for_each(|_| flow.ack(RATE, RTT, 50));
        assert!(near(flow.law.extra_acked(), 50.0), "{}", flow.law.extra_acked());
        assert!(near(flow.window(), window), "{state:?}: {}", flow.window());
    }
}

/// Section 5.5.9: packets that come one by one, at the rate, are never more than one beyond what was due; a burst of 20 is, for 10
/// round trips.
#[test]
fn extra_acked_is_what_comes_beyond_the_rate() {
    let mut flow = Flow::new();
    flow.until(State::Cruise);
    let stamp = Stamp::default();
    let packets = |flow: &mut Flow, newly: u32, after: Time| {
        flow.now += after;
        let rate = RateSample::of_flight(50, (flow.delivered + newly).saturating_sub(50), RTT);
        flow.delivered += newly;
        flow.law.on_ack(&Ack {
            newly_acked: newly,
            delivered: flow.delivered,
            rate: Some(rate),
            flight: 50,
            ..Ack::of_one(flow.now, RTT, &stamp)
        });
    };
    let apart = Time::from_micros(800);
    // A silence ends what came beyond the rate before.
    flow.now += RTT * 3;
    (0..12 * 50).for_each(|_| packets(&mut flow, 1, apart));
    assert!(flow.law.extra_acked() <= 1.0 + 1e-6, "{}", flow.law.extra_acked());
    packets(&mut flow, 20, apart * 20);
    assert!((flow.law.extra_acked() - 20.0).abs() <= 1.0, "{}", flow.law.extra_acked());
    flow.now += RTT;
    (0..8 * 50).for_each(|_| packets(&mut flow, 1, apart));
    assert!((flow.law.extra_acked() - 20.0).abs() <= 1.0, "{}", flow.law.extra_acked());
    (0..4 * 50).for_each(|_| packets(&mut flow, 1, apart));
    assert!(flow.law.extra_acked() <= 1.0 + 1e-6, "{}", flow.law.extra_acked());
}

/// Section 5.3.1.2: 3400, 3450 and 3490 are less than a quarter more than 2800.
#[test]
fn startup_ends_after_three_round_trips_without_a_quarter_more() {
    let rtt = Time::from_millis(100);
    for limited in [false, true] {
        let mut flow = Flow::new();
        for rate in [1000.0, 1300.0, 1700.0, 2200.0, 2800.0] {
            flow.ack(rate, rtt, 10);
        }
        for rate in [3400.0, 3450.0] {
            flow.ack_with(rate, rtt, 2000, |sample| sample.app_limited = limited);
            assert_eq!(flow.law.state(), State::Startup);
        }
        flow.ack_with(3490.0, rtt, 2000, |sample| sample.app_limited = limited);
        // Application-limited samples have no consequences (appendix, "Never Exiting").
        assert_eq!(flow.law.state(), if limited { State::Startup } else { State::Drain });
    }
}

/// Section 5.3.1.3: 6 ranges and more than 2% of a flight of 100, in the round trip after the first was found.
#[test]
fn startup_ends_by_losses_in_six_ranges_above_two_percent() {
    let exits = |lost: &[u32], share: u32, recovering: bool| {
        let mut flow = Flow::new();
        flow.ack(250.0, RTT, 20);
        flow.ack(500.0, RTT, 100);
        lost.iter().enumerate().for_each(|(i, seq)| flow.lose(*seq, 100, i as u32 + 1));
        flow.ack_with(1000.0, RTT, 60, |sample| sample.prior_delivered = 0); // what left before that
        flow.law.on_congestion(flow.now, Congestion::Loss { flight: 100 });
        flow.in_recovery = recovering;
        flow.ack_with(1300.0, RTT, 60, |sample| (sample.tx_in_flight, sample.lost) = (100, share));
        (flow.law.state() == State::Drain).then(|| flow.law.inflight_longterm())
    };
    // The larger of the pipe and of what a round trip delivered: 1300/s for 40 ms are 52 packets, either way.
    assert_eq!(exits(&[10, 12, 14, 16, 18, 20], 3, true), Some(52.0));
    assert_eq!(exits(&[10, 12, 14, 16, 18, 20], 2, true), None, "2% is not above 2%");
    assert_eq!(exits(&[10, 11, 12, 14, 15, 16, 18, 20, 21, 22], 10, true), None, "four ranges");
    assert_eq!(exits(&[10, 12, 14, 16, 18, 20], 3, false), None, "repaired before the round trip was over");
}

/// Section 5.3.2: 50 packets fill the pipe; after more than three round trips Drain ends all the same.
#[test]
fn drain_ends_with_the_pipe_just_full_or_after_three_round_trips() {
    let drain = || {
        let mut flow = Flow::new();
        while flow.law.state() != State::Drain {
            flow.ack(RATE, RTT, 100);
        }
        flow
    };
    let mut flow = drain();
    flow.ack(RATE, RTT, 51);
    assert_eq!(flow.law.state(), State::Drain);
    flow.ack(RATE, RTT, 50);
    assert_eq!(flow.law.state(), State::Cruise, "by way of Down, which is over at once");
    let mut flow = drain();
    for _ in 0..3 {
        flow.ack(RATE, RTT, 100);
        assert_eq!(flow.law.state(), State::Drain);
    }
    flow.ack(RATE, RTT, 100);
    assert_eq!(flow.law.state(), State::Down);
}

/// Round trips and time from the beginning of Down, which is over at once, to the next probe, of flows that begin at 40 times.
fn waits(rate: f64, rtt: Time) -> Vec<(u32, f64)> {
    let pipe = (rate * rtt.as_secs_f64()) as u32;
    (0..40)
        .map(|start| {
            let mut flow = Flow::at(Time::from_millis(1000 + 7 * start));
            while flow.law.state() != State::Cruise {
                flow.ack(rate, rtt, pipe);
            }
            let (mut rounds, began) = (0, flow.now);
            while flow.law.state() != State::Refill {
                flow.ack(rate, rtt, pipe);
                rounds += 1;
            }
            (rounds, (flow.now - began).as_secs_f64())
        })
        .collect()
}

/// Section 5.3.3.8.2: as many round trips as the pipe holds packets, at most 62 or 63, or 2 s to 3 s.
#[test]
fn probes_come_as_often_as_reno_would_or_after_two_to_three_seconds() {
    let rounds = |rate, rtt| waits(rate, rtt).into_iter().map(|(rounds, _)| rounds).collect::<BTreeSet<_>>();
    assert_eq!(rounds(2000.0, Time::from_millis(10)), BTreeSet::from([19, 20]), "a pipe of 20 packets");
    assert_eq!(rounds(10_000.0, Time::from_millis(10)), BTreeSet::from([62, 63]), "a pipe of 100 packets");
    let seconds: Vec<f64> = waits(2500.0, Time::from_millis(50)).into_iter().map(|(_, s)| s).collect();
    // Found at the first ack after it, a round trip of 50 ms later at most.
    assert!(seconds.iter().all(|s| (2.0..=3.05).contains(s)), "{seconds:?}");
    // The chance that 40 uniform values in a second are all above or all below the middle is 2^-39.
    assert!(seconds.iter().any(|s| *s < 2.5) && seconds.iter().any(|s| *s > 2.55), "{seconds:?}");
}

/// Section 5.5.10.2. Above 2%: the second of a flight of 70, not the first. Packets in flight at that time: 69 and
/// (0.02 69 - 1) / 0.98 = 0.388 of the packet. Below 0.7 of the pipe, 35, a bound does not fall.
#[test]
fn a_lossy_probe_leaves_what_was_in_flight_or_seven_tenths_of_the_pipe() {
    for (tx_in_flight, bound) in [(70, 69.0 + 0.38 / 0.98), (30, 35.0)] {
        let mut flow = Flow::new();
        flow.until(State::Up);
        flow.lose(200, 70, 1);
        assert_eq!((flow.law.state(), flow.law.inflight_longterm()), (State::Up, f64::INFINITY));
        flow.lose(201, tx_in_flight, 2);
        assert_eq!(flow.law.state(), State::Down);
        assert!(near(flow.law.inflight_longterm(), bound), "{}", flow.law.inflight_longterm());
        // Once a probe.
        flow.lose(203, 20, 3);
        assert!(near(flow.law.inflight_longterm(), bound));
    }
    // Nothing follows for the long term from a loss while the flow does not probe.
    let mut flow = Flow::new();
    flow.until(State::Cruise);
    flow.lose(200, 50, 20);
    assert_eq!(flow.law.inflight_longterm(), f64::INFINITY);
}

/// Section 5.3.3.9: Down lasts until 85% of the bound, and no more than the pipe, are in flight; Cruise keeps the window there.
#[test]
fn headroom_is_left_to_others() {
    let mut flow = Flow::new();
    flow.until(State::Up);
    flow.lose(201, 30, 2);
    let bound = 35.0;
    assert!(near(flow.law.inflight_longterm(), bound));
    flow.ack_with(RATE, RTT, 30, |sample| sample.tx_in_flight = 30);
    assert_eq!((flow.law.state(), flow.window()), (State::Down, bound), "0.85 35 is 29.75");
    flow.ack_with(RATE, RTT, 29, |sample| sample.tx_in_flight = 30);
    assert_eq!(flow.law.state(), State::Cruise);
    assert!(near(flow.window(), 29.75), "{}", flow.window());
    // More was in flight and arrived: the bound is that much.
    flow.ack_with(RATE, RTT, 29, |sample| sample.tx_in_flight = 40);
    assert!(near(flow.law.inflight_longterm(), 40.0) && near(flow.window(), 34.0));
}

/// Section 5.3.3.9: in Up the bound grows by 1, 2, 4, ... packets a round trip while the window is at it and full. 60 are
/// acknowledged, then 61 of which 30 make one packet, then 63 and the one that is left of which 61/4 do.
#[test]
fn the_bound_grows_by_one_two_four_packets_a_round_trip() {
    let mut flow = Flow::new();
    flow.until(State::Refill);
    // A bound of 60: with 2 lost of 61 it is 60 + (1.2 - 1) / 0.98 at first, then what arrives.
    flow.until(State::Up);
    flow.lose(500, 57, 2);
    flow.ack_with(RATE, RTT, 45, |sample| sample.tx_in_flight = 60);
    assert_eq!(flow.law.inflight_longterm(), 60.0);
    // The next probe is a precaution: it ends as 60 are in flight; the one at once after it does not.
    let small = |sample: &mut RateSample| sample.tx_in_flight = 45;
    while flow.law.state() != State::Up {
        flow.ack_with(RATE, RTT, 45, small);
    }
    flow.ack_with(RATE, RTT, 60, small);
    assert_eq!(flow.law.state(), State::Down);
    flow.ack_with(RATE, RTT, 45, small);
    assert_eq!(flow.law.state(), State::Refill, "without a cruise between");
    flow.ack_with(RATE, RTT, 60, small);
    assert_eq!((flow.law.state(), flow.window()), (State::Up, 60.0));
    let mut grown = vec![];
    for _ in 0..3 {
        let (before, window) = (flow.law.inflight_longterm(), flow.window());
        flow.ack_with(window / RTT.as_secs_f64(), RTT, 60, |sample| {
            (sample.tx_in_flight, sample.window_full) = (45, true);
        });
        grown.push(flow.law.inflight_longterm() - before);
        assert_eq!(flow.law.state(), State::Up);
    }
    assert_eq!(grown, [1.0, 2.0, 4.0]);
    // A window that is not full leaves the bound.
    let before = flow.law.inflight_longterm();
    flow.ack_with(RATE, RTT, 60, small);
    assert_eq!(flow.law.inflight_longterm(), before);
}

/// Section 5.5.10.3: a round trip with a loss leaves 0.7 of each bound, or what it delivered if that is more; Refill forgets them.
#[test]
fn losses_in_cruise_bound_the_short_term_by_seven_tenths_a_round_trip() {
    let mut flow = Flow::new();
    flow.until(State::Cruise);
    (0..3).for_each(|_| flow.ack(RATE, RTT, 50));
    let window = flow.window();
    let mut bounds = vec![];
    for _ in 0..4 {
        flow.lose(502, 50, 1);
        flow.ack(600.0, RTT, 50);
        bounds.push(flow.law.shortterm());
    }
    // The first round trip still knows of 1250/s; then 0.7, 0.49, and the 600/s that are delivered. The window times
    // 0.7 as often.
    let wanted = [
        (RATE, 0.7 * window),
        (875.0, 0.49 * window),
        (612.5, 0.343 * window),
        (600.0, f64::max(24.0, 0.2401 * window)),
    ];
    for ((bw, inflight), (bw_wanted, inflight_wanted)) in bounds.iter().zip(wanted) {
        assert!(near(*bw, bw_wanted) && near(*inflight, inflight_wanted), "{bounds:?} {wanted:?}");
    }
    assert!(near(flow.law.bw(), 600.0) && near(flow.pace(), 594.0) && flow.law.max_bw() == RATE);
    assert!(near(flow.window(), wanted[3].1), "{}", flow.window());
    while flow.law.state() != State::Refill {
        flow.ack(600.0, RTT, 20);
    }
    assert_eq!(flow.law.shortterm(), (f64::INFINITY, f64::INFINITY));
    assert_eq!(flow.law.bw(), RATE);
}

/// Section 2.11: the rate of this cycle of probing and of the one before it, not of the third.
#[test]
fn the_rate_is_that_of_two_cycles() {
    let mut flow = Flow::new();
    flow.until(State::Cruise);
    let mut cycles = 0;
    while flow.law.max_bw() == RATE {
        let before = flow.law.state();
        flow.ack(900.0, RTT, 36);
        cycles += u32::from(before == State::Up && flow.law.state() == State::Down);
        assert!(cycles < 3, "the old rate stays");
    }
    // The filter moves on a round trip after each probe (section 5.5.6).
    assert_eq!((cycles, flow.law.max_bw()), (1, 900.0));
}

/// Section 5.3.4: 5 s after the least was last lower, half of the pipe, for 200 ms and a round trip; then Cruise.
#[test]
fn probe_rtt_halves_the_pipe_every_five_seconds() {
    let mut flow = Flow::new();
    let began = flow.now + RTT;
    flow.until(State::ProbeRtt);
    let after = (flow.now - began).as_secs_f64();
    assert!((5.0..5.0 + 0.041).contains(&after), "{after}");
    assert_eq!(flow.window(), 25.0);
    flow.ack(RATE, RTT, 26); // one too many
    flow.ack(26.0 / 0.04, RTT, 25);
    let low = flow.now;
    while flow.law.state() == State::ProbeRtt {
        assert_eq!(flow.window(), 25.0);
        flow.ack(25.0 / 0.04, RTT, 25);
    }
    let held = (flow.now - low).as_secs_f64();
    assert!((0.2..0.2 + 0.041).contains(&held), "{held}");
    assert_eq!(flow.law.state(), State::Cruise);
    // Deliveries in this time show the law's own limit, not a rate of the path.
    assert_eq!(flow.law.max_bw(), RATE);
    // And again 5 s after that.
    let left = flow.now;
    flow.until(State::ProbeRtt);
    let after = (flow.now - left).as_secs_f64();
    assert!((5.0..5.0 + 0.041).contains(&after), "{after}");
}

/// Section 5.4.1: idleness was an attempt to drain the queue; what leaves after it leaves at the rate, whatever the phase.
#[test]
fn a_flow_that_was_idle_does_not_probe_the_round_trip_time() {
    let mut flow = Flow::new();
    flow.until(State::Down);
    let stamp = Stamp::default();
    let (newly_acked, delivered) = (50, flow.delivered + 50);
    let rate = RateSample { app_limited: true, ..RateSample::of_flight(50, flow.delivered, RTT) };
    flow.now += RTT;
    flow.law.on_ack(&Ack {
        newly_acked,
        delivered,
        rate: Some(rate),
        flight: 50,
        window_limited: false,
        ..Ack::of_one(flow.now, RTT, &stamp)
    });
    flow.delivered = delivered;
    assert!(near(flow.pace(), RATE * 0.99), "all has arrived, and no more is there to send: {}", flow.pace());
    flow.now += Time::from_secs(6);
    let restarted = |restarted: bool| {
        let mut flow = Flow { law: flow.law.clone(), ..flow };
        flow.ack_with(RATE, RTT, 50, |sample| {
            (sample.restarted, sample.app_limited) = (restarted, true);
        });
        flow.law.state()
    };
    assert_ne!(restarted(true), State::ProbeRtt);
    assert_eq!(restarted(false), State::ProbeRtt);
}

/// Section 5.5.11.2: what a loss that was none had taken comes back, and the probe with it.
#[test]
fn a_loss_that_was_none_is_taken_back() {
    let mut flow = Flow::new();
    flow.until(State::Up);
    let window = flow.window();
    flow.lose(200, 30, 5);
    flow.ack(RATE, RTT, 25);
    assert_eq!(flow.law.state(), State::Cruise);
    assert!(flow.law.inflight_longterm() < 60.0 && flow.window() < window);
    flow.law.on_congestion(flow.now, Congestion::Spurious { delivered: flow.delivered });
    assert_eq!((flow.law.state(), flow.law.inflight_longterm()), (State::Refill, f64::INFINITY));
    assert!(flow.window() >= window);
    // Startup that ended by losses goes on.
    let mut flow = Flow::new();
    flow.ack(500.0, RTT, 100);
    [10, 12, 14, 16, 18, 20].into_iter().for_each(|seq| flow.lose(seq, 100, 3));
    flow.ack_with(1000.0, RTT, 60, |sample| sample.prior_delivered = 0);
    flow.in_recovery = true;
    flow.ack_with(RATE, RTT, 60, |sample| (sample.tx_in_flight, sample.lost) = (100, 6));
    assert_eq!(flow.law.state(), State::Drain);
    flow.law.on_congestion(flow.now, Congestion::Spurious { delivered: flow.delivered });
    assert_eq!((flow.law.state(), flow.law.inflight_longterm()), (State::Startup, f64::INFINITY));
}

/// Section 5.6.4.4: a packet after a timeout, four as soon as one is acknowledged; what was before when it is repaired.
#[test]
fn a_timeout_leaves_one_packet_until_it_is_repaired() {
    let mut flow = Flow::new();
    flow.until(State::Cruise);
    (0..3).for_each(|_| flow.ack(RATE, RTT, 50));
    let before = flow.window();
    flow.law.on_congestion(flow.now, Congestion::Timeout { flight: 50 });
    (0..50).for_each(|seq| flow.lose(1000 + seq, 50, seq + 1));
    assert_eq!(flow.window(), 1.0);
    flow.ack(25.0, RTT, 0);
    assert_eq!(flow.window(), 4.0);
    flow.ack(100.0, RTT, 0);
    assert_eq!(flow.window(), 8.0, "by what is delivered");
    while flow.law.state() != State::Refill {
        flow.ack(RATE, RTT, 0);
    }
    flow.ack(RATE, RTT, 0);
    assert!(flow.window() >= before, "{} {before}", flow.window());
}

/// Section 3.7 asks that a mark counts: in Cruise as a loss of its round trip, in Up as too much in flight.
#[test]
fn a_mark_is_congestion() {
    let mut flow = Flow::new();
    flow.until(State::Cruise);
    for _ in 0..2 {
        flow.law.on_congestion(flow.now, Congestion::Mark { flight: 50 });
        flow.ack(600.0, RTT, 50);
    }
    assert!(near(flow.law.shortterm().0, 875.0), "{:?}", flow.law.shortterm());
    flow.until(State::Up);
    flow.ack_with(RATE, RTT, 60, |sample| sample.tx_in_flight = 62);
    flow.law.on_congestion(flow.now, Congestion::Mark { flight: 60 });
    assert_eq!((flow.law.state(), flow.law.inflight_longterm()), (State::Down, 62.0));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let d = Params::default;
    for (params, name) in [
        (Params { startup_gain: 0.5, ..d() }, "startup_gain"),
        (Params { drain_gain: 0.0, ..d() }, "drain_gain"),
        (Params { probe_up_gain: f64::NAN, ..d() }, "probe_up_gain"),
        (Params { probe_down_gain: 1.5, ..d() }, "probe_down_gain"),
        (Params { cwnd_gain: f64::INFINITY, ..d() }, "cwnd_gain"),
        (Params { probe_up_cwnd_gain: 0.0, ..d() }, "probe_up_cwnd_gain"),
        (Params { probe_rtt_gain: 2.0, ..d() }, "probe_rtt_gain"),
        (Params { pacing_margin: Ratio::new(1.0), ..d() }, "pacing_margin"),
        (Params { loss_threshold: Ratio::new(1.0), ..d() }, "loss_threshold"),
        (Params { startup_losses: 0, ..d() }, "startup_losses"),
        (Params { beta: Ratio::new(0.0), ..d() }, "beta"),
        (Params { headroom: Ratio::new(1.0), ..d() }, "headroom"),
        (Params { reno_rounds: 1, ..d() }, "reno_rounds"),
        (Params { extra_acked_rounds: 33, ..d() }, "extra_acked_rounds"),
        (Params { min_window: 0.0, ..d() }, "min_window"),
    ] {
        assert_eq!(Bbr3::check(&params).expect_err(name).0, name);
    }
    assert!(Bbr3::check(&d()).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn window_and_pace_stay_finite(
        acks in prop::collection::vec(
            (
                (1u32..50, 0u32..500, 1u64..2_000_000_000, prop::option::of(1u64..2_000_000_000)),
                any::<[bool; 5]>(),
                (0u32..600, 0u32..600, 0u8..14),
            ),
            1..400,
        ),
    ) {
        let mut flow = Flow::new();
        let stamp = Stamp::default();
        let mut min_rtt = Time::MAX;
        let mut seen = BTreeSet::new();
        for ((newly, more, rtt_ns, interval_ns), flags, (tx_in_flight, lost, event)) in acks {
            let [app_limited, in_recovery, window_limited, window_full, restarted] = flags;
            let rtt = Time::from_nanos(rtt_ns);
            min_rtt = min_rtt.min(rtt);
            flow.now += Time::from_nanos(rtt_ns / 7);
            if event < 3 {
                (0..=event).for_each(|n| flow.lose(lost + 2 * u32::from(n), tx_in_flight, lost));
            }
            let prior_delivered = flow.delivered.saturating_sub(more);
            flow.delivered += newly;
            let rate = interval_ns.map(|ns| RateSample {
                tx_in_flight,
                lost,
                app_limited,
                window_full,
                restarted,
                ..RateSample::of_flight(flow.delivered - prior_delivered, prior_delivered, Time::from_nanos(ns))
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
                0..=3 => flow.law.on_congestion(flow.now, Congestion::Loss { flight: newly + more }),
                4 => flow.law.on_congestion(flow.now, Congestion::Timeout { flight: newly + more }),
                5 => flow.law.on_congestion(flow.now, Congestion::Mark { flight: newly + more }),
                6 => flow.law.on_congestion(flow.now, Congestion::Spurious { delivered: flow.delivered }),
                _ => {}
            }
            seen.insert(format!("{:?}", flow.law.state()));
            prop_assert!(flow.window().is_finite() && flow.window() >= 1.0, "{}", flow.window());
            prop_assert!(flow.pace().is_finite() && flow.pace() > 0.0, "{}", flow.pace());
            prop_assert!(flow.law.bw().is_finite() && flow.law.extra_acked() >= 0.0);
            // Bounds are set, or infinite; never below nothing.
            let (bw, inflight) = flow.law.shortterm();
            prop_assert!(bw >= 0.0 && inflight >= 0.0 && flow.law.inflight_longterm() >= 0.0);
        }
    }
}
