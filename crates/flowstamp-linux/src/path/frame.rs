//! Reads and writes TCP's ports and numbers, the stamp and the echo in an Ethernet frame, and the stamp packet
//! of QUIC in a UDP datagram. Any bytes are safe as input.

use crate::law::Law;
use flowstamp_laws::Stamp;
use flowstamp_wire::option::{self, StampOption};
use flowstamp_wire::quic_stamp::{self, Packet};
use std::ops::Range;

/// A TCP segment in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Offset of the IP header.
    ip: usize,
    /// Offset of the TCP header.
    tcp: usize,
    /// Length of the TCP header with options.
    header_len: usize,
    pub source: u16,
    pub destination: u16,
    pub seq: u32,
    pub ack: u32,
    /// Bytes of data.
    pub payload: u32,
    flags: u8,
}

impl Segment {
    /// Whether SYN is set.
    pub fn is_syn(&self) -> bool {
        self.flags & 0x02 != 0
    }
    /// Whether FIN is set.
    pub fn is_fin(&self) -> bool {
        self.flags & 0x01 != 0
    }
    /// Whether ACK is set.
    pub fn is_ack(&self) -> bool {
        self.flags & 0x10 != 0
    }
}

fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(frame: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?))
}

/// Finds the IP packet in a frame. Returns the offset of its header and the range of its payload. Returns `None` if the
/// payload is a fragment or not of `protocol`. A frame carries IPv4 or IPv6, after up to two VLAN tags.
fn carried(frame: &[u8], protocol: u8) -> Option<(usize, Range<usize>)> {
    let mut ip = 14;
    let mut kind = u16_at(frame, 12)?;
    for _ in 0..2 {
        if kind == 0x8100 || kind == 0x88a8 {
            kind = u16_at(frame, ip + 2)?;
            ip += 4;
        }
    }
    let (start, end) = match kind {
        0x0800 => {
            let first = *frame.get(ip)?;
            let header_len = usize::from(first & 15) * 4;
            let fragment = u16_at(frame, ip + 6)? & 0x3fff;
            if first >> 4 != 4 || header_len < 20 || fragment != 0 || *frame.get(ip + 9)? != protocol {
                return None;
            }
            (ip + header_len, ip + usize::from(u16_at(frame, ip + 2)?))
        }
        0x86dd if *frame.get(ip + 6)? == protocol => (ip + 40, ip + 40 + usize::from(u16_at(frame, ip + 4)?)),
        _ => return None,
    };
    (start <= end && end <= frame.len()).then_some((ip, start..end))
}

/// Finds the TCP segment in a frame. Returns `None` for other frames and for fragments.
pub fn segment(frame: &[u8]) -> Option<Segment> {
    let (ip, Range { start: tcp, end }) = carried(frame, 6)?;
    let header_len = usize::from(*frame.get(tcp + 12)? >> 4) * 4;
    if header_len < 20 || tcp + header_len > end {
        return None;
    }
    Some(Segment {
        ip,
        tcp,
        header_len,
        source: u16_at(frame, tcp)?,
        destination: u16_at(frame, tcp + 2)?,
        seq: u32_at(frame, tcp + 4)?,
        ack: u32_at(frame, tcp + 8)?,
        payload: (end - tcp - header_len) as u32,
        flags: *frame.get(tcp + 13)?,
    })
}

/// Length of UDP's header.
const UDP_LEN: usize = 8;

/// A UDP datagram in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Offset of the IP header.
    ip: usize,
    /// Offset of the UDP header.
    udp: usize,
    /// Offset of the datagram's end.
    end: usize,
    pub source: u16,
    pub destination: u16,
}

/// Finds the UDP datagram in a frame. Returns `None` for other frames and for fragments.
pub fn datagram(frame: &[u8]) -> Option<Datagram> {
    let (ip, Range { start: udp, end }) = carried(frame, 17)?;
    if udp + UDP_LEN > end {
        return None;
    }
    Some(Datagram { ip, udp, end, source: u16_at(frame, udp)?, destination: u16_at(frame, udp + 2)? })
}

/// A stamp, with its place in the frame.
#[derive(Clone, Copy, Debug)]
pub struct Stamped {
    /// Offset of the IP header.
    ip: usize,
    /// Offset of the stamp.
    at: usize,
    /// Offset of the checksum.
    checksum: Checksum,
    /// The header that the law reads and writes.
    pub stamp: Stamp,
}

/// Offset of a checksum. If UDP's is zero, the datagram has no checksum.
#[derive(Clone, Copy, Debug)]
enum Checksum {
    Tcp(usize),
    Udp(usize),
}

/// Finds the stamp of `law` in a frame, in TCP's option or in QUIC's stamp packet.
pub fn stamp_in(frame: &[u8], law: &Law) -> Option<Stamped> {
    if let Some(segment) = segment(frame) {
        return stamp(frame, &segment, law);
    }
    let (Datagram { ip, udp, end, .. }, protocol) = (datagram(frame)?, law.option?);
    let payload = &frame[udp + UDP_LEN..end];
    let packet = Packet::parse(payload).filter(|packet| packet.protocol == protocol)?;
    let at = udp + UDP_LEN + packet.wire_len() - quic_stamp::STAMP_LEN;
    Some(Stamped { ip, at, checksum: Checksum::Udp(udp + 6), stamp: (law.read)(&packet.stamp) })
}

/// Finds the stamp of `law` in a segment. Only the long form of the option has one.
fn stamp(frame: &[u8], segment: &Segment, law: &Law) -> Option<Stamped> {
    let options = segment.tcp + 20;
    let (at, found) = StampOption::find(frame.get(options..segment.tcp + segment.header_len)?, law.option?)?;
    let (at, checksum) = (options + at + option::STAMP.start, Checksum::Tcp(segment.tcp + 16));
    Some(Stamped { ip: segment.ip, at, checksum, stamp: (law.read)(&found.stamp?) })
}

/// Writes the stamp back if a router lowered it, and updates the checksum.
pub fn write(frame: &mut [u8], stamped: &Stamped, law: &Law) {
    put(frame, stamped.at, stamped.checksum, (law.write)(&stamped.stamp));
}

/// An echo, with its place in the frame.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    at: usize,
    checksum: usize,
    /// The option's four bytes.
    pub value: u32,
}

/// Finds the echo of `law` in a segment that carries its option.
pub fn echo(frame: &[u8], segment: &Segment, law: &Law) -> Option<Echo> {
    let options = segment.tcp + 20;
    let (at, found) = StampOption::find(frame.get(options..segment.tcp + segment.header_len)?, law.option?)?;
    Some(Echo { at: options + at, checksum: segment.tcp + 16, value: found.echo })
}

/// Writes the echo, and updates TCP's checksum.
pub fn write_echo(frame: &mut [u8], echo: &Echo) {
    put(frame, echo.at + option::ECHO.start, Checksum::Tcp(echo.checksum), echo.value);
}

/// Writes four bytes, and updates the checksum.
fn put(frame: &mut [u8], at: usize, checksum_at: Checksum, field: u32) {
    let old: [u8; 4] = frame[at..at + 4].try_into().expect("four bytes");
    let new = field.to_be_bytes();
    if new == old {
        return;
    }
    frame[at..at + 4].copy_from_slice(&new);
    let (Checksum::Tcp(checksum) | Checksum::Udp(checksum)) = checksum_at;
    let is_udp = matches!(checksum_at, Checksum::Udp(_));
    if is_udp && frame[checksum..checksum + 2] == [0, 0] {
        return;
    }
    // RFC 1624, eq. 3: HC' = ~(~HC + ~m + m'), in 16-bit words. If the field starts at an odd offset, a pair of its bytes
    // counts with its bytes swapped.
    let mut sum = u32::from(!u16::from_be_bytes([frame[checksum], frame[checksum + 1]]));
    let odd = (at - checksum) % 2 == 1;
    for pair in 0..2 {
        let word = |bytes: [u8; 4]| {
            let word = u16::from_be_bytes([bytes[2 * pair], bytes[2 * pair + 1]]);
            if odd { word.swap_bytes() } else { word }
        };
        sum += u32::from(!word(old)) + u32::from(word(new));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // In UDP, zero means that there is no checksum. A sum of zero is written as all ones, which is equal (RFC 768).
    let new = if is_udp && sum == 0xffff { 0xffff } else { !(sum as u16) };
    frame[checksum..checksum + 2].copy_from_slice(&new.to_be_bytes());
}

/// Shift of the ECN bits in IP's second byte: IPv4 has them at its end, IPv6 before the flow label.
fn ecn_shift(frame: &[u8], stamped: &Stamped) -> u32 {
    if frame[stamped.ip] >> 4 == 4 { 0 } else { 4 }
}

/// The ECN bits.
pub fn ecn(frame: &[u8], stamped: &Stamped) -> u16 {
    u16::from(frame[stamped.ip + 1] >> ecn_shift(frame, stamped) & 3)
}

/// Writes the ECN bits, and updates IPv4's checksum.
pub fn write_ecn(frame: &mut [u8], stamped: &Stamped, bits: u16) {
    let (at, shift) = (stamped.ip, ecn_shift(frame, stamped));
    let old = frame[at + 1];
    let new = (old & !(3 << shift)) | (bits as u8 & 3) << shift;
    if new == old {
        return;
    }
    frame[at + 1] = new;
    if shift == 0 {
        // RFC 1624, as above; the other byte of the word stays.
        let sum = u32::from(!u16::from_be_bytes([frame[at + 10], frame[at + 11]]));
        let sum = sum + u32::from(!u16::from(old)) + u32::from(new);
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        frame[at + 10..at + 12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{LAWS, named};
    use flowstamp_laws::rcp::Header as RcpHeader;
    use flowstamp_wire::option::MicrosFloat;
    use proptest::prelude::*;

    /// A frame with an RCP option after `pad` bytes of no-operation.
    fn made(pad: usize, rate: u32, rtt: u16, v6: bool) -> Vec<u8> {
        let carried = option::Stamp { value: rate, rtt: MicrosFloat::from_bits(rtt), last: 0 };
        let mut options = vec![1; pad];
        options
            .extend(StampOption { protocol: option::Protocol::Rcp, echo: 9, stamp: Some(carried) }.to_vec());
        options.resize(options.len().next_multiple_of(4), 0);
        let payload = [1, 2, 3];
        let tcp_len = 20 + options.len() + payload.len();
        let mut frame = vec![0; 12];
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((tcp_len as u16).to_be_bytes());
            frame.extend([6, 64]);
            frame.extend([7; 32]);
        } else {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend((20 + tcp_len as u16).to_be_bytes());
            frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
            frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let tcp = frame.len();
        frame.extend([0x9c, 0x40, 0x14, 0x51, 0, 0, 0, 5, 0, 0, 0, 6]);
        frame.extend([((20 + options.len()) / 4 * 16) as u8, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.extend(options);
        frame.extend(payload);
        let sum = !folded(&frame[tcp..]);
        frame[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    /// A frame with a UDP datagram.
    fn udp(payload: &[u8], v6: bool, has_checksum: bool) -> Vec<u8> {
        let length = ((UDP_LEN + payload.len()) as u16).to_be_bytes();
        let mut frame = vec![0; 12];
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length);
            frame.extend([17, 64]);
            frame.extend([7; 32]);
        } else {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend((20 + (UDP_LEN + payload.len()) as u16).to_be_bytes());
            frame.extend([0, 1, 0x40, 0, 64, 17, 0, 0]);
            frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let start = frame.len();
        frame.extend([0x11, 0x51, 0x9c, 0x40]);
        frame.extend(length);
        frame.extend([0, 0]);
        frame.extend(payload);
        if has_checksum {
            let sum = !folded(&frame[start..]);
            frame[start + 6..start + 8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
        }
        frame
    }

    /// Sum of 16-bit words; the pseudo header is constant and left out.
    fn folded(bytes: &[u8]) -> u16 {
        let mut sum: u32 = bytes
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn stamping_leaves_a_right_checksum(pad in 0usize..8, old: u32, new: u32, rtt: u16, v6: bool) {
            let mut frame = made(pad, old, rtt, v6);
            let segment = segment(&frame).expect("a segment");
            let rcp = named("rcp").expect("it is there");
            let mut stamped = stamp(&frame, &segment, rcp).expect("a stamp");
            prop_assert!((RcpHeader::from(stamped.stamp).rate - f64::from(old) * 1e3).abs() < 1.0);
            prop_assert_eq!(segment.payload, 3);
            stamped.stamp.0[0] = f64::from(new) * 1e3;
            write(&mut frame, &stamped, rcp);
            prop_assert_eq!(folded(&frame[segment.tcp..]), 0xffff);
            let again = stamp(&frame, &segment, rcp).expect("a stamp");
            prop_assert!((RcpHeader::from(again.stamp).rate - f64::from(new.max(1)) * 1e3).abs() < 1.0);
            let other = Echo { value: old, ..echo(&frame, &segment, rcp).expect("an echo") };
            write_echo(&mut frame, &other);
            prop_assert_eq!(folded(&frame[segment.tcp..]), 0xffff);
            prop_assert_eq!(echo(&frame, &segment, rcp).expect("an echo").value, old);
        }

        /// The path writes what the codec writes, and a right checksum stays right.
        #[test]
        fn stamp_packets_of_quic_are_stamped(
            ids in prop::array::uniform2(proptest::collection::vec(any::<u8>(), 0..=20)), old: u32, new: u32, v6: bool,
            has_checksum: bool, others in 1usize..40,
        ) {
            let rcp = named("rcp").expect("it is there");
            let carried = option::Stamp { value: old, rtt: MicrosFloat::from_micros(50_000), last: 0 };
            let mut payload = Vec::new();
            Packet { protocol: option::Protocol::Rcp, dcid: &ids[0], scid: &ids[1], stamp: carried }.append(&mut payload);
            payload.extend((0..others).map(|n| n as u8));
            let mut frame = udp(&payload, v6, has_checksum);
            let start = frame.len() - payload.len();
            let mut stamped = stamp_in(&frame, rcp).expect("a stamp");
            prop_assert!((RcpHeader::from(stamped.stamp).rate - f64::from(old) * 1e3).abs() < 1.0);
            stamped.stamp.0[0] = f64::from(new) * 1e3;
            write(&mut frame, &stamped, rcp);
            quic_stamp::replace(&mut payload, option::Protocol::Rcp, |_| new.max(1));
            prop_assert_eq!(&frame[start..], &payload);
            let checksum = &frame[start - 2..start];
            prop_assert_eq!(checksum == [0, 0], !has_checksum);
            prop_assert!(!has_checksum || folded(&frame[start - UDP_LEN..]) == 0xffff);
            let short = frame.len() - others;
            frame.truncate(short);
            prop_assert!(stamp_in(&frame, rcp).is_none(), "the datagram is cut");
        }

        /// XCP's, whose change is signed and whose window is in packets.
        #[test]
        fn stamp_packets_of_xcp_are_stamped(old: i32, new: i32, in_flight in 1_u16.., v6: bool, has_checksum: bool) {
            let xcp = named("xcp").expect("it is there");
            let carried =
                option::Stamp { value: old as u32, rtt: MicrosFloat::from_micros(40_000), last: in_flight };
            let mut payload = Vec::new();
            Packet { protocol: option::Protocol::Xcp, dcid: &[7; 8], scid: &[], stamp: carried }.append(&mut payload);
            payload.push(0x40);
            let mut frame = udp(&payload, v6, has_checksum);
            let start = frame.len() - payload.len();
            prop_assert!(stamp_in(&frame, named("rcp").expect("it is there")).is_none(), "another law's");
            let mut stamped = stamp_in(&frame, xcp).expect("a stamp");
            prop_assert_eq!(stamped.stamp.0, [0.04 / f64::from(in_flight), 0.04, f64::from(old)]);
            stamped.stamp.0[2] = f64::from(new);
            write(&mut frame, &stamped, xcp);
            quic_stamp::replace(&mut payload, option::Protocol::Xcp, |_| new as u32);
            prop_assert_eq!(&frame[start..], &payload);
            prop_assert!(!has_checksum || folded(&frame[start - UDP_LEN..]) == 0xffff);
        }

        #[test]
        fn ecn_is_written_and_nothing_else(bits in 0_u16..4, before: u8, v6: bool) {
            let mut frame = made(0, 1, 2, v6);
            let stamped = stamp_in(&frame, named("rcp").expect("it is there")).expect("a stamp");
            // Also sets bits of DSCP or the flow label.
            frame[15] = before;
            if !v6 {
                let sum = !folded(&[&frame[14..24], &[0, 0], &frame[26..34]].concat());
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            let was = frame.clone();
            write_ecn(&mut frame, &stamped, bits);
            prop_assert_eq!(ecn(&frame, &stamped), bits);
            let mask = if v6 { 0x30 } else { 3 };
            prop_assert_eq!(frame[15] & !mask, before & !mask);
            if !v6 {
                prop_assert_eq!(folded(&frame[14..34]), 0xffff);
                frame[24..26].copy_from_slice(&was[24..26]);
            }
            frame[15] = before;
            prop_assert_eq!(frame, was);
        }

        #[test]
        fn any_bytes_are_safe(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), cut in 0usize..90) {
            let mut made = made(3, 5, 6, false);
            made.truncate(cut);
            made.append(&mut bytes);
            for law in LAWS {
                let _ = stamp_in(&made, law);
                if let Some(segment) = segment(&made)
                    && let Some(stamped) = stamp(&made, &segment, law)
                {
                    write(&mut made, &stamped, law);
                    let mut echo = echo(&made, &segment, law).expect("where a stamp is, an echo is");
                    echo.value ^= 0xff;
                    write_echo(&mut made, &echo);
                    let other = ecn(&made, &stamped) ^ 3;
                    write_ecn(&mut made, &stamped, other);
                }
            }
        }
    }
}
