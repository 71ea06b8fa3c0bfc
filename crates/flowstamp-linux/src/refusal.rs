//! A refusal: the machine cannot run the command, or its arguments are wrong. The exit code is 2.

use std::fmt;

/// One line that says what is wrong or missing, and what would be right.
#[derive(Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}
