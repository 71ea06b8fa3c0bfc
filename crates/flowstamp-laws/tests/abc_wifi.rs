//! ABC's estimate of a Wi-Fi link's capacity: its equations by hand, and its bounds for any batches.

use flowstamp_laws::abc::router::{Capacity, Params, Variant};
use flowstamp_laws::abc::wifi::{Estimator, WINDOW};
use flowstamp_laws::abc::{Header, Mark, Router};
use flowstamp_laws::router::{Batch, Batches, LinkChange, LinkView, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::{Rate, Stamp, Time};
use proptest::prelude::*;

/// Packets of 1500 bytes at 12 Mb/s: a frame takes a millisecond.
const BATCH: Batch = Batch {
    at: Time::ZERO,
    frames: 32,
    acked: 32,
    most: 32,
    packet_bytes: 1500.0,
    frame_bytes: 1500.0,
    rate: Rate::from_mbps(12.0),
    elapsed: Time::from_millis(34),
};

fn ms(t: u64) -> Time {
    Time::from_millis(t)
}

fn estimate(batches: &[(Time, Batch)]) -> f64 {
    let mut estimator = Estimator::new(WINDOW);
    batches.iter().for_each(|(at, batch)| estimator.on_batch(&Batch { at: *at, ..*batch }));
    estimator.capacity().expect("a batch")
}

/// Four of 32 frames take 6 ms, of which 2 ms are overhead. All 32 would take 34 ms.
#[test]
fn a_small_batch_tells_the_time_of_a_full_one() {
    let small = Batch { frames: 4, acked: 4, elapsed: ms(6), ..BATCH };
    let expected = 32.0 * 1500.0 / 34e-3;
    assert!((estimate(&[(ms(6), small)]) / expected - 1.0).abs() < 1e-12);
    assert!((estimate(&[(ms(34), BATCH)]) / expected - 1.0).abs() < 1e-12);
    // Headers take time, but are not counted as capacity (deviation 5): 28 frames of 1.04 ms.
    let headers = Batch { frame_bytes: 1560.0, ..small };
    assert!((estimate(&[(ms(6), headers)]) / (48_000.0 / (6e-3 + 28.0 * 1.04e-3)) - 1.0).abs() < 1e-12);
    // One of four frames is lost (deviation 4), or packets wait although the batch has four frames (deviation 2).
    let lost = Batch { acked: 3, ..small };
    assert!((estimate(&[(ms(6), lost)]) / (0.75 * expected) - 1.0).abs() < 1e-12);
    let behind = Batch { most: 4, ..small };
    assert!((estimate(&[(ms(6), behind)]) / (4.0 * 1500.0 / 6e-3) - 1.0).abs() < 1e-12);
}

/// Batches older than 40 ms do not count. With none in 40 ms, the last estimate stays.
#[test]
fn the_window_forgets() {
    let fast = Batch { elapsed: ms(8), most: 8, frames: 8, acked: 8, ..BATCH };
    let slow = Batch { elapsed: ms(16), ..fast };
    let mut estimator = Estimator::new(WINDOW);
    assert_eq!(estimator.capacity(), None);
    estimator.on_batch(&Batch { at: ms(3), ..slow });
    assert_eq!(estimator.capacity(), Some(12_000.0 / 16e-3));
    estimator.on_batch(&Batch { at: ms(38), ..fast });
    assert_eq!(estimator.capacity(), Some(24_000.0 / 24e-3)); // the sum of both
    estimator.on_batch(&Batch { at: ms(46), ..fast });
    assert_eq!(estimator.capacity(), Some(12_000.0 / 8e-3));
    estimator.on_batch(&Batch { at: ms(4_000_000), ..slow });
    assert_eq!(estimator.capacity(), Some(12_000.0 / 16e-3));
    let other = estimator.with_window(ms(1));
    assert_eq!(other.capacity(), estimator.capacity());
}

fn depart(router: &mut Router, now: Time) -> Mark {
    let view = LinkView { now, queue_bytes: 0, queue_packets: 0 };
    let (mut stamp, mut bits) = (Stamp::from(Header::SENT), Mark::Accelerate.bits());
    router.on_departure(view, PacketOut { size: 1500, stamp: &mut stamp, bits: &mut bits }, || 0.0);
    Mark::read(bits)
}

/// A router that is told nothing brakes nobody before the first block ack. Then its share is that of the estimate, at
/// most that of twice the dequeue rate.
#[test]
fn the_router_takes_the_estimate_up_to_twice_the_dequeue_rate() {
    let params = Params { capacity: Capacity::Wifi, ..Params::default() };
    let unknown = RouterView { capacity: None, ..RouterView::of(Rate::ZERO) };
    let mut router = Router::new(&params, &unknown);
    for i in 0..400 {
        assert_eq!(depart(&mut router, ms(i)), Mark::Accelerate);
    }
    let dequeue = router.dequeue_rate();
    assert!((dequeue / 1.5e6 - 1.0).abs() < 1e-9, "{dequeue}");
    // 1.25 times what leaves: f = 0.98 * 1.25 / 2.
    router.on_change(LinkChange::Acked(&Batch { at: ms(400), elapsed: ms(32).scale(1.0 / 1.25), ..BATCH }));
    depart(&mut router, ms(400));
    assert!((router.share() - 0.98 * 1.25 / 2.0).abs() < 1e-6, "{}", router.share());
    // Ten times what leaves counts as twice.
    router.on_change(LinkChange::Acked(&Batch { at: ms(500), elapsed: ms(32).scale(0.1), ..BATCH }));
    depart(&mut router, ms(401));
    assert!((router.share() - 0.98).abs() < 1e-9, "{}", router.share());
    assert!((router.capacity() / (2.0 * router.dequeue_rate()) - 1.0).abs() < 1e-12);
}

#[test]
fn parameters_that_mean_nothing_are_refused() {
    let wifi = Params { capacity: Capacity::Wifi, ..Params::default() };
    assert_eq!(Router::check(&wifi), Ok(()));
    assert_eq!(
        (Router::traits(&wifi).needs_capacity, Router::traits(&wifi).batches),
        (false, Batches::Needed)
    );
    let told = Router::traits(&Params::default());
    assert_eq!((told.needs_capacity, told.batches), (true, Batches::Suffice("capacity = \"wifi\"")));
    for (params, key) in [
        (Params { variant: Variant::Emulation, ..wifi }, "variant"),
        (Params { wifi_window: Time::ZERO, ..wifi }, "wifi_window"),
        (Params { wifi_window: ms(10), ..Params::default() }, "wifi_window"),
    ] {
        assert_eq!(Router::check(&params).expect_err("refused").0, key);
    }
}

prop_compose! {
    fn batches()(
        batches in prop::collection::vec((1u32..=64, 0.0f64..=1.0, 0u64..20_000, 0u64..100_000), 1..60),
        packet in 40.0f64..2300.0,
        headers in 0.0f64..100.0,
        mbps in 1.0f64..1000.0,
    ) -> Vec<(Time, Batch)> {
        let mut now = Time::ZERO;
        let rate = Rate::from_mbps(mbps);
        batches.into_iter().map(|(frames, acked, overhead_us, idle_us)| {
            let frame_bytes = packet + headers;
            let air = Time::from_secs_f64(f64::from(frames) * frame_bytes / rate.bytes_per_sec());
            let elapsed = air + Time::from_micros(overhead_us + 1);
            now += elapsed + Time::from_micros(idle_us);
            let acked = (f64::from(frames) * acked) as u32;
            (now, Batch { at: now, frames, acked, most: 64, packet_bytes: packet, frame_bytes, rate, elapsed })
        }).collect()
    }
}

proptest! {
    /// No estimate exceeds the rate of packets that follow one another without any overhead.
    #[test]
    fn no_estimate_is_above_the_physical_rate(batches in batches()) {
        let mut estimator = Estimator::new(WINDOW);
        for (now, batch) in &batches {
            estimator.on_batch(&Batch { at: *now, ..*batch });
            let capacity = estimator.capacity().expect("a batch");
            let most = batch.rate.bytes_per_sec() * batch.packet_bytes / batch.frame_bytes;
            prop_assert!(capacity.is_finite() && capacity >= 0.0 && capacity <= most * (1.0 + 1e-9), "{} {}", capacity, most);
        }
    }

    /// A backlogged link has carried the estimate: its bytes over its time.
    #[test]
    fn a_backlogged_link_is_measured(batches in batches()) {
        let full: Vec<_> = batches.iter().map(|(_, b)| (ms(1), Batch { most: b.frames, ..*b })).collect();
        let bytes: f64 = full.iter().map(|(_, b)| f64::from(b.acked) * b.packet_bytes).sum();
        let seconds: f64 = full.iter().map(|(_, b)| b.elapsed.as_secs_f64()).sum();
        prop_assert!((estimate(&full) - bytes / seconds).abs() <= 1e-9 * (bytes / seconds));
    }

    /// With the same overhead, batches of any size give the estimate of full batches.
    #[test]
    fn batches_of_any_size_agree(frames in 1u32..=32, overhead_us in 10u64..100_000, headers in 0.0f64..100.0) {
        let of = |frames: u32| {
            let batch = Batch { frames, acked: frames, frame_bytes: 1500.0 + headers, ..BATCH };
            let air = Time::from_secs_f64(f64::from(frames) * batch.frame_s());
            estimate(&[(ms(1), Batch { elapsed: air + Time::from_micros(overhead_us), ..batch })])
        };
        prop_assert!((of(frames) / of(32) - 1.0).abs() < 1e-9);
    }
}
