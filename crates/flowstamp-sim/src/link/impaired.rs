//! What becomes of packets that have crossed a link with impairments.
//!
//! ```text
//!                    +-- lost
//! end of the link ---+                  +-- goes on at once             --> next link, or host
//!                    +-- itself,        |
//!                    |   marked or not -+-- aside for its own delay,    --> then
//!                    +-- its copy ------+   reorder_delay, the detour's
//!                                           delay, or several of them
//! ```
//!
//! A link with outages loses what is on its line when it fails, and what leaves the transmitter until it returns.
//!
//! A link whose packets have delays of their own has none before its end, so that each is drawn as its packet leaves the transmitter.
//!
//! Each packet takes the same number of draws whatever is asked for, so that those that are lost are the same with and without
//! copies and holding back. Loss in bursts, marks and delays have streams of their own for the same reason.

use super::delays::OwnDelays;
use crate::packet::{CONGESTED, DATA, ECN_CAPABLE, Packet};
use crate::plan::LinkPlan;
use crate::random::Stream;
use crate::scenario::{BurstLoss, Impairments};
use flowstamp_laws::units::Time;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Impairments of a link, and the packets that are aside.
#[derive(Clone, Debug)]
pub struct Impaired {
    what: Impairments,
    random: Stream,
    bursts: Option<Bursts>,
    marks: Stream,
    delays: Option<OwnDelays>,
    /// Packets that have crossed, and the numbers of those to come that are lost: the next is last.
    crossed: u64,
    listed: Vec<u64>,
    /// When the link is down, in order; those that are over are dropped as packets come.
    outages: VecDeque<(Time, Time)>,
    /// When the last packet arrives, where order is kept.
    latest: Time,
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
    /// Packets marked.
    pub marked: u64,
}

/// The state of a link that loses packets in bursts.
#[derive(Clone, Debug)]
struct Bursts {
    what: BurstLoss,
    random: Stream,
    bad: bool,
}

impl Bursts {
    /// Whether a packet is lost. The state that it finds decides, and then may end.
    fn lose(&mut self) -> bool {
        let [lost, ends] = [(); 2].map(|()| self.random.uniform());
        let (loss, end) = if self.bad { (self.what.bad, self.what.r) } else { (self.what.good, self.what.p) };
        self.bad ^= ends < end.get();
        lost < loss.get()
    }
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
    /// Those of a link in the run of this seed, if it has any. Nothing is aside.
    #[must_use]
    pub fn new(plan: &LinkPlan, seed: u64) -> Option<Self> {
        let nothing = Impairments::default();
        let what = plan.impairments.as_ref().or_else(|| (!plan.outages.is_empty()).then_some(&nothing))?;
        let stream = |of: &str| Stream::new(seed, &format!("{of}/{}", plan.name));
        let bursts = |what| Bursts { what, random: stream("burst loss"), bad: false };
        let delays = || OwnDelays::new(plan.delay, plan.varying_delay.clone(), what.jitter, stream("jitter"));
        let mut listed = what.lost_packets.clone();
        listed.sort_unstable_by(|a, b| b.cmp(a));
        listed.dedup();
        Some(Self {
            what: what.clone(),
            random: stream("impairments"),
            bursts: what.burst_loss.map(bursts),
            marks: stream("marks"),
            delays: what.have_delays().then(delays),
            crossed: 0,
            listed,
            outages: plan.outages.iter().copied().collect(),
            latest: Time::ZERO,
            aside: BinaryHeap::new(),
            put_aside: 0,
            counts: Counts::default(),
            before: Counts::default(),
        })
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
            marked: now.marked + before.marked,
        }
    }

    /// What becomes of a packet that left the transmitter at `left` and is at the end of the line at `now`.
    pub fn fate(&mut self, left: Time, now: Time, packet: &mut Packet) -> Fate {
        self.crossed += 1;
        let mut happens = |share: f64| self.random.uniform() < share;
        let by_chance = happens(self.what.loss.get());
        let duplicated = happens(self.what.duplicate.get());
        let held = [(); 2].map(|()| happens(self.what.reorder.get()));
        let in_burst = self.bursts.as_mut().is_some_and(Bursts::lose);
        let marked = self.marks.uniform() < self.what.mark.get();
        let own = self.delays.as_mut().map_or(Time::ZERO, |delays| delays.draw(left));
        let listed = self.listed.pop_if(|number| *number == self.crossed).is_some();
        let capable = packet.flags & (DATA | ECN_CAPABLE) == DATA | ECN_CAPABLE;
        let cut = self.is_cut(left, now.saturating_add(own));
        let picked = by_chance || in_burst;
        let told = self.what.ecn && capable;
        if cut || listed || picked && !told {
            self.counts.lost += 1;
            return Fate::Lost;
        }
        if capable && (marked || picked) && packet.flags & CONGESTED == 0 {
            packet.flags |= CONGESTED;
            self.counts.marked += 1;
        }
        let detour = self.detour(left);
        let mut after = |held: bool| {
            self.counts.reordered += u64::from(held);
            self.counts.detoured += u64::from(detour.is_some());
            let back = self.what.reorder_delay.filter(|_| held).unwrap_or_default();
            let after = own.saturating_add(detour.unwrap_or_default()).saturating_add(back);
            if self.what.keep_order {
                self.latest = self.latest.max(now.saturating_add(after));
                return self.latest - now;
            }
            after
        };
        let fate = Fate::Onward { after: after(held[0]), copy: duplicated.then(|| after(held[1])) };
        self.counts.duplicated += u64::from(duplicated);
        fate
    }

    /// Whether the link is down as a packet leaves the transmitter, or fails before it arrives.
    fn is_cut(&mut self, left: Time, arrives: Time) -> bool {
        while self.outages.front().is_some_and(|(_, until)| *until <= left) {
            self.outages.pop_front();
        }
        self.outages.front().is_some_and(|(from, _)| *from <= left || *from < arrives)
    }

    /// Whether a packet goes on at once that is to go on so much later. Where order is kept it does not overtake who goes on at the same
    /// instant and came before.
    #[must_use]
    pub fn passes(&self, after: Time) -> bool {
        after == Time::ZERO && (self.aside.is_empty() || !self.what.keep_order)
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
