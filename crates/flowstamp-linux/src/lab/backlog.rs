//! The queue of a kernel's qdisc over time, by rtnetlink: what a BPF router's link is measured by.

use super::network::{Id, Place};
use crate::path::Epoch;
use anyhow::Context;
use flowstamp_laws::units::Time;
use std::fs::File;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the queue is looked at.
const INTERVAL: Duration = Duration::from_millis(5);

/// What a qdisc has counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// When.
    pub time: Time,
    /// Bytes that wait.
    pub backlog_bytes: u32,
    /// Packets for which there was no room, so far.
    pub drops: u32,
    /// Bytes that have left, so far.
    pub bytes: u64,
    /// Packets that have left, so far.
    pub packets: u32,
}

/// Looks at the qdisc of an interface until stopped.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Counted>>>,
}

impl Watch {
    /// Starts looking at the root qdisc of an interface of a namespace.
    pub fn start(id: &Id, place: Place, interface: &str, epoch: Epoch) -> anyhow::Result<Self> {
        let file = id.file(place);
        let namespace = File::open(&file).with_context(|| format!("{}", file.display()))?;
        let interface = interface.to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("backlog".to_owned()).spawn(move || {
            let mut all = Vec::new();
            let Ok(socket) = open(&namespace, &interface) else { return all };
            while !stopped.load(Ordering::Relaxed) {
                let time = epoch.now();
                if let Ok(Some(counted)) = socket.ask() {
                    all.push(Counted { time, ..counted });
                }
                std::thread::sleep(INTERVAL);
            }
            all
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// What was seen.
    pub fn finish(mut self) -> Vec<Counted> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Socket {
    fd: OwnedFd,
    index: i32,
}

/// A socket of the namespace, which the calling thread moves into.
fn open(namespace: &File, interface: &str) -> io::Result<Socket> {
    let name = std::ffi::CString::new(interface)?;
    // SAFETY: the descriptor is open, the name ends in zero, the new descriptor is owned from here on.
    unsafe {
        if libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) < 0 {
            return Err(io::Error::last_os_error());
        }
        let index = libc::if_nametoindex(name.as_ptr());
        let fd = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
        if index == 0 || fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Socket { fd: OwnedFd::from_raw_fd(fd), index: index as i32 })
    }
}

/// linux/rtnetlink.h and linux/gen_stats.h.
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const HEADER_BYTES: usize = 16;
const TCMSG_BYTES: usize = 20;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The content of the first attribute of this kind.
fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    while bytes.len() >= 4 {
        let len = usize::from(u16_at(bytes, 0)?);
        if len < 4 || len > bytes.len() {
            return None;
        }
        // The upper two bits say that it is nested, and its byte order.
        if u16_at(bytes, 2)? & 0x3fff == kind {
            return Some(&bytes[4..len]);
        }
        bytes = bytes.get(len.next_multiple_of(4)..)?;
    }
    None
}

fn counted(message: &[u8]) -> Option<Counted> {
    let stats = attribute(message.get(HEADER_BYTES + TCMSG_BYTES..)?, TCA_STATS2)?;
    let basic = attribute(stats, TCA_STATS_BASIC)?;
    let queue = attribute(stats, TCA_STATS_QUEUE)?;
    Some(Counted {
        time: Time::ZERO,
        backlog_bytes: u32_at(queue, 4)?,
        drops: u32_at(queue, 8)?,
        bytes: u64::from_ne_bytes(basic.get(..8)?.try_into().ok()?),
        packets: u32_at(basic, 8)?,
    })
}

impl Socket {
    fn ask(&self) -> io::Result<Option<Counted>> {
        let mut request = Vec::with_capacity(HEADER_BYTES + TCMSG_BYTES);
        request.extend(((HEADER_BYTES + TCMSG_BYTES) as u32).to_ne_bytes());
        request.extend(RTM_GETQDISC.to_ne_bytes());
        request.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
        request.extend([0; 8]);
        request.extend([0; 4]);
        request.extend(self.index.to_ne_bytes());
        request.extend([0; 12]);
        // SAFETY: the kernel reads the request and writes at most the buffer's length.
        let sent = unsafe {
            let mut address: libc::sockaddr_nl = zeroed();
            address.nl_family = libc::AF_NETLINK as u16;
            let to = std::ptr::from_ref(&address).cast();
            let size = size_of::<libc::sockaddr_nl>() as u32;
            libc::sendto(self.fd.as_raw_fd(), request.as_ptr().cast(), request.len(), 0, to, size)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut found = None;
        let mut buffer = [0u8; 32768];
        loop {
            // SAFETY: as above.
            let got = unsafe { libc::recv(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            if got < 0 {
                return Err(io::Error::last_os_error());
            }
            let mut rest = &buffer[..got as usize];
            while let (Some(len), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
                let len = len as usize;
                if len < HEADER_BYTES || len > rest.len() || kind <= libc::NLMSG_DONE as u16 {
                    return Ok(found);
                }
                let message = &rest[..len];
                let index = u32_at(message, HEADER_BYTES + 4);
                let parent = u32_at(message, HEADER_BYTES + 12);
                if kind == RTM_NEWQDISC && index == Some(self.index as u32) && parent == Some(TC_H_ROOT) {
                    found = counted(message);
                }
                rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// The queue between two instants.
pub struct Window<'a> {
    seen: &'a [Counted],
    before: Counted,
}

impl<'a> Window<'a> {
    /// Of all that was seen, what lies in `from..to`.
    pub fn of(all: &'a [Counted], from: Time, to: Time) -> Self {
        let start = all.partition_point(|c| c.time < from);
        let end = all.partition_point(|c| c.time < to).max(start);
        let before = if start > 0 { all[start - 1] } else { Counted::default() };
        Self { seen: &all[start..end], before }
    }

    fn last(&self) -> Counted {
        self.seen.last().copied().unwrap_or(self.before)
    }

    /// The last queue seen.
    pub fn queue_bytes(&self) -> f64 {
        f64::from(self.last().backlog_bytes)
    }

    /// The mean of what was seen.
    pub fn mean_queue_bytes(&self) -> f64 {
        let sum: f64 = self.seen.iter().map(|c| f64::from(c.backlog_bytes)).sum();
        if self.seen.is_empty() { self.queue_bytes() } else { sum / self.seen.len() as f64 }
    }

    /// A nearest rank of what was seen.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut queues: Vec<u32> = self.seen.iter().map(|c| c.backlog_bytes).collect();
        queues.sort_unstable();
        let rank = (share * queues.len() as f64).ceil().max(1.0) as usize;
        queues.get(rank - 1).copied().map_or(0.0, f64::from)
    }

    /// Packets for which there was no room.
    pub fn drops(&self) -> u64 {
        u64::from(self.last().drops.wrapping_sub(self.before.drops))
    }

    /// Bytes that left.
    pub fn bytes(&self) -> u64 {
        self.last().bytes.saturating_sub(self.before.bytes)
    }

    /// Packets that left.
    pub fn packets(&self) -> u64 {
        u64::from(self.last().packets.wrapping_sub(self.before.packets))
    }
}
