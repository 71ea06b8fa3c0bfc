//! Statistics of how late packets leave the path.

use flowstamp_laws::units::Time;
use serde::Serialize;

/// Delays below this many microseconds are counted in bins of 1 us.
const FINE_US: usize = 20_000;

/// A histogram of delays past the deadline.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// Number of packets by delay in whole microseconds.
    count_by_us: Vec<u64>,
    packets: u64,
    max: Time,
}

/// Statistics of the lateness, in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// Packets sent.
    pub packets: u64,
    /// Share of them that left within 50 us of their deadlines.
    pub within_50us: f64,
    pub p50_s: f64,
    pub p98_s: f64,
    pub max_s: f64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { count_by_us: vec![0; FINE_US + 1], packets: 0, max: Time::ZERO }
    }
}

impl Lateness {
    /// Adds one packet that left at `now`.
    pub fn add(&mut self, deadline: Time, now: Time) {
        let late = now.saturating_sub(deadline);
        let us = late.as_ps() / 1_000_000;
        self.count_by_us[(us as usize).min(FINE_US)] += 1;
        self.packets += 1;
        self.max = self.max.max(late);
    }

    /// The quantile by nearest rank, in whole microseconds rounded up.
    fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.packets as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (us, count) in self.count_by_us.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return if us < FINE_US { (us + 1) as f64 * 1e-6 } else { self.max.as_secs_f64() };
            }
        }
        0.0
    }

    pub fn summary(&self) -> Summary {
        Summary {
            packets: self.packets,
            within_50us: self.count_by_us[..50].iter().sum::<u64>() as f64 / self.packets.max(1) as f64,
            p50_s: self.quantile(0.5).min(self.max.as_secs_f64()),
            p98_s: self.quantile(0.98).min(self.max.as_secs_f64()),
            max_s: self.max.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut lateness = Lateness::default();
        for us in 1..=100 {
            lateness.add(Time::from_secs(1), Time::from_secs(1) + Time::from_micros(us));
        }
        lateness.add(Time::from_secs(1), Time::from_secs(2));
        let summary = lateness.summary();
        assert!((summary.p50_s - 52e-6).abs() < 1e-9, "{summary:?}");
        assert!((summary.p98_s - 100e-6).abs() < 1e-9, "{summary:?}");
        assert!((summary.max_s - 1.0).abs() < 1e-9);
        assert!((summary.within_50us - 49.0 / 101.0).abs() < 1e-9);
    }
}
