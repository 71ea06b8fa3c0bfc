//! H-TCP against Leith and Shorten 2004: alpha(Delta), and what a loss leaves.

use super::path::{LosslessPath, near, refused};
use flowstamp_laws::sender::{Congestion, SenderLaw};
use flowstamp_laws::tcp::htcp::{Htcp, Params, alpha_h};
use flowstamp_laws::{Ratio, Time};

/// As the paper writes it, without RTT scaling.
fn params() -> Params {
    Params { initial_ssthresh: Some(2.0), reference_rtt: Time::ZERO, ..Params::default() }
}

/// alpha(Delta) = 1 + 10 (Delta - 1 s) + ((Delta - 1 s) / 2)^2.
const ALPHA: [(f64, f64); 6] =
    [(0.5, 1.0), (1.0, 1.0), (1.5, 6.0625), (2.0, 11.25), (3.0, 22.0), (11.0, 126.0)];

#[test]
fn alpha_is_that_of_the_formula() {
    for (delta, alpha) in ALPHA {
        assert_eq!(alpha_h(delta - 1.0), alpha, "{delta} s");
        let mut path = LosslessPath::<Htcp>::new(&params(), 5000.0, Time::from_millis(100));
        path.lose();
        // Before throughputs can be compared beta is 0.5, and 2 (1 - beta) is 1.
        near(path.law.growth().alpha(path.now + Time::from_secs_f64(delta)), alpha, 1e-9);
    }
}

/// The integral of alpha over 11 s is 1 + 10 + 500 + 1000 / 12 packet-seconds per round trip.
#[test]
fn the_window_grows_by_the_integral_of_alpha() {
    let mut path = LosslessPath::<Htcp>::new(&params(), 5000.0, Time::from_millis(100));
    path.lose();
    path.ack(); // it may not count, as with the first Delta is 0
    let before = path.window();
    path.acks_for(Time::from_secs(11));
    near(path.window() - before, (11.0 + 500.0 + 1000.0 / 12.0) / 0.1, 0.01);
}

/// Two losses, before which so many packets arrive in a second, each after so long.
fn two_losses(rtt_ms: u64, rates: [u32; 2]) -> LosslessPath<Htcp> {
    let mut path = LosslessPath::<Htcp>::new(&params(), 1000.0, Time::from_millis(100));
    path.rtt = Time::from_millis(rtt_ms);
    for rate in rates {
        for _ in 0..rate {
            path.ack_after(Time::from_secs_f64(1.0 / f64::from(rate)));
        }
        path.lose();
    }
    path
}

#[test]
fn the_queue_is_emptied_by_a_loss_and_no_more() {
    // RTT_min / RTT_max, in [0.5, 0.8].
    for (rtt_ms, beta) in [(150, 2.0 / 3.0), (125, 0.8), (110, 0.8), (190, 100.0 / 190.0), (300, 0.5)] {
        let mut path = two_losses(rtt_ms, [5000, 5000]);
        near(path.law.growth().beta(), beta, 1e-9);
        // 2 (1 - beta): a flow that gives up less adds less.
        near(path.law.growth().alpha(path.now), 2.0 * (1.0 - beta), 1e-9);
        let before = path.window();
        path.lose();
        assert!(path.window() <= beta * before * (1.0 + 1e-9));
        path.law.on_congestion(path.now, Congestion::Timeout { flight: u32::MAX });
        assert_eq!((path.law.growth().beta(), path.law.cwnd()), (0.5, super::path::PACKET));
    }
}

#[test]
fn a_change_of_throughput_by_more_than_a_fifth_halves_the_window() {
    for (second, beta) in [(5900, 2.0 / 3.0), (6200, 0.5), (4100, 2.0 / 3.0), (3800, 0.5)] {
        near(two_losses(150, [5000, second]).law.growth().beta(), beta, 1e-9);
    }
}

#[test]
fn rtt_scaling_makes_growth_in_time_the_same() {
    let scaled = Params { reference_rtt: Time::from_millis(100), ..params() };
    for (rtt_ms, scaling) in [(100, 1.0), (50, 0.5), (10, 0.1), (1, 0.1), (200, 2.0), (1000, 2.0)] {
        let mut path = LosslessPath::<Htcp>::new(&scaled, 1000.0, Time::from_millis(rtt_ms));
        path.ack();
        path.lose();
        near(path.law.growth().alpha(path.now + Time::from_secs(11)), 126.0 * scaling, 1e-9);
        assert!(path.law.growth().alpha(path.now) >= 1.0, "never less than TCP");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    refused::<Htcp>(&Params { min_beta: Ratio::new(1.5), ..params() }, "min_beta");
    refused::<Htcp>(&Params { max_beta: Ratio::new(0.4), ..params() }, "max_beta");
    refused::<Htcp>(&Params { throughput_change: Ratio::new(-0.1), ..params() }, "throughput_change");
}
