//! The distributions behind [`super::SizeDistribution`]: masses, truncated moments, and the points of the empirical one.

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Distribution {
    /// The size in bytes.
    Fixed(f64),
    Uniform {
        min: f64,
        max: f64,
    },
    Exponential {
        mean: f64,
    },
    Pareto {
        min: f64,
        shape: f64,
    },
    BoundedPareto {
        min: f64,
        max: f64,
        shape: f64,
    },
    Empirical(Empirical),
}

/// Points with the truncated moments up to and including each of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Empirical {
    pub(super) points: Vec<(f64, f64)>,
    /// `E[L; L <= size]` and `E[L^2; L <= size]`.
    pub(super) moments: Vec<(f64, f64)>,
}

/// Integral of `t^(d-1)` from `a` to `b`, also where `d` is near zero and the terms of the closed form would cancel.
fn power_integral(a: f64, b: f64, d: f64) -> f64 {
    let ratio = libm::log(b / a);
    if d.abs() * ratio < 1e-12 { ratio } else { libm::pow(a, d) * libm::expm1(d * ratio) / d }
}

impl Distribution {
    /// `P(L <= x)`, or `P(L < x)` if not `inclusive`.
    pub(super) fn mass(&self, x: f64, inclusive: bool) -> f64 {
        match self {
            Self::Fixed(size) => f64::from(u8::from(*size < x || (inclusive && *size == x))),
            Self::Uniform { min, max } => ((x - min) / (max - min)).clamp(0.0, 1.0),
            Self::Exponential { mean } => -libm::expm1(-x.max(0.0) / mean),
            Self::Pareto { min, shape } => {
                if x > *min {
                    1.0 - libm::pow(min / x, *shape)
                } else {
                    0.0
                }
            }
            Self::BoundedPareto { min, max, shape } => {
                if x <= *min {
                    0.0
                } else if x >= *max {
                    1.0
                } else {
                    (1.0 - libm::pow(min / x, *shape)) / (1.0 - libm::pow(min / max, *shape))
                }
            }
            Self::Empirical(e) => e.at(x, inclusive).0,
        }
    }

    /// `E[L^n; L <= x]`, or `L < x` if not `inclusive`.
    pub(super) fn partial_moment(&self, n: u8, x: f64, inclusive: bool) -> f64 {
        let order = f64::from(n);
        match self {
            Self::Fixed(size) => self.mass(x, inclusive) * libm::pow(*size, order),
            Self::Uniform { min, max } => {
                let top = x.clamp(*min, *max);
                (libm::pow(top, order + 1.0) - libm::pow(*min, order + 1.0)) / ((order + 1.0) * (max - min))
            }
            Self::Exponential { mean } => {
                let y = x.max(0.0) / mean;
                if y > 700.0 {
                    return if n == 1 { *mean } else { 2.0 * mean * mean };
                }
                // 1 - e^-y (1 + y), and 2 - e^-y (2 + 2y + y^2), without the cancellation at small y.
                let gone = -libm::expm1(-y);
                if n == 1 {
                    if y < 1e-3 {
                        mean * y * y * (0.5 - y / 3.0 + y * y / 8.0)
                    } else {
                        mean * (gone - y * libm::exp(-y))
                    }
                } else if y < 1e-2 {
                    mean * mean * y * y * y * (1.0 / 3.0 - y / 4.0 + y * y / 10.0 - y * y * y / 36.0)
                } else {
                    mean * mean * (2.0 * gone - y * (2.0 + y) * libm::exp(-y))
                }
            }
            Self::Pareto { min, shape } => {
                if x <= *min {
                    0.0
                } else if x.is_infinite() {
                    let left = shape - order;
                    if left > 0.0 { shape * libm::pow(*min, order) / left } else { f64::INFINITY }
                } else {
                    shape * libm::pow(*min, *shape) * power_integral(*min, x, order - shape)
                }
            }
            Self::BoundedPareto { min, max, shape } => {
                if x <= *min {
                    0.0
                } else {
                    shape * libm::pow(*min, *shape) * power_integral(*min, x.min(*max), order - shape)
                        / (1.0 - libm::pow(min / max, *shape))
                }
            }
            Self::Empirical(e) => {
                let (_, first, second) = e.at(x, inclusive);
                if n == 1 { first } else { second }
            }
        }
    }
}

impl Empirical {
    /// `P(L <= x)`, `E[L; L <= x]` and `E[L^2; L <= x]`; with `<` if not `inclusive`.
    pub(super) fn at(&self, x: f64, inclusive: bool) -> (f64, f64, f64) {
        let after = self.points.partition_point(|(size, _)| if inclusive { *size <= x } else { *size < x });
        if after == 0 {
            return (0.0, 0.0, 0.0);
        }
        let (s0, p0) = self.points[after - 1];
        let (first, second) = self.moments[after - 1];
        match self.points.get(after) {
            Some(&(s1, p1)) if x > s0 => {
                let mass = (p1 - p0) * (x - s0) / (s1 - s0);
                (
                    p0 + mass,
                    first + mass * f64::midpoint(s0, x),
                    second + mass * (s0 * s0 + s0 * x + x * x) / 3.0,
                )
            }
            _ => (p0, first, second),
        }
    }

    pub(super) fn density(&self, x: f64) -> f64 {
        let after = self.points.partition_point(|(size, _)| *size <= x);
        let from = self.points.partition_point(|(size, _)| *size < x);
        // An atom at this very size: the first point's probability, or a repeated size.
        let on_point = after > from;
        if on_point
            && ((from == 0 && self.points[0].1 > 0.0) || self.points[after - 1].1 > self.points[from].1)
        {
            return f64::INFINITY;
        }
        match (after.checked_sub(1).map(|i| self.points[i]), self.points.get(after)) {
            (Some((s0, p0)), Some((s1, p1))) => (p1 - p0) / (s1 - s0),
            _ => 0.0,
        }
    }

    pub(super) fn quantile(&self, u: f64) -> f64 {
        // The smallest size whose probability reaches u; for u = 0, the start of the distribution.
        let reach = self
            .points
            .partition_point(|(_, p)| if u > 0.0 { *p < u } else { *p <= 0.0 })
            .min(self.points.len() - 1);
        let (s1, p1) = self.points[reach];
        if reach == 0 {
            return s1;
        }
        let (s0, p0) = self.points[reach - 1];
        s0 + (s1 - s0) * (u - p0) / (p1 - p0)
    }
}
