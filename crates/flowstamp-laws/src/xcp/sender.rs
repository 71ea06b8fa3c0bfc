//! The XCP sender: it asks for a change of its window and obeys the feedback.
//!
//! Katabi 2002, section 3.3. Each data packet carries the window, the RTT and a wish. Each ack returns what the
//! routers left of the wish, and
//!
//! ```text
//!   cwnd = max(cwnd + H_feedback, s)
//! ```
//!
//! The wishes of a window's packets would together bring the flow to its desired rate `r` within a round trip: each
//! is `(r rtt - cwnd) / (cwnd / s)`. With a price (section 6) headers carry `cwnd / price`, so that increases are
//! proportional to the price. The sender reacts to losses as TCP does (section 3.3): it halves the window, or sets it
//! to one packet at a timeout.
//!
//! With [`Params::negotiate`] the flow opens with a packet that asks for XCP. If its receiver or a router on its path
//! does not support XCP, the flow becomes a TCP for the rest of its life (section 8.2): [`crate::negotiation`].
//!
//! Deviations (paper says / we do / because):
//! 1. Feedback applies whenever a new ack arrives / in fast recovery only decreases apply / the Internet-Draft has
//!    the sender behave by RFC 2581 until the loss event has passed.
//! 2. A flow whose application produces `r` wishes for `r rtt - cwnd` / it wishes for one packet more / only whole
//!    packets leave, so a window of 4.99 packets would carry four fifths of the rate; the application limits the flow
//!    to `r`.
//! 3. The first packet has `H_rtt` zero and a wish / such packets have no wish / without an RTT no window follows
//!    from a rate, and routers give such packets no increase.
//! 4. `H_cwnd` is the sender's current window / it counts only the window's whole packets, which are all that may be
//!    sent, as in the authors' ns-2 model ([`StampedWindow`]) / with the fraction, a window of 2.9 packets asks for
//!    the share of 2.9 and sends 2: flows with small windows get less or more than their share, by chance.
//! 5. "Simple TCP and IP options" tell whether receiver and routers know XCP / sixteen bits beside the header tell
//!    it, as PCP's PTL does / the paper says no more about these options; a capture does not show the bits.
//! 6. Nothing on pacing / with [`Params::pacing`] packets leave at `cwnd / srtt`, without the factor 1.2 of Linux,
//!    which hosts on Linux use / the window is one RTT's data either way, and a pace no faster than the window cannot
//!    send it in bursts.

use super::header::Encoding;
use crate::negotiation::{ASKING, Negotiation};
use crate::sender::{
    AS_MUCH_AS_THERE_IS, Ack, Congestion, Feedback, FlowChange, FlowView, Pacing, Recovery, Report,
    SenderLaw, SenderTraits,
};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Refused, within};
use core::marker::PhantomData;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which window the headers carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StampedWindow {
    /// The whole packets of the congestion window: those that may be sent.
    #[default]
    InUse,
    /// The congestion window with its fraction of a packet.
    Exact,
}

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Price per unit time (section 6): throughputs at one bottleneck are in proportion to it. Above 0.
        pub price: f64 = 1.0,
        /// The rate that the application wants. Default: the flow's application rate, or as much as there is.
        pub desired_rate: Option<Rate> = None,
        /// Whether the sender first asks receiver and routers for XCP, and becomes a TCP if one of them does not know
        /// it (section 8.2).
        pub negotiate: bool = false,
        /// The window that the header states: `"in-use"` for the whole packets that may be sent, `"exact"` for the
        /// window with its fraction.
        pub stamped_window: StampedWindow = StampedWindow::InUse,
        /// Whether packets leave evenly, at `cwnd / srtt` (Aggarwal, Savage and Anderson 2000, "Understanding the
        /// performance of TCP pacing"). Otherwise they leave as soon as the window allows, as in the paper.
        pub pacing: bool = false,
    }
}

/// Wish of one packet in bytes of window: its part of the `missing` bytes, where `window` bytes leave per RTT. Zero
/// without an RTT (deviation 3).
#[inline]
pub(crate) fn wish(rtt_s: f64, missing: f64, window: f64, packet_bytes: f64) -> f64 {
    if rtt_s > 0.0 { missing * packet_bytes / window } else { 0.0 }
}

/// State of one XCP flow.
#[derive(Clone, Debug)]
pub struct Sender<E> {
    /// Bytes.
    cwnd: f64,
    packet_bytes: f64,
    /// One over the price.
    inverse_price: f64,
    /// Bytes/s; the largest possible wish if the application has no rate.
    desired: f64,
    /// Bytes of window that the wish adds to the desired rate's window (deviation 2).
    margin: f64,
    stamped_window: StampedWindow,
    /// Smoothed RTT in seconds, kept for pacing; zero without pacing or before the first ack.
    srtt_s: f64,
    pacing: bool,
    negotiation: Negotiation,
    encoding: PhantomData<E>,
}

impl<E> Sender<E> {
    /// The window that headers carry, bytes.
    #[inline]
    pub(crate) fn stamped_window(&self) -> f64 {
        match self.stamped_window {
            // The result is at least one packet, as the window is.
            StampedWindow::InUse => f64::from((self.cwnd / self.packet_bytes) as u32) * self.packet_bytes,
            StampedWindow::Exact => self.cwnd,
        }
    }
}

impl<E: Encoding> SenderLaw for Sender<E> {
    type Params = Params;

    /// The authors built XCP on Reno. With selective acks the law is the same, and the rare losses cost less.
    fn traits(p: &Params) -> SenderTraits {
        SenderTraits {
            recovery: Recovery::Sack,
            handshake: p.negotiate,
            falls_back: p.negotiate,
            asks_receiver: p.negotiate,
            sends_at_once: !p.pacing,
            ..SenderTraits::DEFAULT
        }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("price", p.price, 1e-6, 1e6)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let packet_bytes = f64::from(flow.packet_bytes);
        let desired = params.desired_rate.or(flow.app_rate);
        Self {
            cwnd: (flow.initial_window * packet_bytes).max(packet_bytes),
            packet_bytes,
            inverse_price: 1.0 / params.price,
            desired: desired.map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec),
            margin: if params.desired_rate.is_none() { packet_bytes } else { 0.0 },
            stamped_window: params.stamped_window,
            srtt_s: 0.0,
            pacing: params.pacing,
            negotiation: Negotiation::new(params.negotiate, flow),
            encoding: PhantomData,
        }
    }

    #[inline]
    fn report(&self) -> Report {
        self.negotiation.report()
    }

    fn on_change(&mut self, change: FlowChange<'_, Params>) {
        if let FlowChange::Hops(hops) = change {
            self.negotiation.passes(hops);
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.negotiation.tcp().map_or(self.cwnd, SenderLaw::cwnd)
    }

    #[inline]
    fn pacing(&self) -> Option<Pacing> {
        // The first window leaves unpaced: without an RTT no pace follows from it.
        (self.srtt_s > 0.0 && self.negotiation.tcp().is_none())
            .then(|| Rate::from_bytes_per_sec(self.cwnd / self.srtt_s).into())
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.negotiation.on_ack(ack, self.cwnd) {
            return;
        }
        let rtt_s = ack.srtt.as_secs_f64();
        if self.pacing {
            self.srtt_s = rtt_s;
        }
        let change = E::window_change(ack.stamp, rtt_s);
        if change > 0.0 {
            if ack.in_recovery {
                return; // deviation 1
            }
            // The window never exceeds the sender's request, whatever feedback returned.
            let wanted = (self.desired * rtt_s + self.margin).max(self.cwnd);
            self.cwnd = (self.cwnd + change).min(wanted);
        } else {
            self.cwnd = (self.cwnd + change).max(self.packet_bytes);
        }
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.negotiation.on_answer(feedback.now, feedback.bits);
    }

    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        if let Some(tcp) = self.negotiation.tcp_mut() {
            return tcp.on_congestion(now, sign);
        }
        self.cwnd = sign.halve(self.cwnd, self.packet_bytes);
    }

    #[inline]
    fn stamp(&self, _: Time, srtt: Time) -> Stamp {
        if self.negotiation.tcp().is_some() {
            return Stamp::default();
        }
        let rtt_s = srtt.as_secs_f64();
        let window = self.stamped_window();
        let missing = self.desired * rtt_s + self.margin - self.cwnd;
        let wish = wish(rtt_s, missing, window, self.packet_bytes);
        E::header(window * self.inverse_price, rtt_s, self.packet_bytes, wish)
    }

    #[inline]
    fn bits(&self) -> u16 {
        if self.negotiation.asks() { ASKING } else { 0 }
    }
}
