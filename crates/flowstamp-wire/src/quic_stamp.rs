//! The stamp as a QUIC packet, for hosts that have no header of their own in IP or TCP.
//!
//! A stamp packet is a long-header packet of a version of its own (RFC 8999), the first packet of a UDP datagram. Another QUIC packet
//! follows it, with the same connection IDs. Routers change the stamp in place, as in the TCP option ([`crate::option`]), whose
//! encoding it has. The receiver returns the value in a DATAGRAM frame (RFC 9221).
//!
//! ```text
//!    0        1                 5      6             .      .            v            v + 4     v + 6
//!   +--------+-----------------+------+------+------+------+------------+------------+---------+---------+---------------------
//!   |11000000| "FSRC"          | DCID length, DCID  | SCID length, SCID | value      | RTT     | last    | other QUIC packets
//!   +--------+-----------------+------+------+------+------+------------+------------+---------+---------+---------------------
//!            | version                                                    4 bytes      2         2
//!
//!    0        2        4            8
//!   +--------+--------+------------+
//!   | "FS"   | "RC"   | value      |   the echo, the content of a DATAGRAM frame
//!   +--------+--------+------------+
//! ```
//!
//! All fields are big endian. The versions are experimental: "FS" and the protocol's two letters. Nobody has registered them. An
//! endpoint that does not know them drops the packet as one of an unknown version, and processes the rest of the datagram or drops that too.
//! Send it only to a receiver that has asked for it.
//!
//! # Panics
//!
//! Nothing in this module panics, whatever the bytes or the numbers: lengths are checked before the first access.

use crate::field::array;
use crate::option::{MicrosFloat, Protocol, Stamp};

/// Length of the stamp, behind the connection IDs.
pub const STAMP_LEN: usize = 8;
/// Bytes of a stamp packet with empty connection IDs.
pub const MIN_LEN: usize = 7 + STAMP_LEN;
/// Bytes of an echo.
pub const ECHO_LEN: usize = 8;
/// The longest connection ID of QUIC version 1 (RFC 9000 section 17.2).
pub const MAX_ID: usize = 20;

/// First half of the versions and of the echo: "FS".
const MARK: [u8; 2] = *b"FS";
/// The header form, and the bit that QUIC version 1 calls fixed.
const FIRST: u8 = 0xc0;
const LONG_HEADER: u8 = 0x80;

/// The version of the stamp packets of `protocol`.
#[must_use]
pub const fn version(protocol: Protocol) -> u32 {
    let [a, b] = protocol.identifier();
    u32::from_be_bytes([MARK[0], MARK[1], a, b])
}

/// Length of a connection ID on the wire.
const fn cut(len: usize) -> usize {
    if len < MAX_ID { len } else { MAX_ID }
}

fn protocol_of(letters: &[u8]) -> Option<Protocol> {
    Protocol::ALL.into_iter().find(|protocol| protocol.identifier() == *letters)
}

/// A stamp packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet<'a> {
    /// The protocol that the stamp belongs to.
    pub protocol: Protocol,
    /// Destination connection ID, that of the packets behind it.
    pub dcid: &'a [u8],
    /// Source connection ID, that of the packets behind it, or empty before a short header.
    pub scid: &'a [u8],
    /// The stamp.
    pub stamp: Stamp,
}

impl<'a> Packet<'a> {
    /// Reads the stamp packet at the start of a UDP payload; `None` if there is none, or nothing behind it.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        let (at, protocol) = find(payload)?;
        let dcid = payload.get(6..6 + usize::from(*payload.get(5)?))?;
        let scid = payload.get(7 + dcid.len()..at)?;
        let stamp = Stamp {
            value: u32::from_be_bytes(array(payload, at..at + 4)),
            rtt: MicrosFloat::from_bits(u16::from_be_bytes(array(payload, at + 4..at + 6))),
            last: u16::from_be_bytes(array(payload, at + 6..at + 8)),
        };
        Some(Self { protocol, dcid, scid, stamp })
    }

    /// Bytes of the packet on the wire, where a connection ID has at most [`MAX_ID`] bytes.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        MIN_LEN + cut(self.dcid.len()) + cut(self.scid.len())
    }

    /// Appends the packet to `out`. It cuts a connection ID after [`MAX_ID`] bytes.
    pub fn append(&self, out: &mut Vec<u8>) {
        out.push(FIRST);
        out.extend(version(self.protocol).to_be_bytes());
        for id in [self.dcid, self.scid] {
            let id = &id[..cut(id.len())];
            out.push(id.len() as u8);
            out.extend(id);
        }
        out.extend(self.stamp.value.to_be_bytes());
        out.extend(self.stamp.rtt.to_bits().to_be_bytes());
        out.extend(self.stamp.last.to_be_bytes());
    }
}

/// Position of the stamp, and its protocol. Connection IDs have at most [`MAX_ID`] bytes, and another packet follows.
fn find(payload: &[u8]) -> Option<(usize, Protocol)> {
    let head = payload.first_chunk::<6>()?;
    if head[0] & LONG_HEADER == 0 || head[1..3] != MARK {
        return None;
    }
    let protocol = protocol_of(&head[3..5])?;
    let dcid = usize::from(head[5]);
    let scid = usize::from(*payload.get(6 + dcid)?);
    let at = 7 + dcid + scid;
    (dcid <= MAX_ID && scid <= MAX_ID && at + STAMP_LEN < payload.len()).then_some((at, protocol))
}

/// Replaces the value of the stamp packet at the start of a UDP payload. Returns the value before; `None` if there is no
/// stamp packet of `protocol`. The caller mends UDP's checksum.
pub fn replace(payload: &mut [u8], protocol: Protocol, value: impl FnOnce(Stamp) -> u32) -> Option<u32> {
    let packet = Packet::parse(payload).filter(|packet| packet.protocol == protocol)?;
    let (stamp, at) = (packet.stamp, packet.wire_len() - STAMP_LEN);
    payload[at..at + 4].copy_from_slice(&value(stamp).to_be_bytes());
    Some(stamp.value)
}

/// The value that a receiver returns, in a DATAGRAM frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Echo {
    /// The protocol that the value belongs to.
    pub protocol: Protocol,
    /// RCP: the rate received, in bytes/ms.
    pub value: u32,
}

impl Echo {
    /// Reads an echo, which fills the frame; `None` if the frame has another content.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let bytes: &[u8; ECHO_LEN] = frame.try_into().ok()?;
        let protocol = protocol_of(&bytes[2..4]).filter(|_| bytes[..2] == MARK)?;
        Some(Self { protocol, value: u32::from_be_bytes(array(bytes, 4..8)) })
    }

    /// The frame's content.
    #[must_use]
    pub fn to_bytes(self) -> [u8; ECHO_LEN] {
        let mut bytes = [0; ECHO_LEN];
        bytes[..4].copy_from_slice(&version(self.protocol).to_be_bytes());
        bytes[4..].copy_from_slice(&self.value.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// By hand: "FSRC", a destination ID of two bytes, no source ID, 125 bytes/ms, 53 us, and a short header behind.
    const SAMPLE: [u8; 18] =
        [0xc0, b'F', b'S', b'R', b'C', 2, 0xab, 0xcd, 0, 0, 0, 0, 125, 0, 53, 0, 0, 0x40];

    fn sample() -> Packet<'static> {
        let stamp = Stamp { value: 125, rtt: MicrosFloat::from_micros(53), last: 0 };
        Packet { protocol: Protocol::Rcp, dcid: &[0xab, 0xcd], scid: &[], stamp }
    }

    #[test]
    fn known_bytes() {
        assert_eq!(Packet::parse(&SAMPLE), Some(sample()));
        let mut bytes = Vec::new();
        sample().append(&mut bytes);
        assert_eq!(bytes, SAMPLE[..17]);
        assert_eq!(sample().wire_len(), 17);
        assert_eq!(version(Protocol::Rcp), 0x4653_5243);
        let echo = Echo { protocol: Protocol::Rcp, value: 125 };
        assert_eq!(echo.to_bytes(), *b"FSRC\0\0\0\x7d");
    }

    #[test]
    fn connection_ids_that_are_too_long_are_cut_and_counted_as_cut() {
        let id = [7; MAX_ID + 1];
        let packet = Packet { dcid: &id, scid: &id, ..sample() };
        let mut bytes = Vec::new();
        packet.append(&mut bytes);
        assert_eq!((packet.wire_len(), bytes.len()), (MIN_LEN + 2 * MAX_ID, MIN_LEN + 2 * MAX_ID));
    }

    #[test]
    fn a_stamp_packet_alone_is_none() {
        for len in 0..SAMPLE.len() {
            assert_eq!(Packet::parse(&SAMPLE[..len]), None, "{len}");
        }
    }

    #[test]
    fn versions_are_neither_those_of_quic_nor_of_scone() {
        let versions = Protocol::ALL.map(version);
        let taken = [0, 1, 0x6b33_43cf, crate::scone::VERSION, crate::scone::VERSION | 1 << 31];
        assert!(
            versions.iter().all(|version| !taken.contains(version) && version & 0x0f0f_0f0f != 0x0a0a_0a0a)
        );
    }

    prop_compose! {
        fn parts()(protocol in 0..3_usize, dcid in vec(any::<u8>(), 0..=MAX_ID), scid in vec(any::<u8>(), 0..=MAX_ID),
            value: u32, rtt: u16, last: u16, behind in vec(any::<u8>(), 1..32))
            -> (Protocol, Vec<u8>, Vec<u8>, Stamp, Vec<u8>)
        {
            (Protocol::ALL[protocol], dcid, scid, Stamp { value, rtt: MicrosFloat::from_bits(rtt), last }, behind)
        }
    }

    proptest! {
        #[test]
        fn round_trip((protocol, dcid, scid, stamp, behind) in parts()) {
            let packet = Packet { protocol, dcid: &dcid, scid: &scid, stamp };
            let mut bytes = Vec::new();
            packet.append(&mut bytes);
            prop_assert_eq!(bytes.len(), packet.wire_len());
            bytes.extend(&behind);
            prop_assert_eq!(Packet::parse(&bytes), Some(packet));
            prop_assert_eq!(&bytes[packet.wire_len()..], &behind);
        }

        #[test]
        fn only_the_value_changes((protocol, dcid, scid, stamp, behind) in parts(), new: u32) {
            let mut bytes = Vec::new();
            Packet { protocol, dcid: &dcid, scid: &scid, stamp }.append(&mut bytes);
            bytes.extend(&behind);
            let before = bytes.clone();
            prop_assert_eq!(replace(&mut bytes, protocol, |old| { assert_eq!(old, stamp); new }), Some(stamp.value));
            let expected = Stamp { value: new, ..stamp };
            prop_assert_eq!(Packet::parse(&bytes), Some(Packet { protocol, dcid: &dcid, scid: &scid, stamp: expected }));
            prop_assert_eq!(replace(&mut bytes, protocol, |_| stamp.value), Some(new));
            prop_assert_eq!(&bytes, &before);
            for other in Protocol::ALL.into_iter().filter(|other| *other != protocol) {
                prop_assert_eq!(replace(&mut bytes, other, |_| 0), None);
            }
        }

        #[test]
        fn any_bytes_are_safe(mut bytes in vec(any::<u8>(), 0..64), marked: bool, protocol in 0..3_usize) {
            if marked && bytes.len() > 6 {
                bytes[0] |= LONG_HEADER;
                bytes[1..5].copy_from_slice(&version(Protocol::ALL[protocol]).to_be_bytes());
            }
            let before = bytes.clone();
            if let Some(packet) = Packet::parse(&bytes) {
                prop_assert!(packet.wire_len() < bytes.len());
            }
            for protocol in Protocol::ALL {
                replace(&mut bytes, protocol, |stamp| stamp.value);
            }
            prop_assert_eq!(bytes, before);
        }

        #[test]
        fn echoes_survive(protocol in 0..3_usize, value: u32, other in vec(any::<u8>(), 0..16)) {
            let echo = Echo { protocol: Protocol::ALL[protocol], value };
            prop_assert_eq!(Echo::parse(&echo.to_bytes()), Some(echo));
            if let Some(echo) = Echo::parse(&other) {
                prop_assert_eq!(&echo.to_bytes()[..], &other[..]);
            }
        }
    }
}
