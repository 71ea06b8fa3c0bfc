//! Pending events of a network in parts, each with a queue of its own.
//!
//! One thread handles the events of one part for a while, then those of the next ([`crate::run`]). While it does, the
//! part's links, flows and events are in the processor's cache.

use super::many::Many;
use super::{Class, EventQueue, LEAVES, Source, event};
use crate::link::MAX_QUEUES;
use flowstamp_laws::router::MAX_TIMERS;
use flowstamp_laws::units::Time;
use std::ops::Range;

/// Buckets of each part's wheel.
const BUCKETS: usize = 2048;
const FULL: u32 = 2;

/// The part that handles the events of each link and flow.
#[derive(Clone, Debug)]
pub struct Owners {
    /// The part of each link's entry, where its queue is.
    pub begin: Vec<u8>,
    /// The part of each link's end.
    pub end: Vec<u8>,
    /// The part of each flow's sender, by slot.
    pub sender: Vec<u8>,
    /// The part of each flow's receiver, by slot.
    pub receiver: Vec<u8>,
}

impl Owners {
    /// Returns the part that handles an event, or `None` if all do. Arrivals of flows get their part in
    /// [`EventQueue::push_arrival`].
    #[inline]
    pub fn of(&self, source: Source) -> Option<u8> {
        let number = source.number() as usize;
        Some(match source.class() {
            Class::Delivery => self.end[number],
            Class::Router => self.begin[number / MAX_TIMERS],
            Class::Queue => self.begin[number / MAX_QUEUES],
            Class::Capacity | Class::Transmit | Class::Share | Class::Rejoin => self.begin[number],
            Class::Retransmit | Class::Control | Class::Pace | Class::Application => self.sender[number],
            Class::Ack => self.receiver[number],
            Class::FlowArrival if source.number() & LEAVES != 0 => {
                self.receiver[(source.number() & !LEAVES) as usize]
            }
            Class::Warmup | Class::Air | Class::FlowArrival | Class::Probe => return None,
        })
    }
}

/// A queue for each part, and a last one for the events that concern all of them.
#[derive(Clone, Debug)]
pub(super) struct Apart {
    queues: Vec<Many<BUCKETS, FULL>>,
    /// The part whose turn it is.
    current: usize,
    /// No event of the current part is before this time, picoseconds.
    soonest: u64,
    owners: Owners,
    /// Whether a slot may have had a flow of another part before.
    reused: bool,
    /// Number of events that were dropped ([`EventQueue::stale`]).
    stale: u64,
    /// The parts that this thread has.
    mine: Range<usize>,
}

/// Marks a link that needs no events for its arrivals, because rounds find them without.
const NOBODY: u8 = u8::MAX;
/// Maximum number of parts.
pub const MOST_PARTS: usize = NOBODY as usize;

impl Apart {
    fn new(parts: usize, mine: Range<usize>, owners: Owners) -> Self {
        Self {
            queues: vec![Many::default(); parts + 1],
            current: 0,
            soonest: 0,
            owners,
            reused: false,
            stale: 0,
            mine,
        }
    }

    /// Number of pending events.
    pub(super) fn len(&self) -> usize {
        self.queues.iter().map(Many::len).sum()
    }

    /// Adds an event to the queue of its part.
    #[inline]
    pub(super) fn push(&mut self, time: u64, source: Source) {
        let part = if source.class() == Class::Delivery {
            let part = self.owners.end[source.number() as usize];
            if part == NOBODY {
                return;
            }
            usize::from(part)
        } else {
            self.owners.of(source).map_or(self.queues.len() - 1, usize::from)
        };
        if part == self.current {
            self.soonest = self.soonest.min(time);
        }
        self.queues[part].push(time, source.0);
    }

    #[inline(never)] // mostly the bound suffices
    fn has_before(&mut self, time: Time, source: Source) -> bool {
        let first = self.first_until(time);
        // Without an event up to now, the next one is later.
        self.soonest = first.map_or(time.as_ps() + 1, |(first, _)| first.as_ps());
        first.is_some_and(|first| first < (time, source))
    }

    /// The earliest event of the current part if it is not after `end`.
    fn first_until(&mut self, end: Time) -> Option<(Time, Source)> {
        loop {
            let first = self.queues[self.current].first_until(end)?;
            if !self.is_stale(first.1) {
                return Some(first);
            }
            self.queues[self.current].pop_until(end);
            self.stale += 1;
        }
    }

    /// Takes the earliest event of the current part if it is not after `end`.
    #[inline]
    pub(super) fn pop_until(&mut self, end: Time) -> Option<(Time, Source)> {
        loop {
            let first = self.queues[self.current].pop_until(end)?;
            if !self.is_stale(first.1) {
                return Some(first);
            }
            self.stale += 1;
        }
    }

    /// Returns whether the event is a timer whose slot now has a flow of another part.
    #[inline]
    fn is_stale(&self, source: Source) -> bool {
        self.reused && self.is_of_another_part(source)
    }

    fn is_of_another_part(&self, source: Source) -> bool {
        (Class::Retransmit..=Class::Application).contains(&source.class())
            && self.owners.of(source).is_some_and(|part| usize::from(part) != self.current)
    }

    /// The event of the current part `count` positions after the one that is taken next, if it is sorted already.
    #[inline]
    pub(super) fn ahead(&self, count: usize) -> Option<Source> {
        self.queues[self.current].ahead(count)
    }
}

impl EventQueue {
    /// Gives each of `parts` parts a queue of its own. [`Self::turn_to`] chooses the one from which events are taken, one of
    /// the parts `mine`. Deliveries over the links `known` get no events from now on.
    pub fn divide<'a>(
        &mut self,
        parts: usize,
        mine: Range<usize>,
        mut owners: Owners,
        known: impl Iterator<Item = &'a u32>,
    ) {
        let mut keys = self.take_all();
        // Arrivals come with [`Self::push_arrival`].
        keys.retain(|key| event(*key).1.class() != Class::FlowArrival);
        known.for_each(|link| owners.end[*link as usize] = NOBODY);
        *self = Self {
            current: Self::NOWHERE,
            apart: Some(Box::new(Apart::new(parts, mine, owners))),
            ..Self::default()
        };
        self.put_all(keys);
    }

    /// Number of timer events that were dropped, because the slot of their flow now has a flow of another part.
    #[must_use]
    pub fn stale(&self) -> u64 {
        self.apart.as_ref().map_or(0, |apart| apart.stale)
    }

    /// Puts the events of all parts into one queue again.
    pub fn unite(&mut self) {
        if let Some(apart) = self.apart.take() {
            let Apart { mut queues, .. } = *apart;
            *self = Self::of_many();
            let mut keys: Vec<_> = queues.iter_mut().flat_map(Many::take_all).collect();
            keys.sort_unstable();
            keys.into_iter().map(event).for_each(|(time, source)| self.push(time, source));
        }
    }

    /// Assigns a flow's slot to the parts where its data and its acks enter the network. If this thread has the sender, schedules
    /// the flow's arrival, which is number `number` of the round. Returns whether this thread has the sender, and whether it has
    /// the receiver.
    pub fn push_arrival(
        &mut self,
        time: Time,
        number: u32,
        slot: u32,
        [data, acks]: [u32; 2],
    ) -> Option<[bool; 2]> {
        let Apart { queues, owners, mine, reused, .. } = &mut **self.apart.as_mut()?;
        let slot = slot as usize;
        if slot >= owners.sender.len() {
            owners.sender.resize(slot + 1, 0);
            owners.receiver.resize(slot + 1, 0);
        }
        owners.sender[slot] = owners.begin[data as usize];
        owners.receiver[slot] = owners.begin[acks as usize];
        let [sender, receiver] = [owners.sender[slot], owners.receiver[slot]].map(usize::from);
        if mine.contains(&sender) {
            queues[sender].push(time.as_ps(), Source::new(Class::FlowArrival, number).0);
        }
        *reused = true;
        Some([mine.contains(&sender), mine.contains(&receiver)])
    }

    /// Whether this thread has the receiver of the flow in `slot`.
    #[must_use]
    pub fn has_receiver(&self, slot: u32) -> bool {
        let has = |apart: &Apart| apart.mine.contains(&usize::from(apart.owners.receiver[slot as usize]));
        self.apart.as_ref().is_none_or(|apart| has(apart))
    }

    /// Lets the following events be those of this part. After the last part come the events that concern all.
    pub fn turn_to(&mut self, part: usize) {
        if let Some(apart) = &mut self.apart {
            apart.current = part;
            apart.soonest = apart.queues[part].earliest().map_or(u64::MAX, Time::as_ps);
        }
    }

    /// Whether the current part has an event that comes before this one.
    #[inline]
    pub fn has_before(&mut self, time: Time, source: Source) -> bool {
        self.apart
            .as_mut()
            .is_some_and(|apart| apart.soonest <= time.as_ps() && apart.has_before(time, source))
    }

    /// No event of this part is before the returned time. `None` if it has none.
    #[must_use]
    pub fn earliest(&self, part: usize) -> Option<Time> {
        self.apart.as_ref().and_then(|apart| apart.queues[part].earliest())
    }

    /// The next event that concerns all parts.
    pub fn next_common(&mut self) -> Option<(Time, Class)> {
        let (time, source) = self.apart.as_mut()?.queues.last_mut()?.first_until(Time::MAX)?;
        Some((time, source.class()))
    }
}
