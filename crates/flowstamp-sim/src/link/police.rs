//! The police of a router link: it tests flows, and isolates those that fail (Katabi 2002, section 7).
//!
//! Packets are counted on arrival, before the router law and the queue. Router law and queue do not see packets that
//! isolation drops. On departure, after the router law, the packet's feedback is reduced for a test. Each flow counts
//! as a source of its own, because each has its own hosts.

use crate::packet::{DATA, Packet};
use flowstamp_laws::Stamp;
use flowstamp_laws::share::police::{self, Flow, Params, Phase, Trouble, Witnesses};
use flowstamp_laws::units::{Rate, Time};
use std::collections::BTreeMap;

/// Maximum number of flows tracked. Beyond it, the half that was seen longest ago is forgotten.
const MOST: usize = 4096;

/// The police of one link.
#[derive(Clone, Debug)]
pub struct Police {
    params: Params,
    flows: BTreeMap<u64, Entry>,
    witnesses: Witnesses,
    trouble: Trouble,
    /// Packets that isolation dropped.
    held: u64,
    /// Flows that were tested, in the order of their first tests.
    pub tested: Vec<Tested>,
}

#[derive(Clone, Debug)]
struct Entry {
    flow: Flow,
    /// The rate that the flow's last departed packet was told.
    told: Option<Rate>,
    seen: Time,
    /// Index in `tested`.
    place: Option<usize>,
}

/// A flow that was tested.
#[derive(Clone, Copy, Debug)]
pub struct Tested {
    /// The flow's identifier: slot and generation.
    pub flow: u64,
    /// When the flow was first told to halve its rate.
    pub told: Time,
    /// When the flow was first judged on that test.
    pub judged: Option<Time>,
    /// When the flow was first isolated.
    pub isolated: Option<Time>,
    /// Round-trip time of the flow as the police law measures it, at the first test.
    pub round: Time,
    /// Number of tests begun.
    pub tests: u64,
    /// Number of isolations.
    pub isolations: u64,
    /// Packets of the flow that isolation dropped.
    pub drops: u64,
}

impl Police {
    /// A police that tracks no flow yet.
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

    /// Takes note of an arriving packet of the router's own protocol. `lost` is the number of packets that the link has
    /// dropped. Returns whether the packet may go on.
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

    /// The stamp that the router law is to read in `packet`. `None` for an isolated flow, which counts as input only:
    /// the law must not allot a share to a flow whose packets are dropped.
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

    /// Limits the values in `packet`'s stamp to those that the police believes, before the router law writes to it. An
    /// isolated flow's stamp loses its RTT. Returns the stamp as it was.
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

    /// Finishes the stamp of a departing packet, after the router law has written to it. `named` is the stamp before
    /// [`Self::bound`].
    pub fn tell(&mut self, now: Time, packet: &mut Packet, named: &Stamp) {
        let Some(entry) = self.flows.get_mut(&packet.flow_id()) else { return };
        if entry.flow.is_isolated() {
            packet.header.recall(&mut packet.stamp, named);
        }
        entry.told = packet.header.told(&packet.stamp);
        let size = u32::from(packet.size);
        packet.header.test(&mut packet.stamp, size, &entry.flow.feedback_bounds(&self.params, now, size));
    }

    /// Updates the record of a flow that has left phase `before`.
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
