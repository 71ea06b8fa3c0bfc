//! The XCP congestion header, Internet-Draft draft-falk-xcp-spec-03 (version 3), between IP and the transport.
//!
//! ```text
//!    0                   1                   2                   3
//!    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!   +---------------+---------------+-------+-------+---------------+
//! 0 |   protocol    |  length = 20  | ver 3 |format |    unused     |
//!   +---------------+---------------+-------+-------+---------------+
//! 4 |  X                     seconds, unsigned, 28 fraction bits    |
//!   +---------------------------------------------------------------+
//! 8 |  RTT                   seconds, unsigned, 28 fraction bits    |
//!   +---------------------------------------------------------------+
//! 12|  Reverse_Feedback      bytes/s, signed                        |
//!   +---------------------------------------------------------------+
//! 16|  Delta_Throughput      bytes/s, signed                        |
//!   +---------------------------------------------------------------+
//! ```
//!
//! All fields are big endian. Times reach from 0 to just under 16 s in steps of 2^-28 s (3.7 ns); feedback reaches
//! +-2^31 bytes/s (+-17.2 Gb/s) per packet. Conversions into the header saturate at these ends.
//!
//! The draft never got an IP protocol number: [`IP_PROTOCOL`] is one of RFC 3692's numbers for experiments.
//!
//! # Panics
//!
//! Nothing in this module panics, whatever the bytes or the numbers: lengths are checked before the first access.

use crate::field::{Clock, EmitError, PROTOCOL_TCP, array, emit};
use crate::frame::{Codec, HeaderContent, Shim};
use flowstamp_laws::xcp::{Encoding, Throughput, Window};
use thiserror::Error;

/// Length of the header in bytes; also the only valid value of its length field.
pub const HEADER_LEN: usize = 20;
/// The draft's version that this codec speaks.
pub const VERSION: u8 = 3;
/// IP protocol number under which the header travels: 253, for experimentation and testing (RFC 3692, RFC 4727).
pub const IP_PROTOCOL: u8 = 253;

/// Position of each field, in bytes from the header's start.
mod field {
    use core::ops::Range;

    pub const PROTOCOL: usize = 0;
    pub const LENGTH: usize = 1;
    /// Version in the high four bits, format in the low four.
    pub const VERSION_FORMAT: usize = 2;
    pub const UNUSED: usize = 3;
    pub const X: Range<usize> = 4..8;
    pub const RTT: Range<usize> = 8..12;
    pub const REVERSE_FEEDBACK: Range<usize> = 12..16;
    pub const DELTA_THROUGHPUT: Range<usize> = 16..20;
}

/// A time in the header's format: unsigned seconds with 28 fraction bits, 0 to 16 s (exclusive), step 2^-28 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds28(u32);

impl Seconds28 {
    /// Zero seconds, which means "unknown" in the RTT field.
    pub const ZERO: Self = Self(0);
    /// The longest time the format holds: 16 s - 2^-28 s.
    pub const MAX: Self = Self(u32::MAX);

    const CLOCK: Clock = Clock { steps_per_sec: 1 << 28, max: u32::MAX };

    /// Converts from the field's 32 bits, in steps of 2^-28 s.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The field's 32 bits, in steps of 2^-28 s.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Converts from seconds, to the nearest step; below 0 s and NaN give 0 s, 16 s and above give [`Seconds28::MAX`].
    ///
    /// A positive time below half a step (1.86 ns) becomes 0, which an RTT field reads as "unknown".
    #[must_use]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self(Self::CLOCK.steps_of_secs(seconds))
    }

    /// Returns the value in seconds, exactly: a 64-bit float holds every value of the format.
    #[must_use]
    pub fn to_secs_f64(self) -> f64 {
        Self::CLOCK.secs(self.0)
    }

    /// Converts from picoseconds, to the nearest step; 16 s and above give [`Seconds28::MAX`].
    ///
    /// Below half a step (1.86 ns) the result is 0, which an RTT field reads as "unknown".
    #[must_use]
    pub const fn from_picos(picos: u64) -> Self {
        Self(Self::CLOCK.steps_of_picos(picos))
    }

    /// Returns the value in picoseconds, to the nearest one.
    #[must_use]
    pub const fn to_picos(self) -> u64 {
        Self::CLOCK.picos(self.0)
    }
}

/// A rate in bytes/s as in the feedback fields: rounded to a whole number, limited to +-2^31 bytes/s; NaN gives 0.
#[must_use]
pub fn saturating_bytes_per_sec(bytes_per_sec: f64) -> i32 {
    // A float-to-integer cast saturates and maps NaN to 0.
    bytes_per_sec.round() as i32
}

/// The draft's Format field: the kind of header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// All fields count; routers read and rewrite Delta_Throughput.
    Standard,
    /// Only Reverse_Feedback counts (pure acknowledgements): routers must not process the header.
    Minimal,
}

impl Format {
    /// The field's four bits.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Standard => 1,
            Self::Minimal => 2,
        }
    }

    /// Converts from the field's four bits; `None` if the draft defines no such format.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Standard),
            2 => Some(Self::Minimal),
            _ => None,
        }
    }
}

/// Why bytes are not an XCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// fewer bytes than a header has
    #[error("truncated xcp header: {len} bytes, must be at least {HEADER_LEN}")]
    Truncated {
        /// Bytes given.
        len: usize,
    },
    /// the version field names another version of the draft
    #[error("unknown xcp version {version}: must be {VERSION}")]
    Version {
        /// The field's value.
        version: u8,
    },
    /// the length field does not say the length that version 3 fixes
    #[error("bad xcp length field {length}: must be {HEADER_LEN}")]
    Length {
        /// The field's value, in bytes.
        length: u8,
    },
    /// the format field is neither standard nor minimal
    #[error("unknown xcp format {format}: must be 1 (standard) or 2 (minimal)")]
    Format {
        /// The field's value.
        format: u8,
    },
}

/// A decoded XCP header.
///
/// Length and version are constants of the draft's version 3 and so have no field here. The unused byte is written as zero and
/// ignored when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// IP protocol number of what follows, [`PROTOCOL_TCP`] as a rule.
    pub protocol: u8,
    /// Which fields count.
    pub format: Format,
    /// X: the sender's time between packets, i.e. RTT / packets in flight. With 0 s only negative feedback is given.
    pub x: Seconds28,
    /// The sender's estimate of the round-trip time; 0 s means unknown.
    pub rtt: Seconds28,
    /// Feedback, in bytes/s, that the packet's sender returns for the opposite direction.
    pub reverse_feedback: i32,
    /// Change of throughput, in bytes/s, that the sender requests and that routers lower.
    pub delta_throughput: i32,
}

impl Header {
    /// A standard header in front of TCP; times and rates as in the fields of the same names.
    #[must_use]
    pub const fn standard(
        x: Seconds28,
        rtt: Seconds28,
        reverse_feedback: i32,
        delta_throughput: i32,
    ) -> Self {
        Self { protocol: PROTOCOL_TCP, format: Format::Standard, x, rtt, reverse_feedback, delta_throughput }
    }

    /// A minimal header in front of TCP: only the returned feedback, in bytes/s; all other fields are zero, as the draft requires.
    #[must_use]
    pub const fn minimal(reverse_feedback: i32) -> Self {
        Self {
            protocol: PROTOCOL_TCP,
            format: Format::Minimal,
            x: Seconds28::ZERO,
            rtt: Seconds28::ZERO,
            reverse_feedback,
            delta_throughput: 0,
        }
    }

    /// Reads the header at the start of `bytes` and ignores the bytes after it.
    ///
    /// Fields that a minimal header does not use are returned unchanged.
    ///
    /// # Errors
    ///
    /// [`ParseError`], checked in this order: too few bytes, version, length field, format. The version comes before
    /// the length since another version may well have another length.
    ///
    /// # Panics
    ///
    /// Never, for any `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let Some(bytes) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(ParseError::Truncated { len: bytes.len() });
        };
        let version = bytes[field::VERSION_FORMAT] >> 4;
        if version != VERSION {
            return Err(ParseError::Version { version });
        }
        let length = bytes[field::LENGTH];
        if usize::from(length) != HEADER_LEN {
            return Err(ParseError::Length { length });
        }
        let format = bytes[field::VERSION_FORMAT] & 0x0f;
        let Some(format) = Format::from_code(format) else {
            return Err(ParseError::Format { format });
        };
        Ok(Self {
            protocol: bytes[field::PROTOCOL],
            format,
            x: Seconds28(u32::from_be_bytes(array(bytes, field::X))),
            rtt: Seconds28(u32::from_be_bytes(array(bytes, field::RTT))),
            reverse_feedback: i32::from_be_bytes(array(bytes, field::REVERSE_FEEDBACK)),
            delta_throughput: i32::from_be_bytes(array(bytes, field::DELTA_THROUGHPUT)),
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
        emit("xcp", self.to_bytes(), buffer)
    }

    /// The header's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[field::PROTOCOL] = self.protocol;
        bytes[field::LENGTH] = HEADER_LEN as u8;
        bytes[field::VERSION_FORMAT] = VERSION << 4 | self.format.code();
        bytes[field::UNUSED] = 0;
        bytes[field::X].copy_from_slice(&self.x.0.to_be_bytes());
        bytes[field::RTT].copy_from_slice(&self.rtt.0.to_be_bytes());
        bytes[field::REVERSE_FEEDBACK].copy_from_slice(&self.reverse_feedback.to_be_bytes());
        bytes[field::DELTA_THROUGHPUT].copy_from_slice(&self.delta_throughput.to_be_bytes());
        bytes
    }
}

impl From<Header> for Shim {
    fn from(header: Header) -> Self {
        Self::new(IP_PROTOCOL, &header.to_bytes())
    }
}

/// Writes the paper's form as the Internet-Draft's: `X = rtt s / cwnd`, and the feedback divided by the RTT.
pub const PAPER: Codec = Codec { len: HEADER_LEN, shim: |content| header_of::<Window>(content).into() };
/// Writes the Internet-Draft's form.
pub const DRAFT: Codec = Codec { len: HEADER_LEN, shim: |content| header_of::<Throughput>(content).into() };

/// The header of a packet; acks have the minimal one.
fn header_of<E: Encoding>(content: &HeaderContent) -> Header {
    let view = E::read(&content.stamp, f64::from(content.packet_bytes));
    let feedback = saturating_bytes_per_sec(view.feedback);
    if content.data {
        let x = Seconds28::from_secs_f64(view.inter_packet_s);
        let rtt = Seconds28::from_secs_f64(view.rtt_s);
        Header::standard(x, rtt, 0, feedback)
    } else {
        Header::minimal(feedback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Written out by hand from the draft's figure: X = 1/16 s, RTT = 1.5 s, feedback -2 and +1000 bytes/s.
    const SAMPLE: [u8; HEADER_LEN] =
        [6, 20, 0x31, 0, 0x01, 0, 0, 0, 0x18, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0x03, 0xe8];

    fn sample() -> Header {
        Header::standard(Seconds28::from_secs_f64(0.0625), Seconds28::from_secs_f64(1.5), -2, 1000)
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
    fn minimal_zeroes_what_it_does_not_use() {
        let bytes = Header::minimal(-7).to_bytes();
        assert_eq!(bytes[..4], [6, 20, 0x32, 0]);
        assert_eq!(bytes[4..12], [0; 8]);
        assert_eq!(bytes[12..], [0xff, 0xff, 0xff, 0xf9, 0, 0, 0, 0]);
    }

    #[test]
    fn errors_name_the_bad_value() {
        let with = |at: usize, value: u8| {
            let mut bytes = SAMPLE;
            bytes[at] = value;
            Header::parse(&bytes).unwrap_err()
        };
        let cases = [
            (
                Header::parse(&SAMPLE[..19]).unwrap_err(),
                "truncated xcp header: 19 bytes, must be at least 20",
            ),
            (Header::parse(&[]).unwrap_err(), "truncated xcp header: 0 bytes, must be at least 20"),
            (with(2, 0x21), "unknown xcp version 2: must be 3"),
            (with(1, 24), "bad xcp length field 24: must be 20"),
            (with(2, 0x33), "unknown xcp format 3: must be 1 (standard) or 2 (minimal)"),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
        assert_eq!(sample().emit(&mut [0; 19]), Err(EmitError { header: "xcp", len: 19, needed: 20 }));
    }

    #[test]
    fn seconds_saturate() {
        assert_eq!(Seconds28::from_secs_f64(-1.0), Seconds28::ZERO);
        assert_eq!(Seconds28::from_secs_f64(f64::NAN), Seconds28::ZERO);
        assert_eq!(Seconds28::from_secs_f64(16.0), Seconds28::MAX);
        assert_eq!(Seconds28::from_secs_f64(f64::INFINITY), Seconds28::MAX);
        assert_eq!(Seconds28::from_picos(u64::MAX), Seconds28::MAX);
        assert_eq!(Seconds28::from_picos(16_000_000_000_000), Seconds28::MAX);
        assert_eq!(Seconds28::from_picos(15_999_999_999_999), Seconds28::MAX);
        assert_eq!(Seconds28::from_picos(1_862), Seconds28::ZERO);
        assert_eq!(Seconds28::from_picos(1_863), Seconds28::from_bits(1));
        assert_eq!(Seconds28::from_picos(80_000_000_000), Seconds28::from_secs_f64(0.08));
        assert_eq!(Seconds28::MAX.to_picos(), 15_999_999_996_275);
    }

    #[test]
    fn rates_saturate() {
        assert_eq!(saturating_bytes_per_sec(1e12), i32::MAX);
        assert_eq!(saturating_bytes_per_sec(-1e12), i32::MIN);
        assert_eq!(saturating_bytes_per_sec(f64::NAN), 0);
        assert_eq!(saturating_bytes_per_sec(-1.5), -2);
        assert_eq!(saturating_bytes_per_sec(125_000_000.4), 125_000_000);
    }

    prop_compose! {
        fn header()(protocol: u8, minimal: bool, x: u32, rtt: u32, reverse_feedback: i32, delta_throughput: i32) -> Header {
            Header {
                protocol,
                format: if minimal { Format::Minimal } else { Format::Standard },
                x: Seconds28::from_bits(x),
                rtt: Seconds28::from_bits(rtt),
                reverse_feedback,
                delta_throughput,
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
            let _ = Header::parse(&bytes);
        }

        /// Random bytes almost never pass the first checks, so these have the right first word except for one byte.
        #[test]
        fn what_parses_emits_the_same_bytes(
            mut bytes in any::<[u8; HEADER_LEN]>(), at in 0_usize..3, value: u8,
        ) {
            bytes[..4].copy_from_slice(&[6, 20, 0x31, 0]);
            bytes[at] = value;
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert_eq!(header.to_bytes(), bytes);
            }
        }

        #[test]
        fn seconds_survive_both_units(bits: u32) {
            let time = Seconds28::from_bits(bits);
            prop_assert_eq!(Seconds28::from_secs_f64(time.to_secs_f64()), time);
            prop_assert_eq!(Seconds28::from_picos(time.to_picos()), time);
        }

        #[test]
        fn picos_are_rounded_to_the_nearest_step(picos in 0_u64..15_999_999_990_000) {
            prop_assert!(Seconds28::from_picos(picos).to_picos().abs_diff(picos) <= 1863);
        }
    }
}
