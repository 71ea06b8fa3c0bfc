//! What a run leaves: the results that labs have too (`flowstamp-results`), and what was captured.

pub use flowstamp_results::*;

use serde::Serialize;

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
