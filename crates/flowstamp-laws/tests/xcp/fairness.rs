//! The target queue of section 5.2, and the fairness controllers of section 6.

use super::made::{Made, capacity, drive, only_lowers, packet, stays_finite};
use super::{CONTROL, QUEUE, params};
use flowstamp_laws::Stamp;
use flowstamp_laws::router::{LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::xcp::edge::priority_bits;
use flowstamp_laws::xcp::fairness::Fairness;
use flowstamp_laws::xcp::router::{Params, Router};
use flowstamp_laws::xcp::{Encoding, Throughput, Window};
use proptest::prelude::*;

fn router<E: Encoding>(capacity: Rate, params: Params) -> Router<E> {
    Router::new(&params, &RouterView::of(capacity))
}

fn fair<E: Encoding>(capacity: Rate, fairness: Fairness) -> Router<E> {
    router(capacity, Params { fairness, ..params() })
}

/// Window of a packet's flow, and its bits. All packets have 1000 bytes and an RTT of 100 ms.
type Packet = (f64, u16);

/// Lets packets arrive and an interval end at `queue` bytes. Returns what each then gets in bytes of window, if
/// earlier routers have left `allowed`.
fn interval(law: &mut Router<Window>, packets: &[Packet], queue: u64, allowed: f64) -> Vec<f64> {
    let view = LinkView { now: Time::ZERO, queue_bytes: queue, queue_packets: 0 };
    law.on_timer(QUEUE, view); // a router begins with an empty queue
    for &(window, bits) in packets {
        law.on_arrival(view, PacketIn { size: 1000, stamp: Some(&Stamp([window, 0.1, allowed])), bits });
    }
    law.on_timer(QUEUE, view);
    law.on_timer(CONTROL, view);
    let leave = |&(window, mut bits): &Packet| {
        let mut stamp = Stamp([window, 0.1, allowed]);
        law.on_departure(view, PacketOut { size: 1000, stamp: &mut stamp, bits: &mut bits }, || 0.5);
        stamp.0[2]
    };
    packets.iter().map(leave).collect()
}

/// 50 packets of 1000 bytes in 50 ms fill 1 MB/s. At the target there is nothing to change.
#[test]
fn the_queue_is_held_at_its_target() {
    let net = |target: Option<Time>, queue| {
        let target_queue = target;
        let mut law = router::<Window>(Rate::from_bytes_per_sec(1e6), Params { target_queue, ..params() });
        interval(&mut law, &[(100_000.0, 0); 50], queue, 1e9).iter().sum::<f64>()
    };
    let target = Some(Time::from_millis(10)); // 10 kB
    assert!(net(target, 10_000).abs() < 1e-6);
    // phi = beta (target - Q) in bytes of window, of which half an RTT's packets get half.
    for (target, queue) in [(target, 0), (target, 4000), (target, 30_000), (None, 4000)] {
        let phi = 0.226 * (target.map_or(0.0, |_| 10_000.0) - queue as f64);
        assert!((net(target, queue) - phi).abs() < 1e-6 * phi.abs(), "{queue}: {}", net(target, queue));
    }
}

/// Two flows fill the link, of 3 and of 1. Shuffling leaves flows unchanged where `x` is the fair rate.
#[test]
fn proportional_fairness_takes_by_the_square() {
    let mut law = fair::<Window>(Rate::from_bytes_per_sec(1e6), Fairness::Proportional);
    // 30 packets of a window of 60 kB, and 20 of 40 kB: rates of 600 and 400 kB/s.
    let packets: Vec<_> = [(60_000.0, 0); 30].into_iter().chain([(40_000.0, 0); 20]).collect();
    let got = interval(&mut law, &packets, 0, 1e9);
    let [large, small] = [got[..30].iter().sum::<f64>(), got[30..].iter().sum::<f64>()];
    // Changes of rate: gamma (x - x^2 (sum x) / (sum x^2)), of which an interval of half an RTT brings all.
    let change = |x: f64| 0.1 * (x - x * x * 1e6 / (6e5f64.powi(2) + 4e5f64.powi(2))) * 0.1;
    assert!((large - change(6e5)).abs() < 1e-6 && (small - change(4e5)).abs() < 1e-6, "{large} {small}");
    assert!(large < 0.0 && (large + small).abs() < 1e-6);
}

/// Decreases of the routers on a path add up; with the min-max controller the lowest feedback counts.
#[test]
fn proportional_decreases_add_up() {
    let after = |fairness, allowed| {
        let mut law = fair::<Window>(Rate::from_bytes_per_sec(1e6), fairness);
        interval(&mut law, &[(100_000.0, 0); 50], 0, allowed)[0]
    };
    // A packet's part of the shuffled traffic is 200 bytes of window: given, and taken.
    assert_eq!(after(Fairness::MinMax, -30.0), -30.0);
    assert!((after(Fairness::Proportional, -30.0) + 230.0).abs() < 1e-6);
}

/// A full link: the low level's shuffled traffic goes to the high one, until that has all it wishes.
#[test]
fn priority_moves_traffic_upwards() {
    let after = |wish: f64| {
        let mut law = fair::<Window>(Rate::from_bytes_per_sec(1e6), Fairness::Priority);
        let packets: Vec<_> =
            [(50_000.0, 0); 25].into_iter().chain([(50_000.0, priority_bits(7)); 25]).collect();
        interval(&mut law, &packets, 0, wish); // wishes are known from the interval before
        let twice = packets.repeat(2); // the second interval lasts an RTT of 100 ms
        let got = interval(&mut law, &twice, 0, wish);
        [got[..25].iter().sum::<f64>() * 2.0, got[25..50].iter().sum::<f64>() * 2.0]
    };
    let [low, high] = after(1e9);
    assert!((low + 5000.0).abs() < 1.0 && (high - 5000.0).abs() < 1.0, "{low} {high}");
    // A level that wishes for nothing more leaves the other alone.
    let [low, high] = after(0.0);
    assert!(low.abs() < 1e-6 && high.abs() < 1e-6, "{low} {high}");
}

/// An overfull link takes from the lowest level first.
#[test]
fn priority_takes_from_below() {
    let mut law = fair::<Window>(Rate::from_bytes_per_sec(8e5), Fairness::Priority);
    let packets: Vec<_> =
        [(50_000.0, priority_bits(2)); 25].into_iter().chain([(50_000.0, priority_bits(5)); 25]).collect();
    let got = interval(&mut law, &packets, 0, 1e9);
    // F = 0.4 (8e5 - 1e6) = -80 kB/s, which the lower level's 500 kB/s bear: 8 kB of window.
    let [low, high] = [got[..25].iter().sum::<f64>(), got[25..].iter().sum::<f64>()];
    assert!(
        (low + 8000.0 + high).abs() < 1.0 + 2.0 * high.abs() && high >= 0.0 && low < -7000.0,
        "{low} {high}"
    );
}

const ALL: [Fairness; 3] = [Fairness::MinMax, Fairness::Proportional, Fairness::Priority];

/// In an interval a router gives and takes at most its pools.
fn within_pools<E: Encoding>(law: Router<E>, intervals: &[Vec<Made>]) -> Result<(), TestCaseError> {
    drive::<_, E>(law, intervals, |law, p, _, _| {
        let (give, take) = law.residues();
        prop_assert!(give >= 0.0 && take >= 0.0, "{p:?}: {give} {take}");
        Ok(())
    })
    .map(|_| ())
}

proptest! {
    /// As `a_router_only_lowers` and `nothing_overflows`, for each controller and with a target queue.
    #[test]
    fn each_controller_only_lowers_and_stays_finite(
        c in capacity(),
        t in prop::collection::vec(prop::collection::vec(packet(), 0..40), 1..8),
        target_ms in 1u64..1000,
    ) {
        for fairness in ALL {
            let target_queue = Some(Time::from_millis(target_ms));
            let params = Params { fairness, target_queue, ..params() };
            only_lowers::<_, Window>(router::<Window>(c, params), &t)?;
            only_lowers::<_, Throughput>(router::<Throughput>(c, params), &t)?;
            stays_finite::<_, Window>(router::<Window>(c, params), &t)?;
            within_pools(router::<Throughput>(c, params), &t)?;
        }
    }

    /// A target queue raises the feedback by `beta` times the target, less the more there is already.
    #[test]
    fn a_target_only_shifts_the_queue(target_ms in 1u64..100, queue in 0u64..100_000) {
        let phi = |target: Option<Time>, queue| {
            let mut law = router::<Window>(
                Rate::from_bytes_per_sec(1e6), Params { target_queue: target, ..params() });
            interval(&mut law, &[(100_000.0, 0); 50], queue, 1e9);
            let mut phi = 0.0;
            law.variables(&mut |name, value| if name == "aggregate_feedback_bps" { phi = value });
            phi
        };
        let shift = 1000 * target_ms;
        let [with, without] = [phi(Some(Time::from_millis(target_ms)), queue + shift), phi(None, queue)];
        prop_assert!((with - without).abs() < 1e-6 * without.abs() + 1e-3, "{with} {without}");
    }
}
