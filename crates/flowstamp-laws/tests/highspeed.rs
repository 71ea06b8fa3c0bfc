//! HighSpeed TCP (RFC 3649): its response against the RFC's table, and the window that follows from it.

use flowstamp_laws::Stamp;
use flowstamp_laws::sender::{Ack, Congestion, FlowView, Recovery, SenderLaw};
use flowstamp_laws::tcp::highspeed::{HighSpeed, Params, Response};
use flowstamp_laws::tcp::reno::{self, Sack};
use flowstamp_laws::units::{Ratio, Time};
use proptest::prelude::*;

const PACKET: f64 = 1000.0;

/// RFC 3649 appendix B: w, a(w), b(w). Each row is the first window whose a(w) has grown by one since the row before.
const TABLE: [(f64, f64, f64); 20] = [
    (38.0, 1.0, 0.50),
    (118.0, 2.0, 0.44),
    (221.0, 3.0, 0.41),
    (347.0, 4.0, 0.38),
    (495.0, 5.0, 0.37),
    (663.0, 6.0, 0.35),
    (851.0, 7.0, 0.34),
    (1058.0, 8.0, 0.33),
    (1284.0, 9.0, 0.32),
    (1529.0, 10.0, 0.31),
    (3039.0, 15.0, 0.27),
    (5036.0, 20.0, 0.25),
    (7558.0, 25.0, 0.22),
    (10661.0, 30.0, 0.21),
    (14424.0, 35.0, 0.19),
    (24402.0, 45.0, 0.16),
    (32450.0, 51.0, 0.15),
    (48961.0, 60.0, 0.13),
    (64851.0, 66.0, 0.11),
    (79517.0, 70.0, 0.10),
];

fn flow(packets: f64) -> FlowView {
    FlowView { packet_bytes: PACKET as u32, initial_window: packets, app_rate: None }
}

fn law(packets: f64) -> HighSpeed {
    HighSpeed::new(&Params { initial_ssthresh: Some(2.0), ..Params::default() }, &flow(packets))
}

fn ack(stamp: &Stamp) -> Ack<'_> {
    Ack::of_one(Time::ZERO, Time::from_millis(100), stamp)
}

#[test]
fn increase_and_decrease_are_those_of_the_table() {
    let response = Response::new(&Params::default());
    for (w, a, b) in TABLE {
        // Deviation 1: the table rounds p(w), which makes its a(w) up to 2.4% smaller.
        let ours = response.increase(w);
        assert!(ours > 0.995 * a && ours < 1.03 * a, "a({w}) = {ours}, the table has {a}");
        // Two digits, some rounded and some cut.
        let ours = response.decrease(w);
        assert!(ours > b - 0.0055 && ours < b + 0.01, "b({w}) = {ours}, the table has {b}");
    }
}

/// Section 5: an increase of 72 packets and a decrease of 0.1 at 83000 packets, loss rates 10^-3 and 10^-7 at the ends.
#[test]
fn the_response_meets_both_of_its_points() {
    let response = Response::new(&Params::default());
    assert_eq!((response.increase(38.0), response.decrease(38.0)), (1.0, 0.5));
    assert_eq!(response.increase(83_000.0).floor(), 72.0);
    assert!((response.decrease(82_999.999) - 0.1).abs() < 1e-8);
    assert!((response.loss_rate(38.0) / 1e-3 - 1.0).abs() < 1e-12);
    assert!((response.loss_rate(83_000.0) / 1e-7 - 1.0).abs() < 1e-12);
    // Section 5, the rounded form: p(w) = 0.078 / w^1.2.
    assert!((response.loss_rate(1000.0) / (0.078 / 1000.0_f64.powf(1.2)) - 1.0).abs() < 0.02);
}

/// The purpose of the law: one loss in 1/p packets leaves a mean window of 0.12 / p^0.835 (section 5).
#[test]
fn the_mean_window_is_that_of_the_response_function() {
    for p in [1e-3, 1e-4, 1e-5, 1e-6_f64] {
        let wanted = 0.12 / p.powf(0.835);
        let mut law = law(wanted);
        let stamp = Stamp::default();
        let per_loss = (1.0 / p) as u32;
        // Mean over time: an ack takes a w-th of a round trip.
        let (mut acks, mut round_trips) = (0.0, 0.0);
        for cycle in 0..24 {
            for _ in 0..per_loss {
                if cycle >= 8 {
                    acks += 1.0;
                    round_trips += PACKET / law.cwnd();
                }
                law.on_ack(&ack(&stamp));
            }
            law.on_congestion(Time::ZERO, Congestion::Loss { flight: u32::MAX });
        }
        let mean = acks / round_trips;
        assert!((mean / wanted - 1.0).abs() < 0.1, "p = {p}: {mean} packets, {wanted} wanted");
    }
}

#[test]
fn losses_take_b_of_the_window_and_timeouts_half() {
    let mut law = law(1529.0);
    law.on_congestion(Time::ZERO, Congestion::Loss { flight: 1529 });
    let left = law.cwnd() / 1_529_000.0;
    assert!((left - 0.69).abs() < 0.005, "{left}"); // appendix B: b = 0.31
    assert_eq!(law.ssthresh(), law.cwnd());
    let before = law.cwnd();
    law.on_congestion(Time::ZERO, Congestion::Timeout { flight: 10_000 });
    assert_eq!((law.cwnd(), law.ssthresh()), (PACKET, before / 2.0));
    law.on_congestion(Time::ZERO, Congestion::Timeout { flight: 1 });
    assert_eq!(law.ssthresh(), before / 2.0);
}

#[test]
fn the_window_does_not_grow_in_recovery_nor_beyond_what_is_used() {
    let mut law = law(500.0);
    let stamp = Stamp::default();
    law.on_ack(&Ack { in_recovery: true, ..ack(&stamp) });
    law.on_ack(&Ack { window_limited: false, ..ack(&stamp) });
    assert_eq!(law.cwnd(), 500.0 * PACKET);
    law.on_ack(&ack(&stamp));
    assert!(law.cwnd() > 500.0 * PACKET);
    assert_eq!(HighSpeed::traits(&Params::default()).recovery, Recovery::Sack);
}

/// Possible events of a flow.
#[derive(Clone, Copy, Debug)]
enum Event {
    Acks(u32),
    Loss(u32),
    Timeout(u32),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1u32..200).prop_map(Event::Acks),
        1 => any::<u32>().prop_map(Event::Loss),
        1 => (0u32..100_000).prop_map(Event::Timeout),
    ]
}

fn tell(law: &mut impl SenderLaw, event: Event) {
    let stamp = Stamp::default();
    match event {
        Event::Acks(n) => (0..n).for_each(|_| law.on_ack(&ack(&stamp))),
        Event::Loss(flight) => law.on_congestion(Time::ZERO, Congestion::Loss { flight }),
        Event::Timeout(flight) => law.on_congestion(Time::ZERO, Congestion::Timeout { flight }),
    }
}

proptest! {
    #[test]
    fn a_rises_and_b_falls_with_the_window(w in 1.0..1e9f64, factor in 1.0..10.0f64) {
        let response = Response::new(&Params::default());
        let (more, less) = (response.increase(w * factor), response.decrease(w * factor));
        prop_assert!(more >= response.increase(w));
        prop_assert!(less <= response.decrease(w));
        prop_assert!(more.is_finite() && more >= 1.0);
        prop_assert!((0.1..=0.5).contains(&less));
        // A larger window never has less left after a loss.
        prop_assert!(w * factor * (1.0 - less) >= w * (1.0 - response.decrease(w)));
    }

    /// Up to Low_Window the law is TCP's.
    #[test]
    fn small_windows_are_those_of_tcp(events in prop::collection::vec(event(), 1..60), window in 1.0..38.0f64) {
        let most = Some(38.0);
        let params = Params { max_window: most, ..Params::default() };
        let mut ours = HighSpeed::new(&params, &flow(window));
        let mut tcp = Sack::new(&reno::Params { max_window: most, ..reno::Params::default() }, &flow(window));
        for event in events {
            tell(&mut ours, event);
            tell(&mut tcp, event);
            prop_assert!((ours.cwnd() / tcp.cwnd() - 1.0).abs() < 1e-9, "{} {}", ours.cwnd(), tcp.cwnd());
        }
    }

    #[test]
    fn the_window_stays_finite_and_at_least_a_packet(
        events in prop::collection::vec(event(), 1..60),
        window in 0.0..1e9f64,
        low_window in -10.0..1e6f64,
        high_window in -10.0..1e9f64,
        low_p in -1.0..2.0f64,
        high_p in -1.0..2.0f64,
        high_decrease in 0.0..=1.0f64,
    ) {
        let params = Params {
            low_window, high_window, low_p, high_p,
            high_decrease: Ratio::new(high_decrease),
            initial_ssthresh: Some(10.0),
            ..Params::default()
        };
        let mut law = HighSpeed::new(&params, &flow(window));
        for event in events {
            let before = law.cwnd();
            tell(&mut law, event);
            prop_assert!(law.cwnd().is_finite() && law.cwnd() >= PACKET, "{}", law.cwnd());
            match event {
                Event::Acks(n) => prop_assert!(law.cwnd() - before <= f64::from(n) * PACKET * (1.0 + 1e-9) + 1.0),
                Event::Loss(_) | Event::Timeout(_) => prop_assert!(law.cwnd() <= before.max(2.0 * PACKET)),
            }
        }
    }
}
