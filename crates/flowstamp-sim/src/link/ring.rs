//! Packets in flight, in the order of their arrival at the far end.

use crate::packet::Packet;
use crate::prefetch::{prefetch_ahead, prefetch_part};
use flowstamp_laws::units::Time;

/// A packet and the time at which it reaches the end of the link.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Arrival at the far end.
    pub arrives: Time,
    /// The packet.
    pub packet: Packet,
}

/// Fewest slots to which a ring shrinks.
const MIN_SLOTS: usize = 8;

/// A queue in an array whose size is a power of two. Positions count up and wrap at 2^32.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    slots: Box<[InFlight]>,
    head: u32,
    tail: u32,
}

impl Ring {
    /// Number of packets.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Whether there are no packets.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// The packet at a position.
    #[inline]
    #[must_use]
    pub fn at(&self, position: u32) -> &InFlight {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// The packet at a position, mutable.
    #[inline]
    pub fn at_mut(&mut self, position: u32) -> &mut InFlight {
        let mask = self.slots.len() - 1;
        &mut self.slots[position as usize & mask]
    }

    /// The head. The ring must not be empty.
    #[inline]
    #[must_use]
    pub fn head(&self) -> &InFlight {
        self.at(self.head)
    }

    /// The packet `behind` positions after the head, if there is one. The packet two positions further is prefetched.
    #[inline]
    #[must_use]
    pub fn behind_head(&self, behind: u32) -> Option<&InFlight> {
        if self.len() <= behind {
            return None;
        }
        let slot = self.at(self.head.wrapping_add(behind));
        prefetch_ahead(slot, 2);
        Some(slot)
    }

    /// Prefetches the slot of the next packet that comes.
    #[inline]
    pub fn expect(&self) {
        if let Some(slot) = self.slots.get(self.tail as usize & self.slots.len().wrapping_sub(1)) {
            prefetch_part(slot, 0..2 * size_of::<InFlight>());
        }
    }

    /// The head, mutable. The ring must not be empty.
    #[inline]
    pub fn head_mut(&mut self) -> &mut InFlight {
        self.at_mut(self.head)
    }

    /// One above the position of the last packet.
    #[inline]
    #[must_use]
    pub fn tail(&self) -> u32 {
        self.tail
    }

    /// Arrival of the head, if there is one.
    #[inline]
    #[must_use]
    pub fn first_arrival(&self) -> Option<Time> {
        if self.is_empty() { None } else { Some(self.head().arrives) }
    }

    /// Calls `with` with the arrival of each packet that comes by `until`, in order.
    #[cfg(feature = "parallel")]
    #[inline]
    pub fn arrivals(&self, until: Time, mut with: impl FnMut(Time)) {
        let first = self.head as usize & self.slots.len().wrapping_sub(1);
        let last = first + self.len() as usize;
        let (begun, rest) = (last.min(self.slots.len()), last.saturating_sub(self.slots.len()));
        for slot in self.slots[first.min(begun)..begun].iter().chain(&self.slots[..rest]) {
            if slot.arrives > until {
                return;
            }
            with(slot.arrives);
        }
    }

    /// Appends a copy of `packet` and returns its slot.
    #[inline(always)]
    pub fn push(&mut self, arrives: Time, packet: &Packet) -> &mut InFlight {
        let slot = self.place(arrives);
        slot.packet = *packet;
        slot
    }

    /// Appends a slot, whose packet the caller must write.
    #[inline(always)]
    pub fn place(&mut self, arrives: Time) -> &mut InFlight {
        if self.len() as usize == self.slots.len() {
            self.grow();
        }
        let tail = self.tail;
        self.tail = tail.wrapping_add(1);
        let slot = self.at_mut(tail);
        prefetch_ahead(slot, 1);
        slot.arrives = arrives;
        slot
    }

    /// Removes the head, which stays readable until the next push.
    #[inline]
    pub fn pop(&mut self) -> &InFlight {
        debug_assert!(!self.is_empty(), "a delivery without a packet");
        let head = self.head;
        self.head = head.wrapping_add(1);
        let slot = &self.slots[head as usize & (self.slots.len() - 1)];
        if self.head == self.tail {
            // Restart at the first slot, whose memory is in the cache, instead of touching the whole ring.
            self.tail = 0;
            self.head = 0;
        } else {
            prefetch_ahead(slot, 2);
        }
        slot
    }

    /// Removes the last packet. The ring must not be empty.
    pub fn take_back(&mut self) -> InFlight {
        debug_assert!(!self.is_empty(), "a packet that is not there");
        self.tail = self.tail.wrapping_sub(1);
        *self.at(self.tail)
    }

    #[cold]
    fn grow(&mut self) {
        self.resize((self.slots.len() * 2).max(2));
    }

    /// Frees most of the slots if few packets are left of many. The ring goes through all its slots in turn, so a large
    /// one would be outside the cache.
    pub fn shrink(&mut self) {
        let wanted = (2 * self.len() as usize).next_power_of_two().max(MIN_SLOTS);
        if 4 * wanted <= self.slots.len() {
            self.resize(wanted);
        }
    }

    /// Moves the packets to an array of `new` slots, a power of two. Positions keep their distance from the head, which
    /// moves to the first slot.
    fn resize(&mut self, new: usize) {
        let len = self.len();
        let mut slots = Vec::with_capacity(new);
        slots.extend((0..len).map(|i| *self.at(self.head.wrapping_add(i))));
        slots.resize(new, InFlight { arrives: Time::ZERO, packet: Packet::NONE });
        self.head = 0;
        self.tail = len;
        self.slots = slots.into_boxed_slice();
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use crate::packet::Packet;
    use flowstamp_laws::units::Time;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// A third of the steps adds a packet, a third takes one, and the others shrink the ring or add many packets.
        #[test]
        fn a_ring_keeps_its_packets_in_order_whenever_it_shrinks(steps in prop::collection::vec(0u32..12, 1..400)) {
            let (mut ring, mut model, mut count) = (Ring::default(), VecDeque::new(), 0);
            for step in steps {
                let more = match step { 0..4 => 1, 11 => 70, _ => 0 };
                for _ in 0..more {
                    ring.push(Time::from_ps(count), &Packet { seq: count as u32, ..Packet::NONE });
                    model.push_back(count as u32);
                    count += 1;
                }
                match step {
                    4..8 if !model.is_empty() => prop_assert_eq!(Some(ring.pop().packet.seq), model.pop_front()),
                    8 => ring.shrink(),
                    9 => (0..model.len() / 2).for_each(|_| { ring.pop(); model.pop_front(); }),
                    _ => {}
                }
                prop_assert_eq!(ring.len() as usize, model.len());
                let first = ring.tail().wrapping_sub(ring.len());
                let held: Vec<u32> = (0..ring.len()).map(|at| ring.at(first.wrapping_add(at)).packet.seq).collect();
                prop_assert!(held.iter().eq(&model), "{held:?} {model:?}");
            }
        }
    }
}
