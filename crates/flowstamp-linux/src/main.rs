//! `flowstamp-linux`: XCP and RCP on unmodified Linux kernels. `flowstamp host`, `router`, `lab` and `doctor` call it.

mod doctor;
mod host;
mod lab;
mod path;
mod refusal;
mod router;

use clap::{Parser, Subcommand};
use refusal::Refusal;
use std::process::ExitCode;

#[derive(Parser)]
#[command(version, about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// TCP of this host, namespace or cgroup obeys stamps.
    #[command(subcommand)]
    Host(host::Command),
    /// An interface stamps what it sends.
    #[command(subcommand)]
    Router(router::Command),
    /// Namespaces, an emulated path and real applications.
    #[command(subcommand)]
    Lab(lab::Command),
    /// What this machine has of what the commands need.
    Doctor(doctor::Command),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Host(command) => host::run(&command),
        Command::Router(command) => router::run(&command),
        Command::Lab(command) => lab::run(&command),
        Command::Doctor(command) => doctor::run(&command),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // One line, whatever libraries put into theirs.
            let text: Vec<String> = error.chain().map(ToString::to_string).collect();
            eprintln!("flowstamp: {}", text.join(": ").split_whitespace().collect::<Vec<_>>().join(" "));
            ExitCode::from(if error.downcast_ref::<Refusal>().is_some() { 2 } else { 1 })
        }
    }
}
