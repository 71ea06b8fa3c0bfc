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

    #[cold]
    fn grow(&mut self) {
        let old = self.slots.len();
        let new = (old * 2).max(2);
        let mut slots = Vec::with_capacity(new);
        slots.extend((0..old as u32).map(|i| *self.at(self.head.wrapping_add(i))));
        slots.resize(new, InFlight { arrives: Time::ZERO, packet: Packet::NONE });
        // Positions keep their distance from the head; the head moves to a multiple of the new size.
        self.head = 0;
        self.tail = old as u32;
        self.slots = slots.into_boxed_slice();
    }
}
