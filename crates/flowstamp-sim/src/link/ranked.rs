//! A router link that sends acks before data.
//!
//! Who is sent next depends on who has come by then, so that departures of data are not known on arrival; but nobody hears of
//! them before the packet is at the line's end, or somebody looks. So there is no event of its own: [`Ranked::advance`] catches
//! up with the transmissions that have begun since the last look, in their order and at their times. While packets wait one is in
//! transmission, and in the ring, whose head is in the event queue.

use super::laws::{Backlog, Laws, arrival};
use super::plain::Plain;
use super::{Admission, Tap};
use crate::packet::{DATA, Packet};
use crate::prefetch::prefetch_ahead;
use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// A queue for acks and answers, and one for all that goes the way of the data, before a line. Its queue law hears of arrivals alone.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// Laws and statistics.
    pub laws: Laws,
    /// What waits, and since when: acks first.
    queues: [VecDeque<(Time, Packet)>; 2],
}

impl Ranked {
    /// A link on which nothing waits.
    #[must_use]
    pub fn new(laws: Laws) -> Self {
        Self { laws, queues: Default::default() }
    }

    /// How many packets wait.
    #[inline]
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.laws.backlog().packets
    }

    /// The queue that the router law sees: all that waits.
    #[inline]
    #[must_use]
    pub fn seen(&self) -> Backlog {
        self.laws.backlog()
    }

    /// Packets that wait: acks, then data, each in the order of arrival.
    pub fn waiting_packets(&self) -> impl Iterator<Item = &Packet> {
        self.queues.iter().flatten().map(|(_, packet)| packet)
    }

    /// Catches up with the transmissions that have begun by `now`. `tap` sees each such packet.
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
            self.laws.stats.waits.add(begins - *since);
            self.laws.leave(begins, packet.size);
            let (_, entry) = line.transmit(begins, packet);
            queue.pop_front();
            let seen = self.laws.backlog();
            self.laws.stamp(begins, seen, &mut entry.packet);
            if self.laws.captured {
                tap.record(begins, &entry.packet);
            }
        }
    }

    /// A copy of `packet` reaches the link.
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
            tap.record(now, &entry.packet);
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
