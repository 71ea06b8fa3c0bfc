//! The stamp: the words that a packet carries between hosts and routers for its law.

use crate::units::{Rate, Time};

/// Three 64-bit words that ride in every data packet and come back in its ack.
///
/// Only the law knows the meaning of the words: each law has a header struct with named fields, and converts it to a
/// stamp and back. The engine therefore moves stamps without knowing any law, and a new law needs no change outside
/// its file. The largest header needs three words (XCP: three fields; RCP: rate, RTT, age; VCP: only bits).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Stamp(pub [f64; 3]);

/// Bounds of the values in a flow's headers. No honest flow of the measured rate reaches them.
///
/// A flow of rate `r` sends a packet of `s` bytes every `s / r`. XCP's headers state this time as `X`, so the bound
/// of `X` is `1.25 s / r`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// The longest RTT, if bounded.
    pub most_rtt: Option<Time>,
    /// The least rate that the header's window over its RTT may state, bytes/s.
    pub least_rate: f64,
}

/// Upper bounds of the feedback in a packet of a flow under test; `None` for no bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedbackBounds {
    /// RCP: a rate.
    pub rate: Option<Rate>,
    /// XCP: a change of throughput, bytes/s.
    pub change: Option<f64>,
}

/// The properties of a header that the engine and the police need.
pub trait StampLaw {
    /// Merges the stamp of a newer data packet into one that is not yet acknowledged, when one ack answers several
    /// packets. A header that carries a state keeps the newer one; a header that carries changes adds them up.
    #[inline]
    fn merge(pending: &mut Stamp, newer: &Stamp) {
        *pending = *newer;
    }

    /// Whether the header gives feedback to a single flow, so that a test can show whether the flow obeys
    /// ([`crate::share::police`]).
    const TESTED: bool = false;

    /// The longest RTT that the header can carry; `None` if unbounded.
    const LONGEST_RTT: Option<Time> = None;

    /// The round trip that the header states, if any.
    fn named_rtt(stamp: &Stamp) -> Option<Time> {
        let _ = stamp;
        None
    }

    /// Removes the round trip, so that routers count the packet only as input.
    fn forget_rtt(stamp: &mut Stamp) {
        let _ = stamp;
    }

    /// Restores from `named` the values that [`Self::forget_rtt`] removed or [`Self::believe`] changed.
    fn recall(stamp: &mut Stamp, named: &Stamp) {
        let _ = (stamp, named);
    }

    /// Applies `belief` to the header of a packet of `size` bytes.
    fn believe(stamp: &mut Stamp, size: u32, belief: &Belief) {
        let _ = (stamp, size, belief);
    }

    /// The rate that the header carries as feedback, if any.
    fn told(stamp: &Stamp) -> Option<Rate> {
        let _ = stamp;
        None
    }

    /// Lowers the feedback in a packet of `size` bytes to `bounds`, for a test of its flow.
    fn test(stamp: &mut Stamp, size: u32, bounds: &FeedbackBounds) {
        let _ = (stamp, size, bounds);
    }
}
