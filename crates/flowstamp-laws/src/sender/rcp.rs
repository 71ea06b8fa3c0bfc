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
//! Deviations (thesis says / we do / because):
//! 1. The window is R rtt / s / it is a packet more / pacing decides, and a window that rounding makes a packet short of
//!    the pipe would stall the pace once a round trip.
//! 2. Rates below one packet per RTT / the window is one packet and the pace holds it; the engine probes the path with
//!    header-only packets once an RTT while it waits, as the author's ns-2 model does / else a higher rate would be seen
//!    only after the gap.

use super::{Ack, FlowView, Recovery, SenderLaw};
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
}

/// A flow without a rate of its own wishes for this, bytes/s: more than any link has.
const AS_MUCH_AS_THERE_IS: f64 = 1e15;

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
}

impl Sender {
    fn take(&mut self, stamp: &Stamp, srtt: Time) {
        let offered = Header::from(*stamp).rate.min(self.desired);
        if offered > 0.0 {
            self.rate = offered;
        }
        self.cwnd = (self.rate * srtt.as_secs_f64()).max(0.0) + self.packet_bytes;
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    fn new(params: &Params, flow: &FlowView) -> Self {
        let desired = params.desired_rate.or(flow.app_rate).map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec);
        let packet_bytes = f64::from(flow.packet_bytes);
        Self { desired, rate: 0.0, cwnd: packet_bytes, packet_bytes, age: 0.0 }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Sack
    }

    fn handshake(&self) -> bool {
        true
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bytes_per_sec(self.rate))
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.age += f64::from(ack.newly_acked) * self.packet_bytes;
        self.take(ack.stamp, ack.srtt);
    }

    fn on_feedback(&mut self, _: Time, srtt: Time, stamp: &Stamp) {
        self.take(stamp, srtt);
    }

    fn on_congestion(&mut self, _: Time, _: u32) {}

    fn on_timeout(&mut self, _: Time, _: u32) {}

    #[inline]
    fn stamp(&self, _: Time, srtt: Time) -> Stamp {
        Header { rate: self.desired, rtt_s: srtt.as_secs_f64(), age_bytes: self.age }.into()
    }
}
