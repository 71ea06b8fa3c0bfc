//! Estimates the mean window of a class's TCP flows from the losses of its queue. PCP's senders estimate the window
//! of TFRC over routers without PCP in the same way.
//!
//! Katabi and Handley 2001, section 4.2, and Katabi, Handley, Rohrs 2002, equation 10, for the weights of [`super::split`]:
//!
//! ```text
//!   cwnd = s / (sqrt(2 p / 3) + 12 p sqrt(3 p / 8) (1 + 32 p^2))       s the mean size of the class's packets
//!   p    = 1 / mean loss interval                                      RFC 5348, section 5.4
//! ```
//!
//! Deviations (paper says / we do / because):
//! 1. Both papers print one root over the whole denominator / the root covers only its first term / TCP's equation in
//!    TFRC, which both cite, has this form (RFC 5348, section 3.1, with b = 1 and t_RTO = 4 R); p = 0.01 would
//!    otherwise give 8.4 packets, not 11.2.
//! 2. p is the drop rate of the queue / it is one over the mean of the last eight loss intervals, as in TFRC, which
//!    the paper cites / an estimation interval has few drops or none, and with p = 0 a window has no bound.
//! 3. The paper's TCP has no ECN / a mark counts as a drop / a TCP with ECN halves its window for either.

/// Weights of the loss intervals, the newest first (RFC 5348, section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Packets and losses of a class's queue.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Packets between losses, the newest first; `known` of them are valid.
    intervals: [f64; WEIGHTS.len()],
    known: usize,
    /// Packets since the last loss.
    since: f64,
    /// Mean size of the packets in bytes, and the number of packets behind it.
    packet_bytes: f64,
    packets: f64,
}

impl Default for Windows {
    fn default() -> Self {
        Self { intervals: [0.0; WEIGHTS.len()], known: 0, since: 0.0, packet_bytes: 0.0, packets: 0.0 }
    }
}

/// Averaging length of the mean size in packets.
const SIZES: f64 = 1000.0;

impl Windows {
    /// Takes an arriving packet of the class, even if it is then dropped.
    #[inline]
    pub fn on_arrival(&mut self, size: u32) {
        self.since += 1.0;
        self.packets = (self.packets + 1.0).min(SIZES);
        self.packet_bytes += (f64::from(size) - self.packet_bytes) / self.packets;
    }

    /// Before the first loss, counts as if at least `packets` had come.
    pub fn begin(&mut self, packets: f64) {
        if self.known == 0 {
            self.since = self.since.max(packets);
        }
    }

    /// Notes that the packet was dropped or marked.
    pub fn on_loss(&mut self) {
        self.intervals.rotate_right(1);
        self.intervals[0] = self.since.max(1.0);
        self.known = (self.known + 1).min(WEIGHTS.len());
        self.since = 0.0;
    }

    /// p: one over the mean loss interval, from 0, before any loss, to 1.
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        if self.known == 0 {
            return 0.0;
        }
        let (mut with, mut without, mut weights) = (0.0, 0.0, 0.0);
        let mut newer = self.since;
        for (weight, interval) in WEIGHTS.iter().zip(&self.intervals[..self.known]) {
            // The open interval counts if it makes the mean longer.
            with += weight * newer;
            without += weight * interval;
            weights += weight;
            newer = *interval;
        }
        weights / f64::max(with, without)
    }

    /// The mean window in bytes; infinite before the first loss.
    #[must_use]
    pub fn window(&self) -> f64 {
        let p = self.loss_rate();
        let per_packet =
            libm::sqrt(2.0 * p / 3.0) + 12.0 * p * libm::sqrt(3.0 * p / 8.0) * (1.0 + 32.0 * p * p);
        if per_packet > 0.0 { self.packet_bytes / per_packet } else { f64::INFINITY }
    }
}
