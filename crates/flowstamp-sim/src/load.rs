//! From text to a checked scenario: one whose network can be laid out.

use crate::network::Network;
use crate::scenario::{self, FilesFrom, Format, Loaded, ScenarioError};

/// Reads a scenario from `text`. `source` names it in messages; `files` is the folder of the files that it names, or their
/// contents.
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
    checked(scenario::read(text, format, source, sets, files.into())?)
}

/// The same with another value under `key`, checked as a whole; no further file is read.
///
/// # Errors
/// One line for what is wrong.
pub fn with(loaded: &Loaded, key: &str, text: &str) -> Result<Loaded, ScenarioError> {
    checked(scenario::with(loaded, key, text)?)
}

fn checked(loaded: Loaded) -> Result<Loaded, ScenarioError> {
    Network::new(&loaded, loaded.scenario.seed)?;
    Ok(loaded)
}
