//! Routers, the links between them, and the ways of least cost: of least delay, and then of fewest hops; or of least weight, where links
//! have weights.
//!
//! Of ways with the same cost each flow takes one, by equal-cost multipath routing (ECMP, RFC 2992): every node on the way hashes
//! the flow, and takes that link of those which lead on by a shortest way. The hash is of names alone: the flow's, the node's,
//! the run's seed. So a flow keeps its way whatever else there is, as long as its own ways are the same.

use crate::plan::LinkPlan;
use crate::random::hash;
use crate::scenario::{Access, Weight};
use flowstamp_laws::units::Time;
use std::cell::{OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Nodes whose distance is kept at a time, over all destinations.
const MOST_KEPT: usize = 1 << 21;

/// Links one after another, and the node that each leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way {
    pub links: Vec<u32>,
    pub nodes: Vec<usize>,
}

/// The ways there and back of flows between two nodes, by their numbers; one for all where there are no others.
pub(super) type Ways = Vec<(Way, Way)>;

/// A flow as nodes hash it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashed(u64);

impl Hashed {
    /// Flow number `index` of the group `name`, in the run of this seed. Acks are hashed for themselves, as switches do.
    pub(super) fn new(seed: u64, name: &str, index: u64) -> Self {
        Self(hash(seed, name).wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub(super) fn acks(self) -> Self {
        Self(!self.0)
    }

    /// One of so many, at a node.
    fn of(self, node: &str, count: usize) -> usize {
        // SplitMix64's last steps: neither names nor numbers alone spread over all bits.
        let mut x = self.0 ^ hash(0, node);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        ((u128::from(x) * count as u128) >> 64) as usize
    }
}

/// Least costs to nodes, as far as somebody asked.
#[derive(Default)]
pub(super) struct Known {
    to: BTreeMap<usize, Search>,
    kept: usize,
}

/// A search that went on backward from a destination until what was asked for was found.
#[derive(Default)]
struct Search {
    best: BTreeMap<usize, u64>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    /// All nodes nearer than this are known.
    done: Option<u64>,
}

/// All links that shortest ways between two nodes take.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    pub links: BTreeSet<u32>,
    /// Where there are several, those that are one of several at their node.
    pub parallel: BTreeSet<u32>,
}

/// The routers and links between which flows are placed.
#[derive(Default)]
pub(super) struct Core {
    pub nodes: BTreeMap<String, usize>,
    pub names: Vec<String>,
    /// `(from, to, link)`; an interface of a cell is the link of several.
    pub edges: Vec<(usize, usize, u32)>,
    /// Of each node the edges that leave it, in their order; made when the first path is asked for, by which time all are there.
    pub leaving: OnceCell<Vec<Vec<usize>>>,
    /// Likewise those that enter it.
    pub entering: OnceCell<Vec<Vec<usize>>>,
    /// What is known of the ways to each node.
    pub known: RefCell<Known>,
    /// Nodes that patterns of traffic go between.
    pub hosts: Vec<usize>,
    /// Access link that a flow gets unless its group says otherwise.
    pub access: Option<Access>,
    pub first: String,
    pub last: String,
    /// Round-trip time of a flow that names none, where the topology gives one.
    pub rtt: Option<Time>,
}

impl Core {
    pub(super) fn node(&mut self, name: &str) -> usize {
        if let Some(n) = self.nodes.get(name) {
            return *n;
        }
        self.names.push(name.to_owned());
        self.nodes.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// The same nodes without these links.
    pub(super) fn without(&self, down: &BTreeSet<u32>) -> Self {
        let up = |edge: &&(usize, usize, u32)| !down.contains(&edge.2);
        let edges = self.edges.iter().filter(up).copied().collect();
        Self { nodes: self.nodes.clone(), names: self.names.clone(), edges, ..Self::default() }
    }

    /// The way that a flow's data take, and that of its acks; `None` if there is none.
    pub(super) fn ways(
        &self,
        links: &[LinkPlan],
        from: usize,
        to: usize,
        flow: Hashed,
    ) -> Option<(Way, Way)> {
        Some((self.way(links, from, to, flow)?, self.way(links, to, from, flow.acks())?))
    }

    /// A way of least cost; a flow takes the same whatever the others do.
    pub(super) fn way(&self, links: &[LinkPlan], from: usize, to: usize, flow: Hashed) -> Option<Way> {
        let mut way = Way::default();
        let mut node = from;
        self.follow(links, from, to, |search| {
            while node != search.to {
                let next = search.next(node);
                let edge = next[if next.len() > 1 { flow.of(&self.names[node], next.len()) } else { 0 }];
                let (_, there, link) = self.edges[edge];
                way.links.push(link);
                way.nodes.push(there);
                node = there;
            }
        })?;
        self.last_mile(to, &mut way);
        Some(way)
    }

    /// Whether there is a way.
    pub(super) fn leads(&self, links: &[LinkPlan], from: usize, to: usize) -> bool {
        self.follow(links, from, to, |_| ()).is_some()
    }

    /// All links of shortest ways to a node from others; `None` if one of them has none.
    pub(super) fn reach(&self, links: &[LinkPlan], from: &BTreeSet<usize>, to: usize) -> Option<Reach> {
        let mut reach = Reach::default();
        for start in from {
            self.follow(links, *start, to, |_| ())?;
        }
        self.follow(links, *from.first()?, to, |search| {
            let (mut seen, mut ahead) = (from.clone(), from.iter().copied().collect::<Vec<_>>());
            while let Some(node) = ahead.pop() {
                if node == search.to {
                    continue;
                }
                let next = search.next(node);
                for edge in &next {
                    let (_, there, link) = self.edges[*edge];
                    reach.links.insert(link);
                    if next.len() > 1 {
                        reach.parallel.insert(link);
                    }
                    if seen.insert(there) {
                        ahead.push(there);
                    }
                }
            }
        })?;
        let mut last = Way::default();
        self.last_mile(to, &mut last);
        reach.links.extend(last.links);
        Some(reach)
    }

    /// The ways of flows between two nodes: one for all of them, or where there are several one for each of `flows`.
    pub(super) fn all_ways(
        &self,
        links: &[LinkPlan],
        (from, to): (usize, usize),
        flows: impl IntoIterator<Item = Hashed>,
    ) -> Option<Ways> {
        let single = |from, to| {
            let reach = self.reach(links, &BTreeSet::from([from]), to);
            reach.map(|reach| reach.parallel.is_empty())
        };
        let one = single(from, to)? && single(to, from)?;
        let most = if one { 1 } else { usize::MAX };
        flows.into_iter().take(most).map(|flow| self.ways(links, from, to, flow)).collect()
    }

    /// Where one edge alone enters a node, all ways there lead over its other end, whose distances are those of many.
    fn before(&self, to: usize) -> Option<usize> {
        match self.entering()[to][..] {
            [edge] => Some(edge),
            _ => None,
        }
    }

    fn last_mile(&self, to: usize, way: &mut Way) {
        if let Some(edge) = self.before(to) {
            let (_, there, link) = self.edges[edge];
            way.links.push(link);
            way.nodes.push(there);
        }
    }

    pub(super) fn leaving(&self) -> &[Vec<usize>] {
        self.leaving.get_or_init(|| self.by_node(|edge| edge.0))
    }

    pub(super) fn entering(&self) -> &[Vec<usize>] {
        self.entering.get_or_init(|| self.by_node(|edge| edge.1))
    }

    fn by_node(&self, end: impl Fn(&(usize, usize, u32)) -> usize) -> Vec<Vec<usize>> {
        let mut of = vec![Vec::new(); self.names.len()];
        self.edges.iter().enumerate().for_each(|(number, edge)| of[end(edge)].push(number));
        of
    }

    /// Calls `found` with the shortest ways from a node to another, or to the one before that which all of them pass; `None` if
    /// there are none.
    fn follow(
        &self,
        links: &[LinkPlan],
        from: usize,
        to: usize,
        found: impl FnOnce(&Shortest<'_>),
    ) -> Option<()> {
        let to = self.before(to).map_or(to, |edge| self.edges[edge].0);
        let mut known = self.known.borrow_mut();
        if known.kept > MOST_KEPT {
            *known = Known::default();
        }
        let search = known.to.entry(to).or_default();
        let before = search.best.len();
        let there = search.until(self, links, from, to);
        if there {
            found(&Shortest { core: self, links, best: &search.best, to });
        }
        known.kept += search.best.len() - before;
        there.then_some(())
    }

    /// What it costs to take an edge, at least 1: its weight, or else its delay in picoseconds and one for the hop, so that of equal
    /// delays the fewer hops win.
    fn cost(&self, links: &[LinkPlan], edge: usize) -> u64 {
        let link = &links[self.edges[edge].2 as usize];
        link.weight.map_or_else(|| link.delay.as_ps().saturating_add(1), Weight::millionths)
    }
}

impl Search {
    /// Goes on until the least cost from `from` is known, and with it those of all nodes that are nearer; false if it has none.
    fn until(&mut self, core: &Core, links: &[LinkPlan], from: usize, to: usize) -> bool {
        if self.done.is_none() {
            self.best.insert(to, 0);
            self.heap.push(Reverse((0, to)));
        }
        let known = |search: &Self| search.best.get(&from).is_some_and(|cost| Some(*cost) <= search.done);
        while !known(self) {
            let Some(Reverse((cost, node))) = self.heap.pop() else { return false };
            self.done = Some(cost);
            if self.best.get(&node).is_none_or(|least| *least < cost) {
                continue;
            }
            for edge in &core.entering()[node] {
                let before = core.edges[*edge].0;
                let there = cost.saturating_add(core.cost(links, *edge));
                // Longer than can be told: there is no way.
                if there < u64::MAX && self.best.get(&before).is_none_or(|least| there < *least) {
                    self.best.insert(before, there);
                    self.heap.push(Reverse((there, before)));
                }
            }
        }
        true
    }
}

/// Shortest ways to a node.
struct Shortest<'a> {
    core: &'a Core,
    links: &'a [LinkPlan],
    best: &'a BTreeMap<usize, u64>,
    to: usize,
}

impl Shortest<'_> {
    /// The edges by which they go on from a node, in their order.
    fn next(&self, node: usize) -> Vec<usize> {
        let here = self.best[&node];
        let leads = |edge: &usize| {
            let rest = self.best.get(&self.core.edges[*edge].1);
            rest.is_some_and(|rest| rest.saturating_add(self.core.cost(self.links, *edge)) == here)
        };
        self.core.leaving()[node].iter().copied().filter(leads).collect()
    }
}
