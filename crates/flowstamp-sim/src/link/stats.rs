//! What happened on a router link.

use crate::packet::{DATA, Packet};
use flowstamp_laws::units::Time;

/// Statistics of a router link.
#[derive(Clone, Debug, Default)]
pub struct LinkStats {
    /// Packets that reached the link.
    pub arrivals: u64,
    /// Bytes that were let in; at the end of warm-up, the part of them that was still to be sent.
    pub accepted_bytes: f64,
    /// Packets lost.
    pub drops: u64,
    /// Those of them that were no data, nor went the way of data: acks and answers.
    pub ack_drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Largest queue, bytes.
    pub max_queue: u64,
    /// Byte-picoseconds: whole ones, whose sum is the same however often somebody looks.
    pub queue_integral: u128,
    /// Time spent at each queue length.
    pub queue_times: QueueTimes,
    /// Up to when the last two are known.
    accounted: Time,
    /// What was counted before the statistics began anew.
    before: [u64; 4],
}

impl LinkStats {
    /// The queue has been `queue_bytes` since the last call, until `now`.
    #[inline]
    pub fn account(&mut self, now: Time, queue_bytes: u64) {
        let span = now - self.accounted;
        self.queue_integral += u128::from(queue_bytes) * u128::from(span.as_ps());
        self.queue_times.add(queue_bytes, span);
        self.accounted = now;
    }

    /// Forgets all that was, as of `now`, with `queue_bytes` waiting.
    pub fn restart(&mut self, now: Time, queue_bytes: u64) {
        *self = Self { accounted: now, max_queue: queue_bytes, before: self.whole_run(), ..Self::default() };
    }

    /// A packet is lost.
    pub fn lose(&mut self, packet: &Packet) {
        self.drops += 1;
        self.ack_drops += u64::from(packet.flags & DATA == 0);
    }

    /// Arrivals, drops, drops of acks and marks since the statistics began anew.
    #[must_use]
    pub fn counts(&self) -> [u64; 4] {
        [self.arrivals, self.drops, self.ack_drops, self.marks]
    }

    /// The same since the beginning of the run.
    #[must_use]
    pub fn whole_run(&self) -> [u64; 4] {
        let [now, before] = [self.counts(), self.before];
        std::array::from_fn(|i| now[i] + before[i])
    }
}

/// Time spent at each queue length, in bins of at most a sixteenth of the length.
#[derive(Clone, Debug, Default)]
pub struct QueueTimes {
    /// Picoseconds in each bin.
    bins: Vec<u64>,
}

/// Bins per doubling of the queue.
const SUB_BINS: u64 = 16;

impl QueueTimes {
    #[inline]
    fn bin(bytes: u64) -> usize {
        if bytes < SUB_BINS {
            return bytes as usize;
        }
        let octave = u64::from(63 - bytes.leading_zeros() - 4);
        ((octave + 1) * SUB_BINS + ((bytes >> octave) - SUB_BINS)) as usize
    }

    /// The largest length in a bin.
    fn upper(bin: usize) -> u64 {
        let bin = bin as u64;
        if bin < SUB_BINS {
            return bin;
        }
        let octave = bin / SUB_BINS - 1;
        ((bin % SUB_BINS + SUB_BINS + 1) << octave) - 1
    }

    #[inline]
    fn add(&mut self, bytes: u64, span: Time) {
        let bin = Self::bin(bytes);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += span.as_ps();
    }

    /// The length that the queue did not exceed for this share of the time, to a sixteenth.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self.bins.iter().sum();
        let mut below = 0;
        for (bin, time) in self.bins.iter().enumerate() {
            below += time;
            if below as f64 >= share * total as f64 {
                return Self::upper(bin);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_hold_their_lengths(bytes in 0u64..1 << 40) {
            let upper = QueueTimes::upper(QueueTimes::bin(bytes));
            prop_assert!(upper >= bytes);
            prop_assert!(upper <= bytes + bytes / SUB_BINS);
            prop_assert_eq!(QueueTimes::bin(upper), QueueTimes::bin(bytes));
            prop_assert_eq!(QueueTimes::bin(upper + 1), QueueTimes::bin(bytes) + 1);
        }
    }
}
