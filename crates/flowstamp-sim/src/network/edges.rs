//! Edges of a core cloud: flows that govern links, and the number of flows that each stands for.

use super::paths::Core;
use super::{Builder, Result, error, of_full};
use crate::plan::Network;
use crate::scenario::{FlowGroup, Priority};
use flowstamp_laws::registry::Header;
use std::collections::VecDeque;

impl Builder<'_> {
    /// Assigns governing flows to their links. Tells their laws how many flows take the link, where the scenario does
    /// not.
    pub(super) fn edges(&mut self, core: &Core, network: &mut Network) -> Result<()> {
        for at in 0..network.groups.len() {
            let spec = &self.scenario.flows[network.groups[at].spec];
            let key = |k: &str| format!("flows.{}.{k}", spec.name);
            let Some(name) = &spec.governs else {
                if spec.law.traits().governs {
                    let message =
                        format!("is missing; \"{}\" has no data of its own, name a link", spec.law.name());
                    return error(key("governs"), message);
                }
                continue;
            };
            of_full(key("governs"), "flows that govern links")?;
            check_group(spec)?;
            let Some(link) = self.links.iter().position(|l| l.name == *name) else {
                let known: Vec<_> = self.links.iter().map(|l| l.name.as_str()).collect();
                return error(
                    key("governs"),
                    format!("\"{name}\" is not a link; there are {}", known.join(", ")),
                );
            };
            self.check_link(core, spec, network, at, link)?;
            if spec.law.traits().stamps_link {
                self.stamp_link(spec, network, at, link)?;
            }
            let plan = &mut self.links[link];
            plan.governed = true;
            let rate = plan.capacity.mean(flowstamp_laws::Time::ZERO, self.scenario.duration);
            network.groups[at].governs = Some((link as u32, rate));
            let takes = |group: u32| network.groups[group as usize].links.contains(&(link as u32));
            let planned = network.flows.iter().filter(|flow| takes(flow.group)).count();
            let arriving = network
                .arrivals
                .iter()
                .filter(|plan| takes(plan.group))
                .map(|plan| plan.routes.iter().map(VecDeque::len).sum::<usize>());
            let flows = (planned + arriving.sum::<usize>()) as u32;
            if let Some(open) = network.groups[at].laws[0].open().micro_flows.filter(|given| given.is_none())
            {
                *open = Some(flows);
                network.assumed.insert(key("law.flows"), flows.to_string());
            }
            let law = &network.groups[at].laws[0];
            if let Err((k, m)) = law.check() {
                let message = format!("{m}: \"{name}\" is taken by {flows}; give flows, or several links");
                return error(key(&format!("law.{k}")), message);
            }
        }
        Ok(())
    }

    /// Lets packets of a governed link carry the law's header inside the cloud. Flows over the link must have no header of
    /// their own, and leave the cloud by the macro-flow's last link.
    fn stamp_link(&mut self, spec: &FlowGroup, network: &Network, at: usize, link: usize) -> Result<()> {
        let Some(last) = network.groups[at].ways[0].last() else { return Ok(()) };
        let name = &self.links[link].name;
        for group in &network.groups {
            let mut ways = group.ways.iter().filter(|way| way.contains(&(link as u32))).peekable();
            if ways.peek().is_none() {
                continue;
            }
            if let Some(law) = group.laws.iter().find(|law| law.header() != Header::Plain) {
                let message = format!(
                    "is \"{}\", which has a header of its own, and takes \"{name}\"; give flows.{}.law.headers = \"control\"",
                    law.name(),
                    spec.name
                );
                return error(format!("flows.{}.law", group.name), message);
            }
            if !ways.all(|way| way.contains(last)) {
                let message = format!(
                    "takes \"{name}\", but leaves the cloud by another link than {}; give it another link",
                    spec.name
                );
                return error(format!("flows.{}.to", group.name), message);
            }
        }
        // Packets of an impaired link are handled one by one at its end, where the header comes off.
        self.links[*last as usize].impairments.get_or_insert_default();
        Ok(())
    }

    /// Checks a governed link: it has no scheduler or shared medium, and all its flows leave the cloud where the
    /// governing flow ends.
    fn check_link(
        &self,
        core: &Core,
        spec: &FlowGroup,
        network: &Network,
        at: usize,
        link: usize,
    ) -> Result<()> {
        let key = |k: &str| format!("flows.{}.{k}", spec.name);
        let plan = &self.links[link];
        let name = &plan.name;
        let other = [
            ("share", plan.share.params().is_some()),
            ("priority", plan.priority != Priority::None),
            ("a shaper", plan.queue.shaper().is_some()),
            ("medium", plan.medium.is_shared()),
        ];
        if let Some((k, _)) = other.iter().find(|o| o.1) {
            return error(
                key("governs"),
                format!("\"{name}\" has {k}, and a macro-flow is one queue; leave out one of them"),
            );
        }
        if plan.governed {
            return error(
                key("governs"),
                format!("\"{name}\" is governed by another flow already; name another link"),
            );
        }
        let route = &network.groups[at].ways[0];
        let end_of = |link: u32| core.edges.iter().find(|e| e.2 == link).map(|e| e.1);
        let start = route.first().and_then(|first| core.edges.iter().find(|e| e.2 == *first)).map(|e| e.0);
        if start != end_of(link as u32) {
            let node = end_of(link as u32).map_or("", |n| core.names[n].as_str());
            return error(
                key("from"),
                format!("must be where \"{name}\" ends, {node}: there the flow enters the cloud"),
            );
        }
        let egress = route.last().and_then(|last| end_of(*last));
        for group in &network.groups {
            let misses = |way: &Vec<u32>| {
                let behind = way.iter().skip_while(|l| **l != link as u32);
                way.contains(&(link as u32)) && !behind.into_iter().any(|l| end_of(*l) == egress)
            };
            if group.ways.iter().any(misses) {
                let node = egress.map_or("", |n| core.names[n].as_str());
                return error(
                    format!("flows.{}.to", group.name),
                    format!(
                        "takes \"{name}\", whose macro-flow ends at {node}, but does not pass there; give it another link"
                    ),
                );
            }
        }
        Ok(())
    }
}

/// Refuses keys that a governing flow cannot have.
fn check_group(spec: &FlowGroup) -> Result<()> {
    let key = |k: &str| format!("flows.{}.{k}", spec.name);
    if !spec.law.traits().governs {
        let message = format!(
            "is for laws of macro-flows, such as \"xcp-edge\"; \"{}\" has data of its own",
            spec.law.name()
        );
        return error(key("governs"), message);
    }
    let given = [
        ("size", spec.size.is_some()),
        ("rate", spec.rate.is_some()),
        ("application", spec.application.is_some()),
        ("web", spec.web.is_some()),
        ("stop", spec.stop.is_some()),
        ("lifetime", spec.lifetime.is_some()),
        ("each_hop", spec.each_hop),
        ("count", spec.count.is_some_and(|count| count != 1)),
        ("access", spec.access.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((k, _)) => {
            error(key(k), "is not for a flow that governs a link, which is one and has no data; leave it out")
        }
        None => Ok(()),
    }
}
