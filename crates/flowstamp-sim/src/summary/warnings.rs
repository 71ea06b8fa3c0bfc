//! Warnings about results that are probably artefacts of the set-up.

use super::groups::GroupFlows;
use super::{Finished, Settled};
use crate::host::{Hosts, Record};
use crate::plan::Phase;
use crate::results::{FlowRow, GroupSummary, PfcDeadlock, jain_index};
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::units::Time;

/// Jain's index below which shares count as uneven.
const JAIN: f64 = 0.75;
/// Jain's index below which datagram flows' delivered fractions count as uneven.
const JAIN_OF_DATAGRAMS: f64 = 0.9;
impl Phase {
    /// The warning for shares with this Jain's index, if they are uneven.
    #[must_use]
    pub fn warning(&self, group: &str, jain: f64) -> Option<String> {
        if self.datagrams {
            return (jain < JAIN_OF_DATAGRAMS).then(|| {
                format!(
                    "flows.{group}: looks phase-locked: unequal shares of the datagram flows' traffic arrive (Jain's index of the \
                     shares is {jain:.2}), over drop-tail by a bare clock; leave out jitter, or set jitter = \"{}\"",
                    self.packet
                )
            });
        }
        (jain < JAIN).then(|| {
            format!(
                "flows.{group}: looks phase-locked: Jain's index is {jain:.2}, over drop-tail with hosts' links exactly as fast as \
                 the bottleneck; set transport.send_jitter = \"{}\", or another access rate",
                self.packet
            )
        })
    }
}

/// A minimum retransmission timeout of this many round trips was meant for longer paths.
const LONG_TIMEOUT: f64 = 100.0;
/// Utilisation of a group's busiest link below which timeouts may be what leaves it idle.
const IDLE: f64 = 0.5;
/// Fraction of the flows' lifetime spent in timeouts above which a warning is given.
const TOLD: f64 = 0.05;

impl GroupFlows<'_> {
    /// Warnings for the flows of this group.
    pub fn warnings(&self, settled: &Settled, summary: &GroupSummary) -> Vec<String> {
        let used = self.group.plan.links.iter().map(|link| settled.links[*link as usize].1.utilization);
        let waited = if used.fold(0.0, f64::max) < IDLE { self.waited(settled, summary) } else { None };
        self.locked(settled, summary).into_iter().chain(waited).collect()
    }

    /// The warning for flows with a window that are phase-locked.
    fn locked(&self, settled: &Settled, summary: &GroupSummary) -> Option<String> {
        let (start, end) = (self.sim.scenario.warmup, self.sim.net.now);
        let phase = self.group.plan.phase.filter(|phase| !phase.datagrams)?;
        let there = self.flows.iter().all(|(_, record)| record.start <= start);
        let unpaced = !settled.paced.contains(&(self.number as u32)) && there;
        let long = end - start >= phase.span && self.sim.changes.is_empty();
        if unpaced && long && settled.drops(phase.link) {
            phase.warning(&self.group.name, summary.jain_index?)
        } else {
            None
        }
    }

    /// The warning for flows that waited in timeouts of the minimum length, which is far longer than their RTT.
    fn waited(&self, settled: &Settled, summary: &GroupSummary) -> Option<String> {
        let transport = &self.sim.scenario.flows[self.group.plan.spec].transport;
        let (timeouts, (waiting, waiting_s)) = (summary.whole_run.timeouts, settled.waiting[self.number]);
        let (least, rtt_s) = (transport.min_rto, self.group.plan.path_rtt_s);
        let round_trips = least.as_secs_f64() / rtt_s;
        let long = rtt_s > 0.0 && round_trips >= LONG_TIMEOUT && transport.recovery != Some(Recovery::Count);
        let present_s: f64 = self.flows.iter().map(|(_, record)| present_s(self.sim, record)).sum();
        let waited_s = timeouts as f64 * least.as_secs_f64() + waiting_s;
        (long && timeouts + waiting > 0 && waited_s >= TOLD * present_s).then(|| {
            format!(
                "flows.{}: {timeouts} timeouts of {least} or more, and {waiting} flows in one at the end; {least} are {round_trips:.0} round trips of \
                 {}: set transport.min_rto to a few of them",
                self.group.name,
                Time::from_secs_f64(rtt_s)
            )
        })
    }
}

/// For each group, the number of flows that have waited more than a hundred round trips for a timeout, and their total
/// waiting time, seconds.
pub(super) fn waiting(hosts: &Hosts, now: Time) -> Vec<(u64, f64)> {
    let mut groups = vec![(0, 0.0); hosts.groups.len()];
    for flow in &hosts.flows {
        let number = flow.group as usize;
        let waited_s = flow.waits_since().map_or(0.0, |since| now.saturating_sub(since).as_secs_f64());
        if waited_s > LONG_TIMEOUT * hosts.groups[number].plan.path_rtt_s {
            groups[number].0 += 1;
            groups[number].1 += waited_s;
        }
    }
    groups
}

/// The warning for links with priority flow control that wait for each other.
pub(super) fn deadlocked(deadlock: &PfcDeadlock) -> String {
    format!(
        "pfc: deadlock since {:.1}us: each of these links is paused until the next one goes on, and none ever does: {}; \
         give routes without a cycle of links, or leave out pfc",
        deadlock.time_s * 1e6,
        deadlock.links.join(", ")
    )
}

/// Time from a flow's start to its end or to the run's end, seconds.
fn present_s(sim: &Finished, r: &Record) -> f64 {
    r.end.min(sim.net.now).saturating_sub(r.start).as_secs_f64()
}

/// Warnings for datagram flows that are phase-locked, one for each link.
pub(super) fn locked_datagrams(sim: &Finished, rows: &[FlowRow], settled: &Settled) -> Vec<String> {
    let (start, end) = (sim.scenario.warmup, sim.net.now);
    let mut told = Vec::new();
    let mut warnings = Vec::new();
    for group in &sim.hosts.groups {
        let Some(phase) = group.plan.phase.filter(|phase| phase.datagrams) else { continue };
        let looked = end - start >= phase.span && settled.drops(phase.link) && sim.changes.is_empty();
        if !looked || told.contains(&phase.link) {
            continue;
        }
        told.push(phase.link);
        let share = |(row, record): (&FlowRow, &Record)| {
            let plan = &sim.hosts.groups[record.group as usize].plan;
            let rate = plan.application.as_ref()?.constant_rate()?;
            let counts = plan.links.contains(&phase.link) && record.start <= start;
            counts.then(|| row.goodput_bps / rate.bps())
        };
        let shares: Vec<f64> = rows.iter().zip(&sim.hosts.records).filter_map(share).collect();
        warnings.extend(phase.warning(&group.name, jain_index(&shares)));
    }
    warnings
}
