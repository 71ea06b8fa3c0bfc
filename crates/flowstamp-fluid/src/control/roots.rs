//! Finds zeros: of polynomials of any degree, and of continuous functions between two points.

use num_complex::Complex64;
use std::f64::consts::TAU;

pub fn polynomial(coefficients: &[f64], s: Complex64) -> Complex64 {
    coefficients.iter().rev().fold(Complex64::ZERO, |sum, c| sum * s + c)
}

/// The roots of a polynomial of any degree, by Durand and Kerner's iteration.
pub fn roots(coefficients: &[f64]) -> Vec<Complex64> {
    let Some((leading, lower)) = coefficients.split_last() else { return Vec::new() };
    let bound = 1.0 + lower.iter().map(|c| (c / leading).abs()).fold(0.0, f64::max);
    let mut found: Vec<Complex64> = (0..lower.len())
        .map(|i| Complex64::from_polar(bound * 0.7, 0.4 + TAU * i as f64 / lower.len() as f64))
        .collect();
    for _ in 0..500 {
        let mut moved = 0.0f64;
        for i in 0..found.len() {
            let others =
                (0..found.len()).filter(|j| *j != i).map(|j| found[i] - found[j]).product::<Complex64>();
            let step = polynomial(coefficients, found[i]) / (others * leading);
            if step.is_finite() {
                found[i] -= step;
                moved = moved.max(step.norm() / found[i].norm().max(f64::MIN_POSITIVE));
            }
        }
        if moved < 1e-15 {
            break;
        }
    }
    found
}

pub fn bisect(mut low: f64, mut high: f64, f: &dyn Fn(f64) -> f64) -> f64 {
    let sign = f(low) > 0.0;
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if (f(middle) > 0.0) == sign {
            low = middle;
        } else {
            high = middle;
        }
    }
}
