//! Summaries of groups of flows.

use super::flows::active_s;
use super::{Finished, curve, operations};
use crate::delays::Delays;
use crate::host::{Group, Offered, Record};
use crate::plan::GroupPlan;
use crate::results::{
    ApplicationCounts, ApplicationSummary, DelayCurve, Distribution, FctSummary, FlowRow, GroupCounts,
    GroupSummary, PacketDelays, SizeBin, jain_index,
};
use crate::size_bins::{self, BINS};
use flowstamp_laws::units::{Rate, Time};

/// A group with its flows.
pub(super) struct GroupFlows<'a> {
    pub sim: &'a Finished,
    pub group: &'a Group,
    pub number: usize,
    /// Row and record of each flow.
    pub flows: Vec<(&'a FlowRow, &'a Record)>,
}

impl<'a> GroupFlows<'a> {
    /// Selects the flows of group `number`.
    pub fn of(sim: &'a Finished, rows: &'a [FlowRow], number: usize) -> Self {
        let all = rows.iter().zip(&sim.hosts.records);
        let flows = all.filter(|(_, record)| record.group as usize == number).collect();
        Self { sim, group: &sim.hosts.groups[number], number, flows }
    }

    pub fn summary(&self, capacities: &[Rate], curves: &mut Vec<DelayCurve>) -> GroupSummary {
        let Self { sim, group, .. } = self;
        let payload = sim.scenario.payload();
        let (whole_run, after_warmup) = (self.counts(Time::ZERO), self.counts(sim.scenario.warmup));
        let (capacity_bps, offered_load) = slowest(sim, capacities, &group.plan);
        let span_s = (sim.net.now - sim.scenario.warmup).as_secs_f64();
        let goodputs = self.goodputs();
        GroupSummary {
            law: group.law(),
            flows: whole_run.flows,
            completed: whole_run.completed,
            capacity_bps,
            path_rtt_s: group.plan.path_rtt_s,
            offered_load,
            mean_size_bytes: group.plan.mean_size_bytes,
            goodput_bps: after_warmup.delivered_bytes as f64 * 8.0 / span_s,
            jain_index: (!group.arriving && !goodputs.is_empty()).then(|| jain_index(&goodputs)),
            retransmissions: whole_run.retransmissions,
            timeouts: whole_run.timeouts,
            after_warmup,
            whole_run,
            fct_s: fct(&self.times(|row| row.fct_s), payload),
            packet_delay_s: packet_delays(sim, group, curves),
            application: applications(group),
            #[cfg(feature = "full")]
            video: super::videos::summary(sim, self.number),
            #[cfg(not(feature = "full"))]
            video: None,
            operations: operations::summary(sim, group, &self.flows),
            fct_slowdown: fct(&self.times(|row| Some(row.fct_s? / row.ideal_fct_s.get()?)), payload),
            fct_sender_s: fct(&self.times(|row| row.fct_sender_s.get()), payload),
            littles_law: group
                .arriving
                .then(|| {
                    let flows =
                        self.flows.iter().filter(|(_, r)| self.began(r)).map(|(_, r)| (r.start, r.end));
                    group.active.law(flows, (sim.scenario.warmup, sim.net.now))
                })
                .flatten(),
        }
    }

    /// Goodputs of flows that were active after warm-up, unless the group's flows arrive during the run.
    pub fn lasting_goodputs(&self) -> Vec<f64> {
        // A flow that governs a link sends no data.
        let shares = !self.group.arriving && self.group.plan.governs.is_none();
        if shares { self.goodputs() } else { Vec::new() }
    }

    fn goodputs(&self) -> Vec<f64> {
        let active = self.flows.iter().filter(|(_, record)| active_s(self.sim, record) > 0.0);
        active.map(|(row, _)| row.goodput_bps).collect()
    }

    fn began(&self, record: &Record) -> bool {
        self.group.began(record, self.sim.net.now, self.sim.scenario.duration)
    }

    /// Counts since `from`, which is the end of warm-up or zero.
    fn counts(&self, from: Time) -> GroupCounts {
        let all = from == Time::ZERO;
        let sum = |of: fn(&FlowRow) -> u32| self.flows.iter().map(|(row, _)| u64::from(of(row))).sum();
        let of =
            |whole: fn(&FlowRow) -> u32, later: fn(&FlowRow) -> u32| sum(if all { whole } else { later });
        let before = if all { 0 } else { self.group.delivered_at_warmup };
        GroupCounts {
            flows: self.flows.iter().filter(|(_, r)| self.began(r) && r.start >= from).count() as u64,
            completed: self.flows.iter().filter(|(_, r)| (from..Time::MAX).contains(&r.end)).count() as u64,
            delivered_bytes: self.group.delivered_bytes - before,
            retransmissions: of(|row| row.retransmissions, |row| row.retransmissions_after_warmup),
            timeouts: of(|row| row.timeouts, |row| row.timeouts_after_warmup),
        }
    }

    /// Size and value `of` of each flow that began after warm-up and has both.
    fn times(&self, of: fn(&FlowRow) -> Option<f64>) -> Vec<(u64, f64)> {
        let later = self.flows.iter().filter(|(_, record)| record.start >= self.sim.scenario.warmup);
        later.filter_map(|(row, _)| row.size_bytes.zip(of(row))).collect()
    }
}

/// Capacity of the slowest link that a group's data take, and the load offered to it as a fraction of that capacity.
fn slowest(sim: &Finished, capacities: &[Rate], plan: &GroupPlan) -> (f64, f64) {
    let links = plan.links.iter().map(|link| {
        let here =
            |group: &Group| Some(group.plan.offered_bps[group.plan.links.iter().position(|l| l == link)?]);
        let offered_bps: f64 = sim.hosts.groups.iter().filter_map(here).sum();
        let capacity_bps = capacities[*link as usize].bps();
        (capacity_bps, if capacity_bps > 0.0 { offered_bps / capacity_bps } else { 0.0 })
    });
    links.fold((f64::INFINITY, 0.0), |least, link| {
        let before = least.0.total_cmp(&link.0).then(link.1.total_cmp(&least.1));
        if before.is_le() { least } else { link }
    })
}

/// Summary of a group's applications, if they produce messages or datagrams.
fn applications(group: &Group) -> Option<ApplicationSummary> {
    group.plan.application.as_ref()?;
    let (all, before) = (group.tally.now, group.tally.at_warmup);
    let counts = |of: Offered, less: Offered| ApplicationCounts {
        offered: of.offered - less.offered,
        offered_bytes: of.offered_bytes - less.offered_bytes,
        completed: of.completed - less.completed,
        source_drops: of.dropped - less.dropped,
    };
    Some(ApplicationSummary {
        after_warmup: counts(all, before),
        whole_run: counts(all, Offered::default()),
        time_s: group.tally.times.distribution(),
    })
}

/// Delays of a group's packets, for all flows and by flow size.
fn packet_delays(sim: &Finished, group: &Group, curves: &mut Vec<DelayCurve>) -> Option<PacketDelays> {
    let payload = sim.scenario.payload();
    let parts = &sim.hosts.delays[group.delays.clone()];
    let all = Delays::together(parts);
    curves.push(curve("group", &group.name, None, &all));
    // Planned flows all have one size, or none.
    let first = if group.arriving { Some(0) } else { group.size.map(|size| size_bins::bin(size, payload)) };
    let bins = parts.iter().zip(first.into_iter().flat_map(|first| first..)).filter_map(|(part, bin)| {
        let (min_bytes, max_bytes) = size_bins::bounds(bin, payload);
        curves.push(curve("group", &group.name, Some((min_bytes, max_bytes)), part));
        part.distribution().map(|values| SizeBin { min_bytes, max_bytes, values })
    });
    let bins = bins.collect();
    all.distribution().map(|all| PacketDelays { all, bins })
}

fn fct(done: &[(u64, f64)], payload: u64) -> Option<FctSummary> {
    let mut times: Vec<f64> = done.iter().map(|d| d.1).collect();
    let all = Distribution::of(&mut times)?;
    let bins = (0..BINS).filter_map(|bin| {
        let (min_bytes, max_bytes) = size_bins::bounds(bin, payload);
        let mut times: Vec<f64> =
            done.iter().filter(|d| (min_bytes..max_bytes).contains(&d.0)).map(|d| d.1).collect();
        Distribution::of(&mut times).map(|values| SizeBin { min_bytes, max_bytes, values })
    });
    Some(FctSummary { all, bins: bins.collect() })
}
