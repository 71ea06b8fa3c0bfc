//! Captures packets on an interface.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A TCP packet over IPv4.
#[derive(Debug)]
pub struct Packet {
    pub source_port: u16,
    pub destination_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub payload: usize,
    /// Kind and all bytes of each option.
    pub options: Vec<(u8, Vec<u8>)>,
    pub checksum_is_right: bool,
    /// ECN's bits, as IP's header has them.
    pub ecn: u8,
    pub ip_checksum_is_right: bool,
}

impl Packet {
    /// The option of Flowstamp.
    pub fn stamp(&self) -> Option<&[u8]> {
        self.options.iter().find(|(kind, _)| *kind == 253).map(|(_, bytes)| bytes.as_slice())
    }

    fn parse(frame: &[u8]) -> Option<Self> {
        if frame.get(12..14)? != [8, 0] || *frame.get(23)? != 6 {
            return None;
        }
        let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let tcp = frame.get(34..14 + total)?;
        let header = usize::from(tcp.get(12)? >> 4) * 4;
        let mut options = Vec::new();
        let mut rest = tcp.get(20..header)?;
        while let [kind, after @ ..] = rest {
            match kind {
                0 => break,
                1 => rest = after,
                _ => {
                    let len = usize::from(*after.first()?);
                    options.push((*kind, rest.get(..len)?.to_vec()));
                    rest = &rest[len..];
                }
            }
        }
        let sum_of = |bytes: &[u8]| -> u64 {
            bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | w.get(1).map_or(0, |b| u64::from(*b))).sum()
        };
        let ip = frame.get(14..34)?;
        // RFC 9293: the pseudo-header's addresses, protocol and length, then the segment.
        let sum = sum_of(&frame[26..34]) + sum_of(tcp) + 6 + tcp.len() as u64;
        Some(Self {
            source_port: u16::from_be_bytes([tcp[0], tcp[1]]),
            destination_port: u16::from_be_bytes([tcp[2], tcp[3]]),
            seq: u32::from_be_bytes(tcp[4..8].try_into().ok()?),
            ack: u32::from_be_bytes(tcp[8..12].try_into().ok()?),
            flags: tcp[13],
            payload: tcp.len() - header,
            options,
            checksum_is_right: sum.is_multiple_of(0xffff),
            ecn: ip[1] & 3,
            ip_checksum_is_right: sum_of(ip).is_multiple_of(0xffff),
        })
    }
}

/// A capture that runs.
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Packet>>,
}

impl Capture {
    /// On the only Ethernet interface of a namespace.
    pub fn start(namespace: &str) -> Self {
        let path = format!("/run/netns/{namespace}");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let namespace = File::open(path).unwrap();
            // SAFETY: system calls on descriptors that are open; the namespace is this thread's alone.
            let mut socket = unsafe {
                assert_eq!(libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET), 0);
                let all = i32::from(3u16.to_be());
                let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, all);
                assert!(socket >= 0, "{}", io::Error::last_os_error());
                let bytes: i32 = 64 << 20;
                let size = std::ptr::from_ref(&bytes).cast();
                libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size, 4);
                File::from_raw_fd(socket)
            };
            ready.send(()).unwrap();
            let mut packets = Vec::new();
            let mut buffer = vec![0; 1 << 17];
            while !stopped.load(Ordering::Relaxed) {
                match socket.read(&mut buffer) {
                    Ok(len) => packets.extend(Packet::parse(&buffer[..len])),
                    Err(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
                }
            }
            packets
        });
        is_ready.recv().unwrap();
        Self { stop, thread }
    }

    /// Received bytes.
    pub fn finish(self) -> Vec<Packet> {
        std::thread::sleep(std::time::Duration::from_millis(100));
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
