//! SCONE's times, and the mean of a law's rate that a router advises (draft-ietf-scone-protocol).
//!
//! Advice applies for a monitoring period. A router whose law gives one rate to all flows, as RCP's does, therefore advises the mean of
//! that rate over the last period. `crates/flowstamp-linux/bpf/scone.h` has the same mean for samples at a fixed interval, and
//! `tests/scone_equality.rs` compares both. The format of the packets is in `flowstamp-wire`.

use crate::units::Time;
use std::collections::VecDeque;

/// Length of the monitoring period in seconds. Advice expires after a period without any.
pub const PERIOD_S: u64 = 67;
/// Shortest time between two SCONE packets of a sender, after those of the start, in seconds. With the random time on top, there are at
/// least two in a period.
pub const GAP_S: u64 = 20;
/// The longest random time on top of [`GAP_S`], in seconds.
pub const MORE_GAP_S: u64 = 10;

/// Mean of a rate over the last [`PERIOD_S`] seconds, in slots of a second.
#[derive(Clone, Debug, Default)]
pub struct Mean {
    /// For each slot: its second, its duration in seconds, and the integral of the rate over that duration.
    slots: VecDeque<(u64, f64, f64)>,
    sampled: Time,
}

impl Mean {
    /// When the last sample was added; zero before the first.
    #[must_use]
    pub const fn sampled(&self) -> Time {
        self.sampled
    }

    /// Adds the `rate` that has held since the last sample. A gap without packets counts in each of its seconds, as far as the mean reaches back.
    pub fn add(&mut self, now: Time, rate: f64) {
        let second = Time::from_secs(1);
        let mut from = self.sampled.max(now.saturating_sub(second * PERIOD_S));
        while now - from >= second {
            let end = second * (from.as_ps() / second.as_ps() + 1);
            self.add_to(from.as_ps() / second.as_ps(), (end - from).as_secs_f64(), rate);
            from = end;
        }
        self.add_to(now.as_ps() / second.as_ps(), (now - from).as_secs_f64(), rate);
        self.sampled = now;
    }

    /// Adds the rate of `passed_s` seconds to the slot of a second.
    fn add_to(&mut self, second: u64, passed_s: f64, rate: f64) {
        match self.slots.back_mut() {
            Some((of, lasted_s, sum)) if *of == second => {
                *lasted_s += passed_s;
                *sum += rate * passed_s;
            }
            _ => self.slots.push_back((second, passed_s, rate * passed_s)),
        }
        while self.slots.front().is_some_and(|(of, ..)| of + PERIOD_S <= second) {
            self.slots.pop_front();
        }
    }

    /// The mean in the unit of the rate; `None` before the first sample.
    #[must_use]
    pub fn get(&self) -> Option<f64> {
        let (lasted_s, sum) =
            self.slots.iter().fold((0.0, 0.0), |(t, s), (_, lasted_s, sum)| (t + lasted_s, s + sum));
        (lasted_s > 0.0).then(|| sum / lasted_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_forgets_after_a_period() {
        let mut mean = Mean::default();
        assert_eq!(mean.get(), None);
        for ms in 1..=10_000 {
            mean.add(Time::from_millis(ms), 4e6);
        }
        assert!((mean.get().expect("a mean") / 4e6 - 1.0).abs() < 1e-9);
        // 10 s at 4 Mb/s and 30 s at 2 Mb/s.
        for ms in 10_001..=40_000 {
            mean.add(Time::from_millis(ms), 2e6);
        }
        assert!((mean.get().expect("a mean") / 2.5e6 - 1.0).abs() < 1e-3);
        for ms in 40_001..=80_000 {
            mean.add(Time::from_millis(ms), 2e6);
        }
        assert!((mean.get().expect("a mean") / 2e6 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_gap_counts_as_far_as_the_mean_reaches_back() {
        let mut mean = Mean::default();
        // Nothing passed for 300 s, while the rate was 10 Mb/s; then 1 Mb/s for 60 s.
        mean.add(Time::from_secs(300), 10e6);
        for ms in 300_001..=360_000 {
            mean.add(Time::from_millis(ms), 1e6);
        }
        // The second that has just begun is one of the 67, so six are left of the gap.
        let expected = (6.0 * 10e6 + 60.0 * 1e6) / 66.0;
        assert!((mean.get().expect("a mean") / expected - 1.0).abs() < 1e-9, "{:?}", mean.get());
        mean.add(Time::from_secs(600), 2e6);
        assert!((mean.get().expect("a mean") / 2e6 - 1.0).abs() < 1e-9);
    }
}
