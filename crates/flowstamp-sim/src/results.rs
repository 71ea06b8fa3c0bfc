//! The output of a run: the results that labs have too (`flowstamp-results`), and captured packets.

pub use flowstamp_results::*;

use serde::Serialize;

/// All results of one run.
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
    /// Wall and CPU time: the only part that differs between identical runs.
    pub took: Took,
    /// Captured packets, in the order of their departures, and the names of the interfaces.
    pub capture: Captured,
    /// The scenario at the beginning of the run.
    pub scenario: crate::scenario::Scenario,
    /// Values set during the run.
    pub changes: Vec<Change>,
    /// The results were put together from runs of single links.
    pub by_links: bool,
}

/// A value that was set during a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Simulated time, seconds.
    pub time_s: f64,
    /// The scenario's key.
    pub key: String,
    /// TOML, or text.
    pub value: String,
}

impl Change {
    /// Whether the change affects rates or delays of paths. The ideal completion time of a flow is then undefined.
    #[must_use]
    pub fn moves_paths(&self) -> bool {
        // A sender's rate is not a rate of its path.
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
    /// Packets on the captured links, in the order of time.
    pub packets: Vec<CapturedPacket>,
    /// Captured cells.
    pub cells: Vec<CapturedCell>,
    /// Frames of the captured cells, in the order of time.
    pub frames: Vec<CapturedFrame>,
}

/// A captured packet or frame. At the same instant, packets of links come before frames of cells.
#[derive(Clone, Copy, Debug)]
pub enum Recorded<'a> {
    /// A packet that left a link.
    Packet(&'a CapturedPacket),
    /// A frame in a cell.
    Frame(&'a CapturedFrame),
}

impl Captured {
    /// All captured packets and frames, in the order of time.
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

/// A captured cell.
#[derive(Clone, Debug)]
pub struct CapturedCell {
    /// Name of the cell.
    pub name: String,
    /// Station 0 is an access point.
    pub access_point: bool,
    /// The PHY uses OFDM; otherwise it is 802.11b's.
    pub ofdm: bool,
    /// Bytes of a data frame's headers and FCS, on top of the packet.
    pub overhead: u64,
}

/// One frame on the air of a cell.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame {
    /// Index into [`Captured::cells`].
    pub cell: u32,
    /// The frame.
    pub sent: crate::medium::dcf::Transmission,
    /// The packet in a data frame, as its link recorded it; `None` if the packet's flow has ended and is forgotten.
    pub packet: Option<CapturedPacket>,
}

/// One captured packet at the start of its transmission.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket {
    /// Simulated time, picoseconds.
    pub time_ps: u64,
    /// Index into [`Captured::links`].
    pub link: u32,
    /// Number of the flow.
    pub flow: u32,
    /// The packet travels in the direction of the data; otherwise it is an ack or an answer.
    pub data: bool,
    /// The packet carries no data and is no ack: a SYN, a FIN, a probe, or the answer to one of them.
    pub control: bool,
    /// The packet opens the flow.
    pub syn: bool,
    /// The packet ends the flow.
    pub fin: bool,
    /// Sequence number of the data, or the next one expected (acks), in packets. A FIN has one above the last.
    pub seq: u32,
    /// Size on the simulated wire, bytes.
    pub size: u32,
    /// Bytes of a full data packet of this flow.
    pub packet_bytes: u32,
    /// Number of packets of the flow; `u32::MAX` for endless.
    pub packets: u32,
    /// Bytes of the flow's last packet.
    pub last_size: u32,
    /// The flow sends datagrams, which travel in UDP; otherwise it is in TCP.
    pub datagrams: bool,
    /// ECN-capable transport.
    pub ecn_capable: bool,
    /// Packet of an L4S flow: ECT(1) (data).
    pub l4s: bool,
    /// Congestion experienced.
    pub congestion_experienced: bool,
    /// ECN echo (acks).
    pub ecn_echo: bool,
    /// Congestion window reduced (data).
    pub cwr: bool,
    /// Header format of the stamp.
    pub header: flowstamp_laws::registry::Header,
    /// Stamp.
    pub stamp: flowstamp_laws::Stamp,
    /// Bits beside the stamp.
    pub bits: u16,
    /// Selective acks.
    pub sack: flowstamp_laws::transport::SackBlocks,
}
