//! The RCP header (Dukkipati 2007, section 6.1.1).

use crate::share::police::{Belief, FeedbackBounds};
use crate::stamp::{Stamp, StampLaw};
use crate::units::{Rate, Time};

/// The RCP header, with the age of section 3.6. The ack's own stamp carries the reverse rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// The rate in bytes/s that the sender wishes for, or that the routers so far allow.
    pub rate: f64,
    /// The sender's RTT in seconds; zero if unknown.
    pub rtt_s: f64,
    /// Bytes that the flow has sent so far.
    pub age_bytes: f64,
}

/// The largest weight that a packet can state.
pub const MOST_WEIGHT: f64 = 63_488.0;

/// The bits beside the stamp, and the last byte of the header on the wire, for a weight of 1 to [`MOST_WEIGHT`]: four
/// bits of exponent and four of mantissa. Whole numbers up to 32 are exact, others are off by at most 1/32.
#[must_use]
pub fn weight_bits(weight: f64) -> u16 {
    let exponent = (weight.clamp(1.0, MOST_WEIGHT) as u32).ilog2();
    let mantissa = libm::round((weight / f64::from(1u32 << exponent) - 1.0) * 16.0);
    (exponent as u16 * 16 + mantissa as u16).min(255)
}

/// The weight that these bits state; 1 where a sender states none.
#[inline]
#[must_use]
pub fn weight_of(bits: u16) -> f64 {
    let [_, code] = bits.to_be_bytes();
    f64::from((16 + u32::from(code & 15)) << (code >> 4)) / 16.0
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

/// A rate is a state: an ack for several packets carries the newest.
impl StampLaw for Header {
    const TESTED: bool = true;

    fn named_rtt(stamp: &Stamp) -> Option<Time> {
        let rtt_s = Self::from(*stamp).rtt_s;
        (rtt_s > 0.0).then(|| Time::from_secs_f64(rtt_s))
    }

    fn forget_rtt(stamp: &mut Stamp) {
        *stamp = Self { rtt_s: 0.0, ..(*stamp).into() }.into();
    }

    fn recall(stamp: &mut Stamp, named: &Stamp) {
        *stamp = Self { rtt_s: Self::from(*named).rtt_s, ..(*stamp).into() }.into();
    }

    fn believe(stamp: &mut Stamp, _: u32, belief: &Belief) {
        let header = Self::from(*stamp);
        let most = belief.most_rtt.map_or(header.rtt_s, Time::as_secs_f64);
        *stamp = Self { rtt_s: header.rtt_s.min(most), ..header }.into();
    }

    fn told(stamp: &Stamp) -> Option<Rate> {
        Some(Rate::from_bytes_per_sec(Self::from(*stamp).rate))
    }

    fn test(stamp: &mut Stamp, _: u32, bounds: &FeedbackBounds) {
        if let Some(most) = bounds.rate {
            let mut header = Self::from(*stamp);
            header.rate = header.rate.min(most.bytes_per_sec());
            *stamp = header.into();
        }
    }
}
