//! Priority flow control (IEEE 802.1Qbb): switches pause the links that fill them.
//!
//! The law ([`flowstamp_laws::pfc`]) counts packets, admits them, and decides when to send a pause or a resume. This file has
//! frames, stopped links, and deadlocks. A sender that a pause has reached begins no further transmission.
//!
//! Pause frames go over the link back, before all packets that wait there. They begin when the packet in transmission has
//! left, a pause does not stop them, and they take no capacity from packets. If the state changes back before its frame has
//! begun, neither frame is sent.
//!
//! Deadlock: a set of stopped links, each of which has more than its `xon` waiting before links of the set, and no resume on
//! its way. None of them can go on again, because what holds one up leaves only over others of the set. Such a set needs a
//! cycle of links that follow each other on routes. Only stopped links of such cycles are examined, when one stops or a
//! packet joins a stopped queue.

use super::{Fabric, Onward};
use crate::FULL;
use crate::events::{Class, Source};
use crate::link::{Port, Tap};
use crate::plan::{END, LinkPlan};
use crate::results::{PfcDeadlock, PfcSummary};
use flowstamp_laws::pfc::{Ingress, PAUSE_FRAME};
use flowstamp_laws::units::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A pause or resume frame on its way.
#[derive(Clone, Copy, Debug)]
struct Frame {
    begins: Time,
    /// Whether it pauses; `None` for a frame that was not sent after all.
    pauses: Option<bool>,
}

/// Effects on one link.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Pauses that reached the sender.
    pauses: u64,
    /// Time for which the sender was paused.
    paused: Time,
    /// Most bytes of the link that waited at its far end.
    most: u64,
    /// Packets lost for lack of headroom.
    drops: u64,
}

/// A link with flow control: the count at its far end, and the state of its sender.
#[derive(Clone, Debug)]
struct Guarded {
    back: u32,
    ingress: Ingress,
    frames: VecDeque<Frame>,
    /// When the next frame may begin.
    frames_free: Time,
    /// Since when the sender is paused.
    since: Option<Time>,
    /// Part of a cycle of links.
    in_cycle: bool,
    counts: Counts,
}

impl Guarded {
    /// Whether the sender is paused until bytes leave the far end. One to which a resume is under way will go on, even if
    /// packets in flight lift the count above `xon` again. A pause after that resume is examined when it arrives.
    fn stands(&self) -> bool {
        self.since.is_some() && self.frames.iter().all(|frame| frame.pauses != Some(false))
    }
}

/// Priority flow control of a network.
#[derive(Clone, Debug)]
pub struct Pfc {
    /// State of each router link that has flow control.
    links: Vec<Option<Box<Guarded>>>,
    /// When the first deadlock was found, and its links, in the order in which packets would go.
    deadlock: Option<(Time, Vec<u32>)>,
}

impl Pfc {
    /// Flow control of these links, if any has it.
    pub fn new(plans: &[LinkPlan], routes: &[u32]) -> Option<Box<Self>> {
        if plans.iter().all(|plan| plan.pfc.is_none()) {
            return None;
        }
        let cycles = in_cycles(plans, routes);
        let guarded = |(plan, in_cycle): (&LinkPlan, bool)| {
            plan.pfc.map(|pfc| {
                Box::new(Guarded {
                    back: pfc.back,
                    ingress: Ingress::new(pfc.xoff, pfc.xon, pfc.headroom),
                    frames: VecDeque::new(),
                    frames_free: Time::ZERO,
                    since: None,
                    in_cycle,
                    counts: Counts::default(),
                })
            })
        };
        let links = plans.iter().zip(cycles).map(guarded).collect();
        Some(Box::new(Self { links, deadlock: None }))
    }

    fn of(&mut self, link: u32) -> Option<&mut Guarded> {
        self.links.get_mut(link as usize)?.as_deref_mut()
    }

    /// Restarts the counts.
    pub fn restart(&mut self, now: Time) {
        for link in self.links.iter_mut().flatten() {
            link.counts = Counts { most: link.ingress.held(), ..Counts::default() };
            link.since = link.since.map(|_| now);
        }
    }
}

/// For each link with flow control, whether it may be part of a cycle of such links that follow each other on routes, or
/// lies between two cycles.
fn in_cycles(plans: &[LinkPlan], routes: &[u32]) -> Vec<bool> {
    let guarded = |link: u32| plans.get(link as usize).is_some_and(|plan| plan.pfc.is_some());
    let pairs: BTreeSet<(u32, u32)> = routes
        .windows(2)
        .filter(|pair| pair[0] != END && pair[1] != END && guarded(pair[0]) && guarded(pair[1]))
        .map(|pair| (pair[0], pair[1]))
        .collect();
    let mut left: Vec<bool> = plans.iter().map(|plan| plan.pfc.is_some()).collect();
    for forward in [true, false] {
        // Takes away links that none that is left leads to.
        let mut next: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut feeders = vec![0u32; plans.len()];
        for (a, b) in pairs.iter().filter(|(a, b)| left[*a as usize] && left[*b as usize]) {
            let (a, b) = if forward { (*a, *b) } else { (*b, *a) };
            next.entry(a).or_default().push(b);
            feeders[b as usize] += 1;
        }
        let mut free: Vec<u32> = (0..plans.len() as u32)
            .filter(|link| left[*link as usize] && feeders[*link as usize] == 0)
            .collect();
        while let Some(link) = free.pop() {
            left[link as usize] = false;
            for to in next.get(&link).into_iter().flatten() {
                feeders[*to as usize] -= 1;
                if feeders[*to as usize] == 0 {
                    free.push(*to);
                }
            }
        }
    }
    left
}

impl Fabric {
    /// Moves on the head of a link with flow control, which has arrived at a switch.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_switch(&mut self, number: u32, source: Source) -> Onward {
        let link = &mut self.links[number as usize];
        let to = self.routes[link.head().next as usize];
        if to == END {
            return Onward::Host;
        }
        let packet = *link.deliver();
        if let Some(time) = link.next_arrival() {
            self.events.push(time, source);
        }
        let guarded = self.pfc.as_mut().and_then(|pfc| pfc.of(number));
        let (Some(guarded), Port::Served(port)) = (guarded, &mut self.ports[to as usize]) else {
            return Onward::Done;
        };
        let next = &mut self.links[to as usize];
        if !guarded.ingress.admits(u64::from(packet.size)) {
            guarded.counts.drops += 1;
            next.arrivals += 1;
            port.laws.stats.arrivals += 1;
            port.laws.stats.lose(&packet);
            self.lost += 1;
            self.sacks.release(packet.sack);
            return Onward::Done;
        }
        let before = port.waiting();
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: to };
        port.announce(true);
        let admission = port.admit(next, self.now, &packet, &mut tap);
        port.announce(false);
        let (waits, stopped) = (port.waiting() > before, port.is_stopped());
        if waits {
            port.note_admitted(packet.size, true);
        }
        self.admitted(to, admission, packet.sack);
        if waits {
            self.hold(number, packet.size);
            if stopped {
                self.look_for_deadlock(number);
            }
        }
        Onward::Done
    }

    /// Counts a packet that has to wait after it came over a link.
    fn hold(&mut self, number: u32, size: u16) {
        let Some(guarded) = self.pfc.as_mut().and_then(|pfc| pfc.of(number)) else { return };
        let pause = guarded.ingress.waits(u64::from(size));
        guarded.counts.most = guarded.counts.most.max(guarded.ingress.held());
        if pause {
            self.send_frame(number, true);
        }
    }

    /// Schedules the next transmission of a link that may be stopped. Numbers above those of all links say so, so that other
    /// links are not asked.
    fn choose_at(&mut self, time: Time, number: u32) {
        let source = Source::new(Class::Transmit, self.ports.len() as u32 + number);
        self.events.push(time, source);
    }

    /// Schedules the next transmission of a link, unless it is stopped.
    #[cold]
    pub(super) fn choose_unless_stopped(&mut self, number: u32, time: Time) {
        if let (true, Port::Served(port)) = (FULL, &mut self.ports[number as usize]) {
            if !port.stalls() {
                self.choose_at(time, number);
            }
        }
    }

    /// Lets a link that may be stopped, or whose packets are counted, begin its next transmission.
    #[cold]
    #[inline(never)]
    pub(super) fn choose_held(&mut self, number: u32) {
        let at = number as usize;
        let (true, Port::Served(port)) = (FULL, &mut self.ports[at]) else { return };
        if port.stalls() {
            return;
        }
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number };
        if let Some((admission, sack)) = port.choose(&mut self.links[at], self.now, &mut tap) {
            let packet = self.links[at].newest();
            // The packet has gone on to its next link, so that this link is one before, and the one that it came over is two.
            let (size, came) = (packet.size, (packet.next as usize).checked_sub(2));
            let came = came.map_or(END, |at| self.routes[at]);
            if let Some(guarded) = self.pfc.as_mut().and_then(|pfc| pfc.of(came)) {
                port.note_admitted(size, false);
                if guarded.ingress.leaves(u64::from(size)) {
                    self.send_frame(came, false);
                }
            }
            self.admitted(number, admission, sack);
        }
        if let Some(next) = self.ports[at].choice(&self.links[at]) {
            self.choose_at(next, number);
        }
    }

    /// Sends a pause or a resume to the sender of a link.
    fn send_frame(&mut self, number: u32, pauses: bool) {
        let Some(guarded) = self.pfc.as_mut().and_then(|pfc| pfc.of(number)) else { return };
        if let Some(last) =
            guarded.frames.back_mut().filter(|last| last.begins > self.now && last.pauses.is_some())
        {
            last.pauses = None;
            guarded.frames_free = last.begins;
            return;
        }
        let line = &self.links[guarded.back as usize];
        let begins = self.now.max(line.free_at()).max(guarded.frames_free);
        let lasts = line.sending_time(PAUSE_FRAME).unwrap_or_default();
        guarded.frames_free = begins + lasts;
        guarded.frames.push_back(Frame { begins, pauses: Some(pauses) });
        self.events.push(begins + lasts + line.delay(), Source::new(Class::Rejoin, number));
    }

    /// Handles a pause or a resume that has reached the sender of a link.
    pub(super) fn frame_arrives(&mut self, number: u32) {
        let (true, Port::Served(port)) = (FULL, &mut self.ports[number as usize]) else { return };
        let Some(guarded) = self.pfc.as_mut().and_then(|pfc| pfc.of(number)) else { return };
        match guarded.frames.pop_front().and_then(|frame| frame.pauses) {
            None => {}
            Some(true) => {
                guarded.counts.pauses += 1;
                guarded.since = Some(self.now);
                port.stop();
                self.look_for_deadlock(number);
            }
            Some(false) => {
                guarded.counts.paused += self.now - guarded.since.take().unwrap_or(self.now);
                if let Some(time) = port.go_on(&self.links[number as usize], self.now) {
                    self.choose_at(time, number);
                }
            }
        }
    }

    /// Effects of flow control on a router link since statistics were restarted; `None` if the link has none.
    #[must_use]
    pub fn pfc_summary(&self, number: usize) -> Option<PfcSummary> {
        let guarded = self.pfc.as_ref().filter(|_| FULL)?.links[number].as_ref()?;
        let Guarded { ingress, since, counts, .. } = &**guarded;
        let rest = since.map_or(Time::ZERO, |since| self.now - since);
        Some(PfcSummary {
            pauses: counts.pauses,
            paused_s: (counts.paused + rest).as_secs_f64(),
            max_ingress_bytes: counts.most as f64,
            drops: counts.drops,
            xoff_bytes: ingress.xoff() as f64,
            xon_bytes: ingress.xon() as f64,
            headroom_bytes: ingress.headroom() as f64,
        })
    }

    /// The first deadlock, if there was one.
    #[must_use]
    pub fn pfc_deadlock(&self) -> Option<PfcDeadlock> {
        let (time, links) = self.pfc.as_ref().filter(|_| FULL)?.deadlock.as_ref()?;
        let name = |link: &u32| self.ports[*link as usize].laws().name.clone();
        Some(PfcDeadlock { time_s: time.as_secs_f64(), links: links.iter().map(name).collect() })
    }

    /// Looks for links that wait for each other, if a stopped link may be one of them.
    fn look_for_deadlock(&mut self, number: u32) {
        let Some(pfc) = &self.pfc else { return };
        let may_wait =
            |link: &Option<Box<Guarded>>| link.as_ref().is_some_and(|link| link.in_cycle && link.stands());
        if pfc.deadlock.is_some() || !may_wait(&pfc.links[number as usize]) {
            return;
        }
        let mut stopped: BTreeSet<u32> =
            (0..).zip(&pfc.links).filter(|(_, link)| may_wait(link)).map(|(link, _)| link).collect();
        let waits = self.waits(&stopped);
        loop {
            let goes_on = |link: &&u32| {
                let bytes: u64 = before(&waits, &stopped, **link).map(|(_, bytes)| bytes).sum();
                pfc.links[**link as usize].as_ref().is_none_or(|guarded| bytes <= guarded.ingress.xon())
            };
            let free: Vec<u32> = stopped.iter().filter(goes_on).copied().collect();
            if free.is_empty() {
                break;
            }
            stopped.retain(|link| free.binary_search(link).is_err());
        }
        let Some(first) = stopped.first() else { return };
        let next = |link| before(&waits, &stopped, link).max_by_key(|(to, bytes)| (*bytes, u32::MAX - *to));
        let mut way = vec![*first];
        while let Some((to, _)) = next(way[way.len() - 1]) {
            if let Some(at) = way.iter().position(|link| *link == to) {
                way.drain(..at);
                break;
            }
            way.push(to);
        }
        if let Some(pfc) = &mut self.pfc {
            pfc.deadlock = Some((self.now, way));
        }
    }

    /// Bytes that came over one of these links and wait before another.
    fn waits(&self, stopped: &BTreeSet<u32>) -> Waits {
        let mut waits = Waits::new();
        for link in stopped {
            for packet in self.ports[*link as usize].before_the_line() {
                let came = (packet.next as usize).checked_sub(1).map_or(END, |at| self.routes[at]);
                if stopped.contains(&came) {
                    *waits.entry(came).or_default().entry(*link).or_default() += u64::from(packet.size);
                }
            }
        }
        waits
    }
}

/// Bytes by the link over which they came, and then by the link before which they wait.
type Waits = BTreeMap<u32, BTreeMap<u32, u64>>;

/// The links before which bytes of `link` wait, of those that are stopped.
fn before<'a>(
    waits: &'a Waits,
    stopped: &'a BTreeSet<u32>,
    link: u32,
) -> impl Iterator<Item = (u32, u64)> + use<'a> {
    let all = waits.get(&link).into_iter().flatten();
    all.filter(|(to, _)| stopped.contains(to)).map(|(to, bytes)| (*to, *bytes))
}
