//! Proofs about the switched system, against its solution in time; its border, against the table that runs' hints are
//! by.

use flowstamp_fluid::control::delay::Solution;
use flowstamp_fluid::control::models::Switched;
use flowstamp_fluid::control::proof::{Proof, proof};
use flowstamp_fluid::control::switched::{border, dies};
use flowstamp_fluid::stability::{MOST_ALPHA, SWITCHED_WITHIN, largest_alpha, phase_margin, switched_alpha};
use proptest::prelude::*;

#[test]
fn the_papers_gains_are_proved() {
    // XCP's own; RCP's, the thesis's chapters 3 and 4, 5.2 and 5.3: outside of the linear region, except the first.
    for (alpha, beta) in [(0.4, 0.226), (0.4, 0.5), (0.1, 1.0), (0.8, 0.55), (0.8, 0.6)] {
        assert!(proof(alpha, beta).is_some(), "{alpha}, {beta}");
    }
    assert!(phase_margin(0.1, 1.0).unwrap() < 0.0 && phase_margin(0.4, 0.5).unwrap() < 0.0);
    // Slow ones; what is unstable; and what is no number that there could be a proof of.
    assert!(proof(1e-3, 0.1).is_some() && proof(0.4, 1e-6).is_some());
    assert!(phase_margin(1.44, 0.246).unwrap() > 0.0 && proof(1.44, 0.246).is_none());
    for (alpha, beta) in [(0.0, 0.5), (1.6, 0.1), (0.4, 0.0), (f64::NAN, 0.5), (0.4, f64::INFINITY)] {
        assert_eq!(proof(alpha, beta), None);
    }
}

/// Steps of an RTT.
const STEPS: usize = 512;

/// The proof's own inequality on a solution, between two instants at which the queue is empty: its left side and its right side.
fn sides(proof: &Proof, alpha: f64, beta: f64) -> (f64, f64) {
    let dt = 1.0 / STEPS as f64;
    let times: Vec<f64> = (0..120 * STEPS).map(|i| i as f64 * dt).collect();
    let system = Switched { alpha, beta, floor: true, error: 0.0 };
    let states =
        Solution::new(system, [1.0, 0.5], dt).and_then(|mut it| it.sampled(&times)).expect("a solution");
    let empty = |from: usize| (from..states.len()).find(|i| states[*i][1] == 0.0).expect("it empties");
    let start = empty(2 * STEPS);
    // The longest that it is seen, to an empty queue.
    let end = (0..states.len()).rev().find(|i| states[*i][1] == 0.0).expect("it empties");
    let queue = |i: usize| if i < end { states[i][1] } else { 0.0 };
    // The part that remains from before: x without the queue from the start on.
    let mut rest: Vec<f64> = states[..=start].iter().map(|x| x[0]).collect();
    while rest.len() <= end {
        let i = rest.len() - 1;
        let slope = |j: usize| -alpha * rest[j] - if j < start { beta * states[j][1] } else { 0.0 };
        let step = dt * (slope(i - STEPS) + slope(i + 1 - STEPS)) / 2.0;
        rest.push(rest[i] + step);
    }
    let (mut left, mut right) = (0.0, 0.0);
    for (i, rest) in rest.iter().enumerate().take(end).skip(start) {
        let (q, slope) = (queue(i), (queue(i + 1) - queue(i)) / dt);
        let ahead: f64 =
            proof.ahead.iter().map(|(delay, z)| z * queue(i + (delay / dt).round() as usize)).sum();
        left += proof.epsilon * (q * q + slope * slope) * dt;
        right += (proof.c * q + proof.lambda * slope - ahead) * rest * dt;
    }
    (left, right)
}

#[test]
fn a_solution_is_as_its_proof_says() {
    for (alpha, beta) in [(0.6, 0.3), (0.5, 0.5), (0.8, 0.6), (1.3, 0.3), (0.5, 2.0)] {
        let found = proof(alpha, beta).expect("a proof");
        let (left, right) = sides(&found, alpha, beta);
        assert!(left > 0.0 && left <= right, "{alpha}, {beta}: {left} and {right}");
        // Not by far: ten times the epsilon would be too large.
        assert!(10.0 * left > right, "{alpha}, {beta}: {left} and {right}");
    }
}

#[test]
fn the_border_is_where_the_table_has_it() {
    assert_eq!((switched_alpha(0.0), switched_alpha(10.1)), (Some(MOST_ALPHA), None));
    // At its points, and between them.
    let betas =
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0];
    for (i, beta) in betas.into_iter().enumerate() {
        let before = if i == 0 { 0.0 } else { betas[i - 1] };
        for (beta, within) in [(beta, 2e-4), (f64::midpoint(before, beta), SWITCHED_WITHIN / 2.0)] {
            let alpha = switched_alpha(beta).unwrap();
            assert!(dies(alpha - within, beta, 1000.0), "{alpha}, {beta}");
            assert!(!dies(alpha + within, beta, 1000.0), "{alpha}, {beta}");
        }
    }
}

#[test]
fn what_is_proved_is_most_of_what_is_stable() {
    let mut last = f64::INFINITY;
    for beta in [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0] {
        let stable = border(beta, 1000.0, 1e-3);
        let proved = (1..1000)
            .rev()
            .map(|i| f64::from(i) * stable / 1000.0)
            .find(|alpha| proof(*alpha, beta).is_some());
        let proved = proved.expect("a proof");
        assert!(proved > 0.78 * stable && proved < last, "{beta}: {proved} of {stable}");
        // Up to there without gaps.
        assert!((1..20).all(|i| proof(f64::from(i) * proved / 20.0, beta).is_some()), "{beta}");
        assert!(largest_alpha(beta).is_none_or(|linear| proved < linear), "{beta}: {proved}");
        last = proved;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Gains from the whole region, also near its border.
    #[test]
    fn what_is_proved_dies(beta in 0.02f64..3.0, part in 0.02f64..1.05) {
        let alpha = part * switched_alpha(beta).unwrap();
        if proof(alpha, beta).is_some() {
            prop_assert!(dies(alpha, beta, 1500.0), "{}, {}", alpha, beta);
        }
    }
}
