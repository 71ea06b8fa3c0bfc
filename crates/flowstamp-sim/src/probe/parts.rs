//! The samples of a network whose parts have probes of their own.

use super::{Probe, goodput};
use crate::fabric::Fabric;
use crate::host::Hosts;
use crate::parts::Threads;

/// The source of a series' samples.
enum Whose {
    Part(usize),
    /// The sum of all parts' samples of a group.
    Group(usize),
}

impl Probe {
    /// Lets the probe keep the samples from which the whole network's are computed.
    pub fn of_a_part(&mut self) {
        self.group_bytes = Some(Vec::new());
    }

    /// Takes the samples of the other parts' probes where they have the links and flows.
    pub fn take_over(&mut self, others: &[&Self], parts: &Threads, net: &Fabric, hosts: &Hosts) {
        let whose = self.whose(parts, net, hosts);
        let groups = hosts.groups.len();
        let sums: Vec<u64> = (0..self.group_bytes.as_ref().map_or(0, Vec::len))
            .map(|at| {
                let all = std::iter::once(&*self).chain(others.iter().copied());
                all.filter_map(|probe| probe.group_bytes.as_ref()).map(|bytes| bytes[at]).sum()
            })
            .collect();
        for (row, value) in self.series.value.iter_mut().enumerate() {
            match whose[row % whose.len()] {
                Whose::Part(0) => {}
                Whose::Part(part) => *value = others[part - 1].series.value[row],
                Whose::Group(group) => *value = goodput(sums[row / whose.len() * groups + group], self.every),
            }
        }
    }

    /// The source of each series, in the order of a sample's rows.
    fn whose(&self, parts: &Threads, net: &Fabric, hosts: &Hosts) -> Vec<Whose> {
        let mut whose = Vec::new();
        if self.what.links {
            let links = 0..net.routers().count();
            whose.extend(
                links
                    .flat_map(|link| (0..super::LINK_METRICS).map(move |_| link))
                    .map(|link| Whose::Part(parts.of_queue(link))),
            );
        }
        if self.what.groups {
            whose.extend((0..hosts.groups.len()).map(Whose::Group));
        }
        if self.what.flows {
            for flow in 0..self.flows.len() {
                let (sender, receiver) = parts.of_flow(flow);
                whose.extend([receiver, sender, sender].map(Whose::Part));
            }
        }
        if self.what.laws {
            for (link, (port, _)) in net.routers().enumerate() {
                port.variables(&mut |_, _| whose.push(Whose::Part(parts.of_queue(link))));
            }
        }
        whose
    }
}
