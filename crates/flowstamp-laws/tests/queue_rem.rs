//! REM: its price against the paper's arithmetic, the marking probability by counting and over a path, where it rests, and what must
//! never happen.

use flowstamp_laws::queue::rem::{Params, Rem};
use flowstamp_laws::queue::{Arrival, Limit, QueueLaw, QueueView, Verdict};
use flowstamp_laws::router::LinkView;
use flowstamp_laws::{Rate, Time};
use proptest::prelude::*;

const PACKET: u32 = 1000;

/// 1000 packets per second, so that 10 packet times are 10 ms; b* is 10 packets.
fn view() -> QueueView {
    QueueView { limit: Limit::Packets(30), capacity: Rate::from_mbps(8.0), mean_packet_bytes: PACKET }
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

/// The end of an interval in which `packets` arrived and at whose end `waiting` wait.
fn interval(law: &mut Rem, packets: u32, waiting: u64) {
    for _ in 0..packets {
        law.on_arrival(&arrival(1), || 0.999_999);
    }
    let queue_bytes = waiting * u64::from(PACKET);
    law.on_timer(LinkView { now: Time::ZERO, queue_bytes, queue_packets: waiting as u32 });
}

#[test]
fn the_price_is_the_papers() {
    let mut law = Rem::new(&Params::default(), &view());
    assert_eq!(law.first_timer(), Some(Time::from_millis(10)));
    // By hand: 0.001 (0.1 (40 - 10) + 15 - 10) = 0.008; 1 - 1.001^-0.008 = 7.99597e-6.
    interval(&mut law, 15, 40);
    assert!((law.price() - 0.008).abs() < 1e-15, "{}", law.price());
    assert!((law.probability() - 7.995_97e-6).abs() < 1e-11, "{}", law.probability());
    // + 0.001 (0.1 (10 - 10) + 12 - 10) = 0.010.
    interval(&mut law, 12, 10);
    assert!((law.price() - 0.010).abs() < 1e-15, "{}", law.price());
    // + 0.001 (0.1 (0 - 10) + 0 - 10) = -0.001: no price is below zero.
    interval(&mut law, 0, 0);
    assert_eq!((law.price(), law.probability()), (0.0, 0.0));
}

#[test]
fn a_mark_means_the_price_and_a_path_the_sum_of_prices() {
    // 10 packets at each interval, which the link can send, and b - b* = 1000 adds 0.1 each time.
    let with_price = |intervals: u32| {
        let mut law = Rem::new(&Params::default(), &view());
        (0..intervals).for_each(|_| interval(&mut law, 10, 1010));
        law
    };
    let (mut one, other) = (with_price(3000), with_price(5000));
    assert!((one.price() - 300.0).abs() < 1e-6 && (other.price() - 500.0).abs() < 1e-6);
    let path = 1.0 - (1.0 - one.probability()) * (1.0 - other.probability());
    assert!((path - (1.0 - 1.001f64.powf(-800.0))).abs() < 1e-9, "{path}");
    // Every draw below 1 - 1.001^-300 = 0.25905 marks; what cannot be marked is lost.
    let m = 1.0 - 1.001f64.powf(-300.0);
    assert_eq!(one.on_arrival(&arrival(1), || m - 1e-6), Verdict::Mark);
    assert_eq!(one.on_arrival(&arrival(1), || m + 1e-6), Verdict::Enqueue);
    let other = Arrival { ecn_capable: false, ..arrival(1) };
    assert_eq!(one.on_arrival(&other, || m - 1e-6), Verdict::Drop);
    assert_eq!(one.on_arrival(&arrival(30), || 0.9), Verdict::Drop);
    assert_eq!(
        one.on_arrival(&Arrival { idle_since: Some(Time::ZERO), ..arrival(30) }, || 0.9),
        Verdict::Enqueue
    );
}

/// Sources that send `demand` packets an interval less the marked ones: the price must match what is too much, and the queue be
/// b*, whatever the demand.
#[test]
fn it_rests_at_the_target_whatever_the_load() {
    for demand in [12.0, 20.0, 60.0] {
        // A stronger step than the default, so that the rest is reached in reasonable time.
        let params = Params { gamma: 0.1, ..Params::default() };
        let mut law = Rem::new(&params, &view());
        let (mut queue, mut rate) = (0.0f64, 0.0);
        let mut owed = 0.0;
        for _ in 0..200_000 {
            rate = demand * (1.0 - law.probability());
            owed += rate;
            let packets = owed as u32;
            owed -= f64::from(packets);
            queue = (queue + f64::from(packets) - 10.0).max(0.0);
            interval(&mut law, packets, queue as u64);
        }
        // x = c and b = b* = 10 to a packet, as they are whole.
        assert!((rate - 10.0).abs() < 0.1, "demand {demand}: {rate}");
        assert!((queue - 10.0).abs() <= 1.0, "demand {demand}: {queue}");
        // 1.001^-p = 10/demand.
        let price = (demand / 10.0f64).ln() / 1.001f64.ln();
        assert!((law.price() / price - 1.0).abs() < 0.01, "demand {demand}: {}", law.price());
    }
}

#[test]
fn the_interval_follows_the_capacity() {
    let mut law = Rem::new(&Params::default(), &view());
    let next = |law: &mut Rem| law.on_timer(LinkView { now: Time::ZERO, queue_bytes: 0, queue_packets: 0 });
    law.set_capacity(Rate::from_gbps(10.0));
    assert_eq!(next(&mut law), Time::from_micros(8));
    law.set_capacity(Rate::from_gbps(400.0));
    assert_eq!(next(&mut law), Time::from_micros(1));
    law.set_capacity(Rate::from_bps(0.0));
    assert_eq!(next(&mut law), Time::from_secs(10));
    let given = Params { interval: Some(Time::from_millis(3)), ..Params::default() };
    assert_eq!(Rem::new(&given, &view()).first_timer(), Some(Time::from_millis(3)));
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let name = |p: &Params| Rem::check(p).expect_err("a refusal").0;
    let default = Params::default();
    assert!(Rem::check(&default).is_ok());
    assert_eq!(name(&Params { gamma: 0.0, ..default }), "gamma");
    assert_eq!(name(&Params { alpha: -1.0, ..default }), "alpha");
    assert_eq!(name(&Params { phi: 1.0, ..default }), "phi");
    assert_eq!(name(&Params { phi: f64::NAN, ..default }), "phi");
    assert_eq!(name(&Params { interval: Some(Time::ZERO), ..default }), "interval");
}

proptest! {
    /// For any arrivals, price and probability stay in their ranges, and a packet is marked only if the probability is
    /// above the draw.
    #[test]
    fn state_stays_finite(
        gamma in 1e-6f64..100.0,
        phi in 1.000_001f64..100.0,
        steps in prop::collection::vec((0u32..50, 0u64..1_000_000_000, 0.0f64..1.0, 0.0f64..1e12), 1..100),
    ) {
        let mut law = Rem::new(&Params { gamma, phi, ..Params::default() }, &view());
        for (packets, waiting, draw, bps) in steps {
            law.set_capacity(Rate::from_bps(bps));
            interval(&mut law, packets, waiting);
            prop_assert!(law.price() >= 0.0 && law.price().is_finite());
            prop_assert!((0.0..=1.0).contains(&law.probability()));
            let marked = law.on_arrival(&arrival(1), || draw) == Verdict::Mark;
            prop_assert_eq!(marked, draw < law.probability());
            law.variables(&mut |name, value| assert!(value.is_finite() && value >= 0.0, "{name} {value}"));
        }
    }
}
