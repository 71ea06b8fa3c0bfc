//! The event queue: one total order of `(time, source)`.
//!
//! A source is a class and a number in it ([`Source`]); it rarely has more than one event pending, so two events
//! compare equal only if they mean the same. The order of classes decides between events of one instant: changing it
//! changes results.

use flowstamp_laws::units::Time;

/// What an event is about. The order of variants is the order of events at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Warm-up ends.
    Warmup,
    /// A link's capacity changes, as its router law knows it.
    Capacity,
    /// A router law's timer.
    Router,
    /// The head of a link's flight reaches the link's end.
    Delivery,
    /// A retransmission timer.
    Retransmit,
    /// A delayed ack.
    Ack,
    /// A paced sender may send again.
    Pace,
    /// An application starts, stops or has produced a packet.
    Application,
    /// A web flow arrives.
    Web,
    /// Samples are taken, after all else of this instant.
    Probe,
}

const CLASSES: [Class; 10] = [
    Class::Warmup,
    Class::Capacity,
    Class::Router,
    Class::Delivery,
    Class::Retransmit,
    Class::Ack,
    Class::Pace,
    Class::Application,
    Class::Web,
    Class::Probe,
];

/// A class and a number in it, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source(u32);

const NUMBER_BITS: u32 = 28;

impl Source {
    /// Number `number` (below 2^28) of `class`.
    #[inline]
    #[must_use]
    pub const fn new(class: Class, number: u32) -> Self {
        debug_assert!(number < 1 << NUMBER_BITS, "more sources than an event can name");
        Self(((class as u32) << NUMBER_BITS) | number)
    }
    /// The class.
    #[inline]
    #[must_use]
    pub const fn class(self) -> Class {
        CLASSES[(self.0 >> NUMBER_BITS) as usize]
    }
    /// The number in the class.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }
}

/// Pending events, earliest first: a heap with four children to a node, whose children share a cache line.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    /// `(time << 32) | source`, so that one comparison orders both.
    heap: Vec<u128>,
}

const ARITY: usize = 4;

impl EventQueue {
    /// How many events are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn key(time: Time, source: Source) -> u128 {
        (u128::from(time.as_ps()) << 32) | u128::from(source.0)
    }

    fn event(key: u128) -> (Time, Source) {
        (Time::from_ps((key >> 32) as u64), Source(key as u32))
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, time: Time, source: Source) {
        let key = Self::key(time, source);
        let mut at = self.heap.len();
        self.heap.push(key);
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = key;
    }

    /// The earliest event, left in place.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<(Time, Source)> {
        self.heap.first().map(|k| Self::event(*k))
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Source)> {
        let last = self.heap.pop()?;
        let Some(first) = self.heap.first().copied() else { return Some(Self::event(last)) };
        self.sift_down(last);
        Some(Self::event(first))
    }

    /// Takes the earliest event and adds another in one step: what a link does whose flight goes on.
    #[inline]
    pub fn replace_first(&mut self, time: Time, source: Source) {
        if self.heap.is_empty() {
            self.push(time, source);
        } else {
            self.sift_down(Self::key(time, source));
        }
    }

    /// Puts `key` where the first is and lets it sink.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let heap = &mut self.heap[..];
        let len = heap.len();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            if first >= len {
                break;
            }
            let mut best = first;
            for child in first + 1..(first + ARITY).min(len) {
                if heap[child] < heap[best] {
                    best = child;
                }
            }
            if heap[best] >= key {
                break;
            }
            heap[at] = heap[best];
            at = best;
        }
        heap[at] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn classes_are_in_their_order() {
        for (i, class) in CLASSES.iter().enumerate() {
            assert_eq!(*class as usize, i);
            assert_eq!(Source::new(*class, 77).class(), *class);
            assert_eq!(Source::new(*class, 77).number(), 77);
        }
    }

    proptest! {
        #[test]
        fn order_is_that_of_a_sorted_list(operations in prop::collection::vec((0u64..1000, 0u32..50, 0u8..3), 1..400)) {
            let mut queue = EventQueue::default();
            let mut model = BinaryHeap::new();
            for (gap, number, operation) in operations {
                let now = model.peek().map_or(0, |Reverse((t, _)): &Reverse<(Time, Source)>| t.as_ps());
                let event = (Time::from_ps(now + gap), Source::new(Class::Delivery, number));
                match operation {
                    0 => {
                        prop_assert_eq!(queue.pop(), model.pop().map(|Reverse(e)| e));
                    }
                    1 => {
                        queue.push(event.0, event.1);
                        model.push(Reverse(event));
                    }
                    _ => {
                        queue.replace_first(event.0, event.1);
                        model.pop();
                        model.push(Reverse(event));
                    }
                }
                prop_assert_eq!(queue.peek(), model.peek().map(|Reverse(e)| *e));
                prop_assert_eq!(queue.len(), model.len());
            }
            while let Some(event) = queue.pop() {
                prop_assert_eq!(Some(event), model.pop().map(|Reverse(e)| e));
            }
            prop_assert!(model.is_empty());
        }
    }
}
