//! Constructed packets with a stamp, and checks of what programs may change in them.

#![allow(dead_code, reason = "each test has its laws")]

#[path = "../../../flowstamp-wire/tests/skip/mod.rs"]
mod skip;

use flowstamp_wire::option::{self, MicrosFloat, Protocol, StampOption};

pub const RCP: Protocol = Protocol::Rcp;
pub const XCP: Protocol = Protocol::Xcp;
pub const VCP: Protocol = Protocol::Vcp;

/// `enum fs_law` of bpf/option.h.
pub fn number(law: Protocol) -> u64 {
    match law {
        Protocol::Rcp => 1,
        Protocol::Xcp => 2,
        Protocol::Vcp => 3,
    }
}

/// The kernel has no place for BPF here: the reason why there is nothing to test, on standard error.
pub fn skipped() -> bool {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } == 0 && std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        return false;
    }
    skip::skip("BPF programs need root and a kernel with BTF");
    true
}

/// A segment and how it is wrapped.
#[derive(Clone, Debug)]
pub struct Packet {
    pub tags: Vec<u16>,
    /// DSCP and ECN.
    pub class: u8,
    /// IPv4's options, a multiple of four.
    pub ip_options: Vec<u8>,
    /// IPv6's extension headers' numbers.
    pub extensions: Option<Vec<u8>>,
    pub protocol: u8,
    pub fragment: u16,
    pub flags: u8,
    pub options: Vec<u8>,
    pub payload: usize,
    pub right_checksum: bool,
}

impl Default for Packet {
    fn default() -> Self {
        Self {
            tags: vec![],
            class: 0,
            ip_options: vec![],
            extensions: None,
            protocol: 6,
            fragment: 0,
            flags: 0x10,
            options: vec![],
            payload: 100,
            right_checksum: true,
        }
    }
}

/// A stamp's option, `stamp` being what routers write to; RTT 50 ms, 50 packets in flight: 1 ms between packets.
pub fn stamped(law: Protocol, stamp: u32) -> Vec<u8> {
    let stamp = option::Stamp { value: stamp, rtt: MicrosFloat::from_micros(50_000), last: 50 };
    StampOption { protocol: law, echo: 0x0102, stamp: Some(stamp) }.to_vec()
}

/// Bytes of a TCP header's options, to a multiple of four.
fn padded(mut options: Vec<u8>) -> Vec<u8> {
    while !options.len().is_multiple_of(4) {
        options.push(0);
    }
    options
}

pub fn ones_sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        }
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// A frame, where TCP's header is, and the pseudo header that its checksum includes.
pub struct Frame {
    pub bytes: Vec<u8>,
    pub tcp: usize,
    pseudo: Vec<u8>,
}

impl Frame {
    /// 0xffff for a right checksum.
    fn sum(&self, bytes: &[u8]) -> u16 {
        ones_sum(&[&self.pseudo, &bytes[self.tcp..]])
    }
}

impl Packet {
    pub fn frame(&self, ethernet: bool) -> Frame {
        let options = padded(self.options.clone());
        let mut segment = vec![0x13, 0x88, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2];
        segment.extend([(((20 + options.len()) / 4) << 4) as u8, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(&options);
        segment.extend((0..self.payload).map(|i| i as u8));
        let mut bytes = vec![];
        if ethernet {
            bytes.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
            for tag in &self.tags {
                bytes.extend(tag.to_be_bytes());
                bytes.extend([0, 42]);
            }
        }
        let mut pseudo = vec![];
        if let Some(extensions) = &self.extensions {
            if ethernet {
                bytes.extend([0x86, 0xdd]);
            }
            let (from, to) = ([0xfd; 16], [0xfe; 16]);
            let mut chain = vec![];
            for (i, number) in extensions.iter().enumerate() {
                let next = extensions.get(i + 1).copied().unwrap_or(self.protocol);
                let [high, low] = self.fragment.to_be_bytes();
                match number {
                    44 => chain.extend([next, 0, high, low, 0, 0, 0, 7]),
                    _ => chain.extend([next, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                }
            }
            let length = (chain.len() + segment.len()) as u16;
            // A flow label that begins with ones.
            bytes.extend([0x60 | self.class >> 4, self.class << 4 | 0xf, 0xab, 0xcd]);
            bytes.extend(length.to_be_bytes());
            bytes.extend([extensions.first().copied().unwrap_or(self.protocol), 64]);
            bytes.extend(from);
            bytes.extend(to);
            bytes.extend(chain);
            pseudo.extend(from);
            pseudo.extend(to);
        } else {
            if ethernet {
                bytes.extend([8, 0]);
            }
            let header = 20 + self.ip_options.len();
            let start = bytes.len();
            bytes.extend([0x40 | (header / 4) as u8, self.class]);
            bytes.extend(((header + segment.len()) as u16).to_be_bytes());
            bytes.extend([0, 7]);
            bytes.extend(self.fragment.to_be_bytes());
            bytes.extend([64, self.protocol, 0, 0]);
            let hosts = [10, 0, 0, 1, 10, 0, 0, 2];
            bytes.extend(hosts);
            bytes.extend(&self.ip_options);
            let sum = !ones_sum(&[&bytes[start..]]);
            bytes[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
            pseudo.extend(hosts);
        }
        pseudo.extend([0, self.protocol]);
        pseudo.extend((segment.len() as u16).to_be_bytes());
        let sum = !ones_sum(&[&pseudo, &segment]);
        let sum = if self.right_checksum { sum } else { sum ^ 0x1234 };
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        let tcp = bytes.len();
        bytes.extend(segment);
        Frame { bytes, tcp, pseudo }
    }

    /// Where the option is in the segment, if it is one that a router may write to.
    fn stamp_at(&self) -> Option<usize> {
        self.options.windows(2).position(|w| w == [253, 16]).map(|i| 20 + i + 8)
    }

    /// Properties of every packet that was `frame` and has become `out`; returns what is carried, if there is an
    /// option.
    pub fn check(&self, frame: &Frame, out: &[u8]) -> Option<u32> {
        self.check_bytes(frame, out, 4)
    }

    /// The same of so many bytes from the stamp on.
    pub fn check_bytes(&self, frame: &Frame, out: &[u8], bytes: usize) -> Option<u32> {
        let stamp = self.stamp_at().map(|at| frame.tcp + at);
        for (i, (before, after)) in frame.bytes.iter().zip(out).enumerate() {
            let may = stamp.is_some_and(|s| (s..s + bytes).contains(&i))
                || (frame.tcp + 16..frame.tcp + 18).contains(&i);
            assert!(before == after || (may && stamp.is_some()), "byte {i} changed in {self:?}");
        }
        // All bits set is zero as well, in ones' complement.
        let sums = (frame.sum(&frame.bytes) % 0xffff, frame.sum(out) % 0xffff);
        assert_eq!(sums.0, sums.1, "checksum of {self:?}");
        assert_eq!(sums.1 == 0, self.right_checksum);
        stamp.map(|s| u32::from_be_bytes(out[s..s + 4].try_into().expect("four")))
    }
}

/// Every way of wrapping a segment.
pub fn wrappings() -> Vec<Packet> {
    let plain = Packet::default();
    vec![
        plain.clone(),
        Packet { tags: vec![0x8100], ..plain.clone() },
        Packet { tags: vec![0x88a8, 0x8100], ..plain.clone() },
        Packet { ip_options: vec![1; 4], ..plain.clone() },
        Packet { ip_options: vec![1; 40], tags: vec![0x8100], ..plain.clone() },
        Packet { extensions: Some(vec![]), ..plain.clone() },
        Packet { extensions: Some(vec![]), tags: vec![0x88a8, 0x8100], ..plain.clone() },
        Packet { extensions: Some(vec![0, 43, 60]), ..plain.clone() },
        Packet { extensions: Some(vec![44]), ..plain },
    ]
}
