//! From a finished run to its results.

use crate::delays::Delays;
use crate::fabric::Fabric;
use crate::host::{Group, Hosts, Offered, Record};
use crate::link::{Counts, Impaired, Police, Tested};
use crate::network::{END, GroupPlan, LinkPlan};
use crate::results::{
    AccessSummary, ApplicationCounts, ApplicationSummary, Captured, CellCounts, CellSummary, Change,
    DelayCurve, Distribution, FctSummary, FlowRow, GroupCounts, GroupSummary, ImpairedSummary, LinkCounts,
    LinkSummary, Named, PacketCount, PacketDelays, Results, Series, SizeBin, StationCounts, StationSummary,
    Summary, TestedFlow, Took, TotalSummary, jain_index,
};
use crate::scenario::{Access, Scenario};
use crate::size_bins::{self, BINS};
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::units::{Rate, Time};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// A run that has been settled at its end.
pub struct Finished {
    /// As it began.
    pub scenario: Scenario,
    /// What was set since.
    pub changes: Vec<Change>,
    /// What the scenario left open.
    pub assumed: Named<String>,
    /// What it probably does not mean.
    pub warnings: Vec<String>,
    /// Where flows go.
    pub routed: Routed,
    /// Links and packets.
    pub net: Fabric,
    /// Flows.
    pub hosts: Hosts,
    /// Samples.
    pub series: Series,
    /// Recorded packets.
    pub capture: Captured,
    /// Events handled.
    pub events: u64,
    /// Wall-clock and CPU time that it took.
    pub took: (Duration, Duration),
}

/// What each link carries and how long it is, and which of them flows take.
#[derive(Clone, Debug)]
pub struct Routed {
    /// Bytes per second, the mean over the run where it varies, and delay in seconds.
    lines: Vec<(f64, f64)>,
    routes: Vec<u32>,
}

impl Routed {
    /// Of a network that is laid out.
    #[must_use]
    pub fn new(links: &[LinkPlan], access: &[Access], routes: &[u32], scenario: &Scenario) -> Self {
        let mean = |plan: &LinkPlan| plan.capacity.mean(Time::ZERO, scenario.duration);
        let routers = links.iter().map(|plan| (mean(plan).bytes_per_sec(), plan.delay.as_secs_f64()));
        let access = access.iter().map(|link| (link.rate.bytes_per_sec(), link.delay.as_secs_f64()));
        Self { lines: routers.chain(access).collect(), routes: routes.to_vec() }
    }

    /// The least time in which so many bytes of payload can come by a route, seconds: a link that carries all of them has the first packet
    /// from those before it, and those after it have the last.
    fn ideal_s(&self, route: u32, size: u64, scenario: &Scenario) -> Option<f64> {
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
        // A link that has stood still carried nothing, and there is no ideal.
        Some(delay_s + longest_s).filter(|ideal_s| ideal_s.is_finite() && longest_s > 0.0)
    }
}

/// Its results.
pub fn results(mut run: Finished) -> Results {
    let sim = &run;
    let (start, end) = (sim.scenario.warmup, sim.net.now);
    let span_s = (end - start).as_secs_f64();
    let capacities: Vec<Rate> = sim
        .net
        .routers()
        .map(|(port, _)| port.laws().capacity.mean(Time::ZERO, sim.scenario.duration))
        .collect();
    let mut delays = Vec::new();
    let mut links = Named::new();
    let (mut dropped, mut used) = (Vec::new(), Vec::new());
    let (mut after_warmup, mut whole_run) = (LinkCounts::default(), LinkCounts::default());
    for (number, (port, line)) in sim.net.routers().enumerate() {
        let laws = port.laws();
        let stats = &laws.stats;
        let room = laws.capacity.bytes_between(start, end);
        let sent = port.sent_bytes(line, end);
        let queue = |share| stats.queue_times.quantile(share);
        dropped.push(stats.drops > 0);
        used.push(if room > 0.0 { sent / room } else { 0.0 });
        let impaired = sim.net.impaired(number);
        let [now, all] = [
            counts(stats.counts(), impaired.map(|link| link.counts)),
            counts(stats.whole_run(), impaired.map(Impaired::whole_run)),
        ];
        add(&mut after_warmup, &now);
        add(&mut whole_run, &all);
        delays.push(curve("link", &laws.name, None, &stats.waits));
        links.insert(
            laws.name.clone(),
            LinkSummary {
                rate_bps: room * 8.0 / span_s,
                buffer_bytes: laws.buffer_bytes(sim.scenario.packet.as_f64()),
                utilization: if room > 0.0 { sent / room } else { 0.0 },
                mean_queue_bytes: stats.queue_times.integral() as f64 / (end - start).as_ps() as f64,
                p50_queue_bytes: queue(0.5),
                p90_queue_bytes: queue(0.9),
                p95_queue_bytes: queue(0.95),
                p99_queue_bytes: queue(0.99),
                max_queue_bytes: stats.max_queue as f64,
                queueing_delay_s: stats.waits.distribution(),
                arrivals: stats.arrivals,
                drops: stats.drops,
                marks: stats.marks,
                drop_rate: share(stats.drops, stats.arrivals),
                drops_data: now.drops_data,
                drops_acks: now.drops_acks,
                after_warmup: now,
                whole_run: all,
                police: laws.police.as_ref().map(|police| tested(sim, police)),
                impaired: now.impaired,
            },
        );
    }
    let cells = cells(&sim.net, span_s);
    let access = sim.net.access();
    let access = AccessSummary {
        links: access.len() as u64,
        arrivals: access.iter().map(|l| l.arrivals).sum(),
        drops: 0, // access links are unlimited
    };
    let packet_hops = sim.net.packet_hops();
    let paced: Vec<u32> =
        run.hosts.flows.iter().filter(|flow| flow.is_paced()).map(|flow| flow.group).collect();
    let waiting = waiting(&run.hosts, run.net.now);
    // A row for each flow is as large.
    run.net.drop_links();
    run.hosts.end();
    let sim = &run;
    let names: Vec<Arc<str>> = sim.hosts.groups.iter().map(|group| group.name.as_str().into()).collect();
    let rows: Vec<FlowRow> =
        sim.hosts.records.iter().enumerate().map(|(i, r)| row(sim, &names, i as u32, r)).collect();
    let mut groups = Named::new();
    let mut warnings = sim.warnings.clone();
    let mut long_goodputs = Vec::new();
    for (number, group) in sim.hosts.groups.iter().enumerate() {
        let of_group: Vec<usize> =
            (0..rows.len()).filter(|i| sim.hosts.records[*i].group as usize == number).collect();
        let began = |r: &Record| group.began(r, end, sim.scenario.duration);
        let started = |i: &&usize| began(&sim.hosts.records[**i]);
        // Shares of flows that had time to send after warm-up.
        let active = |i: &&usize| active_s(sim, &sim.hosts.records[**i]) > 0.0;
        let goodputs: Vec<f64> = of_group.iter().filter(active).map(|i| rows[*i].goodput_bps).collect();
        // Who governs a link has no data to share with.
        if !group.web && group.plan.governs.is_none() {
            long_goodputs.extend_from_slice(&goodputs);
        }
        let jain = (!group.web && !goodputs.is_empty()).then(|| jain_index(&goodputs));
        let there = |i: &usize| sim.hosts.records[*i].start <= start;
        if let (Some(phase), Some(jain)) = (group.plan.phase.filter(|phase| !phase.datagrams), jain) {
            let unpaced = !paced.contains(&(number as u32)) && of_group.iter().all(there);
            let long = end - start >= phase.span && sim.changes.is_empty();
            if unpaced && long && dropped[phase.link as usize] {
                warnings.extend(phase.warning(&group.name, jain));
            }
        }
        let bytes = group.delivered_bytes - group.delivered_at_warmup;
        let later = |i: &&usize| sim.hosts.records[**i].start >= start;
        let times = |of: fn(&FlowRow) -> Option<f64>| -> Vec<(u64, f64)> {
            of_group.iter().filter(later).filter_map(|i| rows[*i].size_bytes.zip(of(&rows[*i]))).collect()
        };
        let ended = |from: Time| {
            of_group.iter().filter(move |i| (from..Time::MAX).contains(&sim.hosts.records[**i].end))
        };
        let sum = |of: fn(&FlowRow) -> u32| of_group.iter().map(|i| u64::from(of(&rows[*i]))).sum::<u64>();
        let whole_run = GroupCounts {
            flows: of_group.iter().filter(started).count() as u64,
            completed: ended(Time::ZERO).count() as u64,
            delivered_bytes: group.delivered_bytes,
            retransmissions: sum(|row| row.retransmissions),
            timeouts: sum(|row| row.timeouts),
        };
        let after_warmup = GroupCounts {
            flows: of_group.iter().filter(started).filter(later).count() as u64,
            completed: ended(start).count() as u64,
            delivered_bytes: bytes,
            retransmissions: sum(|row| row.retransmissions_after_warmup),
            timeouts: sum(|row| row.timeouts_after_warmup),
        };
        let here = of_group.iter().map(|i| present_s(sim, &sim.hosts.records[*i])).sum();
        let fullest = group.plan.links.iter().map(|link| used[*link as usize]).fold(0.0, f64::max);
        if fullest < IDLE {
            warnings.extend(waited(sim, group, whole_run.timeouts, waiting[number], here));
        }
        let (capacity_bps, offered_load) = slowest(sim, &capacities, &group.plan);
        groups.insert(
            group.name.clone(),
            GroupSummary {
                law: group.law(),
                flows: whole_run.flows,
                completed: whole_run.completed,
                capacity_bps,
                path_rtt_s: group.plan.path_rtt_s,
                offered_load,
                mean_size_bytes: group.plan.mean_size_bytes,
                goodput_bps: bytes as f64 * 8.0 / span_s,
                jain_index: jain,
                retransmissions: whole_run.retransmissions,
                timeouts: whole_run.timeouts,
                after_warmup,
                whole_run,
                fct_s: fct(&times(|row| row.fct_s), sim.scenario.payload()),
                packet_delay_s: packet_delays(sim, group, &mut delays),
                application: applications(group),
                fct_slowdown: fct(
                    &times(|row| Some(row.fct_s? / row.ideal_fct_s.get()?)),
                    sim.scenario.payload(),
                ),
                fct_sender_s: fct(&times(|row| row.fct_sender_s.get()), sim.scenario.payload()),
                littles_law: group
                    .web
                    .then(|| {
                        let flows = of_group.iter().map(|i| &sim.hosts.records[*i]).filter(|r| began(r));
                        let flows = flows.map(|r| (r.start, r.end));
                        group.active.law(flows, (start, end))
                    })
                    .flatten(),
            },
        );
    }
    warnings.extend(locked_datagrams(sim, &rows, &dropped));
    let goodput_bps = groups.values().map(|g| g.goodput_bps).sum();
    let flows = rows
        .iter()
        .zip(&sim.hosts.records)
        .filter(|(_, r)| !sim.hosts.groups[r.group as usize].web)
        .map(|(f, _)| f.clone());
    let (wall, cpu) = sim.took;
    let wall_s = wall.as_secs_f64();
    let summary = Summary {
        name: sim.scenario.name.clone(),
        seed: sim.scenario.seed,
        assumed: run.assumed.clone(),
        warnings,
        duration_s: end.as_secs_f64(),
        warmup_s: start.as_secs_f64(),
        links,
        cells,
        access,
        groups,
        total: TotalSummary {
            goodput_bps,
            drops: after_warmup.drops,
            drop_rate: share(after_warmup.drops, after_warmup.arrivals),
            after_warmup,
            whole_run,
            jain_index: (!long_goodputs.is_empty()).then(|| jain_index(&long_goodputs)),
        },
        flows: flows.collect(),
        packets: PacketCount { sent: sim.net.sent, arrived: sim.net.arrived, lost: sim.net.lost },
        packet_hops,
        events: sim.events,
    };
    let took = Took {
        wall_s,
        cpu_s: cpu.as_secs_f64(),
        packet_hops_per_s: if wall_s > 0.0 { packet_hops as f64 / wall_s } else { 0.0 },
    };
    Results {
        summary,
        took,
        series: run.series,
        flows: rows,
        delays,
        capture: run.capture,
        scenario: run.scenario,
        changes: run.changes,
    }
}

/// What to say of datagrams that are locked in phase: once of each link.
fn locked_datagrams(sim: &Finished, rows: &[FlowRow], dropped: &[bool]) -> Vec<String> {
    let (start, end) = (sim.scenario.warmup, sim.net.now);
    let mut told = Vec::new();
    let mut warnings = Vec::new();
    for group in &sim.hosts.groups {
        let Some(phase) = group.plan.phase.filter(|phase| phase.datagrams) else { continue };
        let looked = end - start >= phase.span && dropped[phase.link as usize] && sim.changes.is_empty();
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

/// What the applications of a group have done, if they produce messages or datagrams.
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

fn tested(sim: &Finished, police: &Police) -> Vec<TestedFlow> {
    let seconds = |time: Option<Time>| time.map(Time::as_secs_f64);
    let flow = |tested: &Tested| {
        let number = sim.hosts.policed.get(&tested.flow).copied().unwrap_or(u32::MAX);
        let record = sim.hosts.records.get(number as usize)?;
        Some(TestedFlow {
            flow: number,
            group: sim.hosts.groups[record.group as usize].name.clone(),
            index: record.index,
            round_s: tested.round.as_secs_f64(),
            told_s: tested.told.as_secs_f64(),
            judged_s: seconds(tested.judged),
            isolated_s: seconds(tested.isolated),
            tests: tested.tests,
            isolations: tested.isolations,
            drops: tested.drops,
        })
    };
    police.tested.iter().filter_map(flow).collect()
}

fn cells(net: &Fabric, span_s: f64) -> Named<CellSummary> {
    let share = |time: Time| if span_s > 0.0 { time.as_secs_f64() / span_s } else { 0.0 };
    let mut cells = Named::new();
    for (name, medium, before) in net.cells().cells(net.now) {
        let cell = CellSummary {
            busy: share(medium.busy - before.busy),
            exchanges: medium.exchanges - before.exchanges,
            collisions: medium.collisions - before.collisions,
            whole_run: CellCounts { exchanges: medium.exchanges, collisions: medium.collisions },
            stations: Named::new(),
        };
        cells.insert(name.to_owned(), cell);
    }
    for view in net.cells().stations() {
        let (now, before) = (view.stats, view.before);
        let done = (now.sent + now.given_up) - (before.sent + before.given_up);
        let station = StationSummary {
            rate_bps: view.rate.map(Rate::bps),
            airtime: share(now.airtime - before.airtime),
            sent: now.sent - before.sent,
            given_up: now.given_up - before.given_up,
            attempts: now.attempts - before.attempts,
            collisions: now.collisions - before.collisions,
            errors: now.errors - before.errors,
            retries: now.retries - before.retries,
            mean_mac_delay_s: (now.delay - before.delay).as_secs_f64() / done.max(1) as f64,
            whole_run: StationCounts {
                sent: now.sent,
                given_up: now.given_up,
                attempts: now.attempts,
                collisions: now.collisions,
                errors: now.errors,
                retries: now.retries,
            },
        };
        if let Some(cell) = cells.get_mut(view.name.0) {
            cell.stations.insert(view.name.1.to_owned(), station);
        }
    }
    cells
}

/// Capacity of the slowest link that a group's data takes, and what is offered to it as a share of that.
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

fn counts([arrivals, drops, drops_acks, marks]: [u64; 4], impaired: Option<Counts>) -> LinkCounts {
    let impaired = impaired.map(|Counts { lost, duplicated, reordered, detoured, marked }| ImpairedSummary {
        lost,
        duplicated,
        reordered,
        detoured,
        marked,
    });
    LinkCounts { arrivals, drops, drops_data: drops - drops_acks, drops_acks, marks, impaired }
}

fn add(to: &mut LinkCounts, link: &LinkCounts) {
    to.arrivals += link.arrivals;
    to.drops += link.drops;
    to.drops_data += link.drops_data;
    to.drops_acks += link.drops_acks;
    to.marks += link.marks;
}

fn share(part: u64, whole: u64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}

/// When a flow stops sending new data. The stop of web flows ends their arrivals, not the flows.
fn stop(group: &Group, r: &Record) -> Option<Time> {
    Some(group.stops(r)).filter(|stop| !group.web && *stop < Time::MAX)
}

/// How long a flow was active after warm-up, seconds.
fn active_s(sim: &Finished, r: &Record) -> f64 {
    let stop = stop(&sim.hosts.groups[r.group as usize], r).unwrap_or(Time::MAX);
    let from = r.start.max(sim.scenario.warmup);
    r.end.min(stop).min(sim.net.now).saturating_sub(from).as_secs_f64()
}

/// From a flow's start to its end, or to the run's.
fn present_s(sim: &Finished, r: &Record) -> f64 {
    r.end.min(sim.net.now).saturating_sub(r.start).as_secs_f64()
}

/// A least timeout of so many round trips is made for longer paths.
const LONG_TIMEOUT: f64 = 100.0;
/// Where a group's fullest link is used less than this, it may be its timeouts that leave it idle.
const IDLE: f64 = 0.5;
/// What timeouts may take of the time that flows are there before it is told of.
const TOLD: f64 = 0.05;

/// Flows of each group that still wait for a timeout, and for how long altogether, seconds; those that have waited for a hundred round trips.
fn waiting(hosts: &Hosts, now: Time) -> Vec<(u64, f64)> {
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

/// What to say of flows that waited for timeouts of the least length, which is far beyond their RTT.
fn waited(
    sim: &Finished,
    group: &Group,
    timeouts: u64,
    (waiting, waiting_s): (u64, f64),
    present_s: f64,
) -> Option<String> {
    let transport = &sim.scenario.flows[group.plan.spec].transport;
    let (least, rtt_s) = (transport.min_rto, group.plan.path_rtt_s);
    let round_trips = least.as_secs_f64() / rtt_s;
    let long = rtt_s > 0.0 && round_trips >= LONG_TIMEOUT && transport.recovery != Some(Recovery::Count);
    let waited_s = timeouts as f64 * least.as_secs_f64() + waiting_s;
    (long && timeouts + waiting > 0 && waited_s >= TOLD * present_s).then(|| {
        format!(
            "flows.{}: {timeouts} timeouts of {least} or more, and {waiting} flows in one at the end; {least} are {round_trips:.0} round trips of \
             {}: set transport.min_rto to a few of them",
            group.name,
            Time::from_secs_f64(rtt_s)
        )
    })
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
    }
}

/// What is known of a group's packets on their way, all and by the size of their flows.
fn packet_delays(sim: &Finished, group: &Group, curves: &mut Vec<DelayCurve>) -> Option<PacketDelays> {
    let payload = sim.scenario.payload();
    let parts = &sim.hosts.delays[group.delays.clone()];
    let all = Delays::together(parts);
    curves.push(curve("group", &group.name, None, &all));
    // Flows that do not arrive in the run are all of one size, or of none.
    let first = if group.web { Some(0) } else { group.size.map(|size| size_bins::bin(size, payload)) };
    let bins = parts.iter().zip(first.into_iter().flat_map(|first| first..)).filter_map(|(part, bin)| {
        let (min_bytes, max_bytes) = size_bins::bounds(bin, payload);
        curves.push(curve("group", &group.name, Some((min_bytes, max_bytes)), part));
        part.distribution().map(|values| SizeBin { min_bytes, max_bytes, values })
    });
    let bins = bins.collect();
    all.distribution().map(|all| PacketDelays { all, bins })
}

fn curve(kind: &'static str, name: &str, bytes: Option<(u64, u64)>, of: &Delays) -> DelayCurve {
    DelayCurve { kind, name: name.to_owned(), bytes, points: of.cdf() }
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
