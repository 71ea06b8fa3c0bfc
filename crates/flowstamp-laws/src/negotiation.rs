//! Negotiation: a sender asks whether its receiver and all routers on its path support its protocol, and becomes a
//! TCP if they do not.
//!
//! Sources: Katabi and Handley 2001, section 4.1, for PCP; Katabi, Handley, Rohrs 2002, section 8.2, for XCP, which
//! only mentions "simple TCP and IP options". The flow opens with a packet that asks:
//!
//! ```text
//!   PTL    starts at IP's time to live; each router of the protocol decrements it, every router decrements the time to live
//!   if the two differ in an answer: TCP (with selective acks) for the rest of the flow's life,
//!                                                  from its initial window if it answers the opening packet, else as after a loss
//! ```
//!
//! A receiver that does not support the protocol echoes no PTL.
//!
//! Deviations (paper says / we do / because):
//! 1. A flow falls back if it later finds that its path has changed / its window is then also halved / the path has a
//!    queue that no feedback covers, and this queue may be full.

use crate::sender::{Ack, Congestion, FlowView, Report, SenderLaw};
use crate::tcp::{Params as TcpParams, Sack};
use crate::units::Time;

/// The value 1 of the PTL field in a packet's bits.
const UNIT: u16 = 1 << 8;
/// Initial value of PTL: IP's initial time to live (RFC 1700).
pub const FIRST_PTL: u8 = 64;
/// The bits of a packet that asks.
pub const ASKING: u16 = FIRST_PTL as u16 * UNIT;

/// Bits from this value on hold no PTL.
pub(crate) const NO_PTL: u16 = 1 << 15;

/// The field PTL.
#[inline]
#[must_use]
pub const fn ptl(bits: u16) -> u8 {
    (bits / UNIT) as u8
}

/// The bits after a router that has counted itself. The bits of a packet that does not ask do not change.
#[inline]
#[must_use]
pub const fn passed(bits: u16) -> u16 {
    if UNIT <= bits && bits < NO_PTL { bits - UNIT } else { bits }
}

/// The TCP that a flow has become, and when.
#[derive(Clone, Debug)]
struct FallBack {
    since: Time,
    tcp: Sack,
}

/// A negotiating flow's view of its path.
#[derive(Clone, Debug)]
struct Path {
    flow: FlowView,
    /// Number of routers on the flow's data path, once it is known.
    hops: Option<u8>,
    /// The numbers of earlier routes whose packets may still return, a bit for each.
    before: u128,
    /// When packets of earlier routes no longer return; `None` until the first ack after the latest change.
    until: Option<Time>,
    fallen: Option<FallBack>,
}

/// Negotiation state of one flow. Few flows negotiate, so the state of all others is only a null pointer.
#[derive(Clone, Debug)]
pub struct Negotiation(Option<Box<Path>>);

impl Negotiation {
    /// Creates a flow's state before any answer, whether or not the flow negotiates.
    #[must_use]
    pub fn new(negotiates: bool, flow: &FlowView) -> Self {
        let path = Path { flow: *flow, hops: None, before: 0, until: None, fallen: None };
        Self(negotiates.then(|| Box::new(path)))
    }

    /// Sets the number of routers on the data path ([`FlowChange::Path`](crate::sender::FlowChange::Path)).
    pub fn passes(&mut self, hops: u8) {
        if let Some(path) = &mut self.0 {
            path.before |= path.hops.map_or(0, bit);
            (path.hops, path.until) = (Some(hops), None);
        }
    }

    /// [`SenderLaw::report`].
    #[inline]
    #[must_use]
    pub fn report(&self) -> Report {
        let fallen = self.0.as_ref().and_then(|path| path.fallen.as_ref());
        Report { fallen_back: fallen.map(|it| it.since), ..Report::default() }
    }

    /// Whether the flow negotiates and has not become a TCP.
    #[inline]
    #[must_use]
    pub fn asks(&self) -> bool {
        self.0.is_some() && self.tcp().is_none()
    }

    /// The TCP that the flow has become, if any.
    #[inline]
    #[must_use]
    pub fn tcp(&self) -> Option<&Sack> {
        Some(&self.0.as_ref()?.fallen.as_ref()?.tcp)
    }

    /// As [`Self::tcp`], for events.
    pub fn tcp_mut(&mut self) -> Option<&mut Sack> {
        Some(&mut self.0.as_mut()?.fallen.as_mut()?.tcp)
    }

    /// Handles an ack while the law's window is `cwnd` bytes. Returns true if the flow is a TCP; the TCP has then
    /// handled the ack.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack<'_>, cwnd: f64) -> bool {
        self.0.as_mut().is_some_and(|path| path.on_ack(ack, cwnd))
    }

    /// Takes the answer to the opening packet.
    pub fn on_answer(&mut self, now: Time, bits: u16) {
        if let Some(path) = &mut self.0 {
            path.judge(now, bits, path.flow.initial_window, Time::ZERO);
        }
    }
}

/// The bit of a number of routers; 0 beyond 127, which no answer shows.
const fn bit(hops: u8) -> u128 {
    if hops < 128 { 1 << hops } else { 0 }
}

impl Path {
    /// Turns the flow into a TCP with a window of `window` packets, if an answer's bits show a router without the
    /// protocol. Returns whether this call did so. After a change of route, packets of the old route may return for
    /// the time `wait`.
    fn judge(&mut self, now: Time, bits: u16, window: f64, wait: Time) -> bool {
        if now > *self.until.get_or_insert(now.saturating_add(wait)) {
            self.before = 0;
        }
        let counted = FIRST_PTL.saturating_sub(ptl(bits));
        let fits = Some(counted) == self.hops || self.before & bit(counted) != 0;
        if self.fallen.is_some() || fits {
            return false;
        }
        let flow = FlowView { initial_window: window, ..self.flow };
        self.fallen = Some(FallBack { since: now, tcp: Sack::new(&TcpParams::default(), &flow) });
        true
    }

    /// [`Negotiation::on_ack`].
    fn on_ack(&mut self, ack: &Ack<'_>, cwnd: f64) -> bool {
        // All packets of an old route return within a round trip, and queues on it may delay them.
        let just_now = self.judge(ack.now, ack.bits, cwnd / f64::from(self.flow.packet_bytes), ack.srtt * 2);
        let Some(FallBack { tcp, .. }) = &mut self.fallen else { return false };
        if just_now {
            tcp.on_congestion(ack.now, Congestion::Loss { flight: ack.flight }); // deviation 1
        }
        tcp.on_ack(ack);
        true
    }
}
