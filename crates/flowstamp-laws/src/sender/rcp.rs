//! The RCP sender: it takes the rate that the slowest router gives.
//!
//! Dukkipati 2007, sections 3.1 and 6.1.1. The first packet is a SYN that carries the wish for a rate; its answer brings
//! the rate at which data starts. From then on each ack brings a rate `R`, and
//!
//! ```text
//!   pace    one packet each s / R seconds
//!   window  max(R rtt / s, 1) packets                                   R-TCP, section 6.1.1
//! ```
//!
//! Losses are repaired and do not change the rate: the routers know of them by their queues. Section 6.1.1 leaves the repair
//! to TCP, hence selective acks; that of section 6.3.1 is [`Recovery::Count`]. A flow ends with a FIN and its answer,
//! a control packet of 40 bytes (section 4.1); the author's ns-2 host puts the FIN into the last data packet instead.
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
//! An RCP router whose queue is a round trip long lowers its rate, so what does not fall comes from a router that is not
//! the bottleneck.
//!
//! Deviations (thesis says / we do / because):
//! 1. The window is R rtt / s / it is a packet more / pacing decides, and a window that rounding makes a packet short of
//!    the pipe would stall the pace once a round trip.
//! 2. Rates below one packet per RTT / the window is one packet and the pace holds it; the engine probes the path with
//!    header-only packets once an RTT while it waits, as the author's ns-2 model does / else a higher rate would be seen
//!    only after the gap.
//! 3. The rate has to show "a corresponding decrease" / to below 0.9 of the highest at the start of the last four round
//!    trips / the thesis names no threshold; a queue of a round trip costs R about beta/2 of itself in each, a rate that
//!    is another router's varies by a few percent, and a flow of a few packets per RTT learns of a loss late.
//!    Where the buffer is a tenth of the pipe or less, less than that may drain it, and flows of RCP routers switch too.
//! 4. Nothing on the window after the switch / that of RCP, reduced as TCP does on a loss / both signs mean that a queue
//!    is full.
//! 5. With the switch, the handshake asks for as much as there is, whatever the flow wishes for / else a wish that comes
//!    back as it went might be a router's or nobody's answer.

use super::reno::{self, Sack};
use super::{Ack, FlowView, Recovery, SenderLaw};
use crate::Refused;
use crate::registry::Protocol;
use crate::router::rcp::Header;
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The rate to wish for; unset, the application's, or as much as there is.
    pub desired_rate: Option<Rate>,
    /// Switch to TCP where the bottleneck is not an RCP router (section 6.2.2).
    pub switch: bool,
}

/// Round trips over which a decrease counts as an answer to a queue, and how far it must go.
const ROUNDS: usize = 4;
const DECREASE: f64 = 0.9;

/// A flow without a rate of its own wishes for this, bytes/s: more than any link has.
pub(crate) const AS_MUCH_AS_THERE_IS: f64 = 1e15;

/// Rate and window of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    desired: f64,
    /// Bytes/s; zero until the first answer.
    rate: f64,
    cwnd: f64,
    packet_bytes: f64,
    /// Delivered so far: the age of section 3.6, bytes.
    age: f64,
    switch: Option<Switch>,
}

/// What decides on the switch to TCP, and TCP after it.
#[derive(Clone, Debug)]
struct Switch {
    flow: FlowView,
    tcp: Option<Sack>,
    /// When it became a TCP.
    switched: Time,
    /// The least smoothed RTT.
    least_rtt: Time,
    /// When the running round trip ends.
    round_end: Time,
    /// Rates given at the start of the last round trips, the newest first, bytes/s.
    round_rates: [f64; ROUNDS],
    /// A packet was lost: in the running round trip, and before it.
    lost: [bool; 2],
    /// The smoothed RTT has been at least twice the least since the running round trip began.
    doubled: bool,
}

impl Switch {
    /// The flow is a TCP from now on.
    fn become_tcp(&mut self, now: Time, window: f64) -> &mut Sack {
        self.switched = now;
        let flow = FlowView { initial_window: window, ..self.flow };
        self.tcp.insert(Sack::new(&reno::Params::default(), &flow))
    }

    /// Whether `rate` is a corresponding decrease: the router that gave it answers a queue of its own.
    fn fell_to(&self, rate: f64) -> bool {
        rate < DECREASE * self.round_rates.iter().copied().fold(0.0, f64::max)
    }
}

impl Sender {
    fn take(&mut self, stamp: &Stamp, srtt: Time) {
        let offered = Header::from(*stamp).rate.min(self.desired);
        if offered > 0.0 {
            self.rate = offered;
        }
        self.cwnd = (self.rate * srtt.as_secs_f64()).max(0.0) + self.packet_bytes;
    }

    fn tcp(&self) -> Option<&Sack> {
        self.switch.as_ref().and_then(|s| s.tcp.as_ref())
    }

    fn tcp_mut(&mut self) -> Option<&mut Sack> {
        self.switch.as_mut().and_then(|s| s.tcp.as_mut())
    }

    /// The first answer: if the wish has come back as it went, no router on the path knows of RCP.
    fn look_for_routers(&mut self, now: Time, stamp: &Stamp) {
        if let Some(switch) = self.switch.as_mut().filter(|s| s.tcp.is_none() && self.rate <= 0.0) {
            if Header::from(*stamp).rate >= AS_MUCH_AS_THERE_IS {
                switch.become_tcp(now, switch.flow.initial_window);
            }
        }
    }

    /// Looks for the signs of section 6.2.2 at the end of each round trip: an RTT that has doubled, or a loss, and a rate
    /// that has not fallen.
    fn watch(&mut self, now: Time, srtt: Time, flight: u32) {
        let Some(switch) = &mut self.switch else { return };
        if srtt == Time::ZERO {
            return;
        }
        if switch.least_rtt == Time::ZERO || srtt < switch.least_rtt {
            switch.least_rtt = srtt;
        }
        switch.doubled &= srtt >= switch.least_rtt * 2;
        if now < switch.round_end {
            return;
        }
        let not_the_bottleneck = (switch.doubled || switch.lost[1]) && !switch.fell_to(self.rate);
        switch.round_rates.rotate_right(1);
        switch.round_rates[0] = self.rate;
        switch.round_end = now + srtt;
        switch.doubled = true;
        switch.lost = [false, switch.lost[0]];
        if not_the_bottleneck {
            switch.become_tcp(now, self.cwnd / self.packet_bytes).on_congestion(now, flight);
        }
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        match p.desired_rate {
            Some(rate) if rate <= Rate::ZERO => Err((
                "desired_rate",
                format!("is {rate}; it must be above 0, or left out for as much as there is"),
            )),
            _ => Ok(()),
        }
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let desired = params.desired_rate.or(flow.app_rate).map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec);
        let packet_bytes = f64::from(flow.packet_bytes);
        let switch = params.switch.then_some(Switch {
            flow: *flow,
            tcp: None,
            switched: Time::MAX,
            least_rtt: Time::ZERO,
            round_end: Time::ZERO,
            round_rates: [0.0; ROUNDS],
            lost: [false; 2],
            doubled: false,
        });
        Self { desired, rate: 0.0, cwnd: packet_bytes, packet_bytes, age: 0.0, switch }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Sack
    }

    fn handshake(&self) -> bool {
        true
    }

    fn falls_back(params: &Params) -> bool {
        params.switch
    }

    #[inline]
    fn fallen_back(&self) -> Option<(Protocol, Time)> {
        self.switch.as_ref().filter(|s| s.tcp.is_some()).map(|s| (Protocol::Sack, s.switched))
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.tcp().map_or(self.cwnd, SenderLaw::cwnd)
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        // Without a handshake the first packet leaves before there is a rate, and if it is lost, leaves again.
        (self.tcp().is_none() && self.rate > 0.0).then(|| Rate::from_bytes_per_sec(self.rate))
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

    fn on_feedback(&mut self, now: Time, srtt: Time, stamp: &Stamp) {
        self.look_for_routers(now, stamp);
        if self.tcp().is_some() {
            return;
        }
        self.take(stamp, srtt);
        if self.switch.is_some() {
            self.watch(now, srtt, 0);
        }
    }

    fn on_congestion(&mut self, now: Time, flight: u32) {
        match &mut self.switch {
            Some(Switch { tcp: Some(tcp), .. }) => tcp.on_congestion(now, flight),
            // Judged a round trip later: an overshoot of R itself fills a small buffer before the rate has come down.
            Some(switch) => switch.lost[0] = true,
            None => {}
        }
    }

    fn on_timeout(&mut self, now: Time, flight: u32) {
        let (rate, window) = (self.rate, self.cwnd / self.packet_bytes);
        match &mut self.switch {
            Some(Switch { tcp: Some(tcp), .. }) => tcp.on_timeout(now, flight),
            Some(switch) if !switch.fell_to(rate) => switch.become_tcp(now, window).on_timeout(now, flight),
            _ => {}
        }
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
