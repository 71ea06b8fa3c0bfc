//! Summaries of collective operations and of incasts.

use super::Finished;
use crate::host::{Group, Record};
use crate::results::{Change, Distribution, FlowRow, OperationRun, OperationsSummary};
use flowstamp_laws::units::Time;

/// Row and record of each flow of a group.
type Flows<'a> = [(&'a FlowRow, &'a Record)];

/// The operations of a group, if it has any.
pub(super) fn summary(sim: &Finished, group: &Group, flows: &Flows<'_>) -> Option<OperationsSummary> {
    if !cfg!(feature = "full") {
        return None;
    }
    let runs = match &group.operations {
        Some(operations) => operations.runs.clone(),
        None => incasts(sim, group, flows)?,
    };
    let warmup = sim.scenario.warmup;
    let ended = runs.iter().filter(|(start, end)| *start >= warmup && *end < Time::MAX);
    let mut times: Vec<f64> = ended.map(|(start, end)| (*end - *start).as_secs_f64()).collect();
    let ideal_s = ideal_s(sim, group, flows);
    let slowdown = ideal_s.and_then(|ideal_s| {
        let mut slowdowns: Vec<f64> = times.iter().map(|time_s| time_s / ideal_s).collect();
        Distribution::of(&mut slowdowns)
    });
    let seconds = |(start, end): &(Time, Time)| OperationRun {
        start_s: start.as_secs_f64(),
        end_s: (*end < Time::MAX).then(|| end.as_secs_f64()),
    };
    Some(OperationsSummary {
        started: runs.len() as u64,
        completed: runs.iter().filter(|(_, end)| *end < Time::MAX).count() as u64,
        time_s: Distribution::of(&mut times),
        ideal_s,
        slowdown,
        runs: runs.iter().map(seconds).collect(),
    })
}

/// Start and end of each incast that has begun. Records are in the order of the incasts.
fn incasts(sim: &Finished, group: &Group, flows: &Flows<'_>) -> Option<Vec<(Time, Time)>> {
    let began = |record: &Record| group.began(record, sim.net.now, sim.scenario.duration);
    let list = group.plan.list.as_ref().filter(|list| list.senders > 0)?;
    let incasts = flows.chunks(list.senders as usize);
    let begun = incasts.filter(|flows| flows.iter().any(|(_, record)| began(record)));
    let span = |flows: &[(_, &Record)]| {
        let start = flows.iter().map(|(_, record)| record.start).min().unwrap_or_default();
        (start, flows.iter().map(|(_, record)| record.end).max().unwrap_or(Time::MAX))
    };
    Some(begun.map(span).collect())
}

/// Lower bound of the time of a collective operation, seconds.
///
/// A message of a ring goes from host to host, and each next message waits for it. The slowest such chain bounds the
/// time. With all messages at once, each host's own link has to send all of the host's messages.
fn ideal_s(sim: &Finished, group: &Group, flows: &Flows<'_>) -> Option<f64> {
    let plan = group.plan.collective.as_ref()?;
    if sim.changes.iter().any(Change::moves_paths) {
        return None;
    }
    let message_s =
        |(_, record): &(_, &Record)| sim.routed.ideal_s(record.route, plan.message, &sim.scenario);
    let messages_s: Vec<f64> = flows.iter().map(message_s).collect::<Option<_>>()?;
    let hosts = messages_s.len();
    // Flows that a host sends over its own link.
    let own = if plan.steps == 1 { (hosts as f64).sqrt() as u64 } else { 1 };
    let send_s = |(_, record): &(_, &Record)| {
        sim.routed.send_s(record.route, own * u64::from(plan.steps), plan.message, &sim.scenario)
    };
    let sent_s = flows.iter().map(send_s).fold(0.0, f64::max);
    let chain =
        |first: usize| (first..first + plan.steps as usize).map(|at| messages_s[at % hosts]).sum::<f64>();
    (0..hosts).map(chain).reduce(f64::max).map(|chain_s| chain_s.max(sent_s))
}
