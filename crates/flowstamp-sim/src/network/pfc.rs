//! Priority flow control of links: which link carries pauses back, which links are counted, and thresholds.
//!
//! The buffers before the links of a switch are its memory. With flow control, the buffer of the link that leads back is
//! the share of the link that comes in: `xoff`, and headroom above it. The law ([`flowstamp_laws::pfc`]) computes the default
//! headroom.

use super::budget::packets;
use super::datacentre::Laid;
use super::paths::Core;
use super::{Builder, Result, error, of_full};
use crate::medium::Capacity;
use crate::plan::{END, LinkPlan, Medium, Network, PfcPlan};
use crate::scenario::Priority;
use flowstamp_laws::pfc;
use flowstamp_laws::units::{Bytes, Rate};
use std::collections::BTreeMap;

impl Builder<'_> {
    /// Notes which links have flow control, with the links that lead back and those that follow them.
    pub(super) fn pauses(&mut self, laid: &Laid, core: &Core) -> Result<()> {
        let links = laid.graph.links.iter().enumerate();
        let each = links.flat_map(|(i, link)| std::iter::repeat_n((i, link), 1 + usize::from(link.duplex)));
        let asked: Vec<_> = each.map(|(i, link)| (i, link.pfc.and_then(|pfc| pfc.thresholds()))).collect();
        let Some((first, _)) = asked.iter().find(|(_, given)| given.is_some()) else { return Ok(()) };
        let key = |link: usize| format!("{}.pfc", laid.key(link));
        of_full(key(*first), "priority flow control")?;
        if !self.scenario.wireless.is_empty() {
            return error(key(*first), "cannot pause the cells of [[wireless]]; leave out one of them");
        }
        let back = links_back(laid, core);
        let mut into: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for ((from, to, link), (number, given)) in core.edges.iter().zip(&asked) {
            let Some(given) = *given else { continue };
            let Some(back) = back.get(link) else {
                let name = &self.links[*link as usize].name;
                return error(
                    key(*number),
                    format!("needs a link back for pauses, and {name} has none; give it duplex = true"),
                );
            };
            debug_assert!(from != to, "a link joins two nodes");
            into.entry(*to).or_default().push(*link);
            self.links[*link as usize].pfc =
                Some(PfcPlan { given, back: *back, xoff: 0, xon: 0, headroom: 0 });
        }
        for (from, _, link) in &core.edges {
            if let Some(links) = into.get(from) {
                self.links[*link as usize].fed_by.clone_from(links);
            }
        }
        Ok(())
    }

    /// Packets of a size that may wait at a link: in its buffer, and in those of links that are paused for it.
    pub(super) fn room(&self, plan: &LinkPlan, size: f64) -> f64 {
        let back = |link: &u32| self.links[*link as usize].pfc.map(|pfc| self.links[pfc.back as usize].limit);
        let others = plan.fed_by.iter().filter_map(back).map(|limit| packets(limit, size));
        packets(plan.limit, size) + others.sum::<f64>()
    }

    /// Checks links with flow control, and sets their thresholds.
    pub(super) fn pfc_thresholds(&mut self, network: &Network) -> Result<()> {
        if cfg!(not(feature = "full")) || self.links.iter().all(|plan| plan.pfc.is_none()) {
            return Ok(());
        }
        self.check_pfc(network)?;
        let mtu = self.largest_packet(network);
        let goes_on = self.forwarding();
        for (link, goes_on) in goes_on.into_iter().enumerate() {
            let Some(pfc) = self.links[link].pfc else { continue };
            // A link to a host is never paused, and its thresholds mean nothing.
            let plan = if goes_on { self.thresholds(link, pfc, mtu)? } else { pfc };
            self.links[link].pfc = Some(plan);
        }
        Ok(())
    }

    fn thresholds(&self, link: usize, asked: PfcPlan, mtu: u64) -> Result<PfcPlan> {
        let (plan, back) = (&self.links[link], &self.links[asked.back as usize]);
        let room = back.limit.bytes(self.scenario.packet.as_f64()) as u64;
        let least = headroom(plan, back, mtu);
        let headroom = asked.given.headroom.map_or(least, Bytes::get);
        let key = |name: &str| plan.key(&format!("pfc.{name}"));
        let rest = room.checked_sub(headroom).filter(|rest| *rest > 0);
        let Some(rest) = rest else {
            return error(
                plan.key("pfc"),
                format!(
                    "needs headroom of {} for {}, and the buffer of {} has {}; give buffer = \"{}\" or more",
                    Bytes::new(headroom),
                    plan.name,
                    back.name,
                    Bytes::new(room),
                    Bytes::new(headroom + 4 * mtu)
                ),
            );
        };
        let xoff = asked.given.xoff.map_or(rest, Bytes::get);
        if xoff > rest {
            return error(
                key("xoff"),
                format!(
                    "is {}; with headroom of {} in the buffer of {}, {}, it is at most {}",
                    Bytes::new(xoff),
                    Bytes::new(headroom),
                    back.name,
                    Bytes::new(room),
                    Bytes::new(rest)
                ),
            );
        }
        let xon = asked.given.xon.map_or(pfc::default_xon(xoff, mtu), Bytes::get);
        if xon > xoff {
            return error(
                key("xon"),
                format!("is {}; it is at most xoff, {}", Bytes::new(xon), Bytes::new(xoff)),
            );
        }
        Ok(PfcPlan { xoff, xon, headroom, ..asked })
    }

    /// Refuses what cannot be together with flow control.
    fn check_pfc(&self, network: &Network) -> Result<()> {
        for plan in self.links.iter().filter(|plan| plan.is_held()) {
            let queue = !matches!(plan.queue.name(), "droptail" | "red") || plan.queue.drops_head();
            let asked = [
                ("medium", plan.medium != Medium::Own, "is shared with other links"),
                ("queue", queue, "drops packets for other reasons than a full buffer"),
                ("share", plan.share.params().is_some(), "divides a buffer that counts by incoming link"),
                ("priority", plan.priority == Priority::Labels, "has a buffer for each label"),
                ("rate", plan.governed, "is set by a flow"),
            ];
            if let Some((key, _, why)) = asked.iter().find(|asked| asked.1) {
                return self.unpausable(plan, key, why);
            }
        }
        for plan in &self.links {
            let Some(pfc) = plan.pfc else { continue };
            for plan in [plan, &self.links[pfc.back as usize]] {
                let asked = [
                    (
                        "rate",
                        !matches!(plan.capacity, Capacity::Constant(_)),
                        "varies, or stops in an outage",
                    ),
                    ("scone", plan.scone.is_some(), "writes to packets one by one at the end of the link"),
                    ("impairments", plan.is_impaired(), "(or an outage) would lose packets, or pauses"),
                    ("delay", plan.varying_delay.is_some(), "varies"),
                ];
                if let Some((key, _, why)) = asked.iter().find(|asked| asked.1) {
                    return self.unpausable(plan, key, why);
                }
            }
        }
        for group in &network.groups {
            let spec = &self.scenario.flows[group.spec];
            if group.access.is_some() {
                return error(
                    format!("flows.{}.access", spec.name),
                    "gives hosts links that cannot be paused, and links of the network have pfc; make the hosts nodes of the graph",
                );
            }
        }
        Ok(())
    }

    fn unpausable(&self, plan: &LinkPlan, key: &str, why: &str) -> Result<()> {
        error(
            plan.key("pfc"),
            format!("cannot be at {} together with its {key}, which {why}; leave out one of them", plan.name),
        )
    }

    /// Size of the largest packet of any flow, bytes.
    fn largest_packet(&self, network: &Network) -> u64 {
        let made = network.groups.iter().filter_map(|group| group.application.as_ref());
        let made = made.map(|process| u64::from(process.largest_packet()));
        made.chain([self.scenario.packet.get(), self.scenario.ack.get()]).max().unwrap_or_default()
    }

    /// For each router link, whether packets go on to another link from there.
    fn forwarding(&self) -> Vec<bool> {
        let mut goes_on = vec![false; self.links.len()];
        for pair in self.routes.windows(2).filter(|pair| pair[0] != END && pair[1] != END) {
            if let Some(link) = goes_on.get_mut(pair[0] as usize) {
                *link = true;
            }
        }
        goes_on
    }
}

/// The most that can arrive above `xoff`, bytes.
fn headroom(plan: &LinkPlan, back: &LinkPlan, mtu: u64) -> u64 {
    let rate = |plan: &LinkPlan| match plan.capacity {
        Capacity::Constant(rate) => rate,
        _ => Rate::ZERO, // refused before
    };
    pfc::headroom(rate(plan), rate(back), plan.delay, back.delay, mtu)
}

/// For each link the link that leads back: the other direction of the same link, or else another link between the same
/// nodes, in the order of the scenario.
fn links_back(laid: &Laid, core: &Core) -> BTreeMap<u32, u32> {
    let mut back = BTreeMap::new();
    let mut alone: BTreeMap<(usize, usize), Vec<u32>> = BTreeMap::new();
    let mut edges = core.edges.iter();
    for link in &laid.graph.links {
        let Some((from, to, there)) = edges.next() else { break };
        if !link.duplex {
            alone.entry((*from, *to)).or_default().push(*there);
        } else if let Some((_, _, other)) = edges.next() {
            back.extend([(*there, *other), (*other, *there)]);
        }
    }
    for ((from, to), links) in &alone {
        let others = alone.get(&(*to, *from)).into_iter().flatten();
        back.extend(links.iter().copied().zip(others.copied()));
    }
    back
}
