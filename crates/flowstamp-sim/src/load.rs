//! Turns text into a checked scenario, whose network can be laid out.

use crate::plan::{Needs, Network};
use crate::scenario::{self, FilesFrom, Format, Loaded, ScenarioError};

/// Reads a scenario from `text`. `source` names it in messages. `files` is the folder of the files that it names, or
/// their contents.
///
/// # Errors
/// One line for the first thing that is wrong.
pub fn load<'a>(
    text: &str,
    format: Format,
    source: &str,
    sets: &[(String, String)],
    files: impl Into<FilesFrom<'a>>,
) -> Result<Loaded, ScenarioError> {
    load_within(text, format, source, sets, files, None).map(|(loaded, _)| loaded)
}

/// Like [`load`], and also returns the memory that a run may need. It refuses, before any memory is taken, a scenario
/// that needs more than `memory` bytes.
///
/// # Errors
/// As [`load`].
pub fn load_within<'a>(
    text: &str,
    format: Format,
    source: &str,
    sets: &[(String, String)],
    files: impl Into<FilesFrom<'a>>,
    memory: Option<u64>,
) -> Result<(Loaded, Needs), ScenarioError> {
    #[cfg(feature = "tables")]
    let tables: Option<scenario::Tables> = Some(crate::flow_list::parquet::csv);
    #[cfg(not(feature = "tables"))]
    let tables = None;
    let loaded = scenario::read(text, format, source, sets, files.into(), tables)?;
    let needs = Network::within(&loaded, loaded.scenario.seed, memory)?.needs;
    Ok((loaded, needs))
}

/// Returns the scenario with another value under `key`, checked as a whole. No further file is read.
///
/// # Errors
/// One line for what is wrong.
pub fn with(loaded: &Loaded, key: &str, text: &str) -> Result<Loaded, ScenarioError> {
    let loaded = scenario::with(loaded, key, text)?;
    Network::new(&loaded, loaded.scenario.seed)?;
    Ok(loaded)
}
