//! Packet spraying and flowlets: a flow's packets take one of several routes of equal cost.
//!
//! A packet carries its whole route, so its host picks the route, as if each switch on the path picked a link at random.
//!
//! - **Spraying** (Dixit, Prakash, Hu, Kompella, "On the impact of packet spraying in data center networks", INFOCOM
//!   2013): a pick for each packet. Picks are random, not in turn: senders that go round in step would meet at the same
//!   switches again and again.
//! - **Flowlets** (Vanini, Pan, Alizadeh, Taheri, Edsall, "Let it flow", NSDI 2017): a pick after each pause of the flow
//!   that is longer than the gap.
//!
//! Deviation from both papers (paper says / we do / because): switches pick / the host picks / routes are fixed when a
//! packet leaves. For spraying the distribution is the same. Flowlets see the pauses at the host, as in Clove (Katta et
//! al., CoNEXT 2017), not those that queues on the way have made longer or shorter.
//!
//! Data and acks of a flow pick from streams of their own, because one end may run ahead of the other.

use crate::plan::{Choice, FlowRoutes};
use crate::random::Stream;
use crate::scenario::{Balance, Routing};
use flowstamp_laws::units::Time;
use std::collections::BTreeMap;
use std::ops::Range;

/// Directions of a flow.
pub(super) const DATA: usize = 0;
pub(super) const ACKS: usize = 1;

/// The routes of all flows whose packets are balanced.
#[derive(Clone, Debug)]
pub struct Balancer {
    /// The pause after which a flow picks again; `None` if each packet picks.
    gap: Option<Time>,
    /// The choices of each set, by its first route.
    sets: BTreeMap<u32, Range<usize>>,
    choices: Vec<Choice>,
    /// Data and acks of each flow, by slot.
    flows: Vec<[Pick; 2]>,
    seed: u64,
}

/// The state of a flow in one direction.
#[derive(Clone, Debug)]
pub struct Pick {
    draws: Stream,
    /// Indices into the choices; empty if there is only one route.
    among: Range<usize>,
    /// The route of the last packet, and when it left.
    route: u32,
    last: Option<Time>,
}

impl Balancer {
    /// Balances over these sets of routes, by the first route of each. `None` if there are none.
    pub(super) fn new(
        routing: &Routing,
        spreads: BTreeMap<u32, Vec<Choice>>,
        seed: u64,
    ) -> Option<Box<Self>> {
        let gap = match routing.balance {
            _ if spreads.is_empty() || !cfg!(feature = "full") => return None,
            Balance::Flowlet => Some(routing.flowlet_gap),
            Balance::Ecmp | Balance::Spray => None,
        };
        let (mut sets, mut choices) = (BTreeMap::new(), Vec::new());
        for (first, set) in spreads {
            let begin = choices.len();
            choices.extend(set);
            sets.insert(first, begin..choices.len());
        }
        choices.shrink_to_fit();
        Some(Box::new(Self { gap, sets, choices, flows: Vec::new(), seed }))
    }

    fn among(&self, route: u32) -> Range<usize> {
        self.sets.get(&route).cloned().unwrap_or(0..0)
    }

    /// Begins a flow in a slot.
    pub(super) fn open(&mut self, slot: u32, group: &str, index: u32, routes: FlowRoutes) {
        let pick = |route, direction: &str| Pick {
            draws: Stream::new(self.seed, &format!("balance/{group}/{index}/{direction}")),
            among: self.among(route),
            route,
            last: None,
        };
        let picks = [pick(routes.data, "data"), pick(routes.acks, "acks")];
        match self.flows.get_mut(slot as usize) {
            Some(flow) => *flow = picks,
            None => self.flows.push(picks),
        }
    }

    /// Moves a flow to other sets of routes. Its next packet picks anew.
    pub(super) fn follow(&mut self, slot: usize, routes: FlowRoutes) {
        let among = [self.among(routes.data), self.among(routes.acks)];
        let Some(picks) = self.flows.get_mut(slot) else { return };
        for ((pick, among), route) in picks.iter_mut().zip(among).zip([routes.data, routes.acks]) {
            (pick.among, pick.route, pick.last) = (among, route, None);
        }
    }

    /// The route of a packet that leaves now.
    fn pick(&mut self, slot: u32, direction: usize, now: Time) -> u32 {
        let pick = &mut self.flows[slot as usize][direction];
        let paused = match (self.gap, pick.last) {
            (Some(gap), Some(last)) => now.saturating_sub(last) > gap,
            _ => true,
        };
        pick.last = Some(now);
        if paused && !pick.among.is_empty() {
            let draw = pick.draws.word();
            let choices = &self.choices[pick.among.clone()];
            pick.route = choices[choices.partition_point(|choice| choice.bound < draw)].route;
        }
        pick.route
    }
}

/// The route of a packet that leaves now: `only`, or one of several.
#[inline]
pub(super) fn route(
    balancer: &mut Option<Box<Balancer>>,
    only: u32,
    slot: u32,
    direction: usize,
    now: Time,
) -> u32 {
    match balancer {
        Some(balancer) if cfg!(feature = "full") => balancer.pick(slot, direction, now),
        _ => only,
    }
}
