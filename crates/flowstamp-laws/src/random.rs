//! Deterministic random streams: each follows from the run's seed and a stable name.
//!
//! A flow's stream is named after its group, so that a new group does not change the draws of others. The
//! transcendental functions are [`libm`]'s, which give the same bits on every machine.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Hashes a name by FNV-1a and mixes in a seed.
#[must_use]
pub fn hash(seed: u64, name: &str) -> u64 {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` of the run with this seed.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        // seed_from_u64 spreads the sum over the generator's state (SplitMix64).
        Self(Xoshiro256PlusPlus::seed_from_u64(hash(seed, name)))
    }

    /// A uniform whole number below `count`, which must be at least 1.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }

    /// A uniform whole number of 32 bits.
    pub fn word(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }

    /// Draws a number uniformly from `[0, 1)`, in multiples of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws an exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Draws a normally distributed number with mean 0 and variance 1, from two draws (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Draws a Pareto distributed number with this mean and a shape above 1.
    pub fn pareto(&mut self, mean: f64, shape: f64) -> f64 {
        let scale = mean * (shape - 1.0) / shape;
        scale * libm::pow(1.0 - self.uniform(), -1.0 / shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_name_and_seed_only() {
        let first = |seed, name| Stream::new(seed, name).uniform();
        assert_eq!(first(1, "a").to_bits(), first(1, "a").to_bits());
        assert!(first(1, "a").to_bits() != first(1, "b").to_bits());
        assert!(first(1, "a").to_bits() != first(2, "a").to_bits());
    }

    #[test]
    fn means_are_as_asked() {
        // 10^6 samples: the standard error is 0.1% for the exponential; a Pareto of shape 3 has a standard
        // deviation of 0.58 means, hence 0.06%. Five standard errors.
        let mut s = Stream::new(7, "means");
        let n = 1_000_000;
        let exponential = (0..n).map(|_| s.exponential(2.0)).sum::<f64>() / f64::from(n);
        assert!((exponential / 2.0 - 1.0).abs() < 0.005, "{exponential}");
        let pareto = (0..n).map(|_| s.pareto(2.0, 3.0)).sum::<f64>() / f64::from(n);
        assert!((pareto / 2.0 - 1.0).abs() < 0.003, "{pareto}");
    }
}
