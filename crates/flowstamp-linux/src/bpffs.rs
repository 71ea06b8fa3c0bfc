//! The BPF file system, which holds the pins of programs and maps that outlive a command.

use crate::refusal::Refusal;
use anyhow::{Context, Result};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The usual mount point, also of systemd, bpftool and iproute2.
pub const USUAL: &str = "/sys/fs/bpf";

/// The magic number of the file system that contains `path`.
pub fn kind(path: &Path) -> io::Result<libc::__fsword_t> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut buffer = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends in NUL, and the buffer is written before it is read.
    unsafe {
        match libc::statfs(path.as_ptr(), buffer.as_mut_ptr()) {
            0 => Ok(buffer.assume_init().f_type),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether `path` is in a BPF file system.
pub fn has(path: &Path) -> bool {
    kind(path).is_ok_and(|kind| kind == libc::BPF_FS_MAGIC)
}

/// Refuses a directory for pins that users other than root can write, because the commands attach and read
/// the objects pinned there.
pub fn check_owners(path: &Path) -> Result<(), Refusal> {
    for folder in path.ancestors() {
        let is_mount = folder.parent().is_none_or(|parent| !has(parent));
        if is_mount && !has(folder) {
            continue;
        }
        // Does not follow symbolic links, because their owner decides where they lead.
        let Ok(found) = folder.symlink_metadata() else { continue };
        let others = found.mode() & 0o022 != 0;
        // The mount point is world-writable by default, but the sticky bit protects each user's files.
        let kept_apart = is_mount && found.mode() & libc::S_ISVTX != 0;
        let why = if found.uid() != 0 {
            format!("is owned by user {}", found.uid())
        } else if !found.is_dir() {
            "is not a folder".into()
        } else if others && !kept_apart {
            format!("can be written by others than root (mode {:04o})", found.mode() & 0o7777)
        } else {
            continue;
        };
        return Err(Refusal(format!(
            "{} {why}: pins in it may be anybody's; remove it first",
            folder.display()
        )));
    }
    Ok(())
}

/// Whether the BPF file system is mounted at [`USUAL`].
pub fn is_mounted() -> bool {
    has(Path::new(USUAL))
}

/// Mounts the BPF file system at [`USUAL`] if it is not mounted. It stays mounted.
pub fn mount() -> Result<()> {
    // Checks without the lock first: any user may hold the lock, so only a process that mounts waits for it.
    if is_mounted() {
        return Ok(());
    }
    // Two concurrent mounts would hide each other's pins.
    let _lock = lock(Path::new("/sys/fs"))?;
    if is_mounted() {
        return Ok(());
    }
    // SAFETY: strings that end in NUL.
    let done = unsafe {
        let kind = c"bpf".as_ptr();
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        libc::mount(kind, c"/sys/fs/bpf".as_ptr(), kind, flags, c"mode=0700".as_ptr().cast())
    };
    if done == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(Refusal(format!("the BPF file system cannot be mounted at {USUAL}: {error}")).into())
}

/// Locks the directory `path` exclusively until the returned file is dropped.
pub fn lock(path: &Path) -> Result<File> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    // SAFETY: a system call on a descriptor that is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
        return Err(io::Error::last_os_error()).with_context(|| format!("locking {}", path.display()));
    }
    Ok(file)
}
