//! How a sender finds out whether its receiver and all routers of its path know its protocol, and becomes a TCP where they do not.
//!
//! Katabi and Handley 2001, section 4.1, for PCP; Katabi, Handley, Rohrs 2002, section 8.2, for XCP, which names no more than
//! "simple TCP and IP options". The flow opens with a packet that asks:
//!
//! ```text
//!   PTL    begins as IP's time to live does; each router of the protocol lowers it, each router of any kind lowers the time to live
//!   an answer in which both have not fallen alike: TCP (with selective acks) for the rest of the flow's life,
//!                                                  from its initial window if it answers the opening packet, else as after a loss
//! ```
//!
//! A receiver that does not know the protocol echoes nothing, and so no PTL.
//!
//! Deviations (paper says / we do / because):
//! 1. A flow that finds later that its path has changed falls back / its window is halved then / somewhere on the path is
//!    a queue that no feedback knows of, which may be full.

use crate::sender::{Ack, Congestion, FlowView, Report, SenderLaw};
use crate::tcp::{Params as TcpParams, Sack};
use crate::units::Time;

/// One in the field PTL of a packet's bits.
const UNIT: u16 = 1 << 8;
/// What PTL begins with: the time to live that IP begins with (RFC 1700).
pub const FIRST_PTL: u8 = 64;
/// The bits of a packet that asks.
pub const ASKING: u16 = FIRST_PTL as u16 * UNIT;

/// The field PTL.
#[inline]
#[must_use]
pub const fn ptl(bits: u16) -> u8 {
    (bits / UNIT) as u8
}

/// The bits after a router that has counted itself; those of a packet that does not ask stay.
#[inline]
#[must_use]
pub const fn passed(bits: u16) -> u16 {
    if bits >= UNIT { bits - UNIT } else { bits }
}

/// The flow as a TCP, and since when.
#[derive(Clone, Debug)]
struct FallBack {
    since: Time,
    tcp: Sack,
}

/// What a flow that asks knows.
#[derive(Clone, Debug)]
pub struct Negotiation {
    flow: FlowView,
    /// Routers that the flow's data pass.
    hops: u8,
    fallen: Option<FallBack>,
}

impl Negotiation {
    /// Nothing has been answered.
    #[must_use]
    pub const fn new(flow: &FlowView) -> Self {
        Self { flow: *flow, hops: 0, fallen: None }
    }

    /// [`FlowChange::Hops`](crate::sender::FlowChange::Hops).
    pub const fn passes(&mut self, hops: u8) {
        self.hops = hops;
    }

    /// [`SenderLaw::report`].
    #[inline]
    #[must_use]
    pub fn report(&self) -> Report {
        Report { fallen_back: self.fallen.as_ref().map(|it| it.since), ..Report::default() }
    }

    /// The TCP that the flow has become.
    #[inline]
    #[must_use]
    pub fn tcp(&self) -> Option<&Sack> {
        Some(&self.fallen.as_ref()?.tcp)
    }

    /// The same, to be told of what happens.
    pub fn tcp_mut(&mut self) -> Option<&mut Sack> {
        Some(&mut self.fallen.as_mut()?.tcp)
    }

    /// The flow becomes a TCP with a window of so many packets if the answer with these bits has not passed routers of the protocol
    /// alone. Whether it has just done so.
    fn judge(&mut self, now: Time, bits: u16, window: f64) -> bool {
        if self.fallen.is_some() || FIRST_PTL.saturating_sub(ptl(bits)) == self.hops {
            return false;
        }
        let flow = FlowView { initial_window: window, ..self.flow };
        self.fallen = Some(FallBack { since: now, tcp: Sack::new(&TcpParams::default(), &flow) });
        true
    }

    /// An ack came, while the law's window was `cwnd` bytes. Whether the flow is a TCP, which has then been told.
    pub fn on_ack(&mut self, ack: &Ack<'_>, cwnd: f64) -> bool {
        let just_now = self.judge(ack.now, ack.bits, cwnd / f64::from(self.flow.packet_bytes));
        let Some(tcp) = self.tcp_mut() else { return false };
        if just_now {
            tcp.on_congestion(ack.now, Congestion::Loss { flight: ack.flight }); // deviation 1
        }
        tcp.on_ack(ack);
        true
    }

    /// The opening packet was answered. Whether the flow is a TCP.
    pub fn on_answer(&mut self, now: Time, bits: u16) -> bool {
        let window = self.flow.initial_window;
        self.judge(now, bits, window) || self.fallen.is_some()
    }
}
