//! From a scenario to a laid-out network: links, routes, flows and arrival processes, all checked.

use crate::error::ScenarioError;
use crate::load::Loaded;
use crate::random::Stream;
use crate::results::Named;
use crate::scenario::{Access, Buffer, FlowGroup, Graph, LinkRate, OneOrMany, Scenario, Web};
use crate::service::{Capacity, Trace};
use crate::workload::{ArrivalProcess, SizeLaw};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{Protocol, QueueSpec, RouterSpec, ShareSpec};
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::units::{Rate, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// One directed link between routers.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Name in results.
    pub name: String,
    /// What it can carry.
    pub capacity: Capacity,
    /// One-way propagation delay.
    pub delay: Time,
    /// Buffer.
    pub limit: Limit,
    /// Queue law.
    pub queue: QueueSpec,
    /// Router law.
    pub router: RouterSpec,
    /// How it shares the link.
    pub share: ShareSpec,
}

/// Where packets of a flow go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Index into [`Network::routes`] of the first link for data.
    pub data: u32,
    /// Likewise for acks.
    pub acks: u32,
}

/// Marks the end of a route: the packet has arrived.
pub const END: u32 = u32::MAX;

/// A flow that is known before the run.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Index into [`Network::groups`].
    pub group: u32,
    /// Number within the group.
    pub index: u32,
    /// Its path.
    pub path: Path,
    /// When it starts.
    pub start: Time,
}

/// Flows that arrive at random.
#[derive(Clone, Debug)]
pub struct WebPlan {
    /// Index into [`Network::groups`].
    pub group: u32,
    /// Host pairs, used in turn.
    pub paths: Vec<Path>,
    /// When flows arrive.
    pub arrivals: ArrivalProcess,
    /// How large they are.
    pub sizes: SizeLaw,
    /// Arrivals begin here.
    pub start: Time,
    /// And end here.
    pub stop: Time,
}

/// A group of flows with its name in results; `each_hop` makes several of one [`FlowGroup`].
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Name in results.
    pub name: String,
    /// Index into [`Scenario::flows`].
    pub spec: usize,
    /// Retransmission timeout before the first RTT sample.
    pub initial_rto: Time,
}

/// The network of a scenario.
#[derive(Clone, Debug)]
pub struct Network {
    /// Directed links between routers, numbered from 0.
    pub links: Vec<LinkPlan>,
    /// Directed access links, numbered on from the last router link. They have no law and drop nothing.
    pub access: Vec<Access>,
    /// Link numbers of all routes, each ended by [`END`].
    pub routes: Vec<u32>,
    /// Groups.
    pub groups: Vec<GroupPlan>,
    /// Flows known before the run.
    pub flows: Vec<FlowPlan>,
    /// Arrival processes.
    pub web: Vec<WebPlan>,
    /// What the scenario leaves open and follows from the paths, by key.
    pub assumed: Named<String>,
    /// What the scenario says and probably does not mean.
    pub warnings: Vec<String>,
}

/// A time constant this many times longer or shorter than the path's RTT is probably a mistake.
const FAR_OFF: f64 = 10.0;

/// The round-trip propagation times of flows over a link: of those whose protocol its router has, first of those whose data
/// pass, then of those whose acks do.
#[derive(Clone, Copy, Debug, Default)]
struct PathRtts([(u64, u32); 2]);

impl PathRtts {
    fn add(&mut self, acks: bool, rtt: Time) {
        let (sum, count) = &mut self.0[usize::from(acks)];
        *sum = sum.saturating_add(rtt.as_ps());
        *count += 1;
    }

    /// The mean; of acks only where no data pass.
    fn mean(&self) -> Option<Time> {
        let (sum, count) = self.0.into_iter().find(|(_, count)| *count > 0)?;
        Some(Time::from_ps(sum / u64::from(count))).filter(|t| *t > Time::ZERO)
    }
}

/// The fastest link: at more, an ack would be shorter than the engine's picosecond.
const FASTEST: Rate = Rate::from_gbps(100_000.0);
/// The most samples of one quantity, and the most flows of a group, that a run may have: what memory holds.
const MOST_SAMPLES: u64 = 10_000_000;
const MOST_FLOWS: u32 = 1_000_000;
const MOST_WEB_FLOWS: f64 = 1e8;

type Result<T> = std::result::Result<T, ScenarioError>;

fn error<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T> {
    Err(ScenarioError::new(key, message))
}

/// The routers and links between which flows are placed.
struct Core {
    nodes: BTreeMap<String, usize>,
    names: Vec<String>,
    /// `(from, to, link)`.
    edges: Vec<(usize, usize, u32)>,
    /// Access link that a flow gets unless its group says otherwise.
    access: Option<Access>,
    first: String,
    last: String,
    /// Round-trip time of a flow that names none, where the topology gives one.
    rtt: Option<Time>,
}

impl Core {
    fn node(&mut self, name: &str) -> usize {
        if let Some(n) = self.nodes.get(name) {
            return *n;
        }
        self.names.push(name.to_owned());
        self.nodes.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// The path of least delay; ties go to the lower link numbers.
    fn path(&self, links: &[LinkPlan], from: usize, to: usize) -> Option<Vec<u32>> {
        /// Least delay to a node, and the node and link before it.
        type Reached = (Time, Option<(usize, u32)>);
        let mut best: Vec<Option<Reached>> = vec![None; self.names.len()];
        let mut heap = BinaryHeap::new();
        best[from] = Some((Time::ZERO, None));
        heap.push(Reverse((Time::ZERO, from)));
        while let Some(Reverse((cost, node))) = heap.pop() {
            if best[node].is_none_or(|(c, _)| c < cost) {
                continue;
            }
            for (_, next, link) in self.edges.iter().filter(|e| e.0 == node) {
                // A hop costs a picosecond, so that of equal delays the fewer hops win.
                let there = cost + links[*link as usize].delay + Time::from_ps(1);
                if best[*next].is_none_or(|(c, _)| there < c) {
                    best[*next] = Some((there, Some((node, *link))));
                    heap.push(Reverse((there, *next)));
                }
            }
        }
        let mut route = Vec::new();
        let mut node = to;
        while let Some((back, link)) = best[node]?.1 {
            route.push(link);
            node = back;
        }
        route.reverse();
        Some(route)
    }
}

impl Network {
    /// Lays out the network of `loaded` with this seed.
    ///
    /// # Errors
    /// Whatever cannot be: a rate of zero, no path, a start after the end.
    pub fn new(loaded: &Loaded, seed: u64) -> Result<Self> {
        Builder {
            loaded,
            scenario: &loaded.scenario,
            seed,
            links: Vec::new(),
            access: Vec::new(),
            routes: Vec::new(),
            rtts: Vec::new(),
        }
        .build()
        .map_err(|e| if e.source.is_empty() { e.at(&loaded.source) } else { e })
    }
}

struct Builder<'a> {
    loaded: &'a Loaded,
    scenario: &'a Scenario,
    seed: u64,
    links: Vec<LinkPlan>,
    access: Vec<Access>,
    routes: Vec<u32>,
    /// Of each router link.
    rtts: Vec<PathRtts>,
}

impl Builder<'_> {
    fn build(mut self) -> Result<Network> {
        let s = self.scenario;
        if s.duration == Time::ZERO {
            return error("duration", "is 0s; it must be longer");
        }
        if s.warmup >= s.duration {
            return error(
                "warmup",
                format!("is {}; it must be shorter than duration, {}", s.warmup, s.duration),
            );
        }
        for (key, size) in [("packet", s.packet), ("ack", s.ack)] {
            if !(1..=65_535).contains(&size.get()) {
                return error(key, format!("is {size}; it must be 1B to 65535B"));
            }
        }
        if s.header >= s.packet {
            let message = format!("is {}; it must be less than packet, {}", s.header, s.packet);
            return error("header", message);
        }
        if let Some(every) = s.probes.every {
            if s.duration.as_ps() / every.as_ps().max(1) > MOST_SAMPLES {
                return error(
                    "probes.every",
                    format!("is {every}; the run of {} may have {MOST_SAMPLES} samples", s.duration),
                );
            }
        }
        let mut core = match (&s.dumbbell, &s.parking_lot, &s.graph) {
            (Some(_), None, None) => self.dumbbell()?,
            (None, Some(_), None) => self.parking_lot()?,
            (None, None, Some(g)) => self.graph(g)?,
            (None, None, None) => {
                return error("", "no topology; give one of [dumbbell], [parking_lot] and [graph]");
            }
            _ => {
                return error(
                    "",
                    "more than one topology; give one of [dumbbell], [parking_lot] and [graph]",
                );
            }
        };
        for plan in &self.links {
            let at = |kind: &str, k: &str| format!("{kind} of {}: {k}", plan.name);
            plan.router.check().map_err(|(k, m)| ScenarioError::new(at("router", k), m))?;
            plan.queue.check().map_err(|(k, m)| ScenarioError::new(at("queue", k), m))?;
            plan.share.check().map_err(|(k, m)| ScenarioError::new(at("share", k), m))?;
            if plan.share.params().is_some() && matches!(plan.router, RouterSpec::None(_)) {
                return error(
                    format!("share of {}", plan.name),
                    "is for a link with a router law; give router, or leave out share",
                );
            }
        }
        if s.flows.is_empty() {
            return error("flows", "is empty; give at least one [[flows]]");
        }
        let mut network = Network {
            links: Vec::new(),
            access: Vec::new(),
            routes: Vec::new(),
            groups: Vec::new(),
            flows: Vec::new(),
            web: Vec::new(),
            assumed: Named::new(),
            warnings: Vec::new(),
        };
        self.rtts = vec![PathRtts::default(); self.links.len()];
        let mut longest = Time::ZERO;
        for (i, group) in s.flows.iter().enumerate() {
            if s.flows[..i].iter().any(|g| g.name == group.name) {
                return error(
                    format!("flows[{i}].name"),
                    format!("\"{}\" is there twice; names must differ", group.name),
                );
            }
            longest = longest.max(self.group(i, group, &mut core, &mut network)?);
        }
        self.graph_buffers(longest)?;
        self.assume(&mut network);
        if let Some(wanted) = s.capture.as_ref().and_then(|c| c.links.as_ref()) {
            for name in wanted {
                if !self.links.iter().any(|l| l.name == *name) {
                    let known: Vec<_> = self.links.iter().map(|l| l.name.as_str()).collect();
                    return error(
                        "capture.links",
                        format!("\"{name}\" is no link; there are {}", known.join(", ")),
                    );
                }
            }
        }
        network.links = self.links;
        network.access = self.access;
        network.routes = self.routes;
        Ok(network)
    }

    fn capacity(&self, key: &str, rate: &LinkRate) -> Result<Capacity> {
        match rate {
            LinkRate::Constant(r) => {
                positive(key, *r)?;
                Ok(Capacity::Constant(*r))
            }
            LinkRate::Varying(v) => match (&v.steps, &v.trace) {
                (Some(steps), None) => {
                    let key = format!("{key}.steps");
                    if steps.first().is_none_or(|(t, _)| *t != Time::ZERO) {
                        return error(key, "must start with an entry at \"0s\"");
                    }
                    if steps.windows(2).any(|w| w[1].0 <= w[0].0) {
                        return error(key, "must be in rising order of time");
                    }
                    if let Some((at, rate)) = steps.iter().find(|(_, r)| r.bps() > 0.0 && !plausible(*r)) {
                        return error(
                            key,
                            format!("has {rate} at {at}; a rate is 0bps, or 1bps to {FASTEST}"),
                        );
                    }
                    if steps.iter().all(|(_, r)| r.bps() == 0.0)
                        || steps.last().is_some_and(|(_, r)| r.bps() == 0.0)
                    {
                        return error(key, "ends with a rate of zero; the last rate must be above 0bps");
                    }
                    Ok(Capacity::Steps(steps.clone()))
                }
                (None, Some(path)) => {
                    let key = format!("{key}.trace");
                    if v.capacity_window < Time::from_millis(1) {
                        let message = format!("is {}; it must be 1ms or longer", v.capacity_window);
                        return error(key.replace(".trace", ".capacity_window"), message);
                    }
                    let text = self.loaded.files.get(path).map_or("", String::as_str);
                    let trace = parse_trace(text).map_err(|m| {
                        ScenarioError::new(key.clone(), format!("\"{}\": {m}", path.display()))
                    })?;
                    if trace.capacity_bytes(Time::ZERO, self.scenario.duration) == 0.0 {
                        let message = format!(
                            "\"{}\" has nothing before duration, {}",
                            path.display(),
                            self.scenario.duration
                        );
                        return error(key, message);
                    }
                    Ok(Capacity::Trace(Box::new(trace), v.capacity_window))
                }
                _ => error(key, "needs exactly one of `steps` and `trace`"),
            },
        }
    }

    fn mean_rate(&self, capacity: &Capacity) -> Rate {
        capacity.mean(Time::ZERO, self.scenario.duration)
    }

    fn limit(&self, key: &str, buffer: Buffer, rate: Rate, rtt: Option<Time>) -> Result<Limit> {
        let packet = self.scenario.packet.as_f64();
        Ok(match buffer {
            Buffer::Packets(n) => Limit::Packets(n),
            Buffer::Bytes(b) => Limit::Bytes(b.get()),
            Buffer::Time(t) => Limit::Bytes(rate.bytes_in(t) as u64),
            Buffer::Bdp(f) => match rtt {
                // A buffer of less than a packet would pass nothing that has to wait.
                Some(rtt) if f > 0.0 => Limit::Bytes((f * rate.bytes_in(rtt)).max(packet) as u64),
                Some(_) => Limit::Bytes(0),
                None => return error(key, "is in BDP, but no round-trip time is known here"),
            },
        })
    }

    fn add_link(&mut self, plan: LinkPlan) -> u32 {
        self.links.push(plan);
        (self.links.len() - 1) as u32
    }

    fn dumbbell(&mut self) -> Result<Core> {
        let Some(d) = &self.scenario.dumbbell else { return error("dumbbell", "is missing") };
        let delay = d.delay.unwrap_or_else(|| d.rtt.scale(0.4));
        let Some(rest) = (d.rtt / 2).as_ps().checked_sub(delay.as_ps()) else {
            return error("dumbbell.delay", format!("is {delay}; it must be at most half of rtt, {}", d.rtt));
        };
        let forward = self.capacity("dumbbell.rate", &d.rate)?;
        let backward = match &d.reverse_rate {
            Some(r) => self.capacity("dumbbell.reverse_rate", r)?,
            None => forward.clone(),
        };
        let fastest = self.mean_rate(&forward).bps().max(self.mean_rate(&backward).bps());
        let access_rate = d.access_rate.unwrap_or(Rate::from_bps(10.0 * fastest));
        positive("dumbbell.access_rate", access_rate)?;
        let mut core = Core {
            nodes: BTreeMap::new(),
            names: Vec::new(),
            edges: Vec::new(),
            access: Some(Access { rate: access_rate, delay: Time::from_ps(rest / 2) }),
            first: "left".to_owned(),
            last: "right".to_owned(),
            rtt: Some(d.rtt),
        };
        let (left, right) = (core.node("left"), core.node("right"));
        for (name, capacity, from, to) in
            [("bottleneck", forward, left, right), ("bottleneck.reverse", backward, right, left)]
        {
            let limit = self.limit("dumbbell.buffer", d.buffer, self.mean_rate(&capacity), Some(d.rtt))?;
            let link = self.add_link(LinkPlan {
                name: name.to_owned(),
                capacity,
                delay,
                limit,
                queue: d.queue.clone(),
                router: d.router.clone(),
                share: d.share.clone(),
            });
            core.edges.push((from, to, link));
        }
        Ok(core)
    }

    fn parking_lot(&mut self) -> Result<Core> {
        let Some(p) = &self.scenario.parking_lot else { return error("parking_lot", "is missing") };
        if p.rates.is_empty() {
            return error("parking_lot.rates", "is empty; give one rate for each link");
        }
        let hops = p.rates.len() as u64;
        let fastest = p.rates.iter().map(|r| r.bps()).fold(0.0, f64::max);
        let access_rate = p.access_rate.unwrap_or(Rate::from_bps(10.0 * fastest));
        let rtt = p.rtt.unwrap_or((p.delay * hops + p.access_delay * 2) * 2);
        let mut core = Core {
            nodes: BTreeMap::new(),
            names: Vec::new(),
            edges: Vec::new(),
            access: Some(Access { rate: access_rate, delay: p.access_delay }),
            first: "n0".to_owned(),
            last: format!("n{hops}"),
            rtt: None,
        };
        for (i, rate) in p.rates.iter().enumerate() {
            positive(&format!("parking_lot.rates[{i}]"), *rate)?;
            let (a, b) = (core.node(&format!("n{i}")), core.node(&format!("n{}", i + 1)));
            let limit = self.limit("parking_lot.buffer", p.buffer, *rate, Some(rtt))?;
            for (suffix, from, to) in [("", a, b), (".reverse", b, a)] {
                let link = self.add_link(LinkPlan {
                    name: format!("link{}{suffix}", i + 1),
                    capacity: Capacity::Constant(*rate),
                    delay: p.delay,
                    limit,
                    queue: p.queue.clone(),
                    router: p.router.clone(),
                    share: p.share.clone(),
                });
                core.edges.push((from, to, link));
            }
        }
        Ok(core)
    }

    fn graph(&mut self, g: &Graph) -> Result<Core> {
        if g.links.is_empty() {
            return error("graph.links", "is empty; give at least one [[graph.links]]");
        }
        let mut core = Core {
            nodes: BTreeMap::new(),
            names: Vec::new(),
            edges: Vec::new(),
            access: None,
            first: String::new(),
            last: String::new(),
            rtt: None,
        };
        for (i, l) in g.links.iter().enumerate() {
            let key = format!("graph.links[{i}]");
            if l.from == l.to {
                return error(
                    format!("{key}.to"),
                    format!("is \"{}\", as from; a link joins two nodes", l.to),
                );
            }
            let capacity = self.capacity(&format!("{key}.rate"), &l.rate)?;
            let (a, b) = (core.node(&l.from), core.node(&l.to));
            let forward = l.name.clone().unwrap_or_else(|| format!("{}->{}", l.from, l.to));
            let backward =
                l.name.as_ref().map_or_else(|| format!("{}->{}", l.to, l.from), |n| format!("{n}.reverse"));
            for (name, from, to) in
                [(forward, a, b), (backward, b, a)].into_iter().take(1 + usize::from(l.duplex))
            {
                if self.links.iter().any(|other| other.name == name) {
                    return error(
                        format!("{key}.name"),
                        format!("\"{name}\" is there twice; give names that differ"),
                    );
                }
                let link = self.add_link(LinkPlan {
                    name,
                    capacity: capacity.clone(),
                    delay: l.delay,
                    limit: Limit::Packets(0), // known when all flows are: graph_buffers
                    queue: l.queue.clone(),
                    router: l.router.clone(),
                    share: l.share.clone(),
                });
                core.edges.push((from, to, link));
            }
        }
        Ok(core)
    }

    /// Buffers in BDP refer to the longest flow, which is known last.
    fn graph_buffers(&mut self, longest: Time) -> Result<()> {
        let Some(g) = &self.scenario.graph else { return Ok(()) };
        let mut at = 0;
        for (i, l) in g.links.iter().enumerate() {
            for _ in 0..1 + usize::from(l.duplex) {
                let rate = self.mean_rate(&self.links[at].capacity);
                let rtt = Some(g.rtt.unwrap_or(longest)).filter(|t| *t > Time::ZERO);
                self.links[at].limit =
                    self.limit(&format!("graph.links[{i}].buffer"), l.buffer, rate, rtt)?;
                at += 1;
            }
        }
        Ok(())
    }

    /// What laws take for the RTT until packets carry one: the paths', where the scenario does not say.
    fn assume(&mut self, network: &mut Network) {
        let mut far_off: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (plan, rtts) in self.links.iter_mut().zip(&self.rtts) {
            let (Some((name, open)), Some(rtt)) = (plan.router.time_constant(), rtts.mean()) else {
                continue;
            };
            let Some(given) = *open else {
                *open = Some(rtt);
                network.assumed.insert(format!("{}.router.{name}", plan.name), rtt.to_string());
                continue;
            };
            let ratio = given.as_secs_f64() / rtt.as_secs_f64();
            if !(1.0 / FAR_OFF..=FAR_OFF).contains(&ratio) {
                let message =
                    format!("{name}: is {given}, but the flows' RTT is {rtt}; leave it out for that");
                far_off.entry(message).or_default().push(&plan.name);
            }
        }
        for (message, links) in far_off {
            network.warnings.push(format!("router of {}: {message}", links.join(" and ")));
        }
    }

    /// Places one group; returns the longest round-trip propagation time of its flows.
    fn group(
        &mut self,
        spec: usize,
        group: &FlowGroup,
        core: &mut Core,
        network: &mut Network,
    ) -> Result<Time> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        if group.name.is_empty() || group.name.contains('.') {
            return error(format!("flows[{spec}].name"), "must not be empty nor contain a dot");
        }
        if group.each_hop && self.scenario.parking_lot.is_none() {
            return error(key("each_hop"), "is for a parking_lot only");
        }
        self.check_group(group)?;
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
        let mut longest = Time::ZERO;
        for (name, from, to) in hops {
            let (from, to) = if group.reverse { (to, from) } else { (from, to) };
            let (a, b) = (core.nodes[&from], core.nodes[&to]);
            let no_path = || ScenarioError::new(key("to"), format!("there is no path from {from} to {to}"));
            if a == b {
                return error(key("to"), format!("is \"{to}\", where the flow starts"));
            }
            let there = core.path(&self.links, a, b).ok_or_else(no_path)?;
            let back = core.path(&self.links, b, a).ok_or_else(|| {
                ScenarioError::new(key("to"), format!("there is no path for acks from {to} to {from}"))
            })?;
            self.check_routers(group, &there)?;
            let id = network.groups.len() as u32;
            network.groups.push(GroupPlan { name: name.clone(), spec, initial_rto: Time::ZERO });
            let count = group.count.unwrap_or(if group.web.is_some() { 10 } else { 1 });
            if !(1..=MOST_FLOWS).contains(&count) {
                return error(
                    key("count"),
                    format!("is {count}; it must be at least 1 and at most {MOST_FLOWS}"),
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
            let mut longest_of_group = Time::ZERO;
            let protocol = group.law.protocol();
            for i in 0..count {
                let (path, rtt) = self.place(group, i, core, &there, &back)?;
                longest_of_group = longest_of_group.max(rtt);
                for (acks, route) in [(false, &there), (true, &back)] {
                    for link in route {
                        if self.router_protocol(*link) == Some(protocol) {
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
            network.groups[id as usize].initial_rto = initial_rto;
            if let Some(web) = &group.web {
                network.web.push(self.web(group, web, id, &name, paths, &there)?);
            } else {
                for (i, path) in paths.into_iter().enumerate() {
                    let offset = group.spread.scale(starts.uniform());
                    let start = group.start + group.every * i as u64 + offset;
                    network.flows.push(FlowPlan { group: id, index: i as u32, path, start });
                }
            }
        }
        Ok(longest)
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
        if let Some(rate) = group.rate {
            positive(&key("rate"), rate)?;
        }
        if group.size.is_some_and(|s| s.get() == 0) {
            return error(key("size"), "is 0B; it must be larger");
        }
        if group.web.is_some() && (group.size.is_some() || group.rate.is_some() || group.every > Time::ZERO) {
            return error(key("web"), "sets sizes and arrivals; leave out size, rate and every");
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
        if t.recovery == Some(Recovery::Count) && !group.law.needs_router() {
            let message = format!(
                "is \"count\", which tells the law of no loss; \"{}\" must hear of them, where it does without routers: \
                 leave it out",
                group.law.protocol().name()
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

    /// Whose packets a link's router stamps.
    fn router_protocol(&self, link: u32) -> Option<Protocol> {
        let built = self.links[link as usize].router.build(Rate::from_mbps(1.0))?;
        Some(built.protocol())
    }

    /// A flow whose law obeys routers needs one of its kind on its path: nothing else would limit it.
    fn check_routers(&self, group: &FlowGroup, route: &[u32]) -> Result<()> {
        let protocol = group.law.protocol();
        let is_its = |l: &u32| self.router_protocol(*l) == Some(protocol);
        if group.law.needs_router() && !route.iter().any(is_its) {
            let name = protocol.name();
            return error(
                format!("flows.{}.law", group.name),
                format!("\"{name}\" obeys routers, but no link on the path has router = \"{name}\""),
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
        there: &[u32],
        back: &[u32],
    ) -> Result<(Path, Time)> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        let delay_of = |links: &[LinkPlan], route: &[u32]| {
            route.iter().fold(Time::ZERO, |sum, l| sum + links[*l as usize].delay)
        };
        let inner = delay_of(&self.links, there) + delay_of(&self.links, back);
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
            return Ok((Path { data: self.route(there), acks: self.route(back) }, inner));
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
        let data: Vec<u32> = [&[up], there, &[down]].concat();
        let acks: Vec<u32> = [&[ack_up], back, &[ack_down]].concat();
        let rtt = inner + (sender_delay + access.delay) * 2;
        Ok((Path { data: self.route(&data), acks: self.route(&acks) }, rtt))
    }

    fn route(&mut self, links: &[u32]) -> u32 {
        let at = self.routes.len() as u32;
        self.routes.extend_from_slice(links);
        self.routes.push(END);
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

fn positive(key: &str, rate: Rate) -> Result<()> {
    if plausible(rate) { Ok(()) } else { error(key, format!("is {rate}; a rate is 1bps to {FASTEST}")) }
}

fn plausible(rate: Rate) -> bool {
    (1.0..=FASTEST.bps()).contains(&rate.bps())
}

/// Reads a trace in Mahimahi's format: milliseconds, one per line, never falling.
fn parse_trace(text: &str) -> std::result::Result<Trace, String> {
    let mut lines = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let ms: u64 = line.trim().parse().map_err(|_| {
            format!("line {}: \"{}\" is not a whole number of milliseconds", n + 1, line.trim())
        })?;
        if lines.last().is_some_and(|last| ms < *last) {
            return Err(format!("line {}: {ms} is before the line above; times must not fall", n + 1));
        }
        lines.push(ms);
    }
    match lines.last() {
        None => Err("has no lines; one number of milliseconds is expected per line".to_owned()),
        Some(0) => Err("ends at 0 ms; the last time is the period and must be later".to_owned()),
        Some(_) => Ok(Trace::new(&lines)),
    }
}
