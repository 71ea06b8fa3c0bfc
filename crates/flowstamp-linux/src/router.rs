//! `flowstamp router`.

mod attach;
mod bench;
pub mod htb;
mod http;
mod metrics;
mod operations;
mod pins;
pub mod police;
mod privileges;
mod program;
mod reader;
mod report;
mod share;
pub mod sight;
mod staged;
mod status;

use crate::law::ROUTERS;
use std::path::PathBuf;
use std::process::ExitCode;

/// What to do.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Stamps what an interface sends, until detached; the program stays when the command is done.
    Attach(attach::Arguments),
    /// Ends it, and leaves nothing behind.
    Detach(Interface),
    /// Which interfaces are routers, and what their laws know; --metrics for Prometheus, until stopped.
    Status(status::Arguments),
    /// Tests whether heavy flows obey, and isolates those that do not.
    Police(police::Arguments),
    /// Moves the weights of an interface's classes, and the law's part of the link, until stopped.
    Share(share::Arguments),
    /// What a packet costs, in ns of BPF_PROG_RUN.
    Bench(bench::Arguments),
    /// The laws that the kernel carries out.
    Laws {
        /// One JSON document on standard output: names, the option of a packet that asks for as much as there is, in hexadecimal, and
        /// whether the law takes a rate.
        #[arg(long)]
        json: bool,
    },
}

/// One interface.
#[derive(clap::Args)]
pub struct Interface {
    /// The interface that sends into the link.
    #[arg(value_name = "IFACE")]
    name: String,
    /// Network namespace that it is in: a name of `ip netns`, or a path. Rather than by `ip netns exec`, whose mounts,
    /// and what is pinned there, are gone when it ends.
    #[arg(long, value_name = "NAME|PATH")]
    netns: Option<String>,
    #[command(flatten)]
    pins: Pins,
}

/// Where programs and maps are kept.
#[derive(clap::Args)]
pub struct Pins {
    /// Directory in a BPF file system for what outlives the command.
    #[arg(long = "pins", value_name = "DIR", default_value = "/sys/fs/bpf/flowstamp/router")]
    root: PathBuf,
}

pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Attach(arguments) => attach::attach(arguments),
        Command::Detach(interface) => attach::detach(interface),
        Command::Status(arguments) => status::run(arguments),
        Command::Police(arguments) => police::run(arguments),
        Command::Share(arguments) => share::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Laws { json } => laws(*json),
    }
}

fn laws(json: bool) -> anyhow::Result<ExitCode> {
    if !json {
        ROUTERS.iter().for_each(|law| println!("{}", law.name));
        return Ok(ExitCode::SUCCESS);
    }
    let hexadecimal = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let laws = ROUTERS.map(|law| {
        let option = hexadecimal(law.stamped(law.most));
        serde_json::json!({"name": law.name, "option": option, "takes_rate": !law.blind})
    });
    println!("{}", serde_json::to_string_pretty(&laws)?);
    Ok(ExitCode::SUCCESS)
}
