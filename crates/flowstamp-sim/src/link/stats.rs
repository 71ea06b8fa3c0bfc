//! Statistics of a router link.

use crate::bulk::{Bins, Bulk};
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
    /// Statistics of a link in a large network.
    #[must_use]
    pub fn in_bulk() -> Self {
        let queue_times = QueueTimes { bulk: Bulk::begun(), ..QueueTimes::default() };
        Self { queue_times, waits: Delays::in_bulk(), ..Self::default() }
    }

    /// Records that the queue held `queue_bytes` from the last call until `now`.
    #[inline]
    pub fn account(&mut self, now: Time, queue_bytes: u64) {
        let span = now - self.accounted;
        self.queue_times.add(queue_bytes, span);
        self.accounted = now;
    }

    /// Restarts the statistics at `now`, with `queue_bytes` in the queue.
    pub fn restart(&mut self, now: Time, queue_bytes: u64) {
        *self = Self {
            accounted: now,
            max_queue: queue_bytes,
            before: self.whole_run(),
            queue_times: QueueTimes { bulk: self.queue_times.bulk.restarted(), ..QueueTimes::default() },
            waits: self.waits.restarted(),
            ..Self::default()
        };
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
    bins: LengthBins,
    bulk: Bulk<LengthBins>,
}

/// Time at each queue length but zero.
#[derive(Clone, Debug, Default)]
struct LengthBins(Vec<TimeAt>);

#[derive(Clone, Copy, Debug, Default)]
struct TimeAt {
    /// Picoseconds.
    time: u64,
    /// Sum of queue length times duration, byte-picoseconds.
    integral: u128,
}

impl TimeAt {
    #[inline]
    fn add(&mut self, bytes: u64, span: u64) {
        self.time += span;
        self.integral += u128::from(bytes) * u128::from(span);
    }
}

impl Bins for LengthBins {
    /// Bytes and picoseconds.
    type Value = (u32, u32);

    fn count(&mut self, (bytes, span): (u32, u32)) {
        self.add(bytes.into(), span.into());
    }
}

impl LengthBins {
    fn add(&mut self, bytes: u64, span: u64) {
        let number = bin::<16>(bytes);
        if number >= self.0.len() {
            self.0.resize(number + 1, TimeAt::default());
        }
        self.0[number].add(bytes, span);
    }
}

impl QueueTimes {
    #[inline]
    fn add(&mut self, bytes: u64, span: Time) {
        let span = span.as_ps();
        if bytes == 0 {
            self.empty += span;
            return;
        }
        match self.bins.0.get_mut(bin::<16>(bytes)) {
            Some(bin) => bin.add(bytes, span),
            None => self.add_apart(bytes, span),
        }
    }

    /// Adds a time whose bin does not exist yet. In bulk mode every time takes this path.
    #[inline(never)] // so that networks with few links pay nothing
    fn add_apart(&mut self, bytes: u64, span: u64) {
        // Many packets come at the same instant.
        let value = u32::try_from(bytes).ok().zip(u32::try_from(span).ok());
        if span > 0 && !self.bulk.take(value, |bins| bins.add(bytes, span)) {
            self.bins.add(bytes, span);
        }
    }

    /// Sum over all bins, byte-picoseconds.
    #[must_use]
    pub fn integral(&self) -> u128 {
        self.bulk.all(&self.bins).0.iter().map(|bin| bin.integral).sum()
    }

    /// The queue length, bytes, that was not exceeded for this share of the time: the mean of its bin, so within a
    /// sixteenth.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let bins = &self.bulk.all(&self.bins).0;
        let total = self.empty + bins.iter().map(|bin| bin.time).sum::<u64>();
        if self.empty as f64 >= share * total as f64 {
            return 0.0;
        }
        let mut below = self.empty;
        let found = bins.iter().find(|bin| {
            below += bin.time;
            bin.time > 0 && below as f64 >= share * total as f64
        });
        found.map_or(0.0, |bin| bin.integral as f64 / bin.time as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bulk_changes_no_result(
            times in prop::collection::vec((0u64..200_000, 0u64..1000, 0u32..40), 1..2000),
            restarts in any::<bool>(),
        ) {
            let (mut direct, mut bulk) = (LinkStats::default(), LinkStats::in_bulk());
            let mut now = Time::ZERO;
            for (at, (bytes, span, magnitude)) in times.iter().enumerate() {
                now += Time::from_ps(span << magnitude);
                direct.account(now, *bytes);
                bulk.account(now, *bytes);
                if restarts && at == times.len() / 2 {
                    direct.restart(now, *bytes);
                    bulk.restart(now, *bytes);
                }
            }
            prop_assert!(bulk.queue_times.bins.0.is_empty());
            prop_assert_eq!(direct.queue_times.integral(), bulk.queue_times.integral());
            for share in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(direct.queue_times.quantile(share), bulk.queue_times.quantile(share));
            }
        }
    }

    #[test]
    fn a_percentile_is_a_length_that_the_queue_had() {
        let mut times = QueueTimes::default();
        assert_eq!(times.quantile(0.95), 0.0);
        times.add(1234, Time::from_millis(90));
        times.add(100_000, Time::from_millis(10));
        assert_eq!([0.5, 0.9, 0.95].map(|share| times.quantile(share)), [1234.0, 1234.0, 100_000.0]);
    }
}
