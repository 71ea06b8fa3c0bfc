//! The PCP sender: it asks for a change of its window and obeys the feedback.
//!
//! Katabi and Handley 2001, sections 2, 3.4 and 4.1. Each data packet carries the window, the RTT and a wish: the
//! bytes in the sending buffer beyond the window. Each ack returns what the routers left of the wish, and
//!
//! ```text
//!   cwnd = max(s, cwnd + H_feedback)                          eq. 3
//!   H_B2 = H_B1 of the last ack, or 1 where no more is wanted section 3.4: the last window of a transfer among others
//!   cwnd = what was used, where a round trip did not use it   section 2: use it or lose it
//!   loss: cwnd / 2, timeout: s                                section 3.4: as TCP's
//! ```
//!
//! With [`Params::tfrc`] some routers of the path may lack PCP (footnote 11). They show themselves by losses alone, and
//!
//! ```text
//!   cwnd <= TFRC's rate times the RTT                         RFC 5348, section 3.1
//! ```
//!
//! [`crate::share::windows`] has this window. TFRC counts at most one loss in an RTT (section 5.2). Before the first
//! loss its window is twice what the last round trip used (section 4.3). The first loss counts as that of a flow whose
//! window rests at half of what was in flight (section 6.3.1).
//!
//! With [`Params::negotiate`] the flow opens with a packet that asks for PCP. If its receiver or a router on its path
//! does not support PCP, the flow becomes a TCP for the rest of its life (section 4.1): [`crate::negotiation`].
//!
//! Deviations (paper says / we do / because):
//! 1. Feedback applies whenever an ack arrives / in fast recovery only decreases apply / the sender reacts to a loss
//!    as TCP does, which does not grow until the loss is repaired.
//! 2. The wish is the sending buffer less the window / for an application with a rate, it is the data produced in an
//!    RTT plus a packet, less the window / a law does not see the buffer; it can only wish for what the application
//!    produces.
//! 3. The window shrinks after an RTT that did not use it / an RTT did not use the window if at no ack the window,
//!    rather than the application, limited the sender; the used part is the most that was in flight / windows are not
//!    whole packets: otherwise every flow would lose the fraction of a packet that does not fit. Such a flow asks for
//!    no more until a round trip uses its window.
//! 4. A TCP SYN with an option opens the flow, and a PCP packet of headers alone follows it / one packet of the size
//!    of an ack does both / the two would travel together.

use super::header::{B1, Header, sent};
use crate::Refused;
use crate::negotiation::Negotiation;
use crate::sender::{
    AS_MUCH_AS_THERE_IS, Ack, Congestion, Feedback, FlowChange, FlowView, Recovery, Report, SenderLaw,
    SenderTraits, check_desired,
};
use crate::share::windows::Windows;
use crate::stamp::Stamp;
use crate::units::{Rate, Time};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// The rate that the application wants. Default: the flow's application rate, or as much as there is.
        pub desired_rate: Option<Rate> = None,
        /// Whether the sender first asks receiver and routers for PCP, and becomes a TCP if one of them does not know
        /// it (section 4.1).
        pub negotiate: bool = false,
        /// Whether routers of the path may lack PCP: the window is then at most TFRC's rate times the RTT (footnote 11).
        pub tfrc: bool = false,
    }
}

/// The window that routers without PCP leave, by TFRC.
#[derive(Clone, Debug, Default)]
struct Tfrc {
    windows: Windows,
    /// Losses before this time belong to the last loss event.
    event_end: Time,
    /// Before the first loss event, the largest window in bytes; zero before the first round trip is over.
    most: f64,
}

impl Tfrc {
    /// Takes a loss of a flow with `flight` packets in flight.
    fn on_loss(&mut self, now: Time, srtt: Time, flight: u32) {
        if now >= self.event_end {
            let half = f64::from(flight) / 2.0;
            self.windows.begin(1.5 * half * half); // sqrt(2 p / 3) = 1 / half
            self.windows.on_loss();
            self.event_end = now.saturating_add(srtt);
        }
    }

    /// The largest window in bytes.
    fn bound(&self) -> f64 {
        let window = self.windows.window();
        if window.is_finite() || self.most == 0.0 { window } else { self.most }
    }
}

/// State of one PCP flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Bytes.
    cwnd: f64,
    packet_bytes: f64,
    /// Bytes/s; the largest possible wish if the application has no rate.
    desired: f64,
    /// When the running round trip ends; zero before the first ack.
    round_end: Time,
    /// The most packets in flight in this round trip.
    used: u32,
    /// The window limited the sender in this round trip.
    limited: bool,
    /// The previous round trip did not use the window.
    unused: bool,
    /// `H_B2`.
    no_more: bool,
    negotiation: Negotiation,
    /// Smoothed round-trip time.
    srtt: Time,
    tfrc: Option<Box<Tfrc>>,
}

impl Sender {
    /// Bytes that the flow would have in flight in a network without limits, plus one packet.
    fn wanted(&self, rtt_s: f64) -> f64 {
        self.desired * rtt_s + self.packet_bytes // deviation 2
    }

    /// Applies "use it or lose it" (section 2).
    fn watch_use(&mut self, ack: &Ack<'_>) {
        self.used = self.used.max(ack.flight);
        self.limited |= ack.window_limited || ack.in_recovery; // deviation 3
        if ack.now < self.round_end {
            return;
        }
        self.unused = self.round_end > Time::ZERO && !self.limited;
        let used = f64::from(self.used) * self.packet_bytes;
        if let Some(tfrc) = &mut self.tfrc {
            tfrc.most = 2.0 * used;
        }
        if self.unused {
            self.cwnd = self.cwnd.min(used).max(self.packet_bytes);
        }
        self.round_end = ack.now.saturating_add(ack.srtt);
        self.used = 0;
        self.limited = false;
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    /// The paper's TCP is Reno. With selective acks, as for XCP, the law is the same, and the rare losses cost less.
    fn traits(p: &Params) -> SenderTraits {
        SenderTraits {
            recovery: Recovery::Sack,
            handshake: p.negotiate,
            falls_back: p.negotiate,
            asks_receiver: p.negotiate,
            heap_bytes: if p.tfrc { size_of::<Tfrc>() } else { 0 },
            ..SenderTraits::DEFAULT
        }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        if p.tfrc && p.negotiate {
            let right = "leave out one of the two: with `negotiate` the flow becomes a TCP on such a path";
            return Err(("tfrc", format!("is true, and so is `negotiate`; {right}")));
        }
        check_desired(p.desired_rate)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let packet_bytes = f64::from(flow.packet_bytes);
        let desired = params.desired_rate.or(flow.app_rate);
        Self {
            cwnd: (flow.initial_window * packet_bytes).max(packet_bytes),
            packet_bytes,
            desired: desired.map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec),
            round_end: Time::ZERO,
            used: 0,
            limited: false,
            unused: false,
            no_more: false,
            negotiation: Negotiation::new(params.negotiate, flow),
            srtt: Time::ZERO,
            tfrc: params.tfrc.then(Box::default),
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
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.negotiation.on_ack(ack, self.cwnd) {
            return;
        }
        let wanted = self.wanted(ack.srtt.as_secs_f64());
        let enough = wanted - self.packet_bytes;
        let change = Header::from(*ack.stamp).feedback_bytes;
        if change > 0.0 {
            if !ack.in_recovery {
                // The window never exceeds the sender's request, whatever feedback returned.
                self.cwnd = (self.cwnd + change).min(wanted.max(self.cwnd)); // eq. 3, deviation 1
            }
        } else {
            self.cwnd = (self.cwnd + change).max(self.packet_bytes); // eq. 3
        }
        self.watch_use(ack);
        self.srtt = ack.srtt;
        if let Some(tfrc) = &mut self.tfrc {
            (0..ack.newly_acked).for_each(|_| tfrc.windows.on_arrival(self.packet_bytes as u32));
            self.cwnd = self.cwnd.min(tfrc.bound()).max(self.packet_bytes); // footnote 11
        }
        let last_window = f64::from(ack.left) * self.packet_bytes <= self.cwnd;
        self.no_more = ack.bits & B1 != 0 || self.unused || self.cwnd >= enough || last_window; // section 3.4
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let Feedback { now, bits, .. } = *feedback;
        self.negotiation.on_answer(now, bits);
        if !self.negotiation.asks() {
            return;
        }
        let change = Header::from(*feedback.stamp).feedback_bytes;
        self.cwnd = (self.cwnd + change.min(0.0)).max(self.packet_bytes);
        self.no_more = bits & B1 != 0;
    }

    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        if let Some(tcp) = self.negotiation.tcp_mut() {
            return tcp.on_congestion(now, sign);
        }
        if let (Some(tfrc), Congestion::Loss { flight } | Congestion::Timeout { flight }) =
            (&mut self.tfrc, sign)
        {
            tfrc.on_loss(now, self.srtt, flight);
        }
        self.cwnd = sign.halve(self.cwnd, self.packet_bytes);
    }

    #[inline]
    fn stamp(&self, _: Time, srtt: Time) -> Stamp {
        if self.negotiation.tcp().is_some() {
            return Stamp::default();
        }
        let rtt_s = srtt.as_secs_f64();
        // Without an RTT no window follows from a rate, and routers give such packets nothing.
        let feedback_bytes = if rtt_s > 0.0 { self.wanted(rtt_s) - self.cwnd } else { 0.0 };
        Header { cwnd_bytes: self.cwnd, rtt_s, feedback_bytes }.into()
    }

    #[inline]
    fn bits(&self) -> u16 {
        if self.negotiation.tcp().is_some() { 0 } else { sent(self.no_more) }
    }
}
