//! The summary of a run: statistics of links, cells and groups of flows.

use crate::FlowRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A map with a stable order.
pub type Named<T> = BTreeMap<String, T>;

/// `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub name: String,
    /// The seed.
    pub seed: u64,
    /// Parameters that the scenario does not set and that follow from the network, by key. They are time constants of laws.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub assumed: Named<String>,
    /// Warnings about settings that are probably unintended, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Simulated seconds.
    pub duration_s: f64,
    /// Time at which warm-up ends and statistics begin, seconds.
    pub warmup_s: f64,
    /// Router links by name.
    pub links: Named<LinkSummary>,
    /// The first deadlock of priority flow control, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc_deadlock: Option<PfcDeadlock>,
    /// Cells by name.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub cells: Named<CellSummary>,
    /// All access links together.
    pub access: AccessSummary,
    /// Flow groups by name.
    pub groups: Named<GroupSummary>,
    /// All flows together.
    pub total: TotalSummary,
    /// Long-lived flows, and transfers of groups whose flows do not arrive during the run, in the scenario's order.
    pub flows: Vec<FlowRow>,
    /// Counts of all packets and acks of the run: sent = arrived + lost + in the network.
    /// `None` in a run by links, which counts packets only at links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketCount>,
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
    /// CPU seconds, on systems that report them.
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkSummary {
    /// Capacity in bits per second; the mean over the run where it varies.
    pub rate_bps: f64,
    /// Buffer in bytes. A buffer of packets counts with the size of a full data packet.
    pub buffer_bytes: f64,
    /// Share of the capacity that carried packets, 0 to 1.
    pub utilization: f64,
    /// Time average of the queue in bytes, without the packet in transmission.
    pub mean_queue_bytes: f64,
    /// Median of the queue over time, bytes.
    pub p50_queue_bytes: f64,
    /// 90th percentile of the queue over time, bytes.
    pub p90_queue_bytes: f64,
    /// 95th percentile of the queue over time, bytes.
    pub p95_queue_bytes: f64,
    /// 99th percentile of the queue over time, bytes.
    pub p99_queue_bytes: f64,
    /// Largest queue, bytes.
    pub max_queue_bytes: f64,
    /// Time from a packet's arrival to the start of its transmission, seconds. `None` if no packet was sent. Percentiles are accurate to 1/128.
    pub queueing_delay_s: Option<Distribution>,
    /// Packets that reached the link.
    pub arrivals: u64,
    /// Packets lost at the link.
    pub drops: u64,
    /// Packets marked at the link.
    pub marks: u64,
    /// Drops over arrivals.
    pub drop_rate: f64,
    /// Part of `drops`: packets in the direction of data. They are data, probes, and packets that open and close flows.
    pub drops_data: u64,
    /// Part of `drops`: acks and answers.
    pub drops_acks: u64,
    /// Counts after warm-up.
    pub after_warmup: LinkCounts,
    /// Counts from the first packet on.
    pub whole_run: LinkCounts,
    /// Flows that the link's policer has tested, in the order of their first tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub police: Option<Vec<TestedFlow>>,
    /// Priority flow control of the link, after warm-up; `None` for a link without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc: Option<PfcSummary>,
    /// Throughput advice of the link in the whole run; `None` for a link without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scone: Option<SconeSummary>,
    /// Packets that the link's impairments affected; `None` for a link without impairments.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<ImpairedSummary>,
}

/// Effects of priority flow control on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PfcSummary {
    /// Pauses that reached the link's sender.
    pub pauses: u64,
    /// Time for which the sender was paused, seconds.
    pub paused_s: f64,
    /// Most bytes that came over the link and waited at its far end.
    pub max_ingress_bytes: f64,
    /// Packets that came over the link and were lost at its far end, for lack of headroom. They also count as drops of the
    /// link on which they would have gone on.
    pub drops: u64,
    /// Bytes above which the far end pauses the link. Thresholds are 0 on a link to a host, which is never paused.
    pub xoff_bytes: f64,
    /// Bytes at which the far end lets the link go on.
    pub xon_bytes: f64,
    /// Room above `xoff_bytes`.
    pub headroom_bytes: f64,
}

/// Links with priority flow control that wait for each other, and never go on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PfcDeadlock {
    /// When the links were found to wait, seconds.
    pub time_s: f64,
    /// The cycle of links, in the order in which packets would go.
    pub links: Vec<String>,
}

/// Counts of one router link, or of all, in a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounts {
    /// Packets that reached the link.
    pub arrivals: u64,
    /// Packets lost at the link.
    pub drops: u64,
    /// Part of `drops`: packets in the direction of data.
    pub drops_data: u64,
    /// Part of `drops`: acks and answers.
    pub drops_acks: u64,
    /// Packets marked at the link.
    pub marks: u64,
    /// Packets that the link's impairments affected; `None` for a link without impairments.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<ImpairedSummary>,
}

/// A policer's tests of one flow on a link, over the whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestedFlow {
    /// The flow's number, as in its [`FlowRow`].
    pub flow: u32,
    /// Group's name.
    pub group: String,
    /// Number within the group.
    pub index: u32,
    /// Round-trip time that its first test used, seconds.
    pub round_s: f64,
    /// Time at which it was first told to halve its rate, seconds.
    pub told_s: f64,
    /// Time of the verdict on that test, seconds.
    pub judged_s: Option<f64>,
    /// Time at which it was first isolated, seconds.
    pub isolated_s: Option<f64>,
    /// Number of tests begun.
    pub tests: u64,
    /// Number of isolations.
    pub isolations: u64,
    /// Number of its packets dropped in isolation.
    pub drops: u64,
}

/// Packets, data and acks, that a link's impairments affected after they had crossed it. Counted after warm-up unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImpairedSummary {
    /// Packets lost; not in the queue's `drops`.
    pub lost: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Packets held back, copies included.
    pub reordered: u64,
    /// Packets sent on another route, copies included.
    pub detoured: u64,
    /// ECN-capable data packets marked; not in the queue's `marks`.
    pub marked: u64,
}

/// A cell of a radio, after warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct CellSummary {
    /// Share of the time that collisions and exchanges take, with the gaps between an exchange's frames; 0 to 1.
    pub busy: f64,
    /// Exchanges that ended with an ack.
    pub exchanges: u64,
    /// Collisions, of two stations or more.
    pub collisions: u64,
    /// Counts from the first packet on.
    pub whole_run: CellCounts,
    /// Its nodes by name.
    pub stations: Named<StationSummary>,
}

/// Counts of a cell's medium in a part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CellCounts {
    /// Exchanges that ended with an ack.
    pub exchanges: u64,
    /// Collisions, of two stations or more.
    pub collisions: u64,
}

/// Counts of a cell's node in a part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StationCounts {
    /// Frames that were acknowledged.
    pub sent: u64,
    /// Frames given up at the retry limit, whose packets are lost.
    pub given_up: u64,
    /// Transmission attempts.
    pub attempts: u64,
    /// Attempts that collided.
    pub collisions: u64,
    /// Attempts lost to a transmission error: all their frames, if they had several.
    pub errors: u64,
    /// Attempts that repeated a failed one.
    pub retries: u64,
}

/// A node of a cell, after warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct StationSummary {
    /// Data rate at the end of the run, bits per second; `None` for an access point.
    pub rate_bps: Option<f64>,
    /// Share of the time in which it sent data frames or RTS; 0 to 1.
    pub airtime: f64,
    /// Frames that were acknowledged.
    pub sent: u64,
    /// Frames given up at the retry limit, whose packets are lost.
    pub given_up: u64,
    /// Transmission attempts.
    pub attempts: u64,
    /// Attempts that collided.
    pub collisions: u64,
    /// Attempts lost to a transmission error: all their frames, if they had several.
    pub errors: u64,
    /// Attempts that repeated a failed one.
    pub retries: u64,
    /// Mean time of a packet in the MAC, from the head of the queue until it was acknowledged or given up, seconds.
    pub mean_mac_delay_s: f64,
    /// Counts of A-MPDUs, where stations may send them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ampdu: Option<AmpduCounts>,
    /// Counts from the first packet on.
    pub whole_run: StationCounts,
}

/// Counts of what a node sent in turns of one or more frames, after warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AmpduCounts {
    /// Turns that ended with an ack or a block ack.
    pub exchanges: u64,
    /// Frames sent without a collision, repeated ones included.
    pub frames: u64,
    /// Those of them that were lost to a transmission error.
    pub frames_lost: u64,
}

/// Counts of all access links together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AccessSummary {
    /// Number of links.
    pub links: u64,
    /// Packets that reached them. `None` in a run by links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<u64>,
    /// Packets lost on them.
    pub drops: u64,
}

/// Results of one group of flows.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSummary {
    /// The sender's law.
    pub law: String,
    /// Flows that started in the whole run.
    pub flows: u64,
    /// Flows that completed in the whole run.
    pub completed: u64,
    /// Capacity of the slowest router link on the path of the group's data, bits per second; the mean over the run if it varies.
    pub capacity_bps: f64,
    /// Round-trip propagation delay, seconds: the mean over its flows.
    pub path_rtt_s: f64,
    /// Mean load that the randomly arriving flows of all groups offer to that link, headers included, as a share of its capacity. It follows
    /// from the scenario, not from this run's arrivals. If several links are equally slow, it is that of the most loaded one. 0 for a link
    /// without capacity.
    pub offered_load: f64,
    /// Mean size of its flows, bytes of payload. If they arrive at random, it is the distribution's mean. `None` if they are endless.
    pub mean_size_bytes: Option<f64>,
    /// Sum of the flows' goodputs: unique payload over the time after warm-up, bits per second.
    pub goodput_bps: f64,
    /// Jain's index of the flows' goodputs while active; `None` if its flows arrive during the run, at random or from a list.
    pub jain_index: Option<f64>,
    /// Packets retransmitted in the whole run.
    pub retransmissions: u64,
    /// Retransmission timeouts in the whole run.
    pub timeouts: u64,
    /// Counts of its flows after warm-up.
    pub after_warmup: GroupCounts,
    /// Counts of its flows from the first packet on.
    pub whole_run: GroupCounts,
    /// Completion times at the receiver, until the last byte arrived, of flows that started after warm-up and completed.
    pub fct_s: Option<FctSummary>,
    /// Completion times at the sender, until all of the flow was acknowledged.
    pub fct_sender_s: Option<FctSummary>,
    /// Delay of data packets from sender to receiver, seconds; each transmission counts. `None` if no packet arrived. Percentiles are
    /// accurate to 1/128.
    pub packet_delay_s: Option<PacketDelays>,
    /// Completion time over the shortest possible one ([`FlowRow::ideal_fct_s`]), of the flows of `fct_s`.
    pub fct_slowdown: Option<FctSummary>,
    /// Data that applications produced, and its delay. `None` for a group without an application, and for constant-rate applications over a law with a
    /// window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationSummary>,
    /// Playback of the group's videos. `None` for a group without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoSummary>,
    /// Collective operations or incasts, each as a whole. `None` for other groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<OperationsSummary>,
    /// Little's law after warm-up; `None` unless the group's flows arrive during the run, at random or from a list, and one was active.
    pub littles_law: Option<LittlesLaw>,
}

/// Operations that several flows carry out together: collective operations or incasts.
#[derive(Clone, Debug, Serialize)]
pub struct OperationsSummary {
    /// Operations that began in the whole run.
    pub started: u64,
    /// Operations that ended in the whole run.
    pub completed: u64,
    /// Completion times of the operations that began after warm-up and ended, seconds: from the start to the arrival of
    /// the last byte at the last host.
    pub time_s: Option<Distribution>,
    /// Lower bound of the completion time on an idle network, seconds. `None` for incasts, and for a link without
    /// capacity.
    pub ideal_s: Option<f64>,
    /// `time_s` over `ideal_s`.
    pub slowdown: Option<Distribution>,
    /// Each operation, in order.
    pub runs: Vec<OperationRun>,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OperationRun {
    /// Start, seconds.
    pub start_s: f64,
    /// Arrival of the last byte at the last host, seconds; `None` if it did not end.
    pub end_s: Option<f64>,
}

/// Results of a group's applications: in packets, or in frames or responses if they produce these.
#[derive(Clone, Debug, Serialize)]
pub struct ApplicationSummary {
    /// Counts after warm-up.
    pub after_warmup: ApplicationCounts,
    /// Counts from the start on.
    pub whole_run: ApplicationCounts,
    /// Time from the production of a packet or frame, or from the request of a response, to its complete arrival, seconds. Counts arrivals after
    /// warm-up. `None` if none arrived, and for single datagrams, which have `packet_delay_s`. Percentiles are accurate to 1/128.
    pub time_s: Option<Distribution>,
}

/// Throughput advice of a link.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SconeSummary {
    /// SCONE packets that crossed the link.
    pub packets: u64,
    /// Those whose signal the link lowered.
    pub lowered: u64,
    /// Mean rate of the link's advice over these packets, bits per second; `None` without any.
    pub mean_advice_bps: Option<f64>,
}

/// Playback of a group's videos.
#[derive(Clone, Debug, Serialize)]
pub struct VideoSummary {
    /// Playback after warm-up.
    pub after_warmup: VideoCounts,
    /// Playback from the start on.
    pub whole_run: VideoCounts,
}

/// Playback of videos in a part of the run, summed over the viewers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct VideoCounts {
    /// Media played, seconds.
    pub played_s: f64,
    /// Time for which playback stood still after it had started, seconds.
    pub stalled_s: f64,
    /// Stalls that began.
    pub stalls: u64,
    /// `stalled_s` over the sum of `played_s` and `stalled_s`, the rebuffering ratio; `None` if playback never started.
    pub stalled_share: Option<f64>,
    /// Time that the viewers waited for their first picture, seconds.
    pub startup_s: f64,
    /// Segments that arrived.
    pub segments: u64,
    /// Segments whose bitrate differs from that of the segment before.
    pub switches: u64,
    /// Mean bitrate of the segments that arrived, bits per second; `None` without any.
    pub bitrate_bps: Option<f64>,
}

/// Counts of applications in a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ApplicationCounts {
    /// Packets, frames or responses produced.
    pub offered: u64,
    /// Payload of these, bytes. A sender with a window keeps undelivered bytes. Undelivered datagrams are lost or in flight.
    pub offered_bytes: u64,
    /// Packets, frames or responses that arrived completely.
    pub completed: u64,
    /// Datagrams that their source dropped because `send_buffer` was full.
    pub source_drops: u64,
}

/// Counts of a group's flows in a part of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupCounts {
    /// Flows started.
    pub flows: u64,
    /// Flows completed.
    pub completed: u64,
    /// Unique bytes of payload delivered.
    pub delivered_bytes: u64,
    /// Packets retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// Little's law: mean active flows = completed flows per second x their mean completion time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LittlesLaw {
    /// Time average of the active flows, those started and not completed, counted during the run.
    pub mean_active: f64,
    /// Flows completed per second.
    pub completed_per_s: f64,
    /// Mean completion time of these flows.
    pub mean_fct_s: f64,
    /// Relative difference between `completed_per_s * mean_fct_s` and `mean_active`.
    pub relative_difference: f64,
    /// Largest difference that can come from flows active when the counted time begins or ends.
    pub edge_bound: f64,
    /// Difference that remains after these flows are accounted for; zero unless the run counted wrongly.
    pub unaccounted: f64,
}

/// Flow completion times.
#[derive(Clone, Debug, Serialize)]
pub struct FctSummary {
    /// All sizes.
    pub all: Distribution,
    /// By size. The bins' bounds, in packets, are powers of sqrt(10): 1, 3.2, 10, 32, ...
    pub bins: Vec<SizeBin>,
}

/// Delays of packets after warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct PacketDelays {
    /// All packets.
    #[serde(flatten)]
    pub all: Distribution,
    /// By flow size, in the bins of [`FctSummary::bins`]; empty for flows without a size.
    pub bins: Vec<SizeBin>,
}

/// One size bin.
#[derive(Clone, Debug, Serialize)]
pub struct SizeBin {
    /// Smallest size in the bin, bytes of payload.
    pub min_bytes: u64,
    /// Largest size in the bin, bytes (exclusive).
    pub max_bytes: u64,
    /// Statistics of the flows in the bin.
    #[serde(flatten)]
    pub values: Distribution,
}

/// A sample's statistics.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Distribution {
    /// Sample size.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile; the largest of fewer than 1000 values.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// Results of all flows together.
#[derive(Clone, Debug, Serialize)]
pub struct TotalSummary {
    /// Sum of goodputs, bits per second.
    pub goodput_bps: f64,
    /// Packets lost on all links.
    pub drops: u64,
    /// Drops over packets that reached a router link.
    pub drop_rate: f64,
    /// Counts of all router links after warm-up, without impairments.
    pub after_warmup: LinkCounts,
    /// Counts from the first packet on.
    pub whole_run: LinkCounts,
    /// Jain's index over all long-lived flows.
    pub jain_index: Option<f64>,
}

/// `part` over `whole`; 0 of nothing.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}

/// Jain's fairness index of non-negative shares: `(sum x)^2 / (n sum x^2)`; 1 for none or for all zero.
#[must_use]
pub fn jain_index(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

impl Distribution {
    /// Statistics of a sample, which this sorts; `None` if it is empty. Percentiles are by nearest rank.
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
            p999: rank(0.999),
            max: last,
        })
    }
}
