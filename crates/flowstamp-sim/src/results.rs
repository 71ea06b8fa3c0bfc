//! What a run leaves: the summary by the names of the architecture, series over time, one row per flow.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A map in a stable order.
pub type Named<T> = BTreeMap<String, T>;

/// Everything that came out of one run.
#[derive(Clone, Debug)]
pub struct Results {
    /// The summary.
    pub summary: Summary,
    /// Samples over time.
    pub series: Series,
    /// One row per flow.
    pub flows: Vec<FlowRow>,
    /// Distributions of links' queueing delays and of groups' packet delays, after warm-up.
    pub delays: Vec<DelayCurve>,
    /// How long it took: of all that a run leaves this alone differs between two of the same.
    pub took: Took,
    /// Captured packets, in the order of their departures, and the interfaces' names.
    pub capture: Captured,
    /// The scenario as it began.
    pub scenario: crate::scenario::Scenario,
    /// What was set since.
    pub changes: Vec<Change>,
}

/// A value that was set in mid-run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// When, seconds.
    pub time_s: f64,
    /// The scenario's key.
    pub key: String,
    /// TOML, or text.
    pub value: String,
}

impl Change {
    /// Whether rates or delays of paths were others before it: no time is the ideal of both.
    #[must_use]
    pub fn moves_paths(&self) -> bool {
        // A sender's rate is none of its path.
        let of_sender = self.key.starts_with("flows.") && self.key.contains(".law.");
        let mut parts = self.key.split('.');
        !of_sender
            && parts.any(|part| {
                matches!(
                    part,
                    "rate" | "reverse_rate" | "rates" | "spine_rate" | "rtt" | "delay" | "access_delay"
                )
            })
    }
}

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
#[derive(Clone, Debug, Serialize)]
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

/// A distribution of delays; its points are rows of `delays.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayCurve {
    /// `link` or `group`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Flows of which sizes, bytes of payload, the second exclusive; `None` for all.
    pub bytes: Option<(u64, u64)>,
    /// Delays in seconds, and the share of packets that took at most as long; some five hundred at most.
    pub points: Vec<(f64, f64)>,
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

fn text<S: serde::Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

/// Seconds, or none: in half of the room that an [`Option`] takes, as there may be many rows.
#[derive(Clone, Copy)]
pub struct Seconds(f64);

impl Seconds {
    /// The number, if there is one.
    #[must_use]
    pub fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(self.0)
    }
}

impl From<Option<f64>> for Seconds {
    fn from(seconds: Option<f64>) -> Self {
        Self(seconds.unwrap_or(f64::NAN))
    }
}

impl fmt::Debug for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Serialize for Seconds {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(to)
    }
}

/// One flow; a row of `flows.parquet`.
#[derive(Clone, Debug, Serialize)]
pub struct FlowRow {
    /// Number: first of flows that are known before the run, in the order of the scenario, then of those that files list, in the order of their
    /// rows, then of those that arrive at random, in the order of their starts.
    pub flow: u32,
    /// Group's name.
    #[serde(serialize_with = "text")]
    pub group: Arc<str>,
    /// Number within the group; of a list, that of the row.
    pub index: u32,
    /// The sender's law.
    pub law: &'static str,
    /// When it started, seconds.
    pub start_s: f64,
    /// When its last byte arrived.
    pub end_s: Option<f64>,
    /// What it was to transfer, bytes of payload.
    pub size_bytes: Option<u64>,
    /// Completion time at the receiver: from start to the last byte's arrival there.
    pub fct_s: Option<f64>,
    /// Completion time at the sender: from start until all of the flow was acknowledged there; `None` if the run ended before.
    pub fct_sender_s: Seconds,
    /// The shortest time in which its bytes could arrive, alone on its path: packets back to back at the slowest link, without a handshake.
    /// None where rates or delays changed in mid-run.
    pub ideal_fct_s: Seconds,
    /// Unique bytes of payload delivered in the whole run.
    pub delivered_bytes: u64,
    /// Those delivered after warm-up.
    pub delivered_bytes_after_warmup: u64,
    /// Unique bytes of payload delivered after warm-up, while active, over that time, bits per second.
    pub goodput_bps: f64,
    /// Packets sent again in the whole run.
    pub retransmissions: u32,
    /// Those sent again after warm-up.
    pub retransmissions_after_warmup: u32,
    /// Retransmission timeouts in the whole run.
    pub timeouts: u32,
    /// Those after warm-up.
    pub timeouts_after_warmup: u32,
    /// Least RTT sample.
    pub min_rtt_s: Seconds,
    /// Last smoothed RTT.
    pub srtt_s: Seconds,
    /// When the flow gave up its law's protocol for TCP, if it did.
    pub switched_s: Seconds,
    /// When it is to stop sending new data, if it is.
    pub stop_s: Seconds,
}

/// Samples over time in long form: column by column, one row per sample.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Names of what is sampled, each once.
    pub keys: Vec<SeriesKey>,
    /// Time of each row, seconds: the end of its sampling interval.
    pub time_s: Vec<f64>,
    /// Which key each row belongs to.
    pub key: Vec<u32>,
    /// The sample.
    pub value: Vec<f64>,
}

impl Series {
    /// The rows whose time is after `time_s`. Keys are those of the whole.
    #[must_use]
    pub fn since(&self, time_s: f64) -> Self {
        let first = self.time_s.partition_point(|t| *t <= time_s);
        Self {
            keys: self.keys.clone(),
            time_s: self.time_s[first..].to_vec(),
            key: self.key[first..].to_vec(),
            value: self.value[first..].to_vec(),
        }
    }
}

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesKey {
    /// `link`, `group`, `flow` or `law`.
    pub kind: &'static str,
    /// The link's or group's name, or `group.index` of a flow.
    pub name: String,
    /// `utilization`, `queue_bytes`, `drops`, `marks` of a link; `goodput_bps` of a group or flow, `cwnd_packets` and
    /// `rtt_s` of a flow; a variable's name of a law.
    pub metric: String,
}

/// Captured packets and frames.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Router links, by name.
    pub links: Vec<String>,
    /// Packets of those that were recorded, in the order of time.
    pub packets: Vec<CapturedPacket>,
    /// Cells that were recorded.
    pub cells: Vec<CapturedCell>,
    /// What was on the air in them, in the order of time.
    pub frames: Vec<CapturedFrame>,
}

/// One of them, in the order of time; of a link before that of a cell.
#[derive(Clone, Copy, Debug)]
pub enum Recorded<'a> {
    /// A packet that left a link.
    Packet(&'a CapturedPacket),
    /// A frame in a cell.
    Frame(&'a CapturedFrame),
}

impl Captured {
    /// All that was captured, in the order of time.
    pub fn in_order(&self) -> impl Iterator<Item = Recorded<'_>> {
        let (mut packets, mut frames) = (self.packets.iter().peekable(), self.frames.iter().peekable());
        std::iter::from_fn(move || match (packets.peek(), frames.peek()) {
            (Some(packet), Some(frame)) if frame.sent.begin.as_ps() < packet.time_ps => {
                frames.next().map(Recorded::Frame)
            }
            (Some(_), _) => packets.next().map(Recorded::Packet),
            (None, _) => frames.next().map(Recorded::Frame),
        })
    }
}

/// A cell that was recorded.
#[derive(Clone, Debug)]
pub struct CapturedCell {
    /// Its name.
    pub name: String,
    /// Its station number 0 is an access point.
    pub access_point: bool,
    /// It is modulated by OFDM, else as 802.11b is.
    pub ofdm: bool,
    /// Bytes that its data frames have beside a packet.
    pub overhead: u64,
}

/// One frame on the air of a cell.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame {
    /// Index into [`Captured::cells`].
    pub cell: u32,
    /// The frame.
    pub sent: crate::medium::dcf::Transmission,
    /// The packet that a data frame carries, as its link recorded it; `None` of one whose flow is over and forgotten.
    pub packet: Option<CapturedPacket>,
}

/// One captured packet at the start of its transmission.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket {
    /// When, in picoseconds.
    pub time_ps: u64,
    /// Index into [`Captured::links`].
    pub link: u32,
    /// Number of the flow.
    pub flow: u32,
    /// It goes the way of the data; else it is an ack or an answer.
    pub data: bool,
    /// It carries no data and is no ack: a probe, unless it opens or ends the flow, or the answer to one of them.
    pub control: bool,
    /// It opens the flow.
    pub syn: bool,
    /// It ends the flow.
    pub fin: bool,
    /// Sequence number of the data, or next expected, in packets; of a FIN, one above the last.
    pub seq: u32,
    /// Size on the simulated wire, bytes.
    pub size: u32,
    /// Bytes of a full data packet of this flow.
    pub packet_bytes: u32,
    /// Packets of the flow, `u32::MAX` for one without end, and bytes of the last.
    pub packets: u32,
    /// See `packets`.
    pub last_size: u32,
    /// ECN-capable transport.
    pub ecn_capable: bool,
    /// That of an L4S flow: ECT(1) (data).
    pub l4s: bool,
    /// Congestion experienced.
    pub congestion_experienced: bool,
    /// ECN echo (acks).
    pub ecn_echo: bool,
    /// Congestion window reduced (data).
    pub cwr: bool,
    /// What its stamp is written in.
    pub header: flowstamp_laws::registry::Header,
    /// The stamp.
    pub stamp: flowstamp_laws::Stamp,
    /// The bits beside the stamp.
    pub bits: u16,
    /// Selective acks.
    pub sack: flowstamp_laws::transport::SackBlocks,
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
