//! Upper bound of the memory of a run, computed before any of it is taken.
//!
//! ```text
//!   program + links + flows and their hosts + packets in flight + samples + captured packets + files
//! ```
//!
//! Sizes are those of the types, and numbers follow from the scenario. All parts are counted as if they existed at
//! once, from the layout to the tables that are written. A part that grows by doubling counts as if it had just
//! doubled. Quantities that only the run determines are bounded:
//!
//! | quantity | upper bound |
//! |---|---|
//! | packets in flight of flows with a window | twice the capacity of path and buffers plus the first windows; growth by a factor of three per round trip |
//! | the same with larger buffers, or behind hosts' links that are slower than the path | the packets that the path carries in the whole run, times the window's growth for each |
//! | packets of applications with a rate, and of flows with a size | the packets produced; twice the packets transferred |
//! | packets of flows that arrive at random | four times the mean size of the concurrent flows, and the packets that one alone may have |
//! | datagrams | those produced in a round trip, those that buffers hold, and those produced beyond an access link's rate |
//! | packets queued at a link | its buffer; the packets in flight of its flows |
//! | concurrent flows of a list | those whose links are still busy, and then for 30 round trips and a second |
//! | concurrent flows that arrive at random | all at a load of 1; below it, the arrivals of 30 round trips and a second, and those of a queue |
//! | samples | duration divided by interval, for each series |

mod messages;
mod spans;

use super::groups::ARRIVAL_PAIRS;
use super::lists::Placed;
use super::paths::{Core, Way};
use super::{Builder, MOST_FLOWS, Result, error};
use crate::capture::{User, wanted};
use crate::delays::STEP;
use crate::events::EventQueue;
use crate::flow_list::Listed;
use crate::host::{Flow, Group, JITTER_BYTES, Outcome, Pick, Record, app_bytes};
use crate::link::{InFlight, Plain, Port};
use crate::medium::Capacity;
use crate::plan::{Choice, FlowPlan, FlowRoutes, GroupPlan, LinkPlan, Needs};
use crate::random::Stream;
use crate::results::{
    CapturedFrame, CapturedPacket, DelayCurve, FlowRow, GroupSummary, LinkSummary, SeriesKey,
};
use crate::scenario::{Access, Arrivals, FlowGroup, Pattern, Priority, Web};
use crate::size_bins::BINS;
use crate::workload::SizeLaw;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{Header, SenderSpec};
use flowstamp_laws::sender::{FlowView, SenderLaw};
use flowstamp_laws::transport::{self, Agreed, SackBlocks};
use flowstamp_laws::units::{Rate, Time};
use spans::Span;
use std::collections::BTreeSet;

/// Memory of the interpreter, its libraries and the engine, bytes.
pub const PROGRAM: f64 = 96e6;
/// Growth factor of vectors.
pub const GROWTH: f64 = 2.0;
/// Growth factor of long vectors, which the system moves when they grow and which take memory as they are filled.
const LONG_GROWTH: f64 = 1.5;
/// Access links per flow: both ends, one in each direction.
const ACCESS_LINKS: f64 = 4.0;
/// A row of the summary as text, in the reader's copies, or as Python objects: measured, 2.2 kB.
const ROW_TOLD: f64 = 2_500.0;
/// Columns of the table of flows, and one column while it is written.
pub const ROW_COLUMNS: f64 = 21.0 * 8.0 + 16.0;
/// One sample, bytes: its row, the row of the table made from it, and a column of that while it is written.
const SAMPLE: f64 = ROW_OF_SERIES + 28.0 + 24.0;
/// Row of a sample, bytes: time, key, value, and the index by key.
const ROW_OF_SERIES: f64 = 24.0;
/// Maximum number of variables that the laws of a link report.
const VARIABLES: f64 = 32.0;
/// A flow's buckets at a policer, in a tree whose nodes are half full at least, bytes.
const BUCKETS: f64 = 224.0;
/// Heap memory of a link's laws, bytes: tables of flows, histories.
const LAWS: f64 = 2_048.0;

/// Histogram of packet delays, bytes: delays differ by a factor of some hundreds at most.
const HISTOGRAM: f64 = GROWTH * 8.0 * 128.0 * 16.0;
/// Curve kept of one histogram, bytes.
const CURVE: f64 = size_of::<DelayCurve>() as f64 + 16.0 / STEP;

/// A row of a list and its number in the order of starts, bytes: in the run, and again when a change during the run
/// re-reads the list.
const LISTED: f64 = 3.0 * GROWTH * (size_of::<Listed>() + size_of::<u32>()) as f64;

pub fn of<T>() -> f64 {
    size_of::<T>() as f64
}

/// One part of the memory estimate.
#[derive(Clone, Debug)]
struct Part {
    bytes: f64,
    key: String,
    what: String,
}

/// Packets in flight of a group's flows over one path.
struct Load {
    way: Vec<u32>,
    back: Vec<u32>,
    data: f64,
    /// Acks per second that the data cause.
    acks_per_s: f64,
    /// Flows in the whole run.
    flows: f64,
}

/// Numbers of flows.
struct Count {
    /// Host pairs.
    pairs: f64,
    /// Flows in the whole run.
    all: f64,
    /// Concurrent flows.
    live: f64,
    /// Concurrent flows, where those of a list are counted once for all pairs.
    together: f64,
    /// Rows of a list.
    rows: f64,
}

#[derive(Default)]
struct Budget {
    parts: Vec<Part>,
    kept: f64,
    series: f64,
}

impl Budget {
    fn add(&mut self, bytes: f64, key: impl Into<String>, what: impl Into<String>) {
        self.parts.push(Part { bytes, key: key.into(), what: what.into() });
    }
}

impl Builder<'_> {
    /// Estimates the memory of the run; an error if it exceeds `memory`.
    pub(super) fn needs(&mut self, core: &Core) -> Result<Needs> {
        // In a web page the browser limits memory.
        if !cfg!(feature = "full") {
            return Ok(Needs::default());
        }
        let longest = self.longest(core);
        // If no flow has a path, laying out the flows reports it.
        if longest > Time::ZERO {
            self.graph_buffers(longest)?;
        }
        let mut budget = Budget::default();
        budget.add(PROGRAM, "", "the program itself");
        let loads = self.group_flows(core, &mut budget);
        self.router_links(&loads, &mut budget);
        self.samples(&mut budget);
        self.captured(&mut budget);
        let files: usize = self.loaded.files.values().map(String::len).sum();
        budget.add(6.0 * files as f64, "trace", "the files that it names");
        let total: f64 = budget.parts.iter().map(|part| part.bytes).sum();
        let needs = Needs { bytes: total as u64, kept: budget.kept as u64 };
        let Some(memory) = self.memory.filter(|memory| needs.bytes > *memory) else { return Ok(needs) };
        let Some(most) = budget.parts.into_iter().max_by(|a, b| a.bytes.total_cmp(&b.bytes)) else {
            return Ok(needs);
        };
        error(
            most.key,
            format!(
                "the run may need {} of memory, {} of it for {}; it may have {}: ask for less here, or give more (--memory)",
                size(total),
                size(most.bytes),
                most.what,
                size(memory as f64)
            ),
        )
    }

    /// The laws of a group's flows.
    fn laws<'b>(&'b self, at: usize, group: &'b FlowGroup) -> &'b [SenderSpec] {
        self.lists.get(&at).map_or(std::slice::from_ref(&group.law), |list| &list.flows.laws)
    }

    /// Adds flows, their hosts, and packets in flight.
    fn group_flows(&self, core: &Core, budget: &mut Budget) -> Vec<Load> {
        let mut loads = Vec::new();
        for (at, group) in self.scenario.flows.iter().enumerate() {
            let spans = self.spans(at, group, core);
            let list = self.lists.get(&at);
            let arrives = group.arrives();
            let access = group.access.or(core.access);
            let mut live = list.map(|list| {
                let rtts_s = spans.iter().map(|span| span.rtts[1].as_secs_f64());
                self.live(list, group, &rtts_s.collect::<Vec<_>>())
            });
            let histograms = if arrives { BINS as f64 + 1.0 } else { 1.0 };
            budget.kept += histograms * CURVE;
            let (mut hosts, mut under_way, mut flows) = (histograms * (HISTOGRAM + CURVE), 0.0, 0.0);
            for (number, span) in spans.into_iter().enumerate() {
                let count = self.count(group, list.map(|list| (list, number)), &span, access, &mut live);
                let laws = self.laws(at, group);
                hosts += self.bytes_at_hosts(group, laws, &span, &count, arrives);
                let told = row_told(arrives);
                budget.kept += count.all * (of::<FlowRow>() + told);
                budget.series += if self.scenario.probes.groups { 1.0 } else { 0.0 };
                budget.series += if self.scenario.probes.flows && !arrives { 3.0 * count.all } else { 0.0 };
                let transfers = self.transfers(group, count.live, list.map(|list| (list, number)));
                let [data, at_hosts] = self.on_their_way(group, laws, (count.live, transfers), &span, access);
                let waits = (of::<InFlight>() + of::<SackBlocks>()) * GROWTH;
                // A burst of all packets waits at one link of a host at a time, and a ring has room for at least two.
                under_way += waits * (2.0 * at_hosts + ACCESS_LINKS * 2.0 * count.pairs);
                under_way += if group.law.traits().datagrams {
                    0.0
                } else {
                    self.known_per_packet(group, laws) * data
                };
                flows += count.all;
                let acks_per_s = self.slowest(&span.there) / self.scenario.packet.as_f64();
                loads.push(Load { way: span.there, back: span.acks, data, acks_per_s, flows: count.all });
            }
            let key = |k: &str| format!("flows.{}.{k}", group.name);
            let many = match () {
                () if group.incast.is_some() => "incast",
                () if list.is_some() => "list",
                () if group.web.is_some() => "web",
                () => "count",
            };
            budget.add(hosts, key(many), format!("{flows:.0} flows"));
            let makes = match () {
                () if group.rate.is_some() => "rate",
                () if group.application.is_some() => "application",
                () => many,
            };
            budget.add(under_way, key(makes), "packets that these flows have on their way");
        }
        loads
    }

    /// Numbers of flows of a group, or of one pair of its list. `listed` has the concurrent flows of a list: the total,
    /// which counts with the first pair, and the number of each pair.
    fn count(
        &self,
        group: &FlowGroup,
        list: Option<(&Placed, usize)>,
        span: &Span,
        access: Option<Access>,
        listed: &mut Option<(f64, Vec<f64>)>,
    ) -> Count {
        let apart = access.is_some() || list.is_none();
        let many = apart && (group.web.is_some() || list.is_some());
        let pairs = group.count.unwrap_or(if many { ARRIVAL_PAIRS } else { 1 });
        let turns = list.filter(|_| !apart).map_or(0, |(list, pair)| list.ways[pair].len() as u32);
        let pairs = f64::from(pairs.max(turns).min(MOST_FLOWS));
        let pairs = span.pairs.map_or(pairs, |pairs| pairs as f64);
        if let (Some((list, pair)), Some((together, live))) = (list, listed) {
            let (all, live) = (f64::from(list.rows[pair]), live[pair]);
            return Count { pairs, all, live, together: std::mem::take(together), rows: all };
        }
        let (all, live) = self.arrivals(group, span).unwrap_or((pairs, pairs));
        Count { pairs, all, live, together: live, rows: 0.0 }
    }

    /// Memory of the ends of these flows, from the layout to the tables.
    fn bytes_at_hosts(
        &self,
        group: &FlowGroup,
        laws: &[SenderSpec],
        span: &Span,
        count: &Count,
        arrives: bool,
    ) -> f64 {
        let links = ((span.way.links.len() + span.back.links.len()) * span.routes) as f64;
        let routed = if self.is_rerouted(group) { self.routed_bytes(count.pairs, links) } else { 0.0 };
        let balanced = if self.is_balanced(group) { balanced(span, count) } else { 0.0 };
        let live = per_live(laws, group) * if arrives { GROWTH } else { 1.0 };
        let row = LONG_GROWTH * (of::<Record>() + of::<Outcome>())
            + of::<FlowRow>()
            + ROW_COLUMNS
            + 48.0
            + row_told(arrives);
        let named =
            of::<GroupPlan>() * GROWTH + of::<Group>() + of::<GroupSummary>() + 8.0 * span.name.len() as f64;
        count.rows * LISTED
            + count.pairs * per_pair(links, !self.nodes.is_empty())
            + routed
            + balanced
            + count.together * live
            + self.messages(group, count.together)
            + count.all * row
            + named
            + 3.0 * 4.0 * links
    }

    /// Number of flows that arrive at random in the run, and number of concurrent ones.
    fn arrivals(&self, group: &FlowGroup, span: &Span) -> Option<(f64, f64)> {
        let web = group.web.as_ref()?;
        let rtt_s = span.rtts[1].as_secs_f64();
        let s = self.scenario;
        let sizes = self.sizes(web)?;
        let slowest = span.shared;
        let wire = sizes.mean_wire_bytes(s.payload(), s.header.get());
        let per_s = web.flows_per_s.or_else(|| web.load.map(|load| load.get() * slowest / wire))?;
        let duration_s = s.duration.as_secs_f64();
        // Many short gaps and few long ones give more arrivals than the mean gap suggests.
        let crowded = match web.arrivals {
            Arrivals::Poisson => 1.0,
            Arrivals::Pareto { shape } => (shape / (shape - 1.0)).clamp(1.0, 2.0),
        };
        let small = if web.load.is_some() { sizes.typical(per_s * duration_s) } else { 1.0 };
        let mean = crowded * small * per_s * duration_s;
        let all = mean + 6.0 * mean.sqrt() + 10.0;
        let load = per_s * wire / slowest;
        if load >= 0.98 {
            return Some((all, all));
        }
        Some((all, all.min(per_s * (30.0 * rtt_s + 1.0) + 100.0 / (1.0 - load) + 1000.0)))
    }

    /// Peak rate of the slowest of these links, bytes per second.
    fn slowest(&self, links: &[u32]) -> f64 {
        links.iter().map(|link| self.peak(&self.links[*link as usize])).fold(f64::MAX, f64::min)
    }

    /// Peak rate of a link, bytes per second.
    pub(super) fn peak(&self, plan: &LinkPlan) -> f64 {
        match &plan.capacity {
            Capacity::Steps(steps) => steps.iter().map(|(_, rate)| rate.bytes_per_sec()).fold(0.0, f64::max),
            Capacity::Constant(_) | Capacity::Trace(..) => self.mean_rate(&plan.capacity).bytes_per_sec(),
        }
    }

    /// Packets that the concurrent flows of a group transfer, or all flows of a list's pair. The flag says whether one
    /// flow alone may have more. `None` for endless flows.
    fn transfers(
        &self,
        group: &FlowGroup,
        flows: f64,
        list: Option<(&Placed, usize)>,
    ) -> Option<(f64, bool)> {
        let payload = self.scenario.payload() as f64;
        if let Some((list, pair)) = list {
            return Some((2.0 * (list.packets[pair] + f64::from(list.rows[pair])), false));
        }
        match (group.size, group.web.as_ref().and_then(|web| self.sizes(web))) {
            (Some(size), _) => {
                // Each message of a ring begins a packet.
                let begun = if group.pattern == Some(Pattern::RingAllReduce) { 2.0 * flows } else { 2.0 };
                Some((flows * (2.0 * size.as_f64() / payload + begun), false))
            }
            // Concurrent flows are larger than average, and one may be much larger.
            (None, Some(sizes)) => Some((flows * (4.0 * sizes.mean_bytes() / payload + 8.0), true)),
            (None, None) => None,
        }
    }

    /// Packets that the flows of a group may have in flight, and how many of these at their hosts.
    fn on_their_way(
        &self,
        group: &FlowGroup,
        laws: &[SenderSpec],
        (flows, transfers): (f64, Option<(f64, bool)>),
        span: &Span,
        access: Option<Access>,
    ) -> [f64; 2] {
        let s = self.scenario;
        let [least_rtt_s, rtt_s] = span.rtts.map(Time::as_secs_f64);
        let (packet, payload) = (s.packet.as_f64(), s.payload() as f64);
        let duration_s = s.duration.as_secs_f64();
        let room: f64 = span.there.iter().map(|link| self.room(&self.links[*link as usize], packet)).sum();
        let produced = |rate_s: f64, time_s: f64| flows * (rate_s * time_s / payload + 2.0);
        let rate = group.rate.map(Rate::bytes_per_sec);
        let all = rate.map_or(f64::MAX, |rate| produced(rate, duration_s));
        if let (None, Some((per_s, each))) = (rate, self.most(group).filter(|_| group.law.traits().datagrams))
        {
            // Bursts that coincide, of packets that may be smaller.
            let made = |time_s: f64| flows * (per_s * time_s + 20.0) * each;
            let beyond =
                per_s * each * packet - access.map_or(f64::MAX, |access| access.rate.bytes_per_sec());
            let beyond = flows * beyond.max(0.0) / packet * duration_s;
            let at_hosts = made(duration_s).min(made(rtt_s.min(duration_s)) + beyond);
            return [made(duration_s).min(at_hosts + room), at_hosts];
        }
        if let (true, Some(rate)) = (group.law.traits().datagrams, rate) {
            let beyond = access.map_or(0.0, |access| (rate - access.rate.bytes_per_sec()).max(0.0));
            let at_hosts = all.min(produced(rate, rtt_s.min(duration_s)) + produced(beyond, duration_s));
            return [all.min(at_hosts + room), at_hosts];
        }
        let slowest = span.first as f64 * self.slowest(&span.there) / packet;
        let round_trip = slowest * rtt_s.min(duration_s);
        let transferred = match transfers {
            Some((packets, true)) => packets + 2.0 * round_trip + room.min(10.0 * round_trip),
            Some((packets, false)) => packets,
            None => f64::MAX,
        };
        let told = laws.iter().filter(|law| law.traits().told);
        let windows = told.map(|law| law.build(&self.view(group)).cwnd() / packet);
        let first = flows * (windows.fold(group.transport.initial_window, f64::max) + 4.0);
        // Hosts' links lose nothing. Where they are slower than the path, no feedback or loss ends an endless flow's growth.
        let hosts = access.map_or(f64::MAX, |access| flows * access.rate.bytes_per_sec() / packet);
        let by_hosts = transfers.is_none() && group.application.is_none() && hosts < slowest;
        let path = if by_hosts { f64::MAX } else { 2.0 * (first + round_trip + room) };
        let blind = laws.iter().all(|law| law.header() == Header::Plain);
        // Nothing is known before the first round trip is over. Afterwards a window without router feedback at most
        // doubles per round trip, or nearly triples with a gain that probes for bandwidth (BBR: 2 / ln 2).
        let rounds = duration_s / least_rtt_s;
        let grown = if rounds < 1.0 {
            first
        } else if blind {
            first * libm::pow(3.0, rounds.min(500.0))
        } else {
            f64::MAX
        };
        let carried = first + self.acknowledged(group, laws, [slowest, hosts]);
        // A burst of all packets waits at a host.
        [all.min(transferred).min(path).min(grown).min(carried); 2]
    }

    fn sizes(&self, web: &Web) -> Option<SizeLaw> {
        SizeLaw::new(&web.sizes, self.loaded, Stream::new(0, "")).ok()
    }

    fn view(&self, group: &FlowGroup) -> FlowView {
        FlowView {
            packet_bytes: self.scenario.packet.get() as u32,
            initial_window: group.transport.initial_window,
            app_rate: group.rate,
        }
    }

    /// Packets by which windows may grow in the whole run, at these rates of the path and of the hosts' links.
    fn acknowledged(&self, group: &FlowGroup, laws: &[SenderSpec], [path, hosts]: [f64; 2]) -> f64 {
        let blind = laws.iter().all(|law| law.header() == Header::Plain);
        let gain = if blind && !self.asks_for_rates(group, laws) { hosts.min(path) } else { 3.0 * path };
        let per_acked = laws.iter().map(|law| law.traits().per_acked).max().unwrap_or(1);
        gain.max(f64::from(per_acked) * hosts.min(path)) * self.scenario.duration.as_secs_f64()
    }

    fn asks_for_rates(&self, group: &FlowGroup, laws: &[SenderSpec]) -> bool {
        laws.iter().any(|law| Agreed::between(&group.transport, &law.traits()).delivery_rate)
    }

    /// Memory that sender and receiver need for each packet in flight, bytes.
    fn known_per_packet(&self, group: &FlowGroup, laws: &[SenderSpec]) -> f64 {
        let rates = if self.asks_for_rates(group, laws) { transport::RATE_BYTES_PER_PACKET } else { 0 };
        (transport::SET_BYTES_PER_PACKET + rates) as f64
    }

    /// Adds router links and the packets queued at them.
    fn router_links(&self, loads: &[Load], budget: &mut Budget) {
        let s = self.scenario;
        let (packet, ack) = (s.packet.as_f64(), s.ack.as_f64());
        let mut on = vec![(0.0, 0.0, 0.0); self.links.len()];
        for load in loads {
            load.way.iter().for_each(|link| on[*link as usize].0 += load.data);
            for link in &load.back {
                on[*link as usize].1 += load.data;
                on[*link as usize].2 += load.acks_per_s;
            }
        }
        let flows: f64 = loads.iter().map(|load| load.flows).sum();
        let (mut links, mut waits) = (0.0, 0.0);
        let mut longest = (0.0, 0);
        // On a link with classes by label, each class has a buffer and laws of its own.
        let labels = s.flows.iter().map(|group| group.label).collect::<BTreeSet<_>>().len() as f64;
        for (number, (plan, (data, acks, acks_per_s))) in self.links.iter().zip(on).enumerate() {
            let delay_s = plan.delay.as_secs_f64();
            let transit = self.peak(plan) * delay_s;
            let buffers = if plan.priority == Priority::Labels { labels } else { 1.0 };
            let held =
                |size: f64, most: f64| (buffers * self.room(plan, size) + transit / size + 2.0).min(most);
            // Acks that arrive no faster than they leave form no queue if there are no data on the link.
            let steady = matches!(plan.capacity, Capacity::Constant(_)) && !plan.medium.is_shared();
            let acks = if steady && data == 0.0 && acks_per_s * ack <= self.peak(plan) {
                acks.min(2.0 * acks_per_s * delay_s + 100.0)
            } else {
                held(ack, acks)
            };
            let here = GROWTH * (of::<InFlight>() + of::<Time>()) * (held(packet, data) + acks + 2.0);
            waits += here + GROWTH * 2.0 * of::<InFlight>() * self.most_in_mac(plan);
            if here > longest.0 {
                longest = (here, number);
            }
            // The histograms of queue length and of queueing delay have bins by logarithm.
            let bins = (32.0 * 16.0 + 16.0 * 128.0) * (self.room(plan, 1.0) + 2.0).log2();
            links += GROWTH * of::<LinkPlan>()
                + of::<Port>()
                + of::<Plain>()
                + of::<LinkSummary>()
                + buffers * LAWS
                + if plan.queue.has_buckets_of_flows() { BUCKETS * flows } else { 0.0 };
            links += 8.0 * plan.name.len() as f64 + bins + crate::bulk::BYTES + CURVE + 64.0;
            budget.kept += CURVE;
        }
        let number = self.links.len();
        let (key, buffer) = self.keys_of_links(longest.1);
        budget.add(links, key, format!("{number} links"));
        budget.add(waits, buffer, format!("packets that may wait at {number} links"));
        budget.series += if s.probes.links { 5.0 * number as f64 } else { 0.0 };
        budget.series += if s.probes.laws { VARIABLES * number as f64 } else { 0.0 };
        let stations: usize = self.nodes.iter().map(Vec::len).sum();
        budget.series += if s.probes.cells { (5 * stations + self.cells.len()) as f64 } else { 0.0 };
    }

    /// The key that sets the number of links, and the buffer key of the link with the largest possible queue.
    fn keys_of_links(&self, longest: usize) -> (&'static str, String) {
        let laid = self.graph.as_ref().and_then(|laid| laid.of);
        match (&self.scenario.dumbbell, &self.scenario.parking_lot) {
            _ if laid.is_some() => (laid.unwrap_or_default(), format!("{}.buffer", laid.unwrap_or_default())),
            (Some(_), _) => ("dumbbell", "dumbbell.buffer".to_owned()),
            (_, Some(_)) => ("parking_lot.rates", "parking_lot.buffer".to_owned()),
            _ => (
                "graph.links",
                self.links.get(longest).map_or_else(String::new, |l| format!("buffer of {}", l.name)),
            ),
        }
    }

    fn samples(&self, budget: &mut Budget) {
        let s = self.scenario;
        let samples =
            s.probes.every.map_or(100, |every| s.duration.as_ps() / every.as_ps().max(1)) as f64 + 1.0;
        let series = budget.series;
        budget.kept += samples * series * ROW_OF_SERIES;
        let keys = series * (of::<SeriesKey>() + 64.0) * GROWTH;
        let key = if s.probes.every.is_some() { "probes.every" } else { "probes" };
        budget.add(
            samples * series * SAMPLE + keys,
            key,
            format!("{samples:.0} samples of {series:.0} series"),
        );
    }

    fn captured(&self, budget: &mut Budget) {
        let s = self.scenario;
        let Some(capture) = &s.capture else { return };
        let duration_s = s.duration.as_secs_f64();
        let least = s.ack.as_f64().min(s.packet.as_f64());
        let most = |bytes_per_s: f64| f64::from(capture.packets).min(bytes_per_s * duration_s / least + 2.0);
        let links = self.links.iter().filter(|plan| wanted(s, &plan.name, plan.medium.is_shared()));
        let packets: f64 = links.map(|plan| most(self.peak(plan))).sum();
        let frames = self.cells.iter().filter(|cell| wanted(s, &cell.name, false)).count() as f64
            * f64::from(capture.packets);
        let bytes = GROWTH * (packets * of::<CapturedPacket>() + frames * of::<CapturedFrame>());
        budget.kept += bytes;
        budget.add(bytes, "capture.packets", format!("{:.0} captured packets", packets + frames));
    }
}

/// Number of packets of a size that a buffer holds.
pub(super) fn packets(limit: Limit, size: f64) -> f64 {
    match limit {
        Limit::Bytes(bytes) => bytes as f64 / size,
        Limit::Packets(packets) => f64::from(packets),
    }
}

/// Memory of a summary row of a flow; zero for flows that arrive during the run, which have none.
fn row_told(arrives: bool) -> f64 {
    if arrives { 0.0 } else { GROWTH * of::<FlowRow>() + ROW_TOLD }
}

/// Memory of a pair of hosts whose packets take `links` router links there and back.
fn per_pair(links: f64, cells: bool) -> f64 {
    // Where a link leads, and which link feeds it.
    let known = 2.0 * of::<Option<u32>>() + 4.0 * of::<u32>();
    let hops = (links + ACCESS_LINKS + 2.0) * of::<u32>() * if cells { 2.0 } else { 1.0 };
    GROWTH * (of::<FlowPlan>() + 2.0 * of::<FlowRoutes>() + ACCESS_LINKS * of::<Access>() + 2.0 * hops)
        + ACCESS_LINKS * (of::<Plain>() + known)
}

/// Memory of flows whose packets are balanced: the paths while they are laid out, and the state of both ends.
fn balanced(span: &Span, count: &Count) -> f64 {
    let (routes, hops) = (span.routes as f64, span.way.links.len().max(span.back.links.len()) as f64);
    // Links and nodes, in two vectors that grow by doubling.
    let path = GROWTH * (of::<u32>() + of::<usize>()) * (hops + 4.0) + 32.0;
    let laid = GROWTH * of::<(f64, Way)>() * (routes + 4.0) + routes * path;
    let choices = GROWTH * of::<Choice>() * routes + 64.0;
    2.0 * (count.pairs * (laid + choices) + GROWTH * count.together * of::<Pick>())
}

/// Memory of a concurrent flow: both ends and their events.
fn per_live(laws: &[SenderSpec], group: &FlowGroup) -> f64 {
    const TIMERS: f64 = 5.0;
    let largest = laws.iter().map(|law| law.traits().heap_bytes).max().unwrap_or_default();
    let heaps = (largest + transport::HEAP_BYTES) as f64;
    let jitter = group.law.traits().datagrams || group.transport.send_jitter > Time::ZERO;
    let jitter = if jitter { JITTER_BYTES as f64 } else { 0.0 };
    let application = if group.produces() { app_bytes(group) as f64 } else { 0.0 };
    of::<Flow>()
        + heaps
        + jitter
        + application
        + of::<User>()
        + GROWTH * TIMERS * EventQueue::EVENT_BYTES as f64
}

/// Formats a number of bytes.
pub fn size(bytes: f64) -> String {
    let (value, unit) = match bytes {
        b if b < 1e6 => (b / 1e3, "kB"),
        b if b < 1e9 => (b / 1e6, "MB"),
        b if b < 1e12 => (b / 1e9, "GB"),
        b => (b / 1e12, "TB"),
    };
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}
