//! HPCC against algorithm 1 of its paper, and against numbers of its authors' ns-3 model of HPCC-PINT.

use flowstamp_laws::hpcc::router::{Params as RouterParams, average, sample};
use flowstamp_laws::hpcc::sender::{Params, window};
use flowstamp_laws::hpcc::{Header, Router, Sender};
use flowstamp_laws::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::sender::{Ack, Congestion, FlowChange, FlowView, PathView, Probes, SenderLaw};
use flowstamp_laws::{Bytes, Rate, Ratio, Stamp, Time};
use proptest::prelude::*;

const FLOW: FlowView = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };
/// `T` of the paper's simulations.
const T: Time = Time::from_micros(13);

fn path(rate: Rate) -> FlowChange<'static, Params> {
    FlowChange::Path(PathView { hops: 1, rtt: Some(T), rate: Some(rate) })
}

/// A flow on a path of 100 Gb/s, and the packets that it has delivered.
struct Acked {
    law: Sender,
    delivered: u32,
}

impl Acked {
    fn new(params: Params) -> Self {
        let mut law = Sender::new(&Params { base_rtt: Some(T), ..params }, &FLOW);
        law.on_change(path(Rate::from_gbps(100.0)));
        Self { law, delivered: 0 }
    }

    /// An ack of one of `flight` packets, with this utilisation.
    fn ack(&mut self, utilization: f64, flight: u32) -> f64 {
        let stamp = Stamp::from(Header { utilization, capacity: 12.5e9 });
        self.delivered += 1;
        self.law.on_ack(&Ack { delivered: self.delivered, flight, ..Ack::of_one(T, T, &stamp) });
        self.law.window()
    }
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-12
}

/// Section 3.2: a flow starts at line rate, with a window of 100 Gb/s times 13 us, 162.5 kB. Section 3.3: a hundred flows
/// that add `W_AI` in a round trip fill the 5% that eta leaves. That is 81.25 B, of which section 5.1 makes 80.
#[test]
fn a_flow_starts_at_line_rate_with_the_papers_additive_increase() {
    let mut acked = Acked::new(Params::default());
    assert!(close(acked.law.window(), 162_500.0));
    assert_eq!(acked.law.cwnd(), 163_000.0); // whole packets
    let pacing = acked.law.pacing().expect("a pace");
    assert!(close(pacing.rate.bytes_per_sec(), 12.5e9) && pacing.probes == Some(Probes::NONE));
    acked.ack(0.5, 162); // begins the first round trip
    assert!(close(acked.ack(2.0, 162), 162_500.0 / (2.0 / 0.95) + 81.25));
}

/// Without a path that the engine knows, a flow starts with the transport's window.
#[test]
fn a_flow_on_an_unknown_path_starts_with_the_initial_window() {
    let mut law = Sender::new(&Params::default(), &FLOW);
    assert_eq!(law.cwnd(), 10_000.0);
    law.on_change(FlowChange::Path(PathView::default()));
    assert_eq!(law.cwnd(), 10_000.0);
    let pace = law.pacing().expect("a pace").rate.bytes_per_sec();
    assert!(close(pace, 10_000.0 / 13e-6), "{pace}");
}

/// Algorithm 1, lines 11 to 27, in its own variables, with utilisations that cross eta.
#[test]
fn windows_are_those_of_algorithm_1() {
    let (eta, max_stage, w_ai) = (0.95, 5, 80.0);
    let mut acked = Acked::new(Params { w_ai: Some(Bytes::new(80)), ..Params::default() });
    let (mut w, mut wc, mut stage) = (162_500.0f64, 162_500.0f64, 0);
    let (mut last_update_seq, mut snd_nxt) = (0u32, 100u32);
    let mut scaled = [0u32; 2];
    for seq in 1..3000u32 {
        let u = 0.9 + 0.2 * f64::from(seq * 37 % 101) / 101.0 - if seq > 1500 { 0.3 } else { 0.0 };
        let got = acked.ack(u, snd_nxt - (seq - 1));
        if last_update_seq == 0 {
            last_update_seq = snd_nxt; // the first ack begins the first round trip
        } else {
            let update_wc = seq > last_update_seq;
            if u >= eta || stage >= max_stage {
                w = wc / (u / eta) + w_ai;
                scaled[usize::from(u < eta)] += 1;
                if update_wc {
                    (stage, wc) = (0, w);
                }
            } else {
                w = wc + w_ai;
                if update_wc {
                    (stage, wc) = (stage + 1, w);
                }
            }
            (w, wc) = (w.min(162_500.0), wc.min(162_500.0));
            if update_wc {
                last_update_seq = snd_nxt;
            }
        }
        assert!(close(got, w), "ack {seq}: {got} {w}");
        snd_nxt = seq + 100;
    }
    assert!(scaled[0] > 100 && scaled[1] > 50, "{scaled:?}");
}

/// Rates in Mb/s that the authors' ns-3 model (`UpdateRateHpPint` of rdma-hw.cc) reaches from 100 Gb/s, for these
/// utilisations of successive round trips: target 0.95, `RATE_AI` 50 Mb/s, `MI_THRESH` 5. It works in rates, and a
/// window is a rate times `T`. The numbers follow by hand from its lines.
const NS3: [(f64, f64); 14] = [
    (1.9, 50_050.0),
    (1.2, 39_672.916_666_666_67),
    (0.95, 39_722.916_666_666_67),
    (0.8, 39_772.916_666_666_67),
    (0.81, 39_822.916_666_666_67),
    (0.82, 39_872.916_666_666_67),
    (0.83, 39_922.916_666_666_67),
    (0.84, 39_972.916_666_666_67),
    (0.85, 44_725.612_745_098_04),
    (0.94, 44_775.612_745_098_04),
    (0.96, 44_359.200_112_336_606),
    (0.5, 44_409.200_112_336_606),
    (0.5, 44_459.200_112_336_606),
    (3.8, 11_164.800_028_084_152),
];

#[test]
fn windows_are_those_of_the_authors_ns3_model() {
    // 50 Mb/s times 13 us are 81.25 B.
    let mut acked = Acked::new(Params { flows: 100.0, ..Params::default() });
    acked.ack(1.0, 1);
    for (n, (utilization, mbps)) in NS3.iter().enumerate() {
        let bytes = mbps * 1e6 / 8.0 * 13e-6;
        let got = acked.ack(*utilization, 1); // one packet in flight: each ack ends a round trip
        assert!((got / bytes - 1.0).abs() < 1e-9, "round trip {n}: {got} {bytes}");
    }
}

/// Line 13 divides the reference, so that acks of one round trip do not react twice to the same congestion.
#[test]
fn acks_of_a_round_trip_do_not_react_twice() {
    let mut acked = Acked::new(Params::default());
    acked.ack(0.9, 100);
    let once = acked.ack(1.9, 100);
    for _ in 0..50 {
        assert_eq!(acked.ack(1.9, 100), once);
    }
}

#[test]
fn losses_and_marks_change_nothing() {
    let mut acked = Acked::new(Params::default());
    let before = acked.law.window();
    for sign in
        [Congestion::Loss { flight: 9 }, Congestion::Mark { flight: 9 }, Congestion::Timeout { flight: 9 }]
    {
        acked.law.on_congestion(T, sign);
    }
    let stamp = Stamp::default();
    acked.law.on_ack(&Ack::of_one(T, T, &stamp)); // no router on the path
    assert_eq!(acked.law.window(), before);
}

/// A window below a packet becomes a window of one packet and a pace below one packet per round trip.
#[test]
fn a_window_below_a_packet_is_paced() {
    let mut acked = Acked::new(Params::default());
    acked.ack(1.0, 1);
    for _ in 0..5 {
        acked.ack(10.0, 1);
    }
    let window = acked.law.window();
    assert!((81.25..1000.0).contains(&window), "{window}");
    assert_eq!(acked.law.cwnd(), 1000.0);
    let pacing = acked.law.pacing().expect("a pace");
    assert!(close(pacing.rate.bytes_per_sec(), window / 13e-6));
    assert_eq!(pacing.probe_after(T, 40), Time::MAX); // no probe ever
}

#[test]
fn parameters_without_sense_are_refused() {
    let refused = |p: Params| Sender::check(&p).expect_err("nonsense").0;
    assert_eq!(refused(Params { eta: Ratio::new(0.0), ..Params::default() }), "eta");
    assert_eq!(refused(Params { flows: 0.5, ..Params::default() }), "flows");
    assert_eq!(refused(Params { flows: f64::NAN, ..Params::default() }), "flows");
    assert_eq!(refused(Params { base_rtt: Some(Time::ZERO), ..Params::default() }), "base_rtt");
    let router = RouterParams { base_rtt: Some(Time::ZERO) };
    assert_eq!(Router::check(&router).expect_err("nonsense").0, "base_rtt");
}

/// A router of 100 Gb/s.
struct Stamped {
    law: Router,
}

impl Stamped {
    fn new() -> Self {
        let view = RouterView::of(Rate::from_gbps(100.0));
        Self { law: Router::new(&RouterParams { base_rtt: Some(T) }, &view) }
    }

    fn arrives(&mut self, now: Time, size: u32) {
        let link = LinkView { now, queue_bytes: 0, queue_packets: 0 };
        self.law.on_arrival(link, PacketIn::of(size, None));
    }

    fn departs(&mut self, now: Time, queue_bytes: u64, before: Header) -> Header {
        let link = LinkView { now, queue_bytes, queue_packets: (queue_bytes / 1000) as u32 };
        let (mut stamp, mut bits) = (Stamp::from(before), 0);
        self.law.on_departure(link, PacketOut { size: 1000, stamp: &mut stamp, bits: &mut bits }, || 0.0);
        stamp.into()
    }
}

const NOTHING: Header = Header { utilization: 0.0, capacity: 0.0 };

/// The authors' ns-3 switch (the "accurate calc" of switch-node.cc), where a packet of 1000 B leaves so many ns after the
/// last and so many bytes stay in the queue: its `newU`, by hand from its lines, `u = (qlen/T + size/dt)/B` and
/// `newU = U (1 - dt/T) + u dt/T`.
const SWITCH: [(u64, u64, f64); 7] = [
    (80, 0, 0.006_153_846_153_846_154),
    (80, 5_000, 0.012_459_171_597_633_137),
    (80, 20_000, 0.019_293_742_375_967_23),
    (160, 20_000, 0.026_724_919_984_594_375),
    (6_500, 19_000, 0.077_977_844_607_681_8),
    (13_000, 18_000, 0.116_923_076_923_076_92),
    (80, 18_000, 0.123_039_053_254_437_86),
];

#[test]
fn utilisation_is_that_of_the_authors_ns3_switch() {
    let mut router = Stamped::new();
    let (mut now, mut queue) = (Time::from_secs(1), 0u64);
    router.arrives(now, 1000);
    let idle = router.departs(now, 0, NOTHING);
    assert_eq!(idle, Header { utilization: 0.0, capacity: 12.5e9 });
    for (step, (ns, left, expected)) in SWITCH.iter().enumerate() {
        now += Time::from_nanos(*ns);
        router.arrives(now, (1000 + left - queue) as u32); // one packet leaves
        queue = *left;
        let got = router.departs(now, queue, NOTHING).utilization;
        assert!((got / expected - 1.0).abs() < 1e-12, "step {step}: {got} {expected}");
    }
}

/// A link that is always busy with a constant queue has `U = 1 + q / (B T)`, whoever's packets keep it busy.
#[test]
fn a_busy_link_is_used_by_one_and_its_queue() {
    let mut router = Stamped::new();
    let mut now = Time::from_secs(1);
    router.arrives(now, 16_250); // a tenth of B T
    let mut last = 0.0;
    for _ in 0..3_000 {
        now += Time::from_nanos(160);
        router.arrives(now, 2000); // one of two packets is of another protocol
        last = router.departs(now, 15_250, NOTHING).utilization;
    }
    assert!((last - 1.0 - 15_250.0 / 162_500.0).abs() < 1e-9, "{last}");
    // Where the buffer overflows, more arrives than leaves.
    for _ in 0..3_000 {
        now += Time::from_nanos(160);
        router.arrives(now, 9000);
        last = router.departs(now, 15_250, NOTHING).utilization;
    }
    assert!((last - 1.0 - 15_250.0 / 162_500.0).abs() < 1e-9, "{last}");
}

/// A path's packets carry the utilisation of its busiest link and the capacity of its slowest.
#[test]
fn packets_carry_the_busiest_link_and_the_slowest() {
    let mut router = Stamped::new();
    let now = Time::from_secs(1);
    let before = Header { utilization: 0.7, capacity: 1e9 };
    assert_eq!(router.departs(now, 0, before), before);
    let before = Header { utilization: 0.7, capacity: 5e10 };
    assert_eq!(router.departs(now, 0, before), Header { utilization: 0.7, capacity: 12.5e9 });
    router.law.on_change(LinkChange::Capacity(Rate::from_gbps(8.0)));
    assert_eq!(router.departs(now, 0, before).capacity, 1e9);
    router.law.on_change(LinkChange::Capacity(Rate::ZERO));
    let utilization = router.departs(now + T, 0, before).utilization;
    assert!(utilization.is_finite());
}

proptest! {
    /// Line 9 is an average: `U` stays within its samples, and a sample over `T` replaces it.
    #[test]
    fn utilisation_is_an_average(
        samples in prop::collection::vec((0.0..1e6f64, 0.0..12.5e9f64, 1e-9..=13e-6f64), 1..50),
    ) {
        let (mut u, mut most) = (0.0f64, 0.0f64);
        for (queue, rate, tau) in samples {
            let sample = sample(queue, rate, 12.5e9, 13e-6);
            most = most.max(sample);
            u = average(u, sample, tau, 13e-6);
            prop_assert!(u >= 0.0 && u <= most * (1.0 + 1e-12));
            prop_assert!(close(average(u, 1.0 + sample, 13e-6, 13e-6), 1.0 + sample));
        }
    }

    /// The window is finite and positive, and never above line rate times the longer of `T` and the RTT.
    #[test]
    fn windows_stay_within_the_path(
        acks in prop::collection::vec((0.0..1e3f64, 1u32..500, 1u64..1_000_000), 1..200),
        eta in 0.01..=1.0f64,
        max_stage in 0u32..10,
        w_ai in prop::option::of(0u64..1_000_000),
    ) {
        let params = Params {
            eta: Ratio::new(eta), max_stage, base_rtt: Some(T), w_ai: w_ai.map(Bytes::new), flows: 100.0,
        };
        prop_assert_eq!(Sender::check(&params), Ok(()));
        let mut law = Sender::new(&params, &FLOW);
        law.on_change(path(Rate::from_gbps(100.0)));
        let (mut delivered, mut min_rtt) = (0, Time::MAX);
        for (utilization, flight, rtt_ns) in acks {
            let rtt = Time::from_nanos(rtt_ns);
            (delivered, min_rtt) = (delivered + 1, min_rtt.min(rtt));
            let stamp = Stamp::from(Header { utilization, capacity: 12.5e9 });
            law.on_ack(&Ack { delivered, flight, min_rtt, ..Ack::of_one(rtt, rtt, &stamp) });
            let most = 12.5e9 * min_rtt.as_secs_f64().max(13e-6);
            prop_assert!(law.window() >= 0.0 && law.window() <= most * (1.0 + 1e-12), "{}", law.window());
            prop_assert!(law.cwnd() >= 1000.0 && law.cwnd().is_finite());
            let pace = law.pacing().expect("a pace").rate.bytes_per_sec();
            prop_assert!(pace.is_finite() && pace <= 12.5e9 * (1.0 + 1e-12), "{pace}");
        }
    }

    /// Line 13 leaves the window where `U` is `eta`, except for `W_AI`, and scales it otherwise.
    #[test]
    fn eta_is_the_rest_of_the_window(reference in 1.0..1e9f64, eta in 0.01..=1.0f64, u in 0.001..100.0f64) {
        prop_assert!(close(window(reference, eta, eta, true, 80.0).0, reference + 80.0));
        let scaled = window(reference, u, eta, true, 0.0).0;
        prop_assert!((scaled * u / (reference * eta) - 1.0).abs() < 1e-12);
        prop_assert_eq!(window(reference, u, eta, false, 80.0).1, u >= eta);
    }
}
