//! The PCP header (Katabi and Handley 2001, section 3.3 and figure 1).
//!
//! ```text
//!   stamp 0   H_cwnd, bytes             bits 0   H_B1: a router on the path has less than a tenth to spare
//!   stamp 1   H_rtt, seconds            bits 1   H_B2: H_B1 of the last ack, or the sender wants no more
//!   stamp 2   H_feedback, bytes         bits 8 to 15   PTL (section 4.1)
//! ```
//!
//! Deviations (paper says / we do / because):
//! 1. `H_A` tells an ack from a data packet / our stamp has no such bit / hosts and routers here know which it is;
//!    the codec of `flowstamp-wire` writes the bit.

use crate::negotiation::{self, ASKING};
use crate::stamp::{Stamp, StampLaw};
use crate::xcp::header::add_up;

/// `H_B1`.
pub const B1: u16 = 1;
/// `H_B2`.
pub const B2: u16 = 2;
/// The three words of the stamp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// The sender's congestion window, bytes.
    pub cwnd_bytes: f64,
    /// The sender's RTT, seconds; zero if unknown.
    pub rtt_s: f64,
    /// The change of window in bytes that the sender asks for, or that the routers so far allow.
    pub feedback_bytes: f64,
}

impl From<Stamp> for Header {
    #[inline]
    fn from(Stamp([cwnd_bytes, rtt_s, feedback_bytes]): Stamp) -> Self {
        Self { cwnd_bytes, rtt_s, feedback_bytes }
    }
}

impl From<Header> for Stamp {
    #[inline]
    fn from(h: Header) -> Self {
        Self([h.cwnd_bytes, h.rtt_s, h.feedback_bytes])
    }
}

impl StampLaw for Header {
    fn merge(pending: &mut Stamp, newer: &Stamp) {
        add_up(pending, newer);
    }
}

/// The bits of a packet when it leaves its sender.
#[inline]
#[must_use]
pub const fn sent(wants_no_more: bool) -> u16 {
    ASKING | if wants_no_more { B2 } else { 0 }
}

/// The bits after a router that has counted itself. With `bottleneck`, the router has little spare bandwidth.
#[inline]
#[must_use]
pub const fn passed(bits: u16, bottleneck: bool) -> u16 {
    negotiation::passed(bits) | if bottleneck { B1 } else { 0 }
}
