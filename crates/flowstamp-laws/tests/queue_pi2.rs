//! PI2 and DualPI2: the controller's steps by hand, the square and the coupling by the draws that they mark, overload, the L4S queue's
//! ramp, and what must never happen.

use flowstamp_laws::queue::dualpi2::{self, DualPi2};
use flowstamp_laws::queue::pi2::{self, Pi2};
use flowstamp_laws::queue::{Arrival, Departure, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::router::LinkView;
use flowstamp_laws::{Rate, Ratio, Time};
use proptest::prelude::*;

const PACKET: u32 = 1000;

/// 10 Mb/s: 1250 bytes in a millisecond.
fn view() -> QueueView {
    QueueView { limit: Limit::Packets(500), capacity: Rate::from_mbps(10.0), mean_packet_bytes: PACKET }
}

fn arrival(queue_packets: u32, ecn_capable: bool, l4s: bool) -> Arrival {
    Arrival {
        now: Time::ZERO,
        size: PACKET,
        flow: 1,
        label: None,
        queue_bytes: u64::from(queue_packets * PACKET),
        queue_packets,
        ecn_capable,
        l4s,
        idle_since: None,
    }
}

fn departure(sojourn: Time, behind: u32, ecn_capable: bool, l4s: bool) -> Departure {
    Departure {
        now: Time::ZERO,
        size: PACKET,
        flow: 1,
        sojourn,
        queue_bytes: u64::from(behind * PACKET),
        queue_packets: behind,
        ecn_capable,
        l4s,
    }
}

fn backlog(queue_bytes: u64) -> LinkView {
    LinkView { now: Time::ZERO, queue_bytes, queue_packets: (queue_bytes / 1000) as u32 }
}

/// PI2 whose p' is `p`: one update of a controller that adds what it sees.
fn with_probability(p: f64) -> Pi2 {
    let params = pi2::Params {
        target: Some(Time::from_micros(1)),
        alpha: Some(0.0),
        beta: Some(1.0),
        ..pi2::Params::default()
    };
    let mut law = Pi2::new(&params, &view());
    law.on_timer(backlog((p * 1.25e6).round() as u64));
    assert!((law.controller().probability() - p).abs() < 1e-6);
    law
}

#[test]
fn defaults_are_the_published_ones() {
    // Linux' sch_dualpi2: 15 ms, 16 ms, 41/256 = 0.16 Hz and 819/256 = 3.2 Hz.
    let (target, interval, alpha, beta) = Pi2::new(&pi2::Params::default(), &view()).controller().constants();
    assert_eq!(interval, Time::from_millis(16));
    assert!((target - 0.015).abs() < 1e-12 && (alpha - 0.16).abs() < 1e-12 && (beta - 3.2).abs() < 1e-12);
    // A tenth of the round trip: a tenth of the times, ten times the gains.
    let short = pi2::Params { max_rtt: Some(Time::from_millis(10)), ..pi2::Params::default() };
    let (target, interval, alpha, beta) = Pi2::new(&short, &view()).controller().constants();
    assert_eq!(interval, Time::from_micros(1600));
    assert!((target - 0.0015).abs() < 1e-12 && (alpha - 1.6).abs() < 1e-12 && (beta - 32.0).abs() < 1e-12);
}

#[test]
fn the_controllers_steps_are_the_equations() {
    let mut law = Pi2::new(&pi2::Params::default(), &view());
    let mut after = |queue_bytes: u64| {
        let next = law.on_timer(backlog(queue_bytes));
        assert_eq!(next, Time::from_millis(16));
        law.controller().probability()
    };
    // 40 ms: 0.16 (0.040 - 0.015) + 3.2 (0.040 - 0) = 0.132.
    assert!((after(50_000) - 0.132).abs() < 1e-12);
    // 20 ms: + 0.16 * 0.005 - 3.2 * 0.020 = 0.0688.
    assert!((after(25_000) - 0.0688).abs() < 1e-12);
    // Nothing waits: - 0.16 * 0.015 - 3.2 * 0.020 = 0.0024; and again, where it ends at zero: - 0.0024.
    assert!((after(0) - 0.0024).abs() < 1e-12);
    assert!(after(0).abs() < 1e-12);
    // At half of the rate the same bytes wait twice as long: 0.16 (0.080 - 0.015) + 3.2 * 0.080 = 0.2664.
    law.set_capacity(Rate::from_mbps(5.0));
    law.on_timer(backlog(50_000));
    assert!((law.controller().probability() - 0.2664).abs() < 1e-12);
}

#[test]
fn classic_flows_see_the_square_and_l4s_flows_twice_the_root() {
    let mut law = with_probability(0.3);
    let verdict =
        |law: &mut Pi2, ecn: bool, l4s: bool, draw: f64| law.on_arrival(&arrival(9, ecn, l4s), || draw);
    // 0.3^2 = 0.09, and 2 * 0.3 = 0.6.
    assert_eq!(verdict(&mut law, true, false, 0.0899), Verdict::Mark);
    assert_eq!(verdict(&mut law, true, false, 0.0901), Verdict::Enqueue);
    assert_eq!(verdict(&mut law, false, false, 0.0899), Verdict::Drop);
    assert_eq!(verdict(&mut law, true, true, 0.5999), Verdict::Mark);
    assert_eq!(verdict(&mut law, true, true, 0.6001), Verdict::Enqueue);
    // With less than two packets waiting nothing happens; a full buffer drops.
    assert_eq!(law.on_arrival(&arrival(1, true, true), || 0.0), Verdict::Enqueue);
    assert_eq!(law.on_arrival(&arrival(500, true, true), || 0.99), Verdict::Drop);
}

#[test]
fn in_an_overload_marks_give_way_to_drops() {
    // k p' = 1.2: p_C = 0.36 is above p_Cmax = 1/k^2 = 0.25.
    let mut law = with_probability(0.6);
    let verdict = |law: &mut Pi2, l4s: bool, draw: f64| law.on_arrival(&arrival(9, true, l4s), || draw);
    assert_eq!(verdict(&mut law, false, 0.359), Verdict::Drop);
    assert_eq!(verdict(&mut law, false, 0.361), Verdict::Enqueue);
    assert_eq!(verdict(&mut law, true, 0.359), Verdict::Drop);
    assert_eq!(verdict(&mut law, true, 0.361), Verdict::Mark);
}

#[test]
fn the_l4s_queue_marks_by_its_ramp_or_its_step() {
    let law = DualPi2::new(&dualpi2::Params::default(), &view());
    // RFC 9332, appendix A.1: from 0.8 to 1.2 ms.
    for (us, expected) in
        [(0, 0.0), (800, 0.0), (900, 0.25), (1000, 0.5), (1100, 0.75), (1200, 1.0), (9000, 1.0)]
    {
        let p = law.native(Time::from_micros(us));
        assert!((p - expected).abs() < 1e-9, "{us} us: {p}");
    }
    let step = dualpi2::Params { ramp: Ratio::new(0.0), ..dualpi2::Params::default() };
    let law = DualPi2::new(&step, &view());
    assert!(law.native(Time::from_micros(1000)) == 0.0 && law.native(Time::from_micros(1001)) == 1.0);
}

/// The law after `l4s` and `classic` packets have joined, of which one of each that has waited so long has left, and the timer fired.
fn coupled(classic_ms: u64, l4s: u32, classic: u32) -> DualPi2 {
    let mut law = DualPi2::new(&dualpi2::Params::default(), &view());
    for n in 0..l4s + classic {
        assert_eq!(law.on_arrival(&arrival(n, true, n < l4s), || 0.0), Verdict::Enqueue);
    }
    law.on_departure(&departure(Time::from_millis(classic_ms), l4s + classic - 1, true, false), || 0.99);
    law.on_timer(backlog(0));
    law
}

#[test]
fn the_queues_are_coupled() {
    // The classic queue's delay is 45 ms: p' = 0.16 * 0.030 + 3.2 * 0.045 = 0.1488; p_C = 0.02214, k p' = 0.2976.
    let mut law = coupled(45, 10, 10);
    assert!((law.controller().probability() - 0.1488).abs() < 1e-12, "{}", law.controller().probability());
    let mut leaves = |sojourn_us: u64, l4s: bool, draw: f64| {
        law.on_departure(&departure(Time::from_micros(sojourn_us), 9, true, l4s), || draw)
    };
    assert_eq!(leaves(45_000, false, 0.0221), Verdict::Mark);
    assert_eq!(leaves(45_000, false, 0.0222), Verdict::Enqueue);
    assert_eq!(leaves(100, true, 0.297), Verdict::Mark);
    assert_eq!(leaves(100, true, 0.298), Verdict::Enqueue);
    // Its own ramp's 1/2 is more.
    assert_eq!(leaves(1000, true, 0.499), Verdict::Mark);
    assert_eq!(leaves(1000, true, 0.501), Verdict::Enqueue);
}

#[test]
fn an_l4s_packet_behind_which_none_waits_is_not_marked_by_its_own_queue() {
    let mut law = DualPi2::new(&dualpi2::Params::default(), &view());
    let mut leaves = |joined: u32| {
        (0..joined)
            .for_each(|n| assert_eq!(law.on_arrival(&arrival(n, true, true), || 0.0), Verdict::Enqueue));
        let first = law.on_departure(&departure(Time::from_millis(5), 1, true, true), || 0.5);
        (1..joined).for_each(|_| {
            law.on_departure(&departure(Time::ZERO, 0, true, true), || 0.5);
        });
        first
    };
    assert_eq!((leaves(1), leaves(2)), (Verdict::Enqueue, Verdict::Mark));
}

#[test]
fn the_weights_are_those_asked_for() {
    let share = dualpi2::Params { classic_share: Ratio::new(0.25), ..dualpi2::Params::default() };
    assert_eq!(DualPi2::two_queues(&share), Some([0.75, 0.25]));
    assert_eq!(Pi2::two_queues(&pi2::Params::default()), None);
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let name = |p: &pi2::Params| Pi2::check(p).expect_err("a refusal").0;
    let default = pi2::Params::default();
    assert!(Pi2::check(&default).is_ok());
    assert_eq!(name(&pi2::Params { max_rtt: Some(Time::ZERO), ..default }), "max_rtt");
    assert_eq!(name(&pi2::Params { target: Some(Time::MAX), ..default }), "target");
    assert_eq!(name(&pi2::Params { interval: Some(Time::ZERO), ..default }), "interval");
    assert_eq!(name(&pi2::Params { alpha: Some(-1.0), ..default }), "alpha");
    assert_eq!(name(&pi2::Params { beta: Some(f64::NAN), ..default }), "beta");
    assert_eq!(name(&pi2::Params { coupling: 0.0, ..default }), "coupling");
    let name = |p: &dualpi2::Params| DualPi2::check(p).expect_err("a refusal").0;
    let default = dualpi2::Params::default();
    assert!(DualPi2::check(&default).is_ok());
    assert_eq!(name(&dualpi2::Params { threshold: Some(Time::ZERO), ..default }), "threshold");
    assert_eq!(name(&dualpi2::Params { ramp: Ratio::new(2.1), ..default }), "ramp");
    assert_eq!(name(&dualpi2::Params { classic_share: Ratio::new(1.0), ..default }), "classic_share");
    assert_eq!(name(&dualpi2::Params { max_rtt: Some(Time::ZERO), ..default }), "max_rtt");
}

proptest! {
    /// With any queue, p' is a probability and all reported values are numbers.
    #[test]
    fn state_stays_finite(
        alpha in 0.0f64..1e9,
        beta in 0.0f64..1e9,
        steps in prop::collection::vec((0u64..u64::MAX / 4, 0.0f64..1e14, 0u64..u64::MAX / 4, any::<bool>()), 1..100),
    ) {
        let params = pi2::Params { alpha: Some(alpha), beta: Some(beta), ..pi2::Params::default() };
        let mut one = Pi2::new(&params, &view());
        let params = dualpi2::Params { alpha: Some(alpha), beta: Some(beta), ..dualpi2::Params::default() };
        let mut two = DualPi2::new(&params, &view());
        for (queue_bytes, bps, sojourn, l4s) in steps {
            one.set_capacity(Rate::from_bps(bps));
            one.on_timer(backlog(queue_bytes));
            two.on_arrival(&arrival(3, true, l4s), || 0.5);
            two.on_timer(backlog(queue_bytes));
            two.on_departure(&departure(Time::from_ps(sojourn), 3, true, l4s), || 0.5);
            for p in [one.controller().probability(), two.controller().probability()] {
                prop_assert!((0.0..=1.0).contains(&p), "{}", p);
            }
            one.variables(&mut |name, value| assert!(value.is_finite() && value >= 0.0, "{name} {value}"));
            two.variables(&mut |name, value| assert!(value.is_finite() && value >= 0.0, "{name} {value}"));
        }
    }
}
