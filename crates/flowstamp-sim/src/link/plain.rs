//! The part that all links have: a transmitter, a propagation delay, and the packets in flight.
//!
//! Alone it is an access link: first in, first out, unlimited, lossless. A router link has a [`super::Port`] before it.

use super::Admission;
use super::ring::{InFlight, Ring};
use crate::medium::{Capacity, Service};
use crate::packet::Packet;
use flowstamp_laws::units::{Rate, Time};

/// A link without laws, in one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Plain {
    ring: Ring,
    service: Service,
    delay: Time,
    /// When the last packet's transmission ends.
    free_at: Time,
    /// Packets that reached the link.
    pub arrivals: u64,
}

const _: () = assert!(size_of::<Plain>() == 64);

impl Plain {
    /// An idle link.
    #[must_use]
    pub fn new(service: Service, delay: Time) -> Self {
        Self { ring: Ring::default(), service, delay, free_at: Time::ZERO, arrivals: 0 }
    }

    /// Number of packets in the link: queued, in transmission and in flight.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.ring.len()
    }

    /// When the transmission of the last accepted packet ends.
    #[inline]
    #[must_use]
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Propagation delay.
    #[inline]
    #[must_use]
    pub fn delay(&self) -> Time {
        self.delay
    }

    /// The transmission time of a packet of `size` bytes; `None` if the rate varies.
    #[must_use]
    pub fn sending_time(&self, size: u16) -> Option<Time> {
        match &self.service {
            Service::Constant(wire) => Some(wire.finish(Time::ZERO, u32::from(size))),
            _ => None,
        }
    }

    /// When the transmission of this packet ends.
    #[inline]
    pub(super) fn finish_of(&self, entry: &InFlight) -> Time {
        // A packet that was in flight when the delay grew arrives sooner than the new delay after its transmission.
        entry.arrives.saturating_sub(self.delay)
    }

    /// The `back`-th packet from the end; 1 is the last.
    #[inline]
    pub(super) fn last(&mut self, back: u32) -> &mut InFlight {
        let position = self.ring.tail().wrapping_sub(back);
        self.ring.at_mut(position)
    }

    /// Bytes of the packet in transmission, with `waiting` packets queued behind it in the ring. Zero if nothing is in
    /// transmission.
    pub(super) fn in_transmission(&self, now: Time, waiting: u32) -> f64 {
        if self.ring.len() <= waiting {
            return 0.0;
        }
        let entry = self.ring.at(self.ring.tail().wrapping_sub(waiting + 1));
        if self.finish_of(entry) > now { f64::from(entry.packet.size) } else { 0.0 }
    }

    /// Accepts a copy of `packet`.
    #[inline(always)]
    pub fn admit(&mut self, now: Time, packet: &Packet) -> Admission {
        self.arrivals += 1;
        let (first, entry) = self.transmit(now.max(self.free_at), packet);
        Admission::sent(first, entry.arrives)
    }

    /// Accepts a packet of `size` bytes. The caller writes it into the returned slot as it will be after this link.
    #[inline(always)]
    pub fn admit_place(&mut self, now: Time, size: u16) -> (Admission, &mut Packet) {
        self.arrivals += 1;
        self.free_at = self.service.finish(now.max(self.free_at), u32::from(size));
        let first = self.ring.is_empty();
        let entry = self.ring.place(self.free_at + self.delay);
        (Admission::sent(first, entry.arrives), &mut entry.packet)
    }

    /// Passes a packet over an empty access link. Returns its arrival time at the far end. If the caller does not
    /// handle the arrival at once, it must [append] the packet.
    ///
    /// [append]: Self::append
    #[inline]
    pub fn pass(&mut self, now: Time, packet: &Packet) -> Time {
        debug_assert!(self.ring.is_empty(), "a packet passes others");
        self.arrivals += 1;
        self.free_at = self.service.finish(now.max(self.free_at), u32::from(packet.size));
        self.free_at + self.delay
    }

    /// Puts a packet that [`pass`](Self::pass) has taken into the ring.
    #[inline]
    pub fn append(&mut self, arrives: Time, packet: &Packet) {
        self.ring.push(arrives, packet).packet.next += 1;
    }

    /// Puts a packet that was transmitted elsewhere into the ring.
    pub fn come_over(&mut self, arrives: Time, packet: &Packet) {
        self.ring.push(arrives, packet);
    }

    /// Appends a copy of `packet` to the ring and advances its route by one link. Transmission can begin at `start`.
    /// Returns whether it is the only packet in the ring.
    #[inline(always)]
    pub(super) fn transmit(&mut self, start: Time, packet: &Packet) -> (bool, &mut InFlight) {
        self.free_at = self.service.finish(start, u32::from(packet.size));
        let first = self.ring.is_empty();
        let entry = self.ring.push(self.free_at + self.delay, packet);
        entry.packet.next += 1;
        (first, entry)
    }

    /// The packet that arrives at the far end next. The link must not be empty.
    #[inline]
    #[must_use]
    pub fn head(&self) -> &Packet {
        &self.ring.head().packet
    }

    /// The packet that arrives at the far end next, if there is one.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<&InFlight> {
        (!self.ring.is_empty()).then(|| self.ring.head())
    }

    /// The packet that was transmitted last, which must not have arrived yet.
    #[must_use]
    pub fn newest(&self) -> &Packet {
        &self.ring.at(self.ring.tail().wrapping_sub(1)).packet
    }

    /// Prefetches the place of the next packet that comes.
    #[inline]
    pub fn expect(&self) {
        self.ring.expect();
    }

    /// Frees memory that a former peak took.
    pub fn shrink(&mut self) {
        self.ring.shrink();
    }

    /// The packet `behind` positions after the head, if there is one.
    #[inline]
    #[must_use]
    pub fn behind_head(&self, behind: u32) -> Option<&Packet> {
        self.ring.behind_head(behind).map(|entry| &entry.packet)
    }

    /// Removes and returns the packet that arrives at the far end now.
    #[inline]
    pub fn deliver(&mut self) -> &Packet {
        &self.ring.pop().packet
    }

    /// When the next packet arrives at the far end, if there is one.
    #[inline]
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.ring.first_arrival()
    }

    /// Calls `with` with each arrival at the far end by `until`, in order.
    #[cfg(feature = "parallel")]
    #[inline]
    pub fn arrivals(&self, until: Time, with: impl FnMut(Time)) {
        self.ring.arrivals(until, with);
    }

    /// Lets the head arrive at `now`, on a wireless link whose medium decides when.
    pub fn land(&mut self, now: Time) -> &mut Packet {
        let entry = self.ring.head_mut();
        entry.arrives = now;
        &mut entry.packet
    }

    /// Takes the packet that was transmitted last out of the ring, on a wireless link whose MAC holds its packets until
    /// they arrive.
    pub fn take_back(&mut self) -> Packet {
        self.ring.take_back().packet
    }

    /// Frees the transmitter of a wireless link: the next transmission may begin at `now`.
    pub fn release(&mut self, now: Time) {
        self.free_at = now;
    }

    /// Changes the propagation delay at `now`. A packet in flight has the same fraction of the way left as before, so
    /// nothing overtakes. A packet that is not yet transmitted takes the new delay.
    pub fn set_delay(&mut self, now: Time, delay: Time) {
        let before = std::mem::replace(&mut self.delay, delay);
        for back in 1..=self.ring.len() {
            let entry = self.last(back);
            let finish = entry.arrives.saturating_sub(before);
            entry.arrives = if finish > now {
                finish + delay
            } else {
                let rest = u128::from(entry.arrives.saturating_sub(now).as_ps()) * u128::from(delay.as_ps());
                now + Time::from_ps((rest / u128::from(before.as_ps().max(1))) as u64)
            };
        }
    }

    /// Packets in the ring in the order of arrival, each with the end of its transmission.
    pub fn under_way(&self) -> impl Iterator<Item = (Time, &Packet)> {
        let first = self.ring.tail().wrapping_sub(self.ring.len());
        (0..self.ring.len()).map(move |at| {
            let entry = self.ring.at(first.wrapping_add(at));
            (self.finish_of(entry), &entry.packet)
        })
    }

    /// Changes the transmitter's rate at `now`; `before` is the capacity until then. Queued packets and the one in
    /// transmission get new departure times. Returns when the packet in transmission has left, if there is one.
    pub(super) fn set_rate(&mut self, now: Time, before: &Capacity, rate: Rate) -> Option<Time> {
        self.service = Service::constant(rate);
        let mut unfinished = 0;
        while unfinished < self.ring.len() {
            let entry = *self.last(unfinished + 1);
            if self.finish_of(&entry) <= now {
                break;
            }
            unfinished += 1;
        }
        let mut first = None;
        let mut free_at = now;
        for at in (1..=unfinished).rev() {
            let delay = self.delay;
            let entry = *self.last(at);
            free_at = if first.is_none() {
                let rest = before.bytes_between(now, self.finish_of(&entry));
                now + Time::from_secs_f64(rest / rate.bytes_per_sec())
            } else {
                self.service.finish(free_at, u32::from(entry.packet.size))
            };
            first.get_or_insert(free_at);
            self.last(at).arrives = free_at + delay;
        }
        if unfinished > 0 {
            self.free_at = free_at;
        }
        first
    }
}
