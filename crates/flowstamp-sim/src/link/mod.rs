//! A link: a FIFO queue, a transmitter and a flight of packets, all in one ring.
//!
//! A FIFO queue's departures are known on arrival, so a packet goes straight into the ring with the time at which it
//! will reach the far end, and there is no transmit-complete event. Only the head of the ring is in the event queue.
//!
//! ```text
//!   head ............ waiting ............ tail
//!     in flight or      not yet begun to
//!     in transmission   be transmitted
//! ```
//!
//! Where a router law or a queue law wants to know who waits, [`Link::advance`] catches up with the transmissions
//! that have begun since the last look, in their order and at their times.

mod shared;

pub use shared::Share;

use crate::packet::{DATA, Packet};
use crate::medium::{Capacity, Service};
use flowstamp_laws::queue::{Arrival, Limit, Verdict};
use flowstamp_laws::registry::{AnyQueue, AnyRouter};
use flowstamp_laws::router::LinkView;
use flowstamp_laws::units::Time;

/// A packet and the time at which it reaches the end of the link.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Arrival at the far end.
    pub arrives: Time,
    /// The packet.
    pub packet: Packet,
}

/// A queue in an array whose size is a power of two; positions count up for ever.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    slots: Vec<InFlight>,
    head: u32,
    tail: u32,
}

impl Ring {
    /// How many packets it holds.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Whether it holds none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline]
    fn at(&self, position: u32) -> &InFlight {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    #[inline]
    fn at_mut(&mut self, position: u32) -> &mut InFlight {
        let mask = self.slots.len() - 1;
        &mut self.slots[position as usize & mask]
    }

    /// Arrival of the head, if there is one.
    #[inline]
    #[must_use]
    pub fn first_arrival(&self) -> Option<Time> {
        if self.is_empty() { None } else { Some(self.at(self.head).arrives) }
    }

    /// Appends a copy of `packet` and gives its place.
    #[inline]
    fn push(&mut self, arrives: Time, packet: &Packet) -> &mut InFlight {
        if self.len() as usize == self.slots.len() {
            self.grow(packet);
        }
        let tail = self.tail;
        self.tail = tail.wrapping_add(1);
        let slot = self.at_mut(tail);
        slot.arrives = arrives;
        slot.packet = *packet;
        slot
    }

    /// Removes the head, which stays readable until the next push.
    #[inline]
    fn pop(&mut self) -> &InFlight {
        debug_assert!(!self.is_empty(), "a delivery without a packet");
        let head = self.head;
        self.head = head.wrapping_add(1);
        if self.is_empty() {
            // Begin again at the start, whose memory is in the cache, instead of going through all of the ring.
            self.tail = 0;
            self.head = 0;
        }
        self.at(head)
    }

    #[cold]
    fn grow(&mut self, filler: &Packet) {
        let old = self.slots.len();
        let new = (old * 2).max(4);
        let mut slots = Vec::with_capacity(new);
        slots.extend((0..old as u32).map(|i| *self.at(self.head.wrapping_add(i))));
        slots.resize(new, InFlight { arrives: Time::ZERO, packet: *filler });
        // Positions keep their distance from the head; the head moves to a multiple of the new size.
        self.head = 0;
        self.tail = old as u32;
        self.slots = slots;
    }
}

/// What all links have.
#[derive(Clone, Debug)]
pub struct Link {
    ring: Ring,
    service: Service,
    delay: Time,
    /// When the last packet's transmission ends.
    last_finish: Time,
    /// When the first waiting packet's transmission begins.
    next_start: Time,
    /// How many packets wait: the last ones of the ring.
    waiting: u32,
    /// Index of the router link's laws and statistics, or [`PLAIN`].
    pub policy: u32,
    /// Packets that reached the link.
    pub arrivals: u64,
}

/// A link without laws: unlimited, first in, first out.
pub const PLAIN: u32 = u32::MAX;

/// Laws and statistics of a router link.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What the link can carry.
    pub capacity: Capacity,
    /// Buffer.
    pub limit: Limit,
    /// Queue law.
    pub queue: AnyQueue,
    /// Router law.
    pub router: Option<AnyRouter>,
    /// Randomness of the queue law.
    pub random: crate::random::Stream,
    /// What happened.
    pub stats: LinkStats,
    /// Packets whose transmission begins are recorded.
    pub captured: bool,
    /// How the router law shares the link with other traffic, where it does.
    pub share: Option<Box<Share>>,
    queue_bytes: u64,
}

impl Policy {
    /// Laws of a link, nothing having happened.
    #[must_use]
    pub fn new(
        capacity: Capacity,
        limit: Limit,
        queue: AnyQueue,
        router: Option<AnyRouter>,
        random: crate::random::Stream,
    ) -> Self {
        Self {
            capacity,
            limit,
            queue,
            router,
            random,
            stats: LinkStats::default(),
            captured: false,
            share: None,
            queue_bytes: 0,
        }
    }

    /// Bytes that wait.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        self.queue_bytes
    }

    /// What the router law sees: on a shared link its own class.
    #[inline]
    #[must_use]
    pub fn view(&self, now: Time) -> LinkView {
        let queue_bytes = self.share.as_ref().map_or(self.queue_bytes, |s| s.own_queue_bytes());
        LinkView { now, queue_bytes }
    }

    /// What follows from a queue law's verdict: the mark that the packet gets, or `None` if it is lost.
    #[inline]
    fn settle_verdict(&mut self, verdict: Verdict, size: u16) -> Option<u8> {
        let mut mark = 0;
        match verdict {
            Verdict::Drop => {
                self.stats.drops += 1;
                return None;
            }
            Verdict::Mark => {
                self.stats.marks += 1;
                mark = crate::packet::CONGESTED;
            }
            Verdict::Enqueue => {}
        }
        self.stats.accepted_bytes += f64::from(size);
        Some(mark)
    }

    #[inline]
    fn enter(&mut self, packet: &Packet) {
        self.queue_bytes += u64::from(packet.size);
        self.stats.max_queue = self.stats.max_queue.max(self.queue_bytes);
        if self.share.is_some() {
            self.count_class(packet, true);
        }
    }

    #[inline]
    fn leave(&mut self, packet: &Packet) {
        self.queue_bytes -= u64::from(packet.size);
        if self.share.is_some() {
            self.count_class(packet, false);
        }
    }
}

/// Statistics of a router link.
#[derive(Clone, Debug, Default)]
pub struct LinkStats {
    /// Packets that reached the link.
    pub arrivals: u64,
    /// Bytes that were let in; at the end of warm-up, the part of them that was still to be sent.
    pub accepted_bytes: f64,
    /// Packets lost.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Largest queue, bytes.
    pub max_queue: u64,
    /// Byte-picoseconds.
    pub queue_integral: f64,
    /// Time spent at each queue length.
    pub queue_times: QueueTimes,
    /// Up to when the last two are known.
    accounted: Time,
}

impl LinkStats {
    /// The queue has been `queue_bytes` since the last call, until `now`.
    #[inline]
    fn account(&mut self, now: Time, queue_bytes: u64) {
        let span = now - self.accounted;
        self.queue_integral += queue_bytes as f64 * span.as_ps() as f64;
        self.queue_times.add(queue_bytes, span);
        self.accounted = now;
    }

    /// Forgets all that was, as of `now`, with `queue_bytes` waiting.
    pub fn restart(&mut self, now: Time, queue_bytes: u64) {
        *self = Self { accounted: now, max_queue: queue_bytes, ..Self::default() };
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

/// What became of a packet that reached a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The link was idle: this delivery must enter the event queue.
    First(Time),
    /// It follows others.
    Behind,
    /// It waits in its class's queue; the link's next choice must enter the event queue at this time, if there is one.
    Waits(Option<Time>),
    /// It was lost.
    Dropped,
}

impl Link {
    /// An idle link.
    #[must_use]
    pub fn new(service: Service, delay: Time, policy: u32) -> Self {
        Self {
            ring: Ring::default(),
            service,
            delay,
            last_finish: Time::ZERO,
            next_start: Time::ZERO,
            waiting: 0,
            policy,
            arrivals: 0,
        }
    }

    /// How many packets wait.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Packets in the link: waiting, in transmission and in flight, without those in the queues of classes.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.ring.len()
    }

    /// Catches up with the transmissions that have begun by `now`. `record` sees each such packet.
    pub fn advance(&mut self, now: Time, policy: &mut Policy, mut record: impl FnMut(Time, &Packet)) {
        while self.waiting > 0 && self.next_start <= now {
            let position = self.ring.tail.wrapping_sub(self.waiting);
            let started = self.next_start;
            let entry = self.ring.at_mut(position);
            policy.stats.account(started, policy.queue_bytes);
            policy.leave(&entry.packet);
            stamp(policy, started, &mut entry.packet);
            if policy.captured {
                record(started, &entry.packet);
            }
            self.next_start = entry.arrives - self.delay;
            self.waiting -= 1;
        }
    }

    /// A copy of `packet` reaches a link without laws.
    #[inline]
    pub fn admit_plain(&mut self, now: Time, packet: &Packet) -> Admission {
        self.arrivals += 1;
        let start = now.max(self.last_finish);
        self.transmit(start, packet).0
    }

    /// A copy of `packet` reaches a router link.
    #[inline]
    pub fn admit(
        &mut self,
        now: Time,
        packet: &Packet,
        policy: &mut Policy,
        mut record: impl FnMut(Time, &Packet),
    ) -> Admission {
        self.arrivals += 1;
        if self.waiting > 0 {
            self.advance(now, policy, &mut record);
        }
        policy.stats.arrivals += 1;
        if policy.share.is_some() {
            return self.admit_shared(now, packet, policy, record);
        }
        if let Some(router) = &mut policy.router {
            let own = packet.flags & DATA != 0 && packet.protocol == router.protocol();
            let view = LinkView { now, queue_bytes: policy.queue_bytes };
            router.on_arrival(view, u32::from(packet.size), own.then_some(&packet.stamp));
        }
        let arrival = self.arrival(now, packet, policy.queue_bytes, self.waiting);
        let random = &mut policy.random;
        let verdict = policy.queue.on_arrival(&arrival, || random.uniform());
        match policy.settle_verdict(verdict, packet.size) {
            Some(mark) => self.join(now, packet, mark, policy, record),
            None => Admission::Dropped,
        }
    }

    /// A packet as a queue law sees it.
    #[inline]
    fn arrival(&self, now: Time, packet: &Packet, queue_bytes: u64, queue_packets: u32) -> Arrival {
        Arrival {
            now,
            size: u32::from(packet.size),
            queue_bytes,
            queue_packets,
            ecn_capable: packet.flags & crate::packet::ECN_CAPABLE != 0,
            idle_since: (self.last_finish <= now).then_some(self.last_finish),
        }
    }

    /// A packet that was let in takes its place in the ring.
    #[inline]
    fn join(
        &mut self,
        now: Time,
        packet: &Packet,
        mark: u8,
        policy: &mut Policy,
        mut record: impl FnMut(Time, &Packet),
    ) -> Admission {
        if self.last_finish > now {
            policy.stats.account(now, policy.queue_bytes);
            policy.enter(packet);
            if self.waiting == 0 {
                self.next_start = self.last_finish;
            }
            self.waiting += 1;
            let (admission, packet) = self.transmit(self.last_finish, packet);
            packet.flags |= mark;
            admission
        } else {
            self.begin(now, packet, mark, policy, &mut record)
        }
    }

    /// The transmission of a packet begins at once.
    #[inline]
    fn begin(
        &mut self,
        now: Time,
        packet: &Packet,
        mark: u8,
        policy: &mut Policy,
        record: &mut impl FnMut(Time, &Packet),
    ) -> Admission {
        let (admission, packet) = self.transmit(now, packet);
        packet.flags |= mark;
        stamp(policy, now, packet);
        if policy.captured {
            record(now, packet);
        }
        admission
    }

    /// Puts a copy of `packet`, whose next link is then the one after this, into the ring.
    #[inline]
    fn transmit(&mut self, start: Time, packet: &Packet) -> (Admission, &mut Packet) {
        self.last_finish = self.service.finish(start, u32::from(packet.size));
        let arrives = self.last_finish + self.delay;
        let admission = if self.ring.is_empty() { Admission::First(arrives) } else { Admission::Behind };
        let packet = &mut self.ring.push(arrives, packet).packet;
        packet.next += 1;
        (admission, packet)
    }

    /// The packet that arrives at the far end next; there is one.
    #[inline]
    #[must_use]
    pub fn head(&self) -> &Packet {
        &self.ring.at(self.ring.head).packet
    }

    /// Takes the packet that arrives at the far end now.
    #[inline]
    pub fn deliver(&mut self) -> &Packet {
        &self.ring.pop().packet
    }

    /// When the next packet arrives at the far end, if one is on its way.
    #[inline]
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.ring.first_arrival()
    }

    /// Bytes that have been transmitted of those accepted, at `now`, to an opportunity's part on a trace. The link
    /// must have been advanced to `now`.
    #[must_use]
    pub fn sent_bytes(&self, now: Time, policy: &Policy) -> f64 {
        let under_way = if self.waiting > 0 { self.next_start } else { self.last_finish };
        let rest = if under_way > now { policy.capacity.bytes_between(now, under_way) } else { 0.0 };
        policy.stats.accepted_bytes - policy.queue_bytes as f64 - rest
    }

    /// Brings statistics up to `now`.
    pub fn settle(&mut self, now: Time, policy: &mut Policy, record: impl FnMut(Time, &Packet)) {
        self.advance(now, policy, record);
        policy.stats.account(now, policy.queue_bytes);
    }
}

/// The transmission of `packet` begins: the router law stamps it if it is one of its own.
#[inline]
fn stamp(policy: &mut Policy, now: Time, packet: &mut Packet) {
    if let Some(router) = &mut policy.router {
        if packet.flags & DATA != 0 && packet.protocol == router.protocol() {
            let queue_bytes = policy.share.as_ref().map_or(policy.queue_bytes, |s| s.own_queue_bytes());
            let view = LinkView { now, queue_bytes };
            router.on_departure(view, u32::from(packet.size), &mut packet.stamp);
        }
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
