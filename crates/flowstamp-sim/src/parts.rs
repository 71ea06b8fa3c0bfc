//! Parts of a network that run in turn, or on threads of their own.
//!
//! Only links are cut. Everything that shares state without a delay is in one part: a node with its links and hosts, both
//! ends of an impaired link, and both ends of a flow whose ends read each other's state.

use crate::ScenarioError;
use crate::events::{MANY_LINKS, MOST_PARTS, Owners};
use crate::plan::{END, FlowRoutes, GroupPlan, LinkPlan, Medium, Network};
use crate::scenario::{FlowGroup, Priority, Scenario};
use flowstamp_laws::transport::{self, Agreed, Receiver};
use flowstamp_laws::units::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// The division of a network.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Number of parts.
    pub count: usize,
    /// The part of each link, flow and event.
    pub owners: Owners,
    /// The least delay of a link between two parts.
    pub lookahead: Time,
    /// Links whose packets could go to another part, whether they do or not.
    pub known: Vec<u32>,
}

impl Parts {
    /// Divides a network into `count` parts with about the same number of packets, and few packets between them.
    ///
    /// # Errors
    /// Returns an error that names what cannot be divided.
    pub fn new(network: &Network, scenario: &Scenario, count: usize) -> Result<Self, ScenarioError> {
        if let Some(why) = whole(network, scenario) {
            return refused(format!(
                "is {count}, but {why}, which runs on one thread only; leave --threads out"
            ));
        }
        let mut graph = Places::new(network, scenario).graph(network);
        let most = graph.weights.len().min(MOST_PARTS);
        if count > most {
            return refused(format!(
                "is {count}; this network has {most} parts between which packets take time"
            ));
        }
        let part = graph.divide(count);
        let links = network.links.len() + network.access.len();
        let at = |place: usize| graph.node[place].map_or(0, |node| part[node]);
        let begin: Vec<u8> = (0..links).map(|link| at(2 * link)).collect();
        let end: Vec<u8> =
            (0..links).map(|link| if graph.used[link] { at(2 * link + 1) } else { begin[link] }).collect();
        let first = |route: u32| network.routes[route as usize] as usize;
        let sender = network.flows.iter().map(|flow| begin[first(flow.routes.data)]).collect();
        let receiver = network.flows.iter().map(|flow| begin[first(flow.routes.acks)]).collect();
        let lookahead = lookahead(network, scenario, |link| begin[link] != end[link]);
        let known =
            (0..).zip(&network.links).filter(|(_, plan)| can_be_cut(plan)).map(|(link, _)| link).collect();
        Ok(Self { count, owners: Owners { begin, end, sender, receiver }, lookahead, known })
    }
}

/// The least delay of the links that are cut, or the duration if none is.
fn lookahead(network: &Network, scenario: &Scenario, is_cut: impl Fn(usize) -> bool) -> Time {
    let delays =
        network.links.iter().enumerate().filter(|(link, _)| is_cut(*link)).map(|(_, plan)| plan.delay);
    delays.min().unwrap_or(scenario.duration).min(scenario.duration)
}

/// The division of a network among threads, each of which has some of its parts.
#[derive(Clone, Debug)]
pub struct Threads {
    /// The parts.
    pub parts: Parts,
    /// The parts of each thread.
    pub ranges: Vec<Range<usize>>,
    /// The thread of each part.
    of: Vec<usize>,
    /// For each thread, the links that lead to each other thread.
    out: Vec<BTreeMap<usize, Vec<u32>>>,
    /// The least delay of such a link.
    lookahead: Time,
}

impl Threads {
    /// Divides a network among `count` threads. Each gets several parts if the network is large and they do not make rounds
    /// shorter.
    ///
    /// # Errors
    /// Returns an error that names what cannot be divided.
    pub fn new(network: &Network, scenario: &Scenario, count: usize) -> Result<Self, ScenarioError> {
        let whole = Self::of_parts(network, scenario, Parts::new(network, scenario, count)?, count);
        let Some(several) = parts_of_many_links(network).filter(|several| *several > count) else {
            return Ok(whole);
        };
        let Ok(parts) = Parts::new(network, scenario, several) else { return Ok(whole) };
        let fine = Self::of_parts(network, scenario, parts, count);
        Ok(if fine.parts.lookahead < whole.lookahead { whole } else { fine })
    }

    fn of_parts(network: &Network, scenario: &Scenario, parts: Parts, count: usize) -> Self {
        let of: Vec<usize> = (0..parts.count).map(|part| part * count / parts.count).collect();
        let ranges = (0..count)
            .map(|thread| of.partition_point(|t| *t < thread)..of.partition_point(|t| *t <= thread));
        let ends = |link: usize| {
            let Owners { begin, end, .. } = &parts.owners;
            (of[usize::from(begin[link])], of[usize::from(end[link])])
        };
        let lookahead = lookahead(network, scenario, |link| ends(link).0 != ends(link).1);
        let mut out = vec![BTreeMap::<usize, Vec<u32>>::new(); count];
        for link in 0..network.links.len() {
            let (from, to) = ends(link);
            if from != to {
                out[from].entry(to).or_default().push(link as u32);
            }
        }
        Self { ranges: ranges.collect(), out, lookahead, of, parts }
    }

    /// Number of threads.
    pub fn count(&self) -> usize {
        self.out.len()
    }

    /// How long threads can run without each other's packets.
    pub fn lookahead(&self) -> Time {
        self.lookahead
    }

    /// The links from a thread to each other thread.
    pub fn out(&self, thread: usize) -> &BTreeMap<usize, Vec<u32>> {
        &self.out[thread]
    }

    /// The thread that has a link's queue.
    pub fn of_queue(&self, link: usize) -> usize {
        self.of[usize::from(self.parts.owners.begin[link])]
    }

    /// The threads of a planned flow's ends: sender and receiver.
    pub fn of_flow(&self, flow: usize) -> (usize, usize) {
        let Owners { sender, receiver, .. } = &self.parts.owners;
        (self.of[usize::from(sender[flow])], self.of[usize::from(receiver[flow])])
    }

    /// The threads of a flow's ends, by the first and the last link of its data.
    pub fn of_ends(&self, [first, last]: [u32; 2]) -> (usize, usize) {
        let Owners { begin, end, .. } = &self.parts.owners;
        (self.of[usize::from(begin[first as usize])], self.of[usize::from(end[last as usize])])
    }
}

/// Router links of a part. Their state fits into a core's own cache.
const LINKS: usize = 16;

/// The number of parts in which a large network runs; `None` if it is not large.
pub fn parts_of_many_links(network: &Network) -> Option<usize> {
    (network.links.len() >= MANY_LINKS).then(|| (network.links.len() / LINKS).min(MOST_PARTS))
}

fn refused<T>(message: String) -> Result<T, ScenarioError> {
    Err(ScenarioError::new("threads", message))
}

/// Returns the first reason why a network must run as a whole.
fn whole(network: &Network, scenario: &Scenario) -> Option<String> {
    if !network.arrivals.is_empty() && network.links.iter().any(|plan| plan.priority == Priority::Labels) {
        return Some("flows arrive during the run and have labels".to_owned());
    }
    if let Some(group) = network.groups.iter().find(|group| group.collective.is_some()) {
        return Some(format!("the flows of {:?} wait for each other", group.name));
    }
    if let Some(group) = network.groups.iter().find(|group| group.governs().is_some()) {
        return Some(format!("{:?} sets the rate of a link", group.name));
    }
    if !network.cells.is_empty() || network.links.iter().any(|plan| plan.medium.is_shared()) {
        return Some("links share a medium".to_owned());
    }
    if network.links.iter().any(|plan| plan.pfc.is_some()) {
        return Some("links pause each other (pfc)".to_owned());
    }
    scenario.capture.is_some().then(|| "packets are captured".to_owned())
}

/// The group and the routes of each planned flow, and of each pair of hosts between which flows arrive.
fn flows(network: &Network) -> impl Iterator<Item = (u32, FlowRoutes)> {
    let planned = network.flows.iter().map(|flow| (flow.group, flow.routes));
    let pairs =
        network.arrivals.iter().flat_map(|plan| plan.routes.iter().map(move |pairs| (plan.group, pairs)));
    planned.chain(pairs.flat_map(|(group, pairs)| pairs.iter().map(move |routes| (group, *routes))))
}

/// Whether a link's packets can go to another part at its end.
fn can_be_cut(plan: &LinkPlan) -> bool {
    plan.delay > Time::ZERO
        && plan.varying_delay.is_none()
        && plan.medium == Medium::Own
        && !(plan.acts_at_its_end() || plan.governed || plan.holds)
}

/// Whether the two ends of a group's flows know of each other only by packets.
fn apart(spec: &FlowGroup, plan: &GroupPlan) -> bool {
    plan.application.is_none()
        && plan.laws.iter().map(|law| law.traits()).all(|traits| {
            let agreed = Agreed::between(&transport::Params { ..spec.transport }, &traits);
            !(traits.falls_back || traits.datagrams || Receiver::new(&spec.transport, agreed).counts())
        })
}

/// The begin and the end of each link. Those that must be in one part are joined.
struct Places {
    parent: Vec<u32>,
}

impl Places {
    fn new(network: &Network, scenario: &Scenario) -> Self {
        let (routers, links) = (network.links.len(), network.links.len() + network.access.len());
        let mut places = Self { parent: (0..2 * links as u32).collect() };
        let (begin, end) = (|link: u32| 2 * link, |link: u32| 2 * link + 1);
        for pair in network.routes.windows(2).filter(|pair| pair[0] != END && pair[1] != END) {
            places.join(end(pair[0]), begin(pair[1]));
        }
        for link in 0..links {
            if network.links.get(link).is_none_or(|plan| !can_be_cut(plan)) {
                places.join(begin(link as u32), end(link as u32));
            }
        }
        debug_assert!(routers <= links, "access links come last");
        let ends = |route: u32| {
            let links = network.routes[route as usize..].iter().take_while(|link| **link != END);
            (network.routes[route as usize], links.last().copied().unwrap_or_default())
        };
        for (group, FlowRoutes { data, acks }) in flows(network) {
            let (data, acks) = (ends(data), ends(acks));
            places.join(begin(data.0), end(acks.1));
            places.join(end(data.1), begin(acks.0));
            let group = &network.groups[group as usize];
            if !apart(&scenario.flows[group.spec], group) {
                places.join(begin(data.0), end(data.1));
            }
        }
        for set in network.spreads.values() {
            let first = ends(set[0].route);
            for choice in &set[1..] {
                let other = ends(choice.route);
                places.join(begin(first.0), begin(other.0));
                places.join(end(first.1), end(other.1));
            }
        }
        for (before, after) in network.reroutes.iter().flat_map(|reroute| &reroute.changes) {
            let (before, after) = (ends(*before), ends(*after));
            places.join(begin(before.0), begin(after.0));
            places.join(end(before.1), end(after.1));
        }
        places
    }

    fn root(&mut self, mut place: u32) -> u32 {
        while self.parent[place as usize] != place {
            let above = self.parent[self.parent[place as usize] as usize];
            self.parent[place as usize] = above;
            place = above;
        }
        place
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a.max(b) as usize] = a.min(b);
    }

    /// The nodes that these places make, with the flows that cross each of their links.
    fn graph(mut self, network: &Network) -> Graph {
        let links = network.links.len() + network.access.len();
        // Each route once, for those that packets of balanced flows or after an outage take.
        let mut visits = vec![0u64; links];
        network.routes.iter().filter(|link| **link != END).for_each(|link| visits[*link as usize] += 1);
        for (_, routes) in flows(network) {
            for route in [routes.data, routes.acks] {
                let links = network.routes[route as usize..].iter().take_while(|link| **link != END);
                links.for_each(|link| visits[*link as usize] += 1);
            }
        }
        let used: Vec<bool> = visits.iter().map(|visits| *visits > 0).collect();
        let mut graph = Graph { node: vec![None; 2 * links], used, weights: Vec::new(), edges: Vec::new() };
        let mut number = BTreeMap::new();
        for place in (0..2 * links).filter(|place| visits[place / 2] > 0) {
            let root = self.root(place as u32);
            let node = *number.entry(root).or_insert_with(|| {
                graph.weights.push(0);
                graph.edges.push(BTreeMap::new());
                graph.weights.len() - 1
            });
            graph.node[place] = Some(node);
        }
        for (link, visits) in visits.iter().enumerate() {
            let (Some(a), Some(b)) = (graph.node[2 * link], graph.node[2 * link + 1]) else { continue };
            graph.weights[a] += visits;
            if a != b {
                *graph.edges[a].entry(b).or_default() += visits;
                *graph.edges[b].entry(a).or_default() += visits;
            }
        }
        graph
    }
}

/// Nodes, weighted by the flows through their links, and the flows between them.
struct Graph {
    /// The node of each begin and end of a link; `None` for a link without flows.
    node: Vec<Option<usize>>,
    /// Whether any flow takes a link.
    used: Vec<bool>,
    weights: Vec<u64>,
    edges: Vec<BTreeMap<usize, u64>>,
}

impl Graph {
    /// The part of each node. Each part but the last grows from a node: it takes in the neighbour with the most flows to the
    /// part and the fewest to the rest, until it has its share of all flows.
    fn divide(&mut self, count: usize) -> Vec<u8> {
        let nodes = self.weights.len();
        let mut part = vec![count as u8 - 1; nodes];
        let mut free = vec![true; nodes];
        let (mut rest, mut left) = (self.weights.iter().sum::<u64>(), nodes);
        for number in 0..count - 1 {
            let share = rest / (count - number) as u64;
            let mut inside: Vec<i64> = vec![0; nodes];
            let mut outside: Vec<i64> = (0..nodes)
                .map(|node| {
                    self.edges[node].iter().filter(|(to, _)| free[**to]).map(|(_, flows)| *flows as i64).sum()
                })
                .collect();
            let mut next = BinaryHeap::new();
            let mut weight = 0;
            // Each of the other parts needs a node.
            while left > count - number - 1 {
                let gain = |node: usize| inside[node] - outside[node];
                let found = loop {
                    match next.pop() {
                        Some((value, Reverse(node))) if free[node] && value == gain(node) => {
                            break Some(node);
                        }
                        Some(_) => {}
                        None => break (0..nodes).find(|node| free[*node]),
                    }
                };
                let Some(node) = found else { break };
                if weight > 0 && weight + self.weights[node] / 2 > share {
                    break;
                }
                (free[node], part[node]) = (false, number as u8);
                weight += self.weights[node];
                left -= 1;
                for (to, flows) in &self.edges[node] {
                    inside[*to] += *flows as i64;
                    outside[*to] -= *flows as i64;
                    if free[*to] {
                        next.push((inside[*to] - outside[*to], Reverse(*to)));
                    }
                }
            }
            rest -= weight;
        }
        part
    }
}
