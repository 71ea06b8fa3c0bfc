//! FAST against Wei, Jin, Low and Hegde 2006: the update, and where it rests.

use super::path::{LosslessPath, PACKET, near, refused};
use flowstamp_laws::sender::{Congestion, SenderLaw};
use flowstamp_laws::tcp::fast::{Fast, Params, update};
use flowstamp_laws::{Ratio, Time};

/// min(2 w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha)).
#[test]
fn the_update_is_that_of_the_formula() {
    for (w, ratio, alpha, gamma, wanted) in [
        (100.0, 0.5, 20.0, 0.5, 85.0),
        (100.0, 0.8, 20.0, 0.5, 100.0), // 20 packets queued: in equilibrium
        (100.0, 1.0, 20.0, 0.5, 110.0),
        (4.0, 1.0, 20.0, 0.5, 8.0), // no more than twice
        (1000.0, 0.9, 200.0, 1.0, 1100.0),
    ] {
        near(update(w, ratio, alpha, gamma), wanted, 1e-12);
    }
}

/// One link of so many packets/s: what does not fit into its round trip waits.
fn on_a_link(path: &mut LosslessPath<Fast>, packets_per_s: f64, round_trips: u32) {
    for _ in 0..round_trips {
        let until = path.round_trips + 1.0;
        while path.round_trips < until {
            let queued = (path.window() - packets_per_s * path.min_rtt.as_secs_f64()).max(0.0);
            path.rtt = path.min_rtt + Time::from_secs_f64(queued / packets_per_s);
            path.ack();
        }
    }
}

/// In equilibrium w = C baseRTT + alpha, from 1 Mb/s and 1 s to 10 Gb/s and 30 us.
#[test]
fn it_rests_with_alpha_packets_queued() {
    for (packets_per_s, base, alpha) in [
        (125.0, Time::from_secs(1), 20.0),
        (1_250_000.0, Time::from_micros(30), 20.0),
        (6_250.0, Time::from_millis(80), 20.0),
        (6_250.0, Time::from_millis(80), 200.0),
    ] {
        let mut path = LosslessPath::<Fast>::new(&Params { alpha, ..Params::default() }, 2.0, base);
        on_a_link(&mut path, packets_per_s, 200);
        near(path.window(), packets_per_s * base.as_secs_f64() + alpha, 0.01);
    }
}

/// 2 + 4 + 8 + 16 + 32 = 62 acks are five round trips.
#[test]
fn it_doubles_while_nothing_is_queued() {
    let mut path = LosslessPath::<Fast>::new(&Params::default(), 2.0, Time::from_millis(80));
    for acks in [2, 4, 8, 16, 32] {
        near(path.window(), f64::from(acks), 1e-9);
        (0..acks).for_each(|_| path.ack());
    }
    near(path.window(), 64.0, 1e-9);
}

#[test]
fn a_loss_halves_the_window_and_a_timeout_leaves_a_packet() {
    let mut path = LosslessPath::<Fast>::new(&Params::default(), 100.0, Time::from_millis(80));
    path.law.on_congestion(path.now, Congestion::Loss { flight: 60 });
    assert_eq!(path.law.cwnd(), 30.0 * PACKET, "of what was in flight");
    path.lose();
    assert_eq!(path.law.cwnd(), 15.0 * PACKET);
    path.law.on_congestion(path.now, Congestion::Timeout { flight: 10 });
    assert_eq!(path.law.cwnd(), PACKET);
}

#[test]
fn what_makes_no_sense_is_refused() {
    refused::<Fast>(&Params { alpha: 0.0, ..Params::default() }, "alpha");
    refused::<Fast>(&Params { gamma: Ratio::new(0.0), ..Params::default() }, "gamma");
    refused::<Fast>(&Params { max_window: Some(f64::NAN), ..Params::default() }, "max_window");
}
