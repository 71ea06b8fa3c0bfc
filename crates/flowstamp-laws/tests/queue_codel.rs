//! CoDel: its decisions against a model that takes packets from a queue as the RFC's prose says, the instants of drops under
//! a constant overload against the control law by hand, and what must never happen.

use flowstamp_laws::queue::codel::{CoDel, Params};
use flowstamp_laws::queue::{Arrival, Departure, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::{Rate, Time};
use proptest::prelude::*;
use std::collections::VecDeque;

const PACKET: u32 = 1000;

fn view() -> QueueView {
    QueueView { limit: Limit::Packets(1_000_000), capacity: Rate::from_mbps(8.0), mean_packet_bytes: PACKET }
}

fn params(target_us: u64, interval_us: u64, ecn: bool) -> Params {
    Params { target: Some(Time::from_micros(target_us)), interval: Some(Time::from_micros(interval_us)), ecn }
}

/// A packet that leaves at `now` after `sojourn`, with `behind` packets after it.
fn leaving(now: Time, sojourn: Time, behind: u32) -> Departure {
    Departure {
        now,
        size: PACKET,
        flow: 1,
        sojourn,
        queue_bytes: u64::from(behind) * u64::from(PACKET),
        queue_packets: behind,
        ecn_capable: false,
        l4s: false,
    }
}

/// A packet in a queue: when it came, whether it can be marked.
type Queued = (Time, bool);

/// The result of one dequeue: dropped packets, and the sent packet with its mark.
#[derive(Debug, PartialEq)]
struct Look {
    dropped: u32,
    sent: Option<(Queued, bool)>,
}

/// A queue with the law as the caller of a router holds it: asked for a packet, it asks the law about one after the other.
fn look(law: &mut CoDel, queue: &mut VecDeque<Queued>, now: Time) -> Look {
    let mut dropped = 0;
    while let Some((since, ecn_capable)) = queue.pop_front() {
        let packet = Departure { ecn_capable, ..leaving(now, now.saturating_sub(since), queue.len() as u32) };
        match law.on_departure(&packet, || 0.5) {
            Verdict::Drop => dropped += 1,
            verdict => {
                let sent = Some(((since, ecn_capable), verdict == Verdict::Mark));
                return Look { dropped, sent };
            }
        }
    }
    Look { dropped, sent: None }
}

/// The RFC's description, in seconds and by whole looks at the queue.
struct Model {
    target: f64,
    interval: f64,
    ecn: bool,
    /// When the waiting time has been too long for an interval.
    due: Option<f64>,
    dropping: bool,
    next: f64,
    count: u32,
    first_count: u32,
}

impl Model {
    fn new(p: &Params) -> Self {
        let seconds = |t: Option<Time>| t.expect("given").as_secs_f64();
        Self {
            target: seconds(p.target),
            interval: seconds(p.interval),
            ecn: p.ecn,
            due: None,
            dropping: false,
            next: 0.0,
            count: 0,
            first_count: 0,
        }
    }

    /// The next packet, and whether the queue has been too long for an interval: "the sojourn time has remained above TARGET
    /// for INTERVAL", and more than a packet is left behind it.
    fn take(&mut self, queue: &mut VecDeque<Queued>, now: f64) -> (Option<Queued>, bool) {
        let Some(packet) = queue.pop_front() else {
            self.due = None;
            return (None, false);
        };
        let waited = now - packet.0.as_secs_f64();
        // Sums of picoseconds as seconds are off by far less than half of one.
        let long = waited > self.target - 5e-13 && queue.len() > 1;
        let too_long = match (long, self.due) {
            (true, Some(due)) => now > due - 5e-13,
            (true, None) => {
                self.due = Some(now + self.interval);
                false
            }
            (false, _) => {
                self.due = None;
                false
            }
        };
        (Some(packet), too_long)
    }

    fn step(&self) -> f64 {
        self.interval / f64::from(self.count).sqrt()
    }

    fn look(&mut self, queue: &mut VecDeque<Queued>, now: Time) -> Look {
        let now = now.as_secs_f64();
        let (mut packet, mut too_long) = self.take(queue, now);
        let mut dropped = 0;
        let mut marked = false;
        if !self.dropping && too_long {
            // The rate at which drops helped the last time, if that was not long ago.
            let rise = self.count - self.first_count.min(self.count);
            self.count = if rise > 1 && now - self.next < 16.0 * self.interval { rise } else { 1 };
            self.first_count = self.count;
            self.next = now + self.step();
            self.dropping = true;
            if self.ecn && packet.is_some_and(|p| p.1) {
                marked = true;
            } else {
                dropped += 1;
                packet = self.take(queue, now).0;
            }
        } else if self.dropping {
            self.dropping = too_long;
            while self.dropping && now > self.next - 5e-13 {
                self.count += 1;
                if self.ecn && packet.is_some_and(|p| p.1) {
                    self.next += self.step();
                    marked = true;
                    break;
                }
                dropped += 1;
                (packet, too_long) = self.take(queue, now);
                if too_long {
                    self.next += self.step();
                } else {
                    self.dropping = false;
                }
            }
        }
        Look { dropped, sent: packet.map(|p| (p, marked)) }
    }
}

/// The instants at which packets are dropped when the queue is looked at every `gap` and every packet has waited `sojourn`.
fn drops(law: &mut CoDel, from: Time, gap: Time, looks: u64, sojourn: Time) -> Vec<Time> {
    let mut at = Vec::new();
    for k in 0..looks {
        let now = from + gap * k;
        while law.on_departure(&leaving(now, sojourn, 50), || 0.5) == Verdict::Drop {
            at.push(now);
        }
    }
    at
}

#[test]
fn defaults_are_the_published_ones() {
    // RFC 8289, section 5.3: TARGET 5 ms, INTERVAL 100 ms.
    let times = CoDel::new(&Params::default(), &view()).times();
    assert_eq!(times, (Time::from_millis(5), Time::from_millis(100)));
    // Section 3.2: from 5% of the RTT on.
    let short = Params { interval: Some(Time::from_micros(30)), ..Params::default() };
    assert_eq!(CoDel::new(&short, &view()).times().0, Time::from_nanos(1500));
}

#[test]
fn under_a_constant_overload_drops_come_by_the_control_law() {
    // Interval 100 ms, looks every 100 us from 0: the first drop at 100 ms. By hand: the next ones 100 ms / sqrt(1),
    // / sqrt(2), / sqrt(3), ... later, each at the first look that is not before it.
    let mut law = CoDel::new(&params(5_000, 100_000, false), &view());
    let gap = Time::from_micros(100);
    let got = drops(&mut law, Time::ZERO, gap, 10_000, Time::from_millis(20));
    let mut expected = vec![Time::from_millis(100)];
    let mut ideal = 0.1;
    for n in 1.. {
        ideal += 0.1 / f64::from(n).sqrt();
        let look = (ideal / 1e-4 - 1e-6).ceil();
        if look >= 10_000.0 {
            break;
        }
        expected.push(gap * look as u64);
    }
    // 200, 270.8, 328.5, 378.5 ms ...: figures that anyone can check.
    assert_eq!(expected[1..4], [2000, 2708, 3285].map(|looks| gap * looks));
    assert_eq!(got, expected);
    assert!(got.len() > 20, "{}", got.len());
}

#[test]
fn a_burst_that_drains_within_an_interval_loses_nothing() {
    let mut law = CoDel::new(&params(5_000, 100_000, false), &view());
    // 99.9 ms above target, one packet below, and again: never a whole interval.
    for round in 0..20 {
        let from = Time::from_millis(100 * round);
        assert!(drops(&mut law, from, Time::from_micros(100), 999, Time::from_millis(50)).is_empty());
        let now = from + Time::from_micros(99_950);
        assert_eq!(law.on_departure(&leaving(now, Time::from_micros(4_999), 50), || 0.5), Verdict::Enqueue);
    }
}

#[test]
fn a_second_episode_starts_at_the_rate_that_the_first_one_reached() {
    let begin = |pause_ms: u64| {
        let mut law = CoDel::new(&params(5_000, 100_000, false), &view());
        let gap = Time::from_micros(100);
        let first = drops(&mut law, Time::ZERO, gap, 10_000, Time::from_millis(20)).len();
        // Below target once: the episode is over.
        let end = Time::from_secs(1);
        law.on_departure(&leaving(end, Time::ZERO, 50), || 0.5);
        let from = end + Time::from_millis(pause_ms);
        let second = drops(&mut law, from, gap, 2_500, Time::from_millis(20));
        assert_eq!(second[0], from + Time::from_millis(100));
        (first, second[1] - second[0])
    };
    // Soon after: count - lastcount = count - 1 of the first episode, so the second drop comes after 100 ms / sqrt of that.
    let (count, spacing) = begin(50);
    let expected = 0.1 / f64::from(count as u32 - 1).sqrt();
    assert!((spacing.as_secs_f64() - expected).abs() <= 1e-4, "{spacing} after {count}, expected {expected}");
    // 16 intervals and more after: from 1 again.
    assert_eq!(begin(1_700).1, Time::from_millis(100));
}

#[test]
fn packets_that_can_be_marked_are_not_lost() {
    let mut law = CoDel::new(&params(5_000, 100_000, true), &view());
    let (mut marks, mut verdicts) = (0u64, 0);
    for k in 0..10_000u64 {
        let packet = leaving(Time::from_micros(100 * k), Time::from_millis(20), 50);
        match law.on_departure(&Departure { ecn_capable: true, ..packet }, || 0.5) {
            Verdict::Drop => panic!("a packet that could be marked is lost"),
            Verdict::Mark => marks += 1,
            Verdict::Enqueue => {}
        }
        verdicts += 1;
    }
    // As many marks as there are drops without ECN: the same control law, give or take the look at which each comes.
    let mut other = CoDel::new(&params(5_000, 100_000, false), &view());
    let drops = drops(&mut other, Time::ZERO, Time::from_micros(100), verdicts, Time::from_millis(20)).len();
    assert!(marks.abs_diff(drops as u64) <= 1, "{marks} marks, {drops} drops");
}

#[test]
fn what_does_not_fit_is_lost_on_arrival() {
    let mut law = CoDel::new(&Params::default(), &QueueView { limit: Limit::Packets(3), ..view() });
    let arrival = |queue_packets, idle_since| Arrival {
        now: Time::ZERO,
        size: PACKET,
        flow: 1,
        label: None,
        queue_bytes: 0,
        queue_packets,
        ecn_capable: true,
        l4s: false,
        idle_since,
    };
    for (waiting, verdict) in [(0, Verdict::Enqueue), (2, Verdict::Enqueue), (3, Verdict::Drop)] {
        assert_eq!(law.on_arrival(&arrival(waiting, None), || 0.0), verdict);
    }
    assert_eq!(law.on_arrival(&arrival(3, Some(Time::ZERO)), || 0.0), Verdict::Enqueue);
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let name = |p: &Params| CoDel::check(p).expect_err("a refusal").0;
    assert_eq!(name(&params(0, 100, true)), "target");
    assert_eq!(name(&params(1, 0, true)), "interval");
    assert_eq!(name(&params(101, 100, true)), "target");
    assert_eq!(name(&Params { target: Some(Time::from_millis(101)), ..Params::default() }), "target");
    assert!(CoDel::check(&params(100, 100, true)).is_ok());
    assert!(CoDel::check(&Params::default()).is_ok());
}

proptest! {
    /// Random arrivals and looks: every decision is the model's.
    #[test]
    fn decisions_are_those_of_the_prose(
        target_us in 1u64..20_000,
        factor in 1u64..30,
        ecn: bool,
        steps in prop::collection::vec((1u64..400, 0u32..4, any::<bool>()), 50..1500),
        scale in 1u64..200,
    ) {
        let p = params(target_us, target_us * factor, ecn);
        let mut law = CoDel::new(&p, &view());
        let mut model = Model::new(&p);
        let (mut ours, mut theirs) = (VecDeque::new(), VecDeque::new());
        let mut now = Time::ZERO;
        for (n, (gap, arrivals, capable)) in steps.into_iter().enumerate() {
            now += Time::from_micros(gap * scale);
            for _ in 0..arrivals {
                ours.push_back((now, capable));
                theirs.push_back((now, capable));
            }
            // A little later, so that no look falls on the instant of an arrival.
            now += Time::from_nanos(137);
            let (a, b) = (look(&mut law, &mut ours, now), model.look(&mut theirs, now));
            prop_assert_eq!(a, b, "look {}", n);
        }
    }

    #[test]
    fn nothing_happens_below_target_or_with_at_most_a_packet_behind(
        target_us in 1u64..20_000,
        factor in 1u64..30,
        looks in prop::collection::vec((1u64..100_000, 0u64..2_000, 0u32..100), 1..500),
    ) {
        let mut law = CoDel::new(&params(target_us, target_us * factor, true), &view());
        let mut now = Time::ZERO;
        for (gap_us, share, behind) in looks {
            now += Time::from_micros(gap_us);
            let target = Time::from_micros(target_us);
            // Below target, or long but with at most one packet behind.
            let sojourn = target.scale(share as f64 / 1000.0);
            let behind = if sojourn < target { behind } else { behind % 2 };
            prop_assert_eq!(law.on_departure(&leaving(now, sojourn, behind), || 0.5), Verdict::Enqueue);
        }
    }

    /// When dropping begins, at most one packet in a row is lost at one instant. With the longest possible queue for
    /// the longest possible time, all numbers stay finite and the losses of an instant end.
    #[test]
    fn state_stays_finite(
        seeds in prop::collection::vec((0u64..u64::MAX / 4, 0u64..u64::MAX / 4, 0u32..u32::MAX, any::<bool>()), 1..200),
        interval_us in 1u64..1_000_000_000,
    ) {
        let mut law = CoDel::new(&params(1, interval_us, true), &view());
        let mut now = Time::ZERO;
        for (gap, sojourn, behind, ecn_capable) in seeds {
            now += Time::from_ps(gap / 64);
            let packet = Departure { ecn_capable, ..leaving(now, Time::from_ps(sojourn), behind) };
            law.on_departure(&packet, || 0.5);
            law.variables(&mut |name, value| assert!(value.is_finite() && value >= 0.0, "{name} {value}"));
        }
    }
}
