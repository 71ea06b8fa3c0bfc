//! Proofs that the switched system is stable ([`super::models::Switched`], equation 5.14 of Dukkipati 2007), for any capacity, RTT and number of flows.
//!
//! The thesis has such regions by Lyapunov functionals (figures 5.5, right, and 5.6; its references 63 and 64). These are by multipliers, as Popov's
//! criterion, with what is special of a queue: it is not below zero. In round trips, with `l` what would have left an empty queue:
//!
//! ```text
//!   x' = -alpha x(t - 1) - beta q(t - 1)        q' = x + l        q >= 0,  l >= 0,  q l = 0
//!   H(s) = beta e^(-s) / (s + alpha e^(-s))     so that x = x0 - h * q,  x0 what is left of the start
//! ```
//!
//! `l` is above zero only where q is zero, and there `q' = 0` almost everywhere, so that `q' l = 0` too. **If** there are numbers c, lambda, all z and all w from 0
//! on, delays from 0 on and an epsilon above 0 with
//!
//! ```text
//!   F(w) = Re conj(c + lambda j w - sum z_k e^(j w s_k)) (j w + H(j w)) - sum w_k cos(w t_k) >= epsilon (1 + w^2)       for all w
//! ```
//!
//! and alpha is between 0 and pi/2, so that h decays, **then** from every start q and x go to zero:
//!
//! 1. *The queue is empty at times without end.* Let it be at 0 and at T, and be `q_T` the queue between them and zero elsewhere, which has no jump. Then
//!    `l q = 0`, `l q' = 0`, `l(t) q(t + s) >= 0` and `q(t) q(t + s) >= 0`, so that over `[0, T]`, where `l = q' + h * q - x0`,
//!
//!    ```text
//!      int (c q + lambda q' - sum z_k q(t + s_k)) (q' + h * q - x0) dt <= 0 <= sum w_k int q(t) q(t + t_k) dt
//!    ```
//!
//!    `q(t + s)` is zero after T, as are q and q'; before 0 `q' + h * q` is. So the integrals without x0 are over all time, and by Parseval
//!    `epsilon (|q_T|^2 + |q_T'|^2) <= int (c q_T + lambda q_T' - sum z_k q_T(t + s_k)) x0 dt`, which is at most a constant times the root of
//!    the left side, whatever T is, as x0 decays. So q and q' are square integrable to the end, q goes to zero, and so does `x = x0 - h * q`.
//! 2. *It is not empty from some time on.* From there on all is linear, and the roots are those of `s (s + alpha e^(-s)) + beta e^(-s)`, of which none is
//!    real and from zero on. What does not die is, after long, a sum of growing or steady swings about zero, and is below zero at times without end: so
//!    it dies.
//!
//! With c and lambda alone this is Popov's criterion, which proves no more than what the linear loop is stable with: a root of it at jw makes `jw + H` zero. By
//! `q(t) q(t + t_k) >= 0` what is proved goes beyond. F is linear in all numbers, so that the best for a grid of frequencies are those of a linear
//! program. What it finds is then tried at all frequencies, between which F changes by no more than its slope's bound. Doubles err by 1e-13 where epsilon is above
//! 1e-7: to that it is a proof.

use crate::stability::gain_crossing;
use num_complex::Complex64;
use std::f64::consts::{FRAC_PI_2, PI};

/// Delays of z and w: so many in half a swing of the linear loop, for so many of those.
const DELAYS: (u32, u32) = (8, 2);
/// Least epsilon.
const LEAST: f64 = 1e-7;
/// As often F is asked for.
const MOST_ASKED: u32 = 1 << 20;
/// As often a frequency is added at which F is too small.
const ROUNDS: u32 = 30;

/// A proof: the numbers of the module's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    alpha: f64,
    beta: f64,
    /// Of q.
    pub c: f64,
    /// Of q'.
    pub lambda: f64,
    /// Delays, and z.
    pub ahead: Vec<(f64, f64)>,
    /// Delays, and w.
    pub products: Vec<(f64, f64)>,
    /// F is at least this times `1 + w^2`.
    pub epsilon: f64,
}

/// What became of numbers at all frequencies.
enum Tried {
    Holds,
    /// Here F is too small.
    Not(f64),
    /// Nobody knows.
    Open,
}

/// A proof that the switched system with these gains is stable. None where none was found, which says nothing.
#[must_use]
pub fn proof(alpha: f64, beta: f64) -> Option<Proof> {
    if !(alpha > 0.0 && alpha < FRAC_PI_2 && beta > 0.0 && beta.is_finite()) {
        return None;
    }
    let swing = gain_crossing(alpha, beta);
    let delays: Vec<f64> =
        (1..=DELAYS.0 * DELAYS.1).map(|k| f64::from(k) / f64::from(DELAYS.0) * PI / swing).collect();
    let mut frequencies = vec![0.0];
    frequencies.extend((0..250).map(|i| 0.02 * swing * (2000.0 / swing).powf(f64::from(i) / 249.0)));
    frequencies.extend((1..240).map(|i| swing * f64::from(i) / 40.0));
    let mut rows: Vec<Vec<f64>> = frequencies.iter().map(|w| terms(alpha, beta, &delays, *w)).collect();
    for _ in 0..ROUNDS {
        let (value, weights) = game(&rows)?;
        let (z, w) = weights[2..].split_at(delays.len());
        let with = |of: &[f64]| -> Vec<(f64, f64)> {
            delays.iter().copied().zip(of.iter().copied()).filter(|(_, weight)| *weight > 0.0).collect()
        };
        let (ahead, products) = (with(z), with(w));
        let (c, lambda, epsilon) = (weights[0], weights[1], value / 2.0);
        let found = Proof { alpha, beta, c, lambda, ahead, products, epsilon };
        if epsilon < LEAST {
            return None;
        }
        match found.tried() {
            Tried::Holds => return Some(found),
            Tried::Not(w) => rows.push(terms(alpha, beta, &delays, w)),
            Tried::Open => return None,
        }
    }
    None
}

fn h(alpha: f64, beta: f64, s: Complex64) -> Complex64 {
    let e = (-s).exp();
    beta * e / (s + alpha * e)
}

/// What each number is multiplied by in `F / (1 + w^2)`.
fn terms(alpha: f64, beta: f64, delays: &[f64], w: f64) -> Vec<f64> {
    let s = Complex64::new(0.0, w);
    let g = s + h(alpha, beta, s);
    let of = |multiplier: Complex64| (multiplier.conj() * g).re;
    let ahead = delays.iter().map(|delay| -of((s * delay).exp()));
    let products = delays.iter().map(|delay| -(w * delay).cos());
    let all = [of(Complex64::ONE), of(s)].into_iter().chain(ahead).chain(products);
    all.map(|term| term / (1.0 + w * w)).collect()
}

/// The value of a game and how often its columns are played: the weights, of the sum 1, with which the least of all rows' sums is the largest. By
/// Dantzig's simplex method on the other player's side, which begins at a corner. None if it does not end.
fn game(rows: &[Vec<f64>]) -> Option<(f64, Vec<f64>)> {
    let (n, k) = (rows.len(), rows.first()?.len());
    let least = rows.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    // All above zero, so that the value is.
    let shift = 1.0 - least;
    // max sum y with sum_i y_i (row_i[j] + shift) + slack_j = 1; the last column is the right side, the last line the reduced costs.
    let width = n + k + 1;
    let mut table = vec![vec![0.0; width]; k + 1];
    for (j, line) in table.iter_mut().enumerate().take(k) {
        for (cell, row) in line.iter_mut().zip(rows) {
            *cell = row[j] + shift;
        }
        line[n + j] = 1.0;
        line[width - 1] = 1.0;
    }
    table[k][..n].fill(-1.0);
    for _ in 0..5000 {
        let (enters, cost) = table[k][..n + k]
            .iter()
            .enumerate()
            .min_by(|a, b| a.1.total_cmp(b.1))
            .map(|(column, cost)| (column, *cost))?;
        if cost > -1e-12 {
            let sum = table[k][width - 1];
            let weights = table[k][n..n + k].iter().map(|p| p.max(0.0) / sum).collect();
            return Some((1.0 / sum - shift, weights));
        }
        let leaves = (0..k).filter(|j| table[*j][enters] > 1e-12).min_by(|a, b| {
            let ratio = |j: usize| table[j][width - 1] / table[j][enters];
            ratio(*a).total_cmp(&ratio(*b))
        })?;
        let by = table[leaves][enters];
        table[leaves].iter_mut().for_each(|cell| *cell /= by);
        let pivot = table[leaves].clone();
        for (j, line) in table.iter_mut().enumerate() {
            let times = line[enters];
            if j != leaves && times != 0.0 {
                line.iter_mut().zip(&pivot).for_each(|(cell, p)| *cell -= times * p);
            }
        }
    }
    None
}

impl Proof {
    /// F.
    #[must_use]
    pub fn f(&self, w: f64) -> f64 {
        let s = Complex64::new(0.0, w);
        let mut multiplier = self.c + self.lambda * s;
        for (delay, z) in &self.ahead {
            multiplier -= z * (s * delay).exp();
        }
        let products: f64 = self.products.iter().map(|(delay, weight)| weight * (w * delay).cos()).sum();
        (multiplier.conj() * (s + h(self.alpha, self.beta, s))).re - products
    }

    /// Whether F is at least `epsilon (1 + w^2)` at all frequencies; it is the same at -w.
    fn tried(&self) -> Tried {
        let Some(end) = self.end() else { return Tried::Open };
        let mut open = vec![(0.0, end)];
        for _ in 0..MOST_ASKED {
            let Some((low, high)) = open.pop() else { return Tried::Holds };
            let (middle, half) = (f64::midpoint(low, high), (high - low) / 2.0);
            let above = self.f(middle) - self.epsilon * (1.0 + middle * middle);
            if above <= 0.0 {
                return Tried::Not(middle);
            }
            if self.steepest(middle, half).is_none_or(|slope| slope * half >= above) {
                open.extend([(low, middle), (middle, high)]);
            }
        }
        Tried::Open
    }

    /// From this frequency on it is: `|H| <= beta / (w - alpha)`, and what is left grows with w.
    fn end(&self) -> Option<f64> {
        let [z, w] = [&self.ahead, &self.products].map(|of| of.iter().map(|(_, weight)| weight).sum::<f64>());
        let square = self.lambda - self.epsilon;
        let least = |at: f64| {
            square * at * at
                - z * at
                - (self.c + z + self.lambda * at) * self.beta / (at - self.alpha)
                - w
                - self.epsilon
        };
        let mut at = 4.0;
        while square > 0.0 && at < 1e6 {
            if at > z / square && least(at) > 0.0 {
                return Some(at);
            }
            at *= 1.5;
        }
        None
    }

    /// A bound of the slope of `F - epsilon (1 + w^2)` so far around a frequency; None where H may have a pole, by what is known.
    fn steepest(&self, middle: f64, half: f64) -> Option<f64> {
        let s = Complex64::new(0.0, middle);
        let d = (s + self.alpha * (-s).exp()).norm() - (1.0 + self.alpha) * half;
        if d <= 0.0 {
            return None;
        }
        let top = middle + half;
        let (h, sum) = (self.beta / d, |of: &[(f64, f64)]| of.iter().map(|(_, weight)| weight).sum::<f64>());
        let turned = |of: &[(f64, f64)]| of.iter().map(|(delay, weight)| delay * weight).sum::<f64>();
        // H' = -H (1 + (1 - alpha e^-s) / (s + alpha e^-s)).
        let h_slope = h * (1.0 + (1.0 + self.alpha) / d);
        let multiplier = self.c + self.lambda * top + sum(&self.ahead);
        let multiplier_slope = self.lambda + turned(&self.ahead);
        Some(
            multiplier_slope * (top + h)
                + multiplier * (1.0 + h_slope)
                + turned(&self.products)
                + 2.0 * self.epsilon * top,
        )
    }
}
