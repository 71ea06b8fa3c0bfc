//! A router link that serves in the order of arrival.
//!
//! Departures are known on arrival, so a packet goes straight into the ring with the time at which it will reach the far
//! end, and there is no transmit-complete event. Only the head of the ring is in the event queue.
//!
//! ```text
//!   head ............ waiting ............ tail
//!     in flight or      not yet begun to
//!     in transmission   be transmitted
//! ```
//!
//! Where a router law or a queue law wants to know who waits, [`Fifo::advance`] catches up with the transmissions that
//! have begun since the last look, in their order and at their times.

use super::laws::{Backlog, Laws, arrival};
use super::plain::Plain;
use super::{Admission, Tap};
use crate::packet::Packet;
use crate::prefetch::prefetch_ahead;
use crate::random::Stream;
use flowstamp_laws::share::split::Split;
use flowstamp_laws::share::{OTHER, OWN};
use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// Whose traffic the router law takes into account.
pub trait Sharing {
    /// A packet reached the link. Whether the router law hears of it.
    fn arrives(&mut self, own: bool, packet: &Packet, random: &mut Stream) -> bool;
    /// It was dropped or marked.
    fn loses(&mut self, own: bool);
    /// A packet begins to wait.
    fn enters(&mut self, own: bool, size: u16);
    /// It has waited.
    fn leaves(&mut self, own: bool, size: u16);
    /// The queue that the law sees, of all that waits.
    fn seen(&self, all: Backlog) -> Backlog;
}

/// The law takes all traffic for its own.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Sharing for Alone {
    #[inline]
    fn arrives(&mut self, _: bool, _: &Packet, _: &mut Stream) -> bool {
        true
    }
    #[inline]
    fn loses(&mut self, _: bool) {}
    #[inline]
    fn enters(&mut self, _: bool, _: u16) {}
    #[inline]
    fn leaves(&mut self, _: bool, _: u16) {}
    #[inline]
    fn seen(&self, all: Backlog) -> Backlog {
        all
    }
}

/// Soft isolation: one queue for all, in which only the router law keeps to its part.
#[derive(Clone, Debug)]
pub struct Soft {
    /// Who gets how much.
    pub split: Box<Split>,
    /// What waits of each class.
    pub queues: [Backlog; 2],
}

impl Soft {
    /// A link on which nothing waits.
    #[must_use]
    pub fn new(split: Split) -> Self {
        Self { split: Box::new(split), queues: [Backlog::default(); 2] }
    }
}

impl Sharing for Soft {
    fn arrives(&mut self, own: bool, packet: &Packet, random: &mut Stream) -> bool {
        let class = if own { OWN } else { OTHER };
        self.split.on_arrival(class, packet.flow_id(), u32::from(packet.size), || random.uniform());
        own
    }
    fn loses(&mut self, own: bool) {
        self.split.on_loss(if own { OWN } else { OTHER });
    }
    fn enters(&mut self, own: bool, size: u16) {
        self.queues[if own { OWN } else { OTHER }].add(size);
    }
    fn leaves(&mut self, own: bool, size: u16) {
        self.queues[if own { OWN } else { OTHER }].take(size);
    }
    fn seen(&self, _: Backlog) -> Backlog {
        self.queues[OWN]
    }
}

/// A first-in, first-out queue before a line.
#[derive(Clone, Debug)]
pub struct Fifo<S> {
    /// Laws and statistics.
    pub laws: Laws,
    /// Whose traffic the router law takes into account.
    pub sharing: S,
    /// When the first waiting packet's transmission begins.
    next_start: Time,
    /// When the packets that wait arrived: the last ones of the ring.
    arrived: VecDeque<Time>,
}

impl<S: Sharing> Fifo<S> {
    /// A queue in which nothing waits.
    #[must_use]
    pub fn new(laws: Laws, sharing: S) -> Self {
        Self { laws, sharing, next_start: Time::ZERO, arrived: VecDeque::new() }
    }

    /// How many packets wait.
    #[inline]
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.arrived.len() as u32
    }

    /// The queue that the router law sees.
    #[inline]
    #[must_use]
    pub fn seen(&self) -> Backlog {
        self.sharing.seen(self.laws.backlog())
    }

    /// Catches up with the transmissions that have begun by `now`. `tap` sees each such packet.
    #[inline(always)] // often there are none
    pub fn advance(&mut self, line: &mut Plain, now: Time, tap: &mut Tap<'_>) {
        if self.next_start <= now && !self.arrived.is_empty() {
            self.catch_up(line, now, tap);
        }
    }

    fn catch_up(&mut self, line: &mut Plain, now: Time, tap: &mut Tap<'_>) {
        while self.next_start <= now {
            let waiting = self.waiting();
            let Some(arrived) = self.arrived.pop_front() else { break };
            let started = self.next_start;
            let entry = line.last(waiting);
            prefetch_ahead(entry, 2);
            self.laws.stats.waits.add(started - arrived);
            self.laws.leave(started, entry.packet.size);
            self.sharing.leaves(self.laws.is_own(&entry.packet), entry.packet.size);
            self.laws.stamp(started, self.sharing.seen(self.laws.backlog()), &mut entry.packet);
            if self.laws.captured {
                tap.record(started, &entry.packet);
            }
            let entry = *entry;
            self.next_start = line.finish_of(&entry);
        }
    }

    /// A copy of `packet` reaches the link.
    #[inline(always)] // where most packets of most networks go
    pub fn admit(&mut self, line: &mut Plain, now: Time, packet: &Packet, tap: &mut Tap<'_>) -> Admission {
        line.arrivals += 1;
        self.advance(line, now, tap);
        let laws = &mut self.laws;
        laws.stats.arrivals += 1;
        let seen = self.sharing.seen(laws.backlog());
        let own = laws.is_own(packet);
        if !laws.admits(now, packet, own) {
            return Admission::Dropped;
        }
        if self.sharing.arrives(own, packet, &mut laws.random) {
            laws.arrives(now, seen, packet);
        }
        let verdict =
            laws.decide(&arrival(line, now, packet, laws.queue_bytes(), self.arrived.len() as u32), packet);
        if verdict != Some(0) {
            self.sharing.loses(own);
        }
        let Some(mark) = verdict else { return Admission::Dropped };
        let free_at = line.free_at();
        if free_at > now {
            laws.enter(now, packet.size);
            self.sharing.enters(own, packet.size);
            if self.arrived.is_empty() {
                self.next_start = free_at;
            }
            self.arrived.push_back(now);
            let (first, entry) = line.transmit(free_at, packet);
            entry.packet.flags |= mark;
            Admission::sent(first, entry.arrives)
        } else {
            laws.stats.waits.add(Time::ZERO);
            let (first, entry) = line.transmit(now, packet);
            entry.packet.flags |= mark;
            laws.stamp(now, self.sharing.seen(laws.backlog()), &mut entry.packet);
            if laws.captured {
                tap.record(now, &entry.packet);
            }
            Admission::sent(first, entry.arrives)
        }
    }

    /// Bytes that have been transmitted by `now`, to which the link has been advanced.
    #[must_use]
    pub fn sent_bytes(&self, line: &Plain, now: Time) -> f64 {
        let under_way = if self.arrived.is_empty() { line.free_at() } else { self.next_start };
        self.laws.sent_bytes(now, under_way, line.in_transmission(now, self.waiting()))
    }

    /// The line's rate has changed, and with it when the packet in transmission has gone.
    pub(super) fn retime(&mut self, gone: Option<Time>) {
        if let Some(gone) = gone {
            self.next_start = gone;
        }
    }
}
