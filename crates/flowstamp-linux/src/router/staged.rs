//! A router that takes another's place without a gap.
//!
//! What is new is pinned beside what is there, in the interface's directory with `+new` behind its name. Then one system call gives
//! the link the new program, another exchanges the directories, and what was old goes with `+new`. Killed in between, a router is
//! attached, the old or the new: whoever looks goes by the directory whose state the link's program works on, and the next
//! `attach` ends what the killed one began.

use super::pins;
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapHandle, Program, libbpf_sys};
use std::ffi::CString;
use std::fs;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the directory's name ends in.
pub const STAGED: &str = "+new";

/// Where what is new is pinned.
pub fn beside(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(STAGED);
    name.into()
}

/// What is pinned as `path`, if anything is: libbpf would print that nothing is.
fn open(path: &Path) -> Option<Link> {
    path.exists().then(|| Link::open(path).ok()).flatten()
}

/// The link pinned in `directory`, if it still is on interface `ifindex`, or on any: a device that went away takes it off.
fn link_on(directory: &Path, pin: &str, ifindex: Option<u32>) -> Option<Link> {
    let link = open(&directory.join(pin))?;
    let on = match link.info().ok()?.info {
        LinkTypeInfo::Tcx(tcx) => tcx.ifindex,
        _ => 0,
    };
    (on != 0 && ifindex.is_none_or(|i| i == on)).then_some(link)
}

/// Whether there is one.
pub fn is_on(directory: &Path, ifindex: Option<u32>) -> bool {
    link_on(directory, pins::LINK, ifindex).is_some()
}

/// The maps of a program.
fn maps_of(program: u32) -> Option<Vec<u32>> {
    let program = Program::fd_from_id(program).ok()?;
    let mut ids = vec![0u32; 64];
    // SAFETY: plain numbers, of which zeroes are a value; the kernel writes no more than there is room for.
    let count = unsafe {
        let mut info: libbpf_sys::bpf_prog_info = zeroed();
        info.map_ids = ids.as_mut_ptr() as u64;
        info.nr_map_ids = ids.len() as u32;
        let mut size = size_of::<libbpf_sys::bpf_prog_info>() as u32;
        let to = (&raw mut info).cast();
        let done = libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), to, &raw mut size);
        if done != 0 {
            return None;
        }
        info.nr_map_ids
    };
    ids.truncate(count as usize);
    Some(ids)
}

/// Whether the program of the link pinned in `directory` works on the state that is pinned there.
fn is_in_use(directory: &Path) -> bool {
    let in_use = || {
        let link = open(&directory.join(pins::LINK))?.info().ok()?;
        let state = pins::open_to_read(&directory.join("state")).ok()?;
        let id = map_id(&state)?;
        Some(maps_of(link.prog_id)?.contains(&id))
    };
    in_use().unwrap_or(false)
}

fn map_id(map: &MapHandle) -> Option<u32> {
    // SAFETY: as above.
    unsafe {
        let mut info: libbpf_sys::bpf_map_info = zeroed();
        let mut size = size_of::<libbpf_sys::bpf_map_info>() as u32;
        let fd = map.as_fd().as_raw_fd();
        let done = libbpf_sys::bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &raw mut size);
        (done == 0).then_some(info.id)
    }
}

/// Where the interface's router is, which is `directory` unless an `attach` was killed, or is at it now.
pub fn settled(directory: &Path) -> PathBuf {
    let new = beside(directory);
    if new.exists() && is_in_use(&new) { new } else { directory.to_owned() }
}

fn rename(from: &Path, to: &Path, flags: u32) -> io::Result<()> {
    let [from, to] = [from, to].map(|path| CString::new(path.as_os_str().as_bytes()));
    let (from, to) = (from?, to?);
    let here = libc::AT_FDCWD;
    // SAFETY: terminated names.
    let done = unsafe { libc::renameat2(here, from.as_ptr(), here, to.as_ptr(), flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What was beside `directory` is there now, and what was there is beside it.
pub fn exchange(directory: &Path) -> io::Result<()> {
    let flags = if directory.exists() { libc::RENAME_EXCHANGE } else { 0 };
    rename(&beside(directory), directory, flags)
}

/// Takes away what is beside `directory`, but for links that `directory` has, too.
pub fn discard(directory: &Path) -> anyhow::Result<()> {
    let new = beside(directory);
    if !new.exists() {
        return Ok(());
    }
    let id = |link: &Path| Some(open(link)?.info().ok()?.id);
    for pin in [pins::LINK, pins::LINK_IN] {
        let (link, kept) = (new.join(pin), directory.join(pin));
        if link.exists() && id(&link) == id(&kept) {
            fs::remove_file(link)?;
        }
    }
    pins::remove(&new)
}

/// Ends what an `attach` that was killed began; whether there was one.
pub fn recover(directory: &Path) -> anyhow::Result<bool> {
    let new = beside(directory);
    if !new.exists() {
        return Ok(false);
    }
    if is_in_use(&new) {
        exchange(directory)?;
    }
    discard(directory)?;
    Ok(true)
}

/// Has `program` do what the link pinned in `directory` on interface `ifindex` did, at the same place among others, from one packet to the
/// next; pinned beside it. Whether there was such a link.
pub fn take_over(directory: &Path, pin: &str, ifindex: u32, program: BorrowedFd<'_>) -> anyhow::Result<bool> {
    let Some(link) = link_on(directory, pin, Some(ifindex)) else { return Ok(false) };
    let name = CString::new(beside(directory).join(pin).as_os_str().as_bytes())?;
    let fd = link.as_fd().as_raw_fd();
    let checked = |done: i32| if done == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-done)) };
    // SAFETY: descriptors that are open, and a terminated name; no options.
    unsafe {
        checked(libbpf_sys::bpf_obj_pin(fd, name.as_ptr()))?;
        checked(libbpf_sys::bpf_link_update(fd, program.as_raw_fd(), std::ptr::null()))?;
    }
    Ok(true)
}
