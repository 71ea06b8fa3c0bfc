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
//! With [`Params::error_losses`] it tells losses by error from losses by congestion (section 1: losses that are preceded
//! and followed by an explicit increase are likely error losses). A sum `f` holds the feedback of about the last round
//! trip: `n` acknowledged packets and a change `c` of the window make it
//!
//! ```text
//!   f <- f (1 - n s / cwnd) + c
//! ```
//!
//! If `f < 0` at a loss, the window is halved at once. Otherwise the verdict waits for one round trip, and if then
//! `f < 0`, the window is halved late.
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
//! 7. "Preceded and followed by an explicit increase feedback" / the feedback of about a round trip before the loss and
//!    of one after it is not negative in sum / single packets of a flow at its share carry small changes of either sign.
//!    Until a verdict of congestion, increases also apply in fast recovery. A timeout is always congestion: no feedback
//!    is around it.

use super::edge::priority_bits;
use super::fairness::LEVELS;
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
        /// Priority at routers with `fairness = "priority"`, from 0, the lowest, to 7.
        pub priority: u8 = 0,
        /// The rate that the application wants. Default: the flow's application rate, or as much as there is.
        pub desired_rate: Option<Rate> = None,
        /// Whether the sender first asks receiver and routers for XCP, and becomes a TCP if one of them does not know
        /// it (section 8.2).
        pub negotiate: bool = false,
        /// The window that the header states: `"in-use"` for the whole packets that may be sent, `"exact"` for the
        /// window with its fraction.
        pub stamped_window: StampedWindow = StampedWindow::InUse,
        /// Whether a loss without negative feedback around it counts as an error of the path and leaves the window as it
        /// is (section 1). Otherwise each loss halves the window, as in section 3.3.
        pub error_losses: bool = false,
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

/// The cause of the newest loss.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    /// Increases wait for the end of fast recovery (deviation 1).
    Congestion,
    /// The feedback until then decides; the next ack sets the time.
    Open(Option<Time>),
    Error,
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
    priority: u8,
    /// Smoothed RTT in seconds, kept for pacing; zero without pacing or before the first ack.
    srtt_s: f64,
    pacing: bool,
    /// Sum of about a round trip's feedback in bytes of window; `None` if all losses count as congestion.
    recent: Option<f64>,
    cause: Cause,
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

    /// Adds an ack's feedback to that of the last round trip, and decides on a loss one round trip ago (deviation 7).
    fn judge(&mut self, recent: f64, change: f64, ack: &Ack<'_>) {
        let aged = (f64::from(ack.newly_acked) * self.packet_bytes / self.cwnd).min(1.0);
        let recent = recent * (1.0 - aged) + change;
        self.recent = Some(recent);
        match self.cause {
            Cause::Open(None) => self.cause = Cause::Open(Some(ack.now.saturating_add(ack.srtt))),
            Cause::Open(Some(until)) if ack.now >= until && recent < 0.0 => {
                self.cause = Cause::Congestion;
                self.cwnd = Congestion::Loss { flight: ack.flight }.halve(self.cwnd, self.packet_bytes);
            }
            Cause::Open(Some(until)) if ack.now >= until => self.cause = Cause::Error,
            _ => {}
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
        within("price", p.price, 1e-6, 1e6)?;
        if p.negotiate && p.priority > 0 {
            let what = format!(
                "is {} beside negotiate, and a packet's bits hold one of them; leave out one",
                p.priority
            );
            return Err(("priority", what));
        }
        within("priority", f64::from(p.priority), 0.0, LEVELS as f64 - 1.0)
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
            priority: params.priority,
            pacing: params.pacing,
            recent: params.error_losses.then_some(0.0),
            cause: Cause::Congestion,
            srtt_s: 0.0,
            negotiation: Negotiation::new(params.negotiate, flow),
            encoding: PhantomData,
        }
    }

    #[inline]
    fn report(&self) -> Report {
        self.negotiation.report()
    }

    fn on_change(&mut self, change: FlowChange<'_, Params>) {
        if let FlowChange::Path(path) = change {
            self.negotiation.passes(path.hops);
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
        if let Some(recent) = self.recent {
            self.judge(recent, change, ack);
        }
        if change > 0.0 {
            if ack.in_recovery && self.cause == Cause::Congestion {
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
        if matches!(sign, Congestion::Loss { .. }) && self.recent.is_some_and(|recent| recent >= 0.0) {
            self.cause = Cause::Open(None);
            return;
        }
        self.cause = Cause::Congestion;
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
        if self.negotiation.asks() { ASKING } else { priority_bits(self.priority) }
    }
}
