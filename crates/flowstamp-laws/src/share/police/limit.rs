//! Limits of a policed flow's rate, by a token bucket.

use super::{FAILURES, Flow, Params, Trouble};
use crate::units::Time;

/// Depth of a flow's token bucket in seconds of its rate limit, without and with `FAILURES` failures on record. A burst
/// of an isolated flow is a queue for the others.
const BUCKET_S: f64 = 0.1;
const ISOLATED_BUCKET_S: f64 = 0.02;
/// Longest pause that counts for filling the bucket, seconds.
const MAX_PAUSE_S: f64 = 1.0;

impl Flow {
    /// Whether a packet of the flow may pass, by a token bucket. An isolated flow, or one on probation, is limited to
    /// its allowance. Another unproven flow is limited to `heavy` while the link is in trouble, or if it is marked. If it
    /// sends more, it goes on probation.
    pub fn admits(&mut self, params: &Params, now: Time, bytes: u32, trouble: &Trouble) -> bool {
        let heavy = params.heavy.bytes_per_sec();
        let isolated = self.is_isolated();
        if !isolated {
            self.eased = trouble.all;
            if self.is_proven() || (!trouble.lasts() && !self.marked) {
                return true;
            }
        }
        if self.eased != trouble.all {
            // Deviation 8. Without a failure the allowance stays at a rate at which the flow can still be tested.
            let least = heavy / if self.failures > 0 { 8.0 } else { 2.0 };
            self.allowed = self.allowed.min((self.allowed / 2.0).max(least));
            self.eased = trouble.all;
        }
        let allowed = if isolated { self.allowed } else { heavy };
        let within = self.takes(now, bytes, allowed);
        if !within {
            self.held += 1;
            self.marked = true;
            if !isolated {
                self.probation = true; // deviation 10
                self.allowed = self.allowed.min(heavy);
            }
        }
        within
    }

    /// Depth in bytes of the bucket of `allowed` bytes/s: at least two of the flow's largest packets.
    pub(super) fn depth(&self, allowed: f64) -> f64 {
        let seconds = if self.failures < FAILURES { BUCKET_S } else { ISOLATED_BUCKET_S };
        (allowed * seconds).max(2.0 * f64::from(self.largest))
    }

    /// Takes a packet's tokens from the bucket of `allowed` bytes/s, if it has enough.
    fn takes(&mut self, now: Time, bytes: u32, allowed: f64) -> bool {
        let passed = now.saturating_sub(self.tokens_at).as_secs_f64().min(MAX_PAUSE_S);
        self.largest = self.largest.max(bytes);
        self.tokens = (self.tokens + passed * allowed).min(self.depth(allowed));
        self.tokens_at = now;
        let within = self.tokens >= f64::from(bytes);
        if within {
            self.tokens -= f64::from(bytes);
        }
        within
    }
}
