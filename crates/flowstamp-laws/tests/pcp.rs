//! The PCP law against the numbers that its paper computes (Katabi and Handley, MIT/LCS/TR-820, 2001), and for all inputs.

use flowstamp_laws::Stamp;
use flowstamp_laws::negotiation::{FIRST_PTL, ptl};
use flowstamp_laws::pcp::header::{B1, B2, passed, sent};
use flowstamp_laws::pcp::router::{Params, Router};
use flowstamp_laws::pcp::{Header, Sender, sender};
use flowstamp_laws::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::sender::{Ack, Congestion, Feedback, FlowChange, FlowView, PathView, SenderLaw};
use flowstamp_laws::stamp::StampLaw;
use flowstamp_laws::units::{Rate, Time};
use proptest::prelude::*;

const ESTIMATION: usize = 0;
const CONTROL: usize = 1;
const T: Time = Time::from_millis(50);

/// The request of a sender that wants the whole capacity.
const ALL: f64 = 1e15;

fn params() -> Params {
    Params { control_interval: Some(T), ..Params::default() }
}

/// A link of so many bytes/s.
fn router(bytes_per_s: f64) -> Router {
    Router::new(&params(), &RouterView::of(Rate::from_bytes_per_sec(bytes_per_s)))
}

fn view(queue_bytes: u64) -> LinkView {
    LinkView { now: Time::ZERO, queue_bytes, queue_packets: 0 }
}

/// The stamp of a flow with a window of so many packets of 1000 bytes.
fn flow(packets: f64, rtt_s: f64) -> Stamp {
    Header { cwnd_bytes: packets * 1000.0, rtt_s, feedback_bytes: ALL }.into()
}

fn arrive(router: &mut Router, count: usize, stamp: &Stamp, bits: u16) {
    for _ in 0..count {
        router.on_arrival(view(0), PacketIn { size: 1000, stamp: Some(stamp), bits });
    }
}

/// The feedback of a packet that leaves.
fn leave(router: &mut Router, size: u32, stamp: &Stamp, mut bits: u16) -> f64 {
    let mut stamp = *stamp;
    router.on_departure(view(0), PacketOut { size, stamp: &mut stamp, bits: &mut bits }, || 0.5);
    stamp.0[2]
}

fn variable(router: &Router, name: &str) -> f64 {
    let mut found = f64::NAN;
    router.variables(&mut |n, value| {
        if n == name {
            found = value;
        }
    });
    found
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a}, not {b}");
}

/// Section 3.6.2's example: windows of 10 and 2 packets and one RTT. The mean is 6, not the packets' (10 10 + 2 2) / 12 = 8.6;
/// there are two flows (eqs. 4, 5).
#[test]
fn means_are_over_flows() {
    let mut r = router(1e6);
    arrive(&mut r, 10, &flow(10.0, 0.05), 0);
    arrive(&mut r, 2, &flow(2.0, 0.05), 0);
    r.on_timer(ESTIMATION, view(0));
    close(variable(&r, "avg_cwnd_bytes"), 6000.0);
    close(variable(&r, "flows_estimate"), 2.0);
    close(variable(&r, "avg_rtt_s"), 0.05);
}

/// RTTs of 50 and 150 ms: in 50 ms the second sends a third of its window. Mean RTT 100 ms, which is the next `T_e`.
#[test]
fn the_next_interval_is_the_mean_rtt() {
    let mut r = router(1e6);
    arrive(&mut r, 10, &flow(10.0, 0.05), 0);
    arrive(&mut r, 2, &flow(6.0, 0.15), 0);
    assert_eq!(r.on_timer(ESTIMATION, view(0)), Time::from_millis(100));
    close(variable(&r, "flows_estimate"), 2.0);
    close(variable(&r, "avg_cwnd_bytes"), 8000.0);
    // T_c is fixed.
    assert_eq!(r.on_timer(CONTROL, view(0)), T);
}

/// The first packet of a flow, with an RTT of 0, counts as traffic and in nothing else (section 3.6.2).
#[test]
fn packets_without_an_rtt() {
    let mut r = router(1e6);
    arrive(&mut r, 10, &flow(10.0, 0.05), 0);
    arrive(&mut r, 10, &flow(2.0, 0.0), 0);
    r.on_timer(ESTIMATION, view(0));
    close(variable(&r, "flows_estimate"), 1.0);
    close(variable(&r, "avg_cwnd_bytes"), 10_000.0);
    close(variable(&r, "input_rate_bps"), 20_000.0 / 0.05 * 8.0);
    // y = 400 kB/s: BTS = 0.1 4e5 0.05 = 2000 bytes, over N_p = 20 packets.
    r.on_timer(CONTROL, view(0));
    close(leave(&mut r, 1000, &flow(2.0, 0.0), 0), -100.0);
}

/// Eq. 6 by hand. y = 10 kB / 50 ms = 200 kB/s, SBW = 800 kB/s; the least queue is 4000 bytes:
/// BTA = 0.4 8e5 0.05 - 0.5 4000 = 14000, BTF = 0, BTS = 0.1 2e5 0.05 = 1000. With 40000 bytes BTF = 20000 - 16000.
#[test]
fn numbers_of_one_interval() {
    let decided = |queue: u64| {
        let mut r = router(1e6);
        r.on_timer(CONTROL, view(90_000));
        for queue in [queue + 500, queue, queue + 3000] {
            r.on_arrival(view(queue), PacketIn::of(0, None));
        }
        arrive_at(&mut r, queue + 100);
        r.on_timer(ESTIMATION, view(90_000));
        r.on_timer(CONTROL, view(80_000));
        r
    };
    // The first T_c sees the empty queue of the start; it begins anew with what is there when it ends.
    let mut r = decided(4000);
    close(variable(&r, "persistent_queue_bytes"), 4000.0);
    close(variable(&r, "allocate_bytes"), 14_000.0);
    close(variable(&r, "free_bytes"), 0.0);
    close(variable(&r, "shuffle_bytes"), 1000.0);
    close(r.pools().0, 15_000.0);
    close(r.pools().1, 1000.0);
    // Ten such packets leave in T_c: each gets a tenth of TPF and loses a tenth of TNF.
    for _ in 0..10 {
        close(leave(&mut r, 1000, &flow(10.0, 0.05), 0), 1400.0);
    }
    // Nothing is left for an eleventh.
    close(leave(&mut r, 1000, &flow(10.0, 0.05), 0), 0.0);
    let r = decided(40_000);
    close(variable(&r, "allocate_bytes"), 0.0);
    close(variable(&r, "free_bytes"), 4000.0);
    close(r.pools().0, 1000.0);
    close(r.pools().1, 5000.0);
}

fn arrive_at(r: &mut Router, queue: u64) {
    for _ in 0..10 {
        r.on_arrival(view(queue), PacketIn::of(1000, Some(&flow(10.0, 0.05))));
    }
}

/// Section 3.6.4: with k1 = 0.5 and no delay, three `T_c` allocate 87.5% of the spare bandwidth. A window of 100 packets on a
/// link of 500 packets per `T_c`: 400 are spare, 50 are left.
#[test]
fn three_intervals_allocate_seven_eighths() {
    let p = Params { k1: 0.5, ..params() };
    let mut r = Router::new(&p, &RouterView::of(Rate::from_bytes_per_sec(1e7)));
    let mut window = 100_000.0;
    for left in [200_000.0, 100_000.0, 50_000.0] {
        let stamp: Stamp = Header { cwnd_bytes: window, rtt_s: 0.05, feedback_bytes: ALL }.into();
        let packets = (window / 1000.0_f64).round() as usize;
        arrive(&mut r, packets, &stamp, 0);
        r.on_timer(ESTIMATION, view(0));
        r.on_timer(CONTROL, view(0));
        window += (0..packets).map(|_| leave(&mut r, 1000, &stamp, 0)).sum::<f64>();
        close(500_000.0 - window, left);
    }
}

/// Eq. 8: in proportion to (rtt / cwnd)^2. Half the window or twice the RTT gets four times as much.
#[test]
fn increases_go_by_the_inverse_square_of_throughput() {
    let decided = || {
        let mut r = router(1e6);
        for stamp in [flow(10.0, 0.05), flow(5.0, 0.05), flow(10.0, 0.1)] {
            arrive(&mut r, 5, &stamp, 0);
        }
        r.on_timer(ESTIMATION, view(0));
        r.on_timer(CONTROL, view(0));
        r
    };
    // The router takes the same share from all (eq. 9): y = 15 kB / 50 ms; BTS / N_p = 0.1 1000 bytes.
    let given = |stamp: Stamp| leave(&mut decided(), 1000, &stamp, 0) + 100.0;
    let one = given(flow(10.0, 0.05));
    close(given(flow(5.0, 0.05)), 4.0 * one);
    close(given(flow(10.0, 0.1)), 4.0 * one);
    // All together have BTA + BTS = 0.4 (1e6 - 3e5) 0.05 + 1500, in proportions of 1, 4 and 4 of 45.
    close(one, (14_000.0 + 1500.0) / 45.0);
}

/// At full load BTA and BTF are 0; shuffling moves a tenth, and leaves a flow alone whose throughput is the mean.
#[test]
fn shuffling_moves_a_tenth() {
    let mut r = router(2e5);
    arrive(&mut r, 10, &flow(10.0, 0.05), 0);
    r.on_timer(ESTIMATION, view(0));
    r.on_timer(CONTROL, view(0));
    close(r.pools().0, 1000.0);
    close(r.pools().1, 1000.0);
    close(leave(&mut r, 1000, &flow(10.0, 0.05), 0), 0.0);
    close(leave(&mut r, 1000, &flow(5.0, 0.05), 0), 300.0);
    close(leave(&mut r, 1000, &flow(20.0, 0.05), 0), -75.0);
}

/// Eq. 10: a router lowers what those before it left, and never raises it.
#[test]
fn the_least_router_rules() {
    let decided = || {
        let mut r = router(1e6);
        arrive(&mut r, 10, &flow(10.0, 0.05), 0);
        r.on_timer(ESTIMATION, view(0));
        r.on_timer(CONTROL, view(0));
        r
    };
    // BTA = 0.4 8e5 0.05 = 16000: 1600 bytes net for each packet.
    let with = |feedback_bytes| Header { feedback_bytes, ..Header::from(flow(10.0, 0.05)) }.into();
    close(leave(&mut decided(), 1000, &with(1700.0), 0), 1600.0);
    let mut r = decided();
    for less in [1500.0, 0.0, -20.0] {
        close(leave(&mut r, 1000, &with(less), 0), less);
    }
    close(r.pools().0, 17_000.0); // what was not given is still there
    close(r.pools().1, 1000.0);
}

/// Section 3.6.6: BTA goes to those that have met no bottleneck; shuffling and what is taken, to and from all. If all have met one,
/// eqs. 8 and 9 hold.
#[test]
fn spare_bandwidth_goes_to_flows_without_a_bottleneck() {
    let mut r = router(1e6);
    arrive(&mut r, 5, &flow(5.0, 0.05), 0);
    arrive(&mut r, 5, &flow(5.0, 0.05), B2);
    r.on_timer(ESTIMATION, view(0));
    close(variable(&r, "free_flows_estimate"), 1.0);
    r.on_timer(CONTROL, view(0));
    // BTA = 16000 over 5 packets, BTS = 1000 over 10.
    close(leave(&mut r, 1000, &flow(5.0, 0.05), 0), 3200.0);
    close(leave(&mut r, 1000, &flow(5.0, 0.05), B2), 0.0);
    let mut r = router(1e6);
    arrive(&mut r, 10, &flow(5.0, 0.05), B2);
    r.on_timer(ESTIMATION, view(0));
    r.on_timer(CONTROL, view(0));
    close(leave(&mut r, 1000, &flow(5.0, 0.05), B2), 1600.0);
}

/// `H_B1` is set where SBW* < C / 10 (footnote 10). At 95% load from an idle start SBW* is (0.05 + 0.95 0.7^n) C after n intervals:
/// 0.105 C after 8, 0.088 C after 9.
#[test]
fn the_bottleneck_bit() {
    let mut r = router(1e6);
    for n in 1..=9 {
        r.on_arrival(view(0), PacketIn::of(47_500, None));
        r.on_timer(ESTIMATION, view(0));
        close(variable(&r, "smoothed_spare_bps"), 8e6 * (0.05 + 0.95 * 0.7_f64.powi(n)));
        let mut bits = sent(true);
        let packet = PacketOut { size: 1000, stamp: &mut flow(1.0, 0.05), bits: &mut bits };
        r.on_departure(view(0), packet, || 0.5);
        assert_eq!(bits & (B1 | B2), if n < 9 { B2 } else { B1 | B2 }, "{n}");
    }
}

/// PTL goes down by one at each router, and not below zero; the other bits stay (section 4.1).
#[test]
fn the_time_to_live() {
    assert_eq!(ptl(sent(false)), 64);
    let mut bits = sent(true);
    for left in (0..64).rev() {
        bits = passed(bits, left == 30);
        assert_eq!(ptl(bits), left);
    }
    assert_eq!(passed(bits, false), B1 | B2);
}

/// Told nothing, a router gives nothing until it knows an RTT; that is `T_c` from then on (deviation 5).
#[test]
fn the_first_rtt_is_the_packets() {
    let mut r = Router::new(&Params::default(), &RouterView::of(Rate::from_bytes_per_sec(1e6)));
    let at = |ms| LinkView { now: Time::from_millis(ms), queue_bytes: 0, queue_packets: 0 };
    for which in [ESTIMATION, CONTROL] {
        assert_eq!(Router::traits(&Params::default()).first_timers[which], Some(Time::from_millis(1)));
        assert_eq!(r.on_timer(which, at(1)), Time::from_millis(2));
    }
    arrive(&mut r, 1, &flow(2.0, 0.25), 0);
    assert_eq!(r.on_timer(ESTIMATION, at(2)), Time::from_millis(252));
    assert_eq!(r.on_timer(CONTROL, at(2)), Time::from_millis(252));
    assert_eq!(r.pools(), (0.0, 0.0));
    arrive(&mut r, 2, &flow(2.0, 0.25), 0);
    arrive(&mut r, 2, &flow(4.0, 0.5), 0);
    assert_eq!(
        r.on_timer(ESTIMATION, at(252)),
        Time::from_millis(252 + 375),
        "two flows, RTTs of 250 and 500 ms"
    );
    assert_eq!(r.on_timer(CONTROL, at(252)), Time::from_millis(502), "T_c stays");
    // y = 4 packets in 250 ms = 16 kB/s: BTA = 0.4 (1e6 - 16e3) 0.25, BTS = 400.
    close(r.pools().0, 98_400.0 + 400.0);
}

/// Section 4.2: beside TCP the greater of SBW and PSBW is what is spare. 1 MB/s of which TCP takes 900 kB/s; 200 kB/s of PCP: SBW = -100
/// kB/s. With a part of 0.5, PSBW = 300 kB/s: BTA = 0.4 0.05 3e5; with 0.15, PSBW = -50 kB/s: BTF = 0.4 0.05 5e4, down to the part.
#[test]
fn beside_tcp_it_gives_way_to_its_part() {
    for (part, allocate, free) in [(0.5, 6000.0, 0.0), (0.15, 0.0, 1000.0), (0.05, 0.0, 2000.0)] {
        let mut r = router(1e6);
        r.on_change(LinkChange::Capacity(Rate::from_bytes_per_sec(1e5)));
        r.on_change(LinkChange::Part {
            own: Rate::from_bytes_per_sec(part * 1e6),
            link: Rate::from_bytes_per_sec(1e6),
        });
        arrive(&mut r, 10, &flow(10.0, 0.05), 0);
        assert_eq!(r.own_flows(), None);
        r.on_timer(ESTIMATION, view(0));
        r.on_timer(CONTROL, view(0));
        close(variable(&r, "allocate_bytes"), allocate);
        close(variable(&r, "free_bytes"), free);
        let flows = r.own_flows().expect("seen");
        close(flows.window_bytes, 10_000.0);
        assert_eq!(flows.rtt, T);
    }
}

/// An interval without packets: the RTT stays, there are no flows, and the next packet gets nothing that no one counted on.
#[test]
fn an_idle_interval() {
    let mut r = router(1e6);
    arrive(&mut r, 10, &flow(10.0, 0.08), 0);
    assert_eq!(r.on_timer(ESTIMATION, view(0)), Time::from_millis(80));
    assert_eq!(r.on_timer(ESTIMATION, view(0)), Time::from_millis(80));
    close(variable(&r, "flows_estimate"), 0.0);
    r.on_timer(CONTROL, view(0));
    close(leave(&mut r, 1000, &flow(10.0, 0.08), 0), 0.0);
}

const FLOW: FlowView = FlowView { packet_bytes: 1000, initial_window: 10.0, app_rate: None };
const RTT: Time = Time::from_millis(100);

fn law(params: sender::Params, app_rate: Option<f64>) -> Sender {
    Sender::new(&params, &FlowView { app_rate: app_rate.map(Rate::from_bytes_per_sec), ..FLOW })
}

fn answer(feedback_bytes: f64) -> Stamp {
    Header { cwnd_bytes: 10_000.0, rtt_s: 0.1, feedback_bytes }.into()
}

/// Eq. 3, and TCP's answers to a loss and a timeout (section 3.4 and footnote 2).
#[test]
fn a_sender_obeys() {
    let mut law = law(sender::Params::default(), None);
    let (give, take) = (answer(1500.0), answer(-500.0));
    let ack = Ack { flight: 10, ..Ack::of_one(Time::ZERO, RTT, &give) };
    law.on_ack(&ack);
    assert_eq!(law.cwnd(), 11_500.0);
    law.on_ack(&Ack { stamp: &take, ..ack });
    assert_eq!(law.cwnd(), 11_000.0);
    law.on_ack(&Ack { in_recovery: true, ..ack });
    assert_eq!(law.cwnd(), 11_000.0, "no increase in recovery");
    law.on_ack(&Ack { in_recovery: true, stamp: &take, ..ack });
    assert_eq!(law.cwnd(), 10_500.0);
    law.on_congestion(Time::ZERO, Congestion::Loss { flight: 9 });
    assert_eq!(law.cwnd(), 4500.0);
    law.on_congestion(Time::ZERO, Congestion::Timeout { flight: 4 });
    assert_eq!(law.cwnd(), 1000.0);
    law.on_ack(&Ack { stamp: &take, ..ack });
    assert_eq!(law.cwnd(), 1000.0, "at least a packet");
}

/// Section 3.4: the last window of a transfer wants no more, so that others get what is spare.
#[test]
fn the_last_window_wants_no_more() {
    let mut law = law(sender::Params::default(), None);
    let stamp = answer(0.0);
    for (left, told) in [(u32::MAX, 0), (11, 0), (10, B2), (1, B2)] {
        law.on_ack(&Ack { left, ..Ack::of_one(Time::ZERO, RTT, &stamp) });
        assert_eq!(law.bits() & B2, told, "{left} packets left of a window of 10");
    }
}

/// Footnote 11: min(cwnd, TFRC's rate times the RTT). The first loss at 20 packets in flight counts as one in 150, of a window of 10 packets, 9.6 by
/// the whole equation. Further losses in the same RTT are the same event.
#[test]
fn tfrc_bounds_the_window_of_a_path_without_pcp() {
    let mut law = law(sender::Params { tfrc: true, ..sender::Params::default() }, None);
    let give = answer(1e6);
    let at = |ms, flight| Ack { flight, ..Ack::of_one(Time::from_millis(ms), RTT, &give) };
    law.on_ack(&at(0, 10));
    assert_eq!(law.cwnd(), 20_000.0, "twice what a round trip used, before any loss");
    for ms in [300, 350, 399] {
        law.on_congestion(Time::from_millis(ms), Congestion::Loss { flight: 20 });
    }
    law.on_ack(&at(400, 10));
    let p: f64 = 1.0 / 150.0;
    let window = 1000.0 / ((2.0 * p / 3.0).sqrt() + 12.0 * p * (3.0 * p / 8.0).sqrt() * (1.0 + 32.0 * p * p));
    close(law.cwnd(), window);
    // 300 packets without a loss: the mean interval is 300.
    for _ in 1..300 {
        law.on_ack(&at(400, 10));
    }
    let p: f64 = 1.0 / 300.0;
    close(
        law.cwnd(),
        1000.0 / ((2.0 * p / 3.0).sqrt() + 12.0 * p * (3.0 * p / 8.0).sqrt() * (1.0 + 32.0 * p * p)),
    );
    let both = sender::Params { tfrc: true, negotiate: true, ..sender::Params::default() };
    assert_eq!(Sender::check(&both).map_err(|(key, _)| key), Err("tfrc"));
}

/// The header (section 3.4): window, RTT, zero in the first packet; `H_B2` is the last ack's `H_B1`, or set where no more is wanted.
#[test]
fn a_sender_tells() {
    let mut greedy = law(sender::Params::default(), None);
    let first = Header::from(greedy.stamp(Time::ZERO, Time::ZERO));
    assert_eq!((first.cwnd_bytes, first.rtt_s), (10_000.0, 0.0));
    assert!(Header::from(greedy.stamp(Time::ZERO, RTT)).feedback_bytes > 1e13);
    assert_eq!(greedy.bits(), u16::from(FIRST_PTL) << 8);
    let stamp = answer(0.0);
    for bits in [B1, 0, B1 | B2] {
        greedy.on_ack(&Ack { bits, ..Ack::of_one(Time::ZERO, RTT, &stamp) });
        assert_eq!(greedy.bits() & (B1 | B2), if bits & B1 != 0 { B2 } else { 0 });
    }
    // An application of 100 packets/s has 10 in an RTT of 100 ms, and one to spare: 11 are wanted.
    let mut modest = law(sender::Params::default(), Some(1e5));
    assert_eq!(Header::from(modest.stamp(Time::ZERO, RTT)).feedback_bytes, 1000.0);
    assert_eq!(modest.bits() & B2, 0);
    let give = answer(5000.0);
    modest.on_ack(&Ack { flight: 10, ..Ack::of_one(Time::ZERO, RTT, &give) });
    assert_eq!(modest.cwnd(), 11_000.0, "no more than was asked for");
    assert_eq!(modest.bits() & B2, B2);
    let asked = Header::from(
        law(
            sender::Params { desired_rate: Some(Rate::from_bytes_per_sec(3e5)), ..sender::Params::default() },
            None,
        )
        .stamp(Time::ZERO, RTT),
    );
    close(asked.feedback_bytes, 21_000.0);
}

/// Section 2: who does not use its window in an RTT has what it used.
#[test]
fn use_it_or_lose_it() {
    let mut law = law(sender::Params::default(), None);
    let stamp = answer(0.0);
    let at = |ms, flight, window_limited| Ack {
        flight,
        window_limited,
        ..Ack::of_one(Time::from_millis(ms), RTT, &stamp)
    };
    // A round trip in which the window was full once, as it holds 10.7 packets and no eleventh fits.
    law.on_ack(&Ack { stamp: &answer(700.0), ..at(100, 10, true) });
    for ms in [120, 160, 200] {
        law.on_ack(&at(ms, 10, ms == 160));
    }
    assert_eq!(law.cwnd(), 10_700.0, "it was used");
    // One in which the application sent less: at most 6 packets were in flight.
    for (ms, flight) in [(220, 4), (260, 6), (299, 5)] {
        law.on_ack(&at(ms, flight, false));
        assert_eq!(law.cwnd(), 10_700.0, "the round trip is not over");
    }
    assert_eq!(law.bits() & B2, 0);
    law.on_ack(&at(300, 3, false));
    assert_eq!(law.cwnd(), 6000.0);
    assert_eq!(law.bits() & B2, B2, "it wants no more");
    // Only acknowledged bytes: at least a packet.
    law.on_ack(&at(400, 1, false));
    law.on_ack(&at(500, 0, false));
    assert_eq!(law.cwnd(), 1000.0);
    // A round trip that uses the window: it may grow again.
    law.on_ack(&at(600, 1, true));
    assert_eq!(law.bits() & B2, 0);
}

/// Section 4.1: an answer that has passed PCP routers alone keeps the flow; one other router, now or later, makes it a TCP.
#[test]
fn a_router_without_pcp_makes_it_a_tcp() {
    let params = sender::Params { negotiate: true, ..sender::Params::default() };
    let after = |routers: u32| (0..routers).fold(sent(false), |bits, _| passed(bits, false));
    let new = || {
        let mut law = law(params, None);
        law.on_change(FlowChange::Path(PathView { hops: 3, ..PathView::default() }));
        assert!(Sender::traits(&params).handshake);
        law
    };
    let stamp = answer(0.0);
    let mut flow = new();
    flow.on_feedback(&Feedback { now: RTT, srtt: RTT, stamp: &stamp, bits: after(2), carried: 0.0 });
    assert_eq!((flow.report().fallen_back, flow.cwnd()), (Some(RTT), 10_000.0));
    assert_eq!((flow.bits(), flow.stamp(RTT, RTT)), (0, Stamp::default()));
    flow.on_ack(&Ack { flight: 10, ..Ack::of_one(RTT * 2, RTT, &stamp) });
    assert_eq!(flow.cwnd(), 11_000.0, "slow start");
    // The path is right at first, and has changed later: half of what is in flight.
    let mut flow = new();
    flow.on_feedback(&Feedback { now: RTT, srtt: RTT, stamp: &stamp, bits: after(3), carried: 0.0 });
    assert_eq!(flow.report().fallen_back, None);
    flow.on_ack(&Ack { flight: 10, bits: after(3), ..Ack::of_one(RTT * 2, RTT, &stamp) });
    assert_eq!(flow.report().fallen_back, None);
    flow.on_ack(&Ack { flight: 10, bits: after(2), ..Ack::of_one(RTT * 3, RTT, &stamp) });
    assert_eq!(flow.report().fallen_back, Some(RTT * 3));
    assert!((5000.0..6000.0).contains(&flow.cwnd()), "{}", flow.cwnd());
    flow.on_congestion(RTT * 4, Congestion::Timeout { flight: 5 });
    assert_eq!(flow.cwnd(), 1000.0);
    // Two changes of route within a round trip: packets of both earlier routes still return, but not two round trips later.
    let mut flow = new();
    flow.on_feedback(&Feedback { now: RTT, srtt: RTT, stamp: &stamp, bits: after(3), carried: 0.0 });
    flow.on_change(FlowChange::Path(PathView { hops: 4, ..PathView::default() }));
    flow.on_change(FlowChange::Path(PathView { hops: 5, ..PathView::default() }));
    for (at, routers, falls) in [(2, 3, false), (2, 4, false), (3, 5, false), (5, 5, false), (5, 4, true)] {
        flow.on_ack(&Ack { bits: after(routers), ..Ack::of_one(RTT * at, RTT, &stamp) });
        assert_eq!(flow.report().fallen_back.is_some(), falls, "{at} {routers}");
    }
    // A flow that does not negotiate does not look.
    let mut flow = law(sender::Params::default(), None);
    flow.on_change(FlowChange::Path(PathView { hops: 3, ..PathView::default() }));
    flow.on_ack(&Ack { bits: after(1), ..Ack::of_one(RTT, RTT, &stamp) });
    assert_eq!(flow.report().fallen_back, None);
    assert!(!Sender::traits(&sender::Params::default()).handshake);
}

/// One ack for two packets brings both changes.
#[test]
fn delayed_acks_add_up() {
    let mut pending = Stamp([10_000.0, 0.1, 300.0]);
    <Header as StampLaw>::merge(&mut pending, &Stamp([11_000.0, 0.2, -100.0]));
    assert_eq!(pending, Stamp([11_000.0, 0.2, 200.0]));
}

/// Senseless parameters are refused by name.
#[test]
fn nonsense_is_refused() {
    let refused = |p: Params| Router::check(&p).expect_err("refused").0;
    assert_eq!(refused(Params { k1: f64::NAN, ..params() }), "k1");
    assert_eq!(refused(Params { k2: -0.1, ..params() }), "k2");
    assert_eq!(refused(Params { k3: 1.1, ..params() }), "k3");
    assert_eq!(refused(Params { control_interval: Some(Time::ZERO), ..params() }), "control_interval");
    assert_eq!(refused(Params { min_interval: Time::ZERO, ..params() }), "min_interval");
    assert_eq!(refused(Params { max_rtt: Some(Time::ZERO), ..params() }), "max_rtt");
    assert!(Router::check(&params()).is_ok());
    let none = sender::Params { desired_rate: Some(Rate::ZERO), ..sender::Params::default() };
    assert_eq!(Sender::check(&none).expect_err("refused").0, "desired_rate");
}

/// One packet of a made-up traffic.
#[derive(Clone, Debug)]
struct Made {
    stamp: Stamp,
    size: u32,
    bits: u16,
    queue: u64,
}

/// A number of a header: mostly of a size that flows have.
fn word() -> impl Strategy<Value = f64> {
    prop_oneof![
        9 => (-6.0..9.0f64).prop_map(|e| 10f64.powf(e)),
        1 => prop::sample::select(vec![0.0, -1.0, 1e-300, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
    ]
}

fn packet() -> impl Strategy<Value = Made> {
    (word(), word(), word(), 40u32..9000, any::<u16>(), 0u64..10_000_000).prop_map(
        |(cwnd, rtt, wish, size, bits, queue)| Made { stamp: Stamp([cwnd, rtt, wish]), size, bits, queue },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// In each `T_c` what is given is at most TPF and what is taken at most TNF (section 3.6.5); nothing is raised (eq. 10); all
    /// stays finite from 1 kb/s to 400 Gb/s, whatever packets say.
    #[test]
    fn feedback_is_bounded_and_finite(
        e in 3.0..11.602f64,
        told in any::<bool>(),
        intervals in prop::collection::vec((any::<bool>(), prop::collection::vec(packet(), 0..40)), 1..10),
    ) {
        let p = if told { params() } else { Params::default() };
        let mut r = Router::new(&p, &RouterView::of(Rate::from_bps(10f64.powf(e))));
        let mut now = Time::ZERO;
        let (mut pools, mut given, mut taken) = (r.pools(), 0.0, 0.0);
        for (estimate, packets) in &intervals {
            for Made { stamp, size, bits, queue } in packets {
                let view = LinkView { now, queue_bytes: *queue, queue_packets: 0 };
                let (size, mut bits) = (*size, *bits);
                r.on_arrival(view, PacketIn { size, stamp: Some(stamp), bits });
                let (before, mut after) = (r.pools(), *stamp);
                r.on_departure(view, PacketOut { size, stamp: &mut after, bits: &mut bits }, || 0.5);
                let (give, take) = (before.0 - r.pools().0, before.1 - r.pools().1);
                prop_assert!(give >= 0.0 && take >= 0.0);
                if stamp.0[2].is_nan() || after.0[2] != stamp.0[2] {
                    prop_assert!(after.0[2].is_finite());
                    prop_assert!(stamp.0[2].is_nan() || after.0[2] < stamp.0[2], "raised");
                    prop_assert!((after.0[2] - (give - take)).abs() <= 1e-9 * (before.0 + before.1), "given is what was written");
                    given += give;
                    taken += take;
                }
            }
            prop_assert!(given <= pools.0 * (1.0 + 1e-9) && taken <= pools.1 * (1.0 + 1e-9), "{given} {taken} of {pools:?}");
            let view = LinkView { now, queue_bytes: packets.last().map_or(0, |p| p.queue), queue_packets: 0 };
            if *estimate {
                prop_assert!(r.on_timer(ESTIMATION, view) > now);
            } else {
                let next = r.on_timer(CONTROL, view);
                prop_assert!(next > now);
                now = next;
                (pools, given, taken) = (r.pools(), 0.0, 0.0);
            }
            r.variables(&mut |name, value| assert!(value.is_finite(), "{name} is {value}"));
        }
    }

    /// The window is at least a packet and finite, whatever comes back and whoever limits the flow.
    #[test]
    fn a_sender_survives_any_feedback(
        acks in prop::collection::vec((word(), any::<bool>(), 0u32..100_000, any::<bool>(), any::<bool>()), 1..100),
        app in prop::option::of(1.0..1e9f64),
    ) {
        let mut law = law(sender::Params::default(), app);
        for (i, (change, negative, flight, window_limited, in_recovery)) in acks.into_iter().enumerate() {
            let stamp = answer(if negative { -change } else { change });
            let now = Time::from_millis(37 * i as u64);
            law.on_ack(&Ack { flight, window_limited, in_recovery, ..Ack::of_one(now, RTT, &stamp) });
            prop_assert!(law.cwnd() >= 1000.0 && law.cwnd().is_finite(), "{}", law.cwnd());
            prop_assert!(law.stamp(now, RTT).0.iter().all(|w| w.is_finite()));
        }
    }
}
