//! Flows: what may be asked of a group, where its hosts hang, which way its packets go.

use super::lists::{Placed, listed, listed_name};
use super::outages::Demand;
use super::paths::{Core, Hashed, Way, Ways};
use super::plan::{Comes, END, FlowPlan, GroupPlan, LinkPlan, NOBODY, Network, Path, WebPlan};
use super::{Builder, MOST_FLOWS, MOST_WEB_FLOWS, Result, error, of_full};
use crate::ScenarioError;
use crate::packet::Labels;
use crate::random::Stream;
use crate::scenario::{Access, FlowGroup, OneOrMany, Receiver, Web, check_rate};
use crate::workload::{ArrivalProcess, SizeLaw, hold_to_load, wire_bytes};
use flowstamp_laws::registry::{Header, SenderSpec};
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::transport;
use flowstamp_laws::units::Time;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of hosts that flows that arrive at random have between two nodes.
pub(super) const WEB_PAIRS: u32 = 10;

/// The name of a group in results, and the ways there and back that its flows go, by the pair of nodes.
type Hop<'a> = (String, Cow<'a, [Ways]>);

/// Between which nodes the flows of a group go, and what they are called there: data from the first to the second.
pub(super) struct Leg {
    pub name: String,
    pub pairs: Vec<(usize, usize)>,
}

/// What to say of timers that a scenario sets, where they cannot work on a path of this RTT or beside one another.
fn timers_at_odds(name: &str, t: &transport::Params, rtt: Time) -> Option<String> {
    let key = |k: &str| format!("flows.{name}.transport.{k}");
    if let Some(max_rto) = t.max_rto.filter(|max_rto| *max_rto <= rtt) {
        let message = format!("is {max_rto}, but the flows' RTT is {rtt}, so that every packet times out");
        return Some(format!("{}: {message}; leave it out, or give more than the RTT", key("max_rto")));
    }
    let patience = t.min_rto.max(rtt);
    (t.delayed_acks && t.delayed_ack_timeout >= patience).then(|| {
        format!(
            "{}: is {}, but senders may time out after {patience}, before a delayed ack comes; give less than min_rto, {}",
            key("delayed_ack_timeout"),
            t.delayed_ack_timeout,
            t.min_rto
        )
    })
}

impl Builder<'_> {
    /// Places one group; returns the longest round-trip propagation time of its flows.
    pub(super) fn group(
        &mut self,
        spec: usize,
        group: &FlowGroup,
        core: &mut Core,
        network: &mut Network,
    ) -> Result<Time> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
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
        let header = self.scenario.header.get();
        let follows = self.is_rerouted(group);
        let mut longest = Time::ZERO;
        for (name, ways) in legs {
            let id = network.groups.len() as u32;
            let arrives = group.web.is_some() || list.is_some();
            let lasts = !arrives && group.size.is_none() && !group.produces() && group.lifetime.is_none();
            // Without hosts of their own all flows between two nodes take the same way.
            let apart = group.access.or(core.access).is_some() || list.is_none();
            let count = group.count.unwrap_or(if arrives && apart { WEB_PAIRS } else { 1 });
            let least = u32::from(arrives);
            let count = if group.pattern.is_some() { 1 } else { count };
            let pairs = u64::from(count) * ways.len() as u64;
            if count < least || pairs > u64::from(MOST_FLOWS) {
                let of =
                    if list.is_some() { ", which the pairs of nodes of its list take together" } else { "" };
                return error(
                    key("count"),
                    format!("is {count}; it must be at least {least} and at most {MOST_FLOWS}{of}"),
                );
            }
            let flows = if list.is_some() { u64::from(count) } else { pairs };
            let entries = [("rtt", group.rtt.as_ref()), ("start", Some(&group.start))];
            for (k, given) in entries {
                if let Some(OneOrMany::Many(list)) = given {
                    if list.len() as u64 != flows {
                        return error(
                            key(k),
                            format!("has {} entries; it needs one for each of {flows} flows", list.len()),
                        );
                    }
                }
            }
            let mut starts = Stream::new(self.seed, &format!("start/{name}"));
            let mut paths = Vec::with_capacity(ways.len());
            let (mut longest_of_group, mut shortest) = (Time::ZERO, Time::MAX);
            let mut rtts_s = 0.0;
            for (pair, ways) in ways.iter().enumerate() {
                let laws: Vec<&SenderSpec> = match &list {
                    Some(list) => {
                        let laws = list.flows.uses.range((pair as u32, 0)..=(pair as u32, u32::MAX));
                        laws.map(|((_, law), _)| &list.flows.laws[*law as usize]).collect()
                    }
                    None => vec![&group.law],
                };
                // Rows of a list without hosts of their own take the ways of hashed flows in turn.
                let here = if group.count.is_none() && !apart { ways.len() as u32 } else { count };
                let mut of_pair = Vec::with_capacity(here as usize);
                let mut rtts_of_pair_s = 0.0;
                for i in 0..here {
                    let (there, back) = &ways[(i as usize).min(ways.len() - 1)];
                    let (path, rtt) = self.place(group, pair as u32 * count + i, core, there, back)?;
                    if let (true, Some(from), Some(to)) = (follows, back.nodes.last(), there.nodes.last()) {
                        let index = if group.pattern.is_some() { pair as u64 } else { u64::from(i) };
                        let hashed = match &list {
                            Some(_) => listed_name(group, &core.names[*from], &core.names[*to]),
                            None => name.clone(),
                        };
                        let inner = there.links.iter().chain(&back.links);
                        let inner =
                            inner.fold(Time::ZERO, |sum, link| sum + self.links[*link as usize].delay);
                        self.demands.push(Demand {
                            from: *from,
                            to: *to,
                            flow: Hashed::new(self.seed, &hashed, index),
                            path,
                            group: network.groups.len(),
                            pair: pair as u32,
                            lasts,
                            access: rtt.saturating_sub(inner),
                        });
                    }
                    longest_of_group = longest_of_group.max(rtt);
                    shortest = shortest.min(rtt);
                    rtts_of_pair_s += rtt.as_secs_f64();
                    for (acks, route) in [(false, there), (true, back)] {
                        for link in &route.links {
                            let rtts = &mut self.rtts[*link as usize];
                            rtts.longest(rtt);
                            let router = self.links[*link as usize].router.header();
                            let mut obeying = laws.iter().filter(|law| law.header() == router).peekable();
                            if router != Header::Plain && obeying.peek().is_some() {
                                rtts.add(acks, rtt, lasts, obeying.any(|law| law.sends_at_once()));
                            }
                        }
                    }
                    of_pair.push(path);
                }
                let rows = list.as_ref().map_or(1.0, |list| f64::from(list.rows[pair]));
                rtts_s += rtts_of_pair_s * rows * (f64::from(count) / f64::from(here.max(1)));
                paths.push(of_pair);
            }
            longest = longest.max(longest_of_group);
            let timers = |rtt| [group.transport.first_rto(rtt), group.transport.last_rto(rtt)];
            let [initial_rto, max_rto] = timers(longest_of_group);
            let usual = timers(Time::ZERO);
            for (k, time, usual) in [("initial_rto", initial_rto, usual[0]), ("max_rto", max_rto, usual[1])] {
                if time != usual {
                    network.assumed.insert(format!("flows.{name}.transport.{k}"), time.to_string());
                }
            }
            network.warnings.extend(timers_at_odds(&name, &group.transport, longest_of_group));
            let rows = list.as_ref().map_or(ways.len().max(1), |list| list.flows.rows.len());
            let all = || ways.iter().flatten().map(|(there, _)| &there.links);
            let several = all().nth(1).is_some();
            let mut links: Vec<u32> = all().flatten().copied().collect();
            if several || list.is_some() {
                links.sort_unstable();
                links.dedup();
            }
            self.carries.extend(&links);
            let made = self.produces(group, &links)?;
            if group.send_buffer.is_some() && group.access.or(core.access).is_none() {
                return error(
                    key("send_buffer"),
                    "needs a host's link to wait for; give access = { rate, delay }",
                );
            }
            if group.law.datagrams()
                && group.jitter.is_none()
                && made.send_jitter > group.transport.send_jitter
            {
                network.assumed.insert(format!("flows.{name}.jitter"), made.send_jitter.to_string());
            }
            let mut plan = GroupPlan {
                name: name.clone(),
                spec,
                laws: list.as_ref().map_or_else(|| vec![group.law.clone()], |list| list.flows.laws.clone()),
                ways: all().collect::<BTreeSet<_>>().into_iter().cloned().collect(),
                governs: None,
                path_rtt_s: rtts_s / (f64::from(count.max(1)) * rows as f64),
                mean_size_bytes: group.size.map(flowstamp_laws::Bytes::as_f64),
                offered_bps: vec![0.0; links.len()],
                links,
                initial_rto,
                max_rto,
                lifetimes: Vec::new(),
                list: list.as_ref().map(|list| list.flows.clone()),
                access: group.access.or(core.access).map(|access| access.rate),
                one_rtt: shortest == longest_of_group,
                phase: None,
                application: made.process,
                rate: made.rate,
                send_jitter: made.send_jitter,
            };
            if let Some(lifetime) = group.lifetime {
                let mut draws = Stream::new(self.seed, &format!("lifetime/{name}"));
                let longer = |_| lifetime + group.lifetime_spread.scale(draws.uniform());
                plan.lifetimes = (0..count).map(longer).collect();
            }
            let web = |comes| WebPlan {
                group: id,
                paths: Vec::new(),
                comes,
                start: group.start.of(0),
                stop: group.stop.unwrap_or(self.scenario.duration),
            };
            if let Some(spec) = &group.web {
                let (arrivals, sizes) = self.web(group, spec, &name, self.shared(group, core, &ways))?;
                plan.mean_size_bytes = Some(sizes.mean_bytes());
                let wire = sizes.mean_wire_bytes(self.scenario.payload(), header);
                let turns = all().count() as f64;
                for link in all().flatten() {
                    if let Some(at) = plan.links.iter().position(|l| l == link) {
                        plan.offered_bps[at] += 1.0;
                    }
                }
                let offered = 8.0 * wire * arrivals.flows_per_s();
                plan.offered_bps.iter_mut().for_each(|share| *share = offered * (*share / turns));
                let paths = vec![paths.into_iter().flatten().collect()];
                network.web.push(WebPlan { paths, ..web(Comes::Random { arrivals, sizes }) });
            } else if let Some(list) = &list {
                plan.mean_size_bytes = Some(list.flows.mean_bytes());
                let web = WebPlan { paths, ..web(Comes::Listed { list: list.flows.clone(), next: 0 }) };
                self.offered(&mut plan, list, &web, network);
                network.web.push(web);
            } else {
                for (i, path) in paths.into_iter().flatten().enumerate() {
                    let offset = group.spread.scale(starts.uniform());
                    let start = group.start.of(i) + group.every * i as u64 + offset;
                    network.flows.push(FlowPlan { group: id, index: i as u32, path, start });
                }
            }
            network.groups.push(plan);
        }
        Ok(longest)
    }

    /// What a list brings to each link on average, and whether some of it comes too late.
    fn offered(&self, plan: &mut GroupPlan, list: &Placed, web: &WebPlan, network: &mut Network) {
        let (payload, header) = (self.scenario.payload(), self.scenario.header.get());
        let stop = web.stop.min(self.scenario.duration);
        let mut bytes = vec![0.0; list.ways.len()];
        let mut late = 0;
        for row in &list.flows.rows {
            if web.start.saturating_add(row.start) < stop {
                bytes[row.pair as usize] += wire_bytes(row.size, payload, header);
            } else {
                late += 1;
            }
        }
        let per_s = 8.0 / self.scenario.duration.as_secs_f64();
        for (ways, bytes) in list.ways.iter().zip(bytes) {
            for link in ways.iter().flat_map(|(there, _)| &there.links) {
                if let Ok(at) = plan.links.binary_search(link) {
                    plan.offered_bps[at] += bytes * per_s / ways.len() as f64;
                }
            }
        }
        if late > 0 {
            let all = list.flows.rows.len();
            let last = list.flows.order.last().map_or(Time::ZERO, |row| list.flows.rows[*row as usize].start);
            let last = web.start.saturating_add(last);
            let spec = &self.scenario.flows[plan.spec];
            let key =
                if spec.stop.is_some_and(|stop| stop < self.scenario.duration) { "stop" } else { "duration" };
            network.warnings.push(format!(
                "flows.{}.list: {late} of {all} flows would start at {stop} or later, and do not; set {key} to more than {last}",
                plan.name
            ));
        }
    }

    /// What each law that a list names asks of its group, and of the links on its flows' ways.
    fn check_listed(&self, group: &FlowGroup, list: &Placed) -> Result<()> {
        let Some(file) = &group.list else { return Ok(()) };
        for ((pair, law), at) in &list.flows.uses {
            let group = FlowGroup { law: list.flows.laws[*law as usize].clone(), ..group.clone() };
            let checked =
                self.check_group(&group).and_then(|()| self.check_ways(&group, &list.ways[*pair as usize]));
            if let Err(e) = checked {
                let key = e.key.rsplit('.').next().unwrap_or_default();
                return Err(listed(&group, file, &format!("{at}: {key}: {}", e.message)));
            }
        }
        Ok(())
    }

    /// Each hop that the flows of a group go by itself: its name, and the ways there and back.
    fn hops(&mut self, spec: usize, group: &FlowGroup, core: &Core) -> Result<Vec<Hop<'static>>> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        let mut hops = Vec::new();
        for Leg { name, pairs } in self.legs(spec, group, core)? {
            let count = group.count.unwrap_or(if group.web.is_some() { WEB_PAIRS } else { 1 });
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

    fn check_ways(&self, group: &FlowGroup, ways: &Ways) -> Result<()> {
        ways.iter().try_for_each(|(there, _)| self.check_routers(group, &there.links))
    }

    /// Notes which links flows between these nodes might take beside others.
    pub(super) fn spread_over(&mut self, core: &Core, pairs: &[(usize, usize)]) {
        let mut sources: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (from, to) in pairs {
            sources.entry(*to).or_default().insert(*from);
        }
        for (to, from) in sources {
            if let Some(reach) = core.reach(&self.links, &from, to) {
                self.parallel.extend(reach.parallel);
            }
        }
    }

    /// What the load of flows that arrive at random is a share of, bytes per second.
    fn shared(&self, group: &FlowGroup, core: &Core, ways: &[Ways]) -> f64 {
        let rate = |link: &u32| self.mean_rate(&self.links[*link as usize].capacity).bytes_per_sec();
        let there = || ways.iter().flatten().map(|(there, _)| there);
        if group.pattern.is_none() {
            return there().flat_map(|way| &way.links).map(rate).fold(f64::MAX, f64::min);
        }
        core.hosts_carry(ways.iter().flatten(), rate)
    }

    /// The name of a group, which is not empty.
    fn named(&self, spec: usize, group: &FlowGroup) -> Result<String> {
        if group.name.is_empty() || group.name.contains('.') {
            return error(format!("flows[{spec}].name"), "must not be empty nor contain a dot");
        }
        Ok(group.name.clone())
    }

    /// Between which nodes the flows of a group go.
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

    fn check_group(&self, group: &FlowGroup) -> Result<()> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        if usize::from(group.label) >= Labels::COUNT {
            let most = Labels::COUNT - 1;
            return error(
                key("label"),
                format!("is {}; it must be 0 to {most}, the greatest goes first", group.label),
            );
        }
        let starts = match &group.start {
            OneOrMany::One(start) => std::slice::from_ref(start),
            OneOrMany::Many(starts) => {
                let other = [
                    ("every", group.every > Time::ZERO),
                    ("web", group.web.is_some()),
                    ("list", group.list.is_some()),
                ];
                if let Some((k, _)) = other.iter().find(|o| o.1) {
                    let message =
                        format!("says when each flow starts, and so does {k}; leave out one of them");
                    return error(key("start"), message);
                }
                starts
            }
        };
        let latest = starts.iter().max().copied().unwrap_or_default();
        if latest >= self.scenario.duration {
            return error(
                key("start"),
                format!("is {latest}; it must be before duration, {}", self.scenario.duration),
            );
        }
        if group.stop.is_some_and(|s| s <= latest) {
            return error(key("stop"), format!("must be after start, {latest}"));
        }
        match group.lifetime {
            Some(Time::ZERO) => return error(key("lifetime"), "is 0s; it must be longer"),
            None if group.lifetime_spread > Time::ZERO => {
                return error(key("lifetime"), "is missing; lifetime_spread is what flows last beyond it");
            }
            _ => {}
        }
        if let Some(rate) = group.rate {
            check_rate(&key("rate"), rate)?;
        }
        self.check_application(group)?;
        if group.size.is_some_and(|s| s.get() == 0) {
            return error(key("size"), "is 0B; it must be larger");
        }
        let given = group.size.is_some() || group.produces() || group.lifetime.is_some();
        if group.web.is_some() && (given || group.every > Time::ZERO) {
            return error(key("web"), "sets sizes and arrivals; leave out size, rate, lifetime and every");
        }
        if group.law.datagrams() {
            if !group.produces() {
                let message = format!(
                    "is missing; \"{}\" sends at the application's rate, such as \"2Mbps\", or give application",
                    group.law.name()
                );
                return error(key("rate"), message);
            }
            let given = [("size", group.size.is_some()), ("web", group.web.is_some())];
            if let Some((k, _)) = given.iter().find(|(_, given)| *given) {
                let message = format!(
                    "is for flows that end; \"{}\" hears of nothing that came, leave it out",
                    group.law.name()
                );
                return error(key(k), message);
            }
        }
        group.law.check().map_err(|(k, m)| ScenarioError::new(key(&format!("law.{k}")), m))?;
        let t = &group.transport;
        let max_rto = t.last_rto(Time::ZERO);
        let timeouts = [("initial_rto", t.initial_rto), ("min_rto", Some(t.min_rto)), ("max_rto", t.max_rto)];
        for (k, time) in timeouts {
            let Some(time) = time else { continue };
            if time < Time::from_micros(1) {
                return error(key(&format!("transport.{k}")), format!("is {time}; it must be 1us or longer"));
            }
        }
        for (k, time) in timeouts {
            if let Some(time) = time.filter(|time| *time > max_rto) {
                let message = format!("is {time}; it must be at most max_rto, {max_rto}");
                return error(key(&format!("transport.{k}")), message);
            }
        }
        if let Some(tick) = t.tick.filter(|tick| !(Time::from_micros(1)..=Time::from_secs(1)).contains(tick))
        {
            return error(key("transport.tick"), format!("is {tick}; it must be 1us to 1s"));
        }
        if t.send_jitter > Time::from_secs(1) {
            return error(
                key("transport.send_jitter"),
                format!("is {}; it must be at most 1s", t.send_jitter),
            );
        }
        if t.recovery == Some(Recovery::Count) && !group.law.needs_router() {
            let message = format!(
                "is \"count\", which tells the law of no loss; \"{}\" must hear of them, where it does without routers: \
                 leave it out",
                group.law.name()
            );
            return error(key("transport.recovery"), message);
        }
        let window = group.transport.initial_window;
        if !(1.0..=65_536.0).contains(&window) {
            return error(
                key("transport.initial_window"),
                format!("is {window}; it must be 1 to 65536 packets"),
            );
        }
        Ok(())
    }

    /// A flow whose law obeys routers needs one on its path that writes into its header: nothing else would limit it.
    fn check_routers(&self, group: &FlowGroup, route: &[u32]) -> Result<()> {
        let header = group.law.header();
        if group.receiver == Receiver::Tcp && !group.law.asks_receiver() {
            let name = group.law.name();
            return error(
                format!("flows.{}.receiver", group.name),
                format!(
                    "is \"tcp\", which echoes nothing, but \"{name}\" obeys what comes back; leave it out, or take a law with negotiate = true"
                ),
            );
        }
        let has_one = route.iter().any(|l| self.links[*l as usize].router.header() == header);
        if group.law.needs_router() && !has_one {
            let name = group.law.name();
            let router = group.law.router().map_or(header.name(), |router| router.name());
            return error(
                format!("flows.{}.law", group.name),
                format!("\"{name}\" obeys routers, but no link on the path has router = \"{router}\""),
            );
        }
        Ok(())
    }

    /// Gives one flow its access links and its path; returns its round-trip propagation time too.
    fn place(
        &mut self,
        group: &FlowGroup,
        i: u32,
        core: &Core,
        there: &Way,
        back: &Way,
    ) -> Result<(Path, Time)> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        let delay_of = |links: &[LinkPlan], route: &[u32]| {
            route.iter().fold(Time::ZERO, |sum, l| sum + links[*l as usize].delay)
        };
        let inner = delay_of(&self.links, &there.links) + delay_of(&self.links, &back.links);
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
                Path { data: self.route(None, there, None), acks: self.route(None, back, None) },
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
                    // Halving odd picoseconds may leave the topology's own RTT a few short.
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
        let data = self.route(Some(up), there, Some(down));
        Ok((Path { data, acks: self.route(Some(ack_up), back, Some(ack_down)) }, rtt))
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
        if flows_per_s * self.scenario.duration.as_secs_f64() > MOST_WEB_FLOWS {
            let message = format!("asks for {flows_per_s} flows/s; a run may have {MOST_WEB_FLOWS} flows");
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
