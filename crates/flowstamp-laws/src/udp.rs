//! UDP: sends what its application produces, without congestion control.
//!
//! ```text
//!   packets leave as the application produces them; they are not acknowledged and not retransmitted
//! ```

use crate::sender::{Ack, Congestion, FlowView, Recovery, SenderLaw, SenderTraits};
use crate::stamp::Stamp;
use crate::units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// It has no parameters: the flow's application says when it sends.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// State of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    packet_bytes: f64,
}

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(_: &Params) -> SenderTraits {
        // The transport never uses this recovery, because datagrams are not repaired.
        SenderTraits { recovery: Recovery::Count, datagrams: true, ecn: false, ..SenderTraits::DEFAULT }
    }

    fn new(_: &Params, flow: &FlowView) -> Self {
        Self { packet_bytes: f64::from(flow.packet_bytes) }
    }

    fn cwnd(&self) -> f64 {
        self.packet_bytes
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {}

    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}
