//! The summary: what links, cells and groups of flows came to.

use crate::FlowRow;
use serde::Serialize;
use std::collections::BTreeMap;

/// A map in a stable order.
pub type Named<T> = BTreeMap<String, T>;

/// `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub name: String,
    /// The seed.
    pub seed: u64,
    /// What the scenario leaves open and the network decides, by key: time constants that start from the path.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub assumed: Named<String>,
    /// What the scenario says and probably does not mean, each a line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Simulated seconds.
    pub duration_s: f64,
    /// Statistics start here, seconds.
    pub warmup_s: f64,
    /// Router links by name.
    pub links: Named<LinkSummary>,
    /// Cells by name.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub cells: Named<CellSummary>,
    /// All access links together.
    pub access: AccessSummary,
    /// Flow groups by name.
    pub groups: Named<GroupSummary>,
    /// All flows together.
    pub total: TotalSummary,
    /// Each long flow and each transfer of a group that is not web, in the order of the scenario.
    pub flows: Vec<FlowRow>,
    /// Where all packets and acks of the run are: sent = arrived + lost + in the network.
    pub packets: PacketCount,
    /// Packets and acks, counted at each link they reached.
    pub packet_hops: u64,
    /// Events that the engine handled.
    pub events: u64,
}

/// How long a run took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Took {
    /// Wall-clock seconds.
    pub wall_s: f64,
    /// CPU seconds, where the system tells.
    pub cpu_s: f64,
    /// Packet-hops per wall-clock second.
    pub packet_hops_per_s: f64,
}

/// Packets and acks of a whole run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PacketCount {
    /// Sent by hosts, and copies that impaired links made.
    pub sent: u64,
    /// Arrived at hosts.
    pub arrived: u64,
    /// Dropped by queues, given up by stations of cells, and lost on impaired links.
    pub lost: u64,
}

/// One router link.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinkSummary {
    /// Capacity in bits per second; the mean over the run where it varies.
    pub rate_bps: f64,
    /// Buffer in bytes (packets times the data packet's size where it counts packets).
    pub buffer_bytes: f64,
    /// Share of the capacity that carried packets, 0 to 1.
    pub utilization: f64,
    /// Time average of the bytes that wait, without the packet in transmission.
    pub mean_queue_bytes: f64,
    /// The queue was at most this for half of the time.
    pub p50_queue_bytes: f64,
    /// The queue was at most this for 90% of the time.
    pub p90_queue_bytes: f64,
    /// The queue was at most this for 95% of the time.
    pub p95_queue_bytes: f64,
    /// The queue was at most this for 99% of the time.
    pub p99_queue_bytes: f64,
    /// The largest queue.
    pub max_queue_bytes: f64,
    /// How long packets waited here before their transmission began, seconds; `None` if there was none. Percentiles to 1/128.
    pub queueing_delay_s: Option<Distribution>,
    /// Packets that reached the link.
    pub arrivals: u64,
    /// Packets lost here.
    pub drops: u64,
    /// Packets marked here.
    pub marks: u64,
    /// Lost over reached.
    pub drop_rate: f64,
    /// Of `drops`, data and what else goes their way: what opens and ends flows, and probes.
    pub drops_data: u64,
    /// Of `drops`, acks and answers.
    pub drops_acks: u64,
    /// What it counted after warm-up.
    pub after_warmup: LinkCounts,
    /// What it counted from the first packet on.
    pub whole_run: LinkCounts,
    /// Flows that its police has tested, in the order of their first tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub police: Option<Vec<TestedFlow>>,
    /// What became of packets that had crossed it, of a link with impairments.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<ImpairedSummary>,
}

/// What a router link, or all of them, counted in a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkCounts {
    /// Packets that reached it.
    pub arrivals: u64,
    /// Packets lost there.
    pub drops: u64,
    /// Of these, data and what else goes their way.
    pub drops_data: u64,
    /// Of these, acks and answers.
    pub drops_acks: u64,
    /// Packets marked there.
    pub marks: u64,
    /// What became of packets that had crossed it, of a link with impairments.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<ImpairedSummary>,
}

/// What came of a flow's tests on a link, over the whole run.
#[derive(Clone, Debug, Serialize)]
pub struct TestedFlow {
    /// Its number, that of its [`FlowRow`].
    pub flow: u32,
    /// Group's name.
    pub group: String,
    /// Number within the group.
    pub index: u32,
    /// The round trip by which it was first tested, seconds.
    pub round_s: f64,
    /// When it was first told to halve.
    pub told_s: f64,
    /// When it was judged on that.
    pub judged_s: Option<f64>,
    /// When it was first isolated.
    pub isolated_s: Option<f64>,
    /// Tests that have begun.
    pub tests: u64,
    /// Isolations.
    pub isolations: u64,
    /// Its packets that isolation held back.
    pub drops: u64,
}

/// What became of packets, data and acks, that had crossed a link with impairments; after warm-up where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ImpairedSummary {
    /// Lost; the queue's `drops` are others.
    pub lost: u64,
    /// Copied.
    pub duplicated: u64,
    /// Held back, copies among them.
    pub reordered: u64,
    /// On another route, copies among them.
    pub detoured: u64,
    /// ECN-capable data that were marked; the queue's `marks` are others.
    pub marked: u64,
}

/// A cell of a radio, after warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct CellSummary {
    /// Share of the time that went into exchanges, with what is between their frames, and into collisions, 0 to 1.
    pub busy: f64,
    /// Exchanges that an ack ended.
    pub exchanges: u64,
    /// Collisions, of two stations or more.
    pub collisions: u64,
    /// What was counted from the first packet on.
    pub whole_run: CellCounts,
    /// Its nodes by name.
    pub stations: Named<StationSummary>,
}

/// What a cell's medium saw in a part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CellCounts {
    /// Exchanges that an ack ended.
    pub exchanges: u64,
    /// Collisions, of two stations or more.
    pub collisions: u64,
}

/// What a node of a cell did in a part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StationCounts {
    /// Frames that were acknowledged.
    pub sent: u64,
    /// Frames that were given up at the retry limit: packets lost.
    pub given_up: u64,
    /// Times that it began to send.
    pub attempts: u64,
    /// Attempts that collided.
    pub collisions: u64,
    /// Attempts that an error of the radio spoiled.
    pub errors: u64,
    /// Attempts that repeated a failed one.
    pub retries: u64,
}

/// A node of a cell, after warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct StationSummary {
    /// Data rate at the end, bits per second; `None` of an access point.
    pub rate_bps: Option<f64>,
    /// Share of the time in which it sent data frames or RTS, 0 to 1.
    pub airtime: f64,
    /// Frames that were acknowledged.
    pub sent: u64,
    /// Frames that were given up at the retry limit: packets lost.
    pub given_up: u64,
    /// Times that it began to send.
    pub attempts: u64,
    /// Attempts that collided.
    pub collisions: u64,
    /// Attempts that an error of the radio spoiled.
    pub errors: u64,
    /// Attempts that repeated a failed one.
    pub retries: u64,
    /// Mean time that a packet spent in the MAC, from the head of the queue to being acknowledged or given up.
    pub mean_mac_delay_s: f64,
    /// What it did from the first packet on.
    pub whole_run: StationCounts,
}

/// Access links together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AccessSummary {
    /// How many.
    pub links: u64,
    /// Packets that reached them.
    pub arrivals: u64,
    /// Packets lost on them.
    pub drops: u64,
}

/// One group of flows.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSummary {
    /// The sender's law.
    pub law: String,
    /// Flows that started in the whole run.
    pub flows: u64,
    /// Flows that completed in the whole run.
    pub completed: u64,
    /// Capacity of the slowest router link that the group's data takes, bits per second; the mean over the run where it varies.
    pub capacity_bps: f64,
    /// Round-trip propagation time, seconds: the mean of its flows'.
    pub path_rtt_s: f64,
    /// What flows that arrive at random, of all groups, bring to that link on average, headers included: a share of its capacity, by the
    /// scenario and not by what came. Of several links as slow, the one to which most is brought; 0 of a
    /// link without capacity.
    pub offered_load: f64,
    /// Mean size of its flows, bytes of payload: of the distribution if they arrive at random; `None` if they are endless.
    pub mean_size_bytes: Option<f64>,
    /// Sum of the flows' goodputs: unique payload over the time after warm-up, bits per second.
    pub goodput_bps: f64,
    /// Jain's index of the flows' goodputs while active; `None` for web flows.
    pub jain_index: Option<f64>,
    /// Packets sent again in the whole run.
    pub retransmissions: u64,
    /// Retransmission timeouts in the whole run.
    pub timeouts: u64,
    /// What its flows did after warm-up.
    pub after_warmup: GroupCounts,
    /// What its flows did from the first packet on.
    pub whole_run: GroupCounts,
    /// Completion times at the receiver of flows that started after warm-up and completed: until the last byte arrived there.
    pub fct_s: Option<FctSummary>,
    /// The same at the sender: until all of the flow was acknowledged there.
    pub fct_sender_s: Option<FctSummary>,
    /// How long data packets were on their way, from when they left the sender until they reached the receiver, seconds; each transmission
    /// counts. `None` if there was none. Percentiles to 1/128.
    pub packet_delay_s: Option<PacketDelays>,
    /// Completion times at the receiver over the shortest that there could be ([`FlowRow::ideal_fct_s`]), of the same flows as `fct_s`.
    pub fct_slowdown: Option<FctSummary>,
    /// What applications produced and how long that took to arrive; `None` of flows without an application, and of those with a window and a constant
    /// rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationSummary>,
    /// Little's law after warm-up; `None` of groups that are not web, and where no flow was there.
    pub littles_law: Option<LittlesLaw>,
}

/// What the applications of a group did: in packets, or in frames or responses if they produce these.
#[derive(Clone, Debug, Serialize)]
pub struct ApplicationSummary {
    /// After warm-up.
    pub after_warmup: ApplicationCounts,
    /// From the start on.
    pub whole_run: ApplicationCounts,
    /// From when a packet or frame was produced, or a response asked for, until all of it had arrived, of those that arrived after warm-up, seconds.
    /// `None` if there was none, and of single datagrams, which have `packet_delay_s`. Percentiles to 1/128.
    pub time_s: Option<Distribution>,
}

/// What applications did in a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ApplicationCounts {
    /// Packets, frames or responses that were produced.
    pub offered: u64,
    /// Their payload, bytes. What has not been delivered waits at a sender with a window, or is lost or under way as a datagram.
    pub offered_bytes: u64,
    /// Those that arrived as a whole.
    pub completed: u64,
    /// Datagrams that their source dropped, as `send_buffer` was full.
    pub source_drops: u64,
}

/// What the flows of a group did in a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupCounts {
    /// Flows that started in it.
    pub flows: u64,
    /// Flows that completed in it.
    pub completed: u64,
    /// Unique bytes of payload delivered in it.
    pub delivered_bytes: u64,
    /// Packets sent again in it.
    pub retransmissions: u64,
    /// Retransmission timeouts in it.
    pub timeouts: u64,
}

/// Mean active flows = completed flows per second x their mean time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LittlesLaw {
    /// Time average of the flows that had started and not completed, counted during the run.
    pub mean_active: f64,
    /// Flows completed per second.
    pub completed_per_s: f64,
    /// Mean time of these flows.
    pub mean_fct_s: f64,
    /// How far the product is from the mean, as a share of the mean.
    pub relative_difference: f64,
    /// The most that flows which straddle the window's ends can make of it.
    pub edge_bound: f64,
    /// What is left of the difference when those flows are accounted for: zero, or the run counted wrongly.
    pub unaccounted: f64,
}

/// Flow completion times.
#[derive(Clone, Debug, Serialize)]
pub struct FctSummary {
    /// All sizes.
    pub all: Distribution,
    /// By size; each bin's bound is ten to a multiple of a half, in packets.
    pub bins: Vec<SizeBin>,
}

/// How long packets were on their way, after warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct PacketDelays {
    /// Of all packets.
    #[serde(flatten)]
    pub all: Distribution,
    /// Of those of flows by size, in the bins of [`FctSummary::bins`]; none of flows without a size.
    pub bins: Vec<SizeBin>,
}

/// One size bin.
#[derive(Clone, Debug, Serialize)]
pub struct SizeBin {
    /// Smallest size in the bin, bytes of payload.
    pub min_bytes: u64,
    /// Largest size in the bin, bytes (exclusive).
    pub max_bytes: u64,
    /// Of these flows.
    #[serde(flatten)]
    pub values: Distribution,
}

/// A sample's statistics.
#[derive(Clone, Debug, Serialize)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// All flows.
#[derive(Clone, Debug, Serialize)]
pub struct TotalSummary {
    /// Sum of goodputs, bits per second.
    pub goodput_bps: f64,
    /// Packets lost on all links.
    pub drops: u64,
    /// Lost over packets that reached a router link.
    pub drop_rate: f64,
    /// What all router links counted after warm-up, without impairments.
    pub after_warmup: LinkCounts,
    /// The same from the first packet on.
    pub whole_run: LinkCounts,
    /// Jain's index over all long flows.
    pub jain_index: Option<f64>,
}

/// Jain's fairness index of non-negative shares: `(sum x)^2 / (n sum x^2)`; 1 for none or for all zero.
#[must_use]
pub fn jain_index(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

impl Distribution {
    /// Of a sample, which is sorted on the way; `None` if it is empty. Percentiles are the nearest rank.
    pub fn of(sample: &mut [f64]) -> Option<Self> {
        sample.sort_unstable_by(f64::total_cmp);
        let count = sample.len();
        let last = *sample.last()?;
        let rank = |p: f64| sample[((p * count as f64).ceil() as usize).clamp(1, count) - 1];
        Some(Self {
            count: count as u64,
            mean: sample.iter().sum::<f64>() / count as f64,
            p50: rank(0.50),
            p95: rank(0.95),
            p99: rank(0.99),
            max: last,
        })
    }
}
