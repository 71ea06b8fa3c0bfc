//! The event queue: one total order of `(time, source)`.
//!
//! A source is a class and a number within it ([`Source`]). It rarely has more than one event pending, so two events
//! compare equal only if they mean the same. The order of classes decides between events of the same instant. Changing
//! it changes results.

#[cfg(feature = "parallel")]
mod apart;
mod heap;
mod many;
mod rows;

#[cfg(feature = "parallel")]
pub use apart::{MOST_PARTS, Owners};
use flowstamp_laws::units::Time;
use heap::Heap;
use many::Many;
use rows::{Rows, Waiting};

/// The kind of an event. The order of variants is the order of events at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Number 0: warm-up ends. Other numbers: flows take other routes.
    Warmup,
    /// A link's capacity changes, as its router law knows it.
    Capacity,
    /// A link that serves its queues by events chooses the next packet.
    Transmit,
    /// A frame in a cell has arrived, or a station has finished its frame.
    Air,
    /// A link is divided anew among its classes.
    Share,
    /// A router law's timer.
    Router,
    /// A queue law's timer.
    Queue,
    /// The head of a link reaches the link's end.
    Delivery,
    /// A packet that was put aside at the end of an impaired link goes on, or a pause of flow control arrives.
    Rejoin,
    /// A retransmission timer.
    Retransmit,
    /// A delayed ack.
    Ack,
    /// A handshake packet is repeated, or a paced sender sends a probe.
    Control,
    /// A paced sender may send again.
    Pace,
    /// An application starts, stops or has produced a packet.
    Application,
    /// A flow arrives during the run, or leaves its slot ([`LEAVES`]).
    FlowArrival,
    /// Samples are taken, after all other events of this instant.
    Probe,
}

const CLASSES: [Class; 16] = [
    Class::Warmup,
    Class::Capacity,
    Class::Transmit,
    Class::Air,
    Class::Share,
    Class::Router,
    Class::Queue,
    Class::Delivery,
    Class::Rejoin,
    Class::Retransmit,
    Class::Ack,
    Class::Control,
    Class::Pace,
    Class::Application,
    Class::FlowArrival,
    Class::Probe,
];

/// A class and a number within it, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source(u32);

/// Bits of a number within a class.
pub const NUMBER_BITS: u32 = 28;
/// The bit that marks a [`Class::FlowArrival`] event as a departure. The rest of its number is the slot that the flow leaves.
pub const LEAVES: u32 = 1 << (NUMBER_BITS - 1);

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
    /// The number within the class.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }
}

/// A far event as one number: `(time << 32) | source`.
type Key = u128;

fn key(time: Time, source: Source) -> Key {
    (u128::from(time.as_ps()) << 32) | u128::from(source.0)
}

fn event(key: Key) -> (Time, Source) {
    (Time::from_ps((key >> 32) as u64), Source(key as u32))
}

/// Buckets of the wheel.
const BUCKETS: u64 = 1024;
/// Words of a bitmap with a bit for each bucket.
const WORDS: usize = (BUCKETS / 64) as usize;
/// Networks with this many router links or more are large.
pub const MANY_LINKS: usize = 256;
/// In the browser lab's build, large networks take more time, and the compiler leaves out [`Many`].
const LARGE: bool = cfg!(any(feature = "full", feature = "parallel"));
/// Pops between two checks of the bucket width.
const POPS_PER_LOOK: u32 = 1 << 14;
/// No node.
const NONE: u32 = u32::MAX;

/// A pending event in its bucket's list: 16 bytes, four to a cache line.
#[derive(Clone, Copy, Debug)]
struct Node {
    time: u64,
    source: u32,
    next: u32,
}

impl Node {
    #[inline]
    fn precedes(&self, other: &Self) -> bool {
        (self.time, self.source) < (other.time, other.source)
    }
}

/// First and last node of a bucket. The last is valid only if there is a first.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    first: u32,
    last: u32,
}

const EMPTY: Bucket = Bucket { first: NONE, last: NONE };

/// Pending events, earliest first: a calendar queue (Brown 1988). Time is cut into buckets of about the mean gap
/// between events. The next 1024 buckets are a wheel of sorted lists. A turn of the wheel is 1024 buckets that begin at
/// a multiple of 1024. Events beyond the wheel wait in the rows of their turn, in no order, and events beyond 1024
/// turns are in a heap. The cost of adding and taking an event does not depend on the number pending.
#[derive(Clone, Debug)]
pub struct EventQueue {
    buckets: Box<[Bucket; BUCKETS as usize]>,
    /// A bit for each bucket that is not empty.
    occupied: [u64; WORDS],
    nodes: Vec<Node>,
    /// Head of the list of unused nodes.
    free: u32,
    /// A bucket is 2^`shift` picoseconds wide.
    shift: u32,
    /// Number of the current bucket, counted from time zero. No event is in an earlier one.
    current: u64,
    /// Number of events in the wheel.
    in_wheel: usize,
    /// First row of each coming turn, at its number modulo 1024. `current` is in none of them.
    turns: Box<[u32; BUCKETS as usize]>,
    rows: Rows,
    /// A bit for each turn with an event.
    awaited: [u64; WORDS],
    /// Number of events that wait for their turn.
    in_turns: usize,
    far: Heap,
    /// No event outside the wheel is in an earlier bucket than this. It is the first bucket of the next turn with
    /// events, or that of the first event in the heap, or the largest number if there is neither. It is always after
    /// `current`.
    far_bucket: u64,
    pops: u32,
    /// Time of the first event at the last check of the width, picoseconds.
    last_look: u64,
    /// All events of a network with many links. `current` is then so far from all events that none goes into the wheel. In
    /// this way, networks with few links pay nothing.
    many: Option<Box<Many<{ many::BUCKETS }, { many::FULL }>>>,
    /// All events of a network in parts. As for `many`, none goes into the wheel.
    #[cfg(feature = "parallel")]
    apart: Option<Box<apart::Apart>>,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            buckets: Box::new([EMPTY; BUCKETS as usize]),
            occupied: [0; WORDS],
            nodes: Vec::new(),
            free: NONE,
            shift: 20, // a microsecond, until measured
            current: 0,
            in_wheel: 0,
            turns: Box::new([NONE; BUCKETS as usize]),
            rows: Rows::default(),
            awaited: [0; WORDS],
            in_turns: 0,
            far: Heap::default(),
            far_bucket: u64::MAX,
            pops: 0,
            last_look: 0,
            many: None,
            #[cfg(feature = "parallel")]
            apart: None,
        }
    }
}

impl EventQueue {
    /// A `current` so far from all events that none goes into the wheel.
    const NOWHERE: u64 = 0u64.wrapping_sub(BUCKETS);

    /// Memory of a pending event, bytes.
    pub const EVENT_BYTES: usize = size_of::<Node>();

    /// Creates an empty queue for a network with this number of router links.
    #[must_use]
    pub fn for_links(router_links: usize) -> Self {
        if router_links < MANY_LINKS || !LARGE { Self::default() } else { Self::of_many() }
    }

    /// The queue of a network with many links.
    fn of_many() -> Self {
        Self { current: Self::NOWHERE, many: Some(Box::default()), ..Self::default() }
    }

    /// Whether this is the queue of a network with many links.
    #[must_use]
    pub fn is_many(&self) -> bool {
        self.current == Self::NOWHERE
    }

    /// Moves the events into the queue of networks with many links.
    #[cfg(test)]
    pub fn into_many(mut self) -> Self {
        let mut many = Self::for_links(MANY_LINKS);
        many.put_all(self.take_all());
        many
    }

    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        #[cfg(feature = "parallel")]
        if let Some(apart) = &self.apart {
            return apart.len();
        }
        self.many.as_ref().filter(|_| LARGE).map_or(0, |many| many.len())
            + self.in_wheel
            + self.in_turns
            + self.far.0.len()
    }

    /// Whether no event is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event. Its time must not be before that of the event taken last.
    #[inline]
    pub fn push(&mut self, time: Time, source: Source) {
        let bucket = time.as_ps() >> self.shift;
        if bucket < self.current.wrapping_add(BUCKETS) {
            // The bucket may already have been passed while looking for the next event; then the event goes into the
            // current bucket.
            self.insert(bucket.max(self.current), time.as_ps(), source.0);
        } else {
            self.push_far(bucket, time, source);
        }
    }

    /// Adds an event beyond the wheel.
    fn push_far(&mut self, bucket: u64, time: Time, source: Source) {
        #[cfg(feature = "parallel")]
        if let Some(apart) = &mut self.apart {
            return apart.push(time.as_ps(), source);
        }
        match self.many.as_mut().filter(|_| LARGE) {
            Some(many) => many.push(time.as_ps(), source.0),
            None => self.push_beyond(bucket, time, source),
        }
    }

    #[inline(never)]
    fn push_beyond(&mut self, bucket: u64, time: Time, source: Source) {
        let turn = bucket / BUCKETS;
        if turn - self.current / BUCKETS >= BUCKETS {
            self.far_bucket = self.far_bucket.min(bucket);
            self.far.push(key(time, source));
            return;
        }
        let slot = (turn % BUCKETS) as usize;
        let event = Waiting { time: time.as_ps(), source: source.0 };
        self.turns[slot] = self.rows.push(self.turns[slot], event);
        self.awaited[slot / 64] |= 1 << (slot % 64);
        self.in_turns += 1;
        self.far_bucket = self.far_bucket.min(turn * BUCKETS);
    }

    /// Stores a node and returns its index.
    #[inline]
    fn node(&mut self, new: Node) -> u32 {
        let at = self.free;
        if at == NONE {
            self.nodes.push(new);
            (self.nodes.len() - 1) as u32
        } else {
            let node = &mut self.nodes[at as usize];
            self.free = node.next;
            *node = new;
            at
        }
    }

    #[inline]
    fn insert(&mut self, bucket: u64, time: u64, source: u32) {
        let new = Node { time, source, next: NONE };
        let at = self.node(new);
        self.in_wheel += 1;
        let slot = (bucket % BUCKETS) as usize;
        let Bucket { first, last } = self.buckets[slot];
        if first == NONE {
            self.buckets[slot] = Bucket { first: at, last: at };
            self.occupied[slot / 64] |= 1 << (slot % 64);
        } else if !new.precedes(&self.nodes[last as usize]) {
            self.nodes[last as usize].next = at;
            self.buckets[slot].last = at;
        } else if new.precedes(&self.nodes[first as usize]) {
            self.nodes[at as usize].next = first;
            self.buckets[slot].first = at;
        } else {
            self.insert_within(first, at, new);
        }
    }

    /// Inserts a node after the first and before the last.
    fn insert_within(&mut self, first: u32, at: u32, new: Node) {
        let mut before = first;
        loop {
            let next = self.nodes[before as usize].next;
            if new.precedes(&self.nodes[next as usize]) {
                self.nodes[at as usize].next = next;
                self.nodes[before as usize].next = at;
                return;
            }
            before = next;
        }
    }

    /// Takes the earliest event if it is not after `end`.
    #[inline(always)] // Once per event. The compiler would not inline a public function of this length.
    pub fn pop_until(&mut self, end: Time) -> Option<(Time, Source)> {
        if self.in_wheel == 0 {
            #[cfg(feature = "parallel")]
            if let Some(apart) = &mut self.apart {
                return apart.pop_until(end);
            }
            if let Some(many) = self.many.as_mut().filter(|_| LARGE) {
                return many.pop_until(end);
            }
            if !self.refill() {
                return None;
            }
        }
        let slot = self.first_slot();
        let first = self.buckets[slot].first;
        let node = &mut self.nodes[first as usize];
        let Node { time, source, next } = *node;
        if time > end.as_ps() {
            return None;
        }
        node.next = self.free;
        self.free = first;
        self.in_wheel -= 1;
        self.buckets[slot].first = next;
        if next == NONE {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
        self.pops += 1;
        if self.pops == POPS_PER_LOOK {
            self.look(time);
        }
        Some((Time::from_ps(time), Source(source)))
    }

    /// The bucket of the earliest event. The wheel must not be empty.
    #[inline(always)] // once per event
    fn first_slot(&mut self) -> usize {
        let slot = self.next_slot();
        if self.far_bucket <= self.current {
            self.fetch();
            return (self.current % BUCKETS) as usize;
        }
        slot
    }

    /// The event `count` positions after the one that is taken next, if it is known already.
    #[inline]
    #[must_use]
    pub fn ahead(&self, count: usize) -> Option<Source> {
        #[cfg(feature = "parallel")]
        if let Some(apart) = &self.apart {
            return apart.ahead(count);
        }
        self.many.as_ref().filter(|_| LARGE)?.ahead(count)
    }

    /// Takes the earliest event.
    pub fn pop(&mut self) -> Option<(Time, Source)> {
        self.pop_until(Time::MAX)
    }

    /// Moves `current` to the first bucket with an event. The wheel must not be empty.
    #[inline]
    fn next_slot(&mut self) -> usize {
        self.current += first_set(&self.occupied, self.current);
        (self.current % BUCKETS) as usize
    }

    /// Turns the empty wheel to the bucket where the next event may be. False if there is none.
    #[cold]
    fn refill(&mut self) -> bool {
        if self.is_empty() {
            return false;
        }
        self.current = self.current.max(self.far_bucket);
        self.fetch();
        true
    }

    /// Moves events that may be due by the current bucket into the wheel.
    #[cold]
    fn fetch(&mut self) {
        while self.far_bucket <= self.current {
            let turn = self.far_bucket / BUCKETS;
            let slot = (turn % BUCKETS) as usize;
            if self.turns[slot] == NONE {
                self.fetch_from_heap();
            } else {
                self.take_turn(slot);
            }
            self.far_bucket = self.far.first_time().map_or(u64::MAX, |t| t >> self.shift);
            if self.in_turns > 0 {
                let next = turn + first_set(&self.awaited, turn);
                self.far_bucket = self.far_bucket.min(next * BUCKETS);
            }
        }
    }

    /// Moves the events of one turn into the wheel. Events in the wheel are in the same 1024 buckets, because it was
    /// filled before `current` came here.
    fn take_turn(&mut self, slot: usize) {
        let mut first = std::mem::replace(&mut self.turns[slot], NONE);
        self.awaited[slot / 64] &= !(1 << (slot % 64));
        while let Some(row) = self.rows.take(&mut first) {
            self.in_turns -= row.len as usize;
            for Waiting { time, source } in &row.events[..row.len as usize] {
                let bucket = time >> self.shift;
                self.current = self.current.min(bucket);
                self.insert(bucket, *time, *source);
            }
        }
    }

    /// Moves the heap's first events into the wheel, as far as the wheel reaches.
    fn fetch_from_heap(&mut self) {
        while let Some(bucket) = self.far.first_time().map(|t| t >> self.shift) {
            self.current = self.current.min(bucket);
            if bucket >= self.current + BUCKETS {
                break;
            }
            if let Some(key) = self.far.pop() {
                let (time, source) = event(key);
                self.insert(bucket, time.as_ps(), source.0);
            }
        }
        self.far.shrink();
    }

    /// Adapts the bucket width to the mean gap between events.
    #[cold]
    fn look(&mut self, now: u64) {
        let gap = (now.saturating_sub(self.last_look) / u64::from(self.pops)).max(1);
        self.last_look = now;
        self.pops = 0;
        let shift = gap.ilog2();
        // A width wrong by a factor of two costs little; moving all events costs more.
        if shift.abs_diff(self.shift) > 1 {
            let keys = self.take_all();
            *self = Self { shift, current: now >> shift, last_look: now, ..Self::default() };
            self.put_all(keys);
        }
    }

    /// Moves a pending event to another time. The cost grows with the number of pending events, so this is for rare
    /// cases.
    #[cold]
    pub fn reschedule(&mut self, from: Time, to: Time, source: Source) {
        let mut keys = self.take_all();
        if let Some(at) = keys.iter().position(|k| *k == key(from, source)) {
            keys[at] = key(to, source);
        }
        if self.many.is_none() {
            let Self { shift, current, pops, last_look, .. } = *self;
            *self = Self { shift, current, pops, last_look, ..Self::default() };
        }
        self.put_all(keys);
    }

    fn take_all(&mut self) -> Vec<Key> {
        if let Some(many) = self.many.as_mut().filter(|_| LARGE) {
            return many.take_all();
        }
        let mut keys: Vec<Key> = std::mem::take(&mut self.far.0);
        let waiting = self.turns.iter().flat_map(|first| self.rows.list(*first));
        keys.extend(waiting.map(|event| key(Time::from_ps(event.time), Source(event.source))));
        for bucket in self.buckets.iter() {
            let mut at = bucket.first;
            while at != NONE {
                let node = self.nodes[at as usize];
                keys.push(key(Time::from_ps(node.time), Source(node.source)));
                at = node.next;
            }
        }
        keys
    }

    fn put_all(&mut self, mut keys: Vec<Key>) {
        keys.sort_unstable();
        for key in keys {
            let (time, source) = event(key);
            self.push(time, source);
        }
    }
}

/// Distance from bit `from` to the first set bit, wrapping around. There must be one.
#[inline]
fn first_set(bits: &[u64], from: u64) -> u64 {
    let words = bits.len();
    let at = (from % (64 * words as u64)) as usize;
    let (word, bit) = (at / 64, at % 64);
    let here = bits[word] >> bit;
    if here != 0 {
        return u64::from(here.trailing_zeros());
    }
    let mut ahead = (64 - bit) as u64;
    for i in 1..=words {
        let there = bits[(word + i) % words];
        if there != 0 {
            ahead += u64::from(there.trailing_zeros());
            break;
        }
        ahead += 64;
    }
    ahead
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
        /// Compares with a sorted list, with gaps from zero to far beyond the wheel, and enough events to change its
        /// width.
        #[test]
        fn order_is_that_of_a_sorted_list(
            operations in prop::collection::vec((0u64..1000, 0u32..45, 0u32..50, any::<bool>()), 1..400),
            rounds in prop::sample::select(vec![1usize, 1, 1, 200]),
            many in any::<bool>(),
        ) {
            let mut queue = EventQueue::for_links(if many { MANY_LINKS } else { 0 });
            let mut model = BinaryHeap::new();
            let mut now = 0;
            for _ in 0..rounds {
                for (gap, magnitude, number, pop) in &operations {
                    if *pop {
                        let popped = queue.pop();
                        prop_assert_eq!(popped, model.pop().map(|Reverse(e)| e));
                        now = popped.map_or(now, |(t, _): (Time, Source)| t.as_ps());
                    }
                    let event = (Time::from_ps(now + (gap << magnitude)), Source::new(Class::Delivery, *number));
                    queue.push(event.0, event.1);
                    model.push(Reverse(event));
                    prop_assert_eq!(queue.len(), model.len());
                }
                // No event after `end` is taken, and no event is lost by asking.
                if let Some(Reverse((first, _))) = model.peek() {
                    if first.as_ps() > 0 {
                        prop_assert_eq!(queue.pop_until(Time::from_ps(first.as_ps() - 1)), None);
                    }
                    let soon = (*first, Source::new(Class::Warmup, 0));
                    queue.push(soon.0, soon.1);
                    model.push(Reverse(soon));
                }
                while model.len() > 300 {
                    let popped = queue.pop();
                    prop_assert_eq!(popped, model.pop().map(|Reverse(e)| e));
                    now = popped.map_or(now, |(t, _)| t.as_ps());
                }
            }
            while let Some(event) = queue.pop() {
                prop_assert_eq!(Some(event), model.pop().map(|Reverse(e)| e));
            }
            prop_assert!(model.is_empty());
        }
    }
}
