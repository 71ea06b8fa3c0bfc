//! Properties of the XCP law (Katabi 2002, section 3.5 and appendix A), in both encodings.

use flowstamp_laws::Stamp;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::sender::{Ack, Congestion, Feedback, FlowChange, FlowView, PathView, SenderLaw};
use flowstamp_laws::stamp::StampLaw;
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::xcp::router::{Params, Router};
use flowstamp_laws::xcp::sender::StampedWindow;
use flowstamp_laws::xcp::{Encoding, Sender, Throughput, Window};
use proptest::prelude::*;

mod blind;
mod fairness;
mod losses;
mod made;
mod wireless;

use made::{Made, capacity, drive, feedback, only_lowers, packet, stays_finite};

const CONTROL: usize = 0;
const QUEUE: usize = 1;

/// With the times of the authors' ns-2 model and the draft.
fn params() -> Params {
    Params {
        initial_interval: Some(Time::from_millis(50)),
        min_interval: Time::from_millis(1),
        min_queue_interval: Time::from_millis(2),
        ..Params::default()
    }
}

fn on<E: Encoding>(capacity: Rate) -> Router<E> {
    Router::new(&params(), &RouterView::of(capacity))
}

/// In an interval the sum of increases is at most the positive pool, that of decreases at most the negative one.
fn within_pools<E: Encoding>(capacity: Rate, intervals: &[Vec<Made>]) -> Result<(), TestCaseError> {
    let mut router = Router::<E>::new(&params(), &RouterView::of(capacity));
    let mut now = Time::ZERO;
    for packets in intervals {
        let (pool_pos, pool_neg) = router.residues();
        prop_assert!(pool_pos >= 0.0 && pool_neg >= 0.0);
        let (mut given, mut taken) = (0.0, 0.0);
        for p in packets {
            let view = LinkView { now, queue_bytes: p.queue, queue_packets: 0 };
            // The flow asks for more than there is, so that this router decides alone.
            let mut stamp = E::header(p.cwnd, p.rtt_s, f64::from(p.size), 1e30);
            router.on_arrival(view, PacketIn::of(p.size, Some(&stamp)));
            let before = router.residues();
            router.on_departure(view, PacketOut { size: p.size, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
            let after = router.residues();
            prop_assert!(after.0 >= 0.0 && after.1 >= 0.0, "a residue below zero: {after:?}");
            let net = feedback::<E>(&stamp, p);
            given += net.max(0.0);
            taken += (-net).max(0.0);
            // The pools lost exactly the packet's feedback.
            let moved = (before.0 - after.0) - (before.1 - after.1);
            let tolerance = 1.0 + 1e-9 * (before.0 + before.1); // whole bytes/s in the draft's encoding
            prop_assert!((moved - net).abs() <= tolerance, "{moved} moved, {net} written");
        }
        let rounding = packets.len() as f64; // one byte/s a packet at most
        prop_assert!(given <= pool_pos * (1.0 + 1e-9) + 1e-6, "{given} given of {pool_pos}");
        prop_assert!(taken <= pool_neg * (1.0 + 1e-9) + rounding, "{taken} taken of {pool_neg}");
        now = router.on_timer(CONTROL, LinkView { now, queue_bytes: 0, queue_packets: 0 });
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_router_only_lowers(c in capacity(), t in prop::collection::vec(prop::collection::vec(packet(), 0..40), 1..8)) {
        only_lowers::<_, Window>(on::<Window>(c), &t)?;
        only_lowers::<_, Throughput>(on::<Throughput>(c), &t)?;
    }

    #[test]
    fn nothing_overflows(c in capacity(), t in prop::collection::vec(prop::collection::vec(packet(), 0..40), 1..8)) {
        stays_finite::<_, Window>(on::<Window>(c), &t)?;
        stays_finite::<_, Throughput>(on::<Throughput>(c), &t)?;
    }

    #[test]
    fn what_is_handed_out_is_in_the_pools(
        c in capacity(),
        t in prop::collection::vec(prop::collection::vec(packet(), 0..60), 2..6),
    ) {
        within_pools::<Window>(c, &t)?;
        within_pools::<Throughput>(c, &t)?;
    }

    /// Same traffic, both encodings: the same change of throughput, up to the draft's rounding. Its fields hold
    /// seconds to 3.7 ns and whole bytes/s: with inter-packet times above 10 us and RTTs above 1 ms the relative error
    /// of X is below 2e-4, and so is that of every sum.
    #[test]
    fn the_encodings_agree(
        mbps in 1.0..1000.0f64,
        rtts in prop::collection::vec(0.001..0.5f64, 2..20),
        windows in prop::collection::vec(2.0..100.0f64, 20),
    ) {
        let size = 1000;
        let made: Vec<Made> = rtts.iter().zip(&windows)
            .map(|(rtt, w)| Made { cwnd: w * 1000.0, rtt_s: *rtt, size, wish: 1e9, queue: 0 }).collect();
        let traffic = vec![made.clone(), made];
        let mut by_window = Vec::new();
        let mut by_throughput = Vec::new();
        let c = Rate::from_mbps(mbps);
        drive::<_, Window>(on::<Window>(c), &traffic, |_, _, _, got| { by_window.push(got); Ok(()) })?;
        drive::<_, Throughput>(on::<Throughput>(c), &traffic, |_, _, _, got| { by_throughput.push(got); Ok(()) })?;
        let scale = by_window.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        for (a, b) in by_window.iter().zip(&by_throughput) {
            prop_assert!((a - b).abs() <= 1.0 + scale * 1e-3, "{a} and {b}");
        }
    }

    /// The window change that a sender makes of an echoed stamp is the same in both, to the rounding of the fields.
    #[test]
    fn the_senders_agree(change in -1e6..1e6f64, rtt_ms in 1.0..1000.0f64) {
        let rtt_s = rtt_ms / 1e3;
        let mut a = Window::header(1e5, rtt_s, 1000.0, 1e12);
        let mut b = Throughput::header(1e5, rtt_s, 1000.0, 1e12);
        Window::write_feedback(&mut a, change / rtt_s, rtt_s);
        Throughput::write_feedback(&mut b, change / rtt_s, rtt_s);
        let (x, y) = (Window::window_change(&a, rtt_s), Throughput::window_change(&b, rtt_s));
        prop_assert!((x - y).abs() <= rtt_s * 1.0 + 1e-6, "{x} and {y}");
    }

    /// The window never falls below a packet, never becomes infinite, whatever comes back.
    #[test]
    fn a_sender_survives_any_feedback(changes in prop::collection::vec(-1e12..1e12f64, 1..100), price in 0.1..100.0f64) {
        let flow = FlowView { packet_bytes: 1000, initial_window: 2.0, app_rate: None };
        let params = flowstamp_laws::xcp::sender::Params { price, ..Default::default() };
        let mut law = Sender::<Window>::new(&params, &flow);
        for change in changes {
            let stamp = Stamp([law.cwnd() / price, 0.1, change]);
            law.on_ack(&Ack::of_one(Time::ZERO, Time::from_millis(100), &stamp));
            prop_assert!(law.cwnd() >= 1000.0 && law.cwnd().is_finite());
            prop_assert!(law.stamp(Time::ZERO, Time::from_millis(100)).0.iter().all(|w| w.is_finite()));
        }
    }
}

fn view(queue_bytes: u64) -> LinkView {
    LinkView { now: Time::ZERO, queue_bytes, queue_packets: 0 }
}

/// Appendix A by hand: ten packets of one flow on 1 MB/s in the first interval of 50 ms.
#[test]
fn numbers_of_one_interval() {
    let mut router = Router::<Window>::new(&params(), &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    for _ in 0..10 {
        router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([10_000.0, 0.1, 1e9]))));
    }
    router.on_timer(CONTROL, view(0));
    // d = 0.1; y = 10 kB / 50 ms = 200 kB/s; F = 0.4 (1e6 - 2e5) = 320 kB/s; h = max(0, 2e4 - 3.2e5) = 0.
    assert!((router.avg_rtt_s() - 0.1).abs() < 1e-12);
    let (give, take) = router.residues();
    assert!((give - 320_000.0).abs() < 1e-6, "{give}");
    assert!(take.abs() < 1e-9, "{take}");
    // X = 0.1 x 1000 / 10000 = 10 ms, sum X = 0.1: xi_p = 3.2e6; each packet gets 32 kB/s, a window of 3200 bytes.
    let mut stamp = Stamp([10_000.0, 0.1, 1e9]);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
    assert!((stamp.0[2] - 3200.0).abs() < 1e-6, "{}", stamp.0[2]);
}

/// In an interval of 0.1 s, `max_fill` bounds increases to the free part of its share of the buffer. It does not change decreases.
#[test]
fn increases_fit_into_the_buffer() {
    let capacity = Rate::from_bytes_per_sec(1e6);
    let bytes = RouterView::of(capacity); // 1 MB
    let packets = RouterView { limit: Limit::Packets(1000), ..bytes };
    for (link, queue_bytes, queue_packets, most) in [
        (bytes, 590_000, 0, 100_000.0),
        (packets, 0, 590, 100_000.0),
        (packets, 0, 700, 0.0),
        (packets, 0, 0, 320_000.0), // as in `numbers_of_one_interval`: nothing bounds it
    ] {
        let mut router = Router::<Window>::new(&Params { max_fill: Some(0.6), ..params() }, &link);
        for _ in 0..10 {
            router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([10_000.0, 0.1, 1e9]))));
        }
        router.on_timer(CONTROL, LinkView { now: Time::ZERO, queue_bytes, queue_packets });
        let (give, take) = router.residues();
        assert!((give - most).abs() < 1e-6 && take.abs() < 1e-9, "{give} {take}");
        // The ten packets share it evenly.
        let mut stamp = Stamp([10_000.0, 0.1, 1e9]);
        router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
        assert!((stamp.0[2] - most / 100.0).abs() < 1e-6, "{}", stamp.0[2]);
    }
    // The bound follows the buffer.
    let mut router = Router::<Window>::new(&Params { max_fill: Some(0.6), ..params() }, &bytes);
    router.on_change(LinkChange::Buffer(Limit::Packets(100)));
    for _ in 0..10 {
        router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([10_000.0, 0.1, 1e9]))));
    }
    router.on_timer(CONTROL, LinkView { now: Time::ZERO, queue_bytes: 50_000, queue_packets: 50 });
    assert!((router.residues().0 - 100_000.0).abs() < 1e-6, "{:?}", router.residues());
}

/// Near full utilisation a tenth of the traffic is shuffled (eq. 2), and equal flows get nothing net of it.
#[test]
fn shuffling_moves_a_tenth() {
    let capacity = 200_000.0;
    let mut router = Router::<Window>::new(&params(), &RouterView::of(Rate::from_bytes_per_sec(capacity)));
    for _ in 0..10 {
        router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([10_000.0, 0.1, 1e9]))));
    }
    router.on_timer(CONTROL, view(0));
    let (give, take) = router.residues();
    assert!((give - 20_000.0).abs() < 1e-6 && (take - 20_000.0).abs() < 1e-6, "{give} {take}");
    let mut stamp = Stamp([10_000.0, 0.1, 1e9]);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
    assert!(stamp.0[2].abs() < 1e-9);
    // A flow of half the window has half the packet rate: it gains, and one of twice the window loses.
    let mut small = Stamp([5_000.0, 0.1, 1e9]);
    let mut large = Stamp([20_000.0, 0.1, 1e9]);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut small, bits: &mut 0 }, || 0.5);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut large, bits: &mut 0 }, || 0.5);
    assert!(small.0[2] > 0.0 && large.0[2] < 0.0, "{small:?} {large:?}");
}

/// The average is over flows (appendix A, footnote 6): a flow's many packets do not outweigh another's few.
#[test]
fn the_average_rtt_is_over_flows() {
    let mut router = Router::<Window>::new(&params(), &RouterView::of(Rate::from_mbps(100.0)));
    // In one interval of 0.2 s: flow A, RTT 0.1 s, 100 packets a window; flow B, RTT 0.2 s, 2 packets a window.
    for _ in 0..200 {
        router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([100_000.0, 0.1, 0.0]))));
    }
    for _ in 0..2 {
        router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([2_000.0, 0.2, 0.0]))));
    }
    router.on_timer(CONTROL, view(0));
    assert!((router.avg_rtt_s() - 0.15).abs() < 1e-9, "{}", router.avg_rtt_s());
}

/// Packets without an RTT count as traffic, enter no sum and are given no increase (deviation 2).
#[test]
fn packets_without_an_rtt() {
    let mut router = Router::<Window>::new(&params(), &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    for _ in 0..10 {
        router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([2_000.0, 0.0, 500.0]))));
    }
    router.on_timer(CONTROL, view(0));
    assert_eq!(router.residues(), (0.0, 0.0));
    let mut input = 0.0;
    router.variables(&mut |name, value| {
        if name == "input_rate_bps" {
            input = value;
        }
    });
    assert!((input - 10_000.0 * 8.0 / 0.05).abs() < 1e-6, "{input}");
    let mut stamp = Stamp([2_000.0, 0.0, 500.0]);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
    assert_eq!(stamp.0[2], 0.0);
    let mut stamp = Stamp([2_000.0, 0.0, -500.0]);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
    assert_eq!(stamp.0[2], -500.0, "a decrease passes");
}

/// After an idle interval the RTT is remembered and nothing is handed out (deviation 4).
#[test]
fn an_idle_interval() {
    let mut router = Router::<Window>::new(&params(), &RouterView::of(Rate::from_mbps(10.0)));
    router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([10_000.0, 0.08, 1e9]))));
    let next = router.on_timer(CONTROL, view(0));
    assert_eq!(next, Time::from_millis(80));
    let next = router.on_timer(CONTROL, view(0));
    assert_eq!(next, Time::from_millis(80));
    assert_eq!(router.residues(), (0.0, 0.0));
    let mut stamp = Stamp([10_000.0, 0.08, 1e9]);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
    assert_eq!(stamp.0[2], 0.0);
}

/// The persistent queue is the least seen by arrivals, sought anew each propagation delay (section 3.5.1).
#[test]
fn the_persistent_queue() {
    let persistent = |router: &Router<Window>| {
        let mut found = f64::NAN;
        router.variables(&mut |name, value| {
            if name == "persistent_queue_bytes" {
                found = value;
            }
        });
        found
    };
    let stamp = Stamp([10_000.0, 0.1, 0.0]);
    let mut router = Router::<Window>::new(&params(), &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    router.on_arrival(view(9000), PacketIn::of(1000, Some(&stamp)));
    router.on_timer(CONTROL, view(9000));
    router.on_timer(QUEUE, view(9000));
    assert_eq!(persistent(&router), 0.0, "the queue was empty at the start");
    for queue in [30_000, 20_000, 40_000] {
        router.on_arrival(view(queue), PacketIn::of(1000, Some(&stamp)));
    }
    // The local queueing delay, 50 kB at 1 MB/s, comes off the average RTT of 100 ms.
    let next = router.on_timer(QUEUE, view(50_000));
    assert_eq!(persistent(&router), 9000.0, "a burst is not persistent");
    assert_eq!(next, Time::from_millis(50));
    router.on_arrival(view(60_000), PacketIn::of(1000, Some(&stamp)));
    router.on_timer(QUEUE, view(55_000));
    assert_eq!(persistent(&router), 50_000.0);
}

/// Appendix A's second branch: what an upstream router refused is not taken from this one's pools as if it were given.
#[test]
fn an_upstream_bottleneck_counts() {
    let setup = || {
        let mut router = Router::<Window>::new(&params(), &RouterView::of(Rate::from_bytes_per_sec(1e6)));
        for _ in 0..10 {
            router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([10_000.0, 0.1, 1e9]))));
        }
        router.on_timer(CONTROL, view(0));
        router
    };
    // 3200 bytes are on offer (see numbers_of_one_interval); upstream allowed 1000, that is 10 kB/s.
    let mut router = setup();
    let mut stamp = Stamp([10_000.0, 0.1, 1000.0]);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
    assert_eq!(stamp.0[2], 1000.0);
    assert!((router.residues().0 - 310_000.0).abs() < 1e-6);
    // Upstream takes: nothing is given here.
    let mut router = setup();
    let mut stamp = Stamp([10_000.0, 0.1, -1000.0]);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
    assert_eq!(stamp.0[2], -1000.0);
    assert!((router.residues().0 - 320_000.0).abs() < 1e-6);
}

/// The same near full load, where something is taken too: 20 kB/s in each pool (see shuffling_moves_a_tenth).
#[test]
fn an_upstream_bottleneck_spares_the_taking() {
    let residues_after = |upstream: f64, cwnd: f64| {
        let mut router =
            Router::<Window>::new(&params(), &RouterView::of(Rate::from_bytes_per_sec(200_000.0)));
        for _ in 0..10 {
            router.on_arrival(view(0), PacketIn::of(1000, Some(&Stamp([10_000.0, 0.1, 1e9]))));
        }
        router.on_timer(CONTROL, view(0));
        let mut stamp = Stamp([cwnd, 0.1, upstream]);
        router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
        assert_eq!(stamp.0[2], upstream, "upstream allowed less");
        router.residues()
    };
    // Each packet of a window of 10 kB is offered 2 kB/s and asked for 2 kB/s; one of 5 kB is offered 4, net 2 kB/s.
    // Upstream allows 100 bytes, 1 kB/s: that is given, and the other 1 kB/s counts as taken.
    let (give, take) = residues_after(100.0, 5_000.0);
    assert!((give - 19_000.0).abs() < 1e-6 && (take - 19_000.0).abs() < 1e-6, "{give} {take}");
    // Upstream takes 1 kB/s: nothing is given, and the net offer of 2 kB/s and that 1 kB/s count as taken.
    let (give, take) = residues_after(-100.0, 5_000.0);
    assert!((give - 20_000.0).abs() < 1e-6 && (take - 17_000.0).abs() < 1e-6, "{give} {take}");
    // A flow that is slowed here as well, by 1 kB/s net, and by 3 kB/s upstream: those 3 count.
    let (give, take) = residues_after(-300.0, 20_000.0);
    assert!((give - 20_000.0).abs() < 1e-6 && (take - 17_000.0).abs() < 1e-6, "{give} {take}");
}

/// Section 6: routers are shown cwnd / price, so a flow's increase is in proportion to its price.
#[test]
fn increases_follow_the_price() {
    let mut router = Router::<Window>::new(&params(), &RouterView::of(Rate::from_mbps(10.0)));
    let flow = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };
    let rtt = Time::from_millis(100);
    let header = |price| {
        Sender::<Window>::new(&flowstamp_laws::xcp::sender::Params { price, ..Default::default() }, &flow)
            .stamp(Time::ZERO, rtt)
    };
    let (mut one, mut three) = (header(1.0), header(3.0));
    router.on_arrival(view(0), PacketIn::of(1000, Some(&one)));
    router.on_arrival(view(0), PacketIn::of(1000, Some(&three)));
    router.on_timer(CONTROL, view(0));
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut one, bits: &mut 0 }, || 0.5);
    router.on_departure(view(0), PacketOut { size: 1000, stamp: &mut three, bits: &mut 0 }, || 0.5);
    assert!((three.0[2] / one.0[2] - 3.0).abs() < 1e-9, "{} {}", one.0[2], three.0[2]);
}

/// Section 3.3: a flow that wants r asks for (r rtt - cwnd) over the packets of its window, and stops there.
#[test]
fn a_desired_rate_is_asked_for_and_kept() {
    let flow = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };
    let params = flowstamp_laws::xcp::sender::Params {
        desired_rate: Some(Rate::from_bytes_per_sec(2e5)),
        ..Default::default()
    };
    let mut law = Sender::<Window>::new(&params, &flow);
    let rtt = Time::from_millis(100);
    let stamp = law.stamp(Time::ZERO, rtt);
    // (2e5 x 0.1 - 1e4) / 10 packets = 1000 bytes a packet.
    assert!((stamp.0[2] - 1000.0).abs() < 1e-9);
    let mut ack = Ack { flight: 10, ..Ack::of_one(Time::ZERO, rtt, &stamp) };
    for _ in 0..20 {
        law.on_ack(&ack);
    }
    assert!((law.cwnd() - 20_000.0).abs() < 1e-9, "{}", law.cwnd());
    // In fast recovery only decreases count.
    let take = Stamp([10_000.0, 0.1, -500.0]);
    ack.in_recovery = true;
    law.on_ack(&ack);
    assert!((law.cwnd() - 20_000.0).abs() < 1e-9);
    law.on_ack(&Ack { stamp: &take, ..ack });
    assert!((law.cwnd() - 19_500.0).abs() < 1e-9);
    // Losses as TCP: half, and one packet at a timeout.
    law.on_congestion(Time::ZERO, Congestion::Loss { flight: 18 });
    assert!((law.cwnd() - 9_000.0).abs() < 1e-9);
    law.on_congestion(Time::ZERO, Congestion::Timeout { flight: 9 });
    assert!((law.cwnd() - 1_000.0).abs() < 1e-9);
}

/// An application's rate is wished for with a packet to spare, since only whole packets leave (deviation 2).
#[test]
fn an_application_rate_has_a_packet_to_spare() {
    let flow =
        FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: Some(Rate::from_bytes_per_sec(2e5)) };
    let stamp = Sender::<Window>::new(&Default::default(), &flow).stamp(Time::ZERO, Time::from_millis(100));
    assert!((stamp.0[2] - 1100.0).abs() < 1e-9, "{stamp:?}");
}

/// Routers see the sent bytes, the whole packets of the window (the sender's deviation 4), or the exact window.
#[test]
fn what_is_stamped_is_what_is_sent() {
    let rtt = Time::from_millis(100);
    for (window, packets) in [(1.0, 1.0), (2.9, 2.0), (3.0, 3.0), (1000.5, 1000.0)] {
        let flow = FlowView { packet_bytes: 1000, initial_window: window, app_rate: None };
        let sender = |stamped_window| {
            let params = flowstamp_laws::xcp::sender::Params { stamped_window, ..Default::default() };
            Sender::<Window>::new(&params, &flow).stamp(Time::ZERO, rtt).0[0]
        };
        assert!((sender(StampedWindow::InUse) - 1000.0 * packets).abs() < 1e-9);
        assert!((sender(StampedWindow::Exact) - 1000.0 * window).abs() < 1e-9);
    }
}

/// A packet that a router before this one allows less than its share: appendix A's books and the Internet-Draft's listing, by hand. Its
/// share is 700 - 200 bytes/s; 10 kB/s are left to take, or 300.
#[test]
fn each_encoding_keeps_its_own_books() {
    for (allowed, rest, paper, draft) in [
        (100.0, 1e4, (100.0, 400.0), (700.0, 600.0)),
        (-50.0, 1e4, (0.0, 550.0), (700.0, 750.0)),
        (100.0, 300.0, (100.0, 400.0), (400.0, 300.0)),
        // The listing has -700 from the pool of what is given: it stays as it is.
        (-1000.0, 300.0, (0.0, 1500.0), (0.0, 300.0)),
    ] {
        assert_eq!(Window::booked(700.0, 200.0, allowed, rest), paper);
        assert_eq!(Throughput::booked(700.0, 200.0, allowed, rest), draft);
    }
}

/// One ack for two packets brings both packets' changes, and the newer header (delayed acks).
#[test]
fn delayed_acks_add_up() {
    let mut pending = Stamp([10_000.0, 0.1, 300.0]);
    <Window as StampLaw>::merge(&mut pending, &Stamp([11_000.0, 0.2, -100.0]));
    assert_eq!(pending, Stamp([11_000.0, 0.2, 200.0]));
}

/// A law that is told nothing gives nothing until it knows an RTT, and its interval is then that (deviation 8).
#[test]
fn the_first_rtt_is_the_packets() {
    let mut router =
        Router::<Window>::new(&Params::default(), &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    let first = Router::<Window>::traits(&Params::default()).first_timers;
    assert_eq!(first[CONTROL], Some(Time::from_millis(1)));
    let view = |ms| LinkView { now: Time::from_millis(ms), queue_bytes: 0, queue_packets: 0 };
    assert_eq!(router.on_timer(CONTROL, view(1)), Time::from_millis(2));
    router.on_arrival(view(2), PacketIn::of(1000, Some(&Window::header(2000.0, 0.0, 1000.0, 0.0))));
    assert_eq!(router.on_timer(CONTROL, view(2)), Time::from_millis(3));
    assert_eq!(router.avg_rtt_s(), 0.0);
    router.on_arrival(view(3), PacketIn::of(1000, Some(&Window::header(2000.0, 0.25, 1000.0, 1e9))));
    assert_eq!(router.on_timer(CONTROL, view(3)), Time::from_millis(253));
    assert_eq!((router.residues(), router.avg_rtt_s()), ((0.0, 0.0), 0.25));
    router.on_arrival(view(100), PacketIn::of(1000, Some(&Window::header(2000.0, 0.25, 1000.0, 1e9))));
    router.on_timer(CONTROL, view(253));
    // alpha (C - y), y being 1000 bytes in 250 ms, and no more shuffled than that: gamma y is less.
    let (give, take) = router.residues();
    assert!((give - 0.4 * (1e6 - 4000.0)).abs() < 1e-6 && take == 0.0, "{give} {take}");
}

/// Section 8.2: the mean window over flows, not packets. In 100 ms a flow of 20 packets and 100 ms sends 20, one of 5 packets and 50 ms sends 10;
/// the mean of their windows is 12.5 packets, of their RTTs 75 ms. From its part, 300 kB/s (eq. 14), the flows use 200
/// + 100 kB/s: S_X = 0.
fn knows_its_flows<E: Encoding>() {
    let view = LinkView { now: Time::ZERO, queue_bytes: 0, queue_packets: 0 };
    let at = Params { initial_interval: Some(Time::from_millis(100)), ..params() };
    let mut router = Router::<E>::new(&at, &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    assert_eq!(router.own_flows(), None);
    router.on_change(LinkChange::Capacity(Rate::from_bytes_per_sec(3e5)));
    for (packets, window, rtt_s) in [(20, 20.0, 0.1), (10, 5.0, 0.05)] {
        let stamp = E::header(window * 1000.0, rtt_s, 1000.0, 0.0);
        (0..packets).for_each(|_| router.on_arrival(view, PacketIn::of(1000, Some(&stamp))));
    }
    router.on_arrival(view, PacketIn::of(40, None)); // an ack says nothing of windows
    router.on_arrival(view, PacketIn::of(1000, Some(&E::header(1000.0, 0.0, 1000.0, 0.0)))); // nor does a packet without an RTT
    router.on_timer(CONTROL, view);
    let flows = router.own_flows().expect("seen");
    // The draft's fields round to 2^-28 s: 3.7 ns of 5 ms.
    assert!((flows.window_bytes / 12_500.0 - 1.0).abs() < 1e-6, "{flows:?}");
    assert!((flows.rtt.as_secs_f64() / 0.075 - 1.0).abs() < 1e-6, "{flows:?}");
    let mut feedback = f64::NAN;
    router.variables(&mut |name, value| {
        if name == "aggregate_feedback_bps" {
            feedback = value;
        }
    });
    // alpha (3e5 - 3e5 - 400 - 10,000) 8 of eq. 13, with the ack's 40 B and the packet of no RTT in y_X.
    assert!((feedback + 0.4 * 10_400.0 * 8.0).abs() < 1e-6, "{feedback}");
    // An interval without packets: what was known stays.
    router.on_timer(CONTROL, view);
    assert_eq!(router.own_flows().map(|f| f.window_bytes), Some(flows.window_bytes));
}

#[test]
fn the_mean_window_is_over_flows() {
    knows_its_flows::<Window>();
    knows_its_flows::<Throughput>();
}

/// Section 8.2: an answer that has passed XCP routers alone and came from a receiver that echoes keeps the flow; one other router, now or
/// later, or a receiver that echoes nothing, makes it a TCP. A flow that does not ask does not look, and its packets'
/// bits stay unchanged.
fn asks_its_path<E: Encoding>() {
    const RTT: Time = Time::from_millis(100);
    let flow = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };
    let view = LinkView { now: Time::ZERO, queue_bytes: 0, queue_packets: 0 };
    let new = |negotiate| {
        let params = flowstamp_laws::xcp::sender::Params { negotiate, ..Default::default() };
        let mut law = Sender::<E>::new(&params, &flow);
        law.on_change(FlowChange::Path(PathView { hops: 3, ..PathView::default() }));
        assert_eq!(Sender::<E>::traits(&params).handshake, negotiate);
        law
    };
    let mut router = Router::<E>::new(&params(), &RouterView::of(Rate::from_mbps(10.0)));
    let mut after = |law: &Sender<E>, routers: u32| {
        let mut bits = law.bits();
        for _ in 0..routers {
            let packet = PacketOut { size: 1000, stamp: &mut Stamp([0.0; 3]), bits: &mut bits };
            router.on_departure(view, packet, || 0.5);
        }
        bits
    };
    let stamp = Stamp([0.0; 3]);
    // Two of three routers know XCP: TCP from its initial window, in slow start.
    let mut law = new(true);
    let bits = after(&law, 2);
    law.on_feedback(&Feedback { now: RTT, srtt: RTT, stamp: &stamp, bits, carried: 0.0 });
    assert_eq!((law.report().fallen_back, law.cwnd()), (Some(RTT), 10_000.0));
    assert_eq!((law.bits(), law.stamp(RTT, RTT)), (0, Stamp::default()));
    law.on_ack(&Ack { flight: 10, ..Ack::of_one(RTT * 2, RTT, &stamp) });
    assert_eq!(law.cwnd(), 11_000.0, "slow start");
    law.on_congestion(RTT * 3, Congestion::Loss { flight: 10 });
    // RFC 5681: half of the flight.
    assert_eq!(law.cwnd(), 5000.0);
    law.on_congestion(RTT * 4, Congestion::Timeout { flight: 5 });
    assert_eq!(law.cwnd(), 1000.0);
    // A receiver without XCP: no bits come back.
    let mut law = new(true);
    law.on_feedback(&Feedback { now: RTT, srtt: RTT, stamp: &stamp, bits: 0, carried: 0.0 });
    assert_eq!(law.report().fallen_back, Some(RTT));
    // All know XCP: it stays, and obeys; then the path changes, and half of the flight is left.
    let mut law = new(true);
    let bits = after(&law, 3);
    law.on_feedback(&Feedback { now: RTT, srtt: RTT, stamp: &stamp, bits, carried: 0.0 });
    assert_eq!((law.report().fallen_back, law.bits()), (None, new(true).bits()));
    let granted = E::header(10_000.0, 0.1, 1000.0, 500.0);
    law.on_ack(&Ack { flight: 10, bits, ..Ack::of_one(RTT * 2, RTT, &granted) });
    assert_eq!((law.report().fallen_back, law.cwnd()), (None, 10_500.0));
    let bits = after(&law, 2);
    law.on_ack(&Ack { flight: 10, bits, ..Ack::of_one(RTT * 3, RTT, &granted) });
    assert_eq!(law.report().fallen_back, Some(RTT * 3));
    assert!((5000.0..6000.0).contains(&law.cwnd()), "{}", law.cwnd());
    // A flow that does not ask.
    let mut law = new(false);
    let bits = after(&law, 1);
    law.on_ack(&Ack { bits, ..Ack::of_one(RTT, RTT, &granted) });
    assert_eq!((bits, law.report().fallen_back, law.cwnd()), (0, None, 10_500.0));
}

#[test]
fn a_path_without_xcp_makes_it_a_tcp() {
    asks_its_path::<Window>();
    asks_its_path::<Throughput>();
}

/// A pace is the window over the RTT, none before the first RTT nor once the flow is a TCP, and moves no window: beside a sender without
/// it nothing else differs.
fn paces<E: Encoding>(acks: &[(u32, f64, u8)], negotiate: bool) -> Result<(), TestCaseError> {
    let flow = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };
    let new = |pacing| {
        let params = flowstamp_laws::xcp::sender::Params { negotiate, pacing, ..Default::default() };
        Sender::<E>::new(&params, &flow)
    };
    let (mut paced, mut plain) = (new(true), new(false));
    prop_assert_eq!(paced.pacing(), None);
    let mut now = Time::ZERO;
    for (rtt_us, change, event) in acks {
        let srtt = Time::from_micros(u64::from(*rtt_us));
        now += srtt;
        let given = E::header(plain.cwnd(), srtt.as_secs_f64(), 1000.0, *change);
        for law in [&mut paced, &mut plain] {
            match event {
                0 => law.on_congestion(now, Congestion::Loss { flight: 7 }),
                1 => law.on_congestion(now, Congestion::Timeout { flight: 7 }),
                // The granted part of the request, as if all routers knew XCP; or else not.
                2 if negotiate => law.on_ack(&Ack { bits: 0, ..Ack::of_one(now, srtt, &given) }),
                _ => law.on_ack(&Ack { bits: law.bits(), ..Ack::of_one(now, srtt, &given) }),
            }
        }
        prop_assert_eq!(paced.cwnd(), plain.cwnd());
        prop_assert_eq!(paced.stamp(now, srtt), plain.stamp(now, srtt));
        prop_assert_eq!(plain.pacing(), None);
        if paced.report().fallen_back.is_some() {
            prop_assert_eq!(paced.pacing(), None);
        } else if *event > 1 {
            let rate = paced.pacing().expect("a pace").rate.bytes_per_sec();
            let expected = paced.cwnd() / srtt.as_secs_f64();
            prop_assert!((rate / expected - 1.0).abs() < 1e-12, "{} {}", rate, expected);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_pace_is_the_window_over_the_rtt(
        acks in prop::collection::vec((100u32..2_000_000, -3000.0..3000.0, 0u8..6), 1..60),
        negotiate: bool,
    ) {
        paces::<Window>(&acks, negotiate)?;
        paces::<Throughput>(&acks, negotiate)?;
    }
}
