//! The XCP header, in the paper's form and in the Internet-Draft's.
//!
//! ```text
//!   word   paper (section 3.2)              Internet-Draft
//!   0      H_cwnd, bytes                    X, inter-packet time, seconds
//!   1      H_rtt, seconds                   RTT, seconds
//!   2      H_feedback, bytes of window      Delta_Throughput, bytes/s
//! ```

use crate::share::police::{Belief, FeedbackBounds};
use crate::stamp::{Stamp, StampLaw};
use crate::units::Time;

/// Contents of a header, independent of its encoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Inter-packet time of the flow, `rtt s / cwnd`, in seconds; zero if unknown.
    pub inter_packet_s: f64,
    /// The flow's RTT in seconds; zero if unknown.
    pub rtt_s: f64,
    /// The change of throughput that the sender asked for, or a router before this one allowed, in bytes/s.
    pub feedback: f64,
}

/// Reads and writes a [`View`] in one of the two encodings.
pub trait Encoding: Copy + core::fmt::Debug + 'static {
    /// Reads the header of a packet of `size` bytes.
    fn read(stamp: &Stamp, size: f64) -> View;
    /// Bytes for which a packet of `micro_flows` flows stands ([`super::edge`]); `None` where the header does not
    /// tell.
    #[inline]
    fn stands_for(stamp: &Stamp, micro_flows: f64) -> Option<f64> {
        let _ = (stamp, micro_flows);
        None
    }
    /// Writes `feedback`, a change of throughput in bytes/s, for a flow whose RTT is `rtt_s`.
    fn write_feedback(stamp: &mut Stamp, feedback: f64, rtt_s: f64);
    /// Keeps a decrease and sets an increase to zero.
    #[inline]
    fn refuse_increase(stamp: &mut Stamp) {
        stamp.0[2] = stamp.0[2].min(0.0);
    }
    /// The header that a sender writes: window in bytes as routers shall see it, RTT in seconds, wish in bytes per
    /// packet.
    fn header(cwnd_bytes: f64, rtt_s: f64, packet_bytes: f64, wish_bytes: f64) -> Stamp;
    /// The change of window in bytes that an echoed header asks for.
    fn window_change(stamp: &Stamp, rtt_s: f64) -> f64;
    /// Amounts to book from the positive and the negative pool for a packet with the shares `give` and `take`, where
    /// an earlier router allows only `allowed`, below `give - take`. `rest` is the remainder of the negative pool.
    /// The caller bounds the amounts by the pools. All in bytes/s.
    fn booked(give: f64, take: f64, allowed: f64, rest: f64) -> (f64, f64);
}

/// The paper's header (section 3.2): `H_cwnd` in bytes, `H_rtt` in seconds, `H_feedback` in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Window;

impl StampLaw for Window {
    fn merge(pending: &mut Stamp, newer: &Stamp) {
        add_up(pending, newer);
    }

    const TESTED: bool = true;

    fn named_rtt(stamp: &Stamp) -> Option<Time> {
        named_rtt::<Self>(stamp)
    }

    fn forget_rtt(stamp: &mut Stamp) {
        stamp.0[1] = 0.0;
    }

    fn recall(stamp: &mut Stamp, named: &Stamp) {
        (stamp.0[0], stamp.0[1]) = (named.0[0], named.0[1]);
    }

    /// Cuts an RTT that is too long, and raises a window that stands for less than the flow's rate.
    fn believe(stamp: &mut Stamp, _: u32, belief: &Belief) {
        let [cwnd, rtt_s, _] = &mut stamp.0;
        *rtt_s = most_rtt_s(*rtt_s, belief);
        *cwnd = cwnd.max(belief.least_rate * *rtt_s);
    }

    fn test(stamp: &mut Stamp, size: u32, bounds: &FeedbackBounds) {
        lower::<Self>(stamp, size, bounds);
    }
}

impl Encoding for Window {
    #[inline]
    fn read(stamp: &Stamp, size: f64) -> View {
        let [cwnd, rtt_s, feedback] = stamp.0;
        if rtt_s > 0.0 && cwnd > 0.0 {
            View { inter_packet_s: rtt_s * size / cwnd, rtt_s, feedback: feedback / rtt_s }
        } else {
            View { inter_packet_s: 0.0, rtt_s: 0.0, feedback }
        }
    }
    #[inline]
    fn stands_for(stamp: &Stamp, micro_flows: f64) -> Option<f64> {
        Some(stamp.0[0] * micro_flows)
    }
    #[inline]
    fn write_feedback(stamp: &mut Stamp, feedback: f64, rtt_s: f64) {
        stamp.0[2] = feedback * rtt_s;
    }
    #[inline]
    fn header(cwnd_bytes: f64, rtt_s: f64, _: f64, wish_bytes: f64) -> Stamp {
        Stamp([cwnd_bytes, rtt_s, wish_bytes])
    }
    #[inline]
    fn window_change(stamp: &Stamp, _: f64) -> f64 {
        stamp.0[2]
    }
    /// Appendix A: the flow gets only what it is allowed, and the part that it forgoes counts as taken. A decrease
    /// imposed elsewhere need not be taken here.
    #[inline]
    fn booked(give: f64, take: f64, allowed: f64, _: f64) -> (f64, f64) {
        if allowed >= 0.0 {
            (allowed, give - take - allowed)
        } else {
            (0.0, (give - take).max(0.0) - allowed)
        }
    }
}

/// The Internet-Draft's header: `X` and `RTT` in seconds with 28 fraction bits, `Delta_Throughput` in whole bytes/s.
/// No division per packet in the router.
#[derive(Clone, Copy, Debug)]
pub struct Throughput;

/// One unit of the draft's time fields, in seconds.
const WIRE_SECOND: f64 = 1.0 / (1u32 << 28) as f64;

/// Rounds seconds to the draft's 32-bit field, 0 to 16 s.
#[inline]
fn wire_seconds(s: f64) -> f64 {
    f64::from((s / WIRE_SECOND + 0.5) as u32) * WIRE_SECOND
}

impl StampLaw for Throughput {
    fn merge(pending: &mut Stamp, newer: &Stamp) {
        add_up(pending, newer);
    }

    const TESTED: bool = true;

    const LONGEST_RTT: Option<Time> = Some(Time::from_secs(16)); // 32 bits of 2^-28 s

    fn named_rtt(stamp: &Stamp) -> Option<Time> {
        named_rtt::<Self>(stamp)
    }

    fn forget_rtt(stamp: &mut Stamp) {
        (stamp.0[0], stamp.0[1]) = (0.0, 0.0);
    }

    fn recall(stamp: &mut Stamp, named: &Stamp) {
        (stamp.0[0], stamp.0[1]) = (named.0[0], named.0[1]);
    }

    /// Cuts an RTT that is too long, and an inter-packet time longer than the flow's rate allows.
    fn believe(stamp: &mut Stamp, size: u32, belief: &Belief) {
        let [x, rtt_s, _] = &mut stamp.0;
        *rtt_s = most_rtt_s(*rtt_s, belief);
        if *x * belief.least_rate > f64::from(size) {
            *x = f64::from(size) / belief.least_rate;
        }
    }

    fn test(stamp: &mut Stamp, size: u32, bounds: &FeedbackBounds) {
        lower::<Self>(stamp, size, bounds);
    }
}

impl Encoding for Throughput {
    #[inline]
    fn read(stamp: &Stamp, _: f64) -> View {
        let [x, rtt_s, feedback] = stamp.0;
        View { inter_packet_s: x, rtt_s, feedback }
    }
    #[inline]
    fn write_feedback(stamp: &mut Stamp, feedback: f64, _: f64) {
        // Rounding down keeps the sum of the feedback within the pools. Rounding towards zero would shrink decreases
        // too.
        stamp.0[2] = f64::from(libm::floor(feedback) as i32);
    }
    #[inline]
    fn header(cwnd_bytes: f64, rtt_s: f64, packet_bytes: f64, wish_bytes: f64) -> Stamp {
        let x = if cwnd_bytes > 0.0 { rtt_s * packet_bytes / cwnd_bytes } else { 0.0 };
        let wish = if rtt_s > 0.0 { wish_bytes / rtt_s } else { 0.0 };
        Stamp([wire_seconds(x), wire_seconds(rtt_s), f64::from(wish as i32)])
    }
    #[inline]
    fn window_change(stamp: &Stamp, rtt_s: f64) -> f64 {
        stamp.0[2] * rtt_s
    }
    /// Follows the draft's listing for a packet's departure: the router takes more, as far as the negative pool
    /// allows, and gives the difference to `allowed`. The draft lets a pool grow when a decrease exceeds the rest to
    /// take. Ours does not grow, because senders may write any decrease.
    #[inline]
    fn booked(give: f64, _: f64, allowed: f64, rest: f64) -> (f64, f64) {
        let take = (give - allowed).min(rest);
        ((allowed + take).max(0.0), take)
    }
}

/// Merges two headers by adding their changes: one ack for two packets carries both feedbacks.
pub(crate) fn add_up(pending: &mut Stamp, newer: &Stamp) {
    let sum = pending.0[2] + newer.0[2];
    *pending = *newer;
    pending.0[2] = sum;
}

fn named_rtt<E: Encoding>(stamp: &Stamp) -> Option<Time> {
    let rtt_s = E::read(stamp, 1.0).rtt_s;
    (rtt_s > 0.0).then(|| Time::from_secs_f64(rtt_s))
}

fn most_rtt_s(rtt_s: f64, belief: &Belief) -> f64 {
    belief.most_rtt.map_or(rtt_s, |most| rtt_s.min(most.as_secs_f64()))
}

/// Lowers the feedback to what a test allows, where the header carries more.
fn lower<E: Encoding>(stamp: &mut Stamp, size: u32, bounds: &FeedbackBounds) {
    let Some(change) = bounds.change else { return };
    let view = E::read(stamp, f64::from(size));
    if view.rtt_s <= 0.0 {
        E::refuse_increase(stamp);
    } else if view.feedback > change {
        E::write_feedback(stamp, change, view.rtt_s);
    }
}
