//! An XCP macro-flow between two edges of a core cloud: what the ingress lets into the cloud for many flows together.
//!
//! Katabi 2002, section 8.1. The ingress keeps a window `W` for the macro-flow. Once in a round trip to the egress and back a control
//! packet goes through the cloud and brings feedback for the whole window, and the macro-flow's queue is served at
//!
//! ```text
//!   rate = W / rtt,    W = max(W + H_feedback, s)
//! ```
//!
//! Of `n` micro-flows it has the price `n` (section 6): the control packet carries `H_cwnd = W / n`, the round trip and as its wish what
//! is missing to the edge link's capacity. It stands for a window's packets. To routers its size is `n H_cwnd = W`, so that what
//! it gets is what these would get together (eqs. 3, 6 and 9):
//!
//! ```text
//!   sum over W / s packets of  xi_p rtt s / (W / n) - xi_n s   =   xi_p n rtt - xi_n W
//! ```
//!
//! `n` is the low byte of the packet's bits; 0 is an ordinary packet.
//!
//! Deviations (paper says / we do / because):
//! 1. `H_rtt` is the measured propagation delay / the control packets' smoothed round trip / what waits in the core, which is
//!    little, makes a window last that much longer.
//! 2. The window lasts whether or not it is used / no increase after a round trip that left more than a tenth of it unused, and a
//!    packet / flows that begin would else find a window of any size and send it at once.
//! 3. The number of micro-flows is known / it is given, and at most 255 / a packet's bits have no more room; several edge links may lead
//!    to one egress.

use crate::sender::{
    AS_MUCH_AS_THERE_IS, Ack, Congestion, Feedback, FlowView, Pacing, Recovery, SenderLaw, SenderTraits,
};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Open, Refused, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a packet's bits tell for how many micro-flows it stands.
pub const MICRO_FLOWS: u16 = 0xff;

/// A macro-flow that used less than this of its window, to a packet, gets no more (deviation 2).
const IN_USE: f64 = 0.9;

/// Whether of a window so much was used that it may grow.
#[must_use]
pub fn in_use(carried: f64, window: f64, packet_bytes: f64) -> bool {
    carried + packet_bytes >= IN_USE * window
}

/// What a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Micro-flows, 1 to 255: throughputs of macro-flows at one bottleneck are in proportion to it. Default: the flows of the scenario
    /// that take the governed link.
    pub flows: Option<u32>,
}

/// The window of one macro-flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// `W`, bytes.
    window: f64,
    packet_bytes: f64,
    /// `n`.
    flows: f64,
    /// The most that the edge link can carry, bytes/s.
    most: f64,
    /// Of the control packet that came back last; zero before.
    rtt: Time,
}

impl Sender {
    fn wanted(&self, rtt: Time) -> f64 {
        self.most * rtt.as_secs_f64()
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(_: &Params) -> SenderTraits {
        // Its recovery is never asked for.
        let recovery = Recovery::Count;
        SenderTraits { recovery, handshake: true, governs: true, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("flows", f64::from(p.flows.unwrap_or(1)), 1.0, f64::from(MICRO_FLOWS))
    }

    fn open(params: &mut Params) -> Open<'_> {
        Open { micro_flows: Some(&mut params.flows), ..Open::default() }
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let packet_bytes = f64::from(flow.packet_bytes);
        Self {
            window: (flow.initial_window * packet_bytes).max(packet_bytes),
            packet_bytes,
            flows: f64::from(params.flows.unwrap_or(1)),
            most: flow.app_rate.map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec),
            rtt: Time::ZERO,
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
        // Never beyond what was asked for, whatever came back.
        let most = self.wanted(srtt).max(self.window);
        let used = in_use(carried, self.window, self.packet_bytes); // deviation 2
        if change <= 0.0 || used {
            self.window = (self.window + change).min(most).max(self.packet_bytes);
        }
        self.rtt = srtt;
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {}

    fn stamp(&self, _: Time, srtt: Time) -> Stamp {
        let rtt_s = srtt.as_secs_f64();
        let wish = if rtt_s > 0.0 { self.wanted(srtt) - self.window } else { 0.0 };
        Stamp([self.window / self.flows, rtt_s, wish])
    }

    fn bits(&self) -> u16 {
        self.flows as u16
    }
}
