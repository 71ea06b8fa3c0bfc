//! The error of reading a scenario.

use flowstamp_laws::tree;
use std::fmt;

/// Bad input: names the source, the key, the value and what would be right, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, or what stands for it.
    pub source: String,
    /// Dotted path of the key; empty if the text is not TOML at all.
    pub key: String,
    /// The wrong value, and a value that would be right.
    pub message: String,
}

impl ScenarioError {
    /// Makes an error about `key`. Its source is filled in where it is known.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { source: String::new(), key: key.into(), message: message.into() }
    }

    /// Returns the error with this source.
    #[must_use]
    pub fn at(mut self, source: &str) -> Self {
        source.clone_into(&mut self.source);
        self
    }
}

impl From<tree::Error> for ScenarioError {
    fn from(error: tree::Error) -> Self {
        Self::new(error.key(), error.to_string())
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one_line = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
        write!(f, "{}", self.source)?;
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", one_line(&self.message))
    }
}

impl std::error::Error for ScenarioError {}
