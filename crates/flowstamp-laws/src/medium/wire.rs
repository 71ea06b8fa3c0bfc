//! Transmitter of constant rate.

use crate::units::{PS_PER_SEC, Rate, Time};

/// Fraction bits of a transmission time per byte: rounding stays below a picosecond for packets up to 1 MB.
const FRACTION: u32 = 20;

/// Picoseconds per byte with 20 fraction bits.
#[derive(Clone, Copy, Debug)]
pub struct Wire(u64);

impl Wire {
    /// Creates a transmitter of this rate, which must be above zero.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        let ps_per_byte = 8.0 * PS_PER_SEC as f64 / rate.bps();
        Self((ps_per_byte * f64::from(1 << FRACTION) + 0.5) as u64)
    }

    /// End of a transmission of `size` bytes that begins at `start`.
    #[inline]
    #[must_use]
    pub fn finish(self, start: Time, size: u32) -> Time {
        let ps = (u128::from(self.0) * u128::from(size)) >> FRACTION;
        start + Time::from_ps(ps as u64)
    }
}
