//! SCONE: throughput advice in QUIC datagrams (draft-ietf-scone-protocol).
//!
//! A SCONE packet is a QUIC long-header packet of its own version, the first packet of a UDP datagram. Another QUIC packet follows it
//! in the same datagram. Routers on the path lower its rate signal, and endpoints read what is left.
//!
//! ```text
//!    0        1                 5      6             .      .
//!   +--------+-----------------+------+------+------+------+---------------------
//!   |11SSSSSS|s 6f 7d c0 fd    | DCID length, DCID  | SCID length, SCID | other QUIC packets
//!   +--------+-----------------+------+------+------+------+---------------------
//!      |      |
//!      |      lowest bit of the signal, the top bit of the version
//!      six higher bits of the signal
//! ```
//!
//! Both bytes that hold the signal are in one 16-bit word of UDP's checksum, because the payload starts at an even offset.
//!
//! Deviation (the draft says / this module does / because):
//! 1. A router recognises a SCONE packet by the long-header bit and the version / [`lower`] also requires that both connection IDs fit
//!    and that another packet follows / datagrams of other protocols are less likely to match.

pub mod parameter;

pub use flowstamp_laws::scone::PERIOD_S;
use thiserror::Error;

/// The version of a SCONE packet with an even signal. An odd signal sets the top bit.
pub const VERSION: u32 = 0x6f7d_c0fd;
/// The bit of the version that belongs to the signal.
const VERSION_SIGNAL_BIT: u32 = 1 << 31;
/// The QUIC transport parameter `scone_supported`, whose value is empty ([`parameter`]).
pub const TRANSPORT_PARAMETER: u64 = 0x219e;
/// The last two bytes of a client's first datagrams, until the server answers.
pub const INDICATION: [u8; 2] = [0xc8, 0x13];
/// Bytes of a SCONE packet with empty connection IDs.
pub const MIN_LEN: usize = 7;

/// Bytes of a UDP header.
const UDP_LEN: usize = 8;
/// Offset of the checksum in the UDP header.
const UDP_CHECKSUM: usize = 6;

/// Powers 10^(k/20) for k from 0 to 19, times 10^17.
const MANTISSAS: [u64; 20] = [
    100_000_000_000_000_000,
    112_201_845_430_196_343,
    125_892_541_179_416_721,
    141_253_754_462_275_430,
    158_489_319_246_111_348,
    177_827_941_003_892_280,
    199_526_231_496_887_960,
    223_872_113_856_833_961,
    251_188_643_150_958_011,
    281_838_293_126_445_381,
    316_227_766_016_837_933,
    354_813_389_233_575_458,
    398_107_170_553_497_250,
    446_683_592_150_963_118,
    501_187_233_627_272_285,
    562_341_325_190_349_080,
    630_957_344_480_193_249,
    707_945_784_384_137_910,
    794_328_234_724_281_502,
    891_250_938_133_745_529,
];

/// The rate of each signal in bits/s, rounded down: 100 kb/s times 10^(n/20).
pub const RATES: [u64; 127] = {
    let mut rates = [0; 127];
    let mut n = 0;
    while n < 127 {
        let power = 10_u128.pow(5 + n as u32 / 20);
        rates[n] = (MANTISSAS[n % 20] as u128 * power / 10_u128.pow(17)) as u64;
        n += 1;
    }
    rates
};

/// A rate signal of seven bits: a rate, or [`Signal::UNKNOWN`].
///
/// A lower signal is stricter advice, and the order of signals is that of their numbers. `UNKNOWN` is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u8);

impl Signal {
    /// 100 kb/s, the lowest rate.
    pub const MIN: Self = Self(0);
    /// 199.5 Gb/s, the highest rate.
    pub const MAX: Self = Self(126);
    /// No advice, as endpoints send it.
    pub const UNKNOWN: Self = Self(127);

    /// The signal of these seven bits; `None` for a number above 127.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits <= 127 { Some(Self(bits)) } else { None }
    }

    /// The seven bits, 0 to 127.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether this is a rate, and not [`Signal::UNKNOWN`].
    #[must_use]
    pub const fn is_advice(self) -> bool {
        self.0 < Self::UNKNOWN.0
    }

    /// The rate in bits/s, rounded down to a whole number; `None` if unknown.
    #[must_use]
    pub const fn bits_per_sec(self) -> Option<u64> {
        if self.is_advice() { Some(RATES[self.0 as usize]) } else { None }
    }

    /// The highest signal whose rate is at most `bits_per_sec`; `None` below 100 kb/s, for which there is no signal.
    #[must_use]
    pub fn at_most(bits_per_sec: u64) -> Option<Self> {
        let above = RATES.partition_point(|rate| *rate <= bits_per_sec);
        above.checked_sub(1).map(|bits| Self(bits as u8))
    }
}

/// The bytes are not a SCONE packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The packet ends early.
    #[error("truncated SCONE packet: {len} bytes, must be at least {needed}")]
    Truncated {
        /// Bytes there are.
        len: usize,
        /// Bytes that the packet has at least.
        needed: usize,
    },
    /// A QUIC packet with a short header, or another protocol.
    #[error("no long header: first byte {first:#04x}, must be 0x80 or more")]
    ShortHeader {
        /// The first byte.
        first: u8,
    },
    /// A QUIC packet of another version.
    #[error("version {version:#010x} is not SCONE's: must be 0x6f7dc0fd or 0xef7dc0fd")]
    Version {
        /// The version.
        version: u32,
    },
}

/// A SCONE packet could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EmitError {
    /// The buffer is shorter than the packet.
    #[error("buffer too short for a SCONE packet: {len} bytes, must be at least {needed}")]
    Buffer {
        /// Bytes the buffer has.
        len: usize,
        /// Bytes the packet has.
        needed: usize,
    },
    /// A connection ID is too long for its length field.
    #[error("connection ID of {len} bytes: must have at most 255")]
    ConnectionId {
        /// Bytes of the connection ID.
        len: usize,
    },
}

/// A SCONE packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet<'a> {
    /// The rate signal.
    pub signal: Signal,
    /// Destination connection ID, that of the packets behind it.
    pub dcid: &'a [u8],
    /// Source connection ID, that of the packets behind it, or empty before a short header.
    pub scid: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads the packet at the start of `bytes`, and ignores the bytes behind it, which [`Packet::wire_len`] finds. The bit 0x40 of
    /// the first byte is ignored.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if `bytes` do not start with a SCONE packet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let truncated = |needed| ParseError::Truncated { len: bytes.len(), needed };
        let signal = signal_of(bytes)?;
        let take = |at: usize| {
            let len = usize::from(*bytes.get(at).ok_or(truncated(at + 1))?);
            bytes.get(at + 1..at + 1 + len).ok_or(truncated(at + 1 + len))
        };
        let dcid = take(5)?;
        let scid = take(6 + dcid.len())?;
        Ok(Self { signal, dcid, scid })
    }

    /// Bytes of the packet on the wire.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        MIN_LEN + self.dcid.len() + self.scid.len()
    }

    /// Writes the packet to the start of `buffer` and returns its length. The rest of `buffer` stays as it was.
    ///
    /// # Errors
    ///
    /// [`EmitError`] if `buffer` is too short or a connection ID longer than 255 bytes; nothing is written then.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        for len in [self.dcid.len(), self.scid.len()] {
            if len > 255 {
                return Err(EmitError::ConnectionId { len });
            }
        }
        let (len, needed) = (buffer.len(), self.wire_len());
        let buffer = buffer.get_mut(..needed).ok_or(EmitError::Buffer { len, needed })?;
        let (head, ids) = buffer.split_at_mut(5);
        head[1..].copy_from_slice(&VERSION.to_be_bytes());
        head[0] = 0xc0;
        write_signal(head, self.signal);
        let (dcid, scid) = ids.split_at_mut(1 + self.dcid.len());
        for (part, id) in [(dcid, self.dcid), (scid, self.scid)] {
            part[0] = id.len() as u8;
            part[1..].copy_from_slice(id);
        }
        Ok(needed)
    }
}

/// Result of [`lower`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lowered {
    /// The datagram does not start with a SCONE packet, and is unchanged.
    NotScone,
    /// The signal was at most the advice, and is unchanged.
    Kept(Signal),
    /// The signal was this one before, and is now the advice.
    From(Signal),
}

/// Lowers the signal of a SCONE packet at the start of a UDP payload to `advice`. It never raises a signal.
///
/// The datagram must also have another packet behind it, or it is not a SCONE datagram. The caller updates UDP's checksum;
/// [`lower_in_udp`] does both.
pub fn lower(payload: &mut [u8], advice: Signal) -> Lowered {
    match Packet::parse(payload) {
        Ok(packet) if packet.wire_len() < payload.len() => {
            let was = packet.signal;
            if advice >= was {
                return Lowered::Kept(was);
            }
            write_signal(payload, advice);
            Lowered::From(was)
        }
        _ => Lowered::NotScone,
    }
}

/// Lowers the signal in a UDP datagram, header included, as [`lower`] does, and updates the checksum.
///
/// A checksum of zero means that there is none, and stays. A wrong checksum stays wrong.
pub fn lower_in_udp(datagram: &mut [u8], advice: Signal) -> Lowered {
    let Some((header, payload)) = datagram.split_at_mut_checked(UDP_LEN) else {
        return Lowered::NotScone;
    };
    let word = |payload: &[u8]| match payload {
        [high, low, ..] => u16::from_be_bytes([*high, *low]),
        _ => 0,
    };
    let was = word(payload);
    let lowered = lower(payload, advice);
    let checksum = u16::from_be_bytes([header[UDP_CHECKSUM], header[UDP_CHECKSUM + 1]]);
    let updated = updated_checksum(checksum, was, word(payload));
    header[UDP_CHECKSUM..].copy_from_slice(&updated.to_be_bytes());
    lowered
}

/// UDP's checksum after a 16-bit word of the datagram has changed from `was` to `is` (RFC 1624, equation 3).
///
/// Zero, no checksum, stays zero. A sum that would be zero is written as 0xffff (RFC 768).
#[must_use]
pub const fn updated_checksum(checksum: u16, was: u16, is: u16) -> u16 {
    if checksum == 0 || was == is {
        return checksum;
    }
    let sum = !checksum as u32 + !was as u32 + is as u32;
    let folded = (sum & 0xffff) + (sum >> 16);
    let result = !(((folded & 0xffff) + (folded >> 16)) as u16);
    if result == 0 { 0xffff } else { result }
}

/// Whether a client's datagram ends with the indication that it supports SCONE. Other datagrams may end with the same bytes by chance.
#[must_use]
pub fn indicates(payload: &[u8]) -> bool {
    payload.ends_with(&INDICATION)
}

/// The signal of a packet with a long header and SCONE's version.
fn signal_of(bytes: &[u8]) -> Result<Signal, ParseError> {
    let Some([first, version @ ..]) = bytes.first_chunk::<5>() else {
        return Err(ParseError::Truncated { len: bytes.len(), needed: MIN_LEN });
    };
    if first & 0x80 == 0 {
        return Err(ParseError::ShortHeader { first: *first });
    }
    let version = u32::from_be_bytes(*version);
    if version & !VERSION_SIGNAL_BIT != VERSION {
        return Err(ParseError::Version { version });
    }
    Ok(Signal((first & 0x3f) << 1 | (version >> 31) as u8))
}

/// Replaces the seven bits of the signal in the first two bytes.
fn write_signal(packet: &mut [u8], signal: Signal) {
    packet[0] = packet[0] & 0xc0 | signal.0 >> 1;
    packet[1] = packet[1] & 0x7f | signal.0 << 7;
}

#[cfg(test)]
#[path = "scone/tests.rs"]
mod tests;
