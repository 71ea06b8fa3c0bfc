//! XCP-b's router with a fluid for packets: figure 4's bound, its author, and the time to fill a link.

use flowstamp_fluid::control::blind::{BlindLink, Seen, Senders};
use flowstamp_laws::xcp::blind::Detection;
use proptest::prelude::*;

/// An equilibrium queue of one byte: figure 4 has none.
const NONE: f64 = 1e-9;

const LINK: BlindLink = BlindLink {
    gains: [0.4, 0.2263],
    chi: Some(0.2),
    q_max: 0.5,
    kappa: NONE,
    detection: Detection::Average,
    senders: Senders::AtOnce,
    start: 0.3,
    parts: 1,
};

/// The largest queue over `chi Qmax`, and how many RTTs after there was one it is reached.
fn peak(link: &BlindLink) -> (f64, f64) {
    let seen = link.steps(80).expect("a link");
    let first = seen.iter().position(|step| step.queue > 1e-6).expect("a queue");
    let top = (0..seen.len()).max_by(|a, b| seen[*a].queue.total_cmp(&seen[*b].queue)).expect("steps");
    let unit = link.chi.expect("chi") * link.q_max;
    (seen[top].queue / unit, (top - first) as f64 / f64::from(link.parts))
}

/// The worst of instants within an interval at which the link is full.
fn worst(link: BlindLink) -> f64 {
    let unit = link.chi.expect("chi") * link.q_max;
    let starts = (0..40).map(|n| link.start + unit * f64::from(n) / 40.0);
    starts.map(|start| peak(&BlindLink { start, ..link }).0).fold(0.0, f64::max)
}

/// With `chi Qmax` of a tenth the link of senders that begin with so little less than 0.3 is as good as full at the end of an interval: that is figure 4, whose
/// queue shows at t = 5d and peaks at 7d.
#[test]
fn figure_4_is_the_router_with_senders_that_obey_at_once() {
    for detection in [Detection::Average, Detection::Counter] {
        let (peak, after) = peak(&BlindLink { start: 0.3 - 1e-7, detection, ..LINK });
        assert!((peak - (5.0 - 0.4 - 0.2263)).abs() < 1e-5, "{detection:?}: {peak}");
        assert_eq!(after, 2.0, "{detection:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// It is the worst of all, with gains that let the queue peak then: the interval after has an excess of `2 - 3 alpha - 4 beta` in the worst case.
    #[test]
    fn and_that_is_the_worst_case(
        alpha in 0.2..0.6f64,
        beta in 0.1..0.6f64,
        chi in 0.01..0.3f64,
        q_max in 0.05..2.0f64,
        start in 0.01..0.6f64,
    ) {
        prop_assume!((0.02..0.3).contains(&(chi * q_max)));
        let (peak, _) = peak(&BlindLink { gains: [alpha, beta], chi: Some(chi), q_max, start, ..LINK });
        let bound = 5.0 - alpha - beta;
        if 3.0 * alpha + 4.0 * beta >= 2.0 {
            prop_assert!(peak < bound + 1e-5, "{peak}, not {bound}");
        }
    }
}

#[test]
fn with_smaller_gains_it_is_not() {
    let gains = [0.2, 0.1];
    let (peak, after) = peak(&BlindLink { gains, start: 0.3 - 1e-7, ..LINK });
    assert!(peak > 5.0 - 0.3 + 0.5 && after > 2.0, "{peak} after {after}");
}

/// Figure 4 has what an interval's least queue says to senders in the interval after. Here the router announces it in
/// that interval, and senders obey an RTT later: the queue of rates is twice as long. Windows are what bounds it, which
/// grow by `chi Qmax` in an RTT however long the queue is.
#[test]
fn it_is_a_bound_for_windows_and_not_for_rates() {
    for parts in [16, 64] {
        let rates = worst(BlindLink { senders: Senders::Rates, parts, ..LINK });
        let windows = worst(BlindLink { senders: Senders::Windows, parts, ..LINK });
        assert!((9.0..10.5).contains(&rates), "{parts} parts: rates {rates}");
        assert!((2.0..2.6).contains(&windows), "{parts} parts: windows {windows}");
    }
}

#[test]
fn an_under_used_link_has_chi_q_max_more_in_each_interval() {
    let used = |steps: &[Seen], rtt: usize| {
        steps[64 * rtt..64 * (rtt + 1)].iter().map(|s| s.left).sum::<f64>() / 64.0
    };
    for senders in [Senders::Rates, Senders::Windows] {
        let link = BlindLink { chi: None, q_max: 0.05, start: 0.01, senders, parts: 64, ..LINK };
        let steps = link.steps(120).unwrap();
        let chi = 1.0 / (5.0 - 0.4 - 0.2263);
        let grows: Vec<f64> = (4..70).map(|rtt| used(&steps, rtt + 1) - used(&steps, rtt)).collect();
        // While rates grow, shuffled traffic is taken a little sooner than given. Windows that do come in bursts, whose
        // short queues are a longer RTT.
        let off = |by: f64| (by / (chi * 0.05) - 1.0).abs();
        assert!(off(grows.iter().sum::<f64>() / 66.0) < 0.02, "{senders:?}: {grows:?}");
        assert!(senders == Senders::Windows || grows.iter().all(|by| off(*by) < 5e-3), "{grows:?}");
        let full = (0..120).find(|rtt| used(&steps, *rtt) >= 0.9).unwrap();
        // Equation 7 over what is sent at first, those 2%, the first interval and the way of its feedback.
        assert!((full as f64 - 0.89 / (chi * 0.05)).abs() < 5.0, "{senders:?}: {full}");
    }
}

#[test]
fn a_link_rests_at_kappa_and_full() {
    let link = BlindLink { kappa: 0.05, senders: Senders::Windows, parts: 32, ..LINK };
    let seen = link.steps(400).unwrap();
    for step in &seen[32 * 350..] {
        assert!((step.queue - 0.05).abs() < 1e-3 && (step.left - 1.0).abs() < 1e-6, "{step:?}");
    }
}

#[test]
fn what_is_no_link_is_refused() {
    for (link, told) in [
        (
            BlindLink { q_max: 0.0, ..LINK },
            "q_max is 0 of the bandwidth-delay product; it must be above 0 and at most 4",
        ),
        (BlindLink { start: f64::NAN, ..LINK }, "start is NaN of"),
        (BlindLink { parts: 2, ..LINK }, "2 parts of an RTT; there must be 1 to 1"),
        (BlindLink { senders: Senders::Rates, ..LINK }, "1 parts of an RTT; there must be 2 to 10000"),
        (BlindLink { chi: Some(2.0), ..LINK }, "chi is 2; it must be 0.000001 to 1"),
    ] {
        let refused = link.steps(1).unwrap_err();
        assert!(refused.starts_with(told), "{refused}, not {told}");
    }
}
