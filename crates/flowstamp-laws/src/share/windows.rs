//! The mean window of the TCP flows of a class, by what its queue loses.
//!
//! Katabi and Handley 2001, section 4.2, and Katabi, Handley, Rohrs 2002, equation 10, for the weights of [`super::split`]:
//!
//! ```text
//!   cwnd = s / (sqrt(2 p / 3) + 12 p sqrt(3 p / 8) (1 + 32 p^2))       s the mean size of the class's packets
//!   p    = 1 / mean loss interval                                      RFC 5348, section 5.4
//! ```
//!
//! Deviations (paper says / we do / because):
//! 1. Both papers print one root over the whole denominator / over its first term alone / as TCP's equation has it in TFRC,
//!    which both name (RFC 5348, section 3.1, with b = 1 and t_RTO = 4 R); p = 0.01 would else give 8.4 packets, not 11.2.
//! 2. p is the drop rate of the queue / one over the mean of the last eight numbers of packets between losses, as TFRC
//!    takes it, which the paper names / in an estimation interval there are a few drops or none, and with p = 0 a window
//!    has no bound.
//! 3. A mark counts as a drop / the paper's TCP has no ECN; one that has halves its window for either.

/// How many loss intervals count, and how much each, the newest first (RFC 5348, section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// What a class's queue has let through and lost.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Packets between losses, the newest first; as many as there are.
    intervals: [f64; WEIGHTS.len()],
    known: usize,
    /// Packets since the last loss.
    since: f64,
    /// Mean size of the packets, bytes, and how many it is over.
    packet_bytes: f64,
    packets: f64,
}

impl Default for Windows {
    fn default() -> Self {
        Self { intervals: [0.0; WEIGHTS.len()], known: 0, since: 0.0, packet_bytes: 0.0, packets: 0.0 }
    }
}

/// Over so many packets the mean size forgets.
const SIZES: f64 = 1000.0;

impl Windows {
    /// A packet of the class arrived, whether or not it is then lost.
    #[inline]
    pub fn on_arrival(&mut self, size: u32) {
        self.since += 1.0;
        self.packets = (self.packets + 1.0).min(SIZES);
        self.packet_bytes += (f64::from(size) - self.packet_bytes) / self.packets;
    }

    /// It was lost, or marked.
    pub fn on_loss(&mut self) {
        self.intervals.rotate_right(1);
        self.intervals[0] = self.since.max(1.0);
        self.known = (self.known + 1).min(WEIGHTS.len());
        self.since = 0.0;
    }

    /// p: one over the mean loss interval, from 0, where nothing has been lost, to 1.
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        if self.known == 0 {
            return 0.0;
        }
        let (mut with, mut without, mut weights) = (0.0, 0.0, 0.0);
        let mut newer = self.since;
        for (weight, interval) in WEIGHTS.iter().zip(&self.intervals[..self.known]) {
            // The interval that is still open counts where it makes the mean longer.
            with += weight * newer;
            without += weight * interval;
            weights += weight;
            newer = *interval;
        }
        weights / f64::max(with, without)
    }

    /// The mean window, bytes; infinite while nothing has been lost.
    #[must_use]
    pub fn window(&self) -> f64 {
        let p = self.loss_rate();
        let per_packet =
            libm::sqrt(2.0 * p / 3.0) + 12.0 * p * libm::sqrt(3.0 * p / 8.0) * (1.0 + 32.0 * p * p);
        if per_packet > 0.0 { self.packet_bytes / per_packet } else { f64::INFINITY }
    }
}
