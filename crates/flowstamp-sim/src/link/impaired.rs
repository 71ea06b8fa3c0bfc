//! What becomes of packets that have crossed a link with impairments.
//!
//! ```text
//!                    +-- lost
//! end of the link ---+                  +-- goes on at once            --> next link, or host
//!                    +-- itself         |
//!                    +-- its copy ------+-- aside for reorder_delay,   --> then
//!                                           the detour's delay, or both
//! ```
//!
//! Each packet takes the same number of draws whatever is asked for, so that those that are lost are the same with and without
//! copies and holding back.

use crate::packet::Packet;
use crate::random::Stream;
use crate::scenario::Impairments;
use flowstamp_laws::units::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Impairments of a link, and the packets that are aside.
#[derive(Clone, Debug)]
pub struct Impaired {
    what: Impairments,
    random: Stream,
    aside: BinaryHeap<Aside>,
    /// Packets that were ever put aside.
    put_aside: u64,
    /// What has happened since statistics began.
    pub counts: Counts,
    /// What it did before the statistics began.
    before: Counts,
}

/// What has happened at the end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets lost.
    pub lost: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets held back, copies among them.
    pub reordered: u64,
    /// Packets on another route, copies among them.
    pub detoured: u64,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is lost.
    Lost,
    /// It goes on.
    Onward {
        /// So much later.
        after: Time,
        /// So does a copy, so much later.
        copy: Option<Time>,
    },
}

/// A packet that is aside. The first of them is the one that goes on first, or of several at one instant that came first.
#[derive(Clone, Copy, Debug)]
struct Aside {
    until: Time,
    number: u64,
    packet: Packet,
}

impl Aside {
    fn rank(&self) -> (Time, u64) {
        (self.until, self.number)
    }
}

impl Ord for Aside {
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}
impl PartialOrd for Aside {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Aside {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}
impl Eq for Aside {}

impl Impaired {
    /// Nothing is aside.
    #[must_use]
    pub fn new(what: &Impairments, random: Stream) -> Self {
        Self {
            what: what.clone(),
            random,
            aside: BinaryHeap::new(),
            put_aside: 0,
            counts: Counts::default(),
            before: Counts::default(),
        }
    }

    /// Statistics begin now.
    pub fn restart(&mut self) {
        self.before = self.whole_run();
        self.counts = Counts::default();
    }

    /// What it has done since the beginning of the run.
    #[must_use]
    pub fn whole_run(&self) -> Counts {
        let (now, before) = (self.counts, self.before);
        Counts {
            lost: now.lost + before.lost,
            duplicated: now.duplicated + before.duplicated,
            reordered: now.reordered + before.reordered,
            detoured: now.detoured + before.detoured,
        }
    }

    /// What becomes of a packet that left the transmitter at `left`.
    pub fn fate(&mut self, left: Time) -> Fate {
        let mut happens = |share: f64| self.random.uniform() < share;
        let lost = happens(self.what.loss.get());
        let duplicated = happens(self.what.duplicate.get());
        let held = [(); 2].map(|()| happens(self.what.reorder.get()));
        if lost {
            self.counts.lost += 1;
            return Fate::Lost;
        }
        let detour = self.detour(left);
        let mut after = |held: bool| {
            self.counts.reordered += u64::from(held);
            self.counts.detoured += u64::from(detour.is_some());
            let back = self.what.reorder_delay.filter(|_| held).unwrap_or_default();
            detour.unwrap_or_default().saturating_add(back)
        };
        let fate = Fate::Onward { after: after(held[0]), copy: duplicated.then(|| after(held[1])) };
        self.counts.duplicated += u64::from(duplicated);
        fate
    }

    /// How much longer the way is of what left the transmitter at `left`, if it took another.
    fn detour(&self, left: Time) -> Option<Time> {
        let detours = &self.what.detours;
        let next = detours.partition_point(|detour| detour.until.is_some_and(|until| until <= left));
        detours.get(next).filter(|detour| detour.from <= left).map(|detour| detour.delay)
    }

    /// Puts a packet aside.
    pub fn put_aside(&mut self, until: Time, packet: &Packet) {
        self.aside.push(Aside { until, number: self.put_aside, packet: *packet });
        self.put_aside += 1;
    }

    /// The packet that goes on at `now`, if there is one.
    pub fn take(&mut self, now: Time) -> Option<Packet> {
        self.aside.peek().filter(|first| first.until <= now)?;
        self.aside.pop().map(|first| first.packet)
    }

    /// Packets that are aside.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.aside.len() as u64
    }
}
