//! Equations in their own units against those in a scale of their own, windows against their sum, and loops without a delay.

use flowstamp_fluid::control::delay::Solution;
use flowstamp_fluid::control::frequency::OpenLoop;
use flowstamp_fluid::control::models::{Miaimd, Rcp};
use flowstamp_fluid::control::region::{Fate, Patience};
use flowstamp_fluid::control::settle::{RcpLink, windows};
use flowstamp_fluid::stability::{gain_crossing, phase_crossing, phase_margin};
use proptest::prelude::*;

const STEPS: f64 = 32.0;

fn times(end: f64) -> Vec<f64> {
    (0..=100).map(|i| end * f64::from(i) / 100.0).collect()
}

#[test]
fn rcp_is_the_same_in_bits_and_seconds() {
    for (capacity, rtt, flows, buffer, start) in [
        (56e3, 0.01, 10.0, f64::INFINITY, [0.5, 2.0]),
        (0.15e9, 0.2, 10.0, f64::INFINITY, [0.01, 2.0]),
        (0.15e9, 0.2, 10.0, 0.3, [0.2, 0.0]),
        (1e12, 2.0, 5000.0, f64::INFINITY, [0.002, 0.0]),
        (1e12, 2.0, 5000.0, 2.0, [0.002, 2.0]),
    ] {
        let link = RcpLink { alpha: 0.6, beta: 0.8, capacity, rtt, flows, buffer };
        let seconds: Vec<f64> = times(30.0).iter().map(|t| t * rtt).collect();
        let found = link.states(start, &seconds).expect("states");
        let scaled = Rcp { alpha: 0.6, beta: 0.8, most: flows, buffer, queue_in_rtt: true };
        let mut solution =
            Solution::new(scaled, [start[0] * flows, start[1]], 1.0 / STEPS).expect("a solution");
        let expected = solution.sampled(&times(30.0)).expect("states");
        assert_eq!(found.len(), 101);
        for (a, b) in found.iter().zip(&expected) {
            let (rate, queue) = (a[0] * flows, a[1]);
            // Rounding, and where a switch falls in the last bits of its step.
            assert!((rate - b[0]).abs() < 1e-6 * b[0].max(1.0), "{rate} and {b:?}, C {capacity}");
            assert!((queue - b[1]).abs() < 1e-6 * b[1].max(1.0), "{queue} and {b:?}, C {capacity}");
        }
    }
}

#[test]
fn rcps_fate_in_seconds_is_told_in_round_trips() {
    let patience = Patience { band: 1.0, hold: 20.0, most: 500.0, lost: 1e9 };
    let fate = |alpha: f64, rtt: f64| {
        let link = RcpLink { alpha, beta: 0.5, capacity: 1e8, rtt, flows: 20.0, buffer: f64::INFINITY };
        link.fate([0.1, 0.0], &patience)
    };
    let (Fate::Settles { after: short }, Fate::Settles { after: long }) = (fate(0.5, 0.01), fate(0.5, 2.0))
    else {
        panic!("(0.5, 0.5) is stable");
    };
    assert!((16.0..18.0).contains(&short) && (short - long).abs() < 1.0 / STEPS, "{short} and {long}");
    assert_eq!(fate(1.7, 0.01), Fate::Oscillates);
}

#[test]
fn the_sum_of_windows_is_the_model_of_the_sum() {
    let found = windows(0.25, 1.0, &[2.0, 20.0, 70.0], &[(300.0, vec![0, 1, 2])], None, &times(100.0))
        .expect("windows");
    let sum = Miaimd { kappa: 0.25, addition: 3.0 / 300.0 };
    let mut solution = Solution::new(sum, [92.0 / 300.0], 1.0 / STEPS).expect("a solution");
    for (a, b) in found.chunks(3).zip(solution.sampled(&times(100.0)).expect("states")) {
        let total = a.iter().sum::<f64>() / 300.0;
        assert!((total - b[0]).abs() < 1e-6, "{total} and {b:?}");
    }
}

proptest! {
    /// Theorem 3 of Xia 2008, of the model: `w' = kappa (1 / rho - 1) w`, so that each halving takes `ln 2 / kappa` while the load is large.
    #[test]
    fn what_is_over_used_is_released_at_a_rate_of_kappa(kappa in 0.05..0.5f64, over in 1e3..1e6f64, carries in 1e2..1e4f64) {
        let w = windows(kappa, 1.0, &[over * carries], &[(carries, vec![0])], None, &[0.0, 1.0, 5.0]).expect("windows");
        // A load of more than `least` leaves at most that part of the rate, and a flow adds a packet in an RTT.
        let least = over * (-5.0 * kappa).exp();
        for (from, to, rtts) in [(w[0], w[1], 1.0), (w[1], w[2], 4.0)] {
            let rate = (from / to).ln() / rtts;
            prop_assert!((rate / kappa - 1.0).abs() <= 1.0 / least + 1.0 / (kappa * to) + 1e-6, "{rate} of {kappa}");
        }
    }
}

#[test]
fn a_link_that_is_not_the_tightest_has_no_say() {
    // Flow 0 crosses both: the first link, with flow 1 on it, is the tighter.
    let links = [(100.0, vec![0, 1]), (1000.0, vec![0, 2])];
    let w = windows(0.25, 1.0, &[10.0; 3], &links, None, &[4000.0]).expect("windows");
    assert!((w[0] / w[1] - 1.0).abs() < 1e-6, "{w:?}");
    // In equilibrium kappa w (1 - 1 / rho) = alpha, with rho of the flow's own tightest link.
    for (flow, rho) in [(1, (w[0] + w[1]) / 100.0), (2, (w[0] + w[2]) / 1000.0)] {
        assert!((0.25 * w[flow] * (1.0 - 1.0 / rho) - 1.0).abs() < 1e-6, "{w:?}");
    }
}

#[test]
fn flows_that_cross_nothing_are_refused() {
    let told = |start: &[f64], links: &[(f64, Vec<usize>)]| {
        windows(0.25, 1.0, start, links, None, &[1.0]).err().unwrap_or_default()
    };
    assert_eq!(told(&[1.0], &[]), "0 links; there must be 1 to 8");
    let neither = "capacities, RTTs and flows must be above 0, and each route has links";
    assert!(told(&[1.0; 2], &[(9.0, vec![0])]).starts_with(neither));
    assert!(told(&[1.0], &[(0.0, vec![0])]).starts_with(neither));
}

/// Equation 14, whatever flows, kappa, capacity and windows to begin with: what is more than a step away moves towards where the utilisation is the
/// target, `gamma = U* - N alpha / (kappa C T)`, and from there it moves no further than a step.
#[test]
fn vcps_adjustment_ends_at_the_target_and_nowhere_else() {
    let times: Vec<f64> = (1..=60 * 50).map(f64::from).collect();
    for (flows, kappa, carries) in
        [(1, 0.25, 100.0), (4, 0.25, 100.0), (4, 0.5, 400.0), (3, 0.1, 400.0), (2, 0.05, 4000.0)]
    {
        for (window, step) in [(2.0, 0.01), (1.2 * carries, 0.01), (2.0, 0.005)] {
            let of = format!("{flows} flows, kappa {kappa}, {carries} packets, from {window}, step {step}");
            let links = [(carries, (0..flows).collect())];
            let rows = windows(kappa, 1.0, &vec![window; flows], &links, Some((step, 50.0)), &times).unwrap();
            let rows: Vec<&[f64]> = rows.chunks(flows + 1).collect();
            let wanted = 1.0 - flows as f64 / kappa / carries;
            let gammas: Vec<f64> = rows.iter().skip(24).step_by(50).map(|row| row[flows] - wanted).collect();
            for (n, away) in gammas.windows(2).enumerate().skip(25) {
                let near = if away[0].abs() > step { away[0].abs() - 0.99 * step } else { 1.01 * step };
                assert!(away[1].abs() < near, "{of}: from {} to {} after {n}", away[0], away[1]);
            }
            assert!(gammas[59].abs() < 1.01 * step, "{of}: {gammas:?}");
            for part in rows[rows.len() - 500..].chunks(50) {
                let used = part.iter().flat_map(|row| &row[..flows]).sum::<f64>() / 50.0 / carries;
                assert!((used - 1.0).abs() < 1.01 * step, "{of}: {used}");
            }
        }
    }
}

#[test]
fn pades_range_for_the_thesiss_example() {
    // Roots of (alpha s + beta)(s^2 / 12 - s / 2 + 1) + s^2 (s^2 / 12 + s / 2 + 1), by numpy: -0.413, -6.24, -0.175 ± 1.17i for alpha = 1;
    // 0.00595 ± 1.4376i for 1.43.
    let roots = |alpha: f64| {
        OpenLoop::of_gains_by_pade(alpha, 0.3, 1.0).expect("a loop").roots_right_of(-1.0).expect("roots")
    };
    let stable = roots(1.0);
    assert_eq!(stable.len(), 3, "{stable:?}");
    assert!((stable[0].re + 0.174_974_84).abs() < 1e-7 && (stable[0].im.abs() - 1.169_499_36).abs() < 1e-7);
    assert!((stable[2].re + 0.412_754_52).abs() < 1e-7, "{stable:?}");
    assert!((roots(1.43)[0].re - 0.005_954_05).abs() < 1e-7, "{:?}", roots(1.43));
    for (alpha, unstable) in [(0.342, 2), (0.344, 0), (1.41, 0), (1.43, 2)] {
        let open = OpenLoop::of_gains_by_pade(alpha, 0.3, 0.2).expect("a loop");
        assert_eq!(open.unstable_roots(0.0), Some(unstable), "alpha {alpha}");
    }
}

proptest! {
    #[test]
    fn bode_by_both_crossings_is_the_phase_margin(alpha in 0.01..2.0, beta in 0.01..1.0) {
        let crosses_later = phase_crossing(alpha, beta).is_some_and(|theta| gain_crossing(alpha, beta) < theta);
        let margin = phase_margin(alpha, beta).expect("gains");
        prop_assume!(margin.abs() > 1e-9);
        prop_assert_eq!(crosses_later, margin > 0.0);
        if let Some(theta) = phase_crossing(alpha, beta) {
            prop_assert!((theta * alpha / beta).atan() - theta < 1e-9 && theta > 0.0, "{}", theta);
        }
        prop_assert_eq!(phase_crossing(alpha, beta).is_some(), alpha > beta);
    }
}
