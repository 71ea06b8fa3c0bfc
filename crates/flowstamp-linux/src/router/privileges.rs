//! What a daemon gives up once everything that it needs is open.

/// Changing network interfaces; linux/capability.h.
pub const CAP_NET_ADMIN: u32 = 12;

/// linux/capability.h.
const VERSION_3: u32 = 0x2008_0522;
const NOBODY: u32 = 65534;

/// From here on nobody's user and group, the capabilities that are named, and no way to others. Who is not root stays who he is,
/// with no more of what he was given (ambient capabilities) than is named.
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
    // SAFETY: plain numbers. With another user the kernel forgets what ends with its parent.
    done && set(capabilities)
        && unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, at_parents_end) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        }
}

/// The effective and permitted sets; nothing is inheritable.
fn set(capabilities: &[u32]) -> bool {
    let bits: u32 = capabilities.iter().map(|c| 1 << c).sum();
    let header = [VERSION_3, 0];
    let data = [bits, bits, 0, 0, 0, 0];
    // SAFETY: the structures of version 3: a version and this thread, and two sets of three words.
    unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) == 0 }
}
