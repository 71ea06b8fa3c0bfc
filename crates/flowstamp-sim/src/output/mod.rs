//! Results on disk and as Arrow tables.
//!
//! [`write()`] fills a run's folder:
//!
//! ```text
//!   manifest.json     the scenario with every default, seed, version, host, how long it took
//!   summary.json      Results::summary
//!   series.parquet    Results::series in long form
//!   flows.parquet     Results::flows
//!   delays.parquet    Results::delays
//!   trace.pcapng      captured packets, one interface per link and cell  } only if
//!   flowstamp.lua     Wireshark's dissector for XCP's and RCP's headers  } packets were captured
//! ```
//!
//! All but the manifest are the same to the byte whenever and wherever the same is run.
//!
//! Every file is written under a temporary name in that folder and synced; only when all are whole are they renamed,
//! so a full disk leaves what was there before.

mod folder;
mod frame;
mod tables;
mod trace;

pub use folder::OutputError;
pub use tables::{delays_table, flows_table, numbers_of, parquet_notes, parquet_of, series_table};
pub use trace::{Trace, TracedPacket, trace_to};

use crate::results::{FlowRow, Results, Series};
use folder::{Pending, whole};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tables::table_to;
use trace::{add_trace, trace_writer};

/// `manifest.json`: what ran, where, and how long that took. Seed and version, the scenario with every default spelled out.
#[must_use]
pub fn manifest(results: &Results) -> serde_json::Value {
    let mut manifest = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": results.summary.seed,
        "took": results.took,
        "scenario": results.scenario.to_json(),
        "host": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "cpus": std::thread::available_parallelism().map_or(1, usize::from),
        },
    });
    // The scenario alone does not say what was set in mid-run.
    if !results.changes.is_empty() {
        manifest["changes"] = serde_json::json!(results.changes);
    }
    manifest
}

/// Fills a run's folder, which is made if it does not exist, and returns the files' paths.
///
/// # Errors
///
/// [`OutputError`] names the path and the system's reason; nothing new is left then.
pub fn write(results: &Results, folder: &Path) -> Result<Vec<PathBuf>, OutputError> {
    whole(folder, |pending| {
        let (series, flows) = (&results.series, &results.flows);
        add_tables(pending, folder, &manifest(results), &results.summary, series, flows)?;
        pending.add(folder, "delays.parquet", |out| table_to(delays_table(&results.delays), out))?;
        if !results.capture.links.is_empty() {
            add_trace(pending, folder, |out| trace_to(results, out))?;
        }
        Ok(())
    })
}

/// Fills a folder with the results of a run that was no simulation.
///
/// # Errors
///
/// As [`write()`].
pub fn write_measured(
    folder: &Path,
    manifest: &serde_json::Value,
    summary: &serde_json::Value,
    series: &Series,
    flows: &[FlowRow],
    trace: Option<&Trace>,
) -> Result<Vec<PathBuf>, OutputError> {
    whole(folder, |pending| {
        add_tables(pending, folder, manifest, summary, series, flows)?;
        trace.map_or(Ok(()), |trace| {
            add_trace(pending, folder, |out| {
                let (mut writer, interfaces) = trace_writer(out, &trace.links)?;
                for packet in &trace.packets {
                    let interface = interfaces[packet.link];
                    writer.write_packet(interface, packet.time_ps, &packet.headers, packet.wire_len, None)?;
                }
                writer.finish().map(|_| ())
            })
        })
    })
}

fn add_tables(
    pending: &mut Pending,
    folder: &Path,
    manifest: &serde_json::Value,
    summary: &impl serde::Serialize,
    series: &Series,
    flows: &[FlowRow],
) -> Result<(), OutputError> {
    pending.add(folder, "manifest.json", |out| json_to(manifest, out))?;
    pending.add(folder, "summary.json", |out| json_to(summary, out))?;
    pending.add(folder, "series.parquet", |out| table_to(series_table(series), out))?;
    pending.add(folder, "flows.parquet", |out| table_to(flows_table(flows), out))
}

fn json_to(document: &impl serde::Serialize, out: &mut BufWriter<File>) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    out.write_all(b"\n")
}
