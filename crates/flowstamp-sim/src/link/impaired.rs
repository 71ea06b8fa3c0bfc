//! Impairments: loss, copies, marks and extra delays of packets at the end of a link.
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
//! An outage loses the packets on the line when it begins, and those that leave the transmitter until it ends.
//!
//! If packets have delays of their own, the line's propagation delay is zero and each delay is drawn here, for the time
//! at which the packet left the transmitter.
//!
//! Each packet takes the same number of random draws, whatever impairments are set. Therefore the same packets are lost with
//! and without copies and reordering. Burst loss, marks and delays have random streams of their own for the same
//! reason.

use super::delays::OwnDelays;
use crate::packet::{CONGESTED, DATA, ECN_CAPABLE, Packet};
use crate::plan::LinkPlan;
use crate::random::Stream;
use crate::scenario::{BurstLoss, Impairments};
use flowstamp_laws::units::Time;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Impairments of a link, and the packets that are delayed by them.
#[derive(Clone, Debug)]
pub struct Impaired {
    what: Impairments,
    random: Stream,
    bursts: Option<Bursts>,
    marks: Stream,
    delays: Option<OwnDelays>,
    /// Number of packets that have crossed. `listed` holds the numbers of the packets still to be lost, the next one
    /// last.
    crossed: u64,
    listed: Vec<u64>,
    /// Outages (begin, end) in order. Those that are over are removed as packets arrive.
    outages: VecDeque<(Time, Time)>,
    /// Latest arrival so far, used where order is kept.
    latest: Time,
    aside: BinaryHeap<Aside>,
    /// Whether results have the counts. A link that only advises has none.
    pub reported: bool,
    /// Number of packets ever put aside.
    put_aside: u64,
    /// Counts since statistics were restarted.
    pub counts: Counts,
    /// Counts from before the statistics were restarted.
    before: Counts,
}

/// Counts of what happened at the end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets lost.
    pub lost: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets delayed for reordering, including copies.
    pub reordered: u64,
    /// Packets on a detour, including copies.
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
    /// Whether a packet is lost. The current state decides, and may change afterwards (Gilbert-Elliott model).
    fn lose(&mut self) -> bool {
        let [lost, ends] = [(); 2].map(|()| self.random.uniform());
        let (loss, end) = if self.bad { (self.what.bad, self.what.r) } else { (self.what.good, self.what.p) };
        self.bad ^= ends < end.get();
        lost < loss.get()
    }
}

/// The fate of a packet at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet is lost.
    Lost,
    /// The packet goes on.
    Onward {
        /// Extra delay.
        after: Time,
        /// Extra delay of a copy, if there is one.
        copy: Option<Time>,
    },
}

/// A delayed packet. The heap's first is the one that goes on first; ties go to the one that was put aside first.
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
    /// The impairments of a link, or `None` if it has none. `seed` is the run's.
    #[must_use]
    pub fn new(plan: &LinkPlan, seed: u64) -> Option<Self> {
        let nothing = Impairments::default();
        let what = plan.impairments.as_ref().or_else(|| plan.acts_at_its_end().then_some(&nothing))?;
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
            reported: plan.is_impaired(),
            put_aside: 0,
            counts: Counts::default(),
            before: Counts::default(),
        })
    }

    /// Whether each packet's delay is drawn here, and not the line's.
    #[must_use]
    pub const fn draws_delays(&self) -> bool {
        self.delays.is_some()
    }

    /// Restarts the statistics.
    pub fn restart(&mut self) {
        self.before = self.whole_run();
        self.counts = Counts::default();
    }

    /// Counts since the beginning of the run.
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

    /// Decides the fate of a packet that left the transmitter at `left` and reaches the end of the line at `now`.
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

    /// Whether the link is down when the packet leaves the transmitter, or fails before it arrives.
    fn is_cut(&mut self, left: Time, arrives: Time) -> bool {
        while self.outages.front().is_some_and(|(_, until)| *until <= left) {
            self.outages.pop_front();
        }
        self.outages.front().is_some_and(|(from, _)| *from <= left || *from < arrives)
    }

    /// Whether a packet with extra delay `after` goes on at once. Where order is kept, it must not overtake one that
    /// was put aside for the same instant.
    #[must_use]
    pub fn passes(&self, after: Time) -> bool {
        after == Time::ZERO && (self.aside.is_empty() || !self.what.keep_order)
    }

    /// Extra delay of a packet that left the transmitter at `left`, if a detour was in force then.
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

    /// Removes a packet whose delay is over by `now`, if there is one.
    pub fn take(&mut self, now: Time) -> Option<Packet> {
        self.aside.peek().filter(|first| first.until <= now)?;
        self.aside.pop().map(|first| first.packet)
    }

    /// Number of packets put aside.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.aside.len() as u64
    }
}
