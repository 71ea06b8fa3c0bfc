//! Paces flows of datagrams where the interface has no fq: each flow gets an htb class of its rate, in which
//! its datagrams wait. As under fq, a sender blocks when its socket buffer is full, and nothing is lost.
//!
//! The daemon of a namespace follows the rates in the programs' map. It ends when `host disable` has removed
//! that map. If it is killed, flows keep their last rates until the next `host enable`.

use super::place::{self, Interface};
use super::udp::{self, Flow, Key};
use crate::bpf::bytes_of;
use crate::bpffs;
use crate::netlink::{Socket, TC_H_ROOT};
use crate::path::monotonic_ns;
use crate::refusal::Refusal;
use crate::router::htb;
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::{BTreeMap, BTreeSet};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// Time between two looks at the map, with and without flows.
const PERIOD: Duration = Duration::from_millis(5);
const IDLE_PERIOD: Duration = Duration::from_millis(50);
/// A flow without datagrams for this long gives its class away.
const IDLE_NS: u64 = 10_000_000_000;
/// The rate of a class whose flow has no limit, in bytes/s.
const UNLIMITED: f64 = 12.5e9;
/// Number of times that the daemon reads the map between two scans of the interfaces.
const LOOKS: u32 = 200;

/// Returns whether an interface needs classes. Refuses an interface whose root queueing discipline must not be replaced.
fn needs_classes(socket: &Socket, interface: &Interface) -> Result<bool> {
    let (mut root, mut handle, mut has_fq) = (String::new(), 0, false);
    socket.qdiscs(interface.index, |qdisc| {
        has_fq |= qdisc.kind() == "fq";
        if qdisc.parent == TC_H_ROOT {
            (root, handle) = (qdisc.kind().to_owned(), qdisc.handle);
        }
    })?;
    if has_fq {
        return Ok(false);
    }
    if handle == 0 || handle == htb::FLOWS_ROOT {
        return Ok(true);
    }
    let name = &interface.name;
    Err(Refusal(format!(
        "--udp: {name} has the queueing discipline {root} at its root, which does not pace datagrams; replace it: tc qdisc \
         replace dev {name} root fq"
    ))
    .into())
}

/// Refuses interfaces whose root queueing discipline neither paces datagrams nor gives way to classes.
pub fn check(interfaces: &[Interface]) -> Result<()> {
    let socket = Socket::open()?;
    interfaces.iter().try_for_each(|interface| needs_classes(&socket, interface).map(drop))
}

/// Gives these interfaces the root of classes where they need it. Returns whether any does.
pub fn prepare(interfaces: &[Interface]) -> Result<bool> {
    let socket = Socket::open()?;
    let mut any = false;
    for interface in interfaces {
        if !needs_classes(&socket, interface)? {
            continue;
        }
        any = true;
        if !htb::has_flows(&socket, interface.index)? {
            let refused =
                |e| Refusal(format!("--udp: {} has no fq, and htb cannot be added: {e}", interface.name));
            htb::make_flows(&socket, interface.index).map_err(refused)?;
        }
    }
    Ok(any)
}

/// Removes the classes of all interfaces in this namespace.
pub fn tidy() -> Result<()> {
    let socket = Socket::open()?;
    for interface in place::all_interfaces()? {
        if htb::has_flows(&socket, interface.index)? {
            htb::remove_flows(&socket, interface.index)?;
        }
    }
    Ok(())
}

/// Starts the daemon of this namespace, unless it runs.
pub fn start() -> Result<()> {
    let program = std::env::current_exe().context("this program")?;
    let mut command = Command::new(program);
    command.args(["host", "pace"]).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A group of its own, so that the terminal's interrupt does not reach it.
    command.process_group(0).spawn().context("starting the daemon that paces")?;
    Ok(())
}

/// Claims the right to pace this namespace, which ends with the process. Each namespace has its own abstract names.
fn turn(name: &str) -> Option<UnixListener> {
    let address = SocketAddr::from_abstract_name(format!("flowstamp-pace-{name}")).ok()?;
    // A predecessor may just be ending.
    (0..20).find_map(|_| {
        let bound = UnixListener::bind_addr(&address).ok();
        if bound.is_none() {
            std::thread::sleep(Duration::from_millis(50));
        }
        bound
    })
}

/// A flow's class.
struct Class {
    interface: u32,
    minor: u16,
    rate: f64,
}

struct Pacer {
    socket: Socket,
    cookie: u64,
    directory: PathBuf,
    /// The map that `classes` has been written to.
    map: u32,
    /// Classes, by the bytes of their flows' keys.
    classes: BTreeMap<Vec<u8>, Class>,
    roots: BTreeSet<u32>,
}

impl Pacer {
    /// Finds the interfaces of this namespace that have the programs. Installs the root of the classes where it is needed.
    fn look_at_interfaces(&mut self) -> Result<()> {
        let namespace = place::namespace()?;
        let ours =
            |i: &Interface| self.directory.join(format!("{}-{namespace}-{}", udp::OUT, i.index)).exists();
        let interfaces: Vec<_> = place::all_interfaces()?.into_iter().filter(ours).collect();
        // Another program's root stays, and flows there are not paced.
        let _ = prepare(&interfaces);
        let mut roots = BTreeSet::new();
        for interface in interfaces {
            if htb::has_flows(&self.socket, interface.index)? {
                roots.insert(interface.index);
            }
        }
        self.roots = roots;
        Ok(())
    }

    fn free_minor(&self) -> Option<u16> {
        let taken: BTreeSet<u16> = self.classes.values().map(|class| class.minor).collect();
        (1..4096).find(|minor| !taken.contains(minor))
    }

    /// Gives a flow the class of its rate.
    fn follow(&mut self, to: &MapHandle, key: &Key, flow: &Flow) {
        let known = (1..udp::UNBOUNDED).contains(&flow.rate);
        let rate = if known { f64::from(flow.rate) * 1e3 } else { UNLIMITED };
        let bytes = bytes_of(key);
        if let Some(class) = self.classes.get_mut(bytes) {
            if class.rate != rate && htb::put_flow(&self.socket, class.interface, class.minor, rate).is_ok() {
                class.rate = rate;
            }
            return;
        }
        let Some(minor) = self.free_minor().filter(|_| known) else { return };
        if htb::make_flow(&self.socket, flow.ifindex, minor, rate).is_err() {
            return; // the interface or its root has gone
        }
        let handle = htb::FLOWS_ROOT | u32::from(minor);
        if to.update(bytes, &handle.to_ne_bytes(), MapFlags::ANY).is_ok() {
            self.classes.insert(bytes.to_vec(), Class { interface: flow.ifindex, minor, rate });
        }
    }

    /// Follows the flows' rates once. Returns whether there are flows, or none if the programs have gone.
    fn look(&mut self) -> Option<bool> {
        let open = |pin| MapHandle::from_pinned_path(self.directory.join(pin)).ok();
        let (from, to) = (open(udp::FLOWS)?, open(udp::CLASSES)?);
        let map = from.info().ok()?.info.id;
        if map != self.map {
            // Enabled anew: no class of the old map is in use.
            self.map = map;
            self.classes.clear();
        }
        let now_ns = monotonic_ns();
        let mut flows = udp::flows_of(&from, self.cookie);
        flows.retain(|(_, flow)| {
            self.roots.contains(&flow.ifindex) && now_ns.saturating_sub(flow.seen_ns) < IDLE_NS
        });
        for (key, flow) in &flows {
            self.follow(&to, key, flow);
        }
        let live: BTreeSet<&[u8]> = flows.iter().map(|(key, _)| bytes_of(key)).collect();
        self.classes.retain(|key, class| {
            let stays = live.contains(key.as_slice());
            if !stays {
                let _ = to.delete(key);
                let _ = htb::remove_flow(&self.socket, class.interface, class.minor);
            }
            stays
        });
        Some(!flows.is_empty())
    }
}

/// Runs the daemon until the programs are removed.
pub fn run(name: &str) -> Result<ExitCode> {
    let Some(_turn) = turn(name) else { return Ok(ExitCode::SUCCESS) };
    let mut pacer = Pacer {
        socket: Socket::open()?,
        cookie: udp::namespace_cookie()?,
        directory: PathBuf::from(bpffs::USUAL).join(name),
        map: 0,
        classes: BTreeMap::new(),
        roots: BTreeSet::new(),
    };
    for looks in (0..LOOKS).cycle() {
        if looks == 0 {
            pacer.look_at_interfaces()?;
        }
        let Some(any) = pacer.look() else { break };
        std::thread::sleep(if any { PERIOD } else { IDLE_PERIOD });
    }
    tidy()?;
    Ok(ExitCode::SUCCESS)
}
