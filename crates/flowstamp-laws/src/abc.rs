//! ABC, Accel-Brake Control (Goyal, Agarwal, Netravali, Alizadeh, Balakrishnan, NSDI 2020), for links whose rate varies
//! within a round trip.
//!
//! A router marks each packet with one bit: accelerate, or brake. For an accelerate the sender sends two packets, and
//! for a brake none. A share `f` of accelerates therefore multiplies the rate by `2 f` one round trip later.

pub mod router;
pub mod sender;
pub mod wifi;

pub use router::Router;
pub use sender::Sender;

use crate::stamp::{Stamp, StampLaw};
use crate::units::Time;

/// RTT for which the paper's evaluation states its times, and the default if the paths are unknown.
pub const RTT: Time = Time::from_millis(100);

/// The mark of a packet, in the two ECN bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// 00: the sender does not support ECN.
    NotCapable,
    /// 01, ECT(1): accelerate. Senders write this.
    Accelerate,
    /// 10, ECT(0): brake.
    Brake,
    /// 11: congestion experienced, from a queue law that knows only ECN.
    Congested,
}

impl Mark {
    /// The mark as a packet's bits.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self as u16
    }

    /// Reads the mark from a packet's bits; only the two lowest count.
    #[must_use]
    pub const fn read(bits: u16) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Accelerate,
            2 => Self::Brake,
            _ => Self::Congested,
        }
    }
}

/// ABC's header. On a wire it is the [`Mark`] alone, and each change of the mark causes an ack. Here the stamp counts
/// marks, so that an ack of several packets returns them all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// Packets marked accelerate.
    pub accelerates: f64,
    /// Packets.
    pub packets: f64,
}

impl Header {
    /// A packet as it leaves its sender.
    pub const SENT: Self = Self { accelerates: 1.0, packets: 1.0 };
    /// A packet after a brake.
    pub const BRAKED: Self = Self { accelerates: 0.0, packets: 1.0 };
}

impl StampLaw for Header {
    #[inline]
    fn merge(pending: &mut Stamp, newer: &Stamp) {
        pending.0[0] += newer.0[0];
        pending.0[1] += newer.0[1];
    }
}

impl From<Stamp> for Header {
    #[inline]
    fn from(Stamp([accelerates, packets, _]): Stamp) -> Self {
        Self { accelerates, packets }
    }
}

impl From<Header> for Stamp {
    #[inline]
    fn from(h: Header) -> Self {
        Self([h.accelerates, h.packets, 0.0])
    }
}
