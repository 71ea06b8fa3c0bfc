//! The stamp: what a packet carries between hosts and routers for its law.

/// Three 64-bit words that ride in every data packet and come back in its ack.
///
/// What the words mean is the law's business alone: each law keeps a header struct of its own, with named fields,
/// and turns it into a stamp and back. So the engine moves stamps without knowing any law, and a new law needs no
/// change outside its file. Three words are what the largest header of the family needs (XCP: three fields; RCP:
/// rate, reverse rate, RTT; VCP: two bits).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Stamp(pub [f64; 3]);

/// A header's meaning, as far as those who only carry it must know it.
pub trait StampLaw {
    /// Folds the stamp of a further data packet into one that is not yet acknowledged, when one ack answers several
    /// packets. A header that carries a state keeps the newer; one that carries a change adds up.
    #[inline]
    fn merge(pending: &mut Stamp, newer: &Stamp) {
        *pending = *newer;
    }
}
