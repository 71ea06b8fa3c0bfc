//! The row of each flow, and its ideal completion time.

use super::Finished;
use crate::host::{Group, Record};
use crate::plan::{END, LinkPlan};
use crate::results::{Change, FlowRow};
use crate::scenario::{Access, Scenario};
use flowstamp_laws::units::Time;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Capacity and delay of each link, and the routes of flows.
#[derive(Clone, Debug)]
pub struct Routed {
    /// Mean capacity over the run, bytes per second, and delay, seconds.
    lines: Vec<(f64, f64)>,
    routes: Vec<u32>,
}

impl Routed {
    /// Takes capacities, delays and routes of a network.
    #[must_use]
    pub fn new(links: &[LinkPlan], access: &[Access], routes: &[u32], scenario: &Scenario) -> Self {
        let mean = |plan: &LinkPlan| plan.capacity.mean(Time::ZERO, scenario.duration);
        let routers = links.iter().map(|plan| (mean(plan).bytes_per_sec(), plan.delay.as_secs_f64()));
        let access = access.iter().map(|link| (link.rate.bytes_per_sec(), link.delay.as_secs_f64()));
        Self { lines: routers.chain(access).collect(), routes: routes.to_vec() }
    }

    /// The least time in which `size` bytes of payload can cross a route, seconds. Each link in turn is taken to carry
    /// all packets: it gets the first packet from the links before it, and the links after it carry the last one.
    #[must_use]
    pub fn ideal_s(&self, route: u32, size: u64, scenario: &Scenario) -> Option<f64> {
        let route = self.routes.get(route as usize..)?;
        let lines = || route.iter().take_while(|link| **link != END).map(|link| self.lines[*link as usize]);
        let (payload, header) = (scenario.payload(), scenario.header.as_f64());
        let packets = size.div_ceil(payload);
        let all = size as f64 + header * packets as f64;
        let first = size.min(payload) as f64 + header;
        let last = (size - (packets - 1) * payload) as f64 + header;
        let delay_s: f64 = lines().map(|(_, delay_s)| delay_s).sum();
        let mut after_s: f64 = lines().map(|(rate, _)| last / rate).sum();
        let (mut before_s, mut longest_s) = (0.0, 0.0f64);
        for (rate, _) in lines() {
            after_s -= last / rate;
            longest_s = longest_s.max(before_s + all / rate + after_s);
            before_s += first / rate;
        }
        // A link with a capacity of zero carried nothing, so there is no ideal time.
        Some(delay_s + longest_s).filter(|ideal_s| ideal_s.is_finite() && longest_s > 0.0)
    }

    /// The least time in which a route's first link can send the packets of `messages` messages of `size` bytes,
    /// seconds.
    pub(super) fn send_s(&self, route: u32, messages: u64, size: u64, scenario: &Scenario) -> f64 {
        let headers = scenario.header.as_f64() * size.div_ceil(scenario.payload()) as f64;
        let first = self.routes.get(route as usize).filter(|link| **link != END);
        first.map_or(0.0, |link| messages as f64 * (size as f64 + headers) / self.lines[*link as usize].0)
    }
}

/// The row of each flow, in the order of the records.
pub(super) fn rows(sim: &Finished) -> Vec<FlowRow> {
    let names: Vec<Arc<str>> = sim.hosts.groups.iter().map(|group| group.name.as_str().into()).collect();
    sim.hosts.records.iter().enumerate().map(|(i, r)| row(sim, &names, i as u32, r)).collect()
}

/// When a flow stops sending new data. For flows that arrive during the run, the group's stop ends arrivals, not flows.
fn stop(group: &Group, r: &Record) -> Option<Time> {
    Some(group.stops(r)).filter(|stop| !group.arriving && *stop < Time::MAX)
}

/// How long a flow was active after warm-up, seconds.
pub(super) fn active_s(sim: &Finished, r: &Record) -> f64 {
    let stop = stop(&sim.hosts.groups[r.group as usize], r).unwrap_or(Time::MAX);
    let from = r.start.max(sim.scenario.warmup);
    r.end.min(stop).min(sim.net.now).saturating_sub(from).as_secs_f64()
}

fn row(sim: &Finished, names: &[Arc<str>], flow: u32, r: &Record) -> FlowRow {
    let group = &sim.hosts.groups[r.group as usize];
    let seconds = |t: Time| (t > Time::ZERO).then(|| t.as_secs_f64());
    let active_s = active_s(sim, r);
    let outcome = sim.hosts.outcome(flow as usize);
    let (done, before) = (outcome.done, r.at_warmup);
    let delivered_bytes_after_warmup = done.delivered_bytes - before.delivered_bytes;
    let bits = delivered_bytes_after_warmup as f64 * 8.0;
    let ended = r.end < Time::MAX;
    FlowRow {
        flow,
        group: names[r.group as usize].clone(),
        index: r.index,
        law: group.law_of(r),
        start_s: r.start.as_secs_f64(),
        end_s: ended.then(|| r.end.as_secs_f64()),
        size_bytes: r.size.map(NonZeroU64::get),
        fct_s: ended.then(|| (r.end - r.start).as_secs_f64()),
        ideal_fct_s: r
            .size
            .filter(|_| !sim.changes.iter().any(Change::moves_paths))
            .and_then(|size| sim.routed.ideal_s(r.route, size.get(), &sim.scenario))
            .into(),
        fct_sender_s: (ended && outcome.acknowledged < Time::MAX)
            .then(|| (outcome.acknowledged - r.start).as_secs_f64())
            .into(),
        delivered_bytes: done.delivered_bytes,
        delivered_bytes_after_warmup,
        goodput_bps: if active_s > 0.0 { bits / active_s } else { 0.0 },
        retransmissions: done.retransmissions,
        retransmissions_after_warmup: done.retransmissions - before.retransmissions,
        timeouts: done.timeouts,
        timeouts_after_warmup: done.timeouts - before.timeouts,
        min_rtt_s: seconds(outcome.min_rtt).filter(|_| outcome.min_rtt < Time::MAX).into(),
        srtt_s: seconds(outcome.srtt).into(),
        switched_s: (outcome.switched < Time::MAX).then(|| outcome.switched.as_secs_f64()).into(),
        stop_s: stop(group, r).map(Time::as_secs_f64).into(),
        #[cfg(feature = "full")]
        video: super::videos::row(sim, flow).map(Box::new),
        #[cfg(not(feature = "full"))]
        video: None,
    }
}
