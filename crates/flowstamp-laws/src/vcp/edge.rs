//! A VCP flow between two borders of an island, onto which they map what passes.
//!
//! Xia and others 2008, section VI-D, which leaves the rest to CSFQ and XCP: it is [`crate::xcp::edge`]'s, with VCP's code in the place of
//! feedback. Once in a round trip a control packet brings the code of the path, which counts as that of a window's acks:
//!
//! ```text
//!   rate = W / rtt,    01: W += xi_s W,    10: W += alpha_s s,    11: W *= beta           eqs. 2 to 4, once a round trip
//! ```
//!
//! Deviations (paper says / we do / because):
//! 1. Nothing on how codes come back / one control packet in a round trip / as XCP's paper has it (Katabi 2002, section 8.1).
//! 2. Nothing on windows that are not used / no increase after a round trip that left more than a tenth of it unused, and a
//!    packet / as VCP's senders do not grow where the application limits them.

use crate::sender::{Ack, FlowView, Recovery, SenderLaw};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::vcp::sender;
use crate::xcp::edge::in_use;
use crate::{AgreedTime, Refused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// `t_rho`, as VCP's routers and senders have it. Default: 2.5 times the flows' mean RTT; the paper has 200 ms.
    pub t_rho: Option<Time>,
    /// Throughputs at one bottleneck are in proportion to it: 1 is one VCP flow's, as the paper has it. Above 0.
    pub weight: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { t_rho: None, weight: 1.0 } // section VI-D: one VCP flow
    }
}

fn of_one_flow(p: &Params) -> sender::Params {
    sender::Params { t_rho: p.t_rho, weight: p.weight, ..sender::Params::default() }
}

/// The window of one macro-flow.
#[derive(Clone, Debug)]
pub struct Sender {
    flow: sender::Sender,
    packet_bytes: f64,
    /// Of the control packet that came back last; zero before.
    rtt: Time,
    /// Bytes that the link has carried since.
    carried: f64,
}

impl SenderLaw for Sender {
    type Params = Params;
    const GOVERNS: bool = true;

    fn check(p: &Params) -> Result<(), Refused> {
        sender::Sender::check(&of_one_flow(p))
    }

    fn agreed_time(p: &mut Params) -> Option<AgreedTime<'_>> {
        Some(super::agreed_time(&mut p.t_rho))
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        Self {
            flow: sender::Sender::new(&of_one_flow(params), flow),
            packet_bytes: f64::from(flow.packet_bytes),
            rtt: Time::ZERO,
            carried: 0.0,
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Count // which is never asked for
    }

    fn handshake(&self) -> bool {
        true
    }

    fn cwnd(&self) -> f64 {
        self.flow.cwnd()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let seconds = self.rtt.as_secs_f64();
        (seconds > 0.0).then(|| Rate::from_bytes_per_sec(self.cwnd() / seconds))
    }

    fn carried(&mut self, bytes: f64) {
        self.carried = bytes;
    }

    fn on_feedback(&mut self, now: Time, srtt: Time, stamp: &Stamp, bits: u16) {
        let packets = (self.cwnd() / self.packet_bytes).clamp(1.0, 1e9) as u32;
        let window_limited = in_use(self.carried, self.cwnd(), self.packet_bytes); // deviation 2
        let acked = Ack {
            newly_acked: packets,
            flight: packets,
            bits,
            window_limited,
            ..Ack::of_one(now, srtt, stamp)
        };
        self.flow.on_ack(&acked);
        self.rtt = srtt;
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_loss(&mut self, _: Time, _: u32) {}

    fn on_timeout(&mut self, _: Time, _: u32) {}

    fn stamp(&self, now: Time, srtt: Time) -> Stamp {
        self.flow.stamp(now, srtt)
    }

    fn bits(&self) -> u16 {
        self.flow.bits()
    }
}
