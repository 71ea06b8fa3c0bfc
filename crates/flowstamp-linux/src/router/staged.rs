//! Replaces a router by another one without a gap.
//!
//! The new router is pinned next to the old one, in the interface's directory with the suffix `+new`. One
//! system call then gives the link the new program, another one exchanges the directories, and the old router
//! is removed with `+new`. If the command is killed in between, either the old or the new router is attached.
//! Readers use the directory whose state the link's program uses, and the next `attach` completes the
//! interrupted one.

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

/// Suffix of the staged directory's name.
pub const STAGED: &str = "+new";

/// The staged directory of `directory`.
pub fn beside(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(STAGED);
    name.into()
}

/// Opens the link pinned at `path`, if any. Checks first, because libbpf prints an error if nothing is
/// pinned.
fn open(path: &Path) -> Option<Link> {
    path.exists().then(|| Link::open(path).ok()).flatten()
}

/// The link pinned in `directory`, if it is still attached to interface `ifindex`, or to any interface if
/// that is `None`. A removed device detaches it.
fn link_on(directory: &Path, pin: &str, ifindex: Option<u32>) -> Option<Link> {
    let link = open(&directory.join(pin))?;
    let on = match link.info().ok()?.info {
        LinkTypeInfo::Tcx(tcx) => tcx.ifindex,
        _ => 0,
    };
    (on != 0 && ifindex.is_none_or(|i| i == on)).then_some(link)
}

/// Whether the router pinned in `directory` is attached.
pub fn is_on(directory: &Path, ifindex: Option<u32>) -> bool {
    link_on(directory, pins::LINK, ifindex).is_some()
}

/// Numbers of a program's maps.
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

/// Whether the program of the link in `directory` uses the state that is pinned there.
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

/// The directory of the active router: `directory`, unless an `attach` was killed or is running.
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

/// Exchanges `directory` and its staged directory.
pub fn exchange(directory: &Path) -> io::Result<()> {
    let flags = if directory.exists() { libc::RENAME_EXCHANGE } else { 0 };
    rename(&beside(directory), directory, flags)
}

/// Removes the staged directory, but keeps links that `directory` has, too.
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

/// Completes or undoes an `attach` that was killed; returns whether there was one.
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

/// Replaces the program of the link pinned in `directory` on interface `ifindex` by `program`, at the same
/// position and between two packets. Pins the link in the staged directory. Returns whether there was such a
/// link.
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
