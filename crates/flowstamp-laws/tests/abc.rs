//! ABC against the equations and the theorem of its paper, and against the algorithm of its authors' emulation.

use flowstamp_laws::abc::router::{Params as RouterParams, Variant, accelerates, target_rate};
use flowstamp_laws::abc::sender::{Params, window};
use flowstamp_laws::abc::{Header, Mark, Router, Sender};
use flowstamp_laws::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::sender::{Ack, Congestion, FlowView, SenderLaw};
use flowstamp_laws::stamp::StampLaw;
use flowstamp_laws::{Rate, Ratio, Stamp, Time};
use proptest::prelude::*;

const FLOW: FlowView = FlowView { packet_bytes: 1500, initial_window: 10.0, app_rate: None };
const RTT: Time = Time::from_millis(100);
/// One packet of 1500 bytes per millisecond.
const RATE: Rate = Rate::from_mbps(12.0);

fn router(params: &RouterParams) -> Router {
    Router::new(params, &RouterView { packet_bytes: 1500, ..RouterView::of(RATE) })
}

/// Marks a packet of 1500 bytes that leaves at `now`, with `queue` packets behind it.
fn depart(router: &mut Router, now: Time, queue: u32, mark: Mark) -> Mark {
    let view = LinkView { now, queue_bytes: u64::from(queue) * 1500, queue_packets: queue };
    let (mut stamp, mut bits) = (Stamp::from(Header::SENT), mark.bits());
    router.on_departure(view, PacketOut { size: 1500, stamp: &mut stamp, bits: &mut bits }, || 0.0);
    let after = Mark::read(bits);
    assert_eq!(Header::from(stamp) == Header::BRAKED, mark == Mark::Accelerate && after == Mark::Brake);
    after
}

fn ack(stamp: &Stamp, newly_acked: u32, flight: u32) -> Ack<'_> {
    Ack { newly_acked, flight, bits: Mark::Accelerate.bits(), ..Ack::of_one(RTT, RTT, stamp) }
}

/// Eq. 1 and 2 with the constants of the evaluation: at 12 Mb/s a queue of 100 packets is 100 ms long, 50 ms above `d_t`.
/// The target is 0.98 - 50/133 of the capacity.
#[test]
fn target_and_share_are_those_of_the_equations() {
    let capacity = RATE.bytes_per_sec();
    let target = |queue: f64| target_rate(0.98 * capacity, queue * 1500.0, capacity, 0.05, 0.133) / capacity;
    assert!((target(100.0) - (0.98 - 50.0 / 133.0)).abs() < 1e-12);
    assert_eq!([target(0.0), target(50.0)], [0.98, 0.98]); // up to d_t
    assert!((accelerates(0.98, 1.0) - 0.49).abs() < 1e-12); // the rate stays
    assert_eq!([accelerates(1.0, 0.4), accelerates(-0.1, 1.0), accelerates(0.0, 0.0)], [1.0, 0.0, 0.0]);
    assert_eq!(accelerates(1.0, 0.0), 1.0);
}

/// A link that is busy and has no queue gives 49 accelerates in 100 packets, and one with a queue of 100 packets
/// (0.98 - 50/133) / 2 of them.
#[test]
fn a_busy_link_marks_the_share_of_equation_2() {
    for (queue, share) in [(0, 0.49), (50, 0.49), (100, (0.98 - 50.0 / 133.0) / 2.0)] {
        let mut router = router(&RouterParams::default());
        let mut marks = [0u32; 2];
        for ms in 0..2000 {
            let mark = depart(&mut router, Time::from_millis(ms), queue, Mark::Accelerate);
            if ms >= 1000 {
                marks[usize::from(mark == Mark::Accelerate)] += 1;
            }
        }
        assert!((router.dequeue_rate() / 1.5e6 - 1.0).abs() < 1e-9, "{}", router.dequeue_rate());
        assert!((f64::from(marks[1]) - 1000.0 * share).abs() <= 1.0, "{queue}: {marks:?}");
    }
}

/// With half of the capacity in use, 98 of 100 packets are accelerates: the senders nearly double.
#[test]
fn a_half_used_link_lets_senders_double() {
    let mut router = router(&RouterParams::default());
    let mark = |ms: u64| depart(&mut router, Time::from_millis(2 * ms), 0, Mark::Accelerate);
    let stay = (0..1000).map(mark).skip(500).filter(|mark| *mark == Mark::Accelerate).count();
    assert!((489..=491).contains(&stay), "{stay}");
    assert!((router.share() - 0.98).abs() < 1e-9, "{}", router.share()); // 0.98 / (2 * 0.5)
}

/// Other traffic of the queue counts in the dequeue rate, so that its rate is no room for ABC's flows.
#[test]
fn other_traffic_counts() {
    let mut router = router(&RouterParams::default());
    for ms in 0..500 {
        let now = Time::from_millis(2 * ms);
        router.on_arrival(LinkView { now, queue_bytes: 0, queue_packets: 0 }, PacketIn::of(1500, None));
        depart(&mut router, now, 0, Mark::Accelerate);
    }
    assert!((router.share() - 0.49).abs() < 1e-3, "{}", router.share());
}

/// Times that are not set follow the flows' RTT: 133, 50 and 20 ms at 100 ms.
#[test]
fn times_follow_the_rtt() {
    let of = |rtt: Option<Time>| {
        let p = RouterParams { rtt, ..RouterParams::default() };
        [p.delta(), p.d_t(), p.rate_window()]
    };
    assert_eq!(of(None), [133, 50, 20].map(Time::from_millis));
    assert_eq!(of(Some(Time::from_micros(100))), [133, 50, 20].map(Time::from_micros));
    let mut open = RouterParams::default();
    let (name, value) = Router::open(&mut open).time_constant.expect("a time that follows the paths");
    *value = Some(Time::from_secs(1));
    assert_eq!((name, open.delta()), ("rtt", Time::from_millis(1330)));
    let set = RouterParams { d_t: Some(Time::from_millis(7)), ..open };
    assert_eq!(set.d_t(), Time::from_millis(7));
}

#[test]
fn the_capacity_and_parameters_may_change() {
    let mut router = router(&RouterParams::default());
    (0..200).for_each(|ms| _ = depart(&mut router, Time::from_millis(ms), 0, Mark::Brake));
    router.on_change(LinkChange::Capacity(Rate::from_mbps(6.0)));
    depart(&mut router, Time::from_millis(200), 0, Mark::Brake);
    assert!((router.share() - 0.245).abs() < 1e-6, "{}", router.share());
    router.on_change(LinkChange::Params(&RouterParams { eta: Ratio::new(0.5), ..RouterParams::default() }));
    depart(&mut router, Time::from_millis(201), 0, Mark::Brake);
    assert!((router.share() - 0.125).abs() < 1e-6, "{}", router.share());
    router.on_change(LinkChange::Capacity(Rate::ZERO));
    depart(&mut router, Time::from_millis(202), 0, Mark::Accelerate);
    assert_eq!((router.share(), router.target()), (0.0, 0.0));
}

/// The algorithm of the authors' emulation (`cellular_packet_queue.cc`), from its description: both rates are counts of
/// the last 20 ms; the bucket has 5 tokens and starts full; the delay is the queue with this packet over the rate of
/// opportunities. Returns whether each packet stays an accelerate.
fn emulation(departures: &[(u64, u32)], delta_ms: f64) -> Vec<bool> {
    let mut tokens = 5.0f64;
    let mut marks = Vec::new();
    for (n, &(now, queue)) in departures.iter().enumerate() {
        let recent = departures[..n].iter().filter(|(at, _)| at + 20 >= now).count();
        let rate = recent as f64 / 20.0; // packets per ms; each opportunity is used
        let delay = f64::from(queue + 1) / rate;
        let target = 0.98 * rate + rate / delta_ms * (50.0 - delay).min(0.0);
        let share = (0.5 * target / rate).clamp(0.0, 1.0);
        tokens += if share.is_nan() { 1.0 } else { share };
        let stays = tokens > 1.0;
        if stays {
            tokens -= 1.0;
        }
        tokens = tokens.min(5.0);
        marks.push(stays);
    }
    marks
}

/// A busy link of 12 Mb/s whose queue rises from 20 to 140 packets and falls again: the law marks as the emulation does.
/// On a busy link of constant rate, capacity and dequeue rate are the same, and so are both variants.
#[test]
fn marks_are_those_of_the_authors_emulation() {
    let queue =
        |ms: u64| 20 + (if ms % 2000 < 1000 { ms % 1000 } else { 1000 - ms % 1000 }) as u32 * 120 / 1000;
    let departures: Vec<(u64, u32)> = (0..6000).map(|ms| (ms, queue(ms))).collect();
    let theirs = emulation(&departures, 133.0);
    for variant in [Variant::Paper, Variant::Emulation] {
        let mut router = router(&RouterParams { variant, ..RouterParams::default() });
        let ours: Vec<bool> = departures
            .iter()
            .map(|&(ms, queue)| {
                depart(&mut router, Time::from_millis(ms), queue, Mark::Accelerate) == Mark::Accelerate
            })
            .collect();
        let count = |marks: &[bool]| marks.iter().filter(|stays| **stays).count() as f64;
        for (from, (ours, theirs)) in ours.chunks(100).zip(theirs.chunks(100)).enumerate().skip(1) {
            // Their delay includes the packet itself, 1 ms in 133, and their count of 20 ms has a whole packet more or less.
            assert!((count(ours) - count(theirs)).abs() <= 2.0, "{variant:?}, {from}00 ms");
        }
        let total = [count(&ours), count(&theirs)];
        assert!((total[0] / total[1] - 1.0).abs() < 0.02, "{variant:?}: {total:?}");
        assert!(total[0] > 1500.0 && total[0] < 2500.0, "{total:?}");
    }
}

/// With `variant = "emulation"` an idle link refills the bucket, because the share of accelerates is 0.49 at any load.
#[test]
fn the_emulation_fills_its_bucket_while_idle() {
    let mut router = router(&RouterParams { variant: Variant::Emulation, ..RouterParams::default() });
    let mut marks = |gap: u64| {
        let mut stay = 0;
        for n in 0..600 {
            let now = Time::from_millis(gap * 10_000 + n * gap);
            let mark = depart(&mut router, now, 0, Mark::Accelerate);
            stay += u32::from(n >= 100 && mark == Mark::Accelerate);
        }
        stay
    };
    assert!((243..=247).contains(&marks(1))); // 0.49 of 500
    assert!((488..=500).contains(&marks(2))); // and 0.49 for each of the idle opportunities
    assert_eq!(marks(4), 500);
}

/// Theorem 3.1: with delay tau, the queueing delay follows x' = tr(t - tau) / mu - 1 plus the additive increase. It settles
/// for delta above 2/3 tau, at A delta + d_t with A = eta - 1 + N / (mu tau). The linear border is 2/pi tau.
fn fluid(delta: f64, increase: f64) -> (f64, f64) {
    let (tau, d_t, dt, eta) = (0.1, 0.05, 1e-4, 0.98);
    let lag = (tau / dt) as usize;
    let mut x = vec![0.2; lag + 1];
    for step in lag..lag + 600_000 {
        let queue = x[step - lag]; // in seconds; the capacity is 1
        let slope = target_rate(eta, queue, 1.0, d_t, delta) + increase - 1.0;
        x.push((x[step] + dt * slope).max(0.0));
    }
    let end = &x[x.len() - 50_000..];
    (end.iter().copied().fold(f64::MAX, f64::min), end.iter().copied().fold(0.0, f64::max))
}

#[test]
fn the_loop_is_stable_above_two_thirds_of_the_delay() {
    for delta in [0.0667, 0.08, 0.1, 0.133, 0.3] {
        let (least, most) = fluid(delta, 0.1);
        let fixed = 0.05 + delta * (0.98 - 1.0 + 0.1);
        assert!((least - fixed).abs() < 1e-4 && (most - fixed).abs() < 1e-4, "{delta}: {least} {most}");
    }
    for delta in [0.06, 0.05] {
        let (least, most) = fluid(delta, 0.1);
        assert!(most - least > 0.005, "{delta}: {least} {most}"); // below 2/pi
    }
    assert_eq!(fluid(0.133, 0.01).1, 0.0); // A below zero: the queue is empty
}

/// Section 3.1: an accelerate sends two packets, a brake none, and 1/w is added for each.
#[test]
fn windows_are_those_of_the_rules() {
    assert_eq!([window(10.0, 1.0, 1.0, true), window(10.0, 1.0, 0.0, true)], [11.1, 9.1]);
    assert_eq!([window(10.0, 1.0, 1.0, false), window(10.0, 1.0, 0.0, false)], [11.0, 9.0]);
    assert_eq!(window(1.0, 1.0, 0.0, true), 1.0);
    assert_eq!(window(10.0, 2.0, 0.5, true), 10.2); // an ack of two
    // A window stays where the share is (1 - 1/w) / 2: 50 packets with eta of 0.98.
    assert!((window(50.0, 100.0, 0.49, true) - 50.0).abs() < 1e-9);
}

/// One ack returns the marks of all packets that it answers.
#[test]
fn stamps_count_marks() {
    let mut pending = Stamp::from(Header::SENT);
    Header::merge(&mut pending, &Header::BRAKED.into());
    Header::merge(&mut pending, &Header::BRAKED.into());
    assert_eq!(Header::from(pending), Header { accelerates: 1.0, packets: 3.0 });
    let mut law = Sender::new(&Params::default(), &FLOW);
    law.on_ack(&ack(&pending, 3, 10));
    assert!((law.windows()[0] - (10.0 - 1.0 + 0.3)).abs() < 1e-12, "{:?}", law.windows());
}

/// Behind a bottleneck without ABC the lesser window is CUBIC's, and the other is twice what is in flight.
#[test]
fn coexistence_takes_the_lesser_window() {
    let (sent, braked) = (Stamp::from(Header::SENT), Stamp::from(Header::BRAKED));
    let mut law = Sender::new(&Params::default(), &FLOW);
    (0..40).for_each(|n| law.on_ack(&ack(&sent, 1, 10 + n)));
    let [abc, cubic] = law.windows();
    assert!((abc - 50.0).abs() < 3.0 && cubic == 50.0, "{abc} {cubic}");
    law.on_congestion(RTT, Congestion::Loss { flight: 50 });
    assert!((law.cwnd() / 1500.0 - 35.0).abs() < 1e-9, "{}", law.cwnd() / 1500.0); // CUBIC's 0.7
    (0..100).for_each(|_| law.on_ack(&ack(&sent, 1, 35)));
    assert_eq!(law.windows()[0], 70.0);
    (0..60).for_each(|_| law.on_ack(&ack(&braked, 1, 35)));
    assert!(law.cwnd() < 15.0 * 1500.0 && law.windows()[1] > 30.0, "{:?}", law.windows());
    // A packet marked CE has lost its mark, and only CUBIC reacts.
    let before = law.windows();
    law.on_ack(&Ack { marked: 1, ..ack(&sent, 1, 35) });
    law.on_congestion(RTT, Congestion::Mark { flight: 35 });
    assert!(law.windows()[0] == before[0] && law.windows()[1] < before[1]);
    // Without the second window no loss matters, and a timeout leaves one packet.
    let mut alone = Sender::new(&Params { coexist: false, ..Params::default() }, &FLOW);
    alone.on_congestion(RTT, Congestion::Loss { flight: 10 });
    assert_eq!(alone.cwnd(), 15_000.0);
    alone.on_congestion(RTT, Congestion::Timeout { flight: 10 });
    assert_eq!(alone.cwnd(), 1500.0);
}

#[test]
fn a_sender_needs_routers_only_without_its_second_window() {
    let works = |coexist| Sender::traits(&Params { coexist, ..Params::default() }).works_without_routers;
    assert!(works(true) && !works(false));
    for p in [
        RouterParams { delta: Some(Time::ZERO), ..RouterParams::default() },
        RouterParams { token_limit: 1.0, ..RouterParams::default() },
        RouterParams { eta: Ratio::new(0.0), ..RouterParams::default() },
    ] {
        assert!(Router::check(&p).is_err(), "{p:?}");
    }
}

proptest! {
    /// The share is within 0 and 1, the bucket within its bounds, and only accelerates become something else, namely brakes.
    #[test]
    fn the_router_is_bounded(
        rate in 1e3f64..4e11,
        rtt_us in 1u64..20_000_000,
        limit in 2.0f64..100.0,
        emulation in any::<bool>(),
        packets in prop::collection::vec((0u64..1_000_000_000, 0u64..100_000_000, 40u32..9000, 0u16..4, 0u8..4), 1..200),
    ) {
        let variant = if emulation { Variant::Emulation } else { Variant::Paper };
        let rtt = Some(Time::from_micros(rtt_us));
        let p = RouterParams { rtt, token_limit: limit, variant, ..RouterParams::default() };
        let mut router = Router::new(&p, &RouterView::of(Rate::from_bps(rate)));
        let mut now = Time::ZERO;
        for (gap_ns, queue, size, before, other) in packets {
            now += Time::from_nanos(gap_ns);
            let view = LinkView { now, queue_bytes: queue, queue_packets: (queue / 1000) as u32 };
            match other {
                1 => router.on_arrival(view, PacketIn::of(size, None)),
                2 => router.on_change(LinkChange::Capacity(Rate::from_bps(rate * f64::from(size - 40) / 1000.0))),
                _ => {}
            }
            let (mut stamp, mut bits) = (Stamp::from(Header::SENT), before);
            router.on_departure(view, PacketOut { size, stamp: &mut stamp, bits: &mut bits }, || 0.0);
            prop_assert!((0.0..=1.0).contains(&router.share()), "{}", router.share());
            prop_assert!((0.0..=limit).contains(&router.tokens()), "{}", router.tokens());
            prop_assert!(router.dequeue_rate() >= 0.0 && router.dequeue_rate().is_finite());
            prop_assert!(router.target().is_finite());
            prop_assert!(bits == before || (Mark::read(before), Mark::read(bits)) == (Mark::Accelerate, Mark::Brake));
            prop_assert_eq!(Header::from(stamp) == Header::BRAKED, bits != before);
        }
    }

    /// The window is at least a packet, finite, and at most twice the packets in flight after an ack.
    #[test]
    fn the_sender_is_bounded(
        coexist in any::<bool>(),
        fair in any::<bool>(),
        initial in 0.1f64..1000.0,
        events in prop::collection::vec((1u32..100, 0u32..100_000, -1e3f64..1e3, -1e3f64..1e3, 0u8..6), 1..300),
    ) {
        let mut law = Sender::new(&Params { coexist, fair }, &FlowView { initial_window: initial, ..FLOW });
        let mut now = RTT;
        for (newly_acked, flight, accelerates, packets, kind) in events {
            now += Time::from_millis(1);
            match kind {
                0 => law.on_congestion(now, Congestion::Loss { flight }),
                1 => law.on_congestion(now, Congestion::Mark { flight }),
                2 => law.on_congestion(now, Congestion::Timeout { flight }),
                _ => {
                    let stamp = Stamp([accelerates, packets, 0.0]);
                    let marked = if kind == 3 { newly_acked } else { 0 };
                    law.on_ack(&Ack { now, marked, ..ack(&stamp, newly_acked, flight) });
                    let most = 2.0 * f64::from(flight.max(1));
                    prop_assert!(law.cwnd() <= most * 1500.0 + 1e-6, "{:?} {}", law.windows(), most);
                }
            }
            prop_assert!(law.cwnd() >= 1500.0 && law.cwnd().is_finite(), "{:?}", law.windows());
            prop_assert_eq!(Mark::read(law.bits()), Mark::Accelerate);
        }
    }

    /// Two flows that see the same share of accelerates come nearer to each other.
    #[test]
    fn windows_become_equal(a in 1.0f64..500.0, b in 1.0f64..500.0, share in 0.3f64..0.5) {
        // A round trip acknowledges a window, of which the law hears ack by ack.
        let round = |w: f64| (0..w.ceil() as u32).fold(w, |w, _| window(w, 1.0, share, true));
        let (mut big, mut small) = (a.max(b), a.min(b));
        for _ in 0..300 {
            (big, small) = (round(big), round(small));
        }
        // Both tend to 1 / (1 - 2 share), if that is a packet or more.
        let fixed = 1.0 / (1.0 - 2.0 * share).max(1e-3);
        prop_assert!(big - small <= (a - b).abs() + 1e-9, "{} {}", big, small);
        if fixed < 20.0 {
            prop_assert!((big - small).abs() < 0.5, "{} {}", big, small);
            prop_assert!((big - fixed).abs() < 0.5, "{} {}", big, fixed);
        }
    }
}
