//! Detects which kernel features and tools this machine has, by trying them where possible.

use crate::path::By;
use crate::refusal::Refusal;
use crate::router::sight;
use serde::Serialize;
use std::borrow::Cow;
use std::process::{Command, Stdio};

/// A feature that a command needs, or uses if present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Root, or the capabilities to load programs and change networks.
    Privileges,
    /// Type information of the running kernel, used to relocate programs (CO-RE).
    Btf,
    /// TCP congestion control in BPF.
    StructOps,
    /// BPF programs on a cgroup's sockets.
    Cgroup2,
    /// BPF programs at an interface that stay attached after the command ends.
    Tcx,
    /// The older hook for such programs.
    Clsact,
    /// The queueing discipline tbf, for a bottleneck of a given rate.
    Tbf,
    /// The queueing discipline htb, for classes of traffic.
    Htb,
    /// The queueing discipline netem, for delay and loss.
    Netem,
    /// AF_XDP sockets, which bypass the network stack, for the emulated path.
    AfXdp,
    /// TAP devices, for the emulated path where AF_XDP is missing.
    Tap,
    Namespaces,
    /// The programs ip, tc and ethtool.
    Iproute2,
    Iperf3,
    /// The backlog of an interface's root queueing discipline shows its queue.
    Queue,
}

/// The state of one feature.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub feature: Feature,
    /// Its name for users.
    pub name: Cow<'static, str>,
    pub present: bool,
    /// Whether its presence could be determined.
    pub known: bool,
    /// Commands that need it.
    pub needed_by: &'static [&'static str],
    /// The consequence or remedy if it is missing.
    pub without: Cow<'static, str>,
}

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;

impl Feature {
    const ALL: [(Self, &'static str, &'static [&'static str], &'static str); 14] = [
        (Self::Privileges, "CAP_BPF and CAP_NET_ADMIN", &["host", "router", "lab"], "run as root"),
        (
            Self::Btf,
            "kernel types (BTF)",
            &["host", "router"],
            "a kernel with CONFIG_DEBUG_INFO_BTF is needed",
        ),
        (
            Self::StructOps,
            "TCP congestion control by BPF",
            &["host"],
            "a kernel of 5.6 or later with CONFIG_BPF_JIT is needed",
        ),
        (
            Self::Cgroup2,
            "control groups, version 2",
            &["host"],
            "a kernel with CONFIG_CGROUPS and CONFIG_CGROUP_BPF is needed",
        ),
        (Self::Tcx, "programs at an interface (tcx)", &["router", "host"], "Linux 6.6 or later is needed"),
        (Self::Clsact, "the qdisc clsact", &[], "not used: programs attach by tcx"),
        (
            Self::Tbf,
            "the qdisc tbf",
            &[],
            "a bottleneck needs a rate of its own: the interface's, or the lab's path",
        ),
        (
            Self::Htb,
            "the qdisc htb",
            &[],
            "other traffic, policed flows and, without fq, datagrams get no class of their own",
        ),
        (Self::Netem, "the qdisc netem", &[], "not used: delay comes from the lab's own path"),
        (
            Self::AfXdp,
            "AF_XDP sockets",
            &[],
            "the lab's path uses TAP devices, which do not say when a frame came",
        ),
        (Self::Tap, "TAP devices", &[], "the lab's path needs AF_XDP, or a kernel with CONFIG_TUN"),
        (Self::Namespaces, "network namespaces", &["lab"], "a kernel with CONFIG_NET_NS is needed"),
        (Self::Iproute2, "ip, tc and ethtool", &["lab"], "install iproute2 and ethtool"),
        (Self::Iperf3, "iperf3", &[], "labs can run flows of kind http only; install iperf3"),
    ];

    /// Whether only root can detect it.
    const fn is_known_to_root(self) -> bool {
        matches!(
            self,
            Self::Clsact | Self::Tbf | Self::Htb | Self::Netem | Self::AfXdp | Self::Tap | Self::Namespaces
        )
    }

    /// Whether it is present, by trying it where possible.
    pub fn is_present(self) -> bool {
        match self {
            Self::Privileges => {
                let has = capabilities();
                has & (1 << CAP_NET_ADMIN) != 0 && has & (1 << CAP_BPF | 1 << CAP_SYS_ADMIN) != 0
            }
            Self::Btf => std::path::Path::new("/sys/kernel/btf/vmlinux").exists(),
            Self::StructOps => libbpf_rs::btf::Btf::from_vmlinux().is_ok_and(|btf| {
                btf.type_by_name::<libbpf_rs::btf::types::Struct<'_>>("bpf_struct_ops_tcp_congestion_ops")
                    .is_some()
            }),
            // The mount does not matter: `host` opens its own, and `ip netns exec` hides existing ones.
            Self::Cgroup2 => std::fs::read_to_string("/proc/filesystems").is_ok_and(|kinds| {
                kinds.lines().any(|line| line.split_whitespace().last() == Some("cgroup2"))
            }),
            // Only attaching a program to an interface could test this.
            Self::Tcx => kernel_version() >= (6, 6),
            Self::Clsact => qdisc(&["clsact"]),
            Self::Tbf => qdisc(&["root", "tbf", "rate", "1mbit", "burst", "10kb", "limit", "10kb"]),
            Self::Htb => qdisc(&["root", "htb"]),
            Self::Netem => qdisc(&["root", "netem", "delay", "1ms"]),
            Self::AfXdp => By::AfXdp.missing().is_none(),
            Self::Tap => By::Tap.missing().is_none(),
            Self::Namespaces => quiet(Command::new("unshare").args(["--net", "true"])),
            Self::Iproute2 => ["ip", "tc", "ethtool"].iter().all(|name| on_path(name)),
            Self::Iperf3 => on_path("iperf3"),
            // Depends on the interface; see `findings`.
            Self::Queue => false,
        }
    }
}

#[must_use]
pub fn findings() -> Vec<Finding> {
    let root = Feature::Privileges.is_present();
    let mut findings: Vec<_> = Feature::ALL
        .iter()
        .map(|&(feature, name, needed_by, without)| {
            let present = feature.is_present();
            let known = root || !feature.is_known_to_root();
            let without = if known { without } else { "not known without root" };
            Finding { feature, name: name.into(), present, known, needed_by, without: without.into() }
        })
        .collect();
    findings.extend(sight::of_all().into_iter().map(|(interface, doubt)| Finding {
        feature: Feature::Queue,
        name: format!("a queue at {interface} for xcp-b").into(),
        present: doubt.is_none(),
        known: true,
        needed_by: &[],
        without: doubt.unwrap_or_default().into(),
    }));
    findings
}

/// Refuses `command` in one line if this machine lacks features that it needs.
///
/// # Errors
/// The features that `command` needs and that are missing.
pub fn require(command: &str) -> Result<(), Refusal> {
    let root = Feature::Privileges.is_present();
    let missing: Vec<String> = Feature::ALL
        .iter()
        .filter(|(_, _, needed_by, _)| needed_by.contains(&command))
        .filter(|(feature, ..)| (root || !feature.is_known_to_root()) && !feature.is_present())
        .map(|(_, name, _, without)| format!("{name} ({without})"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal(format!("{command}: this machine lacks {}", missing.join(", "))))
}

/// Major and minor number of the running kernel.
fn kernel_version() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The effective capabilities of this process, a bit for each.
fn capabilities() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        })
        .unwrap_or(0)
}

/// Whether a queueing discipline can be set, tried in a temporary network namespace.
fn qdisc(words: &[&str]) -> bool {
    quiet(Command::new("unshare").args(["--net", "tc", "qdisc", "add", "dev", "lo"]).args(words))
}

fn on_path(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).exists()))
}

fn quiet(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}
