//! `flowstamp doctor`: the checks of this machine's kernel.

use crate::features::{Finding, findings};
use crate::path::By;
use std::process::ExitCode;

/// Output options.
#[derive(clap::Args)]
pub struct Command {
    /// Print one JSON document on standard output.
    #[arg(long)]
    json: bool,
}

/// Prints the findings and which commands can run.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let found = findings();
    if command.json {
        println!("{}", serde_json::to_string_pretty(&found)?);
        return Ok(ExitCode::SUCCESS);
    }
    for finding in &found {
        println!("{}", line(finding));
    }
    for name in ["host", "router", "lab"] {
        let missing: Vec<_> = found
            .iter()
            .filter(|f| f.known && !f.present && f.needed_by.contains(&name))
            .map(|f| f.name.as_ref())
            .collect();
        let said = match (missing.is_empty(), name) {
            (true, "lab") => match By::choose() {
                Ok(by) => format!("ready; its path by {}", by.name()),
                Err(_) => "lacks AF_XDP sockets, and TAP devices in their place".to_owned(),
            },
            (true, _) => "ready".to_owned(),
            (false, _) => format!("lacks {}", missing.join(", ")),
        };
        println!("{name:<32} {said}");
    }
    Ok(ExitCode::SUCCESS)
}

fn line(finding: &Finding) -> String {
    match (finding.present, finding.known) {
        (true, _) => format!("{:<32} there", finding.name),
        (_, true) => format!("{:<32} missing: {}", finding.name, finding.without),
        _ => format!("{:<32} {}", finding.name, finding.without),
    }
}
