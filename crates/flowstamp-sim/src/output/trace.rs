//! Captured packets as pcapng.

use super::folder::{OutputError, Pending, TRACE};
use super::frame::{frame_of, heard_of, tcp_sequence};
use crate::results::{CapturedCell, CapturedPacket, Recorded, Results};
use flowstamp_wire::{frame, pcapng, radio};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Packets of a run that was no simulation, as they were on the wire.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Names of links.
    pub links: Vec<String>,
    /// In the order of their departures.
    pub packets: Vec<TracedPacket>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct TracedPacket {
    /// Start of its transmission.
    pub time_ps: u64,
    /// Index into [`Trace::links`].
    pub link: usize,
    /// Its first bytes, from Ethernet's on.
    pub headers: Vec<u8>,
    /// All of its bytes.
    pub wire_len: u32,
}

/// The capture, and what Wireshark needs to read its stamps.
pub(super) fn add_trace(
    pending: &mut Pending,
    folder: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), OutputError> {
    pending.add(folder, TRACE, write)?;
    pending.add(folder, "flowstamp.lua", |out| out.write_all(flowstamp_wire::DISSECTOR.as_bytes()))
}

/// A capture with an interface for each link.
pub(super) fn trace_writer<W: Write>(out: W, links: &[String]) -> io::Result<(pcapng::Writer<W>, Vec<u32>)> {
    let mut writer = pcapng::Writer::new(out, concat!("flowstamp ", env!("CARGO_PKG_VERSION")))?;
    let interfaces = links
        .iter()
        .map(|link| {
            let description = "departures, at the start of transmission";
            writer.add_interface(link, description, pcapng::LinkType::Ethernet)
        })
        .collect::<io::Result<_>>()?;
    Ok((writer, interfaces))
}

/// What a cell's interface says of itself.
fn description(cell: &CapturedCell) -> String {
    let written = (radio::DATA_HEADER_LEN + radio::LLC_LEN + radio::FCS_LEN) as u64;
    let differs = if cell.overhead == written {
        String::new()
    } else {
        format!("; headers of a data frame have {written} bytes here and take the time of {}", cell.overhead)
    };
    format!("all frames of the cell, at their beginning{differs}")
}

/// The captured packets as pcapng, one interface for each link and each cell that was recorded.
///
/// # Errors
///
/// Those of `out`.
pub fn trace_to(results: &Results, out: impl Write) -> io::Result<()> {
    let capture = &results.capture;
    let (mut writer, interfaces) = trace_writer(out, &capture.links)?;
    let cells = capture
        .cells
        .iter()
        .map(|cell| writer.add_interface(&cell.name, &description(cell), pcapng::LinkType::Radiotap))
        .collect::<io::Result<Vec<_>>>()?;
    let mut headers =
        Headers { bytes: [0; frame::MAX_LEN], sack: Vec::with_capacity(frame::MAX_SACK_BLOCKS) };
    let mut buffer = [0; radio::MAX_LEN];
    for recorded in capture.in_order() {
        match recorded {
            Recorded::Packet(packet) => {
                let (bytes, wire_len) = headers.of(packet);
                let interface = interfaces[packet.link as usize];
                writer.write_packet(interface, packet.time_ps, bytes, wire_len, None)?;
            }
            Recorded::Frame(captured) => {
                let heard = heard_of(captured, &capture.cells[captured.cell as usize]);
                let (bytes, wire_len) = captured.packet.as_ref().map_or((&[][..], None), |packet| {
                    let (bytes, wire_len) = headers.of(packet);
                    (&bytes[frame::ETHERNET_LEN..], Some(wire_len - frame::ETHERNET_LEN as u32))
                });
                let len = heard.write(bytes, &mut buffer);
                let original = heard.wire_len(wire_len.unwrap_or(captured.sent.bytes));
                let time = captured.sent.begin.as_ps();
                writer.write_packet(cells[captured.cell as usize], time, &buffer[..len], original, None)?;
            }
        }
    }
    writer.finish().map(|_| ())
}

/// Where a packet's headers are written.
struct Headers {
    bytes: [u8; frame::MAX_LEN],
    sack: Vec<(u32, u32)>,
}

impl Headers {
    /// The captured bytes of a packet, and its length on the wire.
    fn of(&mut self, packet: &CapturedPacket) -> (&[u8], u32) {
        let blocks = packet.sack.iter();
        self.sack.clear();
        self.sack.extend(blocks.map(|block| (tcp_sequence(packet, block.0), tcp_sequence(packet, block.1))));
        let spec = frame_of(packet, &self.sack);
        let len = spec.write(&mut self.bytes);
        (&self.bytes[..len], spec.wire_len())
    }
}
