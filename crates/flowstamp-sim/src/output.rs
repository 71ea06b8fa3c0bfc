//! Results on disk and as Arrow tables.
//!
//! [`write()`] fills a run's folder:
//!
//! ```text
//!   manifest.json     the scenario with every default, seed, version, host, wall and CPU time
//!   summary.json      Results::summary
//!   series.parquet    Results::series in long form
//!   flows.parquet     Results::flows
//!   delays.parquet    Results::delays
//!   trace.pcapng      captured packets, one interface per link and cell  } only if
//!   flowstamp.lua     Wireshark's dissector for XCP's and RCP's headers  } packets were captured
//! ```
//!
//! All files except the manifest are identical to the byte whenever and wherever the same scenario runs.
//!
//! Every file is written under a temporary name in that folder and synced. The files are renamed only when all are
//! complete, so a full disk leaves the previous files in place.

mod frame;
mod read;
mod tables;
mod trace;

pub use read::parquet_table;
pub use tables::{delays_table, flows_table, numbers_of, parquet_notes, parquet_of, series_table};
pub use trace::trace_to;

pub use crate::results::folder::OutputError;
use crate::results::{Results, folder};
use std::path::{Path, PathBuf};
use tables::table_to;

/// The content of `manifest.json`: seed, version, host, wall and CPU time, and the scenario with every default.
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
    // The scenario does not contain values set during the run.
    if !results.changes.is_empty() {
        manifest["changes"] = serde_json::json!(results.changes);
    }
    if results.by_links {
        manifest["by_links"] = true.into();
    }
    manifest
}

/// Writes a run's folder, creating it if it does not exist, and returns the paths of the files.
///
/// # Errors
///
/// [`OutputError`] names the path and the system's reason. No new file is left then.
pub fn write(results: &Results, path: &Path) -> Result<Vec<PathBuf>, OutputError> {
    folder::whole(path, |files| {
        files.add_json("manifest.json", &manifest(results))?;
        files.add_json("summary.json", &results.summary)?;
        files.add("series.parquet", |out| table_to(series_table(&results.series), out))?;
        files.add("flows.parquet", |out| table_to(flows_table(&results.flows), out))?;
        files.add("delays.parquet", |out| table_to(delays_table(&results.delays), out))?;
        if !results.capture.links.is_empty() {
            files.add_trace(|out| trace_to(results, out))?;
        }
        Ok(())
    })
}
