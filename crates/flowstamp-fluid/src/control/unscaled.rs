//! RCP's equations in the units that the thesis writes them in, for its claim that capacity, delay and number of flows do not matter.
//!
//! ```text
//!   R' = R / (C d) (alpha (C - y) - beta q / d)                  eq. 5.1
//!   y  = N R(t - d0),   d = d0 + q / C                           eqs. 5.2 and 5.3
//!   q' = y - C, and max(y - C, 0) where q = 0                    eq. 5.4
//! ```
//!
//! [`super::models::Rcp`] has the same in a scale of its own, in which they cannot matter.

use super::delay::{Past, System};
use super::models::Mode;
use super::region::{self, Fate, Patience};

/// One link and flows of one RTT under RCP (Dukkipati 2007, equations 5.1 to 5.4). The rate R is bit/s of one flow, the queue bits, the time seconds;
/// R is at most C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RcpLink {
    /// Gain on spare capacity.
    pub alpha: f64,
    /// Gain on the queue.
    pub beta: f64,
    /// C, bit/s.
    pub capacity: f64,
    /// d0, seconds.
    pub rtt: f64,
    /// N.
    pub flows: f64,
}

impl RcpLink {
    fn arriving(&self, t: f64, past: &Past<2>) -> f64 {
        self.flows * past.at(t - self.rtt)[0]
    }

    /// R' over R.
    fn growth(&self, t: f64, x: &[f64; 2], past: &Past<2>) -> f64 {
        let d = self.rtt + x[1] / self.capacity;
        (self.alpha * (self.capacity - self.arriving(t, past)) - self.beta * x[1] / d) / (self.capacity * d)
    }

    /// From a rate as a share of C and a queue in bandwidth-delay products.
    #[must_use]
    pub fn start(&self, rate_share: f64, queue_bdp: f64) -> [f64; 2] {
        [rate_share * self.capacity, queue_bdp * self.capacity * self.rtt]
    }

    /// What becomes of a start; times of `patience` and the answer are round trips. The rate is within 2% and the queue within 1% of a
    /// bandwidth-delay product where the distance is 1 (section 5.4). What cannot be told apart does not settle.
    #[must_use]
    pub fn fate(&self, start: [f64; 2], steps_per_rtt: f64, patience: &Patience) -> Fate {
        let rest = self.capacity / self.flows;
        let distance =
            |x: &[f64; 2]| ((x[0] / rest - 1.0).abs() / 0.02).max(x[1] / (0.01 * self.capacity * self.rtt));
        let seconds =
            Patience { hold: patience.hold * self.rtt, most: patience.most * self.rtt, ..*patience };
        match region::fate(*self, start, self.rtt / steps_per_rtt, &seconds, distance) {
            Ok(Fate::Settles { after }) => Fate::Settles { after: after / self.rtt },
            _ => Fate::Oscillates,
        }
    }
}

impl System<2> for RcpLink {
    type Mode = Mode;

    fn delays(&self) -> (f64, f64) {
        (self.rtt, self.rtt)
    }

    fn mode(&self, t: f64, x: &[f64; 2], past: &Past<2>) -> Mode {
        Mode {
            empty: x[1] <= 0.0 && self.arriving(t, past) < self.capacity,
            held: x[0] >= self.capacity && self.growth(t, x, past) > 0.0,
        }
    }

    #[inline]
    fn slope(&self, mode: Mode, t: f64, x: &[f64; 2], past: &Past<2>) -> [f64; 2] {
        [
            if mode.held { 0.0 } else { x[0] * self.growth(t, x, past) },
            if mode.empty { 0.0 } else { self.arriving(t, past) - self.capacity },
        ]
    }

    /// Both guards in their own scale, so that neither hides the other.
    #[inline]
    fn guard(&self, mode: Mode, t: f64, x: &[f64; 2], past: &Past<2>) -> f64 {
        let queue = if mode.empty {
            1.0 - self.arriving(t, past) / self.capacity
        } else {
            x[1] / (self.capacity * self.rtt)
        };
        let rate = if mode.held { self.growth(t, x, past) * self.rtt } else { 1.0 - x[0] / self.capacity };
        queue.min(rate)
    }

    fn switch(&self, mode: Mode, t: f64, x: &mut [f64; 2], past: &Past<2>) -> Mode {
        let mut next = mode;
        if mode.empty {
            next.empty = self.arriving(t, past) < self.capacity;
        } else if x[1] <= 0.0 {
            x[1] = 0.0;
            next.empty = self.arriving(t, past) <= self.capacity;
        }
        if mode.held {
            next.held = self.growth(t, x, past) > 0.0;
        } else if x[0] >= self.capacity {
            x[0] = self.capacity;
            next.held = self.growth(t, x, past) >= 0.0;
        }
        next
    }
}
