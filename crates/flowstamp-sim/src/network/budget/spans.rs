//! Extent of a group's paths: the longest path, all links that the flows may take, and round-trip times.

use super::super::Builder;
use super::super::groups::Leg;
use super::super::paths::{Core, Hashed, Way, Ways};
use crate::scenario::{FlowGroup, OneOrMany};
use flowstamp_laws::units::Time;
use std::collections::BTreeSet;

/// Extent of the paths of a group.
pub(super) struct Span {
    pub name: String,
    /// The longest paths there and back.
    pub way: Way,
    pub back: Way,
    /// All links that the flows' data, and their acks, may take.
    pub there: Vec<u32>,
    pub acks: Vec<u32>,
    /// Maximum number of routes of a flow, there or back.
    pub routes: usize,
    /// Number of links by which data leave the source nodes.
    pub first: usize,
    /// The shortest and the longest propagation RTT.
    pub rtts: [Time; 2],
    /// Number of host pairs, for a traffic pattern.
    pub pairs: Option<usize>,
    /// Capacity of which the load is a fraction, bytes per second.
    pub shared: f64,
}

impl Builder<'_> {
    /// The longest RTT of any flow, to which buffers in BDP may refer.
    pub(super) fn longest(&self, core: &Core) -> Time {
        let of = |(at, group): (usize, &FlowGroup)| {
            self.spans(at, group, core).into_iter().map(|span| span.rtts[1]).max()
        };
        self.scenario.flows.iter().enumerate().filter_map(of).max().unwrap_or_default()
    }

    /// The extents of a group's paths. Empty if the group is invalid; placing it reports the error.
    pub(super) fn spans(&self, at: usize, group: &FlowGroup, core: &Core) -> Vec<Span> {
        if let Some(list) = self.lists.get(&at) {
            let span = |ways: &Ways| {
                let (way, back) = ways.first()?.clone();
                let all = |of: fn(&(Way, Way)) -> &Way| -> BTreeSet<u32> {
                    ways.iter().flat_map(|both| &of(both).links).copied().collect()
                };
                let reaches = [all(|both| &both.0), all(|both| &both.1)];
                let first = ways.iter().map(|both| both.0.links.first()).collect::<BTreeSet<_>>().len();
                self.span(group, core, &group.name, (way, back), reaches, first)
            };
            return list.ways.iter().filter_map(span).collect();
        }
        let legs = self.legs(at, group, core).unwrap_or_default();
        legs.iter().filter_map(|leg| self.of_leg(group, leg, core)).collect()
    }

    /// The extent of the paths of one leg.
    fn of_leg(&self, group: &FlowGroup, leg: &Leg, core: &Core) -> Option<Span> {
        let any = Hashed::new(0, "", 0);
        let back = leg.pairs.iter().map(|(from, to)| (*to, *from));
        let reaches =
            [core.reach(&self.links, leg.pairs.iter().copied())?.links, core.reach(&self.links, back)?.links];
        let sources: BTreeSet<usize> = leg.pairs.iter().map(|(from, _)| *from).collect();
        let leaving = sources.iter().flat_map(|node| &core.leaving()[*node]);
        let first = leaving.map(|edge| core.edges[*edge].2).filter(|link| reaches[0].contains(link));
        let first = first.collect::<BTreeSet<_>>().len();
        let ways = leg.pairs.iter().map(|(from, to)| core.ways(&self.links, *from, *to, any));
        let ways = ways.collect::<Option<Vec<_>>>()?;
        let mut rtts = ways.iter().map(|(way, back)| self.rtts(group, way, back, core));
        let [mut least, mut most] = rtts.next()?;
        rtts.for_each(|rtts| (least, most) = (least.min(rtts[0]), most.max(rtts[1])));
        let peak = |link: &u32| self.peak(&self.links[*link as usize]);
        let shared = core.hosts_carry(ways.iter(), peak);
        let routes = ways.iter().map(|(way, back)| self.routes_between(group, core, way, back)).max()?;
        let longest = ways.into_iter().max_by_key(|(way, back)| way.links.len() + back.links.len())?;
        let span = self.span(group, core, &leg.name, longest, reaches, first)?;
        let pairs = group.pattern.map(|_| leg.pairs.len());
        let shared = if pairs.is_some() { shared } else { span.shared };
        Some(Span { rtts: [least, most], pairs, shared, routes, ..span })
    }

    fn span(
        &self,
        group: &FlowGroup,
        core: &Core,
        name: &str,
        (way, back): (Way, Way),
        [there, acks]: [BTreeSet<u32>; 2],
        first: usize,
    ) -> Option<Span> {
        let rtts = self.rtts(group, &way, &back, core);
        let (there, acks): (Vec<_>, Vec<_>) = (there.into_iter().collect(), acks.into_iter().collect());
        let shared = self.slowest(&there);
        let (name, routes) = (name.to_owned(), self.routes_between(group, core, &way, &back));
        Some(Span { name, way, back, there, acks, routes, first, rtts, pairs: None, shared })
    }

    /// The shortest and the longest propagation RTT of a group's flows over a path.
    fn rtts(&self, group: &FlowGroup, way: &Way, back: &Way, core: &Core) -> [Time; 2] {
        let delays = way.links.iter().chain(&back.links).map(|link| self.links[*link as usize].delay);
        let inner = delays.fold(Time::ZERO, Time::saturating_add);
        let ends = group.access.or(core.access).map_or(Time::ZERO, |access| access.delay * 4);
        let least = inner.saturating_add(ends);
        let wanted = match &group.rtt {
            Some(OneOrMany::One(rtt)) => [*rtt; 2],
            Some(OneOrMany::Many(rtts)) => {
                [rtts.iter().min(), rtts.iter().max()].map(|rtt| rtt.copied().unwrap_or_default())
            }
            None => [core.rtt.unwrap_or_default(); 2],
        };
        wanted.map(|rtt| rtt.max(least))
    }
}
