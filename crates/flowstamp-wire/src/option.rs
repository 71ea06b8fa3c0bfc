//! The stamp as a TCP option, as real hosts send it: an unmodified kernel leaves no room for a header of its own.
//!
//! ```text
//!    0                   1                   2                   3
//!    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!   +---------------+---------------+-------------------------------+
//! 0 |  kind 253     |  16, or 8     |  "RC", "XC" or "VC"           |
//!   +---------------+---------------+-------------------------------+
//! 4 |  echo    RCP: rate received in bytes/ms, unsigned             |
//!   |          XCP: bytes/s, the sum of all granted changes mod 2^32|
//!   |          VCP: last code, packets with 01, 10 and 11 mod 256   |
//!   +---------------------------------------------------------------+  end of the short form
//! 8 |  stamp   RCP: bytes/ms, unsigned     XCP: bytes/s, signed     |
//!   |          VCP: t_rho of the routers, us                        |
//!   +-------------------------------+-------------------------------+
//! 12|  RTT     16-bit float, us     |  flags        XCP: in flight  |
//!   +-------------------------------+-------------------------------+
//! ```
//!
//! Kind 253 is for experiments (RFC 4727), and the two letters are an experiment identifier (RFC 6994). All fields are big endian.
//! The short form is for acks whose option space is taken by SACK blocks. `crates/flowstamp-linux/bpf/option.h` defines the same
//! format for the kernel; its `tests/equality.rs` compares the two.
//!
//! # Panics
//!
//! Nothing in this module panics, whatever the bytes or the numbers: lengths are checked before the first access.

use crate::field::array;
use thiserror::Error;

/// Kind of the option.
pub const KIND: u8 = 253;
/// Length with a stamp.
pub const LONG_LEN: usize = 16;
/// Length without a stamp: the echo alone.
pub const SHORT_LEN: usize = 8;
/// Position of the echo, in either form, in bytes from the option's start.
pub const ECHO: core::ops::Range<usize> = 4..8;
/// Position of the stamp in the long form, in bytes from the option's start. Routers overwrite it.
pub const STAMP: core::ops::Range<usize> = 8..12;
/// RCP's request for an unbounded rate: above any link's.
pub const UNBOUNDED_RATE: u32 = u32::MAX;
/// XCP's request for an unbounded increase.
pub const UNBOUNDED_DELTA: i32 = i32::MAX;
/// RCP's and VCP's flag on packets of a handshake.
pub const FLAG_HANDSHAKE: u16 = 1;

/// The protocol that a stamp belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The Rate Control Protocol.
    Rcp,
    /// The Explicit Control Protocol, with changes of throughput as in the Internet-Draft.
    Xcp,
    /// The Variable-structure congestion Control Protocol. Its code is in IP's ECN bits; the option marks these bits as VCP's.
    Vcp,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rcp, Self::Xcp, Self::Vcp];

    /// The name in scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rcp => "rcp",
            Self::Xcp => "xcp",
            Self::Vcp => "vcp",
        }
    }

    /// The identifier in the option.
    #[must_use]
    pub const fn identifier(self) -> [u8; 2] {
        match self {
            Self::Rcp => *b"RC",
            Self::Xcp => *b"XC",
            Self::Vcp => *b"VC",
        }
    }
}

/// A time as 16-bit float: exponent in the upper 4 bits, mantissa in the lower 12. Holds 0 to 134 s in microseconds, rounded down by
/// at most 2^-11 of the time, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MicrosFloat(u16);

impl MicrosFloat {
    /// All ones: the sender has no estimate yet.
    pub const UNKNOWN: Self = Self(u16::MAX);
    /// The longest time: 4094 x 2^15 us, 134 s.
    pub const MAX: Self = Self(u16::MAX - 1);

    /// Converts from the field's 16 bits.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The field's 16 bits.
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Converts from microseconds, rounded down; values above the range give [`MicrosFloat::MAX`].
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        let exponent = (64 - micros.leading_zeros()).saturating_sub(12);
        if exponent > 15 {
            return Self::MAX;
        }
        let bits = (exponent << 12) as u16 | (micros >> exponent) as u16;
        if bits == Self::UNKNOWN.0 { Self::MAX } else { Self(bits) }
    }

    /// Returns the value in microseconds, exactly; `None` if unknown.
    #[must_use]
    pub const fn to_micros(self) -> Option<u32> {
        if self.0 == Self::UNKNOWN.0 { None } else { Some(((self.0 & 0xfff) as u32) << (self.0 >> 12)) }
    }
}

/// The part of the option that routers read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// RCP: the rate in bytes/ms, at first the sender's request, then the lowest on the path. XCP: the change of throughput in bytes/s,
    /// as the bits of an `i32`. VCP: `t_rho` in microseconds, the longest of the routers so far; zero if no router has set it.
    pub value: u32,
    /// The sender's estimate of the round-trip time; VCP has none.
    pub rtt: MicrosFloat,
    /// RCP, VCP: flags. XCP: packets in flight, at least 1, saturating.
    pub last: u16,
}

/// Why bytes are not this option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// fewer bytes than the option says it has, or than any has
    #[error("truncated option: {len} bytes, must be at least {needed}")]
    Truncated {
        /// Bytes given.
        len: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// another kind, identifier or length: some other option
    #[error("no stamp: kind {kind}, length {len}")]
    Other {
        /// The kind.
        kind: u8,
        /// The length.
        len: u8,
    },
}

/// A decoded option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StampOption {
    /// The protocol that the stamp belongs to.
    pub protocol: Protocol,
    /// Feedback that the receiver returns; zero is none.
    pub echo: u32,
    /// The stamp; `None` in the short form.
    pub stamp: Option<Stamp>,
}

impl StampOption {
    /// Reads the option at the start of `bytes` and ignores the bytes after it.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if it is another option, or does not end within `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let truncated = |needed| ParseError::Truncated { len: bytes.len(), needed };
        let start = bytes.first_chunk::<4>().ok_or(truncated(4))?;
        let [kind, len, ..] = *start;
        let protocol = Protocol::ALL.into_iter().find(|protocol| protocol.identifier() == start[2..4]);
        let (KIND, SHORT_LEN | LONG_LEN, Some(protocol)) = (kind, usize::from(len), protocol) else {
            return Err(ParseError::Other { kind, len });
        };
        let option = bytes.get(..usize::from(len)).ok_or(truncated(len.into()))?;
        let echo = u32::from_be_bytes(array(option, 4..8));
        let stamp = (option.len() == LONG_LEN).then(|| Stamp {
            value: u32::from_be_bytes(array(option, STAMP)),
            rtt: MicrosFloat(u16::from_be_bytes(array(option, 12..14))),
            last: u16::from_be_bytes(array(option, 14..16)),
        });
        Ok(Self { protocol, echo, stamp })
    }

    /// Finds the first option of `protocol` among TCP's options, the bytes between its fixed header and its data. Returns its position and
    /// the option. Options behind a malformed one are not found, as TCP itself stops there.
    #[must_use]
    pub fn find(options: &[u8], protocol: Protocol) -> Option<(usize, Self)> {
        let mut at = 0;
        loop {
            match *options.get(at)? {
                0 => return None,
                1 => at += 1,
                _ => {
                    let len = usize::from(*options.get(at + 1)?);
                    let option = options.get(at..at + len).filter(|_| len >= 2)?;
                    if let Ok(found) = Self::parse(option)
                        && found.protocol == protocol
                    {
                        return Some((at, found));
                    }
                    at += len;
                }
            }
        }
    }

    /// The option's bytes: 16, or 8 without a stamp.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let len = if self.stamp.is_some() { LONG_LEN } else { SHORT_LEN };
        let mut bytes = vec![KIND, len as u8];
        bytes.extend(self.protocol.identifier());
        bytes.extend(self.echo.to_be_bytes());
        if let Some(stamp) = self.stamp {
            bytes.extend(stamp.value.to_be_bytes());
            bytes.extend(stamp.rtt.0.to_be_bytes());
            bytes.extend(stamp.last.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_bytes() {
        let rcp = [253, 16, b'R', b'C', 0, 0, 0, 125, 0, 1, 0xe8, 0x48, 0x5c, 0x35, 0, 1];
        let stamp = Stamp { value: 125_000, rtt: MicrosFloat::from_micros(100_000), last: FLAG_HANDSHAKE };
        let option = StampOption { protocol: Protocol::Rcp, echo: 125, stamp: Some(stamp) };
        assert_eq!(StampOption::parse(&rcp), Ok(option));
        assert_eq!(option.to_vec(), rcp);
        let xcp = [253, 8, b'X', b'C', 0, 0, 3, 0xe8];
        let option = StampOption { protocol: Protocol::Xcp, echo: 1000, stamp: None };
        assert_eq!(StampOption::parse(&xcp), Ok(option));
        assert_eq!(option.to_vec(), xcp);
        let vcp = [253, 16, b'V', b'C', 3, 5, 6, 7, 0, 3, 0x0d, 0x40, 0, 0, 0, 0];
        let stamp = Stamp { value: 200_000, rtt: MicrosFloat::from_micros(0), last: 0 };
        let option = StampOption { protocol: Protocol::Vcp, echo: 0x0305_0607, stamp: Some(stamp) };
        assert_eq!(StampOption::parse(&vcp), Ok(option));
        assert_eq!(option.to_vec(), vcp);
    }

    #[test]
    fn errors_name_the_bad_value() {
        let text = |bytes: &[u8]| StampOption::parse(bytes).unwrap_err().to_string();
        assert_eq!(text(&[253, 16, b'R']), "truncated option: 3 bytes, must be at least 4");
        assert_eq!(text(&[253, 16, b'R', b'C', 0]), "truncated option: 5 bytes, must be at least 16");
        assert_eq!(text(&[253, 12, b'R', b'C']), "no stamp: kind 253, length 12");
        assert_eq!(text(&[254, 16, b'R', b'C']), "no stamp: kind 254, length 16");
        assert_eq!(text(&[253, 16, 0xf9, 0x89]), "no stamp: kind 253, length 16");
    }

    #[test]
    fn times_saturate_below_unknown() {
        let micros = |us| MicrosFloat::from_micros(us).to_micros();
        assert_eq!([micros(0), micros(1), micros(4095), micros(4096)], [0, 1, 4095, 4096].map(Some));
        assert_eq!(micros(4097), Some(4096));
        assert_eq!([micros(4095 << 15), micros(1 << 40), micros(u64::MAX)], [Some(4094 << 15); 3]);
        assert_eq!(MicrosFloat::UNKNOWN.to_micros(), None);
    }

    prop_compose! {
        fn option()(protocol in 0..3_usize, echo: u32, value: u32, rtt: u16, last: u16, long: bool) -> StampOption {
            let stamp = Stamp { value, rtt: MicrosFloat::from_bits(rtt), last };
            StampOption { protocol: Protocol::ALL[protocol], echo, stamp: long.then_some(stamp) }
        }
    }

    proptest! {
        #[test]
        fn round_trip(option in option()) {
            prop_assert_eq!(StampOption::parse(&option.to_vec()), Ok(option));
        }

        #[test]
        fn found_behind_others(option in option(), no_ops in 0_usize..4, timestamps: bool, after in 0_usize..8) {
            let mut options = vec![1; no_ops];
            if timestamps {
                options.extend([8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
            }
            let at = options.len();
            options.extend(option.to_vec());
            options.resize(options.len() + after, 0);
            prop_assert_eq!(StampOption::find(&options, option.protocol), Some((at, option)));
            for other in Protocol::ALL.into_iter().filter(|protocol| *protocol != option.protocol) {
                prop_assert_eq!(StampOption::find(&options, other), None);
            }
        }

        #[test]
        fn any_bytes_are_safe(bytes in proptest::collection::vec(any::<u8>(), 0..48)) {
            for protocol in Protocol::ALL {
                if let Some((at, option)) = StampOption::find(&bytes, protocol) {
                    prop_assert_eq!(&bytes[at..at + option.to_vec().len()], &option.to_vec());
                }
            }
        }

        #[test]
        fn times_are_rounded_down(us in 0_u64..134_000_000) {
            let back = u64::from(MicrosFloat::from_micros(us).to_micros().unwrap());
            prop_assert!(back <= us && us - back <= us >> 11, "{} became {}", us, back);
        }
    }
}
