//! The capacity of a Wi-Fi link, from the sizes of its A-MPDUs and the times of their block acks.
//!
//! Goyal et al. 2020, section 5.1. A station sends up to `M` frames of `S` bytes in one turn on the medium, at the rate
//! `R`, and one block ack answers them. A batch of `b` frames takes `T(b)` from the block ack before it to its own:
//!
//! ```text
//!   T(b) = h + b S / R                       h: access to the medium, preambles, SIFS and block ack
//!   T(M) = T(b) + (M - b) S / R              h does not depend on the size of the batch
//!   mu   = M S / T(M)                        the mean of the last `window`, 40 ms
//!   mu  <= 2 cr                              in the router: no sender can use more within a round trip
//! ```
//!
//! A small batch of a link that is not backlogged therefore tells the capacity, too. With `b = M` it is measured.
//!
//! Valid for batches of 1 to 64 frames at 1 kb/s to 400 Gb/s.
//!
//! The paper's section could not be read when this was written. The equations, the window and the cap are as others
//! describe the paper. Deviations 1 to 5 are therefore our choice where we do not know the paper's.
//!
//! Deviations:
//! 1. The paper's `T(b)` is the time between block acks. If the link had nothing to send, ours begins when the first
//!    packet arrives, because idle time is no overhead. On a link that is never idle, both are the same.
//! 2. If packets wait although a batch has fewer than `M` frames, the batch counts as full, because the link is
//!    backlogged.
//! 3. The mean is the sum of all `M S` over the sum of all `T(M)`. On a backlogged link it is then exactly the rate that
//!    it carried.
//! 4. `b` counts all frames since the previous ack, also those of turns that no ack answered, because a repeated frame
//!    takes its time twice. `M S` is multiplied with the share of bytes that arrived.
//! 5. In `b S / R` the size includes headers. In `M S` it is that of the packet, because the law compares packets.
//! 6. The paper's window slides. Ours moves in steps of an eighth, so that a batch needs no allocation. While no batch
//!    comes, the last estimate stays.

use crate::router::Batch;
use crate::units::Time;

/// The paper's window, as others report it.
pub const WINDOW: Time = Time::from_millis(40);

/// Steps of the window (deviation 6).
const PARTS: usize = 8;

/// `T(M)` in seconds, for a batch of `frames` that took `elapsed_s`, each of which takes `frame_s` on the air.
#[inline]
#[must_use]
pub fn full_time(elapsed_s: f64, frames: u32, most: u32, frame_s: f64) -> f64 {
    elapsed_s + f64::from(most.saturating_sub(frames)) * frame_s
}

/// Sums of the batches in a part of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// `M S`, bytes.
    bytes: f64,
    /// `T(M)`, seconds.
    seconds: f64,
    /// `b S`, and the part of it that arrived, bytes.
    sent: f64,
    received: f64,
}

impl Sums {
    fn plus(self, other: &Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            seconds: self.seconds + other.seconds,
            sent: self.sent + other.sent,
            received: self.received + other.received,
        }
    }
}

/// Estimates the capacity of one interface.
#[derive(Clone, Debug)]
pub struct Estimator {
    /// Length of a part, at least 1 ps.
    part: Time,
    parts: [Sums; PARTS],
    /// Number of the newest part, counted from time zero.
    newest: u64,
    capacity: Option<f64>,
}

impl Estimator {
    /// Creates an estimator without an estimate. `window` is the time over which it averages.
    #[must_use]
    pub fn new(window: Time) -> Self {
        let part = Time::from_ps((window.as_ps() / PARTS as u64).max(1));
        Self { part, parts: [Sums::default(); PARTS], newest: 0, capacity: None }
    }

    /// Returns this estimator with another window. It keeps the estimate until the next batch.
    #[must_use]
    pub fn with_window(&self, window: Time) -> Self {
        Self { capacity: self.capacity, ..Self::new(window) }
    }

    /// `mu` in bytes/s; `None` before the first batch.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> Option<f64> {
        self.capacity
    }

    /// Counts a batch. Successive times of acks must not decrease.
    pub fn on_batch(&mut self, batch: &Batch) {
        let number = batch.at.as_ps() / self.part.as_ps();
        for old in self.newest + 1..=number.min(self.newest + PARTS as u64) {
            self.parts[(old % PARTS as u64) as usize] = Sums::default();
        }
        self.newest = number;
        let (frames, most) = (batch.frames.max(1), batch.most.max(batch.frames));
        let part = &mut self.parts[(number % PARTS as u64) as usize];
        *part = part.plus(&Sums {
            bytes: f64::from(most) * batch.packet_bytes,
            seconds: full_time(batch.elapsed.as_secs_f64(), frames, most, batch.frame_s()),
            sent: f64::from(frames) * batch.packet_bytes,
            received: f64::from(batch.acked) * batch.packet_bytes,
        });
        let sum = self.parts.iter().fold(Sums::default(), Sums::plus);
        if sum.seconds > 0.0 && sum.sent > 0.0 {
            self.capacity = Some(sum.bytes / sum.seconds * (sum.received / sum.sent)); // deviations 3 and 4
        }
    }
}
