//! `flowstamp router`.

use std::process::ExitCode;

/// What to do.
#[derive(clap::Subcommand)]
pub enum Command {}

/// Does it.
pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match *command {}
}
