//! A network namespace's default congestion control.

use super::pins::Pins;
use super::place::{DEFAULT, OWN, available, current, namespace};
use crate::refusal::Refusal;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Makes `name` the default of this network namespace, and saves the previous one.
pub fn set(pins: &Pins, name: &str) -> Result<()> {
    let was = current()?;
    if was == name {
        return Ok(());
    }
    pins.keep_default(namespace()?, &was)?;
    fs::write(DEFAULT, name).map_err(|e| Refusal(format!("{DEFAULT} does not take {name:?}: {e}")).into())
}

/// Restores the previous default in each network namespace that can be found. A namespace created meanwhile
/// inherited ours and gets `cubic` or `reno`.
pub fn restore(pins: &Pins, name: &str) -> Result<()> {
    let ours = crate::law::LAWS.map(|law| law.congestion_control(name));
    let own = File::open(OWN).context(OWN)?;
    let inherited = || if available("cubic").unwrap_or(false) { "cubic" } else { "reno" }.to_owned();
    let (mut seen, mut failed) = (BTreeSet::new(), None);
    for path in std::iter::once(PathBuf::from(OWN)).chain(namespaces()) {
        let Ok(file) = File::open(&path) else { continue };
        let Ok(inode) = file.metadata().map(|m| m.ino()) else { continue };
        if !seen.insert(inode) || enter(&file).is_err() {
            continue;
        }
        if current().is_ok_and(|c| ours.contains(&c)) {
            let was = pins.kept_default(inode).unwrap_or_else(inherited);
            if let Err(error) = fs::write(DEFAULT, &was) {
                failed = Some(error);
            }
        }
    }
    enter(&own)?;
    failed.map_or(Ok(()), |e| Err(e).context(DEFAULT))
}

fn enter(namespace: &File) -> Result<()> {
    // SAFETY: a system call on a descriptor that is open.
    let done = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()).context("setns") }
}

fn namespaces() -> impl Iterator<Item = PathBuf> {
    let entries = |path: &str| fs::read_dir(path).into_iter().flatten().flatten();
    let named = entries("/run/netns").map(|e| e.path());
    let of_processes = entries("/proc")
        .filter(|e| e.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .map(|e| e.path().join("ns/net"));
    named.chain(of_processes)
}
