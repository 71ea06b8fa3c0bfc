//! An XCP macro-flow between edges of a cloud (Katabi 2002, section 8.1), and datagrams.

use flowstamp_laws::router::{LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::sender::{Congestion, Feedback, FlowChange, FlowView, SenderLaw};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::xcp::edge::{
    Headers, Params, Sender, StatedRtt, macro_bits, micro_flows, priority, priority_bits,
};
use flowstamp_laws::xcp::header::{Encoding, Window};
use flowstamp_laws::xcp::router::{self, Router};
use flowstamp_laws::{Stamp, udp};
use proptest::prelude::*;

const RTT: Time = Time::from_millis(100);
const VIEW: LinkView = LinkView { now: Time::ZERO, queue_bytes: 0, queue_packets: 0 };

fn flow(app_rate: Option<Rate>) -> FlowView {
    FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate }
}

fn router(bytes_per_sec: f64) -> Router<Window> {
    let params = router::Params { initial_interval: Some(RTT), ..router::Params::default() };
    Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(bytes_per_sec)))
}

fn variable(router: &Router<Window>, name: &str) -> f64 {
    let mut found = f64::NAN;
    router.variables(&mut |n, v| {
        if n == name {
            found = v;
        }
    });
    found
}

/// Two intervals of the same traffic: flows with headers on each packet, or control packets that stand for their windows. Each flow is
/// `(micro-flows, window in packets of 1000 bytes)`; returns the sum of feedback that each got in the second, bytes.
fn given(flows: &[(u16, u32)], by_control: bool) -> (Router<Window>, Vec<f64>) {
    let mut router = router(5e6);
    let mut got = Vec::new();
    for round in 0..2 {
        got.clear();
        for (n, window) in flows {
            let cwnd = f64::from(*window) * 1000.0 / f64::from(*n);
            let mut arrive = |bits: u16, size: u32, wish: f64| {
                let stamp = Window::header(cwnd, 0.1, 1000.0, wish);
                router.on_arrival(VIEW, PacketIn { size, stamp: Some(&stamp), bits });
            };
            if by_control {
                arrive(macro_bits(*n), 40, 1e12);
                (0..*window).for_each(|_| router.on_arrival(VIEW, PacketIn::of(1000, None))); // data carry no header
            } else {
                (0..*window).for_each(|_| arrive(0, 1000, 1e12));
                router.on_arrival(VIEW, PacketIn::of(40, None));
            }
        }
        for (n, window) in flows {
            let cwnd = f64::from(*window) * 1000.0 / f64::from(*n);
            let mut leave = |mut bits: u16, size: u32| {
                let mut stamp = Window::header(cwnd, 0.1, 1000.0, 1e12);
                router.on_departure(VIEW, PacketOut { size, stamp: &mut stamp, bits: &mut bits }, || 0.5);
                stamp.0[2]
            };
            got.push(if by_control {
                leave(macro_bits(*n), 40)
            } else {
                (0..*window).map(|_| leave(0, 1000)).sum()
            });
        }
        if round == 0 {
            router.on_timer(0, VIEW);
        }
    }
    (router, got)
}

/// Section 8.1: feedback collected by one control packet is that of a header on each packet. 10 micro-flows with 150 packets, 5 with 75, one with
/// 200: 425 packets and three of 40 bytes in 100 ms are y = 4,251,200 B/s, so F = 0.4 (5e6 - y) = 299,520 B/s and the shuffled traffic is
/// 0.1 y - F = 125,600. Increases go by micro-flows, 16 of them, decreases by what each sends:
/// of window, 0.1 (425,120 n / 16 - 125,600 W / 425,120), which is 22,138, 11,069 and -3252 bytes.
#[test]
fn a_control_packet_stands_for_a_window() {
    let flows = [(10, 150), (5, 75), (1, 200)];
    let (by_control, control) = given(&flows, true);
    let (by_packets, packets) = given(&flows, false);
    for name in ["avg_rtt_s", "input_rate_bps", "aggregate_feedback_bps", "xi_neg"] {
        let (a, b) = (variable(&by_control, name), variable(&by_packets, name));
        assert!((a / b - 1.0).abs() < 1e-9, "{name}: {a} and {b}");
    }
    let wanted = |n: f64, bytes: f64| 0.1 * (425_120.0 * n / 16.0 - 125_600.0 * bytes / 425_120.0);
    for ((n, window), (control, packets)) in flows.iter().zip(control.iter().zip(&packets)) {
        let wanted = wanted(f64::from(*n), f64::from(*window) * 1000.0);
        assert!((control - wanted).abs() < 1.0, "{n}: {control} and {wanted}");
        assert!((control - packets).abs() < 1.0, "{n}: {control} and {packets}");
    }
    // The mean window over micro-flows: (10 15 + 5 15 + 200) / 16 packets.
    let window = by_control.own_flows().expect("seen").window_bytes;
    assert!((window - 425_000.0 / 16.0).abs() < 1e-6, "{window}");
}

/// `W` moves by the feedback for the whole window, and the link's rate is `W / rtt`. Two flows share 1 MB/s, at most.
#[test]
fn the_window_is_the_rate() {
    let params = Params { flows: Some(2), ..Params::default() };
    let mut law = Sender::new(&params, &flow(Some(Rate::from_bytes_per_sec(1e6))));
    assert_eq!((law.cwnd(), law.pacing(), law.bits()), (10_000.0, None, 2));
    assert!(Sender::traits(&params).handshake);
    // An opening packet knows no RTT and wishes for nothing.
    assert_eq!(law.stamp(Time::ZERO, Time::ZERO), Stamp([5000.0, 0.0, 0.0]));
    law.on_feedback(&Feedback {
        now: RTT,
        srtt: RTT,
        stamp: &Stamp([5000.0, 0.0, 0.0]),
        bits: 2,
        carried: 0.0,
    });
    assert!((law.pacing().expect("an answer").rate.bytes_per_sec() - 1e5).abs() < 1e-6);
    // 1 MB/s times 100 ms less the window.
    for (word, wanted) in law.stamp(RTT, RTT).0.iter().zip([5000.0, 0.1, 90_000.0]) {
        assert!((word / wanted - 1.0).abs() < 1e-12, "{word} for {wanted}");
    }
    // No more is taken from an unused window, and losses count all the same: deviation 2.
    for (carried, change, window) in [
        (7000.0, 2000.0, 10_000.0),
        (8000.0, 2000.0, 12_000.0),
        (0.0, -3000.0, 9000.0),
        (9000.0, 1e9, 100_000.0), // no more than was asked for
        (1e5, -1e9, 1000.0),      // a packet at least
    ] {
        law.on_feedback(&Feedback {
            now: RTT,
            srtt: RTT,
            stamp: &Stamp([0.0, 0.1, change]),
            bits: 2,
            carried,
        });
        assert!((law.cwnd() / window - 1.0).abs() < 1e-12, "{} for {window}", law.cwnd());
    }
    for (flows, fine) in
        [(Some(0), false), (Some(1), true), (Some(32767), true), (Some(32768), false), (None, true)]
    {
        assert_eq!(Sender::check(&Params { flows, ..Params::default() }).is_ok(), fine, "{flows:?}");
    }
}

/// Section 8.1: micro-flows come and go, and `H_rtt` is the propagation delay.
#[test]
fn micro_flows_come_and_go() {
    let idle = Some(Time::from_secs(1));
    let params = Params { idle, stated_rtt: StatedRtt::Propagation, ..Params::default() };
    let mut law = Sender::new(&params, &flow(None));
    for (micro_flows, bits) in [(4000, 4000), (0, 1), (7, 7), (u32::MAX, 32767)] {
        law.on_change(FlowChange::Ingress { micro_flows: Some(micro_flows), min_rtt: RTT });
        assert_eq!(law.bits(), macro_bits(bits));
        let Stamp([window, rtt_s, _]) = law.stamp(RTT, RTT * 3);
        assert!((window * f64::from(bits) - 10_000.0).abs() < 1e-6 && (rtt_s - 0.1).abs() < 1e-12);
    }
    // In the basic form each of the 10 packets asks for a tenth of the missing window, and counts as one packet.
    let mut law = Sender::new(
        &Params { flows: Some(4), headers: Headers::Packets, ..params },
        &flow(Some(Rate::from_bytes_per_sec(1e6))),
    );
    law.on_change(FlowChange::Ingress { micro_flows: None, min_rtt: RTT });
    let Stamp(words) = law.stamp(RTT, RTT);
    for (word, wanted) in words.iter().zip([2500.0, 0.1, 9000.0]) {
        assert!((word / wanted - 1.0).abs() < 1e-12, "{word} for {wanted}");
    }
    assert_eq!(law.bits(), 0);
    // No number of micro-flows reads as a priority, and no priority as micro-flows.
    for n in 1..=32767 {
        assert_eq!((micro_flows(macro_bits(n)), priority(macro_bits(n))), (n, 0));
    }
    for level in 0..8 {
        assert_eq!((micro_flows(priority_bits(level)), priority(priority_bits(level))), (0, level.into()));
    }
    assert_eq!(Sender::check(&Params { flows: Some(2), idle, ..params }).expect_err("both").0, "flows");
}

/// UDP: what the application produces and nothing else.
#[test]
fn datagrams_heed_nothing() {
    let mut law = udp::Sender::new(&udp::Params {}, &flow(Some(Rate::from_mbps(3.0))));
    law.on_congestion(RTT, Congestion::Loss { flight: 10 });
    law.on_congestion(RTT, Congestion::Timeout { flight: 10 });
    assert_eq!(law.pacing(), None);
    assert_eq!((law.stamp(RTT, RTT), law.bits()), (Stamp::default(), 0));
}

proptest! {
    /// For any feedback, the window is finite and at least a packet, and the wish is at most the link's capacity.
    #[test]
    fn the_window_stays_finite(
        flows in 1u32..32768,
        answers in prop::collection::vec((-1e12..1e12f64, 0.0..1e9f64, 1u64..10_000_000), 0..50),
        rate in 1e3..5e10f64,
    ) {
        let mut law = Sender::new(&Params { flows: Some(flows), ..Params::default() }, &flow(Some(Rate::from_bytes_per_sec(rate))));
        for (change, carried, us) in answers {
            let srtt = Time::from_micros(us);
                law.on_feedback(&Feedback { now: srtt, srtt, stamp: &Stamp([0.0, 0.0, change]), bits: 0, carried });
            prop_assert!(law.cwnd().is_finite() && law.cwnd() >= 1000.0);
            let Stamp([_, rtt_s, wish]) = law.stamp(srtt, srtt);
            prop_assert!(wish <= rate * rtt_s && law.pacing().is_some());
        }
    }
}
