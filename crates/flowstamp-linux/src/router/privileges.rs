//! Drops a daemon's privileges once it has opened everything that it needs.

/// Access to files whatever their mode says; linux/capability.h.
pub const CAP_DAC_OVERRIDE: u32 = 1;
/// Changing network interfaces; linux/capability.h.
pub const CAP_NET_ADMIN: u32 = 12;
/// Loading programs and opening maps; linux/capability.h.
pub const CAP_BPF: u32 = 39;

/// linux/capability.h.
const VERSION_3: u32 = 0x2008_0522;
const NOBODY: u32 = 65534;

/// Switches root to nobody's user and group, keeps only the named capabilities, and prevents gaining others.
/// Other users stay the same, and keep only those of their ambient capabilities that are named.
pub fn keep_only(capabilities: &[u32]) -> anyhow::Result<()> {
    let done = give_up(capabilities);
    anyhow::ensure!(done, "cannot give up root's privileges: {}", std::io::Error::last_os_error());
    Ok(())
}

fn give_up(capabilities: &[u32]) -> bool {
    let keep = u64::from(!capabilities.is_empty());
    let mut at_parents_end: libc::c_int = 0;
    // SAFETY: the kernel writes one number.
    unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut at_parents_end) };
    // SAFETY: plain numbers, and no groups.
    let done = unsafe {
        libc::geteuid() != 0
            || (libc::prctl(libc::PR_SET_KEEPCAPS, keep, 0, 0, 0) == 0
                && libc::setgroups(0, std::ptr::null()) == 0
                && libc::setresgid(NOBODY, NOBODY, NOBODY) == 0
                && libc::setresuid(NOBODY, NOBODY, NOBODY) == 0)
    };
    // SAFETY: plain numbers. The kernel clears the parent-death signal when the user changes, so it is set
    // again.
    done && set(capabilities)
        && unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, at_parents_end) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        }
}

/// Stays the same user, keeps those of the named capabilities that the process holds, and prevents gaining
/// others.
pub fn keep_held(capabilities: &[u32]) -> anyhow::Result<()> {
    let held: Vec<u32> = capabilities.iter().copied().filter(|capability| holds(*capability)).collect();
    // SAFETY: plain numbers.
    let done = set(&held) && unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 };
    anyhow::ensure!(done, "cannot give up privileges: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Whether the process has a capability.
pub fn holds(capability: u32) -> bool {
    let header = [VERSION_3, 0];
    let mut data = [0u32; 6];
    // SAFETY: the structures of version 3: a version and this thread, and room for two sets of three words.
    let done = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), data.as_mut_ptr()) == 0 };
    done && data[capability as usize / 32 * 3] & (1 << (capability % 32)) != 0
}

/// Sets the effective and permitted capabilities; none is inheritable.
fn set(capabilities: &[u32]) -> bool {
    let bits: u64 = capabilities.iter().map(|c| 1u64 << c).sum();
    let (low, high) = (bits as u32, (bits >> 32) as u32);
    let header = [VERSION_3, 0];
    let data = [low, low, 0, high, high, 0];
    // SAFETY: the structures of version 3: a version and this thread, and two sets of three words.
    unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) == 0 }
}
