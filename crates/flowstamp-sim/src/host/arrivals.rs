//! Flows that arrive during the run, and the slots that they take.
//!
//! In a small network a flow leaves its slot to the next one as soon as it is over. A large network runs in parts
//! ([`crate::parts`]), and each part needs to know the slots of a round before the round begins. There, a flow *lingers* in
//! its slot: no packet or timer has an effect from one lingering time after its end on, and another flow may take the slot
//! after two. The lingering time is at least that of a round, so each of these steps happens in a round of its own. With several
//! threads, each creates all flows. After each window ([`crate::run`]) it learns which flows have ended on other threads.
//!
//! The receiver's part takes the flow out of its slot, because late copies of data would be answered. A late ack may still reach
//! a sender that has ended, which sends nothing.

use super::{Flow, Hosts, LazyTimer, Record};
use crate::events::{Class, LEAVES, MANY_LINKS, Source};
use crate::fabric::Fabric;
use crate::plan::{ArrivalPlan, Comes};
use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// Shortest lingering time.
const SHORTEST: Time = Time::from_micros(1);

/// Arrivals and slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// Where flows come from.
    pub plans: Vec<ArrivalPlan>,
    /// When the next flow of each plan arrives; [`Time::MAX`] if none does.
    next: Vec<Time>,
    /// The slots of the flows that arrive in this round, in order, if the network runs in rounds.
    #[cfg(feature = "parallel")]
    in_round: Option<Vec<u32>>,
    free: Vec<u32>,
    /// Slots that become free, and when, in order.
    soon: VecDeque<(Time, u32)>,
    /// How long flows linger; `None` if their slots are free at once.
    linger: Option<Time>,
    /// The flows that have ended on this thread in this window, and when, if the network runs on several threads.
    ended: Option<Vec<(Time, u32)>>,
}

/// The bit of a flow's generation that tells that the flow has left its slot.
const LEFT: u16 = 1 << 15;

impl Arrivals {
    /// Schedules the first arrival of each plan.
    pub fn new(mut plans: Vec<ArrivalPlan>, net: &mut Fabric) -> Self {
        let next = plans.iter_mut().map(ArrivalPlan::first).collect();
        let mut arrivals = Self { plans, next, ..Self::default() };
        if net.routers().count() >= MANY_LINKS {
            arrivals.linger(net);
        }
        arrivals.schedule(net);
        arrivals
    }

    fn linger(&mut self, net: &Fabric) {
        let delays = (0..net.routers().count() as u32).map(|link| net.delay(link));
        self.linger = Some(delays.max().unwrap_or_default().max(SHORTEST));
    }

    fn schedule(&self, net: &mut Fabric) {
        for (number, next) in (0..).zip(&self.next).filter(|(_, next)| **next < Time::MAX) {
            net.events.push(*next, Source::new(Class::FlowArrival, number));
        }
    }

    /// A slot that is free at `now`.
    fn slot(&mut self, now: Time) -> Option<u32> {
        while let Some((_, slot)) = self.soon.front().copied().filter(|(from, _)| *from <= now) {
            self.soon.pop_front();
            self.free.push(slot);
        }
        self.free.pop()
    }

    /// Frees a slot from `time` on.
    fn free_from(&mut self, time: Time, slot: u32) {
        let after = self.soon.iter().rev().take_while(|last| **last > (time, slot)).count();
        self.soon.insert(self.soon.len() - after, (time, slot));
    }
}

impl Hosts {
    /// Lets flows linger in their slots for the delay of the longest router link, at least [`SHORTEST`].
    pub fn linger(&mut self, net: &Fabric) {
        self.arrivals.linger(net);
    }

    /// Handles an event of the class [`Class::FlowArrival`]: starts a flow that arrives, or takes one out of its slot.
    pub fn flow_arrival(&mut self, net: &mut Fabric, number: u32) {
        if number & LEAVES != 0 {
            return self.leave(number & !LEAVES);
        }
        let slot = self.made_ahead(number).or_else(|| {
            let slot = self.next_flow(net, number, net.now)?;
            let next = self.arrivals.next[number as usize];
            if next < Time::MAX {
                net.events.push(next, Source::new(Class::FlowArrival, number));
            }
            Some(slot)
        });
        let Some(slot) = slot else { return };
        let group = self.flows[slot as usize].group;
        self.groups[group as usize].active.begin(net.now);
        self.begin(net, slot);
    }

    /// The slot of a flow that arrives in this round, by its number, if the network runs in rounds.
    fn made_ahead(&self, number: u32) -> Option<u32> {
        #[cfg(feature = "parallel")]
        return self.arrivals.in_round.as_ref().map(|slots| slots[number as usize]);
        #[cfg(not(feature = "parallel"))]
        {
            let _ = number;
            None
        }
    }

    /// Makes the next flow of a plan, which arrives at `now`, and returns its slot.
    fn next_flow(&mut self, net: &mut Fabric, number: u32, now: Time) -> Option<u32> {
        let next = &mut self.arrivals.next[number as usize];
        let ArrivalPlan { group, routes: pairs, comes, start, stop } =
            &mut self.arrivals.plans[number as usize];
        if now >= *stop {
            *next = Time::MAX;
            return None;
        }
        let group = *group;
        let (pair, law, record) = match comes {
            Comes::Random { arrivals, sizes } => {
                let size = sizes.draw();
                let index = self.groups[group as usize].flows;
                self.records.push(Record::new(group, index, now, Some(size)));
                *next = now + arrivals.gap();
                (0, 0, self.records.len() - 1)
            }
            Comes::Listed { list, next: at } => {
                let row = list.order[*at];
                *at += 1;
                let after =
                    list.order.get(*at).map(|row| start.saturating_add(list.rows[*row as usize].start));
                let listed = &list.rows[row as usize];
                let first = self.groups[group as usize].first_record;
                *next = after.unwrap_or(Time::MAX);
                (listed.pair as usize, listed.law, (first + row) as usize)
            }
        };
        let routes = pairs[pair][0];
        pairs[pair].rotate_left(1);
        let free = self.arrivals.slot(now);
        Some(self.add_flow(net, record as u32, law, routes, free))
    }

    /// Puts a flow into a free slot, or into a new one.
    pub(super) fn take_slot(&mut self, mut flow: Flow, free: Option<u32>) -> u32 {
        let Some(slot) = free else {
            self.flows.push(flow);
            return (self.flows.len() - 1) as u32;
        };
        let old = &mut self.flows[slot as usize];
        flow.generation = old.generation.wrapping_add(1);
        if self.arrivals.linger.is_some() {
            flow.generation &= !LEFT;
        } else {
            // Timer events of the slot's previous flow are still pending. They find nothing due, and the new flow
            // reuses them.
            flow.retransmit = old.retransmit;
            flow.ack = old.ack;
            flow.pace = old.pace;
            flow.application = old.application;
            flow.control = old.control;
        }
        *old = flow;
        slot
    }

    /// Ends a flow if it arrived during the run. Its slot is free at once, or after the flow has lingered.
    pub(super) fn close(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        if !(self.groups[flow.group as usize].arriving && flow.started) {
            return;
        }
        flow.started = false;
        let Some(linger) = self.arrivals.linger else { return self.arrivals.free.push(number) };
        for timer in [&mut flow.retransmit, &mut flow.pace, &mut flow.application, &mut flow.control] {
            timer.cancel();
        }
        self.vacate(net, number, net.now, linger);
        if let Some(ended) = &mut self.arrivals.ended {
            ended.push((net.now, number));
        }
    }

    /// Schedules when a flow that has ended leaves its slot, and when the slot is free.
    fn vacate(&mut self, net: &mut Fabric, number: u32, ended: Time, linger: Time) {
        let leaves = ended.saturating_add(linger);
        self.arrivals.free_from(leaves.saturating_add(linger), number);
        #[cfg(feature = "parallel")]
        if !net.events.has_receiver(number) {
            return;
        }
        net.events.push(leaves, Source::new(Class::FlowArrival, LEAVES | number));
    }

    /// Takes a flow out of its slot after it has lingered: its data find no flow any more.
    fn leave(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        flow.generation |= LEFT;
        flow.ack = LazyTimer::IDLE;
    }
}

#[cfg(feature = "parallel")]
impl Hosts {
    /// The lingering time, if flows arrive and linger.
    #[must_use]
    pub fn lingering_time(&self) -> Option<Time> {
        self.arrivals.linger.filter(|_| !self.arrivals.plans.is_empty())
    }

    /// The time of the next arrival, and its plan.
    fn first_arrival(&self) -> Option<(Time, u32)> {
        self.arrivals.next.iter().copied().zip(0..).min()
    }

    /// When the next flow arrives; [`Time::MAX`] if none does.
    #[must_use]
    pub fn next_arrival(&self) -> Time {
        self.first_arrival().map_or(Time::MAX, |(time, _)| time)
    }

    /// Begins a run in rounds: parts get the arrivals of a round from [`Self::arrive_until`].
    pub fn begin_rounds(&mut self) {
        self.arrivals.in_round = Some(Vec::new());
    }

    /// Makes the flows that arrive by `until`, in a round that begins now, and schedules their arrivals. Returns how
    /// many plans have stopped. A run as a whole has an event for each.
    pub fn arrive_until(&mut self, net: &mut Fabric, until: Time) -> u64 {
        let mut stopped = 0;
        let Some(mut slots) = self.arrivals.in_round.take() else { return stopped };
        slots.clear();
        while let Some((time, number)) = self.first_arrival().filter(|(time, _)| *time <= until) {
            let Some(slot) = self.next_flow(net, number, time) else {
                stopped += 1;
                continue;
            };
            let flow = &mut self.flows[slot as usize];
            let [sends, receives] = net.arrival(time, slots.len() as u32, slot, flow.routes);
            // On the receiver's thread, a flow whose sender is elsewhere counts as started until it has ended.
            flow.started = receives && !sends;
            slots.push(slot);
        }
        self.arrivals.in_round = Some(slots);
        stopped
    }

    /// Ends a run in rounds. The rest of the run is as a whole.
    pub fn end_rounds(&mut self, net: &mut Fabric) {
        self.arrivals.in_round = None;
        self.arrivals.schedule(net);
    }

    /// Begins a run on several threads.
    pub fn begin_threads(&mut self) {
        self.arrivals.ended = self.lingering_time().map(|_| Vec::new());
    }

    /// Moves the flows that have ended on this thread, and when, to `to`.
    pub fn take_ended(&mut self, to: &mut Vec<(Time, u32)>) {
        to.clear();
        to.append(self.arrivals.ended.as_mut().unwrap_or(&mut Vec::new()));
    }

    /// Takes note of flows that have ended on another thread.
    pub fn end_elsewhere(&mut self, net: &mut Fabric, ended: &[(Time, u32)]) {
        let Some(linger) = self.arrivals.linger else { return };
        for (time, number) in ended {
            self.vacate(net, *number, *time, linger);
            // Only the receiver's thread has it started.
            if std::mem::take(&mut self.flows[*number as usize].started) {
                self.write_outcome(*number, Time::MAX);
            }
        }
    }
}
