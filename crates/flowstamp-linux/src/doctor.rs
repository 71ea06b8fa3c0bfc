//! `flowstamp doctor`: the part about this machine's kernel.

use std::process::ExitCode;

/// What to say.
#[derive(clap::Args)]
pub struct Command {
    /// One JSON document on standard output.
    #[arg(long)]
    json: bool,
}

/// Says it.
pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let _ = command.json;
    Ok(ExitCode::SUCCESS)
}
