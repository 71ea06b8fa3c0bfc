//! `host enable --udp`: datagrams of listed ports carry RCP's shim, and leave at the rate of their path's
//! routers.

use super::pins::{Pins, TCX_EGRESS, TCX_INGRESS};
use super::place::{self, Cgroup, Interface};
use crate::bpf::{bytes_of, value_of};
use crate::path::monotonic_ns;
use crate::refusal::Refusal;
use anyhow::{Context, Result};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::fmt;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::str::FromStr;

mod skel {
    #![allow(clippy::all, clippy::pedantic, missing_docs, dead_code, reason = "generated")]
    include!(concat!(env!("OUT_DIR"), "/udp.skel.rs"));
}
pub use skel::types::{fs_udp_flow as Flow, fs_udp_key as Key};

/// The rate of a flow whose path has no router.
pub const UNBOUNDED: u32 = u32::MAX;
/// Pins of the maps. The settings are pinned last.
pub const FLOWS: &str = "udp-flows";
pub const CLASSES: &str = "udp-classes";
const COUNTERS: &str = "udp-counters";
const SETTINGS: &str = "udp-settings";
/// Pins of the programs, which also begin the names of their links.
pub const OUT: &str = "udp-out";
const IN: &str = "udp-in";

/// Ports whose datagrams are paced, as in `5004,6000-6010`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(Vec<(u16, u16)>);

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let ports = first.parse().ok().zip(last.parse().ok());
            ports.filter(|(first, last)| (1..=*last).contains(first)).ok_or_else(|| {
                format!("{part:?} must be a port from 1 to 65535, or a range of them such as 6000-6010")
            })
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.0.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            write!(f, "{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

impl Ports {
    /// One bit for each port, as the programs read them.
    fn bits(&self) -> [u64; 1024] {
        let mut bits = [0; 1024];
        for port in self.0.iter().flat_map(|(first, last)| *first..=*last) {
            bits[usize::from(port) / 64] |= 1 << (port % 64);
        }
        bits
    }

    fn of_bits(bits: &[u64; 1024]) -> Self {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for port in (0..=u16::MAX).filter(|port| bits[usize::from(*port) / 64] >> (port % 64) & 1 == 1) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == port => *last = port,
                _ => ranges.push((port, port)),
            }
        }
        Self(ranges)
    }
}

/// The part of `host status` about datagrams.
#[derive(serde::Serialize)]
pub struct Status {
    ports: String,
    counters: Counters,
    /// The flows of this network namespace.
    flows: Vec<FlowStatus>,
}

#[derive(serde::Serialize)]
struct Counters {
    /// Questions that asked for the rate, and answers to them.
    asked: u64,
    answered: u64,
    /// Flows that stopped obeying, because four questions in a row had no answer.
    left_silent: u64,
    /// Datagrams of obeying flows without the header.
    without_header: u64,
}

#[derive(serde::Serialize)]
struct FlowStatus {
    local: SocketAddr,
    remote: SocketAddr,
    /// The remote end has answered, and the flow leaves at `rate_bps`.
    obeys: bool,
    /// The rate of the routers towards the remote end; none before the first answer or without routers.
    rate_bps: Option<u64>,
    /// The rate of the routers on the way here.
    received_rate_bps: Option<u64>,
    rtt_s: Option<f64>,
    /// Time since the last datagram.
    idle_s: f64,
}

/// A rate of the shim in bits/s; none if it is unknown or unbounded.
fn bps(bytes_per_ms: u32) -> Option<u64> {
    (1..UNBOUNDED).contains(&bytes_per_ms).then(|| u64::from(bytes_per_ms) * 8000)
}

fn address(version: u32, bytes: [u8; 16], port: u16) -> SocketAddr {
    let [a, b, c, d, ..] = bytes;
    let ip =
        if version == 4 { Ipv4Addr::new(a, b, c, d).into() } else { IpAddr::from(Ipv6Addr::from(bytes)) };
    SocketAddr::new(ip, u16::from_be(port))
}

impl FlowStatus {
    fn new(key: &Key, flow: &Flow, now_ns: u64) -> Self {
        Self {
            local: address(key.version, key.local, key.local_port),
            remote: address(key.version, key.remote, key.remote_port),
            obeys: flow.state == 1,
            rate_bps: bps(flow.rate),
            received_rate_bps: bps(flow.received),
            rtt_s: (flow.srtt_us > 0).then(|| f64::from(flow.srtt_us) * 1e-6),
            idle_s: now_ns.saturating_sub(flow.seen_ns) as f64 * 1e-9,
        }
    }
}

impl Status {
    /// Formats the lines of `host status`.
    pub fn lines(&self) -> Vec<String> {
        let c = &self.counters;
        let mut lines = vec![format!(
            "datagrams of ports {}: {} questions, {} answers, {} flows stopped obeying, {} datagrams without header",
            self.ports, c.asked, c.answered, c.left_silent, c.without_header
        )];
        let rate = |bps: Option<u64>| bps.map_or("none".into(), |bps| format!("{} kb/s", bps / 1000));
        lines.extend(self.flows.iter().map(|f| {
            let obeys = if f.obeys { "obeys" } else { "asks" };
            let (sends, receives) = (rate(f.rate_bps), rate(f.received_rate_bps));
            format!("  {} -> {}: {obeys}, rate {sends}, received {receives}", f.local, f.remote)
        }));
        lines
    }
}

/// Returns the cookie by which the programs identify this network namespace.
pub fn namespace_cookie() -> Result<u64> {
    const SO_NETNS_COOKIE: i32 = 71;
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let (mut cookie, mut len) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: a descriptor that is open, and a place of the length given.
    let done = unsafe {
        let value = (&raw mut cookie).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, value, &raw mut len)
    };
    if done == 0 { Ok(cookie) } else { Err(std::io::Error::last_os_error()).context("SO_NETNS_COOKIE") }
}

/// The flows of one network namespace.
pub fn flows_of(map: &MapHandle, cookie: u64) -> Vec<(Key, Flow)> {
    let value = |key: &[u8]| map.lookup(key, MapFlags::ANY).ok().flatten();
    map.keys()
        .filter_map(|bytes| Some((value_of::<Key>(&bytes)?, value_of::<Flow>(&value(&bytes)?)?)))
        .filter(|(key, _)| key.netns == cookie)
        .collect()
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Settings {
    ports: [u64; 1024],
    rate_max: u32,
    unused: u32,
}

impl Pins {
    /// Loads the programs for datagrams unless they are loaded, and attaches them to these interfaces too.
    /// Processes of `cgroup` can read their flows' rates.
    pub fn enable_udp(
        &self,
        ports: &Ports,
        rate_max: u32,
        cgroup: &Cgroup,
        interfaces: &[Interface],
    ) -> Result<()> {
        let settings = Settings { ports: ports.bits(), rate_max, unused: 0 };
        if self.at(SETTINGS).exists() {
            self.map(SETTINGS)?.update(&0u32.to_ne_bytes(), bytes_of(&settings), MapFlags::ANY)?;
        } else {
            self.disable_udp()?; // left by an `enable` that was killed
            self.load_udp(&settings, cgroup).inspect_err(|_| drop(self.disable_udp()))?;
        }
        self.attach(interfaces, OUT, TCX_EGRESS)?;
        self.attach(interfaces, IN, TCX_INGRESS)
    }

    fn load_udp(&self, settings: &Settings, cgroup: &Cgroup) -> Result<()> {
        let refused = |e: libbpf_rs::Error| {
            Refusal(format!(
                "--udp: this kernel refuses the programs: {e}; set FLOWSTAMP_BPF_LOG=1 to see why"
            ))
        };
        let mut object = MaybeUninit::uninit();
        let open = skel::UdpSkelBuilder::default().open(&mut object).context("opening the programs")?;
        let mut skel = open.load().map_err(refused)?;
        skel.maps.settings.update(&0u32.to_ne_bytes(), bytes_of(settings), MapFlags::ANY)?;
        skel.maps.flows.pin(self.at(FLOWS))?;
        skel.maps.classes.pin(self.at(CLASSES))?;
        skel.maps.counters.pin(self.at(COUNTERS))?;
        skel.progs.fs_udp_out.pin(self.at(OUT))?;
        skel.progs.fs_udp_in.pin(self.at(IN))?;
        let reader = &mut skel.progs.fs_udp_rate;
        reader.attach_cgroup(cgroup.directory.as_raw_fd()).map_err(refused)?.pin(self.at("udp-rate"))?;
        skel.maps.settings.pin(self.at(SETTINGS))?;
        Ok(())
    }

    /// Removes the programs for datagrams.
    pub fn disable_udp(&self) -> Result<()> {
        self.remove_pins(|pin| pin.starts_with("udp-"))
    }

    /// The state of this namespace's datagrams, if `--udp` is enabled.
    pub fn udp_status(&self) -> Result<Option<Status>> {
        if !self.at(SETTINGS).exists() {
            return Ok(None);
        }
        let settings = self.map(SETTINGS)?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
        let settings: Settings = settings.and_then(|bytes| value_of(&bytes)).context("no settings")?;
        let counters = self.map(COUNTERS)?;
        let read = |which: u32| -> Result<u64> {
            let bytes = counters.lookup(&which.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
            Ok(u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
        };
        let counters =
            Counters { asked: read(0)?, answered: read(1)?, left_silent: read(2)?, without_header: read(3)? };
        let now_ns = monotonic_ns();
        let flows = flows_of(&self.map(FLOWS)?, namespace_cookie()?);
        let flows = flows.iter().map(|(key, flow)| FlowStatus::new(key, flow, now_ns)).collect();
        Ok(Some(Status { ports: Ports::of_bits(&settings.ports).to_string(), counters, flows }))
    }

    /// The cgroup for which hosts are enabled.
    pub fn own_cgroup(&self) -> Result<Cgroup> {
        match self.settings()?.cgroup().as_str() {
            "/" => place::all_of_cgroup2(),
            path => place::open_cgroup(path.as_ref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_shown_and_refused() {
        for text in ["5004", "5004,6000-6010", "1-65535"] {
            let ports: Ports = text.parse().expect(text);
            assert_eq!(ports.to_string(), text);
            assert_eq!(Ports::of_bits(&ports.bits()), ports);
        }
        let joined: Ports = "7,5-6,4".parse().expect("ports");
        assert_eq!(Ports::of_bits(&joined.bits()).to_string(), "4-7");
        for text in ["", "0", "65536", "7-5", "5004,", "udp", "1-2-3", "-5"] {
            assert!(text.parse::<Ports>().is_err(), "{text}");
        }
    }
}
