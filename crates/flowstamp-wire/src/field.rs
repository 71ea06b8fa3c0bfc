//! Shared by the headers' codecs: times in fixed steps, and reading and writing without panics.

use core::ops::Range;
use thiserror::Error;

/// IP protocol number of TCP, which usually follows a congestion header.
pub const PROTOCOL_TCP: u8 = 6;
/// IP protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

/// A header could not be written, because the buffer is shorter than the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("buffer too short for an {header} header: {len} bytes, must be at least {needed}")]
pub struct EmitError {
    /// The header's name.
    pub header: &'static str,
    /// Bytes the buffer has.
    pub len: usize,
    /// Bytes the header has.
    pub needed: usize,
}

/// Writes a header to the start of `buffer`, or nothing if it does not fit.
pub(crate) fn emit<const N: usize>(
    header: &'static str,
    bytes: [u8; N],
    buffer: &mut [u8],
) -> Result<(), EmitError> {
    let len = buffer.len();
    let start = buffer.first_chunk_mut::<N>().ok_or(EmitError { header, len, needed: N })?;
    *start = bytes;
    Ok(())
}

/// The bytes of a field, which must lie within `bytes` and be `N` long.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: Range<usize>) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at]);
    field
}

/// Encoding of a time in a field: whole steps, from zero to `max`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Steps per second: a power of two or ten, so that a 64-bit float divides by it without a second rounding.
    pub steps_per_sec: u32,
    /// The largest number of steps.
    pub max: u32,
}

impl Clock {
    const PICOS_PER_SEC: u128 = 1_000_000_000_000;

    /// Seconds to the nearest step. Negative values and NaN give zero; values beyond the range give `max`.
    pub fn steps_of_secs(self, seconds: f64) -> u32 {
        // A float-to-integer cast saturates and maps NaN to 0.
        ((seconds * f64::from(self.steps_per_sec)).round() as u32).min(self.max)
    }

    /// Converts steps to seconds.
    pub fn secs(self, steps: u32) -> f64 {
        f64::from(steps) / f64::from(self.steps_per_sec)
    }

    /// Picoseconds to the nearest step; values beyond the range give `max`.
    pub const fn steps_of_picos(self, picos: u64) -> u32 {
        let steps =
            (picos as u128 * self.steps_per_sec as u128 + Self::PICOS_PER_SEC / 2) / Self::PICOS_PER_SEC;
        if steps > self.max as u128 { self.max } else { steps as u32 }
    }

    /// Converts steps to picoseconds, to the nearest one.
    pub const fn picos(self, steps: u32) -> u64 {
        let rate = self.steps_per_sec as u128;
        ((steps as u128 * Self::PICOS_PER_SEC + rate / 2) / rate) as u64
    }
}
