//! Pins that outlive the command: one directory per interface in a BPF file system.

use super::Interface;
use crate::bpf::router::types;
use crate::bpf::value_of;
use crate::bpffs;
use crate::refusal::Refusal;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut};
use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The refusal if the kernel does not load or attach a program.
pub fn no_bpf(error: &libbpf_rs::Error) -> Refusal {
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    Refusal(if root {
        format!(
            "the kernel refuses the router's program ({error}); it needs Linux 6.6 with BTF; see `flowstamp doctor`"
        )
    } else {
        "the router needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON".into()
    })
}

/// Creates `root` in a BPF file system, which it mounts at the usual place if necessary. Locks `root` until
/// the returned file is dropped.
pub fn prepare(root: &Path) -> anyhow::Result<File> {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return Err(Refusal("the router needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON".into()).into());
    }
    bpffs::check_owners(root)?;
    let existing = root.ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
    if !bpffs::has(existing) {
        let usual = Path::new(bpffs::USUAL);
        if !root.starts_with(usual) {
            let text =
                format!("--pins {} is not in a BPF file system (mount -t bpf bpf DIR)", root.display());
            return Err(Refusal(text).into());
        }
        let ours = fs::read_link("/proc/self/ns/mnt").ok();
        if ours != fs::read_link("/proc/1/ns/mnt").ok() {
            let text = "/sys/fs/bpf is not mounted in this mount namespace; use --netns rather than \
                        `ip netns exec`, or in a container `mount -t bpf bpf /sys/fs/bpf` first";
            return Err(Refusal(text.into()).into());
        }
        bpffs::mount()?;
    }
    create(root)?;
    let lock = bpffs::lock(root)?;
    bpffs::check_owners(root)?;
    Ok(lock)
}

/// Creates a directory and its parents, accessible only by root.
pub fn create(directory: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// A file name for the interface without dots, which a BPF file system does not allow, and unique across
/// namespaces.
fn file_name(interface: &Interface) -> String {
    let mut name = interface.netns.as_ref().map_or_else(String::new, |n| format!("{n}:"));
    name.push_str(&interface.name);
    name.replace('%', "%25").replace('.', "%2e").replace('/', "%2f")
}

/// Pins of the links for sent and for received packets, in the interface's directory.
pub const LINK: &str = "link";
pub const LINK_IN: &str = "link-in";

/// Converts a file name back into the user's name of the interface.
pub fn shown_name(file: &str) -> String {
    file.replace("%2f", "/").replace("%2e", ".").replace("%25", "%")
}

pub fn directory(interface: &Interface) -> PathBuf {
    interface.pins.root.join(file_name(interface))
}

/// The police's directory of pins, next to the router's.
pub fn of_police(interface: &Interface) -> PathBuf {
    let mut name = directory(interface).into_os_string();
    name.push("+police");
    name.into()
}

/// Suffix of the name of a SCONE element's directory.
pub const SCONE: &str = "+scone";

/// The SCONE element's directory of pins, next to the router's.
pub fn of_scone(interface: &Interface) -> PathBuf {
    let mut name = directory(interface).into_os_string();
    name.push(SCONE);
    name.into()
}

/// The configuration of the router pinned in `directory`.
pub fn pinned_config(directory: &Path) -> Option<types::fs_config> {
    let map = MapHandle::from_pinned_path(directory.join("config")).ok()?;
    value_of(&map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??)
}

/// Opens a pinned map read-only, because a daemon keeps its open maps after it has dropped its privileges.
pub fn open_to_read(path: &Path) -> libbpf_rs::Result<MapHandle> {
    MapHandle::from_pinned_path_with_file_flags(path, libbpf_rs::libbpf_sys::BPF_F_RDONLY)
}

/// Whether an interface's directory was removed after it was opened.
pub fn is_gone(directory: &File) -> bool {
    directory.metadata().is_ok_and(|m| m.nlink() == 0)
}

/// Stops the law's timer, which would continue while any process has the map open. The kernel cancels it when
/// its map element is written.
fn stop_timer(directory: &Path) -> libbpf_rs::Result<()> {
    let (state, key) = (MapHandle::from_pinned_path(directory.join("state"))?, 0u32.to_ne_bytes());
    state.lookup(&key, MapFlags::ANY)?.map_or(Ok(()), |bytes| state.update(&key, &bytes, MapFlags::ANY))
}

/// Pins a link and its maps in `directory`. On failure, nothing stays.
pub fn adopt(
    directory: &Path,
    link: &mut libbpf_rs::Link,
    maps: &mut [(&mut MapMut<'_>, &str)],
) -> anyhow::Result<()> {
    create(directory)?;
    let pinned = maps
        .iter_mut()
        .try_for_each(|(map, name)| map.pin(directory.join(name)))
        .and_then(|()| link.pin(directory.join("link")));
    if let Err(error) = pinned {
        let _ = remove(directory);
        return Err(error.into());
    }
    Ok(())
}

/// Detaches and removes everything in `directory`, even if another process has it open.
pub fn remove(directory: &Path) -> anyhow::Result<()> {
    // Detaches the links first, so that no packet passes a router without a law. Detaching takes effect at
    // once, while the kernel frees unpinned links slowly.
    for link in [LINK, LINK_IN].map(|name| directory.join(name)).iter().filter(|link| link.exists()) {
        let _ = libbpf_rs::Link::open(link).and_then(|link| link.detach());
        let _ = fs::remove_file(link);
    }
    // Fails for the police, which has no timer.
    let _ = stop_timer(directory);
    for entry in fs::read_dir(directory)? {
        fs::remove_file(entry?.path())?;
    }
    fs::remove_dir(directory)?;
    Ok(())
}

/// Removes directories that have become empty.
pub fn tidy(root: &Path) {
    for path in [Some(root), root.parent()].into_iter().flatten() {
        if bpffs::has(path) && path != Path::new(bpffs::USUAL) {
            let _ = fs::remove_dir(path);
        }
    }
}

/// Moves this thread into the interface's network namespace, where it stays.
pub fn enter(interface: &Interface) -> anyhow::Result<()> {
    let Some(name) = &interface.netns else { return Ok(()) };
    let path = if name.contains('/') { PathBuf::from(name) } else { Path::new("/run/netns").join(name) };
    let file = File::open(&path)
        .map_err(|e| Refusal(format!("--netns {name}: {} cannot be opened ({e})", path.display())))?;
    // SAFETY: a descriptor that is open.
    if unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Refusal(format!("--netns {name}: not a network namespace ({error})")).into());
    }
    Ok(())
}

/// The interface's index, and the length of its link-layer header in bytes.
pub fn look_up(name: &str) -> Result<(u32, u64), Refusal> {
    let absent = || Refusal(format!("there is no interface {name} (`ip link` lists them)"));
    let text = CString::new(name).map_err(|_| absent())?;
    if name.len() >= libc::IFNAMSIZ {
        return Err(absent());
    }
    // SAFETY: a terminated name; a request with room for it; a descriptor that is open.
    let (index, family) = unsafe {
        let index = libc::if_nametoindex(text.as_ptr());
        if index == 0 {
            return Err(absent());
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(text.as_bytes()) {
            *to = *from as libc::c_char;
        }
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let done = libc::ioctl(socket, libc::SIOCGIFHWADDR, &raw mut request);
        libc::close(socket);
        if done != 0 {
            return Err(absent());
        }
        (index, request.ifr_ifru.ifru_hwaddr.sa_family)
    };
    match family {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok((index, 14)),
        libc::ARPHRD_NONE
        | libc::ARPHRD_PPP
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT
        | libc::ARPHRD_IPGRE => Ok((index, 0)),
        other => Err(Refusal(format!(
            "{name} has hardware type {other}; the router supports Ethernet and bare IP"
        ))),
    }
}
