//! `flowstamp-linux`: XCP, RCP and VCP on unmodified Linux kernels. `flowstamp host`, `router`, `lab` and `doctor` call it.

mod bpf;
mod bpffs;
mod doctor;
mod features;
mod host;
mod lab;
mod law;
mod netlink;
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
    /// Make TCP of this host, namespace or cgroup obey the feedback that routers stamp into packets.
    #[command(subcommand)]
    Host(host::Command),
    /// Stamp feedback into the packets that an interface sends.
    #[command(subcommand)]
    Router(router::Command),
    /// Run real applications over an emulated path between network namespaces.
    #[command(subcommand)]
    Lab(lab::Command),
    /// Report which requirements of the commands this machine meets.
    Doctor(doctor::Command),
    /// A lab's program in its namespace.
    #[command(hide = true)]
    Within(lab::Within),
}

const HELP_INSTEAD: clap::error::ErrorKind = clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

/// Runs a command. Commands that change the machine are refused in one line if it lacks the features.
fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Host(host::Command::Enable(_)) => features::require("host")?,
        Command::Lab(lab::Command::Run(_)) => features::require("lab")?,
        Command::Router(
            router::Command::Attach(_) | router::Command::Police(_) | router::Command::Share(_),
        ) => features::require("router")?,
        _ => {}
    }
    match command {
        Command::Host(command) => host::run(command),
        Command::Router(command) => router::run(command),
        Command::Lab(command) => lab::run(command),
        Command::Doctor(command) => doctor::run(command),
        Command::Within(command) => command.run(),
    }
}

/// Restores the default action of SIGPIPE, so that closing the pipe, as `head` does, ends the program
/// quietly.
fn quiet_pipes() {
    // SAFETY: restores the default action, which Rust's start-up had replaced; no handler runs.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

fn main() -> ExitCode {
    quiet_pipes();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help, version, and the help that clap prints for a missing subcommand.
        Err(error) if !error.use_stderr() || error.kind() == HELP_INSTEAD => error.exit(),
        Err(error) => {
            // clap's first paragraph says what is wrong; a second one may say what would be right.
            let text = error.to_string();
            let told: Vec<_> = text.split("\n\n").filter(|part| !part.starts_with("Usage")).collect();
            let told = told.join("; ").replace("; For more information, try '--help'.", "");
            let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
            eprintln!("flowstamp: {}", told.trim_start_matches("error: "));
            return ExitCode::from(2);
        }
    };
    match run(&arguments.command) {
        Ok(code) => code,
        Err(error) => {
            // Joins the lines, because libraries' messages may have several.
            let text: Vec<String> = error.chain().map(ToString::to_string).collect();
            eprintln!("flowstamp: {}", text.join(": ").split_whitespace().collect::<Vec<_>>().join(" "));
            ExitCode::from(if error.downcast_ref::<Refusal>().is_some() { 2 } else { 1 })
        }
    }
}
