//! The border of stability against the equation itself, and against what the papers say of it.

use flowstamp_fluid::stability::{MOST_ALPHA, MOST_BETA, largest_alpha, largest_beta, phase_margin};
use proptest::prelude::*;
use std::f64::consts::{FRAC_PI_4, SQRT_2};

/// Whether a disturbance dies: the equation with a delay of 1, by Heun's method.
fn dies(alpha: f64, beta: f64) -> bool {
    const STEPS: usize = 400;
    let dt = 1.0 / STEPS as f64;
    let (mut x, mut q) = (vec![1.0; STEPS + 1], vec![0.0; STEPS + 1]);
    for _ in 0..600 * STEPS {
        let at = x.len() - 1;
        let slope = |i: usize| -alpha * x[i] - beta * q[i];
        let next = x[at] + dt * (slope(at - STEPS) + slope(at + 1 - STEPS)) / 2.0;
        q.push(q[at] + dt * (x[at] + next) / 2.0);
        x.push(next);
    }
    let most = |from: usize, to: usize| {
        x[from * STEPS..to * STEPS].iter().fold(0.0, |most: f64, x| most.max(x.abs()))
    };
    most(500, 600) < most(200, 300)
}

#[test]
fn the_border_is_where_the_equation_has_it() {
    for alpha in [0.1, 0.4, 0.8, 1.2, 1.5] {
        let border = largest_beta(alpha).unwrap();
        assert!(dies(alpha, 0.97 * border), "alpha {alpha}, beta below {border}");
        assert!(!dies(alpha, 1.03 * border), "alpha {alpha}, beta above {border}");
    }
    assert!(dies(0.98 * MOST_ALPHA, 0.0) && !dies(1.02 * MOST_ALPHA, 0.0));
}

#[test]
fn the_papers_say_so() {
    // Theorem 1: on its curve the margin is pi/4 - sqrt(2) alpha, which ends at the border.
    for alpha in [0.1, 0.4, 0.5, FRAC_PI_4 / SQRT_2] {
        let margin = phase_margin(alpha, alpha * alpha * SQRT_2).unwrap();
        assert!((margin - (FRAC_PI_4 - SQRT_2 * alpha)).abs() < 1e-12, "{margin}");
    }
    // Appendix D, by a Padé approximation of the delay, which is good at low frequencies: 0.3436 < alpha < 1.436 for beta = 0.3.
    assert!(
        phase_margin(0.3436 - 0.002, 0.3).unwrap() < 0.0 && phase_margin(0.3436 + 0.002, 0.3).unwrap() > 0.0
    );
    assert!((largest_alpha(0.3).unwrap() - 1.436).abs() < 0.04);
    // Section 5.1.2: capped at beta of 0.55 and alpha of 1.6.
    assert!((MOST_BETA - 0.55).abs() < 0.005 && (MOST_ALPHA - 1.6).abs() < 0.05);
    let peak = (1..1570).map(|milli| largest_beta(f64::from(milli) / 1000.0).unwrap()).fold(0.0, f64::max);
    assert!((peak - MOST_BETA).abs() < 1e-6, "{peak}");
    assert_eq!(
        (largest_beta(MOST_ALPHA), largest_alpha(MOST_BETA), phase_margin(0.0, 0.0)),
        (None, None, None)
    );
}

proptest! {
    #[test]
    fn borders_and_margins_agree(alpha in 0.001..2.0, beta in 0.0..1.0) {
        let stable = phase_margin(alpha, beta).unwrap() > 0.0;
        prop_assert_eq!(stable, largest_beta(alpha).is_some_and(|most| beta < most));
        if stable {
            prop_assert!(alpha < largest_alpha(beta).unwrap());
        }
        if let Some(most) = largest_alpha(beta) {
            prop_assert!(phase_margin(most, beta).unwrap().abs() < 1e-9);
        }
    }
}
