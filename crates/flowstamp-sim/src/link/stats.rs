//! Statistics of a router link.

use crate::delays::{Delays, bin};
use crate::packet::{DATA, Packet};
use flowstamp_laws::units::Time;

/// Statistics of a router link. Fields that every packet needs come first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct LinkStats {
    /// Packets that reached the link.
    pub arrivals: u64,
    /// Bytes accepted since statistics began. At the end of warm-up the bytes still to be sent are carried over.
    pub accepted_bytes: f64,
    /// Largest queue, bytes.
    pub max_queue: u64,
    /// `queue_times` is complete up to this time.
    accounted: Time,
    /// Time spent at each queue length.
    pub queue_times: QueueTimes,
    /// Queueing delay of each packet before its transmission began.
    pub waits: Delays,
    /// Packets dropped.
    pub drops: u64,
    /// Dropped packets that were acks or answers to control packets.
    pub ack_drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Counts from before the statistics were restarted.
    before: [u64; 4],
}

impl LinkStats {
    /// Records that the queue held `queue_bytes` from the last call until `now`.
    #[inline]
    pub fn account(&mut self, now: Time, queue_bytes: u64) {
        let span = now - self.accounted;
        self.queue_times.add(queue_bytes, span);
        self.accounted = now;
    }

    /// Restarts the statistics at `now`, with `queue_bytes` in the queue.
    pub fn restart(&mut self, now: Time, queue_bytes: u64) {
        *self = Self { accounted: now, max_queue: queue_bytes, before: self.whole_run(), ..Self::default() };
    }

    /// Counts a dropped packet.
    pub fn lose(&mut self, packet: &Packet) {
        self.drops += 1;
        self.ack_drops += u64::from(packet.flags & DATA == 0);
    }

    /// Arrivals, drops, drops of acks and marks since statistics were restarted.
    #[must_use]
    pub fn counts(&self) -> [u64; 4] {
        [self.arrivals, self.drops, self.ack_drops, self.marks]
    }

    /// Arrivals, drops, drops of acks and marks since the beginning of the run.
    #[must_use]
    pub fn whole_run(&self) -> [u64; 4] {
        let [now, before] = [self.counts(), self.before];
        std::array::from_fn(|i| now[i] + before[i])
    }
}

/// Time spent at each queue length, in bins of at most a sixteenth of the length. Each bin keeps the mean of its
/// lengths, so a percentile is a mean of lengths that occurred, not the edge of a bin.
#[derive(Clone, Debug, Default)]
pub struct QueueTimes {
    /// Time with an empty queue, picoseconds. `bins` does not count it.
    empty: u64,
    bins: Vec<TimeAt>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TimeAt {
    /// Picoseconds.
    time: u64,
    /// Sum of queue length times duration, byte-picoseconds.
    integral: u128,
}

impl QueueTimes {
    #[inline]
    fn add(&mut self, bytes: u64, span: Time) {
        if bytes == 0 {
            self.empty += span.as_ps();
            return;
        }
        let number = bin::<16>(bytes);
        if number >= self.bins.len() {
            self.bins.resize(number + 1, TimeAt::default());
        }
        let bin = &mut self.bins[number];
        bin.time += span.as_ps();
        bin.integral += u128::from(bytes) * u128::from(span.as_ps());
    }

    /// Sum over all bins, byte-picoseconds.
    #[must_use]
    pub fn integral(&self) -> u128 {
        self.bins.iter().map(|bin| bin.integral).sum()
    }

    /// The queue length, bytes, that was not exceeded for this share of the time: the mean of its bin, so within a
    /// sixteenth.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let total = self.empty + self.bins.iter().map(|bin| bin.time).sum::<u64>();
        if self.empty as f64 >= share * total as f64 {
            return 0.0;
        }
        let mut below = self.empty;
        let found = self.bins.iter().find(|bin| {
            below += bin.time;
            bin.time > 0 && below as f64 >= share * total as f64
        });
        found.map_or(0.0, |bin| bin.integral as f64 / bin.time as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_length_that_the_queue_had() {
        let mut times = QueueTimes::default();
        assert_eq!(times.quantile(0.95), 0.0);
        times.add(1234, Time::from_millis(90));
        times.add(100_000, Time::from_millis(10));
        assert_eq!([0.5, 0.9, 0.95].map(|share| times.quantile(share)), [1234.0, 1234.0, 100_000.0]);
    }
}
