//! Turns a finished run into results: summaries of links, cells, flows and groups, and warnings.

mod flows;
mod groups;
mod links;
mod operations;
#[cfg(feature = "full")]
mod videos;
mod warnings;

pub use flows::Routed;

use crate::delays::Delays;
use crate::fabric::Fabric;
use crate::host::Hosts;
use crate::results::{
    AccessSummary, Captured, CellSummary, Change, DelayCurve, LinkCounts, LinkSummary, Named, PacketCount,
    PfcDeadlock, Results, Series, Summary, Took, TotalSummary, jain_index, share,
};
use crate::scenario::Scenario;
use flowstamp_laws::units::Rate;
use groups::GroupFlows;
use std::time::Duration;

/// A finished run, whose links are settled at its end.
pub struct Finished {
    /// The scenario at the beginning.
    pub scenario: Scenario,
    /// Values set during the run.
    pub changes: Vec<Change>,
    /// Values that the scenario left open.
    pub assumed: Named<String>,
    /// Warnings about the scenario.
    pub warnings: Vec<String>,
    /// Routes of the flows.
    pub routed: Routed,
    /// Links and packets.
    pub net: Fabric,
    /// Flows.
    pub hosts: Hosts,
    /// Samples.
    pub series: Series,
    /// Captured packets.
    pub capture: Captured,
    /// Number of events handled.
    pub events: u64,
    /// Wall and CPU time.
    pub took: (Duration, Duration),
}

/// Summaries of links and senders, taken before their memory is freed for the rows of flows.
struct Settled {
    /// Router links, by their numbers.
    links: Vec<(String, LinkSummary)>,
    /// Mean capacity of each router link over the run.
    capacities: Vec<Rate>,
    curves: Vec<DelayCurve>,
    pfc_deadlock: Option<PfcDeadlock>,
    cells: Named<CellSummary>,
    access: AccessSummary,
    packet_hops: u64,
    /// Numbers of groups with paced flows.
    paced: Vec<u32>,
    /// For each group, flows that still wait for a timeout, and their total waiting time, seconds.
    waiting: Vec<(u64, f64)>,
}

impl Settled {
    fn of(sim: &Finished) -> Self {
        let (links, curves) = links::summaries(sim);
        let span_s = (sim.net.now - sim.scenario.warmup).as_secs_f64();
        let access = sim.net.access();
        Self {
            links,
            capacities: links::capacities(sim),
            curves,
            pfc_deadlock: sim.net.pfc_deadlock(),
            cells: links::cells(&sim.net, span_s),
            access: AccessSummary {
                links: access.len() as u64,
                arrivals: Some(access.iter().map(|l| l.arrivals).sum()),
                drops: 0, // access links are unlimited
            },
            packet_hops: sim.net.packet_hops(),
            paced: sim.hosts.flows.iter().filter(|flow| flow.is_paced()).map(|flow| flow.group).collect(),
            waiting: warnings::waiting(&sim.hosts, sim.net.now),
        }
    }

    fn drops(&self, link: u32) -> bool {
        self.links[link as usize].1.drops > 0
    }
}

/// The results of a finished run.
pub fn results(mut run: Finished) -> Results {
    let mut settled = Settled::of(&run);
    // The rows of flows take as much memory as the links.
    run.net.drop_links();
    #[cfg(feature = "full")]
    run.hosts.write_watched(run.net.now);
    run.hosts.end();
    let sim = &run;
    let rows = flows::rows(sim);
    let mut groups = Named::new();
    let mut warnings = sim.warnings.clone();
    let mut goodputs = Vec::new();
    let mut curves = std::mem::take(&mut settled.curves);
    for number in 0..sim.hosts.groups.len() {
        let flows = GroupFlows::of(sim, &rows, number);
        let summary = flows.summary(&settled.capacities, &mut curves);
        warnings.extend(flows.warnings(&settled, &summary));
        goodputs.extend(flows.lasting_goodputs());
        groups.insert(flows.group.name.clone(), summary);
    }
    warnings.extend(warnings::locked_datagrams(sim, &rows, &settled));
    warnings.extend(settled.pfc_deadlock.as_ref().map(warnings::deadlocked));
    let flows = rows.iter().zip(&sim.hosts.records);
    let flows = flows.filter(|(_, r)| !sim.hosts.groups[r.group as usize].arriving).map(|(f, _)| f.clone());
    let wall_s = sim.took.0.as_secs_f64();
    let took = Took {
        wall_s,
        cpu_s: sim.took.1.as_secs_f64(),
        packet_hops_per_s: if wall_s > 0.0 { settled.packet_hops as f64 / wall_s } else { 0.0 },
    };
    let summary = Summary {
        name: sim.scenario.name.clone(),
        seed: sim.scenario.seed,
        assumed: sim.assumed.clone(),
        warnings,
        duration_s: sim.net.now.as_secs_f64(),
        warmup_s: sim.scenario.warmup.as_secs_f64(),
        total: total(&settled.links, groups.values().map(|group| group.goodput_bps).sum(), &goodputs),
        links: settled.links.into_iter().collect(),
        pfc_deadlock: settled.pfc_deadlock,
        cells: settled.cells,
        access: settled.access,
        groups,
        flows: flows.collect(),
        packets: Some(PacketCount { sent: sim.net.sent, arrived: sim.net.arrived, lost: sim.net.lost }),
        packet_hops: settled.packet_hops,
        events: sim.events,
    };
    Results {
        summary,
        took,
        series: run.series,
        flows: rows,
        delays: curves,
        capture: run.capture,
        scenario: run.scenario,
        changes: run.changes,
        by_links: false,
    }
}

/// The results of a run that is about router link 0: its summary and distribution of queueing delay, and the flows.
#[cfg(feature = "full")]
pub fn of_link(mut run: Finished) -> (LinkSummary, DelayCurve, Vec<crate::results::FlowRow>) {
    let (mut links, mut curves) = links::summaries(&run);
    run.hosts.end();
    let rows = flows::rows(&run);
    (links.swap_remove(0).1, curves.swap_remove(0), rows)
}

/// Puts the summaries of single links into the results of a network. Each comes with the link's number and name.
#[cfg(feature = "full")]
pub fn put_links(results: &mut Results, links: Vec<(usize, String, LinkSummary, DelayCurve)>) {
    let total = &mut results.summary.total;
    for (number, name, summary, curve) in links {
        add(&mut total.after_warmup, &summary.after_warmup);
        add(&mut total.whole_run, &summary.whole_run);
        results.delays[number] = DelayCurve { name: name.clone(), ..curve };
        results.summary.links.insert(name, summary);
    }
    total.drops = total.after_warmup.drops;
    total.drop_rate = share(total.drops, total.after_warmup.arrivals);
}

/// Totals over all links, and Jain's index of the lasting flows.
fn total(links: &[(String, LinkSummary)], goodput_bps: f64, goodputs: &[f64]) -> TotalSummary {
    let (mut after_warmup, mut whole_run) = (LinkCounts::default(), LinkCounts::default());
    for (_, link) in links {
        add(&mut after_warmup, &link.after_warmup);
        add(&mut whole_run, &link.whole_run);
    }
    TotalSummary {
        goodput_bps,
        drops: after_warmup.drops,
        drop_rate: share(after_warmup.drops, after_warmup.arrivals),
        after_warmup,
        whole_run,
        jain_index: (!goodputs.is_empty()).then(|| jain_index(goodputs)),
    }
}

fn add(to: &mut LinkCounts, link: &LinkCounts) {
    to.arrivals += link.arrivals;
    to.drops += link.drops;
    to.drops_data += link.drops_data;
    to.drops_acks += link.drops_acks;
    to.marks += link.marks;
}

fn curve(kind: &'static str, name: &str, bytes: Option<(u64, u64)>, of: &Delays) -> DelayCurve {
    DelayCurve { kind, name: name.to_owned(), bytes, points: of.cdf() }
}
