//! BIC against Xu, Harfoush and Rhee 2004: the search, its limits, and the window that follows from them.

use super::path::{LosslessPath, near, refused};
use flowstamp_laws::sender::{Congestion, SenderLaw};
use flowstamp_laws::tcp::bic::{Bic, Params};
use flowstamp_laws::tcp::{Sack, reno};
use flowstamp_laws::{Ratio, Time};

const RTT: Time = Time::from_millis(100);

fn params() -> Params {
    Params { initial_ssthresh: Some(2.0), fast_convergence: false, ..Params::default() }
}

fn path(packets: f64) -> LosslessPath<Bic> {
    LosslessPath::new(&params(), packets, RTT)
}

/// The growth in a round trip with as many acks as the window has packets.
fn round_trip(path: &mut LosslessPath<Bic>) -> f64 {
    let before = path.window();
    let until = path.round_trips + 1.0;
    while path.round_trips < until - 1e-9 {
        path.ack();
    }
    path.window() - before
}

#[test]
fn the_search_adds_s_max_then_halves_and_probes_beyond() {
    let mut path = path(10_000.0);
    path.lose();
    near(path.window(), 8750.0, 1e-12);
    // (10000 - 8750 - 64) / 32 round trips of S_max: beyond them the target, midway, is less than S_max away.
    for _ in 0..37 {
        near(round_trip(&mut path), 32.0, 0.01);
    }
    // The distance d is 66 then; with the target moved by each ack a round trip leaves e^-1/2 of it.
    while 10_000.0 - path.window() > 64.0 {
        path.ack();
    }
    for _ in 0..8 {
        let distance = 10_000.0 - path.window();
        near(round_trip(&mut path), distance * (1.0 - f64::exp(-0.5)), 0.01);
    }
    // Steps of S_min at least, until the maximum is reached.
    while path.window() < 10_000.0 {
        let before = path.window();
        path.ack();
        assert!((path.window() - before) * before >= 0.01 * 0.999);
    }
    // Max probing: 1, 2, 4 ... S_max, and on.
    for step in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0] {
        near(round_trip(&mut path), step, 0.04); // a doubling may come an ack late
    }
}

/// S_max holds except at the end of a cycle: its round trips, then those of the search from 2 S_max to S_min, whose
/// last step is at S_min / 2.
#[test]
fn the_mean_window_is_that_of_its_response_function() {
    let (s_max, s_min, beta): (f64, f64, f64) = (32.0, 0.01, 0.125);
    let mut share = 0.0;
    for p in [1e-5, 1e-6] {
        let search = 2.0 * f64::ln(2.0 * s_max / (2.0 * s_min)) + 2.0;
        // Packets of a cycle whose largest window is w, and its round trips.
        let cycle = |w: f64| {
            let linear = (beta * w - 2.0 * s_max) / s_max;
            (linear * (w * (1.0 - 0.5 * beta) - s_max) + search * w, linear + search)
        };
        let (mut low, mut high) = (600.0, 1e6);
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if cycle(middle).0 < 1.0 / p { low = middle } else { high = middle }
        }
        let (packets, round_trips) = cycle(low);
        let mean = path(low).mean_window(p, 4, 8);
        near(mean, packets / round_trips, 0.03); // max probing in some cycles
        // The paper's limit, an AIMD of S_max and beta, is approached from below: the search has ever less of a cycle.
        let limit = f64::sqrt(s_max * (2.0 - beta) / (2.0 * beta * p));
        assert!(mean / limit > share && mean < limit, "{p}: {mean} {limit}");
        share = mean / limit;
    }
}

#[test]
fn a_window_that_gives_way_leaves_room() {
    let fast = Params { initial_ssthresh: Some(2.0), ..Params::default() };
    let mut path = LosslessPath::<Bic>::new(&fast, 1000.0, RTT);
    path.lose(); // W_max 1000
    path.lose(); // at 875, below: W_max (875 + 765.625) / 2 = 820.3
    near(path.window(), 765.625, 1e-12);
    while path.window() < 819.9 {
        path.ack();
    }
    assert!(round_trip(&mut path) < 1.0, "slow near the lowered maximum");
}

#[test]
fn below_low_window_it_is_tcp() {
    let limits = reno::Params { initial_ssthresh: Some(2.0), ..reno::Params::default() };
    let (mut ours, mut tcp) = (path(4.0), LosslessPath::<Sack>::new(&limits, 4.0, RTT));
    while tcp.window() < 14.0 {
        assert_eq!(ours.window(), tcp.window());
        ours.ack();
        tcp.ack();
    }
    let mut small = path(13.0);
    small.lose();
    assert_eq!(small.window(), 6.5);
    let mut late = path(1000.0);
    late.law.on_congestion(late.now, Congestion::Timeout { flight: u32::MAX });
    assert_eq!((late.window(), late.law.ssthresh() / super::path::PACKET), (1.0, 875.0));
}

#[test]
fn what_makes_no_sense_is_refused() {
    refused::<Bic>(&Params { max_step: 0.0, ..params() }, "max_step");
    refused::<Bic>(&Params { min_step: 33.0, ..params() }, "min_step");
    refused::<Bic>(&Params { decrease: Ratio::new(1.5), ..params() }, "decrease");
    refused::<Bic>(&Params { low_window: f64::NAN, ..params() }, "low_window");
}
