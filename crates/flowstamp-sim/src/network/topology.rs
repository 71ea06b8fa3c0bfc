//! Lays out the three kinds of topology: dumbbell, parking lot and graph.

use super::datacentre::Laid;
use super::paths::Core;
use super::scone;
use super::{Builder, Result, error, of_full};
use crate::medium::Capacity;
use crate::plan::{LinkPlan, Medium};
use crate::scenario::{Access, Police, Priority, check_rate};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{QueueSpec, RouterSpec, ShareSpec};
use flowstamp_laws::share::police;
use flowstamp_laws::units::{Rate, Time};
use std::collections::BTreeSet;

impl Builder<'_> {
    pub(super) fn add_link(&mut self, plan: LinkPlan) -> u32 {
        self.links.push(plan);
        (self.links.len() - 1) as u32
    }

    pub(super) fn dumbbell(&mut self) -> Result<Core> {
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
        check_rate("dumbbell.access_rate", access_rate)?;
        let mut core = Core {
            access: Some(Access { rate: access_rate, delay: Time::from_ps(rest / 2) }),
            first: "left".to_owned(),
            last: "right".to_owned(),
            rtt: Some(d.rtt),
            ..Core::default()
        };
        let (left, right) = (core.node("left"), core.node("right"));
        let (there, back) = (d.rate.known(), d.reverse_rate.as_ref().unwrap_or(&d.rate).known());
        let impaired_back = d.reverse_impairments.as_ref().or(d.impairments.as_ref());
        for (name, capacity, told, impairments, from, to) in [
            ("bottleneck", forward, there, d.impairments.as_ref(), left, right),
            ("bottleneck.reverse", backward, back, impaired_back, right, left),
        ] {
            let limit =
                self.limit("dumbbell.buffer", d.buffer, self.mean_rate(&capacity), Some(d.rtt), &d.queue)?;
            let police = police("dumbbell.police", d.police, self.mean_rate(&capacity))?;
            let scone = scone::plan("dumbbell.scone", d.scone, &d.router)?;
            let link = self.add_link(LinkPlan {
                name: name.to_owned(),
                table: "dumbbell".to_owned(),
                capacity,
                told,
                delay,
                weight: None,
                limit,
                queue: d.queue.clone(),
                router: d.router.clone(),
                share: d.share.clone(),
                priority: priority(d.priority, &d.router, &d.share, &d.queue),
                police,
                medium: Medium::Own,
                governed: false,
                impairments: impairments.cloned(),
                varying_delay: None, // known when impairments are checked, as are outages
                outages: Vec::new(),
                holds: false,
                pfc: None,
                fed_by: Vec::new(),
                scone,
            });
            core.edges.push((from, to, link));
        }
        Ok(core)
    }

    pub(super) fn parking_lot(&mut self) -> Result<Core> {
        let Some(p) = &self.scenario.parking_lot else { return error("parking_lot", "is missing") };
        if p.rates.is_empty() {
            return error("parking_lot.rates", "is empty; give one rate for each link");
        }
        let hops = p.rates.len() as u64;
        let fastest = p.rates.iter().map(|r| r.bps()).fold(0.0, f64::max);
        let access_rate = p.access_rate.unwrap_or(Rate::from_bps(10.0 * fastest));
        let rtt = p.rtt.unwrap_or((p.delay * hops + p.access_delay * 2) * 2);
        let mut core = Core {
            access: Some(Access { rate: access_rate, delay: p.access_delay }),
            first: "n0".to_owned(),
            last: format!("n{hops}"),
            ..Core::default()
        };
        for (i, rate) in p.rates.iter().enumerate() {
            check_rate(&format!("parking_lot.rates[{i}]"), *rate)?;
            let (a, b) = (core.node(&format!("n{i}")), core.node(&format!("n{}", i + 1)));
            let limit = self.limit("parking_lot.buffer", p.buffer, *rate, Some(rtt), &p.queue)?;
            for (suffix, from, to) in [("", a, b), (".reverse", b, a)] {
                let link = self.add_link(LinkPlan {
                    name: format!("link{}{suffix}", i + 1),
                    table: "parking_lot".to_owned(),
                    capacity: Capacity::Constant(*rate),
                    told: true,
                    delay: p.delay,
                    weight: None,
                    limit,
                    queue: p.queue.clone(),
                    router: p.router.clone(),
                    share: p.share.clone(),
                    priority: priority(p.priority, &p.router, &p.share, &p.queue),
                    police: police("parking_lot.police", p.police, *rate)?,
                    medium: Medium::Own,
                    governed: false,
                    impairments: p.impairments.clone(),
                    varying_delay: None, // known when impairments are checked, as are outages
                    outages: Vec::new(),
                    holds: false,
                    pfc: None,
                    fed_by: Vec::new(),
                    scone: None,
                });
                core.edges.push((from, to, link));
            }
        }
        Ok(core)
    }

    pub(super) fn graph(&mut self, laid: &Laid) -> Result<Core> {
        let g = &laid.graph;
        if g.links.is_empty() && self.scenario.wireless.is_empty() {
            return error("graph.links", "is empty; give at least one [[graph.links]]");
        }
        self.check_weights(laid)?;
        let mut core = Core::default();
        let mut media = Vec::new();
        let mut names = BTreeSet::new();
        for (i, l) in g.links.iter().enumerate() {
            let key = laid.key(i);
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
                if !names.insert(name.clone()) {
                    return error(
                        format!("{key}.name"),
                        format!("\"{name}\" appears twice; give names that differ"),
                    );
                }
                let link = self.add_link(LinkPlan {
                    name,
                    table: key.clone(),
                    capacity: capacity.clone(),
                    told: l.rate.known(),
                    delay: l.delay,
                    weight: l.weight,
                    limit: Limit::Packets(0), // set by graph_buffers, once all flows are known
                    queue: l.queue.clone(),
                    router: l.router.clone(),
                    share: l.share.clone(),
                    priority: priority(l.priority, &l.router, &l.share, &l.queue),
                    police: police(&format!("{key}.police"), l.police, self.mean_rate(&capacity))?,
                    medium: l.medium.as_ref().map_or(Medium::Own, |name| medium(name, &mut media)),
                    governed: false,
                    impairments: l.impairments.clone(),
                    varying_delay: None, // known when impairments are checked, as are outages
                    outages: Vec::new(),
                    holds: false,
                    pfc: None,
                    fed_by: Vec::new(),
                    scone: scone::plan(&format!("{key}.scone"), l.scone, &l.router)?,
                });
                core.edges.push((from, to, link));
            }
        }
        core.hosts = laid.hosts.iter().map(|host| core.nodes[host]).collect();
        self.cells(&mut core).map(|()| core)
    }

    /// Whether routes go by weight: true if any link or cell has a weight.
    pub(super) fn weighted(&self) -> bool {
        let links = self.scenario.graph.iter().flat_map(|graph| &graph.links).map(|link| link.weight);
        links.chain(self.scenario.wireless.iter().map(|cell| cell.weight)).any(|weight| weight.is_some())
    }

    /// Checks that every link has a weight, where routes go by weight.
    fn check_weights(&self, laid: &Laid) -> Result<()> {
        match laid.graph.links.iter().position(|link| link.weight.is_none()).filter(|_| self.weighted()) {
            None => Ok(()),
            Some(bare) => error(
                format!("{}.weight", laid.key(bare)),
                "is missing, but other links have weights, by which all routes then go; give every link one (of a file: graph.weight for those \
                 that have none, or ignore_columns = [\"weight\"] for routes by delay)",
            ),
        }
    }

    /// Sets the buffers of a graph. Buffers in BDP depend on the longest flow, which is known last.
    pub(super) fn graph_buffers(&mut self, longest: Time) -> Result<()> {
        let Some(laid) = self.graph.take() else { return Ok(()) };
        let g = &laid.graph;
        let mut at = 0;
        for (i, l) in g.links.iter().enumerate() {
            for _ in 0..1 + usize::from(l.duplex) {
                let rate = self.mean_rate(&self.links[at].capacity);
                let rtt = Some(g.rtt.unwrap_or(longest)).filter(|t| *t > Time::ZERO);
                self.links[at].limit =
                    self.limit(&format!("{}.buffer", laid.key(i)), l.buffer, rate, rtt, &l.queue)?;
                at += 1;
            }
        }
        self.graph = Some(laid);
        Ok(())
    }
}

/// Priority of packets: the scenario's, or else what the router law asks for, unless the link has a scheduler of its
/// own.
pub(super) fn priority(
    given: Option<Priority>,
    router: &RouterSpec,
    share: &ShareSpec,
    queue: &QueueSpec,
) -> Priority {
    let in_order = queue.drops_head() || queue.shaper().is_some();
    let wanted =
        router.traits().acks_first && share.params().is_none() && queue.two_queues().is_none() && !in_order;
    given.unwrap_or(if wanted { Priority::Acks } else { Priority::None })
}

/// The police of a link of this rate.
fn police(key: &str, given: Option<Police>, rate: Rate) -> Result<Option<police::Params>> {
    let Some(given) = given else { return Ok(None) };
    of_full(key, "police")?;
    given
        .params(rate)
        .map_or_else(|(name, text)| error(format!("{key}.{name}"), text), |params| Ok(Some(params)))
}

/// The number of a medium. Media are numbered in the order in which they are named.
fn medium<'a>(name: &'a str, media: &mut Vec<&'a str>) -> Medium {
    let known = media.iter().position(|m| *m == name);
    Medium::Turns(known.unwrap_or_else(|| {
        media.push(name);
        media.len() - 1
    }) as u32)
}
