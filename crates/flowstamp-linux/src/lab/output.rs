//! Writes a lab's results folder, in the format of a simulation but without delay distributions.

use super::file::{LINKS, Lab};
use super::parquet;
use super::results::Results;
use crate::path::Report;
use flowstamp_results::flow_columns;
use flowstamp_results::folder::{self, OutputError};
use flowstamp_wire::pcapng;
use std::io::{self, Write};
use std::path::Path;

/// Writes all files of the folder.
pub fn write(folder: &Path, lab: &Lab, report: &Report, results: &Results) -> Result<(), OutputError> {
    let written = folder::whole(folder, |files| {
        files.add_json("manifest.json", &results.manifest)?;
        files.add_json("summary.json", &results.summary)?;
        let series = parquet::table(|add| results.series.columns(add));
        files.add("series.parquet", |out| out.write_all(&series))?;
        let flows = parquet::table(|add| flow_columns(&results.flows, add));
        files.add("flows.parquet", |out| out.write_all(&flows))?;
        match &lab.capture {
            Some(capture) => files.add_trace(|out| write_trace(report, capture.packets as usize, out)),
            None => Ok(()),
        }
    });
    written.map(drop)
}

/// The first packets of all links, as they were on the wire.
fn write_trace(report: &Report, most: usize, out: impl Write) -> io::Result<()> {
    let mut packets: Vec<_> = (0..)
        .zip(&report.links)
        .flat_map(|(number, link)| link.recorded().iter().map(move |packet| (number, packet)))
        .collect();
    packets.sort_by_key(|(number, packet)| (packet.time, *number));
    let mut writer = pcapng::Writer::of_links(out, &LINKS)?;
    for (number, packet) in packets.into_iter().take(most) {
        writer.write_packet(number, packet.time.as_ps(), &packet.headers, packet.wire_len, None)?;
    }
    writer.finish().map(drop)
}
