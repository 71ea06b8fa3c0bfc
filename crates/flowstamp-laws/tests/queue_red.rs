//! Drop-tail and RED: the average against its formula, the probabilities by counting, and what must never happen.

use flowstamp_laws::queue::droptail::{DropTail, Params as TailParams};
use flowstamp_laws::queue::red::{Mode, Params, Red};
use flowstamp_laws::queue::{Arrival, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::{Rate, Ratio, Time};
use proptest::prelude::*;

const PACKET: u32 = 1000;
/// 1000 packets per second.
const LINK: Rate = Rate::from_mbps(8.0);

fn view(packets: u32) -> QueueView {
    QueueView { limit: Limit::Packets(packets), capacity: LINK, mean_packet_bytes: PACKET }
}

fn arrival(queue_packets: u32) -> Arrival {
    Arrival {
        now: Time::ZERO,
        size: PACKET,
        flow: 1,
        label: None,
        queue_bytes: u64::from(queue_packets) * u64::from(PACKET),
        queue_packets,
        ecn_capable: true,
        l4s: false,
        idle_since: None,
    }
}

/// xorshift64*, uniform in [0, 1): seeded, so that a statistical test gives the same answer for ever.
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut x = seed;
    move || {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        (x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// RED with thresholds 30 and 60 packets of a buffer of 200, whose average is the queue itself.
fn instant() -> Params {
    Params {
        min_threshold: Ratio::new(0.15),
        max_threshold: Ratio::new(0.3),
        weight: 1.0,
        ..Params::default()
    }
}

/// The share of arrivals that are marked at a constant queue.
fn marked(params: &Params, queue: u32, size: u32, n: u32) -> f64 {
    let mut red = Red::new(params, &view(200));
    let mut draw = uniform(0x9E37_79B9_7F4A_7C15);
    let arrival = Arrival { size, ..arrival(queue) };
    let marks = (0..n).filter(|_| red.on_arrival(&arrival, &mut draw) == Verdict::Mark).count();
    marks as f64 / f64::from(n)
}

#[test]
fn droptail_drops_what_does_not_fit() {
    let mut queue = DropTail::new(&TailParams::default(), &view(3));
    for (waiting, verdict) in [(0, Verdict::Enqueue), (2, Verdict::Enqueue), (3, Verdict::Drop)] {
        assert_eq!(queue.on_arrival(&arrival(waiting), || 0.0), verdict);
    }
    let mut queue =
        DropTail::new(&TailParams::default(), &QueueView { limit: Limit::Bytes(2500), ..view(3) });
    assert_eq!(queue.on_arrival(&arrival(1), || 0.0), Verdict::Enqueue);
    assert_eq!(queue.on_arrival(&arrival(2), || 0.0), Verdict::Drop);
    assert_eq!(queue.on_arrival(&Arrival { size: 500, ..arrival(2) }, || 0.0), Verdict::Enqueue);
}

#[test]
fn defaults_are_the_published_ones() {
    let red = Red::new(&Params::default(), &view(150));
    let (min, max) = red.thresholds();
    assert!((min - 50.0).abs() < 1e-9 && (max - 100.0).abs() < 1e-9);
    assert_eq!(red.max_p(), 0.1);
    // In byte mode, and with the buffer in bytes, the same thresholds in bytes.
    let params = Params { mode: Mode::Bytes, ..Params::default() };
    let red = Red::new(&params, &QueueView { limit: Limit::Bytes(150_000), ..view(0) });
    assert!((red.thresholds().0 - 50_000.0).abs() < 1e-6 && (red.thresholds().1 - 100_000.0).abs() < 1e-6);
}

proptest! {
    /// avg_n = sum of w (1-w)^(n-k) q_k: the exponentially weighted sum in its closed form.
    #[test]
    fn the_average_is_the_weighted_sum(
        queues in prop::collection::vec(0u32..40, 1..200),
        weight in 0.001..1.0f64,
    ) {
        let mut red = Red::new(&Params { weight, ..Params::default() }, &view(200));
        for &q in &queues {
            red.on_arrival(&arrival(q), || 0.5);
        }
        let n = queues.len();
        let expected: f64 =
            queues.iter().enumerate().map(|(k, q)| weight * (1.0 - weight).powi((n - 1 - k) as i32) * f64::from(*q)).sum();
        prop_assert!((red.average() - expected).abs() < 1e-9 * (1.0 + expected), "{} {}", red.average(), expected);
    }

    #[test]
    fn nothing_is_lost_or_marked_below_the_lower_threshold(
        queues in prop::collection::vec(0u32..30, 1..300),
        weight in 0.001..=1.0f64,
        gentle: bool,
        wait: bool,
    ) {
        let params = Params { weight, gentle, wait, ..instant() };
        let mut red = Red::new(&params, &view(200));
        for q in queues {
            prop_assert_eq!(red.on_arrival(&arrival(q), || 0.0), Verdict::Enqueue);
        }
    }

    #[test]
    fn a_full_buffer_and_an_average_beyond_the_ceiling_lose_even_ecn_packets(
        queue in 0u32..300,
        gentle: bool,
        bytes: bool,
    ) {
        let mode = if bytes { Mode::Bytes } else { Mode::Packets };
        let mut red = Red::new(&Params { gentle, mode, ..instant() }, &view(200));
        red.on_arrival(&arrival(queue), || 0.999_999);
        let verdict = red.on_arrival(&arrival(queue), || 0.999_999);
        let ceiling = if gentle { 120 } else { 60 };
        prop_assert_eq!(verdict == Verdict::Drop, queue >= ceiling, "{:?}", verdict);
    }
}

#[test]
fn between_the_thresholds_the_probability_rises_linearly() {
    // With count spacing and p_b = 1/n gaps are uniform on 1..n, mean n / 2 (1993 section 4, where count is already 1
    // at the first arrival), and with ns-2's wait on n..2n, mean (3n - 1) / 2. 200,000 arrivals give over 2,500 gaps of
    // relative deviation below 0.58: 5% is over four standard deviations; the seed is fixed.
    for (queue, share) in [(36, 0.2), (45, 0.5), (54, 0.8)] {
        let n = 1.0 / (0.1 * share);
        let got = marked(&Params { wait: false, ..instant() }, queue, PACKET, 200_000);
        let expected = 2.0 / n;
        assert!((got / expected - 1.0).abs() < 0.05, "queue {queue}: {got}, expected {expected}");
        let got = marked(&instant(), queue, PACKET, 200_000);
        let expected = 2.0 / (3.0 * n - 1.0);
        assert!((got / expected - 1.0).abs() < 0.05, "wait, queue {queue}: {got}, expected {expected}");
    }
}

#[test]
fn marks_are_spaced_and_never_further_apart_than_promised() {
    for (wait, range) in [(false, 1..=19), (true, 20..=39)] {
        let mut red = Red::new(&Params { wait, ..instant() }, &view(200));
        let mut draw = uniform(7);
        let (mut gap, mut gaps) = (0, vec![]);
        for _ in 0..20_000 {
            gap += 1;
            // p_b = 0.1 * 15 / 30 = 1 / 20.
            if red.on_arrival(&arrival(45), &mut draw) == Verdict::Mark {
                gaps.push(gap);
                gap = 0;
            }
        }
        // The first gap counts the arrival that only crossed the threshold.
        assert!(gaps[1..].iter().all(|g| range.contains(g)), "{wait}: {:?}", gaps.iter().max());
        // Every value of the range comes up: uniform, not geometric.
        assert!(range.clone().all(|g| gaps.contains(&g)));
    }
}

#[test]
fn the_first_packet_that_finds_the_average_above_is_spared() {
    // A draw of 0 marks whatever can be marked (deviation 1).
    let mut red = Red::new(&Params { wait: false, ..instant() }, &view(200));
    let mut verdict = |queue| red.on_arrival(&arrival(queue), || 0.0);
    assert_eq!([verdict(45), verdict(45), verdict(45)], [Verdict::Enqueue, Verdict::Mark, Verdict::Mark]);
    assert_eq!([verdict(10), verdict(45), verdict(45)], [Verdict::Enqueue, Verdict::Enqueue, Verdict::Mark]);
}

#[test]
fn nothing_is_marked_while_fewer_than_two_wait() {
    let params = Params { wait: false, weight: 0.01, ..instant() };
    let mut red = Red::new(&params, &view(200));
    for _ in 0..500 {
        red.on_arrival(&arrival(50), || 1.0);
    }
    assert!(red.average() > 45.0);
    let mut verdict = |queue| red.on_arrival(&arrival(queue), || 0.0);
    assert_eq!([verdict(2), verdict(1), verdict(0)], [Verdict::Mark, Verdict::Enqueue, Verdict::Enqueue]);
}

#[test]
fn gentle_rises_to_one_at_twice_the_upper_threshold() {
    let probability = |gentle: bool, queue| {
        let mut red = Red::new(&Params { gentle, ..instant() }, &view(200));
        red.on_arrival(&arrival(queue), || 1.0);
        let mut p = f64::NAN;
        red.variables(&mut |name, value| {
            if name == "probability" {
                p = value;
            }
        });
        p
    };
    for (queue, gentle, harsh) in
        [(30, 0.0, 0.0), (45, 0.05, 0.05), (60, 0.1, 1.0), (90, 0.55, 1.0), (120, 1.0, 1.0)]
    {
        assert!((probability(true, queue) - gentle).abs() < 1e-12, "gentle {queue}");
        assert!((probability(false, queue) - harsh).abs() < 1e-12, "not gentle {queue}");
    }
}

#[test]
fn byte_mode_marks_in_proportion_to_size() {
    // Per arrival a half-size packet is marked half as often. Tolerance as above: 5%, fixed seed.
    let params = Params { mode: Mode::Bytes, wait: false, ..instant() };
    let full = marked(&params, 45, 1000, 400_000);
    let half = marked(&params, 45, 500, 400_000);
    // The average is in bytes, 45 packets of 1000 bytes in both.
    assert!((full / half - 2.0).abs() < 0.1, "{full} {half}");
    let packets = Params { mode: Mode::Packets, ..params };
    assert_eq!(marked(&packets, 45, 1000, 10_000), marked(&packets, 45, 500, 10_000));
}

/// p_b = 0.1 (q - 30) / 30: 0.05 at 45 packets, 0.067 at 50.
#[test]
fn above_mark_p_what_could_be_marked_is_dropped() {
    let of = |mark_p: f64, queue: u32| {
        let mut red = Red::new(&Params { mark_p: Ratio::new(mark_p), ..instant() }, &view(200));
        let mut draw = uniform(5);
        let verdicts: Vec<_> = (0..1000).map(|_| red.on_arrival(&arrival(queue), &mut draw)).collect();
        let count = |verdict| verdicts.iter().filter(|v| **v == verdict).count();
        (count(Verdict::Mark), count(Verdict::Drop))
    };
    let ((marks, none), (no_marks, drops)) = (of(0.06, 45), of(0.06, 50));
    assert!(marks > 0 && none == 0 && no_marks == 0 && drops > 0, "{marks} {none} {no_marks} {drops}");
    // The same packets as without the bound.
    assert_eq!((of(1.0, 45), of(1.0, 50)), ((marks, 0), (drops, 0)));
}

#[test]
fn packets_without_ecn_are_dropped_where_others_are_marked() {
    for (params, ecn_capable) in [(instant(), false), (Params { ecn: false, ..instant() }, true)] {
        let mut red = Red::new(&params, &view(200));
        let mut draw = uniform(3);
        let verdicts: Vec<_> =
            (0..1000).map(|_| red.on_arrival(&Arrival { ecn_capable, ..arrival(50) }, &mut draw)).collect();
        assert!(!verdicts.contains(&Verdict::Mark));
        assert!(verdicts.contains(&Verdict::Drop));
    }
}

#[test]
fn the_average_decays_while_the_link_idles() {
    let mut red = Red::new(&Params { weight: 0.01, ..Params::default() }, &view(200));
    for _ in 0..2000 {
        red.on_arrival(&arrival(40), || 0.5);
    }
    let before = red.average();
    let idle_since = Some(Time::from_secs(5));
    // 100 packet times of 1 ms, and the arrival itself finds an empty queue.
    let now = Time::from_secs(5) + Time::from_micros(100_500);
    red.on_arrival(&Arrival { now, idle_since, ..arrival(0) }, || 0.5);
    let expected = before * 0.99f64.powi(101);
    assert!((red.average() - expected).abs() < 1e-9, "{} {expected}", red.average());
    assert!(red.average() < 15.0);
}

#[test]
fn the_automatic_weight_follows_the_link() {
    let mut red = Red::new(&Params { weight: 0.0, ..Params::default() }, &view(200));
    red.on_arrival(&arrival(100), || 0.5);
    // 1 - exp(-1/1000), to second order.
    assert!((red.average() - 100.0 * (1e-3 - 0.5e-6)).abs() < 1e-7, "{}", red.average());
}

#[test]
fn a_target_delay_sets_the_thresholds() {
    let with = |ms| Params { target_delay: Some(Time::from_millis(ms)), ..Params::default() };
    assert_eq!(Red::new(&with(40), &view(200)).thresholds(), (20.0, 60.0));
    assert_eq!(Red::new(&with(1), &view(200)).thresholds(), (5.0, 15.0));
}

#[test]
fn adaptive_moves_max_p_towards_the_target_and_no_further_than_its_bounds() {
    let after = |queue, seconds: u64, adaptive| {
        let mut red = Red::new(&Params { adaptive, ..instant() }, &view(200));
        let mut draw = uniform(11);
        for ms in 1..=seconds * 1000 {
            red.on_arrival(&Arrival { now: Time::from_millis(ms), ..arrival(queue) }, &mut draw);
        }
        red.max_p()
    };
    // The target is the middle fifth of 30..60: 42 to 48.
    assert_eq!(after(45, 20, true), 0.1);
    assert_eq!(after(58, 20, false), 0.1);
    // One step in the first second and a bit: every 0.5 s and a packet, times 0.9 or plus 0.01.
    assert!((after(58, 1, true) - 0.11).abs() < 1e-12);
    assert!((after(32, 1, true) - 0.09).abs() < 1e-12);
    let (high, low) = (after(58, 60, true), after(32, 60, true));
    assert!((0.5..0.511).contains(&high), "{high}");
    assert!(low > 0.01 * 0.9 && low <= 0.01, "{low}");
}

#[test]
fn adaptive_holds_a_simulated_queue_near_its_target() {
    // A load of 1.06 from which each mark takes a packet: it settles where 6% are marked. A max_p of 0.02 cannot.
    let settle = |adaptive| {
        let max_p = Ratio::new(0.02);
        let mut red = Red::new(&Params { adaptive, max_p, weight: 0.01, ..instant() }, &view(200));
        let mut draw = uniform(5);
        let (mut queue, mut sum) = (0.0f64, 0.0);
        for ms in 0..100_000u64 {
            let a = Arrival { now: Time::from_millis(ms), ..arrival(queue as u32) };
            let taken = f64::from(u8::from(red.on_arrival(&a, &mut draw) != Verdict::Enqueue));
            queue = (queue + 0.06 - taken).clamp(0.0, 190.0);
            if ms >= 50_000 {
                sum += red.average() / 50_000.0;
            }
        }
        (sum, red.max_p())
    };
    let ((fixed, _), (adaptive, max_p)) = (settle(false), settle(true));
    assert!((42.0..=48.0).contains(&adaptive), "adaptive {adaptive} (max_p {max_p}), fixed {fixed}");
    assert!(max_p > 0.04, "{max_p}");
    assert!(fixed > 55.0, "fixed {fixed}");
}

/// The effect of a step depends only on the queue: Alizadeh 2010, section 3.1.
#[test]
fn a_step_marks_what_finds_more_than_k_packets_and_nothing_else() {
    let mut red = Red::new(&Params { step: Some(20), ..Params::default() }, &view(50));
    let mut none = || panic!("a step draws no number");
    // Down and up, so that an average would show.
    for queue in (0..=49).rev().chain(0..=49) {
        let wanted = if queue > 20 { Verdict::Mark } else { Verdict::Enqueue };
        assert_eq!(red.on_arrival(&arrival(queue), &mut none), wanted, "{queue}");
        let deaf = Arrival { ecn_capable: false, ..arrival(queue) };
        let wanted = if queue > 20 { Verdict::Drop } else { Verdict::Enqueue };
        assert_eq!(red.on_arrival(&deaf, &mut none), wanted, "{queue}");
    }
    assert_eq!(red.on_arrival(&arrival(50), &mut none), Verdict::Drop);
    let mut all = Red::new(&Params { step: Some(0), ..Params::default() }, &view(50));
    let idle = Arrival { idle_since: Some(Time::ZERO), ..arrival(0) };
    assert_eq!(all.on_arrival(&idle, &mut none), Verdict::Enqueue);
    assert_eq!(all.on_arrival(&arrival(1), &mut none), Verdict::Mark);
}

/// If the step drops nothing, packets that cannot be marked queue until the buffer is full.
#[test]
fn a_step_that_drops_nothing_leaves_the_buffer() {
    let params = Params { step: Some(20), step_drops: false, ..Params::default() };
    let mut red = Red::new(&params, &view(50));
    let mut none = || panic!("a step draws no number");
    for (queue, ecn_capable, expected) in [
        (20, false, Verdict::Enqueue),
        (21, false, Verdict::Enqueue),
        (21, true, Verdict::Mark),
        (50, false, Verdict::Drop),
        (50, true, Verdict::Drop),
    ] {
        let verdict = red.on_arrival(&Arrival { ecn_capable, ..arrival(queue) }, &mut none);
        assert_eq!(verdict, expected, "{queue} waiting, {ecn_capable}");
    }
}

#[test]
fn a_step_beside_what_it_does_away_with_is_refused() {
    let step = Params { step: Some(20), ..Params::default() };
    assert!(Red::check(&step).is_ok());
    for (other, params) in [
        ("adaptive", Params { adaptive: true, ..step }),
        ("target_delay", Params { target_delay: Some(Time::from_millis(5)), ..step }),
        ("bytes", Params { mode: Mode::Bytes, ..step }),
    ] {
        let (key, why) = Red::check(&params).expect_err(other);
        assert!(key == "step" && why.contains(other), "{why}");
    }
}
