//! An implementation independent of bpf/packet.h that finds a frame's stamp: the offsets that may be read and
//! written, or nothing.

use flowstamp_wire::option::{Protocol, StampOption};

/// From the frame's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub network: usize,
    pub tcp: usize,
    pub option: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Extension headers that routers go through at the most, and the offset from which nobody looks on.
const EXTENSIONS: usize = 6;
const FARTHEST: usize = 448 - 80;

/// IP's protocol numbers of TCP and of RCP's shim.
const TCP: u8 = 6;
const SHIM: u8 = 254;

/// Finds the header of protocol `wanted`, and the packet's end, for an IPv4 packet at `at`.
fn ipv4(frame: &[u8], at: usize, wanted: u8) -> Option<(usize, usize)> {
    let ip = frame.get(at..at + 20)?;
    let header = usize::from(ip[0] & 15) * 4;
    let is_later_fragment = u16_at(ip, 6)? & 0x1fff != 0;
    if ip[0] >> 4 != 4 || header < 20 || ip[9] != wanted || is_later_fragment {
        return None;
    }
    let total = usize::from(u16_at(ip, 2)?);
    Some((at + header, if total == 0 { frame.len() } else { at + total }))
}

/// Finds the same for an IPv6 packet.
fn ipv6(frame: &[u8], at: usize, wanted: u8) -> Option<(usize, usize)> {
    let ip = frame.get(at..at + 40)?;
    if ip[0] >> 4 != 6 {
        return None;
    }
    let payload = usize::from(u16_at(ip, 4)?);
    let end = if payload == 0 { frame.len() } else { at + 40 + payload };
    let (mut next, mut at) = (ip[6], at + 40);
    for _ in 0..EXTENSIONS {
        if next == wanted {
            break;
        }
        let header = frame.get(at..at + 8)?;
        at += match next {
            44 if u16_at(header, 2)? & 0xfff8 == 0 => 8,
            0 | 43 | 60 => (usize::from(header[1]) + 1) * 8,
            _ => return None,
        };
        next = header[0];
        if at > FARTHEST {
            return None;
        }
    }
    (next == wanted).then_some((at, end))
}

/// Finds IP's header, the header of protocol `wanted`, and the packet's end. The frame has `link_bytes` before IP's header;
/// if that is zero, its packet is of `protocol`.
fn seek(frame: &[u8], link_bytes: usize, protocol: u16, wanted: u8) -> Option<(usize, usize, usize)> {
    let (mut network, mut kind) = (link_bytes, protocol);
    if link_bytes > 0 {
        kind = u16_at(frame, 12)?;
        for _ in 0..2 {
            if [0x8100, 0x88a8].contains(&kind) {
                kind = u16_at(frame, network + 2)?;
                network += 4;
            }
        }
    }
    let (at, end) = match kind {
        0x0800 => ipv4(frame, network, wanted)?,
        0x86dd => ipv6(frame, network, wanted)?,
        _ => return None,
    };
    Some((network, at, end))
}

/// RCP's shim.
#[allow(dead_code, reason = "only routers of hosts look for it in this way")]
pub fn find_shim(frame: &[u8]) -> Option<Place> {
    let (network, at, end) = seek(frame, 14, 0, SHIM)?;
    (at + 12 <= end.min(frame.len())).then_some(Place { network, tcp: at, option: at })
}

/// The long form of `law`'s option.
pub fn find(frame: &[u8], link_bytes: usize, protocol: u16, law: Protocol) -> Option<Place> {
    let (network, tcp, end) = seek(frame, link_bytes, protocol, TCP)?;
    let header = frame.get(tcp..tcp + 20)?;
    let options_end = tcp + usize::from(header[12] >> 4) * 4;
    if options_end > end || options_end < tcp + 20 {
        return None;
    }
    // A header that claims to be longer than the frame is read up to the frame's end.
    let options = &frame[tcp + 20..options_end.min(frame.len())];
    let (at, option) = StampOption::find(options, law)?;
    option.stamp.map(|_| Place { network, tcp, option: tcp + 20 + at })
}
