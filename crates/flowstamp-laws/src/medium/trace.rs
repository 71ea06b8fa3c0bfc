//! Recorded delivery opportunities, in Mahimahi's format.

use crate::units::{Rate, Time};

/// Bytes that one opportunity can carry.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// Delivery opportunities, repeated for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Instants of opportunities in one period.
    opportunities: Vec<Time>,
    /// The trace repeats after this time.
    period: Time,
    /// The opportunity in use, counted over all repetitions, and the bytes that it can still carry.
    at: u64,
    left: u32,
}

impl Trace {
    /// Creates a trace from instants in milliseconds, one per opportunity, rising and not empty. The last one is the
    /// period, as in Mahimahi, and must be above zero.
    #[must_use]
    pub fn new(milliseconds: &[u64]) -> Self {
        Self {
            opportunities: milliseconds.iter().map(|ms| Time::from_millis(*ms)).collect(),
            period: Time::from_millis(milliseconds.last().copied().unwrap_or(1).max(1)),
            at: 0,
            left: OPPORTUNITY_BYTES,
        }
    }

    /// The mean rate of one period, and so of all time.
    #[must_use]
    pub fn mean(&self) -> Rate {
        let bytes = self.opportunities.len() as f64 * f64::from(OPPORTUNITY_BYTES);
        Rate::from_bytes_per_sec(bytes / self.period.as_secs_f64())
    }

    /// Time of opportunity `k`, counted over all repetitions.
    fn instant(&self, k: u64) -> Time {
        let n = self.opportunities.len() as u64;
        self.period * (k / n) + self.opportunities[(k % n) as usize]
    }

    /// End of a transmission of `size` bytes that can begin at `start`.
    #[inline(never)]
    pub fn finish(&mut self, start: Time, size: u32) -> Time {
        // Opportunities before `start` are lost. A long idle time is first skipped in whole periods.
        if self.instant(self.at) < start {
            let n = self.opportunities.len() as u64;
            let period = start.as_ps() / self.period.as_ps();
            let mut at = self.at.max(period.saturating_sub(1) * n);
            while self.instant(at) < start {
                at += 1;
            }
            self.at = at;
            self.left = OPPORTUNITY_BYTES;
        }
        let mut rest = size;
        while rest > self.left {
            rest -= self.left;
            self.at += 1;
            self.left = OPPORTUNITY_BYTES;
        }
        self.left -= rest;
        let finish = self.instant(self.at);
        if self.left == 0 {
            self.at += 1;
            self.left = OPPORTUNITY_BYTES;
        }
        finish
    }

    /// Bytes that could be carried in `(from, to]`. At the start of the run its first instant is included.
    #[must_use]
    pub fn capacity_bytes(&self, from: Time, to: Time) -> f64 {
        let before = if from > Time::ZERO { self.count(from) } else { 0 };
        (self.count(to) - before) as f64 * f64::from(OPPORTUNITY_BYTES)
    }

    /// Number of opportunities up to and including `t`.
    fn count(&self, t: Time) -> u64 {
        let periods = t.as_ps() / self.period.as_ps();
        let rest = Time::from_ps(t.as_ps() % self.period.as_ps());
        let in_period = self.opportunities.partition_point(|o| *o <= rest) as u64;
        periods * self.opportunities.len() as u64 + in_period
    }
}
