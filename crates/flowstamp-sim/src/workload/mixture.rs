//! Flow sizes of data centres, as mixtures of three lognormal distributions, cut at the largest size.
//!
//! The parameters are our own fits to published distributions. The fits keep the mean, and make the largest difference
//! between the two distribution functions small.
//!
//! | name | fitted to | largest difference | mean |
//! |---|---|---|---|
//! | web search | DCTCP's paper, Alizadeh 2010, figure 4, as simulators have it | 0.018 | 1.70 MB, 0.7% less |
//! | Hadoop | Roy 2015, figure 6, as simulators have it | 0.024 | 120 kB, 0.1% less |
//! | storage | `AliStorage2019` of HPCC's simulator (Li 2019) | 0.020 | 40.9 kB, 0.2% more |

use crate::random::Stream;

/// A mixture of lognormal distributions.
#[derive(Debug)]
pub(super) struct Mixture {
    /// Share, median in bytes, and standard deviation of the logarithm, of each part.
    parts: [(f64, f64, f64); 3],
    /// The largest size, bytes. Larger draws are cut to it.
    most: f64,
}

pub(super) const WEB_SEARCH: Mixture =
    Mixture { parts: [(0.462, 34e3, 2.2), (0.232, 41e3, 0.5), (0.306, 3.07e6, 1.03)], most: 30e6 };
pub(super) const HADOOP: Mixture =
    Mixture { parts: [(0.641, 507.0, 0.43), (0.089, 50.7e3, 0.255), (0.27, 61.6e3, 2.1)], most: 10e6 };
pub(super) const STORAGE: Mixture =
    Mixture { parts: [(0.363, 6080.0, 0.202), (0.596, 6280.0, 1.48), (0.041, 216e3, 2.8)], most: 2e6 };

impl Mixture {
    /// Draws a size, bytes.
    pub(super) fn draw(&self, stream: &mut Stream) -> f64 {
        let mut left = stream.uniform();
        let chosen = self.parts.iter().find(|(share, ..)| {
            left -= share;
            left < 0.0
        });
        let (_, median, deviation) = chosen.unwrap_or(&self.parts[2]);
        (median * libm::exp(deviation * stream.normal())).min(self.most)
    }

    /// Mean size, bytes.
    pub(super) fn mean_bytes(&self) -> f64 {
        let part = |(share, median, deviation): &(f64, f64, f64)| {
            let most = libm::log(self.most / median) / deviation;
            let below = median * libm::exp(deviation * deviation / 2.0) * normal(most - deviation);
            share * (below + self.most * normal(-most))
        };
        self.parts.iter().map(part).sum()
    }

    /// Share of sizes of at most `bytes`.
    #[cfg(test)]
    fn share_below(&self, bytes: f64) -> f64 {
        if bytes >= self.most {
            return 1.0;
        }
        let part = |(share, median, deviation): &(f64, f64, f64)| {
            share * normal(libm::log(bytes / median) / deviation)
        };
        self.parts.iter().map(part).sum()
    }
}

/// The distribution function of the standard normal distribution.
fn normal(x: f64) -> f64 {
    libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws have the mean and the distribution that the formulas say.
    #[test]
    fn draws_follow_the_mixture() {
        for (mixture, mean) in [(&WEB_SEARCH, 1.6994e6), (&HADOOP, 120.33e3), (&STORAGE, 40.94e3)] {
            assert!((mixture.mean_bytes() / mean - 1.0).abs() < 1e-3, "{}", mixture.mean_bytes());
            let mut stream = Stream::new(3, "sizes");
            let n = 400_000;
            let draws: Vec<f64> = (0..n).map(|_| mixture.draw(&mut stream)).collect();
            let drawn = draws.iter().sum::<f64>() / f64::from(n);
            // The coefficient of variation is at most 6, hence a standard error of 1%; three of them.
            assert!((drawn / mixture.mean_bytes() - 1.0).abs() < 0.03, "{drawn}");
            for bytes in [300.0, 1e3, 1e4, 1e5, 1e6] {
                let share = draws.iter().filter(|size| **size <= bytes).count() as f64 / f64::from(n);
                assert!((share - mixture.share_below(bytes)).abs() < 0.004, "{share} up to {bytes}");
            }
        }
    }

    /// The fits are as close to the published distributions as is said, where their files are at hand.
    #[test]
    fn fits_are_close() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/flow-sizes");
        for (mixture, file, most) in
            [(&WEB_SEARCH, "WebSearch_distribution.txt", 0.019), (&HADOOP, "FbHdp_distribution.txt", 0.024)]
        {
            let Ok(text) = std::fs::read_to_string(folder.join(file)) else { continue };
            let points = super::super::parse_cdf(&text).expect("a distribution");
            let mut worst: f64 = 0.0;
            for pair in points.windows(2) {
                for step in 0..50 {
                    let at = f64::from(step) / 50.0;
                    let bytes = pair[0].0 + (pair[1].0 - pair[0].0) * at;
                    // Sizes of next to nothing do not matter.
                    if bytes >= points[1].0 / 20.0 {
                        let share = pair[0].1 + (pair[1].1 - pair[0].1) * at;
                        worst = worst.max((mixture.share_below(bytes) - share).abs());
                    }
                }
            }
            assert!(worst < most, "{file}: {worst}");
        }
    }
}
