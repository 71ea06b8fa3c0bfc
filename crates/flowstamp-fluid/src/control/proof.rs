//! Proofs that the switched system is stable ([`super::models::Switched`], equation 5.14 of Dukkipati 2007), for any capacity, RTT and number of flows.
//!
//! The thesis shows such regions by Lyapunov functionals (figures 5.5, right, and 5.6; its references 63 and 64). The proofs here use
//! multipliers, as Popov's criterion does, and the special property of a queue: it is not below zero. Time is in round trips, and `l` is
//! the service that an empty queue leaves unused:
//!
//! ```text
//!   x' = -alpha x(t - 1) - beta q(t - 1)        q' = x + l        q >= 0,  l >= 0,  q l = 0
//!   H(s) = beta e^(-s) / (s + alpha e^(-s))     so that x = x0 - h * q,  x0 what remains of the start
//! ```
//!
//! `l` is above zero only where q is zero, and there `q' = 0` almost everywhere, so that `q' l = 0` too. **If** there are numbers c,
//! lambda, all z and all w from 0 on, delays from 0 on and an epsilon above 0 with
//!
//! ```text
//!   F(w) = Re conj(c + lambda j w - sum z_k e^(j w s_k)) (j w + H(j w)) - sum w_k cos(w t_k) >= epsilon (1 + w^2)       for all w
//! ```
//!
//! and alpha is between 0 and pi/2, so that h decays, **then** from every start q and x go to zero:
//!
//! 1. *The queue is empty again and again without end.* Let it be empty at 0 and at T. Let `q_T` be the queue between them and zero
//!    elsewhere, which has no jump. Then
//!    `l q = 0`, `l q' = 0`, `l(t) q(t + s) >= 0` and `q(t) q(t + s) >= 0`, so that over `[0, T]`, where `l = q' + h * q - x0`,
//!
//!    ```text
//!      int (c q + lambda q' - sum z_k q(t + s_k)) (q' + h * q - x0) dt <= 0 <= sum w_k int q(t) q(t + t_k) dt
//!    ```
//!
//!    `q(t + s)` is zero after T, as are q and q'. Before 0 `q' + h * q` is zero. Therefore the integrals without x0 may run over all time, and
//!    by Parseval `epsilon (|q_T|^2 + |q_T'|^2) <= int (c q_T + lambda q_T' - sum z_k q_T(t + s_k)) x0 dt`. The right side is at most a
//!    constant times the root of the left side, for any T, because x0 decays. Therefore q and q' are square integrable, q goes to zero, and so
//!    does `x = x0 - h * q`.
//! 2. *The queue is never empty from some time on.* From there on the system is linear, with the roots of `s (s + alpha e^(-s)) + beta e^(-s)`.
//!    None of these is real and at least zero. A solution that does not decay becomes, after long, a sum of growing or steady
//!    oscillations about zero. That is below zero again and again, which a queue cannot be. Therefore the solution decays.
//!
//! With c and lambda alone this is Popov's criterion. It proves no more than the linear loop's stability, because a root of that loop at jw
//! makes `jw + H` zero. The products `q(t) q(t + t_k) >= 0` prove more. F is linear in all numbers, so a linear program finds the
//! best ones for a grid of frequencies. They are then verified at all frequencies, between which a bound of F's slope limits its
//! change. Doubles err by 1e-13 and epsilon is above 1e-7: up to that this is a proof.

use crate::stability::gain_crossing;
use num_complex::Complex64;
use std::f64::consts::{FRAC_PI_2, PI};

/// Delays of z and w: this many per half period of the linear loop, for this many half periods.
const DELAYS: (u32, u32) = (8, 2);
/// Least epsilon that counts as a proof.
const LEAST: f64 = 1e-7;
/// Most evaluations of F in a verification.
const MOST_ASKED: u32 = 1 << 20;
/// Most times that a frequency at which F is too small is added.
const ROUNDS: u32 = 30;

/// A proof: the numbers in the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    alpha: f64,
    beta: f64,
    /// Weight of q.
    pub c: f64,
    /// Weight of q'.
    pub lambda: f64,
    /// Delays s_k, each with z_k.
    pub ahead: Vec<(f64, f64)>,
    /// Delays t_k, each with w_k.
    pub products: Vec<(f64, f64)>,
    /// F is at least this times `1 + w^2`.
    pub epsilon: f64,
}

/// Outcome of verifying the numbers at all frequencies.
enum Tried {
    Holds,
    /// F is too small at this frequency.
    Not(f64),
    /// Undecided.
    Open,
}

/// A proof that the switched system with these gains is stable. `None` if none was found, which does not prove instability.
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

/// The coefficient of each number in `F / (1 + w^2)`.
fn terms(alpha: f64, beta: f64, delays: &[f64], w: f64) -> Vec<f64> {
    let s = Complex64::new(0.0, w);
    let g = s + h(alpha, beta, s);
    let of = |multiplier: Complex64| (multiplier.conj() * g).re;
    let ahead = delays.iter().map(|delay| -of((s * delay).exp()));
    let products = delays.iter().map(|delay| -(w * delay).cos());
    let all = [of(Complex64::ONE), of(s)].into_iter().chain(ahead).chain(products);
    all.map(|term| term / (1.0 + w * w)).collect()
}

/// Value of a matrix game and the optimal mixed strategy over its columns: the weights, of sum 1, that make the least of all rows'
/// sums largest. Uses Dantzig's simplex method on the other player's side, which starts at a corner. (The crate microlp proves the same for
/// all of 144 pairs of gains, and takes 25 times as long.) `None` if it does not end.
fn game(rows: &[Vec<f64>]) -> Option<(f64, Vec<f64>)> {
    let (n, k) = (rows.len(), rows.first()?.len());
    let least = rows.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    // Makes all entries positive, so that the value is positive.
    let shift = 1.0 - least;
    // max sum y with sum_i y_i (row_i[j] + shift) + slack_j = 1; the last column is the right-hand side, the last row the reduced costs.
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

    /// Verifies that F is at least `epsilon (1 + w^2)` at all frequencies. F is even in w.
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

    /// A frequency from which on F is large enough: `|H| <= beta / (w - alpha)`, and the rest grows with w.
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

    /// An upper bound of the slope of `F - epsilon (1 + w^2)` within `half` of a frequency; `None` if H may have a pole there.
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
