//! Converts a lab's run to a simulation's tables, with the same names.
//!
//! The path measures links, goodput, retransmissions and flow times. The kernel measures windows and RTTs,
//! which iperf3 samples. The applications' own reports are in the summary under `applications`.

use super::applications::Planned;
use super::backlog::{Counted, Window};
use super::departures::{self, Left};
use super::file::{LINKS, Lab, PACKET_BYTES};
use super::flows::{Application, Control};
use super::quic;
use super::shaper::{Changes, LATEST};
use super::stamped::Variables;
use crate::path::{By, EmulatedLink, Flow, LatenessSummary, Report, number_of};
use crate::router::police as policing;
use flowstamp_laws::medium::Capacity;
use flowstamp_laws::registry::RouterSpec;
use flowstamp_laws::units::Time;
use flowstamp_results::{
    Distribution, FctSummary, FlowRow, GroupCounts, GroupSummary, LinkSummary, Series, SeriesKey, TestedFlow,
    jain_index, share,
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The results of a run.
pub struct Results {
    /// `manifest.json`.
    pub manifest: Value,
    /// `summary.json`.
    pub summary: Value,
    /// `series.parquet`.
    pub series: Series,
    /// `flows.parquet`.
    pub flows: Vec<FlowRow>,
    /// Why the run is invalid, if so.
    pub invalid: Option<String>,
}

/// Observations of the run other than the path's.
pub struct Observed {
    /// The kind of the path's devices.
    pub by: By,
    /// The report of each flow's program.
    pub said: Vec<Value>,
    /// Programs that failed.
    pub failures: Vec<String>,
    /// Observations of the BPF router, if there is one.
    pub router: Option<Router>,
    /// Lateness of the rate changes of the router's link, if its rate varies.
    pub changes: Option<Changes>,
    /// The hosts' counters; null if no host had one of our laws.
    pub counters: Value,
    /// Each flow's departure from its law, if any.
    pub left: Vec<Option<Left>>,
    /// Frames dropped between the hosts and the path.
    pub dropped: u64,
    /// Idle share of the machine's CPU time.
    pub idle_share: f64,
    /// Wall-clock seconds of the run.
    pub wall_s: f64,
}

/// Observations of a BPF router.
pub struct Router {
    /// Samples of the queue.
    pub queue: Vec<Counted>,
    /// The law's variables.
    pub law: Vec<(Time, Variables)>,
    /// Samples of the police's flows, if there is a police.
    pub police: Option<Vec<(Time, Vec<policing::Flow>)>>,
    /// `router status` of SCONE at the end; null if there is none.
    pub scone: Value,
}

pub fn results(lab: &Lab, plan: &[Planned], report: &Report, observed: &Observed) -> Results {
    let flows = rows(lab, plan, report, observed);
    let lateness = report.lateness.summary();
    let invalid = invalid(lab, report.overruns + observed.dropped, &lateness)
        .or_else(|| observed.changes.as_ref().and_then(late_changes));
    let links = links(lab, plan, report, observed);
    let groups = groups(lab, plan, report, &flows);
    let total_bps: f64 = groups.values().filter_map(|group| group["goodput_bps"].as_f64()).sum();
    let long: Vec<f64> =
        flows.iter().filter(|row| row.size_bytes.is_none()).map(|row| row.goodput_bps).collect();
    let opened: Vec<bool> = report.flows.flows().iter().map(|flow| flow.opened.is_some()).collect();
    let count = |name| links.values().filter_map(|link| link[name].as_u64()).sum();
    let (drops, arrivals): (u64, u64) = (count("drops"), count("arrivals"));
    let summary = json!({
        "name": lab.name,
        "seed": lab.seed,
        "duration_s": lab.duration.as_secs_f64(),
        "warmup_s": lab.warmup.as_secs_f64(),
        "links": links,
        "access": {"links": 0, "arrivals": 0, "drops": 0},
        "groups": groups,
        "total": {
            "goodput_bps": total_bps,
            "drops": drops,
            "drop_rate": share(drops, arrivals),
            "jain_index": (!long.is_empty()).then(|| jain_index(&long)),
        },
        "flows": flows,
        "packet_hops": arrivals,
        "wall_s": observed.wall_s,
        "valid": invalid.is_none(),
        "invalid": invalid,
        "path": path(lab, report, observed, &lateness),
        "applications": plan.iter().zip(&observed.said).map(|(p, said)| application(lab, p, said)).collect::<Vec<_>>(),
        "hosts": {
            "counters": observed.counters,
            "groups": departures::by_group(lab, plan, &opened, &observed.left),
        },
        "scone": observed.router.as_ref().map(|router| &router.scone),
        "failures": observed.failures,
    });
    Results { manifest: manifest(lab), summary, series: series(lab, plan, report, observed), flows, invalid }
}

fn rows(lab: &Lab, plan: &[Planned], report: &Report, observed: &Observed) -> Vec<FlowRow> {
    let flows = plan.iter().zip(report.flows.flows()).zip(&observed.said).enumerate();
    flows
        .map(|(number, ((planned, flow), said))| {
            let row = row(lab, number, planned, flow, said);
            let left = observed.left[number].as_ref();
            FlowRow {
                switched_s: left.map(|left| left.at.map_or(row.start_s, Time::as_secs_f64)).into(),
                ..row
            }
        })
        .collect()
}

fn links(lab: &Lab, plan: &[Planned], report: &Report, observed: &Observed) -> Map<String, Value> {
    let capacities = [lab.path.capacity(), lab.path.reverse_capacity()];
    let links = LINKS.iter().zip(&report.links).zip(&capacities);
    links
        .map(|((name, link), capacity)| {
            let summary = match observed.router.as_ref().filter(|_| *name == LINKS[0]) {
                Some(router) => LinkSummary {
                    police: router.police.as_ref().map(|seen| tested(lab, plan, seen)),
                    ..watched_summary(lab, &Window::of(&router.queue, lab.warmup, lab.duration))
                },
                None => link_summary(lab, link, capacity),
            };
            ((*name).to_owned(), counted(&summary))
        })
        .collect()
}

/// The groups of flows by name.
fn groups(lab: &Lab, plan: &[Planned], report: &Report, flows: &[FlowRow]) -> Map<String, Value> {
    let all = || flows.iter().zip(report.flows.flows()).zip(plan);
    let groups = lab.flows.iter().enumerate();
    groups
        .map(|(number, group)| {
            let (rows, taken): (Vec<_>, Vec<_>) =
                all().filter(|(_, planned)| planned.group == number).map(|(both, _)| both).unzip();
            (group.name.clone(), json!(group_summary(lab, lab.law_of(group), &rows, &taken)))
        })
        .collect()
}

/// The path's counters and lateness.
fn path(lab: &Lab, report: &Report, observed: &Observed, lateness: &LatenessSummary) -> Value {
    let counters = report.links.each_ref().map(EmulatedLink::counters);
    json!({
        "by": observed.by,
        "lateness": lateness,
        "lateness_bound_s": lab.path.lateness_bound().as_secs_f64(),
        "overruns": report.overruns + observed.dropped,
        "cpu_s": report.cpu_s,
        "frames": report.frames,
        "real_time": report.real_time,
        "idle_share": observed.idle_share,
        "rate_changes": observed.changes,
        "random_losses": counters.iter().map(|c| c.losses).sum::<u64>(),
        "stamped": counters.iter().map(|c| c.stamped).sum::<u64>(),
    })
}

/// The manifest: what ran, and where.
fn manifest(lab: &Lab) -> Value {
    let scenario = lab.scenario();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": lab.seed,
        "lab": lab,
        "scenario": scenario.as_ref().ok(),
        "no_scenario": scenario.as_ref().err(),
        "host": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "cpus": std::thread::available_parallelism().map_or(1, usize::from),
            "kernel": std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        },
    })
}

/// Why the run is invalid: on a machine too busy to keep the path's times, results say nothing about
/// congestion control.
fn invalid(lab: &Lab, overruns: u64, lateness: &LatenessSummary) -> Option<String> {
    let bound_s = lab.path.lateness_bound().as_secs_f64();
    if lateness.p98_s > bound_s {
        return Some(format!(
            "2% of the packets left the path {:.3} ms late or later; the bound is {:.3} ms",
            lateness.p98_s * 1e3,
            bound_s * 1e3
        ));
    }
    // A pause of a round trip is a path property that the file does not describe, however rare it is.
    let (latest_s, rtt_s) = (lateness.max_s, lab.path.rtt.as_secs_f64());
    if latest_s >= rtt_s {
        return Some(format!(
            "a packet left the path {:.3} ms late; that is a round trip of {:.3} ms or more",
            latest_s * 1e3,
            rtt_s * 1e3
        ));
    }
    (overruns > 0).then(|| format!("{overruns} packets came faster than the path or a host took them"))
}

/// Why the run is invalid if the link's rate changed too late.
fn late_changes(changes: &Changes) -> Option<String> {
    let bound_s = LATEST.as_secs_f64();
    (changes.late_p98_s > bound_s).then(|| {
        format!(
            "2% of the link's rates came {:.3} ms late or later; the bound is {:.3} ms",
            changes.late_p98_s * 1e3,
            bound_s * 1e3
        )
    })
}

/// A link's summary, without fields that a lab does not measure.
fn counted(summary: &LinkSummary) -> Value {
    let mut known = json!(summary);
    if let Value::Object(keys) = &mut known {
        keys.retain(|key, _| {
            !["drops_data", "drops_acks", "after_warmup", "whole_run", "queueing_delay_s"]
                .contains(&key.as_str())
        });
    }
    known
}

fn link_summary(lab: &Lab, link: &EmulatedLink, capacity: &Capacity) -> LinkSummary {
    let c = link.counters();
    let room = capacity.bytes_between(lab.warmup, lab.duration);
    LinkSummary {
        rate_bps: capacity.mean(lab.warmup, lab.duration).bps(),
        buffer_bytes: lab.path.buffer_bytes() as f64,
        utilization: c.sent_bytes as f64 / room,
        mean_queue_bytes: link.mean_queue_bytes(),
        p50_queue_bytes: link.queue_quantile(0.5) as f64,
        p90_queue_bytes: link.queue_quantile(0.9) as f64,
        p95_queue_bytes: link.queue_quantile(0.95) as f64,
        p99_queue_bytes: link.queue_quantile(0.99) as f64,
        max_queue_bytes: c.max_queue_bytes as f64,
        arrivals: c.arrivals,
        drops: c.drops + c.losses,
        drop_rate: share(c.drops + c.losses, c.arrivals),
        ..LinkSummary::default()
    }
}

/// A link whose queue is a qdisc of the kernel.
fn watched_summary(lab: &Lab, queue: &Window) -> LinkSummary {
    let room = lab.path.capacity().bytes_between(lab.warmup, lab.duration);
    let (drops, arrivals) = (queue.drops(), queue.packets() + queue.drops());
    LinkSummary {
        rate_bps: lab.path.capacity().mean(lab.warmup, lab.duration).bps(),
        buffer_bytes: lab.path.buffer_bytes() as f64,
        utilization: queue.bytes() as f64 / room,
        mean_queue_bytes: queue.mean_queue_bytes(),
        p50_queue_bytes: queue.quantile(0.5),
        p90_queue_bytes: queue.quantile(0.9),
        p95_queue_bytes: queue.quantile(0.95),
        p99_queue_bytes: queue.quantile(0.99),
        max_queue_bytes: queue.quantile(1.0),
        arrivals,
        drops,
        drop_rate: share(drops, arrivals),
        ..LinkSummary::default()
    }
}

/// The results of each flow's tests, in the order of their first tests. Times are those of the first sample
/// that shows the event.
fn tested(lab: &Lab, plan: &[Planned], seen: &[(Time, Vec<policing::Flow>)]) -> Vec<TestedFlow> {
    let mut all: Vec<TestedFlow> = Vec::new();
    for (time, flow) in seen.iter().flat_map(|(time, flows)| flows.iter().map(move |flow| (time, flow))) {
        // Only samples before the lab's end, and only planned flows.
        let number = number_of([flow.from.port(), flow.to.port()]).filter(|number| *number < plan.len());
        let (Some(number), true) = (number.filter(|_| flow.tests > 0), *time <= lab.duration) else {
            continue;
        };
        let known = all.iter().position(|tested| tested.flow == number as u32).unwrap_or_else(|| {
            all.push(TestedFlow {
                flow: number as u32,
                group: lab.flows[plan[number].group].name.clone(),
                index: plan[number].index,
                round_s: flow.round_s,
                told_s: time.as_secs_f64(),
                judged_s: None,
                isolated_s: None,
                tests: 0,
                isolations: 0,
                drops: 0,
            });
            all.len() - 1
        });
        // The kernel has one entry per region of sequence numbers, and each inherits the previous one's
        // state.
        let tested = &mut all[known];
        tested.tests = tested.tests.max(flow.tests);
        tested.isolations = tested.isolations.max(flow.isolations);
        tested.drops = tested.drops.max(flow.held_packets);
        if flow.isolations > 0 {
            tested.isolated_s.get_or_insert(time.as_secs_f64());
        }
    }
    all
}

fn row(lab: &Lab, number: usize, planned: &Planned, flow: &Flow, said: &Value) -> FlowRow {
    let group = &lab.flows[planned.group];
    // A download starts when it connects; iperf3 exchanges its parameters before its data.
    let start = match group.app {
        Application::Iperf3 => flow.started,
        Application::Http | Application::H3 | Application::Video => flow.opened,
    };
    let size = group.size.map(flowstamp_laws::units::Bytes::get);
    // HTTP headers add to the size; iperf3 may send one more block.
    let complete = size.is_some_and(|size| flow.finished.is_some() && flow.delivered_bytes >= size);
    let end = flow.last_ack.filter(|_| complete);
    let from = start.unwrap_or(planned.start).max(lab.warmup);
    let stop = end.or(flow.finished).unwrap_or(lab.duration).min(lab.duration);
    let active_s = stop.saturating_sub(from).as_secs_f64();
    let bits = (flow.delivered_bytes - flow.delivered_at_warmup) as f64 * 8.0;
    let sender = &said["end"]["streams"][0]["sender"];
    let us = |name: &str| sender[name].as_f64().map(|us| us * 1e-6);
    let ms = |name: &str| said["server"][name].as_f64().map(|ms| ms * 1e-3);
    let rtt_s = |tcp: &str, quic: &str| us(tcp).or_else(|| ms(quic)).filter(|rtt_s| *rtt_s > 0.0);
    FlowRow {
        flow: number as u32,
        group: group.name.as_str().into(),
        index: planned.index,
        law: lab.law_of(group).name(),
        start_s: start.unwrap_or(planned.start).as_secs_f64(),
        end_s: end.map(Time::as_secs_f64),
        size_bytes: size,
        fct_s: end.zip(start).map(|(end, start)| end.saturating_sub(start).as_secs_f64()),
        ideal_fct_s: None.into(),  // not defined: hosts add their own delays
        fct_sender_s: None.into(), // not measured: acks of the last byte do not pass the path one by one
        delivered_bytes: flow.delivered_bytes,
        delivered_bytes_after_warmup: flow.delivered_bytes - flow.delivered_at_warmup,
        goodput_bps: if active_s > 0.0 { bits / active_s } else { 0.0 },
        retransmissions: flow.retransmissions,
        retransmissions_after_warmup: flow.retransmissions - flow.retransmissions_at_warmup,
        // Neither the path nor iperf3 distinguishes a timeout from other retransmissions.
        timeouts: 0,
        timeouts_after_warmup: 0,
        min_rtt_s: rtt_s("min_rtt", "min_rtt_ms").into(),
        srtt_s: rtt_s("mean_rtt", "rtt_ms").into(),
        switched_s: None.into(),
        stop_s: group.stop.map(Time::as_secs_f64).into(),
        video: None,
    }
}

fn group_summary(lab: &Lab, law: Control, rows: &[&FlowRow], taken: &[&Flow]) -> GroupSummary {
    let span_s = lab.duration.saturating_sub(lab.warmup).as_secs_f64();
    let bytes: u64 = taken.iter().map(|flow| flow.delivered_bytes - flow.delivered_at_warmup).sum();
    let goodputs: Vec<f64> = rows.iter().map(|row| row.goodput_bps).collect();
    let mut times: Vec<f64> = rows
        .iter()
        .filter(|row| row.start_s >= lab.warmup.as_secs_f64())
        .filter_map(|row| row.fct_s)
        .collect();
    let warmup_s = lab.warmup.as_secs_f64();
    let counts = |from_s: f64, delivered_bytes: u64, again: fn(&FlowRow) -> u32| GroupCounts {
        flows: taken.iter().filter_map(|flow| flow.opened).filter(|at| at.as_secs_f64() >= from_s).count()
            as u64,
        completed: rows.iter().filter_map(|row| row.end_s).filter(|at| *at >= from_s).count() as u64,
        delivered_bytes,
        retransmissions: rows.iter().map(|row| u64::from(again(row))).sum(),
        timeouts: 0,
    };
    let all = taken.iter().map(|flow| flow.delivered_bytes).sum();
    let whole_run = counts(0.0, all, |row| row.retransmissions);
    GroupSummary {
        law: law.name().to_owned(),
        flows: whole_run.flows,
        completed: whole_run.completed,
        capacity_bps: lab.path.capacity().mean(lab.warmup, lab.duration).bps(),
        path_rtt_s: lab.path.rtt.as_secs_f64(),
        offered_load: 0.0, // no application here starts flows at random
        mean_size_bytes: rows.first().and_then(|row| row.size_bytes).map(|bytes| bytes as f64),
        goodput_bps: bytes as f64 * 8.0 / span_s,
        jain_index: (!goodputs.is_empty()).then(|| jain_index(&goodputs)),
        retransmissions: whole_run.retransmissions,
        timeouts: 0,
        after_warmup: counts(warmup_s, bytes, |row| row.retransmissions_after_warmup),
        whole_run,
        fct_slowdown: None,
        operations: None,
        application: None,
        video: None,
        fct_sender_s: None,
        packet_delay_s: None,
        // A group has one size, so there are no bins.
        fct_s: Distribution::of(&mut times).map(|all| FctSummary { all, bins: Vec::new() }),
        littles_law: None,
    }
}

/// A summary of the report of a flow's program.
fn application(lab: &Lab, planned: &Planned, said: &Value) -> Value {
    let group = &lab.flows[planned.group];
    match group.app {
        Application::Iperf3 => {
            let mut rtts: Vec<f64> =
                intervals(said).filter_map(|(_, i)| i["rtt"].as_f64()).filter(|us| *us > 0.0).collect();
            let rtt = Distribution::of(&mut rtts);
            json!({
                "flow": name_of(lab, planned),
                "app": "iperf3",
                "received_bps": said["end"]["sum_received"]["bits_per_second"],
                "retransmits": said["end"]["sum_sent"]["retransmits"],
                "rtt_p50_s": rtt.as_ref().map(|rtt| rtt.p50 * 1e-6),
                "rtt_p95_s": rtt.as_ref().map(|rtt| rtt.p95 * 1e-6),
                "congestion_control": said["end"]["sender_tcp_congestion"],
            })
        }
        Application::Http => json!({
            "flow": name_of(lab, planned),
            "app": "http",
            "time_total_s": said["time_total"],
            "time_starttransfer_s": said["time_starttransfer"],
            "size_bytes": said["size_download"],
            "response_code": said["response_code"],
        }),
        Application::H3 => quic::application(&name_of(lab, planned), said),
        Application::Video => quic::video(&name_of(lab, planned), said),
    }
}

/// iperf3's samples: the end of each interval in seconds since the data's start, and the stream's values.
fn intervals(said: &Value) -> impl Iterator<Item = (f64, &Value)> {
    said["intervals"].as_array().into_iter().flatten().filter_map(|interval| {
        let stream = &interval["streams"][0];
        Some((stream["end"].as_f64()?, stream))
    })
}

/// Appends samples; each series is identified by its kind, name and metric.
#[derive(Default)]
struct Rows {
    series: Series,
    keys: HashMap<(&'static str, String, String), u32>,
}

impl Rows {
    fn push(&mut self, time_s: f64, kind: &'static str, name: &str, metric: &str, value: f64) {
        let next = self.keys.len() as u32;
        let key = *self.keys.entry((kind, name.to_owned(), metric.to_owned())).or_insert(next);
        if key == next {
            self.series.keys.push(SeriesKey { kind, name: name.to_owned(), metric: metric.to_owned() });
        }
        self.series.time_s.push(time_s);
        self.series.key.push(key);
        self.series.value.push(value);
    }
}

fn series(lab: &Lab, plan: &[Planned], report: &Report, observed: &Observed) -> Series {
    let mut rows = Rows::default();
    series_of_links(&mut rows, lab, report, observed.router.as_ref());
    series_of_goodput(&mut rows, lab, plan, report);
    for ((planned, flow), said) in plan.iter().zip(report.flows.flows()).zip(&observed.said) {
        if let Some(started) = flow.started {
            series_of_iperf3(&mut rows, lab, planned, started, said);
        }
    }
    rows.series
}

/// Series of the links and of the router law's variables.
fn series_of_links(rows: &mut Rows, lab: &Lab, report: &Report, router: Option<&Router>) {
    let capacities = [lab.path.capacity(), lab.path.reverse_capacity()];
    for ((name, link), capacity) in LINKS.iter().zip(&report.links).zip(&capacities) {
        for sample in link.samples() {
            let time_s = sample.time.as_secs_f64();
            let since = sample.time.saturating_sub(lab.probes.every);
            // With no capacity in the interval, utilisation is 1.
            let used = |bytes: f64| match capacity.bytes_between(since, sample.time) {
                room if room > 0.0 => bytes / room,
                _ => 1.0,
            };
            let [sent, waiting, mean, drops] = match router.filter(|_| *name == LINKS[0]) {
                Some(router) => {
                    let queue = Window::of(&router.queue, since, sample.time);
                    let counts = [queue.bytes(), queue.drops()].map(|count| count as f64);
                    [counts[0], queue.queue_bytes(), queue.mean_queue_bytes(), counts[1]]
                }
                None => {
                    let counts =
                        [sample.sent_bytes, sample.queue_bytes, sample.drops].map(|count| count as f64);
                    [counts[0], counts[1], sample.mean_queue_bytes, counts[2]]
                }
            };
            let mut push = |metric, value| rows.push(time_s, "link", name, metric, value);
            push("utilization", used(sent));
            push("queue_bytes", waiting);
            push("mean_queue_bytes", mean);
            push("drops", drops);
            push("marks", 0.0);
            for (metric, value) in &sample.law {
                rows.push(time_s, "law", name, metric, *value);
            }
        }
    }
    for (time, values) in
        router.iter().flat_map(|router| &router.law).filter(|(time, _)| *time <= lab.duration)
    {
        for (metric, value) in values {
            rows.push(time.as_secs_f64(), "law", LINKS[0], metric, *value);
        }
    }
}

/// Series of the goodput of groups and flows.
fn series_of_goodput(rows: &mut Rows, lab: &Lab, plan: &[Planned], report: &Report) {
    let every_s = lab.probes.every.as_secs_f64();
    let mut before = vec![0; plan.len()];
    for (time, delivered) in report.flows.samples() {
        let time_s = time.as_secs_f64();
        let bps = |flow: usize| (delivered[flow] - before[flow]) as f64 * 8.0 / every_s;
        for (number, group) in lab.flows.iter().enumerate() {
            let of_group = (0..plan.len()).filter(|flow| plan[*flow].group == number);
            rows.push(time_s, "group", &group.name, "goodput_bps", of_group.map(bps).sum());
        }
        for (flow, planned) in plan.iter().enumerate() {
            rows.push(time_s, "flow", &name_of(lab, planned), "goodput_bps", bps(flow));
        }
        before.clone_from(delivered);
    }
}

/// Series of the window and RTT of a flow.
fn series_of_iperf3(rows: &mut Rows, lab: &Lab, planned: &Planned, started: Time, said: &Value) {
    let name = name_of(lab, planned);
    for (end_s, sample) in intervals(said) {
        let time_s = started.as_secs_f64() + end_s;
        if time_s > lab.duration.as_secs_f64() {
            break;
        }
        if let Some(cwnd_bytes) = sample["snd_cwnd"].as_f64() {
            // iperf3 reports the window in bytes of segments; a packet here is a full frame.
            let packets = cwnd_bytes / (PACKET_BYTES - HEADERS_BYTES) as f64;
            rows.push(time_s, "flow", &name, "cwnd_packets", packets);
        }
        if let Some(us) = sample["rtt"].as_f64() {
            rows.push(time_s, "flow", &name, "rtt_s", us * 1e-6);
        }
    }
}

/// A flow's name in series.
fn name_of(lab: &Lab, planned: &Planned) -> String {
    format!("{}.{}", lab.flows[planned.group].name, planned.index)
}

/// Headers of Ethernet, IPv4 and TCP with timestamps.
const HEADERS_BYTES: u64 = 66;

/// The router's law on the path: XCP's laws use the throughput form, which is what the option carries.
pub fn router_of_path(law: &RouterSpec) -> RouterSpec {
    match law {
        RouterSpec::Xcp(parameters) => RouterSpec::XcpDraft(*parameters),
        RouterSpec::XcpB(parameters) => RouterSpec::XcpBDraft(*parameters),
        other => other.clone(),
    }
}
