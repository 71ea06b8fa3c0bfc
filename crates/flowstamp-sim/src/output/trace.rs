//! Captured packets as pcapng.

use super::folder::{OutputError, Pending, TRACE};
use super::frame::{frame_of, tcp_sequence};
use crate::results::Results;
use flowstamp_wire::{frame, pcapng};
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
        .map(|link| writer.add_interface(link, "departures, at the start of transmission"))
        .collect::<io::Result<_>>()?;
    Ok((writer, interfaces))
}

/// The captured packets as pcapng, one interface per link.
///
/// # Errors
///
/// Those of `out`.
pub fn trace_to(results: &Results, out: impl Write) -> io::Result<()> {
    let (mut writer, interfaces) = trace_writer(out, &results.capture.links)?;
    let mut buffer = [0; frame::MAX_LEN];
    let mut sack = Vec::with_capacity(frame::MAX_SACK_BLOCKS);
    for packet in &results.capture.packets {
        let blocks = packet.sack.iter();
        sack.clear();
        sack.extend(blocks.map(|block| (tcp_sequence(packet, block.0), tcp_sequence(packet, block.1))));
        let spec = frame_of(packet, &sack);
        let len = spec.write(&mut buffer);
        let interface = interfaces[packet.link as usize];
        writer.write_packet(interface, packet.time_ps, &buffer[..len], spec.wire_len(), None)?;
    }
    writer.finish().map(|_| ())
}
