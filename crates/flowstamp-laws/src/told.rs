//! A sender whose window and rate are set externally: by the scenario, and during a run by the program that steps it.
//!
//! ```text
//!   in flight <= window packets;  a packet each s / rate seconds, where there is a rate
//! ```
//!
//! Acks, losses, marks and timeouts do not change them; losses are repaired by selective acks. The law is for
//! external control of flows by a learner, a trace or another simulator. It counts acks and marks for that controller
//! ([`Tally`]).

use crate::sender::{
    Ack, Congestion, Echo, FlowChange, FlowView, Pacing, Report, SenderLaw, SenderTraits, Tally,
};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Refused, within};

crate::params! {
    /// Parameters that a scenario may set, and a caller that runs in steps may change.
    pub struct Params {
        /// Maximum number of packets in flight, 1 to 10^6. `transport.initial_window` has no effect.
        pub window: f64 = 10.0, // RFC 6928's initial window
        /// Rate at which packets leave, headers included. Default: all packets that the window allows leave at once.
        pub rate: Option<Rate> = None,
    }
}

/// State of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    params: Params,
    packet_bytes: f64,
    tally: Tally,
}

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(_: &Params) -> SenderTraits {
        // The law does not react to marks. The echo per packet tells the controller how many packets were marked (RFC
        // 8257 section 3.2), not only that some were.
        SenderTraits { told: true, ecn: false, echo: Echo::PerPacket, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("window", p.window, 1.0, 1e6)?;
        match p.rate {
            Some(rate) if rate == Rate::ZERO => {
                Err(("rate", "is 0bps; it must be above zero, or left out for no pace".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        Self { params: *params, packet_bytes: f64::from(flow.packet_bytes), tally: Tally::default() }
    }

    fn on_change(&mut self, change: FlowChange<'_, Params>) {
        if let FlowChange::Params(params) = change {
            self.params = *params;
        }
    }

    fn cwnd(&self) -> f64 {
        self.params.window * self.packet_bytes
    }

    fn pacing(&self) -> Option<Pacing> {
        self.params.rate.map(Pacing::from)
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.tally.acks += 1;
        self.tally.marked += u64::from(ack.marked);
        self.tally.rtt_sum_ps = self.tally.rtt_sum_ps.wrapping_add(ack.rtt.as_ps());
    }

    fn report(&self) -> Report {
        Report { tally: Some(self.tally), ..Report::default() }
    }

    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {}

    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}
