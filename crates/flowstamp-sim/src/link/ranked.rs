//! A router link that sends acks before data.
//!
//! The next packet depends on the arrivals until then, so departures of data are not known on arrival. Nobody observes
//! a departure before the packet reaches the far end, or before a law or a probe looks. Therefore the link needs no event of
//! its own: [`Ranked::advance`] processes the transmissions that have begun since the last call, in order and at their
//! own times. While packets are queued, one is in transmission. It is in the ring, whose head is in the event queue.

use super::laws::{Backlog, Laws, arrival};
use super::plain::Plain;
use super::{Admission, Tap};
use crate::packet::{DATA, Packet};
use crate::prefetch::prefetch_ahead;
use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// A queue for acks and answers, and one for packets in the direction of data, before a line. The queue law hears only
/// of arrivals.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// Laws and statistics.
    pub laws: Laws,
    /// Queued packets with their arrival times: acks, then data.
    queues: [VecDeque<(Time, Packet)>; 2],
}

impl Ranked {
    /// An empty queue.
    #[must_use]
    pub fn new(laws: Laws) -> Self {
        Self { laws, queues: Default::default() }
    }

    /// Number of queued packets.
    #[inline]
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.laws.backlog().packets
    }

    /// The queue that the router law sees: the whole backlog.
    #[inline]
    #[must_use]
    pub fn seen(&self) -> Backlog {
        self.laws.backlog()
    }

    /// Queued packets: acks, then data, each in the order of arrival.
    pub fn waiting_packets(&self) -> impl Iterator<Item = &Packet> {
        self.queues.iter().flatten().map(|(_, packet)| packet)
    }

    /// Processes the transmissions that have begun by `now`. `tap` records each such packet.
    #[inline(always)] // mostly there are none
    pub fn advance(&mut self, line: &mut Plain, now: Time, tap: &mut Tap<'_>) {
        if line.free_at() <= now && self.waiting() > 0 {
            self.catch_up(line, now, tap);
        }
    }

    fn catch_up(&mut self, line: &mut Plain, now: Time, tap: &mut Tap<'_>) {
        while line.free_at() <= now {
            let begins = line.free_at();
            let Some(queue) = self.queues.iter_mut().find(|queue| !queue.is_empty()) else { return };
            let Some(next) = queue.front() else { return };
            prefetch_ahead(next, 2);
            let (since, packet) = next;
            let waited = begins - *since;
            self.laws.stats.waits.add(waited);
            self.laws.leave(begins, packet.size);
            let (_, entry) = line.transmit(begins, packet);
            queue.pop_front();
            let seen = self.laws.backlog();
            self.laws.stamp(begins, seen, &mut entry.packet);
            if self.laws.captured {
                tap.record(begins, waited, &entry.packet);
            }
        }
    }

    /// Enqueues a copy of `packet`, begins its transmission, or drops it.
    pub fn admit(&mut self, line: &mut Plain, now: Time, packet: &Packet, tap: &mut Tap<'_>) -> Admission {
        line.arrivals += 1;
        self.advance(line, now, tap);
        let laws = &mut self.laws;
        laws.stats.arrivals += 1;
        let own = laws.is_own(packet);
        if !laws.admits(now, packet, own) {
            return Admission::Dropped;
        }
        let seen = laws.backlog();
        laws.arrives(now, seen, packet);
        let Some(mark) = laws.decide(&arrival(line, now, packet, seen.bytes, seen.packets), packet) else {
            return Admission::Dropped;
        };
        if line.free_at() > now {
            laws.enter(now, packet.size);
            let queue = &mut self.queues[usize::from(packet.flags & DATA != 0)];
            queue.push_back((now, Packet { flags: packet.flags | mark, ..*packet }));
            return Admission::Behind;
        }
        laws.stats.waits.add(Time::ZERO);
        let (first, entry) = line.transmit(now, packet);
        entry.packet.flags |= mark;
        laws.stamp(now, seen, &mut entry.packet);
        if laws.captured {
            tap.record(now, Time::ZERO, &entry.packet);
        }
        Admission::sent(first, entry.arrives)
    }

    /// Calls `report` with each variable's name and value, for probes.
    pub(super) fn variables(&self, report: &mut dyn FnMut(&str, f64)) {
        for (name, queue) in ["ack_queue_bytes", "data_queue_bytes"].into_iter().zip(&self.queues) {
            report(name, queue.iter().map(|(_, packet)| u64::from(packet.size)).sum::<u64>() as f64);
        }
    }
}
