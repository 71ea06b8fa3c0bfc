//! Flow-size distributions, in bytes: density, distribution, quantile, and the truncated moments that the formulas need.
//!
//! | distribution | parameters | `E[L^2]` |
//! |---|---|---|
//! | fixed | size | finite |
//! | uniform | min, max | finite |
//! | exponential | mean | finite |
//! | Pareto | mean, shape `a > 1`; smallest size `k = mean (a-1)/a`, `P(L > x) = (k/x)^a` | infinite if `a <= 2` |
//! | bounded Pareto | smallest `m`, largest `M`, shape `a` (Dukkipati 2007, appendix A) | finite |
//! | empirical | points (size, P(L <= size)), linear between; a first probability above 0 and a repeated size are atoms | finite |
//!
//! Valid for sizes of 10^-3 to 10^15 bytes; Pareto shapes from 1.05 on keep eight digits in the means of [`crate::formulas`]
//! (nearer to 1, the tail that carries the mean lies beyond what an `f64` can square).

mod distribution;

use crate::quadrature::integrate;
use distribution::{Distribution, Empirical};

/// Why a distribution was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SizeError {
    /// A size that is not a positive number.
    #[error("{name} is {value} bytes; it must be a finite number above 0")]
    NotPositive {
        /// Name of the parameter.
        name: &'static str,
        /// Value of the parameter.
        value: f64,
    },
    /// A Pareto shape without a mean.
    #[error("shape is {0}; it must be finite and above 1, or the mean does not exist")]
    Shape(f64),
    /// The largest size is below the smallest.
    #[error("max is {max} bytes; it must be above min, {min}")]
    Order {
        /// Smallest size.
        min: f64,
        /// Largest size.
        max: f64,
    },
    /// An empirical distribution without points.
    #[error("the distribution has no points; it needs at least one, (size, 1)")]
    Empty,
    /// An empirical point that is out of order or out of range.
    #[error(
        "point {index} is ({size}, {probability}); sizes must be above 0, probabilities between 0 and 1, both never falling"
    )]
    Point {
        /// Index of the point, from 0.
        index: usize,
        /// The point's size in bytes.
        size: f64,
        /// The point's probability.
        probability: f64,
    },
    /// The last probability is not 1.
    #[error("the last probability is {0}; it must be 1")]
    LastProbability(f64),
}

/// A distribution of flow sizes in bytes, with a finite mean above zero.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    distribution: Distribution,
    mean: f64,
}

/// One piece of a distribution: an atom, or a stretch with a density.
#[derive(Clone, Copy, Debug)]
enum Piece {
    /// All of `mass` at `size`.
    Atom { size: f64, mass: f64 },
    /// The whole distribution, where `P(L > t)` is continuous from the smallest size on.
    Smooth,
    /// `mass` spread evenly between two sizes.
    Linear { from: f64, to: f64, mass: f64 },
}

fn positive(name: &'static str, value: f64) -> Result<f64, SizeError> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(SizeError::NotPositive { name, value }) }
}

impl SizeDistribution {
    /// Every flow has `bytes` bytes.
    ///
    /// # Errors
    /// `bytes` is not a finite number above 0.
    pub fn fixed(bytes: f64) -> Result<Self, SizeError> {
        let mean = positive("size", bytes)?;
        Ok(Self { distribution: Distribution::Fixed(mean), mean })
    }

    /// Evenly between `min` (at least 0) and `max` bytes.
    ///
    /// # Errors
    /// A minimum below 0 or a maximum that is not above it.
    pub fn uniform(min: f64, max: f64) -> Result<Self, SizeError> {
        if !(min.is_finite() && min >= 0.0) {
            return Err(SizeError::NotPositive { name: "min", value: min });
        }
        positive("max", max)?;
        if max <= min {
            return Err(SizeError::Order { min, max });
        }
        Ok(Self { distribution: Distribution::Uniform { min, max }, mean: f64::midpoint(min, max) })
    }

    /// Exponential with `mean` bytes.
    ///
    /// # Errors
    /// `mean` is not a finite number above 0.
    pub fn exponential(mean: f64) -> Result<Self, SizeError> {
        let mean = positive("mean", mean)?;
        Ok(Self { distribution: Distribution::Exponential { mean }, mean })
    }

    /// Pareto with `mean` bytes and a `shape` above 1.
    ///
    /// # Errors
    /// A mean that is not a finite number above 0, or a shape without a mean.
    pub fn pareto(mean: f64, shape: f64) -> Result<Self, SizeError> {
        positive("mean", mean)?;
        if !(shape.is_finite() && shape > 1.0) {
            return Err(SizeError::Shape(shape));
        }
        Ok(Self { distribution: Distribution::Pareto { min: mean * (shape - 1.0) / shape, shape }, mean })
    }

    /// Pareto of a `shape` above 1, cut to sizes between `min` and `max` bytes (Dukkipati 2007, appendix A):
    /// `F(x) = (1 - (m/x)^a) / (1 - (m/M)^a)`.
    ///
    /// # Errors
    /// Sizes that are not finite numbers above 0 in rising order, or a shape of at most 1.
    pub fn bounded_pareto(min: f64, max: f64, shape: f64) -> Result<Self, SizeError> {
        positive("min", min)?;
        positive("max", max)?;
        if max <= min {
            return Err(SizeError::Order { min, max });
        }
        if !(shape.is_finite() && shape > 1.0) {
            return Err(SizeError::Shape(shape));
        }
        let distribution = Distribution::BoundedPareto { min, max, shape };
        let mean = distribution.partial_moment(1, max, true);
        Ok(Self { distribution, mean })
    }

    /// A Pareto with `mean` bytes and `shape`, cut at `max` bytes. Its smallest size is raised so that the mean stays the same.
    /// Appendix A's model uses it for "Pareto with mean 25 packets".
    ///
    /// # Errors
    /// As [`Self::bounded_pareto`]; `max` must be above the mean.
    pub fn bounded_pareto_with_mean(mean: f64, max: f64, shape: f64) -> Result<Self, SizeError> {
        positive("mean", mean)?;
        if max.is_nan() || max <= mean {
            return Err(SizeError::Order { min: mean, max });
        }
        let mut low = Self::pareto(mean, shape)?.min_bytes();
        let mut high = mean;
        // The mean rises with the smallest size; 60 halvings leave no bit of the difference.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if Self::bounded_pareto(middle, max, shape)?.mean < mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self::bounded_pareto(f64::midpoint(low, high), max, shape)
    }

    /// Points `(size in bytes, P(L <= size))`, linear between them. A first probability above 0 is an atom at the first size. A
    /// repeated size is an atom of the rise in probability.
    ///
    /// # Errors
    /// No points, a size or a probability that falls or is out of range, or a last probability other than 1.
    pub fn empirical(points: &[(f64, f64)]) -> Result<Self, SizeError> {
        let mut last = (0.0, 0.0);
        let mut moments = Vec::with_capacity(points.len());
        let (mut first, mut second) = (0.0, 0.0);
        for (index, &(size, probability)) in points.iter().enumerate() {
            let in_range = size.is_finite() && size > 0.0 && (0.0..=1.0).contains(&probability);
            if !in_range || size < last.0 || probability < last.1 {
                return Err(SizeError::Point { index, size, probability });
            }
            let mass = probability - last.1;
            // The first point has no line before it: its probability is an atom.
            let from = if index == 0 { size } else { last.0 };
            first += mass * f64::midpoint(from, size);
            second += mass * (from * from + from * size + size * size) / 3.0;
            moments.push((first, second));
            last = (size, probability);
        }
        if points.is_empty() {
            return Err(SizeError::Empty);
        }
        if last.1 < 1.0 {
            return Err(SizeError::LastProbability(last.1));
        }
        Ok(Self {
            distribution: Distribution::Empirical(Empirical { points: points.to_vec(), moments }),
            mean: first,
        })
    }

    /// `E[L]` in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// `E[L^2]` in bytes squared; infinite for a Pareto of shape at most 2.
    #[must_use]
    pub fn second_moment(&self) -> f64 {
        match &self.distribution {
            Distribution::Exponential { mean } => 2.0 * mean * mean,
            Distribution::Pareto { min, shape } => {
                if *shape > 2.0 {
                    shape * min * min / (shape - 2.0)
                } else {
                    f64::INFINITY
                }
            }
            distribution => distribution.partial_moment(2, self.max_bytes(), true),
        }
    }

    /// Squared coefficient of variation, `E[L^2]/E[L]^2 - 1`, at least 0.
    #[must_use]
    pub fn squared_variation(&self) -> f64 {
        (self.second_moment() / (self.mean * self.mean) - 1.0).max(0.0)
    }

    /// The smallest possible size in bytes.
    #[must_use]
    pub fn min_bytes(&self) -> f64 {
        match &self.distribution {
            Distribution::Fixed(size) => *size,
            Distribution::Exponential { .. } => 0.0,
            Distribution::Uniform { min, .. }
            | Distribution::Pareto { min, .. }
            | Distribution::BoundedPareto { min, .. } => *min,
            Distribution::Empirical(e) => e.points.iter().rfind(|(_, p)| *p <= 0.0).unwrap_or(&e.points[0]).0,
        }
    }

    /// The largest possible size in bytes, infinite for the exponential and the Pareto.
    #[must_use]
    pub fn max_bytes(&self) -> f64 {
        match &self.distribution {
            Distribution::Fixed(size) => *size,
            Distribution::Exponential { .. } | Distribution::Pareto { .. } => f64::INFINITY,
            Distribution::Uniform { max, .. } | Distribution::BoundedPareto { max, .. } => *max,
            Distribution::Empirical(e) => e.points[e.points.len() - 1].0,
        }
    }

    /// `P(L <= x)`.
    #[must_use]
    pub fn cdf(&self, x: f64) -> f64 {
        self.distribution.mass(x, true)
    }

    /// `P(L > x)`, to full relative precision also where it is tiny.
    #[must_use]
    pub fn ccdf(&self, x: f64) -> f64 {
        match &self.distribution {
            _ if x < self.min_bytes() => 1.0,
            Distribution::Exponential { mean } => libm::exp(-x / mean),
            Distribution::Pareto { min, shape } => libm::pow(min / x, *shape),
            Distribution::BoundedPareto { min, max, shape } if x < *max => {
                let end = libm::pow(min / max, *shape);
                (libm::pow(min / x, *shape) - end) / (1.0 - end)
            }
            distribution => 1.0 - distribution.mass(x, true),
        }
    }

    /// Density at `x` in 1/byte; infinite on an atom. At a corner, the density above it.
    #[must_use]
    pub fn pdf(&self, x: f64) -> f64 {
        match &self.distribution {
            Distribution::Fixed(size) => {
                if x == *size {
                    f64::INFINITY
                } else {
                    0.0
                }
            }
            _ if x < self.min_bytes() || x > self.max_bytes() => 0.0,
            Distribution::Uniform { min, max } => 1.0 / (max - min),
            Distribution::Exponential { mean } => libm::exp(-x / mean) / mean,
            Distribution::Pareto { min, shape } => shape / x * libm::pow(min / x, *shape),
            Distribution::BoundedPareto { min, max, shape } => {
                shape / x * libm::pow(min / x, *shape) / (1.0 - libm::pow(min / max, *shape))
            }
            Distribution::Empirical(e) => e.density(x),
        }
    }

    /// The smallest size with `P(L <= size) >= u`, for `u` in [0, 1]; outside it, the nearest end.
    #[must_use]
    pub fn quantile(&self, u: f64) -> f64 {
        self.upper_quantile(1.0 - u.clamp(0.0, 1.0))
    }

    /// The size that a share `v` in [0, 1] of the flows exceeds; precise also where `v` is tiny.
    #[must_use]
    pub fn upper_quantile(&self, v: f64) -> f64 {
        let v = v.clamp(0.0, 1.0);
        match &self.distribution {
            Distribution::Fixed(size) => *size,
            Distribution::Uniform { min, max } => max - (max - min) * v,
            Distribution::Exponential { mean } => -mean * libm::log(v),
            Distribution::Pareto { min, shape } => min * libm::pow(v, -1.0 / shape),
            Distribution::BoundedPareto { min, max, shape } => {
                let end = libm::pow(min / max, *shape);
                (min * libm::pow(v * (1.0 - end) + end, -1.0 / shape)).clamp(*min, *max)
            }
            Distribution::Empirical(e) => e.quantile(1.0 - v),
        }
    }

    /// `E[L^n; L <= x]` for `n` = 1 or 2, in bytes^n: sizes of exactly `x` included.
    #[must_use]
    pub fn partial_moment(&self, n: u8, x: f64) -> f64 {
        self.distribution.partial_moment(n, x, true)
    }

    /// `E[L^n; L < x]` for `n` = 1 or 2, in bytes^n: sizes of exactly `x` left out.
    #[must_use]
    pub fn partial_moment_below(&self, n: u8, x: f64) -> f64 {
        self.distribution.partial_moment(n, x, false)
    }

    /// `E[min(L, x)^n]` for `n` = 1 or 2, in bytes^n.
    #[must_use]
    pub fn capped_moment(&self, n: u8, x: f64) -> f64 {
        let power = if n == 1 { x } else { x * x };
        self.partial_moment(n, x) + if x.is_finite() { power * self.ccdf(x) } else { 0.0 }
    }

    /// `E[g(L)]`, for a `g` that grows no faster than linearly where the second moment is infinite.
    #[must_use]
    pub fn expect(&self, g: impl Fn(f64) -> f64) -> f64 {
        self.pieces()
            .map(|piece| match piece {
                Piece::Atom { size, mass } => mass * g(size),
                Piece::Linear { from, to, mass } => mass / (to - from) * integrate(&g, from, to),
                Piece::Smooth => {
                    let m = self.tail_power();
                    integrate(
                        |w| g(self.upper_quantile(libm::pow(w, m))) * m * libm::pow(w, m - 1.0),
                        0.0,
                        1.0,
                    )
                }
            })
            .sum()
    }

    /// `integral of P(L > t) h(t) dt` over all sizes: `E[L]` for `h = 1`.
    #[must_use]
    pub fn integrate_ccdf(&self, h: impl Fn(f64) -> f64) -> f64 {
        // P(L > t) is 1 below the smallest size. Above it, integrate over sizes, or over the tail where it is unbounded.
        let min = self.min_bytes();
        let head = integrate(&h, 0.0, min);
        head + match &self.distribution {
            Distribution::Fixed(_) => 0.0,
            // P(L > t) = (mean residual scale) x density: dt P(L > t) = mean dF, and t/a dF for the Pareto.
            Distribution::Exponential { mean } => mean * self.expect(h),
            Distribution::Pareto { shape, .. } => self.expect(|t| t / shape * h(t)),
            Distribution::Uniform { min, max } => integrate(|t| self.ccdf(t) * h(t), *min, *max),
            Distribution::BoundedPareto { min, max, .. } => {
                // Over log size: panels even in size would nearly all fall on the largest ones.
                integrate(
                    |y| {
                        let t = libm::exp(y);
                        t * self.ccdf(t) * h(t)
                    },
                    libm::log(*min),
                    libm::log(*max),
                )
            }
            Distribution::Empirical(e) => {
                e.points.windows(2).map(|w| integrate(|t| self.ccdf(t) * h(t), w[0].0.max(min), w[1].0)).sum()
            }
        }
    }

    /// `integral of h(t) dt` from 0 to `x`, split where the distribution has corners.
    #[must_use]
    pub fn integrate_to(&self, x: f64, h: impl Fn(f64) -> f64) -> f64 {
        let min = self.min_bytes();
        let mut total = integrate(&h, 0.0, min.min(x));
        match &self.distribution {
            Distribution::Fixed(_) => {}
            Distribution::Empirical(e) => {
                for w in e.points.windows(2) {
                    total += integrate(&h, w[0].0.max(min), w[1].0.min(x));
                }
            }
            _ if min > 0.0 && x > min => {
                let end = x.min(self.max_bytes());
                total += integrate(|y| libm::exp(y) * h(libm::exp(y)), libm::log(min), libm::log(end));
            }
            _ => total += integrate(&h, min, x.min(self.max_bytes())),
        }
        total + integrate(&h, self.max_bytes(), x)
    }

    /// The power `m` of the substitution `P(L > t) = w^m` that takes the tail's singularity away: with `m = a/(a-1)`,
    /// the Pareto's `t dF` becomes a constant times `dw`.
    fn tail_power(&self) -> f64 {
        match &self.distribution {
            Distribution::Pareto { shape, .. } => shape / (shape - 1.0),
            Distribution::BoundedPareto { shape, .. } => (shape / (shape - 1.0)).min(8.0),
            _ => 1.0,
        }
    }

    fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let (single, points): (Option<Piece>, &[(f64, f64)]) = match &self.distribution {
            Distribution::Fixed(size) => (Some(Piece::Atom { size: *size, mass: 1.0 }), &[]),
            Distribution::Empirical(e) => {
                (Some(Piece::Atom { size: e.points[0].0, mass: e.points[0].1 }), &e.points)
            }
            _ => (Some(Piece::Smooth), &[]),
        };
        single.into_iter().chain(points.windows(2).map(|w| {
            let mass = w[1].1 - w[0].1;
            if w[1].0 > w[0].0 {
                Piece::Linear { from: w[0].0, to: w[1].0, mass }
            } else {
                Piece::Atom { size: w[1].0, mass }
            }
        }))
    }
}
