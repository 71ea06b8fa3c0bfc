//! The police of a router link: who is tested, and what becomes of who fails (Katabi 2002, section 7).
//!
//! Packets are counted as they arrive, before router law and queue, which hear nothing of what isolation holds back: what is lost was sent all the same. They are told less as they leave,
//! behind the router. Each flow is a source of its own, as each has hosts of its own.

use crate::packet::{DATA, Packet};
use flowstamp_laws::Stamp;
use flowstamp_laws::share::police::{self, Flow, Params, Phase, Trouble, Witnesses};
use flowstamp_laws::units::{Rate, Time};
use std::collections::BTreeMap;

/// Flows that are kept; beyond, the half that has been quiet the longest is forgotten.
const MOST: usize = 4096;

/// One link's.
#[derive(Clone, Debug)]
pub struct Police {
    params: Params,
    flows: BTreeMap<u64, Entry>,
    witnesses: Witnesses,
    trouble: Trouble,
    /// Packets that isolation held back.
    held: u64,
    /// Those that were tested, in the order of their first tests.
    pub tested: Vec<Tested>,
}

#[derive(Clone, Debug)]
struct Entry {
    flow: Flow,
    /// What its packet that left last was told.
    told: Option<Rate>,
    seen: Time,
    /// Its place in `tested`.
    place: Option<usize>,
}

/// A flow that was tested.
#[derive(Clone, Copy, Debug)]
pub struct Tested {
    /// Its number over all users of its slot.
    pub flow: u64,
    /// When it was first told to halve, and when it was judged on that.
    pub told: Time,
    /// See `told`.
    pub judged: Option<Time>,
    /// When it was first isolated.
    pub isolated: Option<Time>,
    /// What the law says of it.
    pub round: Time,
    /// Tests that have begun.
    pub tests: u64,
    /// Isolations.
    pub isolations: u64,
    /// Packets of it that isolation held back.
    pub drops: u64,
}

impl Police {
    /// Nobody is known.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            flows: BTreeMap::new(),
            witnesses: Witnesses::default(),
            trouble: Trouble::default(),
            held: 0,
            tested: Vec::new(),
        }
    }

    /// A packet of the router's own protocol arrives at a link that has lost `lost` packets. Whether it may go on.
    pub fn admits(&mut self, now: Time, packet: &Packet, lost: u64) -> bool {
        if packet.flags & DATA == 0 {
            return true;
        }
        let id = packet.flow_id();
        if self.flows.len() >= MOST && !self.flows.contains_key(&id) {
            self.forget();
        }
        let fresh = Entry { flow: Flow::default(), told: None, seen: now, place: None };
        let entry = self.flows.entry(id).or_insert(fresh);
        let before = entry.flow.phase();
        let bytes = u32::from(packet.size);
        entry.seen = now;
        let drops = lost.saturating_sub(self.held);
        let rtt = packet.header.named_rtt(&packet.stamp);
        let seen = police::Packet { now, bytes, rtt, told: entry.told, free: true, drops };
        entry.flow.on_packet(&self.params, &seen);
        if entry.flow.running().0 == now {
            if let (true, Some(rtt)) = (entry.flow.is_proven(), entry.flow.passed()) {
                self.witnesses.passed(&self.params, now, rtt);
            }
            if entry.flow.phase() != before {
                self.note(id, now, before);
            }
        }
        self.trouble.look(now, drops);
        let Some(entry) = self.flows.get_mut(&id) else { return true };
        let admitted = entry.flow.admits(&self.params, now, bytes, &self.trouble);
        if !admitted {
            self.held += 1;
            if let Some(place) = entry.place {
                self.tested[place].drops += 1;
            }
        }
        admitted
    }

    /// What the router law is to read in `packet`; `None` if it is input to it, and no more: it would share out to others' loss.
    #[must_use]
    pub fn believed(&self, packet: &Packet) -> Option<Stamp> {
        let mut stamp = packet.stamp;
        if let Some(entry) = self.flows.get(&packet.flow_id()) {
            if entry.flow.is_isolated() {
                return None;
            }
            let belief = entry.flow.belief(&self.witnesses);
            packet.header.believe(&mut stamp, u32::from(packet.size), &belief);
        }
        Some(stamp)
    }

    /// Bounds what `packet`, which is about to be stamped, says by what its flow is believed; an isolated flow's says nothing. Returns what it
    /// said.
    pub fn bound(&self, packet: &mut Packet) -> Stamp {
        let named = packet.stamp;
        let Some(entry) = self.flows.get(&packet.flow_id()) else { return named };
        if entry.flow.is_isolated() {
            packet.header.forget_rtt(&mut packet.stamp);
        } else {
            let belief = entry.flow.belief(&self.witnesses);
            packet.header.believe(&mut packet.stamp, u32::from(packet.size), &belief);
        }
        named
    }

    /// A packet leaves, with what the router has written; `named` is what it said before [`Self::bound`].
    pub fn tell(&mut self, now: Time, packet: &mut Packet, named: &Stamp) {
        let Some(entry) = self.flows.get_mut(&packet.flow_id()) else { return };
        if entry.flow.is_isolated() {
            packet.header.recall(&mut packet.stamp, named);
        }
        entry.told = packet.header.told(&packet.stamp);
        let size = u32::from(packet.size);
        packet.header.test(&mut packet.stamp, size, &entry.flow.told(&self.params, now, size));
    }

    /// A flow has left a phase.
    fn note(&mut self, id: u64, now: Time, before: Phase) {
        let Some(entry) = self.flows.get_mut(&id) else { return };
        let flow = &entry.flow;
        if flow.phase() == Phase::Tell && entry.place.is_none() {
            entry.place = Some(self.tested.len());
            let round = flow.round().unwrap_or_default();
            self.tested.push(Tested {
                flow: id,
                told: now,
                judged: None,
                isolated: None,
                round,
                tests: 0,
                isolations: 0,
                drops: 0,
            });
        }
        let Some(place) = entry.place else { return };
        let tested = &mut self.tested[place];
        (tested.tests, _, tested.isolations) = flow.outcome();
        if before == Phase::Judge {
            tested.judged.get_or_insert(now);
        }
        if flow.phase() == Phase::Isolate {
            tested.isolated.get_or_insert(now);
        }
    }

    fn forget(&mut self) {
        let mut seen: Vec<Time> = self.flows.values().map(|entry| entry.seen).collect();
        seen.sort_unstable();
        let middle = seen[seen.len() / 2];
        self.flows.retain(|_, entry| entry.seen > middle);
    }
}
