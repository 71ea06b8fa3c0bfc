//! The VCP header: the load of the busiest link so far, in the two ECN bits (section III-B).
//!
//! ```text
//!   rho          code
//!   -            00     the sender does not support VCP
//!   < 80%        01     low load: multiply
//!   80% to 100%  10     high load: add
//!   >= 100%      11     overload: cut
//! ```

use super::TRANSITION;
use crate::stamp::StampLaw;

/// The header uses only bits and no words of the stamp.
#[derive(Clone, Copy, Debug)]
pub enum Header {}

impl StampLaw for Header {}

/// The two-bit load code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The sender does not support VCP.
    NotCapable,
    /// Low load; senders write this.
    Low,
    /// High load.
    High,
    /// Overload.
    Overload,
}

impl Code {
    /// The code of a load factor (figure 2).
    #[must_use]
    pub fn of_load(load: f64) -> Self {
        if load >= 1.0 {
            Self::Overload
        } else if load >= TRANSITION {
            Self::High
        } else {
            Self::Low
        }
    }

    /// The code as a packet's bits.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self as u16
    }

    /// Reads the code from a packet's bits; only the two lowest count.
    #[must_use]
    pub const fn read(bits: u16) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Low,
            2 => Self::High,
            _ => Self::Overload,
        }
    }

    /// The code after a router whose own code is `own`. A router only raises the code, and does not change a packet
    /// without VCP (R.4).
    #[must_use]
    pub fn raised(self, own: Self) -> Self {
        if self == Self::NotCapable { self } else { self.max(own) }
    }
}
