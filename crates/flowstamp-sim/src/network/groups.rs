//! Flows: what may be asked of a group, where its hosts hang, which way its packets go.

use super::paths::{Core, Way};
use super::plan::{END, FlowPlan, GroupPlan, LinkPlan, NOBODY, Network, Path, WebPlan};
use super::{Builder, MOST_FLOWS, MOST_WEB_FLOWS, Result, error, positive};
use crate::ScenarioError;
use crate::random::Stream;
use crate::scenario::{Access, FlowGroup, OneOrMany, Receiver, Web};
use crate::workload::{ArrivalProcess, SizeLaw};
use flowstamp_laws::registry::Header;
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::units::Time;

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
        let hops = self.legs(spec, group, core)?;
        let mut longest = Time::ZERO;
        for (name, from, to) in hops {
            let (a, b) = (core.nodes[&from], core.nodes[&to]);
            let no_path = || ScenarioError::new(key("to"), format!("there is no path from {from} to {to}"));
            if a == b {
                return error(key("to"), format!("is \"{to}\", where the flow starts"));
            }
            let there = core.path(&self.links, a, b).ok_or_else(no_path)?;
            let back = core.path(&self.links, b, a).ok_or_else(|| {
                ScenarioError::new(key("to"), format!("there is no path for acks from {to} to {from}"))
            })?;
            self.check_routers(group, &there.links)?;
            let id = network.groups.len() as u32;
            let count = group.count.unwrap_or(if group.web.is_some() { 10 } else { 1 });
            let least = u32::from(group.web.is_some());
            if !(least..=MOST_FLOWS).contains(&count) {
                return error(
                    key("count"),
                    format!("is {count}; it must be at least {least} and at most {MOST_FLOWS}"),
                );
            }
            if let Some(OneOrMany::Many(list)) = &group.rtt {
                if list.len() != count as usize {
                    return error(
                        key("rtt"),
                        format!("has {} entries; it needs one for each of {count} flows", list.len()),
                    );
                }
            }
            let mut starts = Stream::new(self.seed, &format!("start/{name}"));
            let mut paths = Vec::with_capacity(count as usize);
            let (mut longest_of_group, mut shortest) = (Time::ZERO, Time::MAX);
            let mut rtts_s = 0.0;
            let header = group.law.header();
            for i in 0..count {
                let (path, rtt) = self.place(group, i, core, &there, &back)?;
                longest_of_group = longest_of_group.max(rtt);
                shortest = shortest.min(rtt);
                rtts_s += rtt.as_secs_f64();
                for (acks, route) in [(false, &there), (true, &back)] {
                    for link in &route.links {
                        self.rtts[*link as usize].longest(rtt);
                        if header != Header::Plain && self.links[*link as usize].router.header() == header {
                            self.rtts[*link as usize].add(acks, rtt);
                        }
                    }
                }
                paths.push(path);
            }
            longest = longest.max(longest_of_group);
            let initial_rto = group.transport.first_rto(longest_of_group);
            if initial_rto != group.transport.first_rto(Time::ZERO) {
                network
                    .assumed
                    .insert(format!("flows.{name}.transport.initial_rto"), initial_rto.to_string());
            }
            let mut plan = GroupPlan {
                name: name.clone(),
                spec,
                law: group.law.clone(),
                links: there.links.clone(),
                governs: None,
                path_rtt_s: rtts_s / f64::from(count.max(1)),
                mean_size_bytes: group.size.map(flowstamp_laws::Bytes::as_f64),
                offered_bps: 0.0,
                initial_rto,
                lifetimes: Vec::new(),
                access: group.access.or(core.access).map(|access| access.rate),
                one_rtt: shortest == longest_of_group,
                phase: None,
            };
            if let Some(lifetime) = group.lifetime {
                let mut draws = Stream::new(self.seed, &format!("lifetime/{name}"));
                let longer = |_| lifetime + group.lifetime_spread.scale(draws.uniform());
                plan.lifetimes = (0..count).map(longer).collect();
            }
            if let Some(web) = &group.web {
                let web = self.web(group, web, id, &name, paths, &there.links)?;
                plan.mean_size_bytes = Some(web.sizes.mean_bytes());
                let wire = web.sizes.mean_wire_bytes(self.scenario.payload(), self.scenario.header.get());
                plan.offered_bps = 8.0 * wire * web.arrivals.flows_per_s();
                network.web.push(web);
            } else {
                for (i, path) in paths.into_iter().enumerate() {
                    let offset = group.spread.scale(starts.uniform());
                    let start = group.start + group.every * i as u64 + offset;
                    network.flows.push(FlowPlan { group: id, index: i as u32, path, start });
                }
            }
            network.groups.push(plan);
        }
        Ok(longest)
    }

    /// Between which nodes the flows of a group go, and what they are called there: data from the first to the second.
    pub(super) fn legs(
        &self,
        spec: usize,
        group: &FlowGroup,
        core: &Core,
    ) -> Result<Vec<(String, String, String)>> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        if group.name.is_empty() || group.name.contains('.') {
            return error(format!("flows[{spec}].name"), "must not be empty nor contain a dot");
        }
        if group.each_hop && self.scenario.parking_lot.is_none() {
            return error(key("each_hop"), "is for a parking_lot only");
        }
        let hops = if group.each_hop {
            (0..core.names.len() - 1)
                .map(|i| (format!("{}.{}", group.name, i + 1), format!("n{i}"), format!("n{}", i + 1)))
                .collect()
        } else {
            let end = |given: &Option<String>, default: &str, k: &str| match given {
                Some(n) if core.nodes.contains_key(n) => Ok(n.clone()),
                Some(n) => error(key(k), format!("\"{n}\" is no node; there are {}", core.names.join(", "))),
                None if default.is_empty() => {
                    error(key(k), format!("is missing; name one of {}", core.names.join(", ")))
                }
                None => Ok(default.to_owned()),
            };
            vec![(
                group.name.clone(),
                end(&group.from, &core.first, "from")?,
                end(&group.to, &core.last, "to")?,
            )]
        };
        Ok(hops
            .into_iter()
            .map(|(name, from, to)| if group.reverse { (name, to, from) } else { (name, from, to) })
            .collect())
    }

    fn check_group(&self, group: &FlowGroup) -> Result<()> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        if group.start >= self.scenario.duration {
            return error(
                key("start"),
                format!("is {}; it must be before duration, {}", group.start, self.scenario.duration),
            );
        }
        if group.stop.is_some_and(|s| s <= group.start) {
            return error(key("stop"), format!("must be after start, {}", group.start));
        }
        match group.lifetime {
            Some(Time::ZERO) => return error(key("lifetime"), "is 0s; it must be longer"),
            None if group.lifetime_spread > Time::ZERO => {
                return error(key("lifetime"), "is missing; lifetime_spread is what flows last beyond it");
            }
            _ => {}
        }
        if let Some(rate) = group.rate {
            positive(&key("rate"), rate)?;
        }
        if group.size.is_some_and(|s| s.get() == 0) {
            return error(key("size"), "is 0B; it must be larger");
        }
        let given = group.size.is_some() || group.rate.is_some() || group.lifetime.is_some();
        if group.web.is_some() && (given || group.every > Time::ZERO) {
            return error(key("web"), "sets sizes and arrivals; leave out size, rate, lifetime and every");
        }
        if group.law.datagrams() {
            if group.rate.is_none() {
                let message = format!(
                    "is missing; \"{}\" sends at the application's rate, such as \"2Mbps\"",
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
        let initial_rto = t.first_rto(Time::ZERO);
        for (k, time) in [("initial_rto", initial_rto), ("min_rto", t.min_rto), ("max_rto", t.max_rto)] {
            if time < Time::from_micros(1) {
                return error(key(&format!("transport.{k}")), format!("is {time}; it must be 1us or longer"));
            }
        }
        if t.min_rto > t.max_rto {
            return error(
                key("transport.min_rto"),
                format!("is {}; it must be at most max_rto, {}", t.min_rto, t.max_rto),
            );
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
        if t.send_jitter > Time::ZERO && (group.law.datagrams() || group.law.governs()) {
            let message =
                format!("is for flows with a window; \"{}\" has none, leave it out", group.law.name());
            return error(key("transport.send_jitter"), message);
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
            let (name, header) = (group.law.name(), header.name());
            return error(
                format!("flows.{}.law", group.name),
                format!("\"{name}\" obeys routers, but no link on the path has router = \"{header}\""),
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
        positive(&key("access.rate"), access.rate)?;
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

    fn route(&mut self, first: Option<u32>, way: &Way, last: Option<u32>) -> u32 {
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
        id: u32,
        name: &str,
        paths: Vec<Path>,
        route: &[u32],
    ) -> Result<WebPlan> {
        let key = |k: &str| format!("flows.{}.web.{k}", group.name);
        let sizes = SizeLaw::new(&web.sizes, self.loaded, Stream::new(self.seed, &format!("size/{name}")))
            .map_err(|(k, m)| ScenarioError::new(key(k), m))?;
        let flows_per_s = match (web.flows_per_s, web.load) {
            (Some(f), None) if f.is_finite() && f > 0.0 => f,
            (Some(f), None) => return error(key("flows_per_s"), format!("is {f}; it must be above 0")),
            (None, Some(load)) => {
                if load.get() <= 0.0 || load.get() >= 1.0 {
                    return error(key("load"), format!("is {}; it must be above 0 and below 1", load.get()));
                }
                let slowest = route
                    .iter()
                    .map(|l| self.mean_rate(&self.links[*l as usize].capacity).bytes_per_sec())
                    .fold(f64::MAX, f64::min);
                load.get() * slowest
                    / sizes.mean_wire_bytes(self.scenario.payload(), self.scenario.header.get())
            }
            _ => return error(key("flows_per_s"), "give exactly one of flows_per_s and load"),
        };
        if flows_per_s * self.scenario.duration.as_secs_f64() > MOST_WEB_FLOWS {
            let message = format!("asks for {flows_per_s} flows/s; a run may have {MOST_WEB_FLOWS} flows");
            return error(key("flows_per_s"), message);
        }
        let arrivals = ArrivalProcess::new(
            &web.arrivals,
            flows_per_s,
            Stream::new(self.seed, &format!("arrival/{name}")),
        )
        .map_err(|(k, m)| ScenarioError::new(key(k), m))?;
        Ok(WebPlan {
            group: id,
            paths,
            arrivals,
            sizes,
            start: group.start,
            stop: group.stop.unwrap_or(self.scenario.duration),
        })
    }
}
