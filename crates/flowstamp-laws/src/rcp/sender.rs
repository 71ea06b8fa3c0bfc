//! The RCP sender: it sends at the rate that the slowest router gives.
//!
//! Dukkipati 2007, sections 3.1 and 6.1.1. The first packet is a SYN that carries the desired rate. Its answer brings
//! the rate at which data starts. From then on each ack brings a rate `R`, and
//!
//! ```text
//!   pace    one packet each s / R seconds
//!   window  max(R rtt / s, 1) packets                                   R-TCP, section 6.1.1
//! ```
//!
//! The request also states the flow's weight `w` ([`Params::weight`]): routers give it `w R` (sections 1.3 and 3.6).
//!
//! The author's ns-2 host, of chapters 3 and 4, only paces; [`Params::window`] chooses.
//!
//! The sender repairs losses but does not change its rate: the routers know of congestion by their queues. Section
//! 6.1.1 leaves repair to TCP, hence selective acks. The repair of section 6.3.1 is
//! [`Recovery::Count`](crate::sender::Recovery::Count). A flow ends with a FIN and its answer, control packets of 40
//! bytes (section 4.1). The author's ns-2 host puts the FIN into the last data packet instead.
//!
//! Where routers of other kinds may be the bottleneck, [`Params::switch`] lets the flow become a TCP (with selective acks)
//! for the rest of its life (section 6.2.2):
//!
//! ```text
//!   handshake answered, and no router gave a rate            TCP from its initial window
//!   smoothed RTT at least twice the least for a round trip,  TCP, as after a loss
//!     and the rate given has not fallen
//!   a loss, and the rate given has not fallen by the end     TCP, as after a loss
//!     of the round trip that follows
//! ```
//!
//! An RCP router whose queue is a round trip long lowers its rate. A rate that does not fall therefore comes from a
//! router that is not the bottleneck.
//!
//! Deviations (thesis says / we do / because):
//! 1. The window is R rtt / s / it is one packet larger / pacing decides, and a window that rounding makes one packet
//!    too small would stall the pace once per round trip.
//! 2. The rate may be below one packet per RTT / the window is one packet and the pace limits the flow. While it
//!    waits, the engine probes the path with header-only packets. It probes once per RTT, as the author's ns-2 model
//!    does, or less often so that probes take at most a tenth of R, but at least once per hundred RTTs. Without
//!    R-TCP's window it probes as often as the author's model / without probes a flow would see a higher rate only
//!    after the gap. Unlimited probes of C rtt / 40 B flows fill the link by themselves, and then no flow ever ends.
//! 3. The rate has to show "a corresponding decrease" / it has to fall below 0.9 of the highest rate at the start of
//!    the last four round trips / the thesis names no threshold. A queue of one round trip lowers R by about the
//!    share beta/2 in each round trip. Another router's rate varies by a few percent. A flow of a few packets per RTT
//!    learns of a loss late. Where the buffer is at most a tenth of the bandwidth-delay product, a smaller decrease
//!    may drain it, and flows behind RCP routers switch too.
//! 4. Nothing on the window after the switch / it is RCP's, reduced as by TCP on a loss / both signs mean that a
//!    queue is full.
//! 5. The handshake carries the desired rate / with the switch, it asks for the largest possible rate, whatever the
//!    flow wants / otherwise an unchanged wish would not tell whether a router has answered.
//! 6. Nothing on where a weight travels / it is in the bits beside the stamp, on the wire in the header's last byte /
//!    figure 6.2 leaves that byte unused.

use super::header::{Header, MOST_WEIGHT, weight_bits};
use super::switch::Switch;
use crate::sender::{
    AS_MUCH_AS_THERE_IS, Ack, Congestion, Feedback, FlowView, Pacing, Probes, Report, SenderLaw,
    SenderTraits, check_desired,
};
use crate::stamp::Stamp;
use crate::tcp::Sack;
use crate::units::{Rate, Time};
use crate::{Refused, within};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Rate that the sender asks for. Default: the application's rate, or unlimited if it has none.
        pub desired_rate: Option<Rate> = None,
        /// Weight: routers give the flow this many times their rate `R` (section 3.6); 1 to 63488. Five binary digits of it
        /// count, so that 1 to 32 are exact.
        pub weight: f64 = 1.0,
        /// Whether the sender switches to TCP if the bottleneck is not an RCP router (section 6.2.2).
        pub switch: bool = false,
        /// Whether the sender limits its packets in flight to one more than R rtt (R-TCP, section 6.1.1). If false, only
        /// the pace limits it, and it sends one probe per RTT at any R, as the author's ns-2 host does.
        pub window: bool = true,
    }
}

/// Probes take a tenth of R. A router's rate is never below one packet per 100 mean round trips (`MIN_RATE`, app. F
/// line 9). A lower rate comes from routers whose rates add up, or from one whose link has just come back.
const PROBES: Probes = Probes { share: 0.1, longest_gap: 100 };

/// State of one RCP flow.
#[derive(Clone, Debug)]
pub struct Sender {
    desired: f64,
    /// Bytes/s; zero until the first answer.
    rate: f64,
    cwnd: f64,
    packet_bytes: f64,
    /// The window bounds the packets in flight.
    window: bool,
    /// Bytes delivered so far: the age of section 3.6.
    age: f64,
    /// The weight as the packets state it.
    weight_bits: u16,
    switch: Option<Box<Switch>>, // few flows have one
}

impl Sender {
    fn take(&mut self, stamp: &Stamp, srtt: Time) {
        let offered = Header::from(*stamp).rate.min(self.desired);
        if offered > 0.0 {
            self.rate = offered;
        }
        self.cwnd = (self.rate * srtt.as_secs_f64()).max(0.0) + self.packet_bytes;
    }

    /// The TCP that the flow has become; `None` while it obeys routers.
    #[must_use]
    pub fn tcp(&self) -> Option<&Sack> {
        self.switch.as_ref().and_then(|s| s.tcp.as_ref())
    }

    fn tcp_mut(&mut self) -> Option<&mut Sack> {
        self.switch.as_mut().and_then(|s| s.tcp.as_mut())
    }

    /// Checks the first answer: if the wish returned unchanged, no router on the path supports RCP.
    fn look_for_routers(&mut self, now: Time, stamp: &Stamp) {
        if let Some(switch) = self.switch.as_mut().filter(|s| s.tcp.is_none() && self.rate <= 0.0) {
            if Header::from(*stamp).rate >= AS_MUCH_AS_THERE_IS {
                switch.become_tcp(now, switch.flow.initial_window);
            }
        }
    }

    /// Checks for the signs of section 6.2.2.
    fn watch(&mut self, now: Time, srtt: Time, flight: u32) {
        let (rate, window) = (self.rate, self.cwnd / self.packet_bytes);
        if let Some(switch) = &mut self.switch {
            switch.watch(now, srtt, flight, rate, window);
        }
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(p: &Params) -> SenderTraits {
        SenderTraits { handshake: true, falls_back: p.switch, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("weight", p.weight, 1.0, MOST_WEIGHT)?;
        check_desired(p.desired_rate)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let desired = params.desired_rate.or(flow.app_rate).map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec);
        let packet_bytes = f64::from(flow.packet_bytes);
        let switch = params.switch.then(|| Box::new(Switch::new(flow)));
        Self {
            desired,
            rate: 0.0,
            cwnd: packet_bytes,
            packet_bytes,
            window: params.window,
            age: 0.0,
            weight_bits: weight_bits(params.weight),
            switch,
        }
    }

    #[inline]
    fn report(&self) -> Report {
        let switch = self.switch.as_ref().filter(|s| s.tcp.is_some());
        Report { fallen_back: switch.map(|s| s.switched), ..Report::default() }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.tcp().map_or(self.cwnd, SenderLaw::cwnd)
    }

    #[inline]
    fn pacing(&self) -> Option<Pacing> {
        // Without a handshake the first packet leaves before there is a rate, and again if it is lost.
        (self.tcp().is_none() && self.rate > 0.0).then(|| Pacing {
            rate: Rate::from_bytes_per_sec(self.rate),
            alone: !self.window,
            probes: self.window.then_some(PROBES),
        })
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.age += f64::from(ack.newly_acked) * self.packet_bytes;
        if self.rate <= 0.0 {
            self.look_for_routers(ack.now, ack.stamp);
        }
        if let Some(tcp) = self.tcp_mut() {
            tcp.on_ack(ack);
            return;
        }
        self.take(ack.stamp, ack.srtt);
        if self.switch.is_some() {
            self.watch(ack.now, ack.srtt, ack.flight);
        }
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let Feedback { now, srtt, stamp, .. } = *feedback;
        self.look_for_routers(now, stamp);
        if self.tcp().is_some() {
            return;
        }
        self.take(stamp, srtt);
        if self.switch.is_some() {
            self.watch(now, srtt, 0);
        }
    }

    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        let (rate, window) = (self.rate, self.cwnd / self.packet_bytes);
        let Some(switch) = self.switch.as_deref_mut() else { return };
        if let Some(tcp) = &mut switch.tcp {
            return tcp.on_congestion(now, sign);
        }
        match sign {
            // The sign is evaluated one round trip later: an overshoot of R itself fills a small buffer before the
            // rate falls.
            Congestion::Loss { .. } | Congestion::Mark { .. } => switch.lost[0] = true,
            Congestion::Timeout { .. } if !switch.fell_to(rate) => {
                switch.become_tcp(now, window).on_congestion(now, sign);
            }
            _ => {}
        }
    }

    #[inline]
    fn bits(&self) -> u16 {
        self.weight_bits
    }

    #[inline]
    fn stamp(&self, _: Time, srtt: Time) -> Stamp {
        if self.tcp().is_some() {
            return Stamp::default();
        }
        let rate = if self.switch.is_some() && self.rate == 0.0 { AS_MUCH_AS_THERE_IS } else { self.desired };
        Header { rate, rtt_s: srtt.as_secs_f64(), age_bytes: self.age }.into()
    }
}
