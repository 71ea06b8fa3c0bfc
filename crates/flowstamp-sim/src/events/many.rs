//! Pending events of networks with many links.
//!
//! In such a network, thousands of other events come before a packet's delivery, which is therefore beyond the wheel of
//! [`EventQueue`]. This wheel reaches further: a bucket holds about sixteen events, in no order, and is sorted when it is
//! due. The next events are then known in advance, so the memory that they need can be prefetched.
//!
//! [`EventQueue`]: super::EventQueue

use super::{Heap, Key, NONE, Source, event, first_set, key};
use flowstamp_laws::units::Time;

/// Buckets of the wheel in which a whole network's events are.
pub(super) const BUCKETS: usize = 16_384;
pub(super) const FULL: u32 = 4;
/// Number of events that are sorted in advance, if they are within [`NEAR`] buckets.
const AHEAD: usize = 8;
const NEAR: u64 = 4;
/// Pops between two checks of the bucket width, and before the first.
const POPS_PER_LOOK: u32 = 1 << 16;
const FIRST_POPS: u32 = 1 << 10;
/// Width of a bucket until the gap between events is measured: 2^14 ps.
const FIRST_SHIFT: u32 = 14;
/// Widest bucket: a time within a bucket has 32 bits.
const MOST_SHIFT: u32 = 32;
/// Events in a row.
const ROOM: usize = 7;

/// An event that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    time: u64,
    source: u32,
}

/// A cache line with some events of a bucket, and the index of the bucket's next row. An event is one word: the time since
/// the bucket's beginning, and the source.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Row {
    events: [u64; ROOM],
    len: u32,
    next: u32,
}

/// Pending events, earliest first, in a wheel of `BUCKETS` buckets, a power of two and at least 64.
#[derive(Clone, Debug)]
pub(super) struct Many<const BUCKETS: usize, const FULL: u32> {
    /// The events in buckets up to `current`, in order, from `at` on.
    due: Vec<Due>,
    at: usize,
    /// First row of each of the `BUCKETS` buckets after `current`, at its number modulo `BUCKETS`.
    buckets: Box<[u32; BUCKETS]>,
    /// A bit for each bucket that is not empty.
    occupied: Box<[u64]>,
    rows: Vec<Row>,
    /// First unused row.
    free: u32,
    /// A bucket is 2^`shift` picoseconds wide.
    shift: u32,
    /// Number of the last bucket whose events are in `due`, counted from time zero.
    current: u64,
    /// Number of events in the wheel.
    in_wheel: usize,
    /// Events of the bucket that is being sorted.
    words: Vec<u64>,
    /// Events beyond the wheel.
    far: Heap,
    /// Pops until the next check of the width.
    pops_left: u32,
    pops: u32,
    /// Time of the event that was taken last at the last check, picoseconds.
    last_look: u64,
}

impl<const BUCKETS: usize, const FULL: u32> Many<BUCKETS, FULL> {
    fn new(shift: u32, current: u64, pops: u32) -> Self {
        Self {
            due: Vec::new(),
            at: 0,
            buckets: Box::new([NONE; BUCKETS]),
            occupied: vec![0; BUCKETS / 64].into_boxed_slice(),
            rows: Vec::new(),
            free: NONE,
            shift,
            current,
            in_wheel: 0,
            words: Vec::new(),
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
        } else if bucket - self.current < BUCKETS as u64 {
            self.push_near(bucket, time, source);
        } else {
            self.far.push(key(Time::from_ps(time), Source(source)));
        }
    }

    #[inline]
    fn push_near(&mut self, bucket: u64, time: u64, source: u32) {
        let slot = bucket as usize % BUCKETS;
        let word = (time - (bucket << self.shift)) << 32 | u64::from(source);
        self.in_wheel += 1;
        if let Some(row) = self.rows.get_mut(self.buckets[slot] as usize) {
            if let Some(place) = row.events.get_mut(row.len as usize) {
                *place = word;
                row.len += 1;
                return;
            }
        }
        self.push_row(slot, word);
    }

    /// Puts a new row with one event at the head of a bucket.
    #[inline(never)] // so that most events are added without saving registers
    fn push_row(&mut self, slot: usize, word: u64) {
        let mut row = Row { events: [0; ROOM], len: 1, next: self.buckets[slot] };
        row.events[0] = word;
        let mut at = self.free;
        if let Some(free) = self.rows.get_mut(at as usize) {
            self.free = free.next;
            *free = row;
        } else {
            at = self.rows.len() as u32;
            self.rows.push(row);
        }
        self.buckets[slot] = at;
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Adds an event among those that are due.
    #[inline(never)]
    fn push_due(&mut self, time: u64, source: u32) {
        let new = Due { time, source };
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
            self.gather(end.as_ps() >> self.shift);
        }
        let Due { time, source } = *self.due.get(self.at)?;
        if time > end.as_ps() {
            return None;
        }
        self.at += 1;
        self.pops_left -= 1;
        if self.pops_left == 0 {
            self.look(time);
        }
        Some((Time::from_ps(time), Source(source)))
    }

    /// The earliest event, which stays, if it is not after `end`.
    #[cfg(feature = "parallel")]
    pub(super) fn first_until(&mut self, end: Time) -> Option<(Time, Source)> {
        if self.at >= self.due.len() {
            self.gather(end.as_ps() >> self.shift);
        }
        self.due
            .get(self.at)
            .map(|due| (Time::from_ps(due.time), Source(due.source)))
            .filter(|(time, _)| *time <= end)
    }

    /// The event `count` positions after the one that is taken next, if it is sorted already.
    #[inline]
    pub(super) fn ahead(&self, count: usize) -> Option<Source> {
        self.due.get(self.at + count).map(|due| Source(due.source))
    }

    /// No event is before the returned time: that of the earliest event if it is sorted already, or the beginning of its
    /// bucket. `None` if there is no event.
    #[cfg(feature = "parallel")]
    pub(super) fn earliest(&self) -> Option<Time> {
        let bucket = || Some(self.next_bucket()).filter(|bucket| *bucket < u64::MAX);
        let sorted = self.due.get(self.at).map(|due| due.time);
        sorted.or_else(|| bucket().map(|bucket| bucket << self.shift)).map(Time::from_ps)
    }

    /// Number of the first bucket after the current one with an event, in the wheel or beyond.
    #[inline]
    fn next_bucket(&self) -> u64 {
        let near = if self.in_wheel == 0 {
            u64::MAX
        } else {
            self.current + 1 + first_set(&self.occupied, self.current + 1)
        };
        near.min(self.first_far())
    }

    #[inline]
    fn first_far(&self) -> u64 {
        self.far.first_time().map_or(u64::MAX, |time| time >> self.shift)
    }

    /// Sorts the events of the next buckets, up to number `last`, until enough are due.
    #[inline(never)]
    fn gather(&mut self, last: u64) {
        self.due.drain(..self.at);
        self.at = 0;
        while self.due.len() <= AHEAD {
            let next = self.next_bucket();
            let too_far = !self.due.is_empty() && next.saturating_sub(self.current) > NEAR;
            if next == u64::MAX || next > last || too_far {
                return;
            }
            let far = self.first_far();
            self.current = next;
            let begin = self.due.len();
            self.take_bucket(next);
            if far == next {
                self.take_far(begin);
            }
        }
    }

    /// Moves the events of a bucket to those that are due, in order.
    fn take_bucket(&mut self, bucket: u64) {
        let slot = bucket as usize % BUCKETS;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let mut at = std::mem::replace(&mut self.buckets[slot], NONE);
        self.words.clear();
        while let Some(row) = self.rows.get_mut(at as usize) {
            self.words.extend_from_slice(&row.events[..(row.len as usize).min(ROOM)]);
            let next = std::mem::replace(&mut row.next, self.free);
            self.free = std::mem::replace(&mut at, next);
        }
        self.in_wheel -= self.words.len();
        self.words.sort_unstable();
        let begin = bucket << self.shift;
        self.due
            .extend(self.words.iter().map(|word| Due { time: begin + (word >> 32), source: *word as u32 }));
    }

    /// Moves events from beyond the wheel to those that are due, which begin at `begin`.
    #[cold]
    fn take_far(&mut self, begin: usize) {
        while self.far.first_time().is_some_and(|time| time >> self.shift <= self.current) {
            let far = self.far.pop().map(event);
            self.due.extend(far.map(|(time, source)| Due { time: time.as_ps(), source: source.0 }));
        }
        self.far.shrink();
        self.due[begin..].sort_unstable();
    }

    /// Adapts the bucket width to the mean gap between events.
    #[cold]
    fn look(&mut self, now: u64) {
        let gap = (now.saturating_sub(self.last_look) / u64::from(self.pops)).max(1);
        let shift = (gap.ilog2() + FULL).min(MOST_SHIFT);
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
        (1..BUCKETS as u64).for_each(|ahead| self.take_bucket(self.current + ahead));
        let due = self.due.split_off(self.at).into_iter();
        let mut keys: Vec<Key> = due.map(|due| key(Time::from_ps(due.time), Source(due.source))).collect();
        keys.append(&mut self.far.0);
        keys
    }
}

impl<const BUCKETS: usize, const FULL: u32> Default for Many<BUCKETS, FULL> {
    fn default() -> Self {
        Self::new(FIRST_SHIFT, 0, FIRST_POPS)
    }
}
