//! Routers, the links between them, and the way of least delay.

use super::plan::LinkPlan;
use crate::scenario::Access;
use flowstamp_laws::units::Time;
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Links one after another, and the node that each leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    pub links: Vec<u32>,
    pub nodes: Vec<usize>,
}

/// The routers and links between which flows are placed.
pub(super) struct Core {
    pub nodes: BTreeMap<String, usize>,
    pub names: Vec<String>,
    /// `(from, to, link)`; an interface of a cell is the link of several.
    pub edges: Vec<(usize, usize, u32)>,
    /// Of each node the edges that leave it, in their order; made when the first path is asked for, by which time all are there.
    pub leaving: OnceCell<Vec<Vec<usize>>>,
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

    /// The path of least delay; ties go to the lower link numbers.
    pub(super) fn path(&self, links: &[LinkPlan], from: usize, to: usize) -> Option<Way> {
        /// Least delay to a node, and the node and link before it.
        type Reached = (Time, Option<(usize, u32)>);
        let leaving = self.leaving.get_or_init(|| {
            let mut leaving = vec![Vec::new(); self.names.len()];
            for (number, (from, _, _)) in self.edges.iter().enumerate() {
                leaving[*from].push(number);
            }
            leaving
        });
        // Of the nodes that are seen: one for each hop of a long row would be its square.
        let mut best: BTreeMap<usize, Reached> = BTreeMap::new();
        let mut heap = BinaryHeap::new();
        best.insert(from, (Time::ZERO, None));
        heap.push(Reverse((Time::ZERO, from)));
        while let Some(Reverse((cost, node))) = heap.pop() {
            // No way there that is found later is shorter.
            if node == to {
                break;
            }
            if best.get(&node).is_none_or(|(c, _)| *c < cost) {
                continue;
            }
            for edge in &leaving[node] {
                let (_, next, link) = self.edges[*edge];
                // A hop costs a picosecond, so that of equal delays the fewer hops win.
                let there = cost + links[link as usize].delay + Time::from_ps(1);
                if best.get(&next).is_none_or(|(c, _)| there < *c) {
                    best.insert(next, (there, Some((node, link))));
                    heap.push(Reverse((there, next)));
                }
            }
        }
        let mut way = Way::default();
        let mut node = to;
        while let Some((back, link)) = best.get(&node)?.1 {
            way.links.push(link);
            way.nodes.push(node);
            node = back;
        }
        way.links.reverse();
        way.nodes.reverse();
        Some(way)
    }
}
