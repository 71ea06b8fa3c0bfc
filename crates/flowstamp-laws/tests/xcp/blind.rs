//! XCP-b against its paper's arithmetic (Abrantes and Ricardo 2006, section 3), and what must hold of it whatever comes.

use crate::made::{self, Made, capacity, feedback, only_lowers, packet, stays_finite};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::units::{Bytes, QueueLength, Rate, Time};
use flowstamp_laws::xcp::blind::{Detection, Params, Router};
use flowstamp_laws::xcp::shares::Shuffle;
use flowstamp_laws::xcp::{Encoding, Throughput, Window};
use proptest::prelude::*;

/// The paper's: 64 kB, packets of 1300 bytes.
const Q_MAX: u64 = 64_000;
const PACKET: u32 = 1300;
/// `d` of the flow that drives the router.
const RTT: f64 = 0.1;

fn link() -> RouterView {
    RouterView { capacity: None, limit: Limit::Bytes(Q_MAX), packet_bytes: PACKET }
}

fn router(params: &Params) -> Router<Window> {
    Router::new(&Params { initial_interval: Some(Time::from_millis(100)), ..*params }, &link())
}

fn view(packets: u32) -> LinkView {
    LinkView { now: Time::ZERO, queue_bytes: u64::from(packets * PACKET), queue_packets: packets }
}

fn value(router: &Router<Window>, name: &str) -> f64 {
    let mut value = f64::NAN;
    router.variables(&mut |n, v| {
        if n == name {
            value = v;
        }
    });
    value
}

/// An interval in which ten packets of one flow find so many waiting, between two instants at which more do, as the least is what
/// counts; returns `F` of the next, bytes/s.
fn interval(router: &mut Router<Window>, waiting: u32) -> f64 {
    for _ in 0..10 {
        let mut stamp = Window::header(10.0 * f64::from(PACKET), RTT, f64::from(PACKET), 1e9);
        router.on_arrival(view(waiting), PacketIn::of(PACKET, Some(&stamp)));
        router.on_departure(
            view(waiting),
            PacketOut { size: PACKET, stamp: &mut stamp, bits: &mut 0 },
            || 0.5,
        );
    }
    router.on_timer(0, view(waiting + 100));
    value(router, "aggregate_feedback_bps") / 8.0
}

fn close(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 1e-9, "{value}, expected {expected}");
}

#[test]
fn constants_of_section_3() {
    let p = Params::default();
    assert!((p.chi() - 0.2286).abs() < 5e-5, "chi = 1/(5 - 0.4 - 0.2263): {}", p.chi());
    assert!((p.tau() - 0.178).abs() < 5e-5, "tau = 0.75^6: {}", p.tau());
    assert!(p.n >= std::f64::consts::PI * p.alpha / p.beta, "n covers half of an oscillation, 5.55");
}

#[test]
fn an_under_used_link_gives_a_part_of_its_buffer() {
    let mut law = router(&Params::default());
    // Eq. 7 by hand: 64,000 / 4.3737 / 0.1 s.
    close(interval(&mut law, 0), 64_000.0 / 4.3737 / RTT);
    assert!(law.under_used());
}

#[test]
fn a_busy_link_goes_by_the_speed_of_its_queue() {
    let mut law = router(&Params::default());
    interval(&mut law, 0);
    interval(&mut law, 4);
    // Eq. 13 by hand, from 4 packets to 10 with kappa = 3: -(0.4 * 6 + 0.2263 * 7) * 1300 / 0.1.
    close(interval(&mut law, 10), -(0.4 * 6.0 + 0.2263 * 7.0) * 1300.0 / RTT);
    assert!(!law.under_used());
    // Steady at kappa after a queue of kappa: nothing.
    interval(&mut law, 3);
    assert!(interval(&mut law, 3).abs() < 1e-9);
}

#[test]
fn in_bytes() {
    let mut law = router(&Params { kappa: QueueLength::Bytes(Bytes::new(4000)), ..Params::default() });
    interval(&mut law, 0);
    interval(&mut law, 4);
    // Eq. 9 by hand: from 5200 bytes to 13,000.
    close(interval(&mut law, 10), -(0.4 * 7800.0 + 0.2263 * 9000.0) / RTT);
}

/// Intervals without a queue until the link counts as under-used, after it rested at kappa.
fn late(params: &Params) -> u32 {
    let mut law = router(params);
    for _ in 0..200 {
        interval(&mut law, 3);
    }
    assert!(!law.under_used());
    (1..100)
        .find(|_| {
            interval(&mut law, 0);
            law.under_used()
        })
        .expect("under-used")
}

#[test]
fn both_detections_wait_for_n_intervals() {
    let average = Params::default();
    let counter = Params { detection: Detection::Counter, ..average };
    assert_eq!((late(&average), late(&counter)), (6, 6), "section 3.1");
    let nine = |detection| late(&Params { detection, n: 9.0, ..average });
    assert_eq!((nine(Detection::Average), nine(Detection::Counter)), (9, 9));
    // Section 4.2.1 has tau = 0.17, which is between 0.75^6 and 0.75^7.
    assert_eq!(late(&Params { tau: Some(0.17), ..average }), 7);
    // A single packet in between is enough for the counter.
    let mut law = router(&counter);
    interval(&mut law, 0);
    for waiting in [3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0] {
        interval(&mut law, waiting);
        assert!(!law.under_used());
    }
}

#[test]
fn what_comes_in_over_the_medium_is_counted_and_stamped() {
    assert!(Router::<Window>::traits(&Params::default()).over_medium);
    let mut law = router(&Params::default());
    let header = || Window::header(10.0 * f64::from(PACKET), RTT, f64::from(PACKET), 1e9);
    let upload = |law: &mut Router<Window>| {
        let mut stamp = header();
        law.on_arrival(view(0), PacketIn::of(PACKET, Some(&stamp)));
        law.on_departure(view(0), PacketOut { size: PACKET, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
        stamp.0[2] / RTT
    };
    for _ in 0..10 {
        upload(&mut law);
        law.on_arrival(view(0), PacketIn::of(40, None)); // an ack: it has no header, and takes of the medium
    }
    law.on_timer(0, view(0));
    close(value(&law, "input_rate_bps") / 8.0, 10.0 * 1340.0 / RTT);
    // Ten packets share F. Each also gains its part of what is shuffled, acks included, and loses a tenth of its own bytes.
    close(upload(&mut law), 64_000.0 / 4.3737 / RTT / 10.0 + 0.1 * 40.0 / RTT);
}

/// Equation 2: by default a tenth of the traffic moves however large F is, and with `rest` only what F leaves of it.
#[test]
fn a_tenth_is_shuffled_however_much_is_given() {
    let [full, rest] = [Shuffle::Full, Shuffle::Rest].map(|shuffle| {
        let mut law = router(&Params { shuffle, ..Params::default() });
        for _ in 0..10 {
            let stamp = Window::header(10.0 * f64::from(PACKET), RTT, f64::from(PACKET), 1e9);
            law.on_arrival(view(0), PacketIn::of(PACKET, Some(&stamp)));
        }
        law.on_timer(0, view(0));
        law.residues()
    });
    let [given, shuffled] = [64_000.0 / 4.3737 / RTT, f64::from(PACKET) / RTT];
    assert!(given > shuffled, "F alone is more than a tenth");
    close(full.0, given + shuffled);
    close(full.1, shuffled);
    close(rest.0, given);
    assert_eq!(rest.1, 0.0);
}

#[test]
fn parameters_that_cannot_be_are_refused_by_name() {
    let bad = [
        (Params { kappa: QueueLength::Packets(0.0), ..Params::default() }, "kappa"),
        (Params { kappa: QueueLength::Bytes(Bytes::new(0)), ..Params::default() }, "kappa"),
        (Params { q_max: Some(Bytes::new(0)), ..Params::default() }, "q_max"),
        (Params { chi: Some(0.0), ..Params::default() }, "chi"),
        (Params { n: 0.0, ..Params::default() }, "n"),
        (Params { tau: Some(0.1), detection: Detection::Counter, ..Params::default() }, "tau"),
        (Params { weight: Some(0.1), detection: Detection::Counter, ..Params::default() }, "weight"),
        (Params { weight: Some(1.0), ..Params::default() }, "weight"),
        (Params { beta: 0.0, ..Params::default() }, "beta"),
    ];
    for (params, key) in bad {
        let refused = Router::<Window>::check(&params).map_err(|(key, _)| key);
        assert_eq!(refused, Err(key), "{params:?}");
    }
    assert_eq!(Router::<Window>::check(&Params::default()), Ok(()));
    assert!(!Router::<Window>::traits(&Params::default()).needs_capacity);
}

fn blind<E: Encoding>(q_max: u64, detection: Detection) -> Router<E> {
    let params = Params { q_max: Some(Bytes::new(q_max)), detection, ..Params::default() };
    Router::new(&Params { initial_interval: Some(Time::from_millis(50)), ..params }, &link())
}

/// No interval gives more than `chi Qmax / d` and what is shuffled, and its net is at most `chi Qmax / d` where every packet
/// takes part in both.
fn gives_a_part_of_the_buffer<E: Encoding>(q_max: u64, intervals: &[Vec<Made>]) -> Result<(), TestCaseError> {
    let mut law = blind::<E>(q_max, Detection::Average);
    let mut now = Time::ZERO;
    for packets in intervals {
        let (pool_pos, pool_neg) = law.residues();
        let length = law.interval_s();
        prop_assert!(pool_pos - pool_neg <= law.most_bytes() / length * (1.0 + 1e-9), "F above chi Qmax / d");
        let mut given = 0.0;
        for p in packets {
            let mut stamp = E::header(p.cwnd, p.rtt_s, f64::from(p.size), 1e30);
            law.on_arrival(p.view(now), PacketIn::of(p.size, Some(&stamp)));
            law.on_departure(
                p.view(now),
                PacketOut { size: p.size, stamp: &mut stamp, bits: &mut 0 },
                || 0.5,
            );
            given += feedback::<E>(&stamp, p).max(0.0);
        }
        prop_assert!(given <= pool_pos * (1.0 + 1e-9) + 1e-6, "{given} given of {pool_pos}");
        now = made::tick(&mut law, now, packets.last())?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn an_interval_gives_at_most_its_part_of_the_buffer(
        q_max in 1u64..1_000_000_000,
        t in prop::collection::vec(prop::collection::vec(packet(), 0..60), 2..8),
    ) {
        gives_a_part_of_the_buffer::<Window>(q_max, &t)?;
        gives_a_part_of_the_buffer::<Throughput>(q_max, &t)?;
    }

    #[test]
    fn it_only_lowers(
        q_max in 1u64..1_000_000_000,
        t in prop::collection::vec(prop::collection::vec(packet(), 0..40), 1..8),
    ) {
        only_lowers::<_, Window>(blind::<Window>(q_max, Detection::Average), &t)?;
        only_lowers::<_, Throughput>(blind::<Throughput>(q_max, Detection::Counter), &t)?;
    }

    #[test]
    fn nothing_overflows(
        q_max in 1u64..1_000_000_000,
        t in prop::collection::vec(prop::collection::vec(packet(), 0..40), 1..8),
    ) {
        stays_finite::<_, Window>(blind::<Window>(q_max, Detection::Counter), &t)?;
        stays_finite::<_, Throughput>(blind::<Throughput>(q_max, Detection::Average), &t)?;
    }

    /// It is told of capacities and knows none: the same feedback whatever they are.
    #[test]
    fn the_capacity_is_nothing_to_it(
        c in capacity(),
        t in prop::collection::vec(prop::collection::vec(packet(), 1..20), 1..6),
    ) {
        let mut told = blind::<Window>(Q_MAX, Detection::Average);
        told.on_change(LinkChange::Capacity(c));
        let mut results = [Vec::new(), Vec::new()];
        for (router, results) in [told, blind::<Window>(Q_MAX, Detection::Average)].into_iter().zip(&mut results) {
            made::drive::<_, Window>(router, &t, |_, _, _, got| { results.push(got); Ok(()) })?;
        }
        prop_assert_eq!(&results[0], &results[1]);
        let known = RouterView { capacity: Some(Rate::from_mbps(1.0)), ..link() };
        prop_assert_eq!(Router::<Window>::new(&Params::default(), &known).most_bytes(), router(&Params::default()).most_bytes());
    }
}
