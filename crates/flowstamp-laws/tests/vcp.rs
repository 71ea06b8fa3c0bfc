//! VCP against what Xia and others 2008 compute: load factor and code, the steps of the window, their scaling with the RTT.

use flowstamp_laws::router::{LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::sender::{Ack, Congestion, Feedback, FlowView, SenderLaw};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::vcp::sender::Limiter;
use flowstamp_laws::vcp::{Code, Router, Sender, exact, router, sender};
use flowstamp_laws::{Stamp, queue::Limit};
use proptest::prelude::*;

const LOAD: usize = 0;
const QUEUE: usize = 1;
const MS: fn(u64) -> Time = Time::from_millis;
const FLOW: FlowView = FlowView { packet_bytes: 1000, initial_window: 2.0, app_rate: None };

fn link(queue_bytes: u64, now: Time) -> LinkView {
    LinkView { now, queue_bytes, queue_packets: (queue_bytes / 1000) as u32 }
}

/// A router of 10 Mb/s: 245,000 bytes are the target of 200 ms.
fn router_after(params: &router::Params, input: u32, queue: u64) -> Router {
    let mut law = Router::new(params, &RouterView::of(Rate::from_mbps(10.0)));
    for sample in 1..=20 {
        law.on_timer(QUEUE, link(queue, MS(10 * sample)));
    }
    law.on_arrival(link(0, MS(1)), PacketIn::of(input, None));
    law.on_timer(LOAD, link(queue, MS(200)));
    law
}

fn never() -> f64 {
    panic!("no chance is asked")
}

/// The bits of a packet that came with these.
fn leaves(law: &mut Router, link: LinkView, mut bits: u16, uniform: impl FnMut() -> f64) -> u16 {
    let packet = PacketOut { size: 1000, stamp: &mut Stamp::default(), bits: &mut bits };
    law.on_departure(link, packet, uniform);
    bits
}

fn bits(law: &mut Router, code: Code) -> Code {
    Code::read(leaves(law, link(0, MS(200)), code.bits(), never))
}

#[test]
fn the_load_factor_is_that_of_equation_1() {
    let p = router::Params::default();
    // gamma C t_rho = 0.98 * 1.25e6 * 0.2 = 245,000 bytes.
    assert!((router_after(&p, 122_500, 0).load() - 0.5).abs() < 1e-12);
    // A queue of 40 kB that stands for 20 samples: q~ = 40,000 (1 - (7/8)^20), of which half counts.
    let queue = 40_000.0 * (1.0 - 0.875_f64.powi(20));
    let law = router_after(&p, 122_500, 40_000);
    assert!((law.load() - (122_500.0 + 0.5 * queue) / 245_000.0).abs() < 1e-12, "{}", law.load());
}

#[test]
fn the_code_is_that_of_figure_2_and_only_rises() {
    let p = router::Params::default();
    for (input, own) in [
        (0, Code::Low),
        (195_999, Code::Low), // 80% of 245,000 are 196,000
        (196_000, Code::High),
        (244_999, Code::High),
        (245_000, Code::Overload),
        (1_000_000, Code::Overload),
    ] {
        let mut law = router_after(&p, input, 0);
        for code in [Code::Low, Code::High, Code::Overload] {
            assert_eq!(bits(&mut law, code), code.max(own), "{input} bytes, {code:?} before");
        }
        assert_eq!(bits(&mut law, Code::NotCapable), Code::NotCapable);
        // For a packet of another protocol these are ECT(1), and CE if it is marked.
        assert_eq!(leaves(&mut law, link(0, MS(200)), 1, never) == 3, own == Code::Overload);
    }
}

/// Section VI-C: friendly, the code 11 comes with RED's probability, and 10 instead.
#[test]
fn friendly_overload_is_told_with_reds_probability() {
    let limit = Limit::Bytes(90_000);
    let view = RouterView { limit, ..RouterView::of(Rate::from_mbps(10.0)) };
    let p = router::Params { tcp_friendly: true, ..router::Params::default() };
    // 20, 45 and 75 kB of 90: below a third; half-way to two thirds, so half of 0.1; a quarter of the way to twice that.
    for (queue, probability) in [(20_000, 0.0), (45_000, 0.05), (75_000, 0.1 + 0.9 * 0.25)] {
        let mut law = Router::new(&p, &view);
        for sample in 1..=400 {
            law.on_timer(QUEUE, link(queue, MS(10 * sample)));
        }
        law.on_arrival(link(0, MS(1)), PacketIn::of(1_000_000, None));
        law.on_timer(LOAD, link(queue, MS(4000)));
        for (uniform, told) in [(probability - 1e-9_f64, Code::Overload), (probability + 1e-9, Code::High)] {
            let told = if probability > 0.0 { told } else { Code::High };
            let bits = leaves(&mut law, link(0, MS(4000)), Code::Low.bits(), || uniform.max(0.0));
            assert_eq!(Code::read(bits), told, "{queue} {uniform}");
        }
    }
}

/// A sender with nothing bounded, as equations 2 to 8 have it.
fn unbounded() -> sender::Params {
    sender::Params { ai_limiter: Limiter::None, mi_limit: 1e3, ..sender::Params::default() }
}

/// Acks a whole window of packets with this code at this time.
fn round(law: &mut Sender, code: Code, now: Time, rtt: Time) {
    let stamp = Stamp::default();
    let packets = (law.cwnd() / 1000.0).round().max(1.0) as u32;
    for _ in 0..packets {
        law.on_ack(&Ack { bits: code.bits(), ..Ack::of_one(now, rtt, &stamp) });
    }
}

/// Equation 2 with xi = 1/16: from one packet to 1000 in `ln 1000 / ln (17/16)` = 113.94 times `t_rho`, if the RTT is `t_rho`.
#[test]
fn low_load_multiplies_by_a_sixteenth() {
    let law = Sender::new(&unbounded(), &FLOW);
    assert!((law.multiplies_by(MS(200)) - 0.0625).abs() < 1e-15);
    let mut window = 1.0;
    let mut intervals = 0;
    while window < 1000.0 {
        window *= 1.0 + law.multiplies_by(MS(200));
        intervals += 1;
    }
    assert_eq!(intervals, 114);
    // Equation 6: whatever the RTT, the same in the same time.
    for rtt_ms in [1, 20, 80, 100, 400, 1600] {
        let rounds = 1600 / rtt_ms;
        let grown = (1.0 + law.multiplies_by(MS(rtt_ms))).powi(rounds as i32);
        assert!((grown / 1.0625_f64.powi(8) - 1.0).abs() < 1e-10, "{rtt_ms} ms");
    }
    // Its bound: 2.5 t_rho in a round trip.
    let bounded = Sender::new(&sender::Params::default(), &FLOW);
    assert!((bounded.multiplies_by(MS(1000)) - (1.0625_f64.powf(2.5) - 1.0)).abs() < 1e-12);
    // And per ack: a window of 100 packets is 106.25 after each has been acknowledged.
    let view = FlowView { initial_window: 100.0, ..FLOW };
    let mut law = Sender::new(&unbounded(), &view);
    round(&mut law, Code::Low, MS(200), MS(200));
    assert!((law.cwnd() - 106_250.0).abs() < 1e-6, "{}", law.cwnd());
}

/// Equation 8: a packet in a round trip of `t_rho`, and by the square of the RTT in any other.
#[test]
fn high_load_adds_by_the_square_of_the_rtt() {
    let view = FlowView { initial_window: 1000.0, ..FLOW };
    for (rtt_ms, added) in [(200, 1.0), (100, 0.25), (20, 0.01), (400, 4.0)] {
        let mut law = Sender::new(&unbounded(), &view);
        assert!((law.adds(MS(rtt_ms), 1000.0) - added).abs() < 1e-12);
        round(&mut law, Code::High, MS(200), MS(rtt_ms));
        // alpha_s/w shrinks as the window grows within the round: at most by added/1000 of it.
        let grown = law.cwnd() / 1000.0 - 1000.0;
        assert!(grown <= added && grown > added * (1.0 - added / 1000.0), "{rtt_ms} ms: {grown}");
    }
    // The authors' scale: base 100 ms, 0.2 x up to 20 ms, x^2 up to 500 ms, 5 x beyond.
    let authors =
        sender::Params { ai_base: Some(MS(100)), ai_square_from: 0.2, ai_square_to: 5.0, ..unbounded() };
    let law = Sender::new(&authors, &FLOW);
    for (rtt_ms, added) in [(10, 0.02), (20, 0.04), (100, 1.0), (500, 25.0), (1000, 50.0)] {
        assert!((law.adds(MS(rtt_ms), 1000.0) - added).abs() < 1e-12, "{rtt_ms} ms");
    }
    // Footnote 5, equation 7: in proportion to the RTT.
    let equal = sender::Params { equal_windows: true, ..unbounded() };
    let law = Sender::new(&equal, &FLOW);
    for (rtt_ms, added) in [(20, 0.1), (200, 1.0), (400, 2.0)] {
        assert!((law.adds(MS(rtt_ms), 1000.0) - added).abs() < 1e-12, "{rtt_ms} ms");
    }
    let both = sender::Params { ai_square_to: 5.0, ..equal };
    assert_eq!(Sender::check(&both).map_err(|(key, _)| key), Err("equal_windows"));
    // The limiter's table: 10%, 6%, 4% and 2% of windows of 5, 50, 500 and 5000 packets.
    let limited = Sender::new(&sender::Params { ai_limiter: Limiter::Table, ..unbounded() }, &FLOW);
    for (window, share) in [(5.0, 0.1), (50.0, 0.06), (500.0, 0.04), (5000.0, 0.02)] {
        assert!((limited.adds(Time::from_secs(100), window) - share * window).abs() < 1e-9);
        let tenth = Sender::new(&sender::Params::default(), &FLOW).adds(Time::from_secs(100), window);
        assert!((tenth - 0.1 * window).abs() < 1e-9);
    }
}

/// Equation 4 and S.3: one cut to 87.5%, nothing for `t_rho`, then additive increase for an RTT whatever the codes say.
#[test]
fn overload_cuts_once_then_freezes_then_adds() {
    let (rtt, view) = (MS(80), FlowView { initial_window: 100.0, ..FLOW });
    let mut law = Sender::new(&unbounded(), &view);
    let start = MS(1000);
    round(&mut law, Code::Overload, start, rtt);
    assert_eq!(law.cwnd(), 87_500.0);
    for (code, after_ms) in [(Code::Overload, 1), (Code::Low, 100), (Code::High, 199)] {
        round(&mut law, code, start + MS(after_ms), rtt);
        assert_eq!(law.cwnd(), 87_500.0, "{code:?} {after_ms} ms after the cut");
    }
    // For an RTT each code adds alpha_s = (80/200)^2 = 0.16 packets in a round.
    for code in [Code::Overload, Code::Low, Code::High] {
        let before = law.cwnd();
        round(&mut law, code, start + MS(279), rtt);
        let added = (law.cwnd() - before) / 1000.0;
        assert!(added > 0.155 && added < 0.165, "{code:?}: {added}");
    }
    // And then they count again.
    let before = law.cwnd();
    round(&mut law, Code::Overload, start + MS(280), rtt);
    assert_eq!(law.cwnd(), 0.875 * before);
}

/// Section III-D: after many rounds of additive increase and a common cut the windows are as `alpha_s`, rates as the weights.
#[test]
fn rates_become_as_the_weights() {
    let flows = [(80, 1.0), (40, 1.0), (160, 2.0)];
    let rates = flows.map(|(rtt_ms, weight)| {
        let law = Sender::new(&sender::Params { weight, ..unbounded() }, &FLOW);
        let mut window = 1000.0 / weight;
        // 6.4 s of round trips, then a cut: 200 times, after which 0.875^200 of the first window is left.
        for _ in 0..200 {
            for _ in 0..6400 / rtt_ms {
                window += law.adds(MS(rtt_ms), window);
            }
            window *= 0.875;
        }
        window / rtt_ms as f64 / weight
    });
    assert!((rates[1] / rates[0] - 1.0).abs() < 1e-9, "{rates:?}");
    assert!((rates[2] / rates[0] - 1.0).abs() < 1e-9, "{rates:?}");
}

/// Section VI-C: general AIMD with beta 7/8 adds 4 (1 - 49/64) / 3 = 0.3125 packets, whatever the RTT.
#[test]
fn friendly_senders_add_as_general_aimd() {
    let law = Sender::new(&sender::Params { tcp_friendly: true, ..unbounded() }, &FLOW);
    for rtt_ms in [1, 80, 1000] {
        assert_eq!(law.adds(MS(rtt_ms), 100.0), 0.3125);
    }
}

#[test]
fn losses_are_answered_as_by_reno() {
    let view = FlowView { initial_window: 100.0, ..FLOW };
    let mut law = Sender::new(&unbounded(), &view);
    law.on_congestion(MS(1), Congestion::Loss { flight: 60 });
    assert_eq!(law.cwnd(), 30_000.0);
    law.on_congestion(MS(2), Congestion::Timeout { flight: 30 });
    assert_eq!(law.cwnd(), 1000.0);
}

/// Section V in equilibrium: kappa (1 - rho)/rho w + alpha = 0, so rho = 1 + alpha rho / (kappa w).
#[test]
fn the_exact_law_rests_where_equation_9_says() {
    let (rtt, kappa, window) = (MS(200), 0.25, 100.0);
    let rho = kappa * window / (kappa * window - 1.0);
    let view = FlowView { initial_window: window, ..FLOW };
    let mut law = exact::Sender::new(&exact::Params::default(), &view);
    let stamp = exact::Header { load: rho }.write();
    law.on_ack(&Ack::of_one(MS(1), rtt, &stamp));
    assert!((law.cwnd() - 100_000.0).abs() < 1e-9, "{}", law.cwnd());
    // Half the load: xi = kappa, so a window of 100 packets has 25 and one more after a round trip.
    let stamp = exact::Header { load: 0.5 }.write();
    let before = law.cwnd();
    law.on_ack(&Ack::of_one(MS(1), rtt, &stamp));
    assert!((law.cwnd() - before - 1000.0 * (kappa + 0.01)).abs() < 1e-9);
}

#[test]
fn equation_14_moves_the_target_until_the_use_is_as_wanted() {
    let p = exact::RouterParams::default();
    let mut law = exact::Router::new(&p, &RouterView::of(Rate::from_mbps(10.0)));
    let target = |law: &exact::Router| {
        let mut found = 0.0;
        law.variables(&mut |name, value| {
            if name == "target_utilization" {
                found = value;
            }
        });
        found
    };
    for (bytes, expected) in [(240_000, 0.99), (250_000, 0.98), (250_000, 0.97)] {
        for _ in 0..10 {
            law.on_arrival(link(0, MS(0)), PacketIn::of(bytes, None)); // 96% and 100% of 250,000 bytes
            law.on_timer(LOAD, link(0, MS(0)));
        }
        assert!((target(&law) - expected).abs() < 1e-12, "{}", target(&law));
    }
}

proptest! {
    /// For any input, the window is at least a packet and finite, a code only rises and a load is a number.
    #[test]
    fn all_stays_finite(
        t_rho_us in 1_u64..10_000_000,
        rate_bps in prop::sample::select(vec![0.0, 1e3, 1e6, 1e9, 4e11]),
        steps in prop::collection::vec((0_u32..65_536, 0_u64..1_000_000_000, 0_u16..4, 1_u64..10_000_000_000), 1..60),
        friendly in any::<bool>(),
    ) {
        let t_rho = Some(Time::from_micros(t_rho_us));
        let p = router::Params { t_rho, tcp_friendly: friendly, ..router::Params::default() };
        let mut law = Router::new(&p, &RouterView::of(Rate::from_bps(rate_bps)));
        let s = sender::Params { t_rho, tcp_friendly: friendly, ..sender::Params::default() };
        let mut flow = Sender::new(&s, &FLOW);
        let e = exact::Params { t_rho, ..exact::Params::default() };
        let mut model = exact::Sender::new(&e, &FLOW);
        let mut now = Time::ZERO;
        for (size, queue, code, rtt_us) in steps {
            now = now.saturating_add(Time::from_micros(t_rho_us));
            let view = link(queue, now);
            law.on_arrival(view, PacketIn::of(size, None));
            prop_assert!(law.on_timer(QUEUE, view) > now || now == Time::MAX);
            prop_assert!(law.on_timer(LOAD, view) > now || now == Time::MAX);
            prop_assert!(law.load().is_finite() && law.load() >= 0.0, "{}", law.load());
            let told = leaves(&mut law, view, code, || 0.5);
            prop_assert!(told >= code && told <= 3 && (code != 0 || told == 0));
            let (rtt, stamp) = (Time::from_micros(rtt_us), Stamp([law.load(), 0.0, 0.0]));
            flow.on_ack(&Ack { bits: told, ..Ack::of_one(now, rtt, &stamp) });
            model.on_ack(&Ack::of_one(now, rtt, &stamp));
            if code == 0 {
                flow.on_congestion(now, Congestion::Loss { flight: size });
                model.on_congestion(now, Congestion::Timeout { flight: size });
            }
            for window in [flow.cwnd(), model.cwnd()] {
                prop_assert!(window >= 1000.0 && window.is_finite(), "{window}");
            }
        }
    }
}

/// Section VI-D, by one control packet a round trip: the code counts for a window's acks. From 100 packets, with an RTT of t_rho, 01 adds a
/// sixteenth (xi = 0.25 0.2 / 0.8), 10 one packet (weight 1) or three (weight 3), 11 leaves 7/8; and a window that was not used does not grow.
#[test]
fn a_border_counts_a_code_for_a_window() {
    use flowstamp_laws::vcp::edge;
    let rtt = Time::from_millis(200);
    let flow = FlowView { packet_bytes: 1000, initial_window: 100.0, app_rate: None };
    for (code, weight, carried, packets) in [
        (Code::Low, 1.0, 1e5, 106.25),
        (Code::High, 1.0, 1e5, 101.0),
        (Code::High, 3.0, 1e5, 103.0),
        (Code::Overload, 1.0, 1e5, 87.5),
        (Code::Low, 1.0, 8e4, 100.0),
        (Code::Overload, 1.0, 0.0, 87.5),
    ] {
        let params = edge::Params { t_rho: Some(rtt), weight };
        let mut law = edge::Sender::new(&params, &flow);
        assert_eq!((law.pacing(), law.bits()), (None, Code::Low.bits()));
        assert!(edge::Sender::traits(&params).handshake);
        law.on_feedback(&Feedback {
            now: rtt,
            srtt: rtt,
            stamp: &Stamp::default(),
            bits: code.bits(),
            carried,
        });
        assert!((law.cwnd() / 1000.0 - packets).abs() < 1e-9, "{code:?} {weight} {carried}: {}", law.cwnd());
        let rate = law.pacing().expect("an answer").rate.bytes_per_sec();
        assert!((rate * 0.2 / 1000.0 - packets).abs() < 1e-9, "{rate}");
    }
}
