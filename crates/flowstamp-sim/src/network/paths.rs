//! Routers, links between them, and least-cost paths. Cost is delay and then the number of hops, or weight where links
//! have weights.
//!
//! Among paths of equal cost each flow takes one, by equal-cost multipath routing (ECMP, RFC 2992). Each node on the
//! path hashes the flow and takes one of its links that lie on a least-cost path. The hash depends only on names: the
//! flow's and the node's, and the run's seed. Therefore a flow keeps its path when other flows change, as long as its own
//! paths are the same. With `routing.balance` the packets of a flow take several of these paths
//! ([`super::spread`]).

use crate::plan::LinkPlan;
use crate::random::hash;
use crate::scenario::{Access, Weight};
use flowstamp_laws::units::Time;
use std::cell::{OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

/// Maximum number of distances cached over all destinations.
const MOST_KEPT: usize = 1 << 23;

/// A path: links in order, and the node to which each leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way {
    pub links: Vec<u32>,
    pub nodes: Vec<usize>,
}

/// Paths of equal cost, each with the fraction of packets that take it.
pub(super) type Shares = Vec<(f64, Way)>;

/// The paths there and back of flows between two nodes, by flow number; only one entry if there is only one path.
pub(super) type Ways = Vec<(Way, Way)>;

/// The hash of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashed(u64);

impl Hashed {
    /// Hashes flow number `index` of the group `name`, in the run of this seed. Acks have a hash of their own, as at
    /// switches.
    pub(super) fn new(seed: u64, name: &str, index: u64) -> Self {
        Self(hash(seed, name).wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub(super) fn acks(self) -> Self {
        Self(!self.0)
    }

    /// One of several random picks of the same flow.
    fn pick(self, number: u64) -> Self {
        Self(hash(self.0, "pick").wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Chooses one of `count` links at a node.
    fn of(self, node: &str, count: usize) -> usize {
        // The last steps of SplitMix64: names and numbers alone do not spread over all bits.
        let mut x = self.0 ^ hash(0, node);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        ((u128::from(x) * count as u128) >> 64) as usize
    }
}

/// Cached least costs, for each destination that was asked for.
#[derive(Default)]
pub(super) struct Known {
    to: BTreeMap<usize, Search>,
    kept: usize,
}

/// A Dijkstra search backward from a destination, continued only as far as asked.
#[derive(Default)]
struct Search {
    /// Least known cost from each node; `u64::MAX` where none is known.
    best: Vec<u64>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    /// All nodes nearer than this cost are known.
    done: Option<u64>,
    /// The edges from each node that lie on least-cost paths, in order, for the nodes that were asked for.
    next: RefCell<BTreeMap<usize, Rc<[usize]>>>,
}

/// Whether a link is on a least-cost path, and whether it is one of several choices at its node.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    reached: bool,
    parallel: bool,
}

/// All links on least-cost paths between pairs of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    pub links: BTreeSet<u32>,
    /// The links that are one of several choices at their node.
    pub parallel: BTreeSet<u32>,
}

/// The routers and links between which flows are placed.
#[derive(Default)]
pub(super) struct Core {
    pub nodes: BTreeMap<String, usize>,
    pub names: Vec<String>,
    /// Edges `(from, to, link)`. An interface of a cell is the link of several edges.
    pub edges: Vec<(usize, usize, u32)>,
    /// For each node the edges that leave it, in order. It is made at the first request for a path, when all edges
    /// exist.
    pub leaving: OnceCell<Vec<Vec<usize>>>,
    /// For each node the edges that enter it.
    pub entering: OnceCell<Vec<Vec<usize>>>,
    /// Cache of least costs to each node.
    pub known: RefCell<Known>,
    /// Hosts between which traffic patterns place flows.
    pub hosts: Vec<usize>,
    /// Access link of a flow, unless its group has another.
    pub access: Option<Access>,
    pub first: String,
    pub last: String,
    /// Round-trip time of a flow that sets none, where the topology gives one.
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

    /// Returns the same nodes without these links.
    pub(super) fn without(&self, down: &BTreeSet<u32>) -> Self {
        let up = |edge: &&(usize, usize, u32)| !down.contains(&edge.2);
        let edges = self.edges.iter().filter(up).copied().collect();
        Self { nodes: self.nodes.clone(), names: self.names.clone(), edges, ..Self::default() }
    }

    /// The paths of a flow's data and acks; `None` if there is none.
    pub(super) fn ways(
        &self,
        links: &[LinkPlan],
        from: usize,
        to: usize,
        flow: Hashed,
    ) -> Option<(Way, Way)> {
        Some((self.way(links, from, to, flow)?, self.way(links, to, from, flow.acks())?))
    }

    /// A least-cost path. It does not depend on other flows.
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

    /// All least-cost paths, each with the fraction of packets that take it if each node picks among its links at random.
    /// If there are more than `most`, as many picks at random. `None` if there is no path.
    pub(super) fn shares(
        &self,
        links: &[LinkPlan],
        (from, to): (usize, usize),
        flow: Hashed,
        most: usize,
    ) -> Option<Shares> {
        let mut shares = Shares::new();
        self.follow(links, from, to, |search| {
            let mut ahead = vec![(from, 1.0, Way::default())];
            while let Some((node, share, way)) = ahead.pop() {
                if node == search.to {
                    shares.push((share, way));
                } else {
                    let next = search.next(node);
                    for edge in next.iter().rev() {
                        let (_, there, link) = self.edges[*edge];
                        let mut way = way.clone();
                        way.links.push(link);
                        way.nodes.push(there);
                        ahead.push((there, share / next.len() as f64, way));
                    }
                }
                if shares.len() > most {
                    break;
                }
            }
        })?;
        if shares.len() > most {
            let picks = (0..most as u64).map(|pick| self.way(links, from, to, flow.pick(pick)));
            return picks.map(|way| Some((1.0 / most as f64, way?))).collect();
        }
        shares.iter_mut().for_each(|(_, way)| self.last_mile(to, way));
        Some(shares)
    }

    /// Whether there is a path.
    pub(super) fn leads(&self, links: &[LinkPlan], from: usize, to: usize) -> bool {
        self.follow(links, from, to, |_| ()).is_some()
    }

    /// All links on least-cost paths between pairs of nodes (source, destination); `None` if a pair has no path.
    pub(super) fn reach(
        &self,
        links: &[LinkPlan],
        pairs: impl IntoIterator<Item = (usize, usize)>,
    ) -> Option<Reach> {
        let mut marked = vec![Mark::default(); links.len()];
        // Paths to hosts of the same switch are the same up to the switch, so one search serves all of them.
        let mut sources: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (from, to) in pairs {
            let last = self.before(to).map(|edge| self.edges[edge]);
            if let Some((_, _, link)) = last {
                marked[link as usize].reached = true;
            }
            sources.entry(last.map_or(to, |(before, _, _)| before)).or_default().insert(from);
        }
        let mut seen = vec![usize::MAX; self.names.len()];
        for (end, from) in &sources {
            from.iter().try_for_each(|start| self.follow(links, *start, *end, |_| ()))?;
            self.follow(links, *from.first()?, *end, |search| {
                self.mark(search, from, &mut seen, &mut marked);
            })?;
        }
        let those = |of: fn(&Mark) -> bool| {
            (0..).zip(&marked).filter(|(_, mark)| of(mark)).map(|(link, _)| link).collect()
        };
        Some(Reach { links: those(|mark| mark.reached), parallel: those(|mark| mark.parallel) })
    }

    /// Marks the links on the paths that `search` found from these nodes. `seen` has, for each node,
    /// the end of the last search that marked its links.
    fn mark(&self, search: &Shortest<'_>, from: &BTreeSet<usize>, seen: &mut [usize], marked: &mut [Mark]) {
        let mut ahead: Vec<usize> = from.iter().copied().collect();
        from.iter().for_each(|node| seen[*node] = search.to);
        while let Some(node) = ahead.pop() {
            if node == search.to {
                continue;
            }
            let next = search.next(node);
            for edge in next.iter() {
                let (_, there, link) = self.edges[*edge];
                let mark = &mut marked[link as usize];
                mark.reached = true;
                mark.parallel |= next.len() > 1;
                if std::mem::replace(&mut seen[there], search.to) != search.to {
                    ahead.push(there);
                }
            }
        }
    }

    /// Whether there is only one least-cost path; `None` if there is none.
    fn is_single(&self, links: &[LinkPlan], from: usize, to: usize) -> Option<bool> {
        let mut single = true;
        self.follow(links, from, to, |search| {
            let mut node = from;
            while single && node != search.to {
                let next = search.next(node);
                single = next.len() == 1;
                node = self.edges[next[0]].1;
            }
        })?;
        Some(single)
    }

    /// The paths of flows between two nodes: one for all, or one for each of `flows` where there are several paths.
    pub(super) fn all_ways(
        &self,
        links: &[LinkPlan],
        (from, to): (usize, usize),
        flows: impl IntoIterator<Item = Hashed>,
    ) -> Option<Ways> {
        let one = self.is_single(links, from, to)? && self.is_single(links, to, from)?;
        let most = if one { 1 } else { usize::MAX };
        flows.into_iter().take(most).map(|flow| self.ways(links, from, to, flow)).collect()
    }

    /// The only edge that enters a node, if there is just one. All paths to the node use it, so the distances to its
    /// other end serve many nodes.
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

    /// Calls `found` with the least-cost paths from one node to another, or to the node before it if a single edge
    /// leads there. `None` if there are no paths.
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
            found(&Shortest { core: self, links, search, to });
        }
        known.kept += search.best.len() - before;
        there.then_some(())
    }

    /// Cost of an edge, at least 1: its weight, or else its delay in picoseconds plus one, so that among equal delays
    /// fewer hops win.
    fn cost(&self, links: &[LinkPlan], edge: usize) -> u64 {
        let link = &links[self.edges[edge].2 as usize];
        link.weight.map_or_else(|| link.delay.as_ps().saturating_add(1), Weight::millionths)
    }
}

impl Search {
    /// Continues the search until the least cost from `from` is known, and with it those of all nearer nodes. False if
    /// there is no path.
    fn until(&mut self, core: &Core, links: &[LinkPlan], from: usize, to: usize) -> bool {
        if self.done.is_none() {
            self.best = vec![u64::MAX; core.names.len()];
            self.best[to] = 0;
            self.heap.push(Reverse((0, to)));
        }
        let known = |search: &Self| search.best[from] < u64::MAX && Some(search.best[from]) <= search.done;
        while !known(self) {
            let Some(Reverse((cost, node))) = self.heap.pop() else { return false };
            self.done = Some(cost);
            if self.best[node] < cost {
                continue;
            }
            for edge in &core.entering()[node] {
                let before = core.edges[*edge].0;
                let there = cost.saturating_add(core.cost(links, *edge));
                // A cost that overflows counts as no path.
                if there < self.best[before] {
                    self.best[before] = there;
                    self.heap.push(Reverse((there, before)));
                }
            }
        }
        true
    }
}

/// Least-cost paths to a node.
struct Shortest<'a> {
    core: &'a Core,
    links: &'a [LinkPlan],
    search: &'a Search,
    to: usize,
}

impl Shortest<'_> {
    /// The edges from a node that lie on least-cost paths, in order.
    fn next(&self, node: usize) -> Rc<[usize]> {
        let best = &self.search.best;
        let leads = |edge: &usize| {
            let rest = best[self.core.edges[*edge].1];
            rest < u64::MAX && rest.saturating_add(self.core.cost(self.links, *edge)) == best[node]
        };
        let find = || self.core.leaving()[node].iter().copied().filter(leads).collect();
        Rc::clone(self.search.next.borrow_mut().entry(node).or_insert_with(find))
    }
}
