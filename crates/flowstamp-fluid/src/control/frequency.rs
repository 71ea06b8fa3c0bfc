//! Analyses a loop with delays in the frequency domain, with exact delays: no Padé approximation.
//!
//! ```text
//!   L(s) = n(s) / d(s) W(s) / V(s)       open loop; the closed loop's roots are those of d(s) V(s) + n(s) W(s)
//! ```
//!
//! With one delay W is e^(-s T) and V is 1; with several, see `Lag`. Polynomials have real coefficients. The degree of `n` is below
//! that of `d`, as in every loop that integrates. Therefore |L| falls to zero with |s| in the right half plane, and only a few
//! characteristic roots lie there, all within a radius that the coefficients give.

use crate::control::roots::{bisect, polynomial, roots};
use num_complex::Complex64;
use std::f64::consts::{PI, TAU};

/// How traffic follows the feedback of a link that flows of several RTTs share:
///
/// ```text
///   W/V = sum(v_i e_i) / sum(v_i)        e_i = e^(-s T_i),  v_i = w_i / (s + g e_i),  w_i the share of the flows, sum(w_i) = 1
/// ```
///
/// `g` is the rate at which rates converge to equal ones: XCP's shuffling, gamma over the mean RTT, and 0 for RCP. Let a flow's
/// rate near the equilibrium be `1 + x_i` times its fair rate. Then `x_i' = F - g (x_i - x)` an RTT later, with F the aggregate
/// feedback over the capacity and x the mean of all x_i (Katabi 2002, equation 17 and section 3.5.2). Where
/// shares differ, the shuffled traffic is a term of first order, and `|F|` in it is of second order. V and W have no poles. With one RTT, V is 1 and W is `e^(-s T)`.
#[derive(Clone, Debug, PartialEq)]
struct Lag {
    /// `(share, delay)` of each group; the delays differ.
    flows: Vec<(f64, f64)>,
    even: f64,
}

impl Lag {
    fn of_one(delay: f64) -> Self {
        Self { flows: vec![(1.0, delay)], even: 0.0 }
    }

    fn longest(&self) -> f64 {
        self.flows.iter().map(|(_, delay)| *delay).fold(0.0, f64::max)
    }

    fn mean(&self) -> f64 {
        self.flows.iter().map(|(share, delay)| share * delay).sum()
    }

    /// Whether flows' rates converge, so that V and W have factors `s + g e_i`. If not, V is 1 and W a sum of delays.
    fn evens(&self) -> bool {
        self.even > 0.0 && self.flows.len() > 1
    }

    /// W over V.
    fn at(&self, s: Complex64) -> Complex64 {
        let [v, w] = self.parts(s);
        w / v
    }

    /// V and W.
    fn parts(&self, s: Complex64) -> [Complex64; 2] {
        self.with_slopes(s)[0]
    }

    /// V and W, then their derivatives.
    fn with_slopes(&self, s: Complex64) -> [[Complex64; 2]; 2] {
        let (zero, one) = (Complex64::ZERO, Complex64::ONE);
        if !self.evens() {
            let [mut w, mut slope] = [zero; 2];
            for (share, delay) in &self.flows {
                let e = (-s * delay).exp() * share;
                w += e;
                slope -= e * delay;
            }
            return [[one, w], [zero, slope]];
        }
        // P is the product of all s + g e_i; the sums below are V / P and W / P.
        let (mut p, mut p_slope) = (one, zero);
        let [mut v, mut w, mut v_slope, mut w_slope] = [zero; 4];
        for (share, delay) in &self.flows {
            let e = (-s * delay).exp();
            let (factor, factor_slope) = (s + e * self.even, one - e * self.even * delay);
            (p, p_slope) = (p * factor, p_slope * factor + p * factor_slope);
            let part = *share / factor;
            v += part;
            w += part * e;
            let part_slope = -part * factor_slope / factor;
            v_slope += part_slope;
            w_slope += part_slope * e - part * e * delay;
        }
        [[p * v, p * w], [p_slope * v + p * v_slope, p_slope * w + p * w_slope]]
    }

    /// Bound of how much the arguments of V and W turn per unit of path length: V and W are sums of products of the factors.
    fn turns(&self) -> f64 {
        if self.evens() { self.flows.iter().map(|(_, delay)| delay).sum() } else { self.longest() }
    }

    /// Upper bound of |W| / |V| from radius `r` on, where |e_i| is at most `growth`. Infinite where V may be zero.
    fn most(&self, r: f64, growth: f64) -> f64 {
        if !self.evens() {
            return growth;
        }
        // Each product of n - 1 factors 1 + g e_i / s is within this of 1, and so is the mean of the products.
        let off = (1.0 + self.even * growth / r).powi(self.flows.len() as i32 - 1) - 1.0;
        if off < 1.0 { growth * (1.0 + off) / (1.0 - off) } else { f64::INFINITY }
    }
}

/// An open loop.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenLoop {
    numerator: Vec<f64>,
    denominator: Vec<f64>,
    lag: Lag,
}

/// A point of a Bode or Nyquist plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Angular frequency, rad per unit of time.
    pub omega: f64,
    /// The response.
    pub response: Complex64,
    /// Phase of the response in radians, continuous from low frequencies on.
    pub phase: f64,
}

/// How far a loop is from the border of stability. Margins are meaningful only for a stable loop ([`OpenLoop::unstable_roots`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// Gain margin: 1/|L| where the phase is -pi, the least above one. `None` if no gain destabilises the loop, or if the phase
    /// margin is already negative.
    pub gain: Option<f64>,
    /// The frequency there.
    pub phase_crossover: Option<f64>,
    /// Phase margin in radians, where |L| is 1: the least over all such frequencies. Negative if the loop has too much lag already.
    pub phase: Option<f64>,
    /// The frequency there.
    pub gain_crossover: Option<f64>,
    /// Delay margin: the delay that may be added, in the unit of time.
    pub delay: Option<f64>,
}

fn derivative(coefficients: &[f64], s: Complex64) -> Complex64 {
    coefficients
        .iter()
        .enumerate()
        .skip(1)
        .rev()
        .fold(Complex64::ZERO, |sum, (power, c)| sum * s + c * power as f64)
}

fn trimmed(coefficients: &[f64]) -> Vec<f64> {
    let degree = coefficients.iter().rposition(|c| *c != 0.0).map_or(0, |last| last + 1);
    coefficients[..degree].to_vec()
}

impl OpenLoop {
    /// Creates the loop from the coefficients of both polynomials, lowest power first, and the delay. `None` if the numerator's degree is not lower,
    /// the denominator is zero, the delay is negative, or a value is not finite.
    #[must_use]
    pub fn new(numerator: &[f64], denominator: &[f64], delay: f64) -> Option<Self> {
        let finite = numerator.iter().chain(denominator).chain([&delay]).all(|c| c.is_finite());
        let (numerator, denominator) = (trimmed(numerator), trimmed(denominator));
        (finite && delay >= 0.0 && numerator.len() < denominator.len()).then_some(Self {
            numerator,
            denominator,
            lag: Lag::of_one(delay),
        })
    }

    /// The loop of XCP and of RCP near equilibrium: `(alpha s d + beta) / (s d)^2 e^(-s d)` (Katabi 2002, appendix B; Dukkipati 2007, eq. 5.7).
    #[must_use]
    pub fn of_gains(alpha: f64, beta: f64, delay: f64) -> Option<Self> {
        (delay > 0.0).then(|| Self::new(&[beta, alpha * delay], &[0.0, 0.0, delay * delay], delay)).flatten()
    }

    /// As [`Self::of_gains`], for flows of several RTTs, given as `(number of flows, RTT)`; `d` is their mean RTT. `shuffle` is the
    /// share of the traffic that is shuffled in a mean RTT: XCP's gamma, and 0 for RCP.
    ///
    /// ```text
    ///   L(s) = (alpha s d + beta) / (s d)^2 sum(v_i e^(-s d_i)) / sum(v_i),  v_i = n_i / (s + shuffle / d e^(-s d_i))
    /// ```
    #[must_use]
    pub fn of_flows(alpha: f64, beta: f64, shuffle: f64, flows: &[(f64, f64)]) -> Option<Self> {
        let good = flows.iter().all(|(count, rtt)| count.is_finite() && *count > 0.0 && *rtt > 0.0);
        let count: f64 = flows.iter().map(|(count, _)| count).sum();
        let mean = flows.iter().map(|(count, rtt)| count * rtt).sum::<f64>() / count;
        if !good || !(0.0..=1.0).contains(&shuffle) {
            return None;
        }
        let mut each: Vec<(f64, f64)> = Vec::new();
        for (n, rtt) in flows {
            match each.iter_mut().find(|(_, other)| other == rtt) {
                Some((share, _)) => *share += n / count,
                None => each.push((n / count, *rtt)),
            }
        }
        let lag = Lag { flows: each, even: shuffle / mean };
        Some(Self { lag, ..Self::of_gains(alpha, beta, mean)? })
    }

    /// As [`Self::of_flows`] while the queue stays empty: `alpha / (s d) sum(v_i e^(-s d_i)) / sum(v_i)`.
    #[must_use]
    pub fn without_queue(alpha: f64, shuffle: f64, flows: &[(f64, f64)]) -> Option<Self> {
        let with = Self::of_flows(alpha, 0.0, shuffle, flows)?;
        let mean = with.lag.mean();
        Some(Self { numerator: trimmed(&[alpha]), denominator: vec![0.0, mean], ..with })
    }

    /// Gains for which flows of several RTTs, as in [`Self::of_flows`], have a closed-loop root on the imaginary axis. The result is
    /// pairs of alpha and beta along the curve `beta + j alpha w d = (w d)^2 V/W` for growing `w`, from zero up to `most`, with NaN where the
    /// curve leaves that range. With one RTT it is the curve of [`crate::stability`]. With several the curve may cross itself; the
    /// stable region is what it separates from large gains.
    #[must_use]
    pub fn border(shuffle: f64, flows: &[(f64, f64)], most: (f64, f64)) -> Option<Vec<(f64, f64)>> {
        let widest = Self::of_flows(most.0, most.1, shuffle, flows)?;
        let (lag, d) = (&widest.lag, widest.lag.mean());
        // Beyond this frequency gains up to `most` have no root on the axis.
        let last = widest.radius(0.0);
        let points = (last * lag.longest() * 64.0).clamp(1e3, 1e6).ceil();
        let gains = |i: u32| {
            let theta = last * d * f64::from(i) / points;
            let at = theta * theta / lag.at(Complex64::new(0.0, theta / d));
            let (alpha, beta) = (at.im / theta, at.re);
            let within = (0.0..=most.0).contains(&alpha) && (0.0..=most.1).contains(&beta);
            if within { (alpha, beta) } else { (f64::NAN, f64::NAN) }
        };
        let mut curve: Vec<(f64, f64)> =
            std::iter::once((0.0, 0.0)).chain((1..=points as u32).map(gains)).collect();
        curve.dedup_by(|a, b| a.0.is_nan() && b.0.is_nan());
        Some(curve)
    }

    /// As [`Self::of_gains`], with the second-order Padé approximation in place of the delay (Dukkipati 2007, appendix D):
    /// `e^(-s d) ~ (1 - s d / 2 + (s d)^2 / 12) / (1 + s d / 2 + (s d)^2 / 12)`.
    #[must_use]
    pub fn of_gains_by_pade(alpha: f64, beta: f64, delay: f64) -> Option<Self> {
        let (d, d2) = (delay, delay * delay);
        let numerator =
            [beta, (alpha - beta / 2.0) * d, (beta / 12.0 - alpha / 2.0) * d2, alpha / 12.0 * d2 * d];
        let denominator = [0.0, 0.0, d2, d2 * d / 2.0, d2 * d2 / 12.0];
        (delay > 0.0).then(|| Self::new(&numerator, &denominator, 0.0)).flatten()
    }

    /// `L(jw) / (1 + M(jw))`: the response through this loop while `other` closes the loop.
    #[must_use]
    pub fn around(&self, other: &Self, omega: f64) -> Complex64 {
        let s = Complex64::new(0.0, omega);
        self.at(s) / (1.0 + other.at(s))
    }

    /// The open loop `L(s)`.
    #[must_use]
    pub fn at(&self, s: Complex64) -> Complex64 {
        polynomial(&self.numerator, s) / polynomial(&self.denominator, s) * self.lag.at(s)
    }

    /// `L(jw)`, and its phase without jumps.
    #[must_use]
    pub fn response(&self, omega: f64) -> Point {
        let response = self.at(Complex64::new(0.0, omega));
        Point { omega, response, phase: self.phase(omega) }
    }

    /// The phase of L(jw) for w above zero. Each root of either polynomial in the left half plane turns it by less than pi, so it does
    /// not jump. One delay turns it by `w T`; with several it is followed from zero. A pair of roots in the right half plane makes it
    /// jump by a whole turn.
    fn phase(&self, omega: f64) -> f64 {
        let of = |coefficients: &[f64]| {
            // An integrator contributes pi/2 at all frequencies; the rest starts from 0 or pi.
            let zeros = coefficients.iter().take_while(|c| **c == 0.0).count();
            let rest = &coefficients[zeros..];
            zeros as f64 * PI / 2.0
                + roots(rest).iter().map(|root| (Complex64::new(0.0, omega) - root).arg()).sum::<f64>()
                + if rest.last().is_some_and(|c| *c < 0.0) { PI } else { 0.0 }
        };
        of(&self.numerator) - of(&self.denominator) + self.lag_phase(omega)
    }

    fn lag_phase(&self, omega: f64) -> f64 {
        if let [(_, delay)] = self.lag.flows[..] {
            return -omega * delay;
        }
        let steps = (omega * self.lag.turns() * 8.0).ceil().clamp(1.0, 1e6);
        let mut last = Complex64::ONE;
        let mut turned = 0.0;
        for i in 1..=steps as u32 {
            let here = self.lag.at(Complex64::new(0.0, omega * f64::from(i) / steps));
            turned += (here / last).arg();
            last = here;
        }
        turned
    }

    /// `count` points from one frequency to the other, evenly spaced on a logarithmic axis.
    #[must_use]
    pub fn points(&self, from: f64, to: f64, count: usize) -> Vec<Point> {
        let ratio = (to / from).ln() / (count.max(2) - 1) as f64;
        (0..count).map(|i| self.response(from * (ratio * i as f64).exp())).collect()
    }

    /// A radius beyond which no closed-loop root lies right of `sigma`, because |d V| is above |n W| there.
    fn radius(&self, sigma: f64) -> f64 {
        let Some((leading, lower)) = self.denominator.split_last() else { return 0.0 };
        // |d| >= |leading| r^m - sum |lower| r^i, and |n| <= sum |n_i| r^i; divided by r^m (Cauchy's bound).
        let degree = lower.len();
        let growth = (-sigma * self.lag.longest()).max(0.0).exp();
        let excess = |r: f64| {
            let most = self.lag.most(r, growth);
            let of = |i: usize| lower[i].abs() + self.numerator.get(i).map_or(0.0, |n| n.abs() * most);
            (0..degree).map(|i| of(i) / leading.abs() * r.powi(i as i32 - degree as i32)).sum::<f64>()
        };
        let mut r = 1.0;
        while excess(r) >= 1.0 {
            r *= 2.0;
        }
        while r > f64::MIN_POSITIVE && excess(r / 2.0) < 1.0 {
            r /= 2.0;
        }
        r
    }

    /// Gain, phase and delay margins.
    #[must_use]
    pub fn margins(&self) -> Margins {
        // Beyond the radius |L| is below 1, and the delay takes the phase past -pi soon after.
        let (mean, longest) = (self.lag.mean(), self.lag.longest());
        let top = self.radius(0.0) * 2.0 + if mean > 0.0 { 3.0 * TAU / mean } else { 0.0 };
        // A delay turns the phase by pi per pi/T, so the linear grid is finer than that. The logarithmic grid covers 12 decades.
        let mut grid: Vec<f64> =
            (0..4000).map(|i| top * 10f64.powf(-12.0 + 12.0 * f64::from(i) / 3999.0)).collect();
        let turns = (top * longest / PI).ceil().min(1e5) as usize * 16;
        grid.extend((1..turns).map(|i| top * i as f64 / turns as f64));
        grid.sort_by(f64::total_cmp);
        let crossings = |f: &dyn Fn(f64) -> f64| {
            grid.windows(2)
                .filter(|w| (f(w[0]) > 0.0) != (f(w[1]) > 0.0))
                .map(|w| bisect(w[0], w[1], f))
                .collect::<Vec<f64>>()
        };
        let magnitude = |w: f64| self.at(Complex64::new(0.0, w)).norm();
        let by_gain = crossings(&|w| magnitude(w) - 1.0);
        // The phase is an odd multiple of pi where the response's imaginary part changes sign left of zero.
        let by_phase: Vec<f64> = crossings(&|w| self.at(Complex64::new(0.0, w)).im)
            .into_iter()
            .filter(|w| self.at(Complex64::new(0.0, *w)).re < 0.0)
            .collect();
        // The margin is not reduced to one turn: a loop that has lost more than a turn has one even further below zero.
        let phase_left = |w: f64| self.phase(w) + PI;
        let phase = by_gain.iter().map(|w| (phase_left(*w), *w)).min_by(|a, b| a.0.total_cmp(&b.0));
        let stable = phase.is_none_or(|p| p.0 > 0.0);
        let gain = by_phase
            .iter()
            .map(|w| (1.0 / magnitude(*w), *w))
            .filter(|g| stable && g.0 > 1.0)
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let delay = by_gain.iter().map(|w| phase_left(*w) / w).filter(|t| *t > 0.0).min_by(f64::total_cmp);
        Margins {
            gain: gain.map(|g| g.0),
            phase_crossover: gain.map(|g| g.1),
            phase: phase.map(|p| p.0),
            gain_crossover: phase.map(|p| p.1),
            delay,
        }
    }

    /// The closed loop's characteristic function, `d(s) V(s) + n(s) W(s)`.
    fn characteristic(&self, s: Complex64) -> Complex64 {
        let [v, w] = self.lag.parts(s);
        polynomial(&self.denominator, s) * v + polynomial(&self.numerator, s) * w
    }

    fn characteristic_slope(&self, s: Complex64) -> Complex64 {
        let [[v, w], [v_slope, w_slope]] = self.lag.with_slopes(s);
        derivative(&self.denominator, s) * v
            + polynomial(&self.denominator, s) * v_slope
            + derivative(&self.numerator, s) * w
            + polynomial(&self.numerator, s) * w_slope
    }

    /// Number of closed-loop roots inside a polygon, given anticlockwise: how often the characteristic function winds around zero, by
    /// the argument principle. `None` if a root lies on the polygon.
    fn windings(&self, corners: &[Complex64]) -> Option<i64> {
        // On a side that is long against the distance of its roots, a short delay does not bound the turn. Therefore start with 32 parts.
        let side = |i: usize| {
            let (from, to) = (corners[i], corners[(i + 1) % corners.len()]);
            (0..32).map(move |part| from + (to - from) * (f64::from(part) / 32.0))
        };
        let mut round: Vec<Complex64> = (0..corners.len()).flat_map(side).collect();
        round.push(corners[0]);
        Some((self.turned(&|s| self.characteristic(s), &round)? / TAU).round() as i64)
    }

    /// How much the argument of `f` turns along a path through `corners`. `None` if `f` is zero on it.
    fn turned(&self, f: &dyn Fn(Complex64) -> Complex64, corners: &[Complex64]) -> Option<f64> {
        corners.windows(2).map(|way| self.turn(f, (way[0], f(way[0])), (way[1], f(way[1])), 0)).sum()
    }

    /// The change of the argument along a straight line, split until each part turns it by little.
    fn turn(
        &self,
        f: &dyn Fn(Complex64) -> Complex64,
        from: (Complex64, Complex64),
        to: (Complex64, Complex64),
        depth: u32,
    ) -> Option<f64> {
        let middle = (from.0 + to.0) * 0.5;
        let value = f(middle);
        if value == Complex64::ZERO || from.1 == Complex64::ZERO || to.1 == Complex64::ZERO {
            return None;
        }
        let (first, second) = ((value / from.1).arg(), (to.1 / value).arg());
        // Both halves turn by less than 0.5 and so do the delays: no turn around zero can be hidden.
        let small =
            first.abs() < 0.5 && second.abs() < 0.5 && (to.0 - from.0).norm() * self.lag.turns() < 0.5;
        if small {
            return Some(first + second);
        }
        if depth > 60 {
            return None;
        }
        let half = (middle, value);
        Some(self.turn(f, from, half, depth + 1)? + self.turn(f, half, to, depth + 1)?)
    }

    /// Number of closed-loop roots with a real part above `sigma`; a `sigma` of zero or below tells how fast a stable loop settles.
    /// Uses the argument principle on a rectangle that holds all of them. `None` if a root lies on its edge, as on the border of
    /// stability.
    #[must_use]
    pub fn unstable_roots(&self, sigma: f64) -> Option<u32> {
        if self.lag.longest() == 0.0 {
            return self.roots_right_of(sigma).map(|roots| roots.len() as u32);
        }
        let r = self.radius_from(sigma);
        let corners = [(sigma, -r), (r, -r), (r, r), (sigma, r)].map(|(re, im)| Complex64::new(re, im));
        self.windings(&corners).map(|n| n.max(0) as u32)
    }

    /// As [`Self::radius`], enlarged so that no root lies on the edge.
    fn radius_from(&self, sigma: f64) -> f64 {
        (self.radius(sigma) * 1.5).max(sigma.abs() * 2.0)
    }

    /// All closed-loop roots with a real part above `sigma`, largest real part first. A rectangle with roots, by the argument
    /// principle, is halved until Newton's method finds each of them. `None` as in [`Self::unstable_roots`].
    #[must_use]
    pub fn roots_right_of(&self, sigma: f64) -> Option<Vec<Complex64>> {
        if self.lag.longest() == 0.0 {
            return self.polynomial_roots_right_of(sigma);
        }
        let r = self.radius_from(sigma);
        let mut found = Vec::new();
        let mut open = vec![(Complex64::new(sigma, -r), Complex64::new(r, r))];
        while let Some((low, high)) = open.pop() {
            let corners = [low, Complex64::new(high.re, low.im), high, Complex64::new(low.re, high.im)];
            let count = self.windings(&corners)?;
            if count <= 0 {
                continue;
            }
            let size = high - low;
            if count == 1 {
                if let Some(root) = self.newton((low + high) * 0.5) {
                    let within = |x: f64, a: f64, b: f64| (a..=b).contains(&x);
                    if within(root.re, low.re, high.re) && within(root.im, low.im, high.im) {
                        found.push(root);
                        continue;
                    }
                }
            }
            if size.norm() < 1e-12 * r {
                // These roots cannot be told apart.
                found.extend((0..count).map(|_| (low + high) * 0.5));
                continue;
            }
            // Not cut in the middle, because roots of symmetric problems lie there.
            if size.re > size.im {
                let cut = low.re + 0.4834 * size.re;
                open.push((low, Complex64::new(cut, high.im)));
                open.push((Complex64::new(cut, low.im), high));
            } else {
                let cut = low.im + 0.4834 * size.im;
                open.push((low, Complex64::new(high.re, cut)));
                open.push((Complex64::new(low.re, cut), high));
            }
        }
        found.sort_by(|a, b| b.re.total_cmp(&a.re).then(a.im.total_cmp(&b.im)));
        Some(found)
    }

    /// The same without a delay, where the closed loop's roots are those of a polynomial. (Without a delay nothing bounds how far the
    /// argument turns between two points of a path.)
    fn polynomial_roots_right_of(&self, sigma: f64) -> Option<Vec<Complex64>> {
        let closed: Vec<f64> = (0..self.denominator.len())
            .map(|i| self.denominator[i] + self.numerator.get(i).copied().unwrap_or(0.0))
            .collect();
        let mut found = roots(&closed);
        found.retain(|root| root.re >= sigma);
        found.sort_by(|a, b| b.re.total_cmp(&a.re).then(a.im.total_cmp(&b.im)));
        found.iter().all(|root| root.re > sigma).then_some(found)
    }

    fn newton(&self, from: Complex64) -> Option<Complex64> {
        let mut s = from;
        for _ in 0..60 {
            let step = self.characteristic(s) / self.characteristic_slope(s);
            if !step.is_finite() {
                return None;
            }
            s -= step;
            if step.norm() <= 4.0 * f64::EPSILON * s.norm() {
                return Some(s);
            }
        }
        None
    }

    /// Clockwise encirclements of -1 by the Nyquist plot, with w from minus to plus infinity. Counted along `1 + L(jw)`, which passes
    /// poles at zero on the right. The number is that of [`Self::unstable_roots`] less the open loop's unstable poles. `None` on the
    /// border of stability, and if another pole lies on the imaginary axis.
    #[must_use]
    pub fn encirclements(&self) -> Option<i64> {
        let on_axis = |pole: &Complex64| pole.re.abs() < 1e-9 * pole.norm();
        if self.poles().iter().any(on_axis) {
            return None;
        }
        // From here on |L| is below 1, so 1 + L lies right of zero.
        let far = self.radius_from(0.0);
        let at = |re: f64, im: f64| Complex64::new(re, im);
        let around = if self.denominator[0] == 0.0 { self.indentation(far)? } else { far * 1e-12 };
        // Evenly on a logarithmic axis, because without a delay nothing else bounds the turn between two points.
        let up: Vec<Complex64> =
            (0..=400).map(|i| at(0.0, around * (far / around).powf(f64::from(i) / 400.0))).collect();
        let mut way: Vec<Complex64> = up.iter().rev().map(|s| -s).collect();
        if self.denominator[0] == 0.0 {
            way.extend([at(around, -around), at(around, around)]);
        }
        way.extend(up);
        let f = |s: Complex64| 1.0 + self.at(s);
        let closing = f(way[0]).arg() - f(way[way.len() - 1]).arg();
        Some((-(self.turned(&f, &way)? + closing) / TAU).round() as i64)
    }

    /// Half the side of a square around zero on which |L| is above 2, and inside which L has no poles or zeros except at zero. Therefore 1 + L
    /// has no root in it, and the path around it misses none.
    fn indentation(&self, below: f64) -> Option<f64> {
        let at_zero = |of: &[f64]| of.iter().take_while(|c| **c == 0.0).count();
        let [zeros, poles] = [at_zero(&self.numerator), at_zero(&self.denominator)];
        let others = self.poles().into_iter().chain(roots(&self.numerator[zeros..]));
        let mut r = others.map(|other| other.norm()).fold(below, f64::min) / 2.0;
        while r > below * 1e-12 {
            let around: Vec<Complex64> = (0..=64)
                .map(|i: u32| {
                    Complex64::new(r, r * (f64::from(i % 16) / 8.0 - 1.0)) * Complex64::i().powu(i / 16)
                })
                .collect();
            let turns = || Some((self.turned(&|s| self.at(s), &around)? / TAU).round() as i64);
            if around.iter().all(|s| self.at(*s).norm() > 2.0) && turns() == Some(zeros as i64 - poles as i64)
            {
                return Some(r);
            }
            r /= 2.0;
        }
        None
    }

    /// Poles of the open loop's polynomials, without those at zero.
    fn poles(&self) -> Vec<Complex64> {
        roots(&self.denominator[self.denominator.iter().take_while(|c| **c == 0.0).count()..])
    }

    /// Number of poles of the open loop's polynomials in the right half plane.
    #[must_use]
    pub fn unstable_poles(&self) -> usize {
        self.poles().iter().filter(|pole| pole.re > 1e-9 * pole.norm()).count()
    }
}
