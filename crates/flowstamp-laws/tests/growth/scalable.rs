//! Scalable TCP against Kelly 2003: a = 0.01 and b = 0.125.

use super::path::{LosslessPath, near, refused};
use flowstamp_laws::tcp::scalable::{Params, Scalable};
use flowstamp_laws::tcp::{Sack, reno};
use flowstamp_laws::{Ratio, Time};

const RTT: Time = Time::from_millis(200);

fn path(packets: f64) -> LosslessPath<Scalable> {
    LosslessPath::new(&Params { initial_ssthresh: Some(2.0), ..Params::default() }, packets, RTT)
}

/// The paper: from a loss to the window before it in ln(1 - b) / -ln(1 + a) round trips, 2.7 s at 200 ms, at any rate.
#[test]
fn a_loss_is_made_up_for_in_13_round_trips_at_any_rate() {
    for packets in [200.0, 3_000.0, 170_000.0] {
        let mut path = path(packets);
        path.lose();
        near(path.window(), 0.875 * packets, 1e-12);
        let lost_at = path.now;
        while path.window() < packets {
            path.ack();
        }
        near(path.round_trips, 13.42, 0.01); // an ack at a time the window grows by e^0.01 a round trip, not by 1.01
        near((path.now - lost_at).as_secs_f64(), 2.7, 0.02); // its two digits
    }
}

/// A cycle has 1/p packets, in which the window grows by a each, and -ln(1 - b) / a round trips.
#[test]
fn the_mean_window_is_a_over_b_over_p() {
    for p in [1e-3, 1e-4, 1e-5] {
        near(path(0.08 / p).mean_window(p, 40, 20), 0.01 / (-f64::ln(0.875) * p), 0.01);
    }
}

#[test]
fn up_to_the_legacy_window_it_is_tcp() {
    let limits = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
    let (mut ours, mut tcp) = (path(8.0), LosslessPath::<Sack>::new(&limits, 8.0, RTT));
    while tcp.window() <= 16.0 {
        assert_eq!(ours.window(), tcp.window());
        ours.ack();
        tcp.ack();
    }
    let before = ours.window();
    ours.ack();
    near(ours.window() - before, 0.01, 1e-9);
    let mut small = path(16.0);
    small.lose();
    assert_eq!(small.window(), 8.0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    refused::<Scalable>(&Params { increase: 2.0, ..Params::default() }, "increase");
    refused::<Scalable>(&Params { increase: f64::NAN, ..Params::default() }, "increase");
    refused::<Scalable>(&Params { decrease: Ratio::new(1.5), ..Params::default() }, "decrease");
    refused::<Scalable>(&Params { legacy_window: -1.0, ..Params::default() }, "legacy_window");
}
