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
