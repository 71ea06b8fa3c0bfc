//! `router police`: tells heavy flows to halve their rate, and isolates those that do not (Katabi 2002,
//! section 7).

use super::pins::{self, adopt, no_bpf, pinned_config};
use super::program::{Place, bytes_of, value_of};
use super::staged::{is_on, settled};
use super::{Interface, htb, program};
use crate::bpf::router::types as router_types;
use crate::bpffs;
use crate::law;
use crate::netlink::Socket;
use crate::refusal::Refusal;
use anyhow::Context;
use flowstamp_laws::{Rate, Time};
use flowstamp_scenario::Police;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, MapCore, MapFlags, MapHandle};
use serde::{Deserialize, Serialize};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

#[allow(clippy::all, clippy::pedantic, reason = "generated")]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/police.skel.rs"));
}
use skeleton::{PoliceSkelBuilder, types};

/// Pin of the program that runs before the router.
const GATE: &str = "gate";

/// The interface, and the strictness of tests.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    interface: Interface,
    /// Stop testing.
    #[arg(long, conflicts_with = "list")]
    stop: bool,
    /// Print the known flows with the results of their tests.
    #[arg(long)]
    list: bool,
    /// Print one JSON document on standard output.
    #[arg(long, requires = "list")]
    json: bool,
    /// Rate below which flows are not tested [default: a tenth of the link's rate].
    #[arg(long, value_name = "RATE")]
    least: Option<Rate>,
    /// Time between tests of a flow that obeys.
    #[arg(long, default_value = "10s")]
    retest: Time,
    /// How long a flow is isolated.
    #[arg(long, default_value = "30s")]
    isolate: Time,
    /// Class of the root queueing discipline (htb) for isolated flows. Without it they are limited to half of
    /// their rate, and less while the link drops packets.
    #[arg(long, value_name = "MAJOR:MINOR", value_parser = class)]
    class: Option<u32>,
}

/// Parses a class in hexadecimal, as in tc.
fn class(text: &str) -> Result<u32, String> {
    let parsed = text.split_once(':').and_then(|(major, minor)| {
        let part = |t| u16::from_str_radix(t, 16).ok();
        Some(u32::from(part(major)?) << 16 | u32::from(part(minor)?))
    });
    parsed.filter(|c| c >> 16 != 0).ok_or_else(|| format!("{text:?} is not a class; it must be like 1:20"))
}

/// The state of a flow, as printed by `--list --json`.
#[derive(Serialize, Deserialize)]
pub struct Flow {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Whether it is isolated now.
    pub isolated: bool,
    /// Number of started tests.
    pub tests: u64,
    /// Consecutive failures.
    pub failures: u64,
    pub isolations: u64,
    /// Packets dropped by isolation.
    pub held_packets: u64,
    /// Its rate before the last test, bits/s.
    pub tested_at_bps: f64,
    /// The round-trip time used by its tests, s.
    pub round_s: f64,
}

fn address(bytes: [u8; 16], version: u32, port: u16) -> SocketAddr {
    let ip = if version == 4 {
        IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
    } else {
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    SocketAddr::new(ip, u16::from_be(port))
}

fn list(directory: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let map = MapHandle::from_pinned_path(directory.join("flows"))
        .map_err(|_| Refusal("this interface's flows are not policed".into()))?;
    let mut flows = vec![];
    for key in map.keys() {
        let (Some(k), Some(f)) = (
            value_of::<types::fs_flow_key>(&key),
            map.lookup(&key, MapFlags::ANY)?.and_then(|v| value_of::<types::fs_police_flow>(&v)),
        ) else {
            continue;
        };
        flows.push(Flow {
            from: address(k.from, k.version, k.from_port),
            to: address(k.to, k.version, k.to_port),
            isolated: f.phase == 5,
            tests: f.tests,
            failures: f.failures,
            isolations: f.isolations,
            held_packets: f.held,
            tested_at_bps: f.rate as f64 * 8.0,
            round_s: f.round_ns as f64 / 1e9,
        });
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&flows)?);
    } else {
        for f in flows {
            let what = if f.isolated { "isolated" } else { "free" };
            println!("{} > {}: {what}, {} tests, {} isolations", f.from, f.to, f.tests, f.isolations);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interface = &arguments.interface;
    let directory = pins::of_police(interface);
    if arguments.list {
        bpffs::check_owners(&interface.pins.root)?;
        return list(&directory, arguments.json);
    }
    let _lock = pins::prepare(&interface.pins.root)?;
    if arguments.stop {
        if directory.exists() {
            pins::remove(&directory)?;
        }
        pins::tidy(&interface.pins.root);
        return Ok(ExitCode::SUCCESS);
    }
    let router = settled(&pins::directory(interface));
    let Some(router) = pinned_config(&router).filter(|_| is_on(&router, None)) else {
        pins::tidy(&interface.pins.root);
        let text = format!("{} has no router: run `router attach` first", interface.name);
        return Err(Refusal(text).into());
    };
    let wanted = wanted(arguments, &router)?;
    pins::enter(interface)?;
    let (ifindex, _) = pins::look_up(&interface.name)?;
    if let Some(class) = arguments.class
        && !htb::has_class(&Socket::open()?, ifindex, class)?
    {
        let (name, major, minor) = (&interface.name, class >> 16, class & 0xffff);
        let text = format!(
            "--class {major:x}:{minor:x}: the root of {name} is not an htb with such a class (tc class show dev {name})"
        );
        return Err(Refusal(text).into());
    }
    if directory.exists() {
        let same = MapHandle::from_pinned_path(directory.join("config"))
            .ok()
            .and_then(|m| m.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?)
            .is_some_and(|bytes| bytes == bytes_of(&wanted));
        if same && is_on(&directory, Some(ifindex)) && directory.join(GATE).exists() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    put_on(&interface.name, ifindex, &directory, wanted)?;
    Ok(ExitCode::SUCCESS)
}

/// The police's configuration for this router.
fn wanted(
    arguments: &Arguments,
    router: &router_types::fs_config,
) -> anyhow::Result<types::fs_police_config> {
    let law = law::numbered(router.law).context("the pinned router is another version's")?;
    if !law.header.is_tested() {
        // The test needs feedback per flow, but VCP's code is the same for all flows.
        let text =
            format!("police: {} tells no flow a rate that could be tested; it knows rcp and xcp", law.name);
        return Err(Refusal(text).into());
    }
    let option = law.option.context("a law whose flows can be tested has an option")?;
    if law.blind && arguments.least.is_none() {
        let text = format!(
            "police: {} does not know the link's rate; set the rate of a heavy flow with --least",
            law.name
        );
        return Err(Refusal(text).into());
    }
    let wish = Police { heavy: arguments.least, retest: arguments.retest, isolate: arguments.isolate };
    let rate = Rate::from_bytes_per_sec((router.link_rate_q16 / 65536) as f64);
    let params = wish.params(rate).map_err(|(name, text)| {
        let option = if name == "heavy" { "least" } else { name };
        Refusal(format!("--{option} {text}"))
    })?;
    Ok(types::fs_police_config {
        exid: u16::from_be_bytes(option.identifier()).into(),
        link_bytes: router.link_bytes,
        class: u64::from(arguments.class.unwrap_or(0)),
        params: types::fs_police_params {
            heavy: params.heavy.bytes_per_sec() as u64,
            retest_ns: law::ns(params.retest),
            isolate_ns: law::ns(params.isolate),
        },
    })
}

/// Attaches the programs before and after the router, in place of those pinned in `directory`.
fn put_on(name: &str, ifindex: u32, directory: &Path, config: types::fs_police_config) -> anyhow::Result<()> {
    libbpf_rs::set_print(None);
    let mut object = MaybeUninit::uninit();
    let mut open = PoliceSkelBuilder::default().open(&mut object)?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.config = config;
    }
    let mut skeleton = open.load().map_err(|e| no_bpf(&e))?;
    if directory.exists() {
        pins::remove(directory)?;
    }
    let refused = |e| Refusal(format!("cannot attach to {name} ({e}); it needs Linux 6.6"));
    let (police, gate) =
        (skeleton.progs.fs_police.as_libbpf_object(), skeleton.progs.fs_gate.as_libbpf_object());
    // SAFETY: loaded programs.
    let mut link = unsafe { program::attach_tcx(police, ifindex, Place::Last) }.map_err(refused)?;
    // SAFETY: as above.
    let mut gate = unsafe { program::attach_tcx(gate, ifindex, Place::First) }.map_err(refused)?;
    adopt(
        directory,
        &mut link,
        &mut [(&mut skeleton.maps.flows, "flows"), (&mut skeleton.maps.rodata, "config")],
    )?;
    if let Err(error) = gate.pin(directory.join(GATE)) {
        let _ = pins::remove(directory);
        return Err(error.into());
    }
    Ok(())
}
