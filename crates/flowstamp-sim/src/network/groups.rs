//! Places groups of flows: checks, hosts and routes.

use super::group_checks::{check_count, timers_at_odds};
use super::lists::{Placed, listed_name};
use super::outages::Demand;
use super::paths::{Core, Hashed, Way, Ways};
use super::spread::{Share, Spread, links_of, shared};
use super::{Builder, MOST_ARRIVALS, MOST_FLOWS, Result, error, of_full};
use crate::ScenarioError;
use crate::plan::{ArrivalPlan, Comes, END, FlowPlan, FlowRoutes, GroupPlan, NOBODY, Network};
use crate::random::Stream;
use crate::scenario::{Access, FlowGroup, OneOrMany, Web, check_rate};
use crate::workload::{ArrivalProcess, SizeLaw, hold_to_load, wire_bytes};
use flowstamp_laws::registry::{Header, SenderSpec};
use flowstamp_laws::units::Time;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Number of host pairs between two nodes, for flows that arrive during the run.
pub(super) const ARRIVAL_PAIRS: u32 = 10;

/// The name of a group in results, and the paths of its flows there and back for each pair of nodes.
type Hop<'a> = (String, Cow<'a, [Ways]>);

/// Flows of a group with one name in results, and the node pairs (source, destination) between which they go.
pub(super) struct Leg {
    pub name: String,
    pub pairs: Vec<(usize, usize)>,
}

/// Placement of the flows of a group that have one name in results.
struct Placing<'a> {
    /// Index into `flows` of the scenario.
    spec: usize,
    group: &'a FlowGroup,
    name: String,
    /// The paths there and back, by pair of nodes.
    ways: &'a [Ways],
    /// Where packets are balanced, all paths of each pair.
    spread: Vec<Rc<Spread>>,
    list: Option<&'a Placed>,
    /// Links of the hosts, if they have any. Without them all flows between two nodes take the same path.
    access: Option<Access>,
    /// Host pairs between two nodes, or for a list between all of its nodes.
    count: u32,
}

impl Placing<'_> {
    /// Whether the flows arrive during the run.
    fn arrives(&self) -> bool {
        self.group.web.is_some() || self.list.is_some()
    }

    /// Whether the flows are endless and take all the bandwidth that they are given.
    fn lasts(&self) -> bool {
        let group = self.group;
        !self.arrives() && group.size.is_none() && !group.produces() && group.lifetime.is_none()
    }

    /// Number of host pairs between one pair of nodes. Rows of a list without hosts of their own take the paths of
    /// hashed flows in turn.
    fn hosts_between(&self, ways: &Ways) -> u32 {
        let takes_turns = self.list.is_some() && self.access.is_none();
        if self.group.count.is_none() && takes_turns { ways.len() as u32 } else { self.count }
    }

    fn laws_between(&self, pair: usize) -> Vec<&SenderSpec> {
        match self.list {
            Some(list) => list.flows.laws_between(pair as u32).collect(),
            None => vec![&self.group.law],
        }
    }

    /// The links of each path of the data, and the fraction of a flow that takes it; a path may occur several times.
    fn data_shares(&self) -> impl Iterator<Item = (f64, &Vec<u32>)> {
        let spread = self.spread.iter().flat_map(|both| &both[0]).map(|(share, way)| (*share, &way.links));
        let ways = if self.spread.is_empty() { self.ways } else { &[] };
        ways.iter().flatten().map(|(there, _)| (1.0, &there.links)).chain(spread)
    }

    fn data_ways(&self) -> impl Iterator<Item = &Vec<u32>> {
        self.data_shares().map(|(_, way)| way)
    }

    /// The links that the data take, each once; for a single path in its order.
    fn links(&self) -> Vec<u32> {
        let mut links: Vec<u32> = self.data_ways().flatten().copied().collect();
        if self.data_ways().nth(1).is_some() || self.list.is_some() {
            links.sort_unstable();
            links.dedup();
        }
        links
    }
}

/// Routes and RTTs of the placed flows of a group.
struct Routed {
    /// Routes by pair of nodes.
    routes: Vec<Vec<FlowRoutes>>,
    /// Propagation RTTs.
    longest: Time,
    shortest: Time,
    mean_s: f64,
}

impl Builder<'_> {
    /// Places one group. Returns the longest propagation RTT of its flows.
    pub(super) fn group(
        &mut self,
        spec: usize,
        group: &FlowGroup,
        core: &mut Core,
        network: &mut Network,
    ) -> Result<Time> {
        self.check_group(group)?;
        let list = self.lists.remove(&spec);
        let legs = match &list {
            Some(list) => {
                self.check_listed(group, list)?;
                let ends = |ways: &Ways| {
                    let (there, back) = ways.first()?;
                    Some((*back.nodes.last()?, *there.nodes.last()?))
                };
                self.spread_over(core, &list.ways.iter().filter_map(ends).collect::<Vec<_>>());
                vec![(self.named(spec, group)?, Cow::Borrowed(list.ways.as_slice()))]
            }
            None => self.hops(spec, group, core)?,
        };
        let mut longest = Time::ZERO;
        for (name, ways) in legs {
            let access = group.access.or(core.access);
            let list = list.as_ref();
            let spread = self.spread(group, core, &name, &ways);
            let mut placing = Placing { spec, group, name, ways: &ways, spread, list, access, count: 1 };
            if group.pattern.is_none() {
                let many = group.web.is_some() || list.is_some() && access.is_some();
                placing.count = group.count.unwrap_or(if many { ARRIVAL_PAIRS } else { 1 });
            }
            longest = longest.max(self.place_group(&placing, core, network)?);
        }
        Ok(longest)
    }

    /// Places the flows of one name. Returns their longest propagation RTT.
    fn place_group(&mut self, placing: &Placing<'_>, core: &Core, network: &mut Network) -> Result<Time> {
        let pairs = u64::from(placing.count) * placing.ways.len() as u64;
        check_count(placing.group, placing.count, pairs, placing.arrives())?;
        let Routed { routes, longest, shortest, mean_s } =
            self.place_hosts(placing, core, network.groups.len())?;
        let (group, name) = (placing.group, &placing.name);
        let timers = |rtt| [group.transport.first_rto(rtt), group.transport.last_rto(rtt)];
        let [initial_rto, max_rto] = timers(longest);
        let usual = timers(Time::ZERO);
        for (k, time, usual) in [("initial_rto", initial_rto, usual[0]), ("max_rto", max_rto, usual[1])] {
            if time != usual {
                network.assumed.insert(format!("flows.{name}.transport.{k}"), time.to_string());
            }
        }
        network.warnings.extend(timers_at_odds(name, &group.transport, longest));
        let links = placing.links();
        self.carries.extend(&links);
        let made = self.produces(group, &links)?;
        if group.send_buffer.is_some() && placing.access.is_none() {
            return error(
                format!("flows.{}.send_buffer", group.name),
                "needs a host's link to wait for; give access = { rate, delay }",
            );
        }
        if group.law.traits().datagrams
            && group.jitter.is_none()
            && made.send_jitter > group.transport.send_jitter
        {
            network.assumed.insert(format!("flows.{name}.jitter"), made.send_jitter.to_string());
        }
        let list = placing.list.map(|list| list.flows.clone());
        let mut plan = GroupPlan {
            name: name.clone(),
            spec: placing.spec,
            laws: list.as_ref().map_or_else(|| vec![group.law.clone()], |list| list.laws.clone()),
            ways: placing.data_ways().collect::<BTreeSet<_>>().into_iter().cloned().collect(),
            governs: None,
            path_rtt_s: mean_s,
            mean_size_bytes: group.size.map(flowstamp_laws::Bytes::as_f64),
            offered_bps: vec![0.0; links.len()],
            links,
            initial_rto,
            max_rto,
            lifetimes: self.lifetimes(placing),
            list,
            access: placing.access.map(|access| access.rate),
            one_rtt: shortest == longest,
            phase: None,
            application: made.process,
            rate: made.rate,
            release: None,
            send_jitter: made.send_jitter,
            collective: None,
        };
        self.join_collective(group, placing.ways.len(), &mut plan);
        self.arrivals_of(placing, core, routes, &mut plan, network)?;
        network.groups.push(plan);
        Ok(longest)
    }

    /// Assigns hosts and routes to the flows of one name.
    fn place_hosts(&mut self, placing: &Placing<'_>, core: &Core, number: usize) -> Result<Routed> {
        let Placing { group, ways, count, .. } = *placing;
        let mut routes = Vec::with_capacity(ways.len());
        let (mut longest, mut shortest, mut sum_s) = (Time::ZERO, Time::MAX, 0.0);
        for (pair, ways) in ways.iter().enumerate() {
            let laws = placing.laws_between(pair);
            let here = placing.hosts_between(ways);
            let spread = placing.spread.get(pair).map(|both| both.each_ref().map(shared));
            if let Some([there, _]) = &spread {
                self.check_shares(&group.name, &laws, there, "one of the paths that routing.balance uses")?;
            }
            let mut of_pair = Vec::with_capacity(here as usize);
            let mut sum_of_pair_s = 0.0;
            for i in 0..here {
                let (there, back) = &ways[(i as usize).min(ways.len() - 1)];
                let hashed = [[(1.0, there)], [(1.0, back)]];
                let shares = match &spread {
                    Some([there, back]) => [&there[..], &back[..]],
                    None => [&hashed[0][..], &hashed[1][..]],
                };
                let (of_flow, rtt) = self.place(group, pair as u32 * count + i, core, shares)?;
                if self.is_rerouted(group) {
                    self.demands.extend(self.demand(placing, core, number, (pair, i), of_flow, rtt));
                }
                longest = longest.max(rtt);
                shortest = shortest.min(rtt);
                sum_of_pair_s += rtt.as_secs_f64();
                for (acks, shares) in [(false, shares[0]), (true, shares[1])] {
                    for link in links_of(shares) {
                        self.note_rtt(link, acks, rtt, &laws, placing.lasts());
                    }
                }
                of_pair.push(of_flow);
            }
            let rows = placing.list.map_or(1.0, |list| f64::from(list.rows[pair]));
            sum_s += sum_of_pair_s * rows * (f64::from(count) / f64::from(here.max(1)));
            routes.push(of_pair);
        }
        let rows = placing.list.map_or(ways.len().max(1), |list| list.flows.rows.len());
        Ok(Routed { routes, longest, shortest, mean_s: sum_s / (f64::from(count.max(1)) * rows as f64) })
    }

    /// The demand of a flow whose routes follow outages.
    fn demand(
        &self,
        placing: &Placing<'_>,
        core: &Core,
        group: usize,
        (pair, flow): (usize, u32),
        routes: FlowRoutes,
        rtt: Time,
    ) -> Option<Demand> {
        let ways = &placing.ways[pair];
        let (there, back) = &ways[(flow as usize).min(ways.len() - 1)];
        let (from, to) = (*back.nodes.last()?, *there.nodes.last()?);
        let index = if placing.group.pattern.is_some() { pair as u64 } else { u64::from(flow) };
        let hashed = match placing.list {
            Some(_) => Cow::Owned(listed_name(placing.group, &core.names[from], &core.names[to])),
            None => Cow::Borrowed(&placing.name),
        };
        let inner = there.links.iter().chain(&back.links);
        let inner = inner.fold(Time::ZERO, |sum, link| sum + self.links[*link as usize].delay);
        Some(Demand {
            from,
            to,
            flow: Hashed::new(self.seed, &hashed, index),
            routes,
            group,
            pair: pair as u32,
            lasts: placing.lasts(),
            access: rtt.saturating_sub(inner),
        })
    }

    /// Notes the RTT of a flow that takes a link, for the link's router.
    pub(super) fn note_rtt(&mut self, link: u32, acks: bool, rtt: Time, laws: &[&SenderSpec], lasts: bool) {
        let rtts = &mut self.rtts[link as usize];
        rtts.longest(rtt);
        let router = self.links[link as usize].router.header();
        let mut obeying = laws.iter().filter(|law| law.header() == router).peekable();
        if router != Header::Plain && obeying.peek().is_some() {
            rtts.add(acks, rtt, lasts, obeying.any(|law| law.traits().sends_at_once));
        }
    }

    /// How long each flow sends new data; empty where that is not limited.
    fn lifetimes(&self, placing: &Placing<'_>) -> Vec<Time> {
        let Some(lifetime) = placing.group.lifetime else { return Vec::new() };
        let mut draws = Stream::new(self.seed, &format!("lifetime/{}", placing.name));
        let longer = |_| lifetime + placing.group.lifetime_spread.scale(draws.uniform());
        (0..placing.count).map(longer).collect()
    }

    /// Sets the arrivals of a group's flows: at random, from a list, or at planned times.
    fn arrivals_of(
        &self,
        placing: &Placing<'_>,
        core: &Core,
        routes: Vec<Vec<FlowRoutes>>,
        plan: &mut GroupPlan,
        network: &mut Network,
    ) -> Result<()> {
        let Placing { group, name, list, .. } = placing;
        let id = network.groups.len() as u32;
        let arrival_plan = |routes, comes| ArrivalPlan {
            group: id,
            routes,
            comes,
            start: group.start.of(0),
            stop: group.stop.unwrap_or(self.scenario.duration),
        };
        if let Some(spec) = &group.web {
            let (arrivals, sizes) = self.web(group, spec, name, self.shared(group, core, placing.ways))?;
            plan.mean_size_bytes = Some(sizes.mean_bytes());
            let wire = sizes.mean_wire_bytes(self.scenario.payload(), self.scenario.header.get());
            let places: BTreeMap<u32, usize> = plan.links.iter().copied().zip(0..).collect();
            let mut turns = 0.0;
            for (share, way) in placing.data_shares() {
                turns += share;
                for at in way.iter().filter_map(|link| places.get(link)) {
                    plan.offered_bps[*at] += share;
                }
            }
            let offered = 8.0 * wire * arrivals.flows_per_s();
            plan.offered_bps.iter_mut().for_each(|share| *share = offered * (*share / turns));
            let routes = vec![routes.into_iter().flatten().collect::<VecDeque<_>>()];
            network.arrivals.push(arrival_plan(routes, Comes::Random { arrivals, sizes }));
        } else if let Some(list) = list {
            plan.mean_size_bytes = Some(list.flows.mean_bytes());
            let routes = routes.into_iter().map(VecDeque::from).collect();
            let arriving = arrival_plan(routes, Comes::Listed { list: list.flows.clone(), next: 0 });
            self.offered(plan, placing, list, &arriving, network);
            network.arrivals.push(arriving);
        } else {
            let mut starts = Stream::new(self.seed, &format!("start/{name}"));
            for (i, routes) in routes.into_iter().flatten().enumerate() {
                let offset = group.spread.scale(starts.uniform());
                let start = group.start.of(i) + group.every * i as u64 + offset;
                network.flows.push(FlowPlan { group: id, index: i as u32, routes, start });
            }
        }
        Ok(())
    }

    /// Computes the mean load that a list offers to each link, and warns of flows that would start too late.
    fn offered(
        &self,
        plan: &mut GroupPlan,
        placing: &Placing<'_>,
        list: &Placed,
        arriving: &ArrivalPlan,
        network: &mut Network,
    ) {
        let (payload, header) = (self.scenario.payload(), self.scenario.header.get());
        let stop = arriving.stop.min(self.scenario.duration);
        let mut bytes = vec![0.0; list.ways.len()];
        let mut late = 0;
        for row in &list.flows.rows {
            if arriving.start.saturating_add(row.start) < stop {
                bytes[row.pair as usize] += wire_bytes(row.size, payload, header);
            } else {
                late += 1;
            }
        }
        let per_s = 8.0 / self.scenario.duration.as_secs_f64();
        for ((pair, ways), bytes) in list.ways.iter().enumerate().zip(bytes) {
            let mut add = |way: &Way, bps: f64| {
                for link in &way.links {
                    if let Ok(at) = plan.links.binary_search(link) {
                        plan.offered_bps[at] += bps;
                    }
                }
            };
            let bps = bytes * per_s;
            match placing.spread.get(pair) {
                Some(both) => both[0].iter().for_each(|(share, way)| add(way, bps * share)),
                None => ways.iter().for_each(|(there, _)| add(there, bps / ways.len() as f64)),
            }
        }
        if late > 0 {
            let spec = &self.scenario.flows[plan.spec];
            network.warnings.push(self.late(&plan.name, spec, list, arriving.start, late));
        }
    }

    /// The hops that a group's flows take: name, and paths there and back. With `each_hop` there are several.
    fn hops(&mut self, spec: usize, group: &FlowGroup, core: &Core) -> Result<Vec<Hop<'static>>> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        let mut hops = Vec::new();
        for Leg { name, pairs } in self.legs(spec, group, core)? {
            let count = group.count.unwrap_or(if group.web.is_some() { ARRIVAL_PAIRS } else { 1 });
            let mut all = Vec::with_capacity(pairs.len());
            for (number, ends) in (0..).zip(&pairs) {
                let (from, to) = (&core.names[ends.0], &core.names[ends.1]);
                if ends.0 == ends.1 {
                    return error(key("to"), format!("is \"{to}\", where the flow starts"));
                }
                let hashed = |index| Hashed::new(self.seed, &name, index);
                let ways = match group.pattern {
                    Some(_) => core.ways(&self.links, ends.0, ends.1, hashed(number)).map(|ways| vec![ways]),
                    None => {
                        let flows = (0..u64::from(count.clamp(1, MOST_FLOWS))).map(hashed);
                        core.all_ways(&self.links, *ends, flows)
                    }
                };
                let Some(ways) = ways else {
                    let message = if core.leads(&self.links, ends.0, ends.1) {
                        format!("there is no path for acks from {to} to {from}")
                    } else {
                        format!("there is no path from {from} to {to}")
                    };
                    return error(key("to"), message);
                };
                self.check_ways(group, &ways)?;
                all.push(ways);
            }
            self.spread_over(core, &pairs);
            hops.push((name, Cow::Owned(all)));
        }
        Ok(hops)
    }

    /// Notes the links that are one of several equal-cost choices for flows between these nodes.
    pub(super) fn spread_over(&mut self, core: &Core, pairs: &[(usize, usize)]) {
        if let Some(reach) = core.reach(&self.links, pairs.iter().copied()) {
            self.parallel.extend(reach.parallel);
        }
    }

    /// Capacity of which the load of flows that arrive at random is a fraction, bytes per second.
    fn shared(&self, group: &FlowGroup, core: &Core, ways: &[Ways]) -> f64 {
        let rate = |link: &u32| self.mean_rate(&self.links[*link as usize].capacity).bytes_per_sec();
        let there = || ways.iter().flatten().map(|(there, _)| there);
        if group.pattern.is_none() {
            return there().flat_map(|way| &way.links).map(rate).fold(f64::MAX, f64::min);
        }
        core.hosts_carry(ways.iter().flatten(), rate)
    }

    /// The name of a group, checked.
    fn named(&self, spec: usize, group: &FlowGroup) -> Result<String> {
        if group.name.is_empty() || group.name.contains('.') {
            return error(format!("flows[{spec}].name"), "must not be empty nor contain a dot");
        }
        Ok(group.name.clone())
    }

    /// The legs of a group: names and pairs of nodes.
    pub(super) fn legs(&self, spec: usize, group: &FlowGroup, core: &Core) -> Result<Vec<Leg>> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        let name = self.named(spec, group)?;
        if group.each_hop && self.scenario.parking_lot.is_none() {
            return error(key("each_hop"), "is for a parking_lot only");
        }
        let mut legs = if group.pattern.is_some() {
            vec![Leg { name, pairs: self.pattern(group, core)? }]
        } else if group.each_hop {
            (0..core.names.len() - 1)
                .map(|i| Leg { name: format!("{}.{}", group.name, i + 1), pairs: vec![(i, i + 1)] })
                .collect()
        } else {
            let from = core.end(&group.from, &core.first).map_err(|m| ScenarioError::new(key("from"), m))?;
            let to = core.end(&group.to, &core.last).map_err(|m| ScenarioError::new(key("to"), m))?;
            vec![Leg { name, pairs: vec![(from, to)] }]
        };
        if group.reverse {
            legs.iter_mut().flat_map(|leg| &mut leg.pairs).for_each(|(from, to)| std::mem::swap(from, to));
        }
        Ok(legs)
    }

    /// Assigns access links and routes to one flow. Returns them with its propagation RTT.
    fn place(
        &mut self,
        group: &FlowGroup,
        i: u32,
        core: &Core,
        [there, back]: [&[Share<'_>]; 2],
    ) -> Result<(FlowRoutes, Time)> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        let inner = self.delay_of(there) + self.delay_of(back);
        let wanted = match &group.rtt {
            Some(OneOrMany::One(t)) => Some(*t),
            Some(OneOrMany::Many(list)) => match list.get(i as usize) {
                Some(t) => Some(*t),
                None => {
                    return error(
                        key("rtt"),
                        format!("has {} entries; it needs one for each flow", list.len()),
                    );
                }
            },
            None => core.rtt,
        };
        let Some(access) = group.access.or(core.access) else {
            if group.rtt.is_some() {
                return error(key("rtt"), "needs access links to lengthen; give access = { rate, delay }");
            }
            return Ok((
                FlowRoutes { data: self.routes(None, there, None), acks: self.routes(None, back, None) },
                inner,
            ));
        };
        check_rate(&key("access.rate"), access.rate)?;
        let sender_delay = match wanted {
            None => access.delay,
            Some(rtt) => {
                let least = inner + access.delay * 2;
                match rtt.as_ps().checked_sub(least.as_ps()) {
                    Some(rest) => Time::from_ps(rest / 2),
                    // Halving odd picoseconds may make the topology's own RTT a few picoseconds too short.
                    None if least.as_ps() - rtt.as_ps() <= 8 => Time::ZERO,
                    None => return error(key("rtt"), format!("is {rtt}; the path alone takes {least}")),
                }
            }
        };
        let mut link = |delay| {
            self.access.push(Access { rate: access.rate, delay });
            (self.links.len() + self.access.len() - 1) as u32
        };
        let (up, down) = (link(sender_delay), link(access.delay));
        let (ack_up, ack_down) = (link(access.delay), link(sender_delay));
        let rtt = inner + (sender_delay + access.delay) * 2;
        let data = self.routes(Some(up), there, Some(down));
        Ok((FlowRoutes { data, acks: self.routes(Some(ack_up), back, Some(ack_down)) }, rtt))
    }

    pub(super) fn route(&mut self, first: Option<u32>, way: &Way, last: Option<u32>) -> u32 {
        let at = self.routes.len() as u32;
        self.routes.extend(first);
        self.routes.extend_from_slice(&way.links);
        self.routes.extend(last);
        self.routes.push(END);
        if !self.cells.is_empty() {
            self.receivers.resize(at as usize + usize::from(first.is_some()), NOBODY);
            for (link, node) in way.links.iter().zip(&way.nodes) {
                self.receivers.push(self.receiver(*link, *node));
            }
            self.receivers.resize(self.routes.len(), NOBODY);
        }
        at
    }

    fn web(
        &self,
        group: &FlowGroup,
        web: &Web,
        name: &str,
        shared: f64,
    ) -> Result<(ArrivalProcess, SizeLaw)> {
        of_full(format!("flows.{}.web", group.name), "flows that arrive at random")?;
        let key = |k: &str| format!("flows.{}.web.{k}", group.name);
        let mut sizes =
            SizeLaw::new(&web.sizes, self.loaded, Stream::new(self.seed, &format!("size/{name}")))
                .map_err(|(k, m)| ScenarioError::new(key(k), m))?;
        let flows_per_s = match (web.flows_per_s, web.load) {
            (Some(f), None) if f.is_finite() && f > 0.0 => f,
            (Some(f), None) => return error(key("flows_per_s"), format!("is {f}; it must be above 0")),
            (None, Some(load)) => {
                if load.get() <= 0.0 || load.get() >= 1.0 {
                    return error(key("load"), format!("is {}; it must be above 0 and below 1", load.get()));
                }
                load.get() * shared
                    / sizes.mean_wire_bytes(self.scenario.payload(), self.scenario.header.get())
            }
            _ => return error(key("flows_per_s"), "give exactly one of flows_per_s and load"),
        };
        if flows_per_s * self.scenario.duration.as_secs_f64() > MOST_ARRIVALS {
            let message = format!("asks for {flows_per_s} flows/s; a run may have {MOST_ARRIVALS} flows");
            return error(key("flows_per_s"), message);
        }
        let mut arrivals = ArrivalProcess::new(
            &web.arrivals,
            flows_per_s,
            Stream::new(self.seed, &format!("arrival/{name}")),
        )
        .map_err(|(k, m)| ScenarioError::new(key(k), m))?;
        if web.load.is_some() {
            let stop = group.stop.unwrap_or(self.scenario.duration).min(self.scenario.duration);
            let packets = (self.scenario.payload(), self.scenario.header.get());
            let bytes_per_s = flows_per_s * sizes.mean_wire_bytes(packets.0, packets.1);
            let start = group.start.of(0);
            let warm = self.scenario.warmup.clamp(start, stop);
            let spans_s = [warm - start, stop - warm].map(Time::as_secs_f64);
            hold_to_load(&mut arrivals, &mut sizes, spans_s, bytes_per_s, packets);
        }
        Ok((arrivals, sizes))
    }
}
