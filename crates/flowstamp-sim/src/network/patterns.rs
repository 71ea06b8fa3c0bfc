//! Traffic patterns: the pairs of hosts between which flows go.

use super::group_keys::refuse_keys;
use super::paths::{Core, Way};
use super::{Builder, MOST_FLOWS, Result, error, of_full};
use crate::ScenarioError;
use crate::application::Process;
use crate::plan::{CollectivePlan, GroupPlan};
use crate::random::Stream;
use crate::scenario::{FlowGroup, Pattern};
use flowstamp_laws::units::Time;
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
        let hosts = self.hosts_of(group, core)?;
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
            Pattern::AllToAll => {
                // Each host begins with the one that follows it, so that not all begin with the same.
                let to = |i: usize| (1..count).map(move |s| (i + s) % count);
                Ok((0..count)
                    .flat_map(|i| to(i).map(move |j| (i, j)))
                    .map(|(i, j)| (hosts[i], hosts[j]))
                    .collect())
            }
            Pattern::RingAllReduce => Ok((0..count).map(|i| (hosts[i], hosts[(i + 1) % count])).collect()),
        }
    }

    /// The hosts between which a pattern places flows.
    pub(super) fn hosts_of(&self, group: &FlowGroup, core: &Core) -> Result<Vec<usize>> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        let all = core.hosts();
        if all.len() < 2 {
            return error(
                key("pattern"),
                format!(
                    "goes between hosts, and there are {}; take a fat_tree, a leaf_spine, or a graph in which two nodes have one neighbour each",
                    all.len()
                ),
            );
        }
        if group.hosts.is_empty() {
            return Ok(all);
        }
        let mut named = Vec::with_capacity(group.hosts.len());
        for name in &group.hosts {
            let host = host(core, name, &all).map_err(|m| ScenarioError::new(key("hosts"), m))?;
            if named.contains(&host) {
                return error(key("hosts"), format!("names \"{name}\" twice"));
            }
            named.push(host);
        }
        if named.len() < 2 {
            return error(key("hosts"), "names one host; name two or more");
        }
        Ok(named)
    }

    /// Lets a group of this many flows carry out collective operations, if its pattern is one.
    pub(super) fn join_collective(&self, group: &FlowGroup, flows: usize, plan: &mut GroupPlan) {
        let pattern = group.pattern.filter(|pattern| pattern.is_collective());
        let (Some(pattern), Some(size)) = (pattern, group.size) else { return };
        // N hosts have N (N - 1) flows, or a ring of N.
        let all = pattern == Pattern::AllToAll;
        let hosts = if all { (flows as f64).sqrt().ceil() as u64 } else { flows as u64 }.max(1);
        let steps = if all { 1 } else { 2 * (hosts as u32 - 1) };
        let (operations, gap) = group.collective.as_ref().map_or((1, Time::ZERO), |c| (c.operations, c.gap));
        let message = size.get().div_ceil(hosts);
        plan.mean_size_bytes = None;
        plan.application = Some(Process::collective(message, self.scenario));
        plan.collective = Some(CollectivePlan { steps, message, operations, gap });
    }
}

/// Checks the keys that need a pattern, and those of collective operations.
pub(super) fn check_patterns(group: &FlowGroup) -> Result<()> {
    let key = |k: &str| format!("flows.{}.{k}", group.name);
    if !group.hosts.is_empty() && group.pattern.is_none() {
        return error(key("hosts"), "is for a pattern, and there is none; leave it out");
    }
    if let Some(collective) = &group.collective {
        if !group.is_collective() {
            return error(key("collective"), "is for pattern = \"all-to-all\" or \"ring-all-reduce\" only");
        }
        if collective.operations == 0 {
            return error(key("collective.operations"), "is 0; it must be 1 or more");
        }
    }
    if !group.is_collective() {
        return Ok(());
    }
    if group.size.is_none() {
        return error(key("size"), "is missing; it is the data of each host, such as \"10MB\"");
    }
    let given = [
        ("web", group.web.is_some()),
        ("incast", group.incast.is_some()),
        ("every", group.every > Time::ZERO),
        ("rate", group.rate.is_some()),
        ("application", group.application.is_some()),
        ("lifetime", group.lifetime.is_some() || group.lifetime_spread > Time::ZERO),
    ];
    refuse_keys(group, &given, "collective operations, which say when hosts send and how much")
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
    refuse_keys(group, &given, "a pattern, which says between which hosts flows go")
}

/// Number of host pairs of a group.
fn pairs(group: &FlowGroup, pattern: Pattern, hosts: u32) -> Result<usize> {
    let web = group.web.is_some();
    let count = group.count.unwrap_or(match pattern {
        Pattern::Random if web => PAIRS,
        Pattern::Incast => hosts - 1,
        _ => hosts,
    });
    if pattern.is_collective() && (count == 1 || count > hosts) {
        let message = format!("is {count}; it must be 2 to {hosts}, the number of hosts");
        return error(format!("flows.{}.count", group.name), message);
    }
    let flows = if pattern == Pattern::AllToAll { u64::from(count).pow(2) } else { u64::from(count) };
    if flows > u64::from(MOST_FLOWS) || (web && count == 0) {
        let least = u32::from(web);
        return error(
            format!("flows.{}.count", group.name),
            format!(
                "is {count}; it must be at least {least} and at most {}",
                if pattern == Pattern::AllToAll { 1000 } else { MOST_FLOWS }
            ),
        );
    }
    Ok(count as usize)
}

/// The receiving host of an incast.
pub(super) fn receiver(group: &FlowGroup, core: &Core, hosts: &[usize]) -> Result<usize> {
    let Some(name) = &group.to else { return Ok(hosts[hosts.len() - 1]) };
    host(core, name, hosts).map_err(|m| ScenarioError::new(format!("flows.{}.to", group.name), m))
}

/// The host of this name. The error says which there are.
fn host(core: &Core, name: &str, hosts: &[usize]) -> std::result::Result<usize, String> {
    let found = core.nodes.get(name).filter(|node| hosts.contains(node));
    found.copied().ok_or_else(|| format!("\"{name}\" is not a host; there are {}", core.some_names(hosts)))
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
