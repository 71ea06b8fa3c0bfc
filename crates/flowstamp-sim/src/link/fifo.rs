//! A router link that serves in the order of arrival.
//!
//! Departures are known on arrival. A packet goes straight into the ring with its arrival time at the far end, and no
//! transmit-complete event is needed. Only the head of the ring is in the event queue.
//!
//! ```text
//!   head ............ waiting ............ tail
//!     in flight or      not yet begun to
//!     in transmission   be transmitted
//! ```
//!
//! [`Fifo::advance`] processes the transmissions that have begun since the last call, in order and at their own times.
//! Laws that need the backlog therefore see it as it is.

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

/// Which traffic the router law takes into account.
pub trait Sharing {
    /// Takes note of an arrival. Returns whether the router law hears of it.
    fn arrives(&mut self, own: bool, packet: &Packet, random: &mut Stream) -> bool;
    /// Takes note that the packet was dropped or marked.
    fn loses(&mut self, own: bool);
    /// Takes note that a packet enters the queue.
    fn enters(&mut self, own: bool, size: u16);
    /// Takes note that a packet leaves the queue.
    fn leaves(&mut self, own: bool, size: u16);
    /// The part of the backlog that the router law sees.
    fn seen(&self, all: Backlog) -> Backlog;
}

/// The router law counts all traffic as its own.
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

/// Soft isolation: one queue for all traffic, in which only the router law's traffic is limited to its part.
#[derive(Clone, Debug)]
pub struct Soft {
    /// The law that divides the capacity between the router law's traffic and other traffic.
    pub split: Box<Split>,
    /// The backlog of each class.
    pub queues: [Backlog; 2],
}

impl Soft {
    /// An empty queue.
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

/// A first-in, first-out queue before a line. Fields that packets need come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Fifo<S> {
    /// When the first waiting packet's transmission begins.
    next_start: Time,
    /// Arrival times of the queued packets, which are the last ones of the ring.
    arrived: VecDeque<Time>,
    /// Laws and statistics.
    pub laws: Laws,
    /// Which traffic the router law takes into account.
    pub sharing: S,
    /// Makes a port an odd number of cache lines long.
    _unused: [u64; 8],
}

impl<S: Sharing> Fifo<S> {
    /// An empty queue.
    #[must_use]
    pub fn new(laws: Laws, sharing: S) -> Self {
        Self { next_start: Time::ZERO, arrived: VecDeque::new(), laws, sharing, _unused: [0; 8] }
    }

    /// Number of queued packets.
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

    /// Processes the transmissions that have begun by `now`. `tap` records each such packet.
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
                tap.record(started, started - arrived, &entry.packet);
            }
            let entry = *entry;
            self.next_start = line.finish_of(&entry);
        }
    }

    /// Enqueues a copy of `packet`, or drops it.
    #[inline(always)] // the commonest kind of router link
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
                tap.record(now, Time::ZERO, &entry.packet);
            }
            Admission::sent(first, entry.arrives)
        }
    }

    /// Bytes transmitted by `now`. The link must have been advanced to `now`.
    #[must_use]
    pub fn sent_bytes(&self, line: &Plain, now: Time) -> f64 {
        let under_way = if self.arrived.is_empty() { line.free_at() } else { self.next_start };
        self.laws.sent_bytes(now, under_way, line.in_transmission(now, self.waiting()))
    }

    /// Takes over a change of the line's rate: the packet in transmission ends at `gone`.
    pub(super) fn retime(&mut self, gone: Option<Time>) {
        if let Some(gone) = gone {
            self.next_start = gone;
        }
    }
}
