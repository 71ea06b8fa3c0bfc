//! One interface, whole frames in and out, by AF_PACKET: a ring for what comes, which carries the kernel's time stamps, and
//! `sendmmsg` for what goes.

use super::super::{clock_ns, monotonic_ns};
use super::option;
use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;

/// Room for a frame in the ring; what does not fit is cut, and dropped by the path.
const SLOT_BYTES: usize = 2048;
const SLOTS: usize = 8192;
const BLOCK_BYTES: usize = 1 << 16;
/// linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
/// Frames handed to the kernel at once.
const BATCH: usize = 64;

/// An interface.
pub struct Port {
    socket: OwnedFd,
    ring: *mut u8,
    next: usize,
}

// The ring is this port's alone.
unsafe impl Send for Port {}

impl Port {
    /// Opens the interface of this name in the thread's network namespace.
    pub fn open(name: &str) -> io::Result<Self> {
        let c_name = CString::new(name)?;
        // SAFETY: `c_name` ends in zero.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: no pointers; the descriptor is this port's from here on. Protocol zero: nothing comes before `bind`.
        let socket = unsafe {
            let fd =
                libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let fd = socket.as_raw_fd();
        option(
            fd,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V2 as libc::c_int),
        )?;
        option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)?;
        option(fd, libc::SOL_PACKET, PACKET_QDISC_BYPASS, &1i32)?;
        super::send_buffer(fd)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (SLOTS * SLOT_BYTES / BLOCK_BYTES) as u32,
            tp_frame_size: SLOT_BYTES as u32,
            tp_frame_nr: SLOTS as u32,
        };
        option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a new mapping of the ring just asked for; `Drop` undoes it.
        let ring = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(null_mut(), SLOTS * SLOT_BYTES, access, libc::MAP_SHARED, fd, 0)
        };
        if ring == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let port = Self { socket, ring: ring.cast(), next: 0 };
        // SAFETY: all zero is an address; the kernel reads its size.
        let bound = unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = index as i32;
            let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            libc::bind(fd, std::ptr::from_ref(&address).cast(), size)
        };
        if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(port) }
    }

    /// What to wait on.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The next frame that came: appended to `into`, which is empty; its time as `super::Port::receive` has it.
    /// A frame that was cut leaves `into` empty.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Option<u64> {
        // SAFETY: slot `next` lies in the ring; its header is aligned, and once the status says so the kernel leaves the
        // slot to us until the status is given back.
        unsafe {
            let slot = self.ring.add(self.next * SLOT_BYTES);
            let header: *mut libc::tpacket2_hdr = slot.cast();
            let status = std::sync::atomic::AtomicU32::from_ptr(&raw mut (*header).tp_status);
            if status.load(std::sync::atomic::Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return None;
            }
            let (len, captured) = ((*header).tp_len, (*header).tp_snaplen);
            let at = usize::from((*header).tp_mac);
            if len == captured && at + captured as usize <= SLOT_BYTES {
                into.extend_from_slice(std::slice::from_raw_parts(slot.add(at), captured as usize));
            }
            let real_ns = u64::from((*header).tp_sec) * 1_000_000_000 + u64::from((*header).tp_nsec);
            status.store(libc::TP_STATUS_KERNEL, std::sync::atomic::Ordering::Release);
            self.next = (self.next + 1) % SLOTS;
            // The ring's time stamps are of the real-time clock, which may be set: only how long ago they are counts.
            let ago_ns = clock_ns(libc::CLOCK_REALTIME).saturating_sub(real_ns).min(1_000_000_000);
            Some(monotonic_ns().saturating_sub(ago_ns))
        }
    }

    /// Sends frames; returns how many the kernel took.
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        // SAFETY: all zero is an empty message.
        let mut parts: [libc::iovec; BATCH] = unsafe { zeroed() };
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        let mut count = 0;
        for (frame, (part, message)) in frames.zip(parts.iter_mut().zip(&mut messages)) {
            // The kernel only reads.
            part.iov_base = frame.as_ptr().cast_mut().cast();
            part.iov_len = frame.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the first `count` messages name frames that outlive the call.
        let sent = unsafe {
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT)
        };
        if sent >= 0 {
            return Ok(sent as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(0),
            _ => Err(error),
        }
    }

    /// Frames that the kernel had no room for since the last call.
    pub fn overruns(&self) -> u64 {
        // SAFETY: all zero is a value; the kernel writes at most `size` bytes.
        unsafe {
            let mut stats: libc::tpacket_stats = zeroed();
            let mut size = size_of::<libc::tpacket_stats>() as libc::socklen_t;
            let name = libc::PACKET_STATISTICS;
            let into = std::ptr::from_mut(&mut stats).cast();
            let done = libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_PACKET, name, into, &raw mut size);
            if done < 0 { 0 } else { u64::from(stats.tp_drops) }
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`.
        unsafe { libc::munmap(self.ring.cast(), SLOTS * SLOT_BYTES) };
    }
}
