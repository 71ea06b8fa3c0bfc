//! Namespaces, cgroups and interfaces.

use crate::bpffs;
use crate::refusal::Refusal;
use anyhow::{Context, Result};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// File with the default congestion control of this network namespace.
pub const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// File of this network namespace.
pub const OWN: &str = "/proc/self/ns/net";

/// Refuses to run without root.
pub fn require_root() -> Result<()> {
    // SAFETY: has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        return Ok(());
    }
    Err(Refusal("`flowstamp host` loads BPF programs: run it as root".into()).into())
}

/// Moves to the mount namespace of the oldest ancestor that allows it. `ip netns exec` creates a mount
/// namespace with its own /sys, where pins would vanish with its process. The network namespace stays.
pub fn enter_eldest_mount_namespace() -> Result<()> {
    let own = std::fs::metadata("/proc/self/ns/mnt").context("/proc/self/ns/mnt")?.ino();
    for ancestor in ancestors().iter().rev() {
        let Ok(file) = File::open(format!("/proc/{ancestor}/ns/mnt")) else { continue };
        // SAFETY: a system call on a descriptor that is open.
        if file.metadata()?.ino() == own || unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNS) } == 0 {
            break;
        }
    }
    Ok(())
}

/// Process numbers of all ancestors, the parent first.
fn ancestors() -> Vec<u32> {
    let mut found = Vec::new();
    let mut process = std::process::id();
    while process > 1 {
        // The name in brackets may contain any character; the parent is the second field after it.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { break };
        let rest = stat.rsplit(')').next().unwrap_or_default();
        let Some(parent) = rest.split_whitespace().nth(1).and_then(|p| p.parse().ok()) else { break };
        found.push(parent);
        process = parent;
    }
    found
}

/// The default congestion control of this network namespace.
pub fn current() -> Result<String> {
    Ok(std::fs::read_to_string(DEFAULT).context(DEFAULT)?.trim().to_owned())
}

/// Whether the congestion control `name` is registered.
pub fn available(name: &str) -> Result<bool> {
    Ok(std::fs::read_to_string(AVAILABLE).context(AVAILABLE)?.split_whitespace().any(|n| n == name))
}

/// The inode that identifies this network namespace.
pub fn namespace() -> Result<u64> {
    Ok(std::fs::metadata(OWN).context(OWN)?.ino())
}

/// An open cgroup of version 2.
pub struct Cgroup {
    pub directory: File,
    /// Its path for users.
    pub path: String,
}

/// Opens the cgroup at `path`.
pub fn open_cgroup(path: &Path) -> Result<Cgroup> {
    let refusal = |what: String| Refusal(format!("--cgroup {}: {what}", path.display()));
    let kind = bpffs::kind(path).map_err(|e| refusal(e.to_string()))?;
    if kind != libc::CGROUP2_SUPER_MAGIC {
        return Err(refusal("not a directory of cgroup version 2".into()).into());
    }
    let directory = File::open(path).map_err(|e| refusal(e.to_string()))?;
    Ok(Cgroup { directory, path: path.canonicalize()?.display().to_string() })
}

/// Opens the root cgroup, whether cgroup version 2 is mounted or not.
pub fn all_of_cgroup2() -> Result<Cgroup> {
    let refusal = |what: &str| Refusal(format!("{what} cgroup version 2: {}", io::Error::last_os_error()));
    // SAFETY: strings that end in NUL; each descriptor is owned once.
    let directory = unsafe {
        let context = libc::syscall(libc::SYS_fsopen, c"cgroup2".as_ptr(), 0);
        if context < 0 {
            return Err(refusal("this kernel has no").into());
        }
        let context = File::from_raw_fd(context as i32);
        const CREATE: i32 = 6; // FSCONFIG_CMD_CREATE
        let none = std::ptr::null::<libc::c_char>();
        if libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, none, none, 0) < 0 {
            return Err(refusal("cannot open").into());
        }
        let mount = libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 0, 0);
        if mount < 0 {
            return Err(refusal("cannot mount").into());
        }
        File::from_raw_fd(mount as i32)
    };
    Ok(Cgroup { directory, path: "/".into() })
}

/// An interface of this network namespace.
pub struct Interface {
    pub name: String,
    pub index: u32,
}

/// The named interfaces, or all Ethernet interfaces: the egress program requires an Ethernet header.
pub fn interfaces(named: &[String]) -> Result<Vec<Interface>> {
    let all = all_interfaces()?;
    if named.is_empty() {
        return Ok(all.into_iter().filter(|i| is_ethernet(&i.name)).collect());
    }
    for name in named {
        if !all.iter().any(|i| i.name == *name) {
            let there: Vec<_> = all.iter().map(|i| i.name.as_str()).collect();
            return Err(Refusal(format!("--iface {name}: there are {}", there.join(", "))).into());
        }
        if !is_ethernet(name) {
            return Err(Refusal(format!("--iface {name}: not an Ethernet interface")).into());
        }
    }
    Ok(all.into_iter().filter(|i| named.contains(&i.name)).collect())
}

/// All interfaces of this network namespace.
pub fn all_interfaces() -> Result<Vec<Interface>> {
    // SAFETY: the list ends where its index is zero, and is freed once.
    unsafe {
        let list = libc::if_nameindex();
        if list.is_null() {
            return Err(io::Error::last_os_error()).context("listing interfaces");
        }
        let mut found = Vec::new();
        let mut at = list;
        while (*at).if_index != 0 {
            let name = CStr::from_ptr((*at).if_name).to_string_lossy().into_owned();
            found.push(Interface { name, index: (*at).if_index });
            at = at.add(1);
        }
        libc::if_freenameindex(list);
        Ok(found)
    }
}

fn is_ethernet(name: &str) -> bool {
    // SAFETY: the request is zeroed, the name shorter than its field and the descriptor owned once.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return false;
        }
        let socket = File::from_raw_fd(socket);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &mut request) == 0
            && request.ifr_ifru.ifru_hwaddr.sa_family == libc::ARPHRD_ETHER
    }
}
