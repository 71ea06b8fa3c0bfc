//! Statistics of a run's flows: batch means with confidence intervals, warm-up removal, size bins, Little's law.
//!
//! Successive completion times are correlated, so the standard error of their mean is not `s/sqrt(n)`. Batch means (Law and
//! Kelton 2000, section 9.5.3) cut the series into a few long batches whose means are nearly independent, and apply Student's t
//! to them:
//!
//! ```text
//!   mean +- t(b - 1; (1 + level)/2) sqrt(sum (m_i - m)^2 / (b - 1) / b)
//! ```
//!
//! [`Interval::lag1`] tells whether the batches were long enough: above about `2/sqrt(b)` they were not. Where the variance is
//! infinite (Pareto shape at most 2) no interval has its nominal coverage, but completion times of one size bin have a variance.

use statrs::function::beta::beta_reg;

/// Why no mean or no confidence interval can be computed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Too few values for the batches.
    #[error("{values} values do not fill {batches} batches; at least 2 batches of 1 value are needed")]
    TooFew {
        /// Number of values.
        values: usize,
        /// Number of batches asked for.
        batches: usize,
    },
    /// The confidence level is outside (0, 1).
    #[error("the confidence level is {0}; it must be above 0 and below 1, as 0.95")]
    Level(f64),
    /// Edges of bins or of a window that do not rise.
    #[error("edge {0} is not above the one before it; edges must be finite and rise")]
    Edges(f64),
}

/// A mean with its confidence interval, `mean - half_width` to `mean + half_width`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean of all batches, in the values' unit.
    pub mean: f64,
    /// Half the interval's width, in the values' unit.
    pub half_width: f64,
    /// Confidence level, 0.95 for 95%.
    pub level: f64,
    /// Number of batches.
    pub batches: usize,
    /// Correlation of successive batch means, -1 to 1; 0 if they are all equal.
    pub lag1: f64,
}

impl Interval {
    /// Whether `value` lies in the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }
}

/// The mean of `values`, a series in time, by `batches` batches of equal length, at a confidence `level` such as 0.95.
///
/// Values beyond whole batches are dropped from the beginning, where a warm-up's remains would be.
///
/// # Errors
/// Fewer values than batches, fewer than two batches, a level outside (0, 1).
pub fn batch_means(values: &[f64], batches: usize, level: f64) -> Result<Interval, StatsError> {
    if !(level > 0.0 && level < 1.0) {
        return Err(StatsError::Level(level));
    }
    if batches < 2 || values.len() < batches {
        return Err(StatsError::TooFew { values: values.len(), batches });
    }
    let length = values.len() / batches;
    let used = &values[values.len() - length * batches..];
    let means: Vec<f64> = used.chunks_exact(length).map(mean).collect();
    let centre = mean(&means);
    let square: f64 = means.iter().map(|m| (m - centre) * (m - centre)).sum();
    let product: f64 = means.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    let count = batches as f64;
    let error = (square / (count - 1.0) / count).sqrt();
    Ok(Interval {
        mean: centre,
        half_width: student_t(f64::midpoint(1.0, level), count - 1.0) * error,
        level,
        batches,
        lag1: if square > 0.0 { product / square } else { 0.0 },
    })
}

/// The mean; 0 for an empty series.
fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// How many values to drop from the beginning of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmup {
    /// This many values, at most all.
    Fixed(usize),
    /// The number that minimises the standard error of the mean of the rest: [`mser5`].
    Mser5,
}

impl Warmup {
    /// `values` without their warm-up.
    #[must_use]
    pub fn remove(self, values: &[f64]) -> &[f64] {
        &values[match self {
            Self::Fixed(n) => n.min(values.len()),
            Self::Mser5 => mser5(values),
        }..]
    }
}

/// Number of values to drop by the MSER-5 rule (White, Cobb and Spratt 2000): over means of five values `z_i`, the `d` in
/// the first half with the least `sum_(i >= d) (z_i - mean)^2 / (n - d)^2`.
///
/// A multiple of five; zero for fewer than 20 values. A result of half the series says that the run is too short.
#[must_use]
pub fn mser5(values: &[f64]) -> usize {
    let z: Vec<f64> = values.chunks_exact(5).map(mean).collect();
    if z.len() < 4 {
        return 0;
    }
    // From the end, by Welford's update, which avoids cancellation.
    let (mut count, mut centre, mut square) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (i, v) in z.iter().enumerate().rev() {
        count += 1.0;
        let delta = v - centre;
        centre += delta / count;
        square += delta * (v - centre);
        let score = square / (count * count);
        if i <= z.len() / 2 && score <= best.0 {
            best = (score, i);
        }
    }
    best.1 * 5
}

/// The quantile of Student's t: the `x` with `P(T <= x) = p`, for `p` in (0, 1) and at least 1 degree of freedom.
/// To 12 digits. Outside (0, 1), infinite.
#[must_use]
pub fn student_t(p: f64, degrees: f64) -> f64 {
    if p < 0.5 {
        return -student_t(1.0 - p, degrees);
    }
    if p >= 1.0 || p.is_nan() {
        return f64::INFINITY;
    }
    // P(|T| > x) = I(n/(n + x^2); n/2, 1/2), which falls with x.
    let outside = |x: f64| beta_reg(0.5 * degrees, 0.5, degrees / (degrees + x * x));
    let wanted = 2.0 * (1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while outside(high) > wanted && high < 1e150 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if outside(middle) > wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Completion times of the flows of one range of sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeBin {
    /// Smallest size in it, in bytes.
    pub from_bytes: f64,
    /// First size above it, in bytes.
    pub to_bytes: f64,
    /// Number of flows.
    pub flows: usize,
    /// Mean size of the flows in bytes, 0 without flows.
    pub mean_bytes: f64,
    /// Mean completion time of the flows in seconds (AFCT), 0 without flows.
    pub mean_s: f64,
    /// Longest completion time in seconds, 0 without flows.
    pub max_s: f64,
    /// The mean with its confidence interval, from 10 flows on. Its mean leaves out flows beyond whole batches.
    pub interval: Option<Interval>,
}

/// Average flow completion time by size bin, with confidence.
///
/// `flows` are (size in bytes, completion time in seconds) in the order of arrival, warm-up removed; bin `i` holds the sizes
/// from `edges[i]` on and below `edges[i + 1]`. With fewer than two flows for each of `batches` batches, but at least 10
/// flows, half as many batches as flows are used; below 10 flows there is no interval.
///
/// # Errors
/// Edges that do not rise, fewer than two of them, a level outside (0, 1), fewer than two batches.
pub fn afct_by_size(
    flows: &[(f64, f64)],
    edges: &[f64],
    batches: usize,
    level: f64,
) -> Result<Vec<SizeBin>, StatsError> {
    if edges.len() < 2 {
        return Err(StatsError::Edges(edges.first().copied().unwrap_or(f64::NAN)));
    }
    if let Some(w) = edges.windows(2).find(|w| w[1].partial_cmp(&w[0]) != Some(core::cmp::Ordering::Greater))
    {
        return Err(StatsError::Edges(w[1]));
    }
    if batches < 2 {
        return Err(StatsError::TooFew { values: flows.len(), batches });
    }
    if !(level > 0.0 && level < 1.0) {
        return Err(StatsError::Level(level));
    }
    let mut members: Vec<Vec<f64>> = vec![Vec::new(); edges.len() - 1];
    let mut bytes = vec![0.0; edges.len() - 1];
    for &(size, fct) in flows {
        let bin = edges.partition_point(|e| *e <= size);
        if bin > 0 && bin < edges.len() {
            members[bin - 1].push(fct);
            bytes[bin - 1] += size;
        }
    }
    members
        .iter()
        .zip(bytes)
        .zip(edges.windows(2))
        .map(|((fct, total), edge)| {
            let fitting = batches.min(fct.len() / 2);
            Ok(SizeBin {
                from_bytes: edge[0],
                to_bytes: edge[1],
                flows: fct.len(),
                mean_bytes: if fct.is_empty() { 0.0 } else { total / fct.len() as f64 },
                mean_s: mean(fct),
                max_s: fct.iter().copied().fold(0.0, f64::max),
                interval: if fct.len() >= 10 { Some(batch_means(fct, fitting, level)?) } else { None },
            })
        })
        .collect()
}

/// Edges evenly spaced by their logarithm, `per_decade` of them to a factor of ten, from `from` to at least `to` bytes.
///
/// # Errors
/// Sizes that are not above zero and rising, or a `per_decade` of 0.
pub fn log_edges(from: f64, to: f64, per_decade: u32) -> Result<Vec<f64>, StatsError> {
    if !(from > 0.0 && from.is_finite()) {
        return Err(StatsError::Edges(from));
    }
    if !(to > from && to.is_finite()) || per_decade == 0 {
        return Err(StatsError::Edges(to));
    }
    let steps = (libm::log10(to / from) * f64::from(per_decade) - 1e-9).ceil().max(1.0) as u32;
    Ok((0..=steps).map(|i| from * libm::pow(10.0, f64::from(i) / f64::from(per_decade))).collect())
}

/// Little's law over a window of a run: `E[N] = lambda E[FCT]` (section 4.1 of Dukkipati 2007).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    /// Mean number of active flows as the run counted it.
    pub mean_active: f64,
    /// The same number, from the flows' own arrivals and completions.
    pub mean_active_by_flows: f64,
    /// Arrivals in the window, in flows per second.
    pub flows_per_s: f64,
    /// Mean completion time, in seconds, of the window's arrivals that completed.
    pub mean_fct_s: f64,
}

impl Little {
    /// Compares the run's own count `mean_active`, averaged over `from_s` to `to_s`, with its `flows`: (arrival, completion) in
    /// seconds, completion infinite for those that have not ended.
    ///
    /// # Errors
    /// A window that does not rise.
    pub fn over(flows: &[(f64, f64)], from_s: f64, to_s: f64, mean_active: f64) -> Result<Self, StatsError> {
        if !(to_s > from_s && to_s.is_finite()) {
            return Err(StatsError::Edges(to_s));
        }
        let (mut inside, mut arrived, mut ended, mut total) = (0.0, 0.0, 0.0, 0.0);
        for &(arrival, completion) in flows {
            inside += (completion.min(to_s) - arrival.max(from_s)).max(0.0);
            if arrival >= from_s && arrival < to_s {
                arrived += 1.0;
                if completion.is_finite() {
                    ended += 1.0;
                    total += completion - arrival;
                }
            }
        }
        let length = to_s - from_s;
        Ok(Self {
            mean_active,
            mean_active_by_flows: inside / length,
            flows_per_s: arrived / length,
            mean_fct_s: if ended > 0.0 { total / ended } else { 0.0 },
        })
    }

    /// Gap between the run's count and that by its flows, as a share of the larger: only rounding, at any load.
    #[must_use]
    pub fn count_error(&self) -> f64 {
        relative_gap(self.mean_active, self.mean_active_by_flows)
    }

    /// Gap between the run's count and `lambda E[FCT]`, as a share of the larger. It falls with the length of the window, whose
    /// edges cut flows.
    #[must_use]
    pub fn law_error(&self) -> f64 {
        relative_gap(self.mean_active, self.flows_per_s * self.mean_fct_s)
    }
}

/// `|a - b|` over the larger of the two, 0 if both are 0.
fn relative_gap(a: f64, b: f64) -> f64 {
    let scale = a.abs().max(b.abs());
    if scale > 0.0 { (a - b).abs() / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_matches_the_tables() {
        // Abramowitz and Stegun, table 26.10; the first two also in closed form.
        for (p, n, t) in [
            (0.975, 1.0, 12.706_204_736),
            (0.975, 2.0, 4.302_652_730),
            (0.975, 9.0, 2.262_157_163),
            (0.975, 19.0, 2.093_024_054),
            (0.95, 10.0, 1.812_461_123),
            (0.995, 29.0, 2.756_385_904),
            (0.975, 1e7, 1.959_964_2),
        ] {
            assert!((student_t(p, n) - t).abs() < 2e-7, "{p} {n}: {}", student_t(p, n));
        }
        assert!((student_t(0.025, 9.0) + student_t(0.975, 9.0)).abs() < 1e-12);
        assert!(student_t(1.0, 5.0).is_infinite());
        assert!(student_t(0.5, 5.0).abs() < 1e-9);
    }

    #[test]
    fn batches_by_hand() {
        // Batch means 2 and 4 after the odd value in front is dropped: error 1, t(1) = 12.706.
        let i = batch_means(&[99.0, 1.0, 3.0, 3.0, 5.0], 2, 0.95).unwrap();
        assert_eq!((i.mean, i.batches), (3.0, 2));
        assert!((i.half_width - 12.706_204_736).abs() < 1e-6);
        assert!(i.contains(3.0) && !i.contains(20.0));
        assert_eq!(batch_means(&[1.0], 2, 0.95), Err(StatsError::TooFew { values: 1, batches: 2 }));
        assert_eq!(batch_means(&[1.0, 2.0], 2, 1.0), Err(StatsError::Level(1.0)));
    }

    #[test]
    fn warm_up_is_found() {
        // A ramp of 100 values to a level of 1 with a ripple.
        let values: Vec<f64> = (0..1000)
            .map(|i| (f64::from(i) / 100.0).min(1.0) + if i % 2 == 0 { 0.05 } else { -0.05 })
            .collect();
        let cut = mser5(&values);
        assert!((80..=110).contains(&cut), "{cut}");
        assert_eq!(Warmup::Mser5.remove(&values).len(), 1000 - cut);
        assert_eq!(Warmup::Fixed(2000).remove(&values), &[] as &[f64]);
        assert_eq!(mser5(&[1.0; 1000]), 0);
        assert_eq!(mser5(&[5.0, 1.0]), 0);
    }

    #[test]
    fn bins_hold_their_sizes() {
        let flows: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i), f64::from(i) * 2.0)).collect();
        let bins = afct_by_size(&flows, &[0.0, 50.0, 95.0, 200.0], 10, 0.95).unwrap();
        assert_eq!(bins.iter().map(|b| b.flows).collect::<Vec<_>>(), [50, 45, 5]);
        assert_eq!(bins[0].mean_bytes, 24.5);
        assert_eq!(bins[0].mean_s, 49.0);
        assert_eq!(bins[1].max_s, 188.0);
        assert!(bins[1].interval.is_some() && bins[2].interval.is_none());
        assert!(afct_by_size(&flows, &[1.0, 1.0], 10, 0.95).is_err());
        let edges = log_edges(1000.0, 1e6, 2).unwrap();
        assert_eq!(edges.len(), 7);
        assert!((edges[6] / 1e6 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn little_counts_flows() {
        // Two flows of 2 s and 4 s in 10 s, one unfinished since 8 s.
        let little = Little::over(&[(0.0, 2.0), (1.0, 5.0), (8.0, f64::INFINITY)], 0.0, 10.0, 0.8).unwrap();
        assert!((little.mean_active_by_flows - 0.8).abs() < 1e-12);
        assert!(little.count_error() < 1e-12);
        assert!((little.flows_per_s * little.mean_fct_s - 0.9).abs() < 1e-12);
        assert!((little.law_error() - 0.1 / 0.9).abs() < 1e-12);
    }
}
