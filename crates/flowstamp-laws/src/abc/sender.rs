//! The ABC sender: two packets for an accelerate, none for a brake, and CUBIC's window for bottlenecks without ABC.
//!
//! Goyal et al. 2020, sections 3.1.1, 3.1.3 and 4.1. Windows are in packets:
//!
//! ```text
//!   accelerate:  w_abc += 1 + 1/w_abc                           section 3.1.3
//!   brake:       w_abc += -1 + 1/w_abc
//!   loss, CE:    w_cubic as CUBIC's, w_abc stays                section 4.1
//!   ack:         w_abc and w_cubic are at most twice the packets in flight
//!   window     = min(w_abc, w_cubic)
//! ```
//!
//! The term `1/w` makes windows equal: a flow gains one packet per round trip, and all flows lose the same share.
//! Behind an ABC router `w_abc` is the lesser. Behind another bottleneck all packets return as accelerates, and
//! `w_abc` follows at twice the packets in flight, ready for a rate that falls at an ABC router.
//!
//! Valid for windows of 1 to 10^9 packets.
//!
//! Deviations (paper says / we do / because):
//! 1. Receivers echo each mark in the NS bit, and ack at once when it changes / an ack has the numbers of accelerates and
//!    packets that it answers / delayed acks suffice. If acks are lost, the next one's share counts for all packets that it
//!    acknowledges.
//! 2. Nothing on a packet marked CE, which has lost its mark / it changes only `w_cubic` / it says nothing of an ABC
//!    router.
//! 3. Nothing on the least window / it is one packet / `w - 1 + 1/w` has its minimum there. The authors' kernel module has
//!    5 packets.
//! 4. The start is CUBIC's / both windows start with the transport's initial window / as in the authors' module.
//! 5. Nothing on a sender without `w_cubic` / with `coexist = false` only a timeout changes `w_abc`, to one packet /
//!    something must end a silence.

use super::{Header, Mark};
use crate::sender::{Ack, Congestion, Echo, FlowView, SenderLaw, SenderTraits};
use crate::stamp::Stamp;
use crate::tcp::{Cubic, cubic};
use crate::units::Time;

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Whether a window of CUBIC also limits the flow, so that it works behind bottlenecks without ABC.
        pub coexist: bool = true, // section 4.1
        /// Whether windows get the term `1/w`, which makes them equal.
        pub fair: bool = true, // section 3.1.3
    }
}

/// `w_abc` over packets in flight, at most (section 4.1).
const PER_FLIGHT: f64 = 2.0;

/// `w_abc` after `packets` answers, of which the share `accelerates` were accelerates. `fair` adds `1/w` for each.
#[inline]
#[must_use]
pub fn window(w: f64, packets: f64, accelerates: f64, fair: bool) -> f64 {
    let increase = if fair { packets / w } else { 0.0 };
    (w + packets * (2.0 * accelerates - 1.0) + increase).max(1.0)
}

/// State of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    params: Params,
    packet: f64,
    /// `w_abc`, packets.
    abc: f64,
    /// `w_cubic`, bytes.
    cubic: Cubic,
}

impl Sender {
    /// `w_abc` and `w_cubic` in packets.
    #[must_use]
    pub fn windows(&self) -> [f64; 2] {
        [self.abc, self.cubic.cwnd() / self.packet]
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(p: &Params) -> SenderTraits {
        SenderTraits { echo: Echo::PerPacket, works_without_routers: p.coexist, ..SenderTraits::DEFAULT }
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        let cubic = Cubic::new(&cubic::Params::default(), flow);
        let packet = f64::from(flow.packet_bytes);
        Self { params: *p, packet, abc: flow.initial_window.max(1.0), cubic }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        let abc = self.abc * self.packet;
        if self.params.coexist { abc.min(self.cubic.cwnd()) } else { abc }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let Header { accelerates, packets } = (*ack.stamp).into();
        let heard = f64::from(ack.newly_acked.saturating_sub(ack.marked)); // deviation 2
        if packets > 0.0 && heard > 0.0 {
            self.abc = window(self.abc, heard, (accelerates / packets).clamp(0.0, 1.0), self.params.fair);
        }
        let most = PER_FLIGHT * f64::from(ack.flight.max(1));
        self.abc = self.abc.min(most);
        if self.params.coexist {
            self.cubic.on_ack(ack);
            self.cubic.limit(most * self.packet);
        }
    }

    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        if self.params.coexist {
            self.cubic.on_congestion(now, sign);
        } else if let Congestion::Timeout { .. } = sign {
            self.abc = 1.0; // deviation 5
        }
    }

    #[inline]
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Header::SENT.into()
    }

    #[inline]
    fn bits(&self) -> u16 {
        Mark::Accelerate.bits()
    }
}
