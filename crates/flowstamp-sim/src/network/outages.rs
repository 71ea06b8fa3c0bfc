//! Outages of links, and the routes that flows take during them.
//!
//! Outages are known before the run, and so are all routes. For each failure and each return the builder finds the
//! paths of all flows again, in the graph of the links that are up. A new path becomes another route. During the run a
//! flow only switches to another route ([`Reroute`]).

use super::paths::{Core, Hashed, Shares};
use super::spread::{Share, links_of, shared};
use super::{Builder, Result, error, of_full};
use crate::medium::Capacity;
use crate::plan::{Choice, END, FlowRoutes, Medium, Network, Reroute};
use crate::scenario::{FlowGroup, OnFailure, Outage};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::{Rate, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum memory of routes, bytes.
const MOST_ROUTED_BYTES: u64 = 1 << 30;

/// A flow between two nodes, or several that take one path in turn.
pub(super) struct Demand {
    pub from: usize,
    pub to: usize,
    pub flow: Hashed,
    pub routes: FlowRoutes,
    /// Index into [`Network::groups`]. `pair` is the pair of nodes within that group.
    pub group: usize,
    pub pair: u32,
    /// The flow is endless and takes all the bandwidth that it is given.
    pub lasts: bool,
    /// Propagation RTT of its hosts' own links.
    pub access: Time,
}

/// Outages by link.
#[derive(Default)]
pub(super) struct Outages {
    /// Outages (begin, end) of each link that fails, in order.
    down: BTreeMap<u32, Vec<(Time, Time)>>,
    /// Outages during which a link holds its packets.
    held: BTreeMap<u32, Vec<(Time, Time)>>,
}

impl Outages {
    fn add(&mut self, link: u32, outage: &Outage) -> std::result::Result<(), String> {
        let (from, until) = (outage.from, outage.until.unwrap_or(Time::MAX));
        let down = self.down.entry(link).or_default();
        if let Some((other, ends)) = down.iter().find(|(other, ends)| from < *ends && *other < until) {
            let ends =
                if *ends == Time::MAX { "and does not return".to_owned() } else { format!("to {ends}") };
            return Err(format!("is {from}, but the link is down from {other} {ends}"));
        }
        down.push((from, until));
        down.sort_unstable();
        if outage.on_failure == OnFailure::Hold {
            let held = self.held.entry(link).or_default();
            held.push((from, until));
            held.sort_unstable();
        }
        Ok(())
    }

    /// The links that routes avoid at an instant. All nodes know the state as it was `late` earlier.
    fn known_down(&self, at: Time, late: Time) -> BTreeSet<u32> {
        let known = |time: Time| time.saturating_add(late);
        let down = |times: &&Vec<(Time, Time)>| {
            times.iter().any(|(from, until)| known(*from) <= at && at < known(*until))
        };
        self.down.iter().filter(|(_, times)| down(times)).map(|(link, _)| *link).collect()
    }
}

impl Builder<'_> {
    /// Reads and checks the scenario's outages.
    pub(super) fn outages(&mut self) -> Result<()> {
        for (number, outage) in self.scenario.outages.iter().enumerate() {
            let key = |k: &str| format!("outages[{number}].{k}");
            of_full(key("link"), "outages of links")?;
            if let Some(until) = outage.until.filter(|until| *until <= outage.from) {
                return error(
                    key("until"),
                    format!("is {until}; it must be later than from, {}", outage.from),
                );
            }
            let named = |name: &str| self.links.iter().position(|link| link.name == name);
            let Some(link) = named(&outage.link) else {
                let known: Vec<_> = self.links.iter().map(|link| link.name.as_str()).collect();
                let message = format!("\"{}\" is not a link; there are {}", outage.link, known.join(", "));
                return error(key("link"), message);
            };
            let back = outage
                .both_ways
                .then(|| way_back(&outage.link))
                .into_iter()
                .flatten()
                .find_map(|name| named(&name));
            for link in [Some(link), back].into_iter().flatten() {
                let plan = &self.links[link];
                if matches!(plan.medium, Medium::Cell { .. }) {
                    let message = format!(
                        "\"{}\" is an interface of a cell, which does not fail; name a link",
                        plan.name
                    );
                    return error(key("link"), message);
                }
                let hold = outage.on_failure == OnFailure::Hold;
                if hold && matches!(plan.capacity, Capacity::Trace(..)) {
                    let message = format!(
                        "is \"hold\", but {} follows a trace; leave the time out of the trace",
                        plan.name
                    );
                    return error(key("on_failure"), message);
                }
                self.outages.add(link as u32, outage).or_else(|message| error(key("from"), message))?;
                let plan = &mut self.links[link];
                plan.holds |= hold;
                if !hold {
                    plan.outages.push((outage.from, outage.until.unwrap_or(Time::MAX)));
                    plan.outages.sort_unstable();
                }
            }
        }
        Ok(())
    }

    /// Sets the capacity of links that hold their packets to zero while they are down.
    pub(super) fn pause(&mut self) {
        let end = self.scenario.duration;
        for (link, times) in &self.outages.held {
            let plan = &mut self.links[*link as usize];
            plan.capacity = paused(&plan.capacity, times, end);
        }
    }

    /// Whether the routes of a group follow outages. A flow that governs a link keeps its path.
    pub(super) fn is_rerouted(&self, group: &FlowGroup) -> bool {
        cfg!(feature = "full")
            && self.scenario.routing.reroute
            && !self.scenario.outages.is_empty()
            && group.governs.is_none()
    }

    /// Finds the routes of all flows after each failure and return.
    pub(super) fn reroute(&mut self, core: &Core, network: &mut Network) -> Result<()> {
        let demands = std::mem::take(&mut self.demands);
        let late = self.scenario.routing.convergence;
        let instants = self.outages.down.values().flatten().flat_map(|(from, until)| [*from, *until]);
        let instants: BTreeSet<Time> = instants.map(|time| time.saturating_add(late)).collect();
        let idle: BTreeSet<u32> =
            (0..).zip(&self.rtts).filter(|(_, rtts)| rtts.is_unused()).map(|(link, _)| link).collect();
        // For each flow its routes so far, for data and acks, and the current ones.
        let mut known: Vec<[Routes; 2]> = demands
            .iter()
            .map(|of| {
                let routers = self.links.len();
                [of.routes.data, of.routes.acks]
                    .map(|at| Routes::of(&self.routes, &self.spreads, at, routers))
            })
            .collect();
        let mut changed = 0;
        for time in instants.into_iter().filter(|time| *time < self.scenario.duration) {
            let now = core.without(&self.outages.known_down(time, late));
            let mut changes = Vec::new();
            for (demand, known) in demands.iter().zip(&mut known) {
                let plan = &network.groups[demand.group];
                let group = &self.scenario.flows[plan.spec];
                let ways = |from, to, flow| -> Option<Shares> {
                    if self.is_balanced(group) {
                        return self.shares(&now, (from, to), flow);
                    }
                    Some(vec![(1.0, now.way(&self.links, from, to, flow)?)])
                };
                let found = [
                    ways(demand.from, demand.to, demand.flow),
                    ways(demand.to, demand.from, demand.flow.acks()),
                ];
                let found = found.each_ref().map(|shares| shares.as_ref().map(shared));
                if let Some(there) = found[0].as_ref().filter(|there| !known[0].has(there)) {
                    let laws = plan.laws_between(demand.pair);
                    let what = format!("the path that it takes from {time} on, in an outage,");
                    self.check_shares(&group.name, &laws, there, &what)?;
                    if let Some(back) = &found[1] {
                        self.note_rtts(demand, &laws, there, back, &idle);
                    }
                }
                for (shares, known) in found.iter().zip(known) {
                    if let Some(shares) = shares {
                        changes.extend(self.follow_on(shares, known));
                    }
                }
            }
            changed += changes.len();
            self.check_routed(changed, time)?;
            changes.sort_unstable();
            if !changes.is_empty() {
                network.reroutes.push(Reroute { time, changes });
            }
        }
        Ok(())
    }

    /// Refuses routes that take too much memory: each link of a route takes 8 bytes, and so does each change.
    fn check_routed(&self, changed: usize, time: Time) -> Result<()> {
        let bytes = 8 * (self.routes.len() + changed) as u64;
        let most = self.most_routed_bytes();
        if bytes <= most {
            return Ok(());
        }
        error(
            "outages",
            format!("need routes of more than {most} bytes up to {time}; give fewer outages or fewer flows"),
        )
    }

    fn most_routed_bytes(&self) -> u64 {
        self.memory.map_or(MOST_ROUTED_BYTES, |memory| (memory / 4).min(MOST_ROUTED_BYTES))
    }

    /// Memory for new routes of `flows` flows with `links` router links there and back, bytes.
    pub(super) fn routed_bytes(&self, flows: f64, links: f64) -> f64 {
        let of_a_route = (size_of::<(Vec<u32>, u32)>() + size_of::<(u32, u32)>()) as f64;
        // The first routes, then at most one more in each direction at each failure and return. `check_routed` bounds
        // those.
        let both = 2.0 * of_a_route + 4.0 * (links + 2.0);
        let instants = 2.0 * self.scenario.outages.len() as f64;
        let later = (flows * instants * 2.0 * (both + 4.0 * links)).min(self.most_routed_bytes() as f64);
        flows * (2.0 * size_of::<Demand>() as f64 + size_of::<[Routes; 2]>() as f64 + both) + later
    }

    /// Moves a flow to these paths. Returns the old and the new first route if they differ.
    fn follow_on(&mut self, shares: &[Share<'_>], known: &mut Routes) -> Option<(u32, u32)> {
        let (before, links) = (known.now, joined(shares));
        known.now = match known.all.iter().find(|(known, _)| *known == links) {
            Some((_, at)) => *at,
            None => {
                let at = self.routes(known.first, shares, known.last);
                known.all.push((links, at));
                at
            }
        };
        (before != known.now).then_some((before, known.now))
    }

    /// Notes the RTTs of flows at links that no flow takes before an outage, for their routers.
    fn note_rtts(
        &mut self,
        demand: &Demand,
        laws: &[&SenderSpec],
        there: &[Share<'_>],
        back: &[Share<'_>],
        idle: &BTreeSet<u32>,
    ) {
        let rtt = demand.access + self.delay_of(there) + self.delay_of(back);
        for (acks, shares) in [(false, there), (true, back)] {
            for link in links_of(shares).into_iter().filter(|link| idle.contains(link)) {
                self.note_rtt(link, acks, rtt, laws, demand.lasts);
            }
        }
    }
}

/// The routes of a flow in one direction.
struct Routes {
    /// Links of the flow's hosts.
    first: Option<u32>,
    last: Option<u32>,
    /// Router links of each route, and where the route begins. For routes over which packets are balanced, the links of
    /// all of them as [`joined`], and the first route.
    all: Vec<(Vec<u32>, u32)>,
    now: u32,
}

impl Routes {
    /// The routes of a flow with one route so far, or one set of balanced routes.
    fn of(routes: &[u32], spreads: &BTreeMap<u32, Vec<Choice>>, at: u32, routers: usize) -> Self {
        let links = |at: u32| routes[at as usize..].iter().copied().take_while(|link| *link != END);
        let own = |link: Option<u32>| link.filter(|link| *link as usize >= routers);
        let (first, last) = (own(links(at).next()), own(links(at).last()));
        let mut between = Vec::new();
        let others = spreads.get(&at).into_iter().flatten().map(|choice| choice.route).skip(1);
        for route in std::iter::once(at).chain(others) {
            if route != at {
                between.push(END);
            }
            between.extend(links(route).filter(|link| (*link as usize) < routers));
        }
        Self { first, last, all: vec![(between, at)], now: at }
    }

    fn has(&self, shares: &[Share<'_>]) -> bool {
        let links = joined(shares);
        self.all.iter().any(|(known, _)| *known == links)
    }
}

/// The links of all these paths, with [`END`] between them.
fn joined(shares: &[Share<'_>]) -> Vec<u32> {
    let ways: Vec<&[u32]> = shares.iter().map(|(_, way)| &way.links[..]).collect();
    ways.join(&END)
}

/// Possible names of the link in the other direction.
fn way_back(name: &str) -> Vec<String> {
    let swapped = name.split_once("->").map(|(from, to)| format!("{to}->{from}"));
    let named = name.strip_suffix(".reverse").map_or_else(|| format!("{name}.reverse"), str::to_owned);
    swapped.into_iter().chain([named]).collect()
}

/// A capacity that is zero at these times. A link that does not return by the end of the run returns a second after it.
fn paused(capacity: &Capacity, times: &[(Time, Time)], end: Time) -> Capacity {
    let before: Vec<(Time, Rate)> = match capacity {
        Capacity::Constant(rate) => vec![(Time::ZERO, *rate)],
        Capacity::Steps(steps) => steps.clone(),
        Capacity::Trace(..) => return capacity.clone(),
    };
    let rate_at = |time: Time| before[before.partition_point(|(from, _)| *from <= time).max(1) - 1].1;
    let times: Vec<_> = times
        .iter()
        .map(|(from, until)| (*from, (*until).min(end.saturating_add(Time::from_secs(1)))))
        .collect();
    let is_down = |time: Time| times.iter().any(|(from, until)| *from <= time && time < *until);
    let instants =
        before.iter().map(|(from, _)| *from).chain(times.iter().flat_map(|(from, until)| [*from, *until]));
    let instants: BTreeSet<Time> = instants.collect();
    let rate = |time: Time| if is_down(time) { Rate::from_bps(0.0) } else { rate_at(time) };
    Capacity::Steps(instants.into_iter().map(|time| (time, rate(time))).collect())
}
