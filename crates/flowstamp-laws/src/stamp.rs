//! The stamp: what a packet carries between hosts and routers for its law.

use crate::units::{Rate, Time};

/// Three 64-bit words that ride in every data packet and come back in its ack.
///
/// What the words mean is the law's business alone: each law keeps a header struct of its own, with named fields,
/// and turns it into a stamp and back. So the engine moves stamps without knowing any law, and a new law needs no
/// change outside its file. Three words are what the largest header of the family needs (XCP: three fields; RCP:
/// rate, reverse rate, RTT; VCP: two bits).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Stamp(pub [f64; 3]);

/// What the router law may believe of a flow's packet: bounds that no honest flow of this rate meets.
///
/// A flow of rate `r` sends a packet of `s` bytes each `s / r`. This is the `X` that XCP's headers state, so `X` is at most
/// `1.25 s / r`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// The longest RTT.
    pub most_rtt: Option<Time>,
    /// The least rate that the packet's window over its RTT may stand for, bytes/s.
    pub least_rate: f64,
}

/// The most that a packet of a flow under test is to tell it; `None` for whatever it carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// RCP: a rate.
    pub rate: Option<Rate>,
    /// XCP: a change of throughput, bytes/s.
    pub change: Option<f64>,
}

/// A header's meaning, as far as those who only carry it must know it.
pub trait StampLaw {
    /// Folds the stamp of a further data packet into one that is not yet acknowledged, when one ack answers several
    /// packets. A header that carries a state keeps the newer; one that carries a change adds up.
    #[inline]
    fn merge(pending: &mut Stamp, newer: &Stamp) {
        *pending = *newer;
    }

    /// Whether it tells a flow what no other is told, so that it can be tested whether that one obeys ([`crate::share::police`]).
    const TESTED: bool = false;

    /// The longest RTT that the header can carry, if that is bounded.
    const LONGEST_RTT: Option<Time> = None;

    /// The round trip that its sender names, if it does.
    fn named_rtt(stamp: &Stamp) -> Option<Time> {
        let _ = stamp;
        None
    }

    /// Removes the round trip: to routers the packet is input, and no more.
    fn forget_rtt(stamp: &mut Stamp) {
        let _ = stamp;
    }

    /// Puts back what [`Self::forget_rtt`] removed from `named`, or [`Self::believe`] changed.
    fn recall(stamp: &mut Stamp, named: &Stamp) {
        let _ = (stamp, named);
    }

    /// Bounds what a packet of `size` bytes says by what its flow is believed.
    fn believe(stamp: &mut Stamp, size: u32, belief: &Belief) {
        let _ = (stamp, size, belief);
    }

    /// The rate that it tells, where it is one.
    fn told(stamp: &Stamp) -> Option<Rate> {
        let _ = stamp;
        None
    }

    /// A packet of `size` bytes tells its flow no more than a test is to.
    fn test(stamp: &mut Stamp, size: u32, test: &Told) {
        let _ = (stamp, size, test);
    }
}
