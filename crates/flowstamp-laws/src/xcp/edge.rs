//! An XCP macro-flow between two edges of a core cloud: the ingress admits the traffic of many flows together.
//!
//! Katabi 2002, section 8.1. The ingress keeps a window `W` for the macro-flow. Once per round trip, a control packet
//! crosses the cloud to the egress and back, and brings feedback for the whole window. The ingress serves the
//! macro-flow's queue at
//!
//! ```text
//!   rate = W / rtt,    W = max(W + H_feedback, s)
//! ```
//!
//! A macro-flow of `n` micro-flows has the price `n` (section 6). The control packet carries `H_cwnd = W / n`, the
//! round trip, and as its wish the window that is missing to reach the edge link's capacity. The packet stands for a
//! whole window of packets. Routers take its size as `n H_cwnd = W`, so that it gets what these packets would get
//! together (eqs. 3, 4 and 7, over the round trip):
//!
//! ```text
//!   sum over W / s packets of  xi_p rtt s / (W / n) - xi_n s   =   xi_p n rtt - xi_n W
//! ```
//!
//! `n` is in the packet's bits ([`macro_bits`]).
//!
//! In the basic form ([`Headers::Packets`]) the ingress puts the congestion header on each packet of the macro-flow, and
//! the egress takes it off. Each header asks for its packet's share of the wish. Control packets count as packets of the
//! macro-flow like all others. In each round trip, [`CONTROLS`] of them return the sum of the feedback to the ingress.
//!
//! Deviations (paper says / we do / because):
//! 1. `H_rtt` is the measured propagation delay / by default it is the control packets' smoothed round trip, which also
//!    sets the rate / the core's queue, which is short, makes a window last that much longer. With
//!    [`Params::stated_rtt`] it is the shortest round trip so far.
//! 2. The window stays whether or not it is used / no increase after a round trip that left more than a tenth of the
//!    window and a packet unused / new flows would otherwise find a window of any size and send it at once.
//! 3. The number of micro-flows is known / it is a parameter, or the number of flows that have sent lately
//!    ([`Params::idle`]), at most 32767 / a packet's bits have no more room.
//! 4. In the basic form, the paper does not say how feedback returns / control packets bring it, eight in a round trip /
//!    with one, feedback is half a round trip older, and the core's queue swings.

use crate::negotiation::NO_PTL;
use crate::sender::{
    AS_MUCH_AS_THERE_IS, Ack, CONTROLS, Congestion, Feedback, FlowChange, FlowView, Pacing, Recovery,
    SenderLaw, SenderTraits,
};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Open, Refused, check_times, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of micro-flows.
pub const MICRO_FLOWS: u16 = NO_PTL - 1;

/// The bits of a macro-flow's control packet. Up to 255 micro-flows are in the low byte. More have the highest bit
/// besides, and cannot be mistaken for a priority ([`priority_bits`]), which needs three bits only.
#[must_use]
pub const fn macro_bits(micro_flows: u16) -> u16 {
    if micro_flows <= 0xff { micro_flows } else { NO_PTL | micro_flows }
}

/// The bits of a packet of this priority: the highest bit, and the priority itself.
#[must_use]
pub const fn priority_bits(priority: u8) -> u16 {
    if priority == 0 { 0 } else { NO_PTL | priority as u16 }
}

/// The number of micro-flows for which a packet stands; 0 for an ordinary packet.
#[must_use]
pub const fn micro_flows(bits: u16) -> u16 {
    match (bits & NO_PTL != 0, bits & MICRO_FLOWS) {
        (true, more @ 0x100..) => more,
        (true, _) => 0,
        (false, few) => few & 0xff,
    }
}

/// The priority of a packet's sender. A macro-flow has the lowest.
#[must_use]
pub const fn priority(bits: u16) -> usize {
    if bits & NO_PTL != 0 && micro_flows(bits) == 0 { (bits & 0xff) as usize } else { 0 }
}

/// A macro-flow whose traffic plus one packet is less than this share of its window gets no increase (deviation 2).
const IN_USE: f64 = 0.9;

/// Whether enough of a window was used for it to grow. All arguments are in bytes.
#[must_use]
pub fn in_use(carried: f64, window: f64, packet_bytes: f64) -> bool {
    carried + packet_bytes >= IN_USE * window
}

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Number of micro-flows, 1 to 32767. Throughputs of macro-flows at one bottleneck are in proportion to it.
        /// Default: the number of the scenario's flows that take the governed link.
        pub flows: Option<u32> = None,
        /// Counts as micro-flows the flows that have sent over the governed link in so much time, instead of `flows`.
        pub idle: Option<Time> = None,
        /// The RTT that routers see.
        pub stated_rtt: StatedRtt = StatedRtt::Smoothed, // ours: deviation 1
        /// The packets that carry a congestion header inside the cloud.
        pub headers: Headers = Headers::Control, // section 8.1, the simpler form
    }
}

/// The packets that carry a congestion header inside the cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Headers {
    /// One control packet in a round trip.
    #[default]
    Control,
    /// Each packet of the macro-flow.
    Packets,
}

/// The RTT in a control packet's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatedRtt {
    /// The smoothed round trip of control packets, with the core's queue.
    #[default]
    Smoothed,
    /// The shortest round trip so far: the measured propagation delay.
    Propagation,
}

/// The window of one macro-flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// `W`, bytes.
    window: f64,
    packet_bytes: f64,
    /// `n`.
    flows: f64,
    /// Capacity of the edge link, bytes/s.
    most: f64,
    /// Smoothed RTT at the last control packet's return; zero before the first.
    rtt: Time,
    /// Shortest RTT so far, if routers shall see it.
    propagation: Option<Time>,
    headers: Headers,
}

impl Sender {
    fn wanted(&self, rtt: Time) -> f64 {
        self.most * rtt.as_secs_f64()
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(p: &Params) -> SenderTraits {
        // The transport never uses this recovery, because there are no data packets.
        let recovery = Recovery::Count;
        SenderTraits {
            recovery,
            handshake: true,
            governs: true,
            counts_flows: p.idle,
            stamps_link: p.headers == Headers::Packets,
            ..SenderTraits::DEFAULT
        }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        if let (Some(flows), Some(idle)) = (p.flows, p.idle) {
            return Err((
                "flows",
                format!("is {flows} beside idle = {idle}, by which flows are counted; leave out one"),
            ));
        }
        check_times([("idle", p.idle)])?;
        within("flows", f64::from(p.flows.unwrap_or(1)), 1.0, f64::from(MICRO_FLOWS))
    }

    fn open(params: &mut Params) -> Open<'_> {
        Open { micro_flows: params.idle.is_none().then_some(&mut params.flows), ..Open::default() }
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let packet_bytes = f64::from(flow.packet_bytes);
        Self {
            window: (flow.initial_window * packet_bytes).max(packet_bytes),
            packet_bytes,
            flows: f64::from(params.flows.unwrap_or(1)),
            most: flow.app_rate.map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec),
            rtt: Time::ZERO,
            propagation: (params.stated_rtt == StatedRtt::Propagation).then_some(Time::ZERO),
            headers: params.headers,
        }
    }

    fn cwnd(&self) -> f64 {
        self.window
    }

    fn pacing(&self) -> Option<Pacing> {
        let seconds = self.rtt.as_secs_f64();
        (seconds > 0.0).then(|| Rate::from_bytes_per_sec(self.window / seconds).into())
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let Feedback { srtt, stamp, carried, .. } = *feedback;
        let change = stamp.0[2];
        // The window never exceeds the sender's request, whatever feedback returned.
        let most = self.wanted(srtt).max(self.window);
        let controls = if self.headers == Headers::Packets { f64::from(CONTROLS) } else { 1.0 };
        let used = in_use(carried, self.window / controls, self.packet_bytes); // deviation 2
        if change <= 0.0 || used {
            self.window = (self.window + change).min(most).max(self.packet_bytes);
        }
        self.rtt = srtt;
    }

    fn on_change(&mut self, change: FlowChange<'_, Params>) {
        if let FlowChange::Ingress { micro_flows, min_rtt } = change {
            if let Some(flows) = micro_flows {
                self.flows = f64::from(flows.clamp(1, MICRO_FLOWS.into()));
            }
            self.propagation = self.propagation.and(Some(min_rtt));
        }
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {}

    fn stamp(&self, _: Time, srtt: Time) -> Stamp {
        let rtt_s = srtt.as_secs_f64();
        let wish = if rtt_s > 0.0 { self.wanted(srtt) - self.window } else { 0.0 };
        let wish = match self.headers {
            Headers::Control => wish,
            Headers::Packets => wish * self.packet_bytes / self.window,
        };
        Stamp([self.window / self.flows, self.propagation.map_or(rtt_s, Time::as_secs_f64), wish])
    }

    fn bits(&self) -> u16 {
        match self.headers {
            Headers::Control => macro_bits(self.flows as u16),
            Headers::Packets => 0,
        }
    }
}
