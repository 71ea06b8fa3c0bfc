//! What an RCP packet carries (Dukkipati 2007, section 6.1.1).

use crate::stamp::{Stamp, StampLaw};

/// The RCP header, with the age of section 3.6 instead of the reverse rate, which here travels in the ack's own stamp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// The rate that the sender wishes for, or what the routers so far allow, bytes/s.
    pub rate: f64,
    /// The sender's RTT in seconds; zero if unknown.
    pub rtt_s: f64,
    /// What the flow has sent so far, bytes.
    pub age_bytes: f64,
}

impl From<Stamp> for Header {
    #[inline]
    fn from(Stamp([rate, rtt_s, age_bytes]): Stamp) -> Self {
        Self { rate, rtt_s, age_bytes }
    }
}

impl From<Header> for Stamp {
    #[inline]
    fn from(h: Header) -> Self {
        Self([h.rate, h.rtt_s, h.age_bytes])
    }
}

/// A rate is a state: an ack for several packets brings the newest.
impl StampLaw for Header {}
