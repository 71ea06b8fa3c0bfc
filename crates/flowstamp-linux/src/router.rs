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
mod scone;
mod share;
pub mod sight;
mod staged;
mod status;

use crate::law::ROUTERS;
use std::path::PathBuf;
use std::process::ExitCode;

/// Subcommands.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Stamp the packets that an interface sends, or write SCONE's advice into them, until `detach`. The program stays when
    /// the command ends.
    Attach(attach::Arguments),
    /// Stop stamping and remove everything that `attach` made.
    Detach(Interface),
    /// Show the routers' interfaces and their laws' variables. --metrics serves Prometheus until stopped.
    Status(status::Arguments),
    /// Test whether heavy flows obey, and isolate those that do not.
    Police(police::Arguments),
    /// Adapt the weights of an interface's classes, and the law's share of the link, until stopped.
    Share(share::Arguments),
    /// Measure the cost of a packet in ns, with BPF_PROG_RUN.
    Bench(bench::Arguments),
    /// List the laws that the kernel supports.
    Laws {
        /// Print one JSON document on standard output: for each law its name, whether it takes a rate, and in
        /// hexadecimal the option of a packet with an unlimited request.
        #[arg(long)]
        json: bool,
    },
}

/// One interface.
#[derive(clap::Args)]
pub struct Interface {
    /// The interface that sends to the link.
    #[arg(value_name = "IFACE")]
    name: String,
    /// Network namespace of the interface: a name of `ip netns`, or a path. Do not use `ip netns exec`: its
    /// mounts, and the pins in them, vanish when it ends.
    #[arg(long, value_name = "NAME|PATH")]
    netns: Option<String>,
    #[command(flatten)]
    pins: Pins,
}

/// Where programs and maps are kept.
#[derive(clap::Args)]
pub struct Pins {
    /// Directory in a BPF file system for programs and maps that outlive the command.
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
