//! Traffic patterns: the pairs of hosts between which flows go.

use super::paths::{Core, Way};
use super::{Builder, MOST_FLOWS, Result, error, of_full};
use crate::random::Stream;
use crate::scenario::{FlowGroup, Pattern};
use std::collections::BTreeSet;

/// Number of host pairs drawn for flows that arrive at random.
const PAIRS: u32 = 10_000;

impl Builder<'_> {
    /// The host pairs of a group with a pattern, in the order of its flows.
    pub(super) fn pattern(&self, group: &FlowGroup, core: &Core) -> Result<Vec<(usize, usize)>> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        let Some(pattern) = group.pattern else { return Ok(Vec::new()) };
        of_full(key("pattern"), "patterns of flows")?;
        check_beside(group, pattern)?;
        let hosts = core.hosts();
        if hosts.len() < 2 {
            return error(
                key("pattern"),
                format!(
                    "goes between hosts, and there are {}; take a fat_tree, a leaf_spine, or a graph in which two nodes have one neighbour each",
                    hosts.len()
                ),
            );
        }
        let count = pairs(group, pattern, hosts.len() as u32)?;
        let mut draws = Stream::new(self.seed, &format!("pattern/{}", group.name));
        let mut shuffled = |mut nodes: Vec<usize>| {
            (1..nodes.len()).rev().for_each(|i| nodes.swap(i, draws.below(i + 1)));
            nodes
        };
        match pattern {
            Pattern::Random => {
                let mut drawn = || {
                    let (from, to) = (draws.below(hosts.len()), draws.below(hosts.len() - 1));
                    (hosts[from], hosts[to + usize::from(to >= from)])
                };
                Ok((0..count).map(|_| drawn()).collect())
            }
            Pattern::Permutation => {
                let ring = shuffled(hosts);
                Ok((0..count).map(|i| (ring[i % ring.len()], ring[(i + 1) % ring.len()])).collect())
            }
            Pattern::Incast => {
                let to = receiver(group, core, &hosts)?;
                let from = shuffled(hosts.into_iter().filter(|host| *host != to).collect());
                Ok((0..count).map(|i| (from[i % from.len()], to)).collect())
            }
        }
    }
}

/// Checks that no other key sets the nodes between which the flows go.
fn check_beside(group: &FlowGroup, pattern: Pattern) -> Result<()> {
    let given = [
        ("list", group.list.is_some()),
        ("each_hop", group.each_hop),
        ("governs", group.governs.is_some()),
        ("from", group.from.is_some()),
        ("to", group.to.is_some() && pattern != Pattern::Incast),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((k, _)) => error(
            format!("flows.{}.{k}", group.name),
            "is not for a pattern, which says between which hosts flows go; leave it out",
        ),
        None => Ok(()),
    }
}

/// Number of host pairs of a group.
fn pairs(group: &FlowGroup, pattern: Pattern, hosts: u32) -> Result<usize> {
    let web = group.web.is_some();
    let count = group.count.unwrap_or(match pattern {
        Pattern::Random if web => PAIRS,
        Pattern::Incast => hosts - 1,
        Pattern::Random | Pattern::Permutation => hosts,
    });
    if count > MOST_FLOWS || (web && count == 0) {
        let least = u32::from(web);
        return error(
            format!("flows.{}.count", group.name),
            format!("is {count}; it must be at least {least} and at most {MOST_FLOWS}"),
        );
    }
    Ok(count as usize)
}

/// The receiving host of an incast.
fn receiver(group: &FlowGroup, core: &Core, hosts: &[usize]) -> Result<usize> {
    let Some(name) = &group.to else { return Ok(hosts[hosts.len() - 1]) };
    match core.nodes.get(name).filter(|node| hosts.contains(node)) {
        Some(node) => Ok(*node),
        None => {
            let known = core.some_names(hosts);
            error(format!("flows.{}.to", group.name), format!("\"{name}\" is not a host; there are {known}"))
        }
    }
}

impl Core {
    /// The hosts of a pattern: those of the topology, or the nodes of a graph with one neighbour.
    pub(super) fn hosts(&self) -> Vec<usize> {
        if !self.hosts.is_empty() || self.access.is_some() {
            return self.hosts.clone();
        }
        let mut neighbours = vec![BTreeSet::new(); self.names.len()];
        for (from, to, _) in &self.edges {
            neighbours[*from].insert(*to);
            neighbours[*to].insert(*from);
        }
        (0..self.names.len()).filter(|node| neighbours[*node].len() == 1).collect()
    }

    /// The node that a scenario names, or else the topology's default. The error says what is wrong.
    pub(super) fn end(&self, given: &Option<String>, default: &str) -> std::result::Result<usize, String> {
        let known = || self.some_names(&(0..self.names.len()).collect::<Vec<_>>());
        match given.as_deref() {
            Some(name) => self
                .nodes
                .get(name)
                .copied()
                .ok_or_else(|| format!("\"{name}\" is not a node; there are {}", known())),
            None if default.is_empty() => Err(format!("is missing; name one of {}", known())),
            None => Ok(self.nodes[default]),
        }
    }

    /// Names of nodes for messages, cut after 40.
    pub(super) fn some_names(&self, nodes: &[usize]) -> String {
        const MOST: usize = 40;
        let names: Vec<&str> = nodes.iter().take(MOST).map(|node| self.names[*node].as_str()).collect();
        let more = nodes.len().saturating_sub(MOST);
        names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
    }

    /// Total rate at which the hosts at the paths' ends can send over their own links, or receive if that is less.
    pub(super) fn hosts_carry<'w>(
        &self,
        ways: impl Iterator<Item = &'w (Way, Way)>,
        rate: impl Fn(&u32) -> f64,
    ) -> f64 {
        let (mut from, mut to) = (BTreeSet::new(), BTreeSet::new());
        for (there, back) in ways {
            from.extend(back.nodes.last());
            to.extend(there.nodes.last());
        }
        let sum = |edges: &[Vec<usize>], nodes: BTreeSet<usize>| -> f64 {
            let edges = nodes.into_iter().flat_map(|node| &edges[node]);
            edges.map(|edge| rate(&self.edges[*edge].2)).sum()
        };
        sum(self.leaving(), from).min(sum(self.entering(), to))
    }
}
