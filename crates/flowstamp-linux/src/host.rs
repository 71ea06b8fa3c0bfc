//! `flowstamp host`: makes this host's TCP follow the routers' feedback.
//!
//! ```text
//!   /sys/fs/bpf/flowstamp/
//!     rcp xcp vcp   links: the congestion controls flowstamp_rcp, flowstamp_xcp and flowstamp_vcp are registered
//!     options       link: packets of the cgroup's sockets carry the option
//!     if-NETNS-N    links: on interface N, acks full of SACK blocks get the option, and VCP data get their code
//!     listeners     program: enables the option on sockets that were listening before
//!     egress        the program of the if- links, for more interfaces
//!     settings counters departures defaults
//!     udp-...       with `--udp`: the programs and maps for datagrams
//!     router/       routers' pins, by default: not touched
//! ```
//!
//! The SYN determines a connection's law. An application that selects the congestion control only after
//! connecting, as iperf3 does, gets it if `--law` is the same law, and otherwise the kernel's.
//!
//! After `disable`, hosts stop sending echoes, and flows switch to the kernel's congestion control within 17
//! round trips. The BPF file system stays mounted. Listening sockets keep a flag that no program uses any
//! more, and keep their SYNs (`TCP_SAVE_SYN`).
//!
//! TCP needs no daemon: the links live as long as their pins. Datagrams need one where an interface has no fq
//! (`pace.rs`). All state is read from the kernel, not from
//! files.

mod default;
mod pace;
mod pins;
mod place;
mod udp;

use crate::bpffs;
use crate::law::{self, LAWS, Law};
use crate::refusal::Refusal;
use anyhow::{Context, Result};
use flowstamp_laws::units::Rate;
use pins::Pins;
use std::path::PathBuf;
use std::process::ExitCode;

/// Subcommands.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Register the congestion controls and attach the TCP option. Repeating it changes nothing.
    Enable(Enable),
    /// Remove links, pins and defaults. Connections continue with the kernel's own TCP.
    Disable,
    /// Show the enabled laws, and counts of events that flows have met.
    Status {
        /// Print one JSON document on standard output.
        #[arg(long)]
        json: bool,
        /// Also list the connections that left their law: at most the last 8192.
        #[arg(long)]
        departures: bool,
    },
    /// Pace flows of datagrams through classes; started by `enable --udp`.
    #[command(hide = true)]
    Pace,
}

/// Options of `host enable`.
#[derive(clap::Args)]
pub struct Enable {
    /// The law for connections whose congestion control is none of Flowstamp's: rcp, xcp or vcp.
    #[arg(long, value_name = "LAW", value_parser = law::parse)]
    law: &'static Law,
    /// A parameter of the sender's law, as in a scenario's `law`, such as price=2; can be repeated.
    /// Parameters that the kernel's sender does not support are refused.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The cgroup whose sockets send the option [default: all].
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// Make the law's congestion control the default of this network namespace until `host disable`.
    #[arg(long)]
    default: bool,
    /// Maximum rate of each flow, such as 1Gbps, even if routers give more [default: no limit].
    #[arg(long)]
    max_rate: Option<Rate>,
    /// Keep flows on the law when their RTT doubles. For paths whose link can slow down faster than its
    /// router can signal, such as a cellular link under xcp-b.
    #[arg(long)]
    any_rtt: bool,
    /// An interface on which acks leave; can be repeated [default: each Ethernet interface of this
    /// namespace].
    #[arg(long)]
    iface: Vec<String>,
    /// Pace UDP datagrams whose local or remote port is one of these, such as 5004,6000-6010, at RCP's rate.
    /// They carry RCP's header between IP and UDP. Needs --law rcp.
    #[arg(long, value_name = "PORTS")]
    udp: Option<udp::Ports>,
}

pub fn run(command: &Command) -> Result<ExitCode> {
    let name = name()?;
    place::require_root()?;
    let named = if let Command::Enable(enable) = command { enable.cgroup.as_deref() } else { None };
    // `ip netns exec` hides cgroups, so only a relative path is opened in the caller's mount namespace.
    let relative = named.filter(|path| path.is_relative()).map(place::open_cgroup).transpose()?;
    place::enter_eldest_mount_namespace()?;
    if let Command::Pace = command {
        return pace::run(&name);
    }
    let absolute = named.filter(|path| path.is_absolute()).map(place::open_cgroup).transpose()?;
    match command {
        Command::Enable(enable) => self::enable(enable, relative.or(absolute), &name)?,
        Command::Disable => disable(&name)?,
        Command::Status { json, departures } => status(&name, *json, *departures)?,
        Command::Pace => unreachable!("it has run above"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The prefix of pins and congestion controls: `flowstamp`, or `FLOWSTAMP_NAME`, so that several instances
/// can share one kernel.
fn name() -> Result<String> {
    let name = std::env::var("FLOWSTAMP_NAME").unwrap_or_else(|_| "flowstamp".into());
    let letters =
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
    // The kernel limits names of congestion controls to 15 characters, 4 of which name the law.
    if name.is_empty() || name.len() > 11 || !letters {
        let wants = "FLOWSTAMP_NAME must be 1 to 11 of a-z, 0-9, - and _";
        return Err(Refusal(format!("{wants}; it is {name:?}")).into());
    }
    Ok(name)
}

fn enable(command: &Enable, cgroup: Option<place::Cgroup>, name: &str) -> Result<()> {
    let senders = law::senders(command.law, &command.set)?;
    if command.udp.is_some() && command.law.name != "rcp" {
        let name = command.law.name;
        return Err(Refusal(format!("--udp: {name} has no header for datagrams; use --law rcp")).into());
    }
    let interfaces = place::interfaces(&command.iface)?;
    if command.udp.is_some() {
        pace::check(&interfaces)?;
    }
    bpffs::mount()?;
    let pins = Pins::lock(name)?;
    let rate_max =
        command.max_rate.map_or(u32::MAX, |rate| (rate.bytes_per_sec() / 1000.0).clamp(1.0, 4e9) as u32);
    let wanted = pins::Wanted { law: command.law, rate_max, any_rtt: command.any_rtt, senders };
    if pins.complete() {
        pins.retarget(&wanted, cgroup.as_ref())?;
    } else {
        let cgroup = cgroup.map_or_else(place::all_of_cgroup2, Ok)?;
        pins.load(&wanted, &cgroup)?;
    }
    pins.attach_interfaces(&interfaces)?;
    pins.tell_listeners()?;
    match &command.udp {
        Some(ports) => enable_udp(&pins, ports, rate_max, &interfaces)?,
        None => disable_udp(&pins)?,
    }
    if command.default {
        default::set(&pins, &command.law.congestion_control(name))?;
    }
    Ok(())
}

fn enable_udp(pins: &Pins, ports: &udp::Ports, rate_max: u32, interfaces: &[place::Interface]) -> Result<()> {
    let needs_daemon = pace::prepare(interfaces)?;
    pins.enable_udp(ports, rate_max, &pins.own_cgroup()?, interfaces)?;
    if needs_daemon {
        pace::start()?;
    }
    Ok(())
}

/// Stops adding headers to datagrams. The daemon of another namespace removes its classes itself.
fn disable_udp(pins: &Pins) -> Result<()> {
    pins.disable_udp()?;
    pace::tidy()
}

fn disable(name: &str) -> Result<()> {
    if !bpffs::is_mounted() {
        return Ok(());
    }
    let pins = Pins::lock(name)?;
    if pins.any() {
        default::restore(&pins, name).context("restoring default congestion controls")?;
        disable_udp(&pins)?;
    }
    pins.remove()
}

/// `host status --json`.
#[derive(serde::Serialize)]
struct Status {
    enabled: bool,
    #[serde(flatten)]
    details: Option<Details>,
}

#[derive(serde::Serialize)]
struct Details {
    law: &'static Law,
    cgroup: String,
    congestion_controls: Vec<String>,
    fallback: String,
    /// The limit of `--max-rate`, if there is one.
    max_rate_bps: Option<u64>,
    /// The default of this network namespace.
    default_congestion_control: String,
    interfaces: Vec<String>,
    counters: pins::Counters,
    /// Flows of datagrams, with `--udp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<udp::Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    departures: Option<Vec<pins::Departure>>,
}

fn status(name: &str, json: bool, departures: bool) -> Result<()> {
    let pins = if bpffs::is_mounted() { Some(Pins::lock(name)?) } else { None };
    let details = match pins.filter(Pins::complete) {
        None => None,
        Some(pins) => {
            let settings = pins.settings()?;
            Some(Details {
                law: settings.law()?,
                cgroup: settings.cgroup(),
                congestion_controls: LAWS.map(|law| law.congestion_control(name)).into(),
                fallback: settings.fallback(),
                max_rate_bps: settings.rate_max().map(|bytes_per_ms| u64::from(bytes_per_ms) * 8000),
                default_congestion_control: place::current()?,
                interfaces: pins.interfaces()?,
                counters: pins.counters()?,
                udp: pins.udp_status()?,
                departures: departures.then(|| pins.departures()).transpose()?,
            })
        }
    };
    let status = Status { enabled: details.is_some(), details };
    if json {
        println!("{}", serde_json::to_string_pretty(&status)?);
        return Ok(());
    }
    let Some(d) = status.details else {
        println!("not enabled");
        return Ok(());
    };
    println!("enabled: {}, default here: {}", d.congestion_controls.join(" "), d.default_congestion_control);
    println!("asks for {:?}, in cgroup {}, falls back to {}", d.law, d.cgroup, d.fallback);
    println!(
        "acks repaired on: {}",
        if d.interfaces.is_empty() { "no interface".into() } else { d.interfaces.join(" ") }
    );
    for (what, count) in serde_json::to_value(&d.counters)?.as_object().into_iter().flatten() {
        println!("  {what}: {count}");
    }
    for line in d.udp.iter().flat_map(udp::Status::lines) {
        println!("{line}");
    }
    for d in d.departures.iter().flatten() {
        println!("  left at {:.3} s: {} -> {}, {}", d.at_s, d.local_port, d.remote_port, d.cause);
    }
    Ok(())
}
