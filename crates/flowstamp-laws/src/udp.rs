//! What sends at its application's rate whatever the network says, as UDP lets it.
//!
//! ```text
//!   a packet each s / rate seconds; nothing is acknowledged, nothing is sent again, nothing bears on it
//! ```

use crate::sender::{Ack, FlowView, Recovery, SenderLaw};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// It has no parameters: its rate is the flow's.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// One flow.
#[derive(Clone, Debug)]
pub struct Sender {
    packet_bytes: f64,
    /// None before the engine has seen to it that there is one.
    rate: Option<Rate>,
}

impl SenderLaw for Sender {
    type Params = Params;
    const DATAGRAMS: bool = true;

    fn ecn() -> bool {
        false
    }

    fn new(_: &Params, flow: &FlowView) -> Self {
        Self { packet_bytes: f64::from(flow.packet_bytes), rate: flow.app_rate }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Count // which is never asked for
    }

    fn cwnd(&self) -> f64 {
        self.packet_bytes
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_loss(&mut self, _: Time, _: u32) {}

    fn on_timeout(&mut self, _: Time, _: u32) {}

    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}
