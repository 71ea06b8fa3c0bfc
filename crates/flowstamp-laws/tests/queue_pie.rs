//! PIE: its steps by hand and against Linux' arithmetic in integers, who is dropped, marked or protected, and what must never happen.

use flowstamp_laws::queue::pie::{Params, Pie};
use flowstamp_laws::queue::{Arrival, Departure, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::router::LinkView;
use flowstamp_laws::{Rate, Ratio, Time};
use proptest::prelude::*;

const PACKET: u32 = 1000;

fn law(params: Params) -> Pie {
    let limit = Limit::Packets(300);
    Pie::new(&params, &QueueView { limit, capacity: Rate::from_mbps(10.0), mean_packet_bytes: PACKET })
}

fn arrival(size: u32, queue_packets: u32, ecn_capable: bool) -> Arrival {
    Arrival {
        now: Time::ZERO,
        size,
        flow: 1,
        label: None,
        queue_bytes: u64::from(queue_packets * PACKET),
        queue_packets,
        ecn_capable,
        l4s: false,
        idle_since: None,
    }
}

/// A packet leaves after `delay`, and the timer fires with 100 packets waiting: `p`.
fn update(law: &mut Pie, delay: Time) -> f64 {
    let departure = Departure {
        now: Time::ZERO,
        size: PACKET,
        flow: 1,
        sojourn: delay,
        queue_bytes: 100_000,
        queue_packets: 100,
        ecn_capable: false,
        l4s: false,
    };
    assert_eq!(law.on_departure(&departure, || 0.0), Verdict::Enqueue);
    law.on_timer(LinkView { now: Time::ZERO, queue_bytes: 100_000, queue_packets: 100 });
    law.probability()
}

/// Nothing waits when the timer fires.
fn idle(law: &mut Pie) -> f64 {
    law.on_timer(LinkView { now: Time::ZERO, queue_bytes: 0, queue_packets: 0 });
    law.probability()
}

/// Verdict on a full packet that finds 100 waiting and would be dropped whatever the draw.
fn verdict(law: &mut Pie, ecn_capable: bool) -> Verdict {
    law.on_arrival(&arrival(PACKET, 100, ecn_capable), || 0.0)
}

/// A law whose `p` is at least `least` and stays: the delay is the target now, and was before.
fn resting(params: Params, least: f64) -> Pie {
    let mut law = law(params);
    // From 200 to 15 ms p falls by 1.25 * 0.185; it rose in steps of 0.02 at most.
    while update(&mut law, Time::from_millis(200)) < least + 0.23125 {}
    let p = update(&mut law, Time::from_millis(15));
    assert!((least - 1e-9..least + 0.021).contains(&p), "{p}");
    assert!((update(&mut law, Time::from_millis(15)) - p).abs() < 1e-15);
    law
}

#[test]
fn defaults_are_the_rfcs() {
    // RFC 8033, sections 4.1 (QDELAY_REF), 4.2 (T_UPDATE, alpha, beta), 4.4 (MAX_BURST) and 5.1 (mark_ecnth).
    let p = Params::default();
    assert_eq!((p.target, p.interval), (Time::from_millis(15), Time::from_millis(15)));
    assert_eq!(p.max_burst, Time::from_millis(150));
    assert_eq!((p.alpha, p.beta, p.mark_ecnth), (0.125, 1.25, Ratio::new(0.1)));
    let mut law = law(p);
    assert_eq!(law.first_timer(), Some(Time::from_millis(15)));
    let now = Time::from_secs(1);
    let next = law.on_timer(LinkView { now, queue_bytes: 0, queue_packets: 0 });
    assert_eq!(next, now + Time::from_millis(15));
}

#[test]
fn the_steps_are_the_equations() {
    let mut law = law(Params::default());
    // 60 ms: 0.125 * 0.045 + 1.25 * 0.060 = 0.080625, over 2048 as p is below 1e-6.
    let mut p = 0.080_625 / 2048.0;
    assert!((update(&mut law, Time::from_millis(60)) / p - 1.0).abs() < 1e-12);
    // 3.9e-5: over 128. The delay stays: 0.125 * 0.045.
    p += 0.005_625 / 128.0;
    assert!((update(&mut law, Time::from_millis(60)) / p - 1.0).abs() < 1e-12);
    // 140 ms: 0.125 * 0.125 + 1.25 * 0.080 = 0.115625, over 128 as p is 8.3e-5.
    p += 0.115_625 / 128.0;
    assert!((update(&mut law, Time::from_millis(140)) / p - 1.0).abs() < 1e-12);
    // 9.9e-4: over 32. 240 ms: 0.125 * 0.225 + 1.25 * 0.1.
    p += 0.153_125 / 32.0;
    assert!((update(&mut law, Time::from_millis(240)) / p - 1.0).abs() < 1e-12);
    // 5.8e-3: over 8; then 1.4e-2: over 2.
    p += 0.028_125 / 8.0;
    update(&mut law, Time::from_millis(240));
    p += (0.028_125 + 1.25 * 0.5) / 8.0 + 0.125 * 0.5 / 8.0;
    assert!((update(&mut law, Time::from_millis(740)) / p - 1.0).abs() < 1e-12);
    p += (0.125 * 0.725) / 2.0;
    assert!((update(&mut law, Time::from_millis(740)) / p - 1.0).abs() < 1e-12, "{p}");
    // Above 0.1 by 2 percentage points at most (section 5.5), and down by as much as it takes.
    assert!(p > 0.1);
    p += 0.02;
    assert!((update(&mut law, Time::from_millis(940)) / p - 1.0).abs() < 1e-12);
    p -= 1.25 * 0.1 - 0.125 * 0.825;
    assert!((update(&mut law, Time::from_millis(840)) / p - 1.0).abs() < 1e-12);
}

#[test]
fn p_decays_when_the_delay_is_gone() {
    let mut law = resting(Params::default(), 0.3);
    let p = law.probability();
    // - 0.125 * 0.015 - 1.25 * 0.015; from then on - 0.001875, and 0.98 of what is left (section 4.2).
    let p = p - 0.020_625;
    assert!((idle(&mut law) - p).abs() < 1e-12);
    let p = (p - 0.001_875) * 0.98;
    assert!((idle(&mut law) - p).abs() < 1e-12);
}

/// `pie_calculate_probability` of Linux' `sch_pie`, restated: probabilities in units of 2^-56, times in ticks of 64 ns, alpha and beta in
/// sixteenths. Its rules for 250 ms and for an empty queue are left out: they are not of RFC 8033, or not in its numbers.
struct Linux {
    p: i128,
    before: i128,
}

impl Linux {
    const ONE: i128 = (1 << 56) - 1;
    const TICKS_PER_S: i128 = 15_625_000;

    fn update(&mut self, ticks: i128) -> f64 {
        let (one, target) = (Self::ONE, Self::TICKS_PER_S * 15 / 1000);
        let unit = one / Self::TICKS_PER_S;
        let (mut alpha, mut beta) = ((2 * unit) >> 4, (20 * unit) >> 4);
        if self.p < one / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100;
            while self.p < one / power && power <= 1_000_000 {
                (alpha, beta, power) = (alpha >> 2, beta >> 2, power * 10);
            }
        }
        let mut delta = alpha * (ticks - target) + beta * (ticks - self.before);
        if delta > one / 50 && self.p >= one / 10 {
            delta = one / 100 * 2;
        }
        self.p = (self.p + delta).clamp(0, one);
        self.before = ticks;
        self.p as f64 / one as f64
    }
}

#[test]
fn the_trajectory_is_that_of_linux_integers() {
    let (mut ours, mut linux) = (law(Params::default()), Linux { p: 0, before: 0 });
    // A delay that walks up and down between a tick and 250 ms, now and then for long far up, so that p is of each order of magnitude.
    let (mut random, mut ticks) = (1_u64, 100_000_i128);
    let mut decades = [0; 8];
    for step in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let middle = match step / 60 % 40 {
            0 => 3_000_000,
            1..20 => 100_000,
            phase => [330_000, 150_000][phase % 2],
        };
        let draw = i128::from(random >> 33) % 400_000 - 200_000;
        ticks = (ticks + (middle - ticks) / 8 + draw / 4).clamp(1, 3_900_000);
        let theirs = linux.update(ticks);
        let p = update(&mut ours, Time::from_nanos(64 * ticks as u64));
        // Shifts of Linux' gains lose up to 2^-17 of a step, and p is a sum of steps up and down.
        assert!((p - theirs).abs() < 1e-4 * p + 1e-9, "step {step}: {p}, not {theirs}");
        decades[(-p.max(1e-8).log10()).floor().clamp(0.0, 7.0) as usize] += 1;
    }
    assert!(decades[..6].iter().all(|count| *count > 20), "{decades:?}");
}

#[test]
fn a_burst_of_150_ms_passes() {
    let mut law = law(Params::default());
    for _ in 0..10 {
        assert_eq!(verdict(&mut law, false), Verdict::Enqueue);
        assert!(law.burst_allowance() > Time::ZERO);
        update(&mut law, Time::from_millis(200));
    }
    // 10 updates of 15 ms are MAX_BURST. From then on p counts.
    assert_eq!(law.burst_allowance(), Time::ZERO);
    assert_eq!(verdict(&mut law, false), Verdict::Drop);
    // The allowance comes back when p is zero and the delay below half of the target twice (section 4.4).
    while update(&mut law, Time::from_millis(1)) > 0.0 {}
    assert_eq!(verdict(&mut law, false), Verdict::Enqueue);
    assert_eq!(law.burst_allowance(), Time::from_millis(150));
}

#[test]
fn short_queues_are_protected() {
    let mut law = resting(Params::default(), 0.15);
    // At most two packets wait (section 4.1).
    assert_eq!(law.on_arrival(&arrival(PACKET, 2, false), || 0.0), Verdict::Enqueue);
    assert_eq!(law.on_arrival(&arrival(PACKET, 3, false), || 0.0), Verdict::Drop);
    // The last delay was below half of the target, and p below 0.2.
    update(&mut law, Time::from_millis(7));
    assert!(law.probability() < 0.2 && law.probability() > 0.0);
    assert_eq!(verdict(&mut law, false), Verdict::Enqueue);
    let mut law = resting(Params::default(), 0.3);
    update(&mut law, Time::from_millis(7));
    assert!(law.probability() > 0.2);
    assert_eq!(verdict(&mut law, false), Verdict::Drop);
}

#[test]
fn marks_give_way_to_drops_at_mark_ecnth() {
    let mut low = resting(Params::default(), 0.05);
    assert!(low.probability() < 0.1);
    assert_eq!([true, false].map(|ecn| verdict(&mut low, ecn)), [Verdict::Mark, Verdict::Drop]);
    let mut high = resting(Params::default(), 0.15);
    assert!(high.probability() > 0.1);
    assert_eq!(verdict(&mut high, true), Verdict::Drop);
    let mut none = resting(Params { ecn: false, ..Params::default() }, 0.05);
    assert_eq!(verdict(&mut none, true), Verdict::Drop);
    let p = low.probability();
    let mut draw = |u: f64| low.on_arrival(&arrival(PACKET, 100, false), || u);
    assert_eq!([draw(p - 1e-9), draw(p + 1e-9)], [Verdict::Drop, Verdict::Enqueue]);
    // In byte mode a packet of half the size has half the probability.
    let mut bytes = resting(Params { bytemode: true, ..Params::default() }, 0.05);
    let p = bytes.probability();
    let mut draw = |u: f64| bytes.on_arrival(&arrival(PACKET / 2, 100, false), || u);
    assert_eq!([draw(0.49 * p), draw(0.51 * p)], [Verdict::Drop, Verdict::Enqueue]);
}

#[test]
fn derandomized_drops_keep_their_distance() {
    // Section 5.4: none before the probabilities add up to 0.85, one at 8.5 at the latest.
    let gap = |draw: f64| {
        let mut law = resting(Params { derandomize: true, ..Params::default() }, 0.05);
        let p = law.probability();
        let mut packets = || {
            (1..)
                .find(|_| law.on_arrival(&arrival(PACKET, 100, false), || draw) == Verdict::Drop)
                .unwrap_or(0)
        };
        ([packets(), packets()], p)
    };
    let (soonest, p) = gap(0.0);
    assert_eq!(soonest, [(0.85 / p).ceil() as u32; 2]);
    let (latest, p) = gap(1.0);
    assert_eq!(latest, [(8.5 / p).ceil() as u32; 2]);
}

#[test]
fn it_sleeps_until_a_third_of_the_buffer_is_in_use() {
    let mut law = law(Params { on_off: true, max_burst: Time::ZERO, ..Params::default() });
    let awake = |law: &mut Pie, waiting: u32| {
        law.on_arrival(&arrival(PACKET, waiting, false), || 0.0);
        update(law, Time::from_millis(200)) > 0.0
    };
    assert!(!awake(&mut law, 99));
    assert!(awake(&mut law, 100), "300 packets fit");
    assert_eq!(verdict(&mut law, false), Verdict::Drop);
    // With p and the delay at zero it falls asleep.
    while idle(&mut law) > 0.0 {}
    idle(&mut law);
    idle(&mut law);
    assert!(!awake(&mut law, 99));
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let name = |p: Params| Pie::check(&p).expect_err("a refusal").0;
    let default = Params::default();
    assert!(Pie::check(&default).is_ok());
    assert_eq!(name(Params { target: Time::ZERO, ..default }), "target");
    assert_eq!(name(Params { interval: Time::MAX, ..default }), "interval");
    assert_eq!(name(Params { max_burst: Time::MAX, ..default }), "max_burst");
    assert_eq!(name(Params { alpha: -1.0, ..default }), "alpha");
    assert_eq!(name(Params { beta: f64::NAN, ..default }), "beta");
    assert_eq!(name(Params { mark_ecnth: Ratio::new(1.5), ..default }), "mark_ecnth");
}

proptest! {
    #[test]
    fn p_stays_a_probability(
        delays_us in prop::collection::vec(0u64..2_000_000, 1..200),
        alpha in 0.0f64..10.0,
        beta in 0.0f64..100.0,
        cap_drop: bool,
        derandomize: bool,
        draw in 0.0f64..1.0,
    ) {
        let mut law = law(Params { alpha, beta, cap_drop, derandomize, ..Params::default() });
        for us in delays_us {
            let p = if us == 0 { idle(&mut law) } else { update(&mut law, Time::from_micros(us)) };
            prop_assert!((0.0..=1.0).contains(&p), "{}", p);
            prop_assert!(law.burst_allowance() <= Time::from_millis(150));
            // A packet that does not fit is lost. A packet that finds at most two packets is not.
            prop_assert_eq!(law.on_arrival(&arrival(PACKET, 300, true), || draw), Verdict::Drop);
            prop_assert_eq!(law.on_arrival(&arrival(PACKET, 2, true), || draw), Verdict::Enqueue);
        }
    }
}
