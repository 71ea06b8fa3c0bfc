//! Balances packets of a flow over paths of equal cost: packet spraying and flowlets.
//!
//! A route is a list of links in the packet ([`super::paths`]), so the host of a flow picks one for each packet or
//! flowlet. It picks as if each node on the path picked one of its links at random. All these paths are routes of the
//! flow, up to [`MOST_ROUTES`].

use super::paths::{Core, Hashed, Shares, Way, Ways};
use super::{Builder, Result, error};
use crate::plan::Choice;
use crate::scenario::{Balance, FlowGroup};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::Time;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Maximum number of routes of a flow in one direction: the paths between two pods of a fat tree of k = 32. If there
/// are more, this many are picked at random.
const MOST_ROUTES: usize = 256;

/// The paths of a pair of nodes, there and back.
pub(super) type Spread = [Shares; 2];

impl Builder<'_> {
    /// Whether packets of a group's flows take several paths. A flow that governs a link keeps its path.
    pub(super) fn is_balanced(&self, group: &FlowGroup) -> bool {
        cfg!(feature = "full") && self.scenario.routing.balance != Balance::Ecmp && group.governs.is_none()
    }

    /// The paths over which packets are balanced in one direction.
    pub(super) fn shares(&self, core: &Core, ends: (usize, usize), flow: Hashed) -> Option<Shares> {
        core.shares(&self.links, ends, flow, MOST_ROUTES)
    }

    /// The paths of flows between the nodes of each pair; empty if the group is not balanced.
    pub(super) fn spread(
        &self,
        group: &FlowGroup,
        core: &Core,
        name: &str,
        pairs: &[Ways],
    ) -> Vec<Rc<Spread>> {
        if !cfg!(feature = "full") || !self.is_balanced(group) {
            return Vec::new();
        }
        // Many pairs are between the same nodes.
        let mut known: BTreeMap<(usize, usize), Rc<Spread>> = BTreeMap::new();
        let mut of_pair = |(number, ways): (u64, &Ways)| {
            let (there, back) = ways.first()?;
            let (from, to) = (*back.nodes.last()?, *there.nodes.last()?);
            if let Some(known) = known.get(&(from, to)) {
                return Some(Rc::clone(known));
            }
            let flow = Hashed::new(self.seed, name, number);
            let found = [self.shares(core, (from, to), flow)?, self.shares(core, (to, from), flow.acks())?];
            Some(Rc::clone(known.entry((from, to)).or_insert(Rc::new(found))))
        };
        (0..).zip(pairs).map(|pair| of_pair(pair).unwrap_or_default()).collect()
    }

    /// Maximum number of routes of a flow between these nodes, in one direction.
    pub(super) fn routes_between(&self, group: &FlowGroup, core: &Core, there: &Way, back: &Way) -> usize {
        if !cfg!(feature = "full") || !self.is_balanced(group) {
            return 1;
        }
        let (Some(from), Some(to)) = (back.nodes.last(), there.nodes.last()) else { return 1 };
        let count = |ends| self.shares(core, ends, Hashed::new(0, "", 0)).map_or(1, |shares| shares.len());
        count((*from, *to)).max(count((*to, *from)))
    }

    /// Adds the routes of a flow over these paths, between the links of its hosts. Returns the first.
    pub(super) fn routes(&mut self, first: Option<u32>, shares: &[Share<'_>], last: Option<u32>) -> u32 {
        if let [(_, way)] = shares {
            return self.route(first, way, last);
        }
        let routes: Vec<u32> = shares.iter().map(|(_, way)| self.route(first, way, last)).collect();
        if !cfg!(feature = "full") {
            return routes[0];
        }
        let mut sum = 0.0;
        let choice = |((share, _), route): (&Share<'_>, &u32)| {
            sum += share;
            Choice { bound: (sum * f64::from(u32::MAX)) as u32, route: *route }
        };
        let mut choices: Vec<Choice> = shares.iter().zip(&routes).map(choice).collect();
        choices.iter_mut().next_back().into_iter().for_each(|last| last.bound = u32::MAX);
        self.spreads.insert(routes[0], choices);
        routes[0]
    }

    /// Checks that flows whose laws obey routers have one on each of these paths, which `what` names.
    pub(super) fn check_shares(
        &self,
        group: &str,
        laws: &[&SenderSpec],
        shares: &[Share<'_>],
        what: &str,
    ) -> Result<()> {
        for law in laws.iter().filter(|law| law.needs_router()) {
            let header = law.header();
            let lacks =
                |way: &Way| way.links.iter().all(|link| self.links[*link as usize].router.header() != header);
            if shares.iter().any(|(_, way)| lacks(way)) {
                let (name, header) = (law.name(), header.name());
                return error(
                    format!("flows.{group}.law"),
                    format!("\"{name}\" obeys routers, but no link on {what} has router = \"{header}\""),
                );
            }
        }
        Ok(())
    }

    /// The longest propagation delay of these paths. With weights, paths of equal cost have different delays.
    pub(super) fn delay_of(&self, shares: &[Share<'_>]) -> Time {
        let delay =
            |way: &Way| way.links.iter().fold(Time::ZERO, |sum, link| sum + self.links[*link as usize].delay);
        shares.iter().map(|(_, way)| delay(way)).max().unwrap_or_default()
    }
}

/// Paths by reference, each with the fraction of packets that take it.
pub(super) type Share<'w> = (f64, &'w Way);

/// Borrows paths.
pub(super) fn shared(shares: &Shares) -> Vec<Share<'_>> {
    shares.iter().map(|(share, way)| (*share, way)).collect()
}

/// The links of several paths, each once.
pub(super) fn links_of(shares: &[Share<'_>]) -> Vec<u32> {
    let mut links: Vec<u32> = shares.iter().flat_map(|(_, way)| way.links.iter().copied()).collect();
    if shares.len() > 1 {
        links.sort_unstable();
        links.dedup();
    }
    links
}
