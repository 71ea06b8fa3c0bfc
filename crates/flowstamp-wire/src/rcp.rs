//! The RCP congestion header of Dukkipati 2007, section 6.1.1 and figure 6.2, between IP and the transport.
//!
//! ```text
//!    0                   1                   2                   3
//!    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!   +---------------------------------------------------------------+
//! 0 |  bottleneck rate            bytes/ms, unsigned                |
//!   +---------------------------------------------------------------+
//! 4 |  reverse bottleneck rate    bytes/ms, unsigned                |
//!   +-------------------------------+---------------+---------------+
//! 8 |  RTT           ms, unsigned   |   protocol    |    weight     |
//!   +-------------------------------+---------------+---------------+
//! ```
//!
//! All fields are big endian. Rates reach from 1 byte/ms (8 kb/s) to 2^32 - 1 bytes/ms (34.4 Tb/s) in whole bytes/ms. Zero is no rate:
//! from a sender a request for an unbounded rate, from a receiver nothing to return. RTTs reach from 0 to 65534 ms; all ones is
//! unknown. Conversions into the header saturate at these ends. They round a positive rate below 1 byte/ms up to it, because zero
//! would turn the slowest flow into one that asks for everything.
//!
//! Deviations (thesis says / we do / because):
//! 1. The figure gives the four fields 11 of 12 bytes / the last byte states the flow's weight, four bits of exponent and four of
//!    mantissa, and is zero for the weight 1 / section 3.6's unequal shares need one, and this aligns all fields.
//! 2. Section 6.1.1 sends an unknown RTT as zero / it is all ones / appendix F's routers can tell it from an RTT that rounds to
//!    0 ms. Zero is read as 0 ms.
//! 3. The protocol has no assigned number / [`IP_PROTOCOL`] is the second of RFC 3692's numbers for experiments / XCP has the
//!    first.
//!
//! # Panics
//!
//! Nothing in this module panics, whatever the bytes or the numbers: lengths are checked before the first access.

use crate::field::{Clock, EmitError, PROTOCOL_TCP, PROTOCOL_UDP, array, emit};
use crate::frame::{Codec, HeaderContent, Shim};
use thiserror::Error;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 12;
/// IP protocol number under which the header travels: 254, for experimentation and testing (RFC 3692, RFC 4727).
pub const IP_PROTOCOL: u8 = 254;

/// Position of each field, in bytes from the header's start.
mod field {
    use core::ops::Range;

    pub const BOTTLENECK_RATE: Range<usize> = 0..4;
    pub const REVERSE_BOTTLENECK_RATE: Range<usize> = 4..8;
    pub const RTT: Range<usize> = 8..10;
    pub const PROTOCOL: usize = 10;
    pub const WEIGHT: usize = 11;
}

/// A rate in the header's format: whole bytes/ms, 1 to 2^32 - 1 (8 kb/s to 34.4 Tb/s), or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BytesPerMilli(u32);

impl BytesPerMilli {
    /// No rate: "unbounded" in a sender's request, "none known" in a receiver's echo.
    pub const NONE: Self = Self(0);
    /// The lowest rate: 1 byte/ms, 8 kb/s.
    pub const MIN: Self = Self(1);
    /// The highest rate: 2^32 - 1 bytes/ms, 34.4 Tb/s.
    pub const MAX: Self = Self(u32::MAX);

    /// Converts from the field's 32 bits, in bytes/ms.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The field's 32 bits, in bytes/ms.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Converts from bytes/s, to the nearest byte/ms, half away from zero.
    ///
    /// A positive rate below 1500 bytes/s gives [`BytesPerMilli::MIN`], never zero; a rate above the range gives
    /// [`BytesPerMilli::MAX`]; zero, below zero and NaN give [`BytesPerMilli::NONE`].
    #[must_use]
    pub fn from_bytes_per_sec(bytes_per_sec: f64) -> Self {
        if bytes_per_sec > 0.0 {
            // A float-to-integer cast saturates.
            Self(((bytes_per_sec / 1e3).round() as u32).max(1))
        } else {
            Self::NONE
        }
    }

    /// Returns the value in bytes/s, exactly; `None` for [`BytesPerMilli::NONE`].
    #[must_use]
    pub fn to_bytes_per_sec(self) -> Option<f64> {
        (self != Self::NONE).then(|| f64::from(self.0) * 1e3)
    }
}

/// A round-trip time in the header's format: whole milliseconds, 0 to 65534, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis16(u16);

impl Millis16 {
    /// All ones: the sender has no estimate yet.
    pub const UNKNOWN: Self = Self(u16::MAX);
    /// The longest time: 65534 ms.
    pub const MAX: Self = Self(u16::MAX - 1);

    const CLOCK: Clock = Clock { steps_per_sec: 1000, max: Self::MAX.0 as u32 };

    /// Converts from the field's 16 bits, in ms.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The field's 16 bits, in ms.
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Converts from seconds, to the nearest millisecond; below 0 s gives 0 ms, above the range [`Millis16::MAX`], NaN
    /// [`Millis16::UNKNOWN`].
    ///
    /// A time below half a millisecond becomes 0 ms, which is a valid time.
    #[must_use]
    pub fn from_secs_f64(seconds: f64) -> Self {
        if seconds.is_nan() {
            return Self::UNKNOWN;
        }
        Self(Self::CLOCK.steps_of_secs(seconds) as u16)
    }

    /// Returns the value in seconds; `None` if unknown.
    #[must_use]
    pub fn to_secs_f64(self) -> Option<f64> {
        (self != Self::UNKNOWN).then(|| Self::CLOCK.secs(u32::from(self.0)))
    }

    /// Converts from picoseconds, to the nearest millisecond; above the range gives [`Millis16::MAX`].
    #[must_use]
    pub const fn from_picos(picos: u64) -> Self {
        Self(Self::CLOCK.steps_of_picos(picos) as u16)
    }

    /// Returns the value in picoseconds, exactly; `None` if unknown.
    #[must_use]
    pub const fn to_picos(self) -> Option<u64> {
        if self.0 == Self::UNKNOWN.0 { None } else { Some(Self::CLOCK.picos(self.0 as u32)) }
    }
}

/// Why bytes are not an RCP header. The thesis's header has neither version nor length, so it can only be too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// fewer bytes than a header has
    #[error("truncated rcp header: {len} bytes, must be at least {HEADER_LEN}")]
    Truncated {
        /// Bytes given.
        len: usize,
    },
}

/// A decoded RCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// The lowest rate of the path so far; at first the rate that the sender requests.
    pub bottleneck_rate: BytesPerMilli,
    /// The bottleneck rate of the opposite direction, which the receiver returns.
    pub reverse_bottleneck_rate: BytesPerMilli,
    /// The sender's estimate of the round-trip time.
    pub rtt: Millis16,
    /// IP protocol number of what follows, [`PROTOCOL_TCP`] as a rule.
    pub protocol: u8,
    /// The flow's weight, coded as [`flowstamp_laws::rcp::header::weight_of`] reads it.
    pub weight: u8,
}

impl Header {
    /// A data packet's header in front of TCP: the requested rate and the sender's RTT, with nothing to return.
    #[must_use]
    pub const fn data(bottleneck_rate: BytesPerMilli, rtt: Millis16) -> Self {
        Self {
            bottleneck_rate,
            reverse_bottleneck_rate: BytesPerMilli::NONE,
            rtt,
            protocol: PROTOCOL_TCP,
            weight: 0,
        }
    }

    /// A pure ack's header in front of TCP: only the rate returned. Its own rate is zero, as section 6.1.1 asks, and its
    /// RTT unknown (deviation 2), so that routers leave it out of their average.
    #[must_use]
    pub const fn ack(reverse_bottleneck_rate: BytesPerMilli) -> Self {
        Self {
            bottleneck_rate: BytesPerMilli::NONE,
            reverse_bottleneck_rate,
            rtt: Millis16::UNKNOWN,
            protocol: PROTOCOL_TCP,
            weight: 0,
        }
    }

    /// Reads the header at the start of `bytes` and ignores the bytes after it.
    ///
    /// # Errors
    ///
    /// [`ParseError::Truncated`] if there are fewer than [`HEADER_LEN`] bytes.
    ///
    /// # Panics
    ///
    /// Never, for any `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let Some(bytes) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(ParseError::Truncated { len: bytes.len() });
        };
        let rate = |range| BytesPerMilli(u32::from_be_bytes(array(bytes, range)));
        Ok(Self {
            bottleneck_rate: rate(field::BOTTLENECK_RATE),
            reverse_bottleneck_rate: rate(field::REVERSE_BOTTLENECK_RATE),
            rtt: Millis16(u16::from_be_bytes(array(bytes, field::RTT))),
            protocol: bytes[field::PROTOCOL],
            weight: bytes[field::WEIGHT],
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
        emit("rcp", self.to_bytes(), buffer)
    }

    /// The header's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[field::BOTTLENECK_RATE].copy_from_slice(&self.bottleneck_rate.0.to_be_bytes());
        bytes[field::REVERSE_BOTTLENECK_RATE].copy_from_slice(&self.reverse_bottleneck_rate.0.to_be_bytes());
        bytes[field::RTT].copy_from_slice(&self.rtt.0.to_be_bytes());
        bytes[field::PROTOCOL] = self.protocol;
        bytes[field::WEIGHT] = self.weight;
        bytes
    }
}

impl From<Header> for Shim {
    fn from(header: Header) -> Self {
        Self::new(IP_PROTOCOL, &header.to_bytes())
    }
}

/// Writes a stamp of RCP.
pub const CODEC: Codec = Codec { len: HEADER_LEN, shim: |content| header_of(content).into() };

/// The header of a packet. A request beyond the field's range becomes one for an unbounded rate.
fn header_of(content: &HeaderContent) -> Header {
    let stamp = flowstamp_laws::rcp::Header::from(content.stamp);
    let rate = BytesPerMilli::from_bytes_per_sec(stamp.rate);
    let protocol = if content.udp { PROTOCOL_UDP } else { PROTOCOL_TCP };
    let of = |header| Header { protocol, ..header };
    if !content.data {
        return of(Header::ack(rate));
    }
    let wish = if rate == BytesPerMilli::MAX { BytesPerMilli::NONE } else { rate };
    let rtt = if stamp.rtt_s > 0.0 { Millis16::from_secs_f64(stamp.rtt_s) } else { Millis16::UNKNOWN };
    Header { weight: content.bits as u8, ..of(Header::data(wish, rtt)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Written out by hand from figure 6.2: 1 Gb/s = 125,000 bytes/ms, 10 Mb/s returned = 1250 bytes/ms, 80 ms, TCP.
    const SAMPLE: [u8; HEADER_LEN] = [0, 0x01, 0xe8, 0x48, 0, 0, 0x04, 0xe2, 0, 80, 6, 0];

    fn sample() -> Header {
        Header {
            reverse_bottleneck_rate: BytesPerMilli::from_bytes_per_sec(1.25e6),
            ..Header::data(BytesPerMilli::from_bytes_per_sec(125e6), Millis16::from_secs_f64(0.08))
        }
    }

    #[test]
    fn known_bytes() {
        assert_eq!(sample().to_bytes(), SAMPLE);
        assert_eq!(Header::parse(&SAMPLE), Ok(sample()));
    }

    #[test]
    fn what_follows_is_left_alone() {
        let mut buffer = [0xaa; HEADER_LEN + 3];
        sample().emit(&mut buffer).unwrap();
        assert_eq!(buffer[HEADER_LEN..], [0xaa; 3]);
        assert_eq!(Header::parse(&buffer), Ok(sample()));
    }

    #[test]
    fn an_ack_only_returns_a_rate() {
        let bytes = Header::ack(BytesPerMilli::from_bits(1250)).to_bytes();
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0x04, 0xe2, 0xff, 0xff, 6, 0]);
    }

    #[test]
    fn errors_name_the_bad_value() {
        let text = |len| Header::parse(&SAMPLE[..len]).unwrap_err().to_string();
        assert_eq!(text(11), "truncated rcp header: 11 bytes, must be at least 12");
        assert_eq!(text(0), "truncated rcp header: 0 bytes, must be at least 12");
        let mut short = [0xaa; 11];
        assert_eq!(sample().emit(&mut short), Err(EmitError { header: "rcp", len: 11, needed: 12 }));
        assert_eq!(short, [0xaa; 11]);
    }

    #[test]
    fn rates_saturate_and_never_round_to_none() {
        let bits = |rate| BytesPerMilli::from_bytes_per_sec(rate).to_bits();
        assert_eq!([bits(0.0), bits(-1.0), bits(f64::NAN), bits(f64::NEG_INFINITY)], [0; 4]);
        assert_eq!([bits(f64::MIN_POSITIVE), bits(1.0), bits(499.0), bits(1499.0)], [1; 4]);
        assert_eq!([bits(1500.0), bits(2499.9)], [2; 2]);
        assert_eq!([bits(1e15), bits(f64::INFINITY), bits(4_294_967_295e3)], [u32::MAX; 3]);
        assert_eq!(BytesPerMilli::NONE.to_bytes_per_sec(), None);
        assert_eq!(BytesPerMilli::MIN.to_bytes_per_sec(), Some(1000.0));
    }

    #[test]
    fn times_saturate_below_unknown() {
        assert_eq!(Millis16::from_secs_f64(-1.0), Millis16::from_bits(0));
        assert_eq!(Millis16::from_secs_f64(0.000_4), Millis16::from_bits(0));
        assert_eq!(Millis16::from_secs_f64(65.535), Millis16::MAX);
        assert_eq!(Millis16::from_secs_f64(f64::INFINITY), Millis16::MAX);
        assert_eq!(Millis16::from_secs_f64(f64::NAN), Millis16::UNKNOWN);
        assert_eq!(Millis16::from_picos(u64::MAX), Millis16::MAX);
        assert_eq!(Millis16::from_picos(65_535_000_000_000), Millis16::MAX);
        assert_eq!(Millis16::from_picos(499_999_999), Millis16::from_bits(0));
        assert_eq!(Millis16::from_picos(500_000_000), Millis16::from_bits(1));
        assert_eq!((Millis16::UNKNOWN.to_secs_f64(), Millis16::UNKNOWN.to_picos()), (None, None));
        assert_eq!(Millis16::from_bits(0).to_secs_f64(), Some(0.0));
    }

    prop_compose! {
        fn header()(rate: u32, reverse: u32, rtt: u16, protocol: u8, weight: u8) -> Header {
            Header {
                bottleneck_rate: BytesPerMilli::from_bits(rate),
                reverse_bottleneck_rate: BytesPerMilli::from_bits(reverse),
                rtt: Millis16::from_bits(rtt),
                protocol,
                weight,
            }
        }
    }

    proptest! {
        #[test]
        fn round_trip(header in header()) {
            let mut bytes = [0xff; HEADER_LEN];
            header.emit(&mut bytes).unwrap();
            prop_assert_eq!(Header::parse(&bytes), Ok(header));
        }

        #[test]
        fn parse_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(Header::parse(&bytes).is_ok(), bytes.len() >= HEADER_LEN);
        }

        #[test]
        fn what_parses_emits_the_same_bytes(bytes in any::<[u8; HEADER_LEN]>()) {
            let header = Header::parse(&bytes).unwrap();
            prop_assert_eq!(header.to_bytes(), bytes);
        }

        #[test]
        fn values_survive_their_units(rate: u32, rtt in 0..u16::MAX) {
            let (rate, rtt) = (BytesPerMilli::from_bits(rate), Millis16::from_bits(rtt));
            prop_assert_eq!(BytesPerMilli::from_bytes_per_sec(rate.to_bytes_per_sec().unwrap_or(0.0)), rate);
            prop_assert_eq!(Millis16::from_secs_f64(rtt.to_secs_f64().unwrap()), rtt);
            prop_assert_eq!(Millis16::from_picos(rtt.to_picos().unwrap()), rtt);
        }

        /// Off by at most half a byte/ms, except for the lowest rates, which are rounded up.
        #[test]
        fn rates_are_rounded_to_the_nearest(bytes_per_sec in 0.001..4.2e12f64) {
            let back = BytesPerMilli::from_bytes_per_sec(bytes_per_sec).to_bytes_per_sec().unwrap();
            let off = (back - bytes_per_sec).abs();
            prop_assert!(off <= 500.001 || back == 1000.0 && bytes_per_sec < 1000.0);
        }
    }
}
