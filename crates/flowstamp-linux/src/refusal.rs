//! What a command cannot do here, or was asked wrongly: exit code 2.

use std::fmt;

/// One line: what is wrong, or what the machine lacks, and what would be right.
#[derive(Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}
