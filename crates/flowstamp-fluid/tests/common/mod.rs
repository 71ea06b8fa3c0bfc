//! Random flows for the tests.

use flowstamp_fluid::servers::Flow;
use flowstamp_fluid::sizes::SizeDistribution;

/// SplitMix64 (Steele, Lea and Flood 2014): a stream of uniform numbers from a seed.
pub struct Stream(pub u64);

impl Stream {
    /// In (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((z >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

/// `n` flows of `sizes` arriving as a Poisson process.
pub fn poisson(seed: u64, n: usize, flows_per_s: f64, sizes: &SizeDistribution) -> Vec<Flow> {
    let mut stream = Stream(seed);
    let mut now = 0.0;
    (0..n)
        .map(|_| {
            now += -stream.uniform().ln() / flows_per_s;
            Flow { arrival_s: now, size_bytes: sizes.upper_quantile(stream.uniform()) }
        })
        .collect()
}
