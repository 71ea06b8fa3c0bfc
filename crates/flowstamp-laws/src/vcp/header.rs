//! What VCP's packets carry: the load of the busiest link so far in two bits, those of ECN (section III-B).
//!
//! ```text
//!   rho          code
//!   -            00     the sender is not capable of it
//!   < 80%        01     low load: multiply
//!   80% to 100%  10     high load: add
//!   >= 100%      11     overload: cut
//! ```

use super::TRANSITION;
use crate::stamp::StampLaw;

/// The header: no words of the stamp, only bits.
#[derive(Clone, Copy, Debug)]
pub enum Header {}

impl StampLaw for Header {}

/// The two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The sender does not speak VCP.
    NotCapable,
    /// Low load; what a sender writes.
    Low,
    /// High load.
    High,
    /// Overload.
    Overload,
}

impl Code {
    /// Of a load factor (figure 2).
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

    /// As it stands in a packet.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self as u16
    }

    /// What stands in a packet; only the two lowest bits count.
    #[must_use]
    pub const fn read(bits: u16) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Low,
            2 => Self::High,
            _ => Self::Overload,
        }
    }

    /// After a router with this code of its own: it only raises the code, and leaves what is not capable as it is (R.4).
    #[must_use]
    pub fn raised(self, own: Self) -> Self {
        if self == Self::NotCapable { self } else { self.max(own) }
    }
}
