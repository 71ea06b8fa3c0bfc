//! Conversions to and from the BPF programs' fixed point.

use flowstamp_laws::Time;

/// Converts to fixed point with 16 fraction bits.
pub fn q16(v: f64) -> u64 {
    (v * 65536.0).round() as u64
}

/// Converts to fixed point with 32 fraction bits.
pub fn q32(v: f64) -> u64 {
    (v * 4_294_967_296.0).round() as u64
}

/// Converts bytes/s with 16 fraction bits to bits/s.
pub fn bps(q16: f64) -> f64 {
    q16 / 65536.0 * 8.0
}

/// Converts ns with 8 fraction bits to seconds.
pub fn seconds(q8: u64) -> f64 {
    q8 as f64 / 256e9
}

/// Whole nanoseconds.
pub fn ns(t: Time) -> u64 {
    t.as_ps() / 1000
}

/// Whole microseconds.
pub fn us(t: Time) -> u64 {
    ns(t) / 1000
}
