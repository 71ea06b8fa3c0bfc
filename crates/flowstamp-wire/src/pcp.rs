//! The PCP congestion header of Katabi and Handley 2001, section 3.3 and figure 1, between IP and the transport.
//!
//! ```text
//!    0                   1                   2                   3
//!    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!   +-+-+-+---------+---------------+---------------+---------------+
//! 0 |A|1|2| unused  |      PTL      |   protocol    |    unused     |   A: H_A, 1: H_B1, 2: H_B2
//!   +-+-+-+---------+---------------+---------------+---------------+
//! 4 |  H_cwnd        bytes, unsigned                                |
//!   +---------------------------------------------------------------+
//! 8 |  H_rtt         2^-28 s, unsigned                              |
//!   +---------------------------------------------------------------+
//! 12|  H_feedback    bytes, two's complement                        |
//!   +---------------------------------------------------------------+
//! ```
//!
//! All fields are big endian. An `H_rtt` of zero marks a flow's first packet. Conversions into the header round to the nearest
//! step and saturate: windows at 4.3 GB, RTTs at 16 s, feedback at +-2.1 GB; NaN gives zero.
//!
//! Deviations (paper says / we do / because):
//! 1. The paper names the fields but no widths / widths as above / XCP's times also have 28 fraction bits.
//! 2. Windows are in bits / in bytes / 32 bits hold eight times as much.
//! 3. No protocol number is assigned / [`IP_PROTOCOL`] is an unassigned one / XCP and RCP use both numbers for experiments.
//!
//! # Panics
//!
//! Nothing in this module panics, whatever the bytes or the numbers: lengths are checked before the first access.

use crate::field::{EmitError, PROTOCOL_TCP, array, emit};
use crate::frame::{Codec, HeaderContent, Shim};
use crate::xcp::Seconds28;
use flowstamp_laws::negotiation::ptl;
use flowstamp_laws::pcp::header::{B1, B2};
use thiserror::Error;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 16;
/// IP protocol number under which the header travels: unassigned.
pub const IP_PROTOCOL: u8 = 251;

/// Position of each field, in bytes from the header's start.
mod field {
    use core::ops::Range;

    pub const BITS: usize = 0;
    pub const PTL: usize = 1;
    pub const PROTOCOL: usize = 2;
    pub const UNUSED: usize = 3;
    pub const CWND: Range<usize> = 4..8;
    pub const RTT: Range<usize> = 8..12;
    pub const FEEDBACK: Range<usize> = 12..16;
}

/// Bits of the first byte.
const A_BIT: u8 = 0x80;
const B1_BIT: u8 = 0x40;
const B2_BIT: u8 = 0x20;

/// Why bytes are not a PCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// fewer bytes than a header has
    #[error("truncated pcp header: {len} bytes, must be at least {HEADER_LEN}")]
    Truncated {
        /// Bytes given.
        len: usize,
    },
}

/// A decoded PCP header. Unused bits and bytes are written as zero and ignored when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// `H_A`: the packet is an acknowledgement, which routers do not process.
    pub ack: bool,
    /// `H_B1`: a router on the path has less than a tenth of its capacity to spare.
    pub b1: bool,
    /// `H_B2`: the flow met a bottleneck in its last round trip, or needs no higher rate.
    pub b2: bool,
    /// PCP time to live, which each PCP router decrements by one.
    pub ptl: u8,
    /// IP protocol number of what follows, [`PROTOCOL_TCP`] as a rule.
    pub protocol: u8,
    /// The sender's window, in bytes.
    pub cwnd: u32,
    /// The sender's RTT; 0 s in the first packet of a flow.
    pub rtt: Seconds28,
    /// The change of window, in bytes, that the sender requests and that routers lower.
    pub feedback: i32,
}

impl Header {
    /// Reads the header at the start of `bytes` and ignores the bytes after it.
    ///
    /// # Errors
    ///
    /// [`ParseError::Truncated`] if there are too few bytes.
    ///
    /// # Panics
    ///
    /// Never, for any `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let Some(bytes) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(ParseError::Truncated { len: bytes.len() });
        };
        let bits = bytes[field::BITS];
        Ok(Self {
            ack: bits & A_BIT != 0,
            b1: bits & B1_BIT != 0,
            b2: bits & B2_BIT != 0,
            ptl: bytes[field::PTL],
            protocol: bytes[field::PROTOCOL],
            cwnd: u32::from_be_bytes(array(bytes, field::CWND)),
            rtt: Seconds28::from_bits(u32::from_be_bytes(array(bytes, field::RTT))),
            feedback: i32::from_be_bytes(array(bytes, field::FEEDBACK)),
        })
    }

    /// Writes the header's [`HEADER_LEN`] bytes to the start of `buffer`; the rest of `buffer` stays as it was.
    ///
    /// # Errors
    ///
    /// [`EmitError`] if `buffer` has fewer than [`HEADER_LEN`] bytes; nothing is written then.
    ///
    /// # Panics
    ///
    /// Never.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), EmitError> {
        emit("pcp", self.to_bytes(), buffer)
    }

    /// The header's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let mut bytes = [0; HEADER_LEN];
        bytes[field::BITS] = bit(self.ack, A_BIT) | bit(self.b1, B1_BIT) | bit(self.b2, B2_BIT);
        bytes[field::PTL] = self.ptl;
        bytes[field::PROTOCOL] = self.protocol;
        bytes[field::UNUSED] = 0;
        bytes[field::CWND].copy_from_slice(&self.cwnd.to_be_bytes());
        bytes[field::RTT].copy_from_slice(&self.rtt.to_bits().to_be_bytes());
        bytes[field::FEEDBACK].copy_from_slice(&self.feedback.to_be_bytes());
        bytes
    }
}

impl From<Header> for Shim {
    fn from(header: Header) -> Self {
        Self::new(IP_PROTOCOL, &header.to_bytes())
    }
}

/// Writes a stamp of PCP.
pub const CODEC: Codec = Codec { len: HEADER_LEN, shim: |content| header_of(content).into() };

fn header_of(content: &HeaderContent) -> Header {
    let stamp = flowstamp_laws::pcp::Header::from(content.stamp);
    Header {
        ack: !content.data,
        b1: content.bits & B1 != 0,
        b2: content.bits & B2 != 0,
        ptl: ptl(content.bits),
        protocol: PROTOCOL_TCP,
        // A float-to-integer cast saturates and maps NaN to 0.
        cwnd: stamp.cwnd_bytes.round() as u32,
        rtt: Seconds28::from_secs_f64(stamp.rtt_s),
        feedback: stamp.feedback_bytes.round() as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstamp_laws::Stamp;
    use proptest::prelude::*;

    /// Written out by hand: H_B1 of a data packet, three routers passed, 9 packets of 1000 bytes = 0x2328, 1/16 s, -300 = 0xfffffed4.
    const SAMPLE: [u8; HEADER_LEN] =
        [0x40, 61, 6, 0, 0, 0, 0x23, 0x28, 0x01, 0, 0, 0, 0xff, 0xff, 0xfe, 0xd4];

    fn sample() -> Header {
        Header {
            ack: false,
            b1: true,
            b2: false,
            ptl: 61,
            protocol: PROTOCOL_TCP,
            cwnd: 9000,
            rtt: Seconds28::from_secs_f64(0.0625),
            feedback: -300,
        }
    }

    #[test]
    fn known_bytes() {
        assert_eq!(sample().to_bytes(), SAMPLE);
        assert_eq!(Header::parse(&SAMPLE), Ok(sample()));
    }

    #[test]
    fn a_stamp_and_its_bits() {
        let header = |stamp, data, bits| {
            header_of(&HeaderContent { stamp: Stamp(stamp), bits, data, packet_bytes: 1000, udp: false })
        };
        assert_eq!(header([9000.0, 0.0625, -300.0], true, 61 << 8 | B1), sample());
        let ack = Header { ack: true, b1: false, b2: true, ptl: 64, ..sample() };
        assert_eq!(header([9000.0, 0.0625, -300.0], false, 64 << 8 | B2), ack);
        // A request beyond the field's range saturates; NaN gives zero.
        let most = header([1e15, 1e3, 1e15], true, 0);
        assert_eq!((most.cwnd, most.rtt, most.feedback), (u32::MAX, Seconds28::MAX, i32::MAX));
        let least = header([f64::NAN, -1.0, -1e15], true, 0);
        assert_eq!((least.cwnd, least.rtt, least.feedback), (0, Seconds28::ZERO, i32::MIN));
    }

    #[test]
    fn what_follows_is_left_alone() {
        let mut buffer = [0xaa; HEADER_LEN + 3];
        sample().emit(&mut buffer).unwrap();
        assert_eq!(buffer[HEADER_LEN..], [0xaa; 3]);
        assert_eq!(Header::parse(&buffer), Ok(sample()));
    }

    #[test]
    fn errors_name_the_bad_value() {
        for len in 0..HEADER_LEN {
            let error = Header::parse(&SAMPLE[..len]).unwrap_err();
            assert_eq!(error.to_string(), format!("truncated pcp header: {len} bytes, must be at least 16"));
        }
        assert_eq!(sample().emit(&mut [0; 15]), Err(EmitError { header: "pcp", len: 15, needed: 16 }));
    }

    proptest! {
        #[test]
        fn round_trip(bits in any::<[bool; 3]>(), ptl: u8, protocol: u8, cwnd: u32, rtt: u32, feedback: i32) {
            let [ack, b1, b2] = bits;
            let header = Header { ack, b1, b2, ptl, protocol, cwnd, rtt: Seconds28::from_bits(rtt), feedback };
            let mut bytes = [0xff; HEADER_LEN];
            header.emit(&mut bytes).unwrap();
            prop_assert_eq!(Header::parse(&bytes), Ok(header));
        }

        #[test]
        fn parse_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Header::parse(&bytes);
        }
    }
}
