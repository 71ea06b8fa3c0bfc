//! Writes captured packets as pcapng.

use super::frame::{frame_of, heard_of, tcp_sequence};
use crate::results::{CapturedCell, CapturedPacket, Recorded, Results};
use flowstamp_wire::{frame, pcapng, radio};
use std::io::{self, Write};

/// Description of a cell's interface in the file.
fn description(cell: &CapturedCell) -> String {
    let written = (radio::DATA_HEADER_LEN + radio::LLC_LEN + radio::FCS_LEN) as u64;
    let differs = if cell.overhead == written {
        String::new()
    } else {
        format!("; headers of a data frame have {written} bytes here and take the time of {}", cell.overhead)
    };
    format!("all frames of the cell, at their beginning{differs}")
}

/// Writes the captured packets as pcapng, with one interface for each captured link and cell.
///
/// # Errors
///
/// I/O errors of `out`.
pub fn trace_to(results: &Results, out: impl Write) -> io::Result<()> {
    let capture = &results.capture;
    let mut writer = pcapng::Writer::of_links(out, &capture.links)?;
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
                writer.write_packet(packet.link, packet.time_ps, bytes, wire_len, None)?;
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

/// Buffers for a packet's headers.
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
