//! Pending events of networks with many links.
//!
//! In such a network, thousands of other events come before a packet's delivery, which is therefore beyond the wheel of
//! [`EventQueue`]. This wheel reaches further: a bucket holds about sixteen events, in no order, and is sorted when it is
//! due. The next events are then known in advance, so the memory that they need can be prefetched.
//!
//! [`EventQueue`]: super::EventQueue

use super::{Heap, Key, NONE, Node, Source, event, first_set, key};
use flowstamp_laws::units::Time;

/// Buckets of the wheel.
const BUCKETS: u64 = 16_384;
/// Words of a bitmap with a bit for each bucket.
const WORDS: usize = (BUCKETS / 64) as usize;
/// A bucket is 2^`FULL` mean gaps wide, rounded down to a power of two.
const FULL: u32 = 4;
/// Number of events that are sorted in advance, if they are within [`NEAR`] buckets.
const AHEAD: usize = 8;
const NEAR: u64 = 4;
/// Pops between two checks of the bucket width, and before the first.
const POPS_PER_LOOK: u32 = 1 << 16;
const FIRST_POPS: u32 = 1 << 10;
/// Width of a bucket until the gap between events is measured: 2^14 ps.
const FIRST_SHIFT: u32 = 14;

/// Pending events, earliest first.
#[derive(Clone, Debug)]
pub(super) struct Many {
    /// The events in buckets up to `current`, in order, from `at` on.
    due: Vec<Key>,
    at: usize,
    /// First node of each of the `BUCKETS` buckets after `current`, at its number modulo `BUCKETS`.
    buckets: Box<[u32; BUCKETS as usize]>,
    /// A bit for each bucket that is not empty.
    occupied: Box<[u64; WORDS]>,
    nodes: Vec<Node>,
    /// First unused node.
    free: u32,
    /// A bucket is 2^`shift` picoseconds wide.
    shift: u32,
    /// Number of the last bucket whose events are in `due`, counted from time zero.
    current: u64,
    /// Number of events in the wheel.
    in_wheel: usize,
    /// Events beyond the wheel.
    far: Heap,
    /// Pops until the next check of the width.
    pops_left: u32,
    pops: u32,
    /// Time of the event that was taken last at the last check, picoseconds.
    last_look: u64,
}

impl Many {
    fn new(shift: u32, current: u64, pops: u32) -> Self {
        Self {
            due: Vec::new(),
            at: 0,
            buckets: Box::new([NONE; BUCKETS as usize]),
            occupied: Box::new([0; WORDS]),
            nodes: Vec::new(),
            free: NONE,
            shift,
            current,
            in_wheel: 0,
            far: Heap::default(),
            pops_left: pops,
            pops,
            last_look: 0,
        }
    }

    /// Number of pending events.
    pub(super) fn len(&self) -> usize {
        self.due.len() - self.at + self.in_wheel + self.far.0.len()
    }

    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, time: u64, source: u32) {
        let bucket = time >> self.shift;
        if bucket <= self.current {
            self.push_due(time, source);
        } else if bucket - self.current < BUCKETS {
            self.push_near(bucket, time, source);
        } else {
            self.far.push(key(Time::from_ps(time), Source(source)));
        }
    }

    #[inline]
    fn push_near(&mut self, bucket: u64, time: u64, source: u32) {
        let slot = (bucket % BUCKETS) as usize;
        let new = Node { time, source, next: self.buckets[slot] };
        let mut at = self.free;
        if let Some(node) = self.nodes.get_mut(at as usize) {
            self.free = node.next;
            *node = new;
        } else {
            at = self.nodes.len() as u32;
            self.nodes.push(new);
        }
        self.buckets[slot] = at;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.in_wheel += 1;
    }

    /// Adds an event among those that are due.
    fn push_due(&mut self, time: u64, source: u32) {
        let new = key(Time::from_ps(time), Source(source));
        let mut at = self.due.len();
        while at > self.at && self.due[at - 1] > new {
            at -= 1;
        }
        self.due.insert(at, new);
    }

    /// Takes the earliest event if it is not after `end`.
    #[inline]
    pub(super) fn pop_until(&mut self, end: Time) -> Option<(Time, Source)> {
        if self.at + AHEAD >= self.due.len() {
            self.gather();
        }
        let (time, source) = event(*self.due.get(self.at)?);
        if time > end {
            return None;
        }
        self.at += 1;
        self.pops_left -= 1;
        if self.pops_left == 0 {
            self.look(time.as_ps());
        }
        Some((time, source))
    }

    /// The event `count` positions after the one that is taken next, if it is sorted already.
    #[inline]
    pub(super) fn ahead(&self, count: usize) -> Option<Source> {
        self.due.get(self.at + count).map(|key| Source(*key as u32))
    }

    /// Sorts the events of the next buckets, until enough are due.
    #[inline(never)]
    fn gather(&mut self) {
        self.due.drain(..self.at);
        self.at = 0;
        while self.due.len() <= AHEAD {
            let near = if self.in_wheel == 0 {
                u64::MAX
            } else {
                self.current + 1 + first_set(&self.occupied[..], self.current + 1)
            };
            let far = self.far.first_time().map_or(u64::MAX, |time| time >> self.shift);
            let next = near.min(far);
            let too_far = !self.due.is_empty() && next.saturating_sub(self.current) > NEAR;
            if next == u64::MAX || too_far {
                return;
            }
            self.current = next;
            let begin = self.due.len();
            while self.far.first_time().is_some_and(|time| time >> self.shift <= next) {
                self.due.extend(self.far.pop());
            }
            self.far.shrink();
            self.take_bucket((next % BUCKETS) as usize);
            self.due[begin..].sort_unstable();
        }
    }

    /// Moves the events of a bucket to those that are due.
    #[inline]
    fn take_bucket(&mut self, slot: usize) {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let mut at = std::mem::replace(&mut self.buckets[slot], NONE);
        while let Some(node) = self.nodes.get_mut(at as usize) {
            self.due.push(key(Time::from_ps(node.time), Source(node.source)));
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = std::mem::replace(&mut at, next);
            self.in_wheel -= 1;
        }
    }

    /// Adapts the bucket width to the mean gap between events.
    #[cold]
    fn look(&mut self, now: u64) {
        let gap = (now.saturating_sub(self.last_look) / u64::from(self.pops)).max(1);
        let shift = gap.ilog2() + FULL;
        // A width wrong by a factor of two costs little; moving all events costs more.
        if shift.abs_diff(self.shift) > 1 {
            let keys = self.take_all();
            *self = Self::new(shift, now >> shift, POPS_PER_LOOK);
            keys.into_iter().map(event).for_each(|(time, source)| self.push(time.as_ps(), source.0));
        }
        (self.pops, self.pops_left, self.last_look) = (POPS_PER_LOOK, POPS_PER_LOOK, now);
    }

    /// Removes and returns all events, in no order.
    pub(super) fn take_all(&mut self) -> Vec<Key> {
        let mut keys = self.due.split_off(self.at);
        (0..BUCKETS as usize).for_each(|slot| self.take_bucket(slot));
        keys.append(&mut self.due.split_off(self.at));
        keys.append(&mut self.far.0);
        keys
    }
}

impl Default for Many {
    fn default() -> Self {
        Self::new(FIRST_SHIFT, 0, FIRST_POPS)
    }
}
