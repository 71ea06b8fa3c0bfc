//! Ramp: a sender that approaches the rate in RCP's header step by step.
//!
//! ```text
//!   r = r + gain (R - r)             eq. 1    at each ack, which brings the rate R; r starts at the first R
//!   window = 2 r srtt                eq. 2    so that the pace r, and not the window, limits the flow
//! ```
//!
//! Stable for a gain above 0 and at most 1: each ack closes that share of the gap.
//!
//! Deviations (the equations say / we do / because):
//! 1. Nothing on the time before the first ack / the initial window / no rate is known.
//! 2. Nothing on losses / they are repaired, and r stays / the routers know of congestion by their queues.

use crate::rcp::header::Header;
use crate::sender::{AS_MUCH_AS_THERE_IS, Ack, Congestion, FlowView, Pacing, SenderLaw};
use crate::units::{Rate, Time};
use crate::{Refused, Stamp, within};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// The share of the gap to the routers' rate that one ack closes.
        pub gain: f64 = 0.125, // as the smoothed RTT of RFC 6298
    }
}

/// A flow's rate.
#[derive(Clone, Debug)]
pub struct Sender {
    params: Params,
    /// `r`, bytes/s; zero until the first ack.
    rate: f64,
    /// Bytes.
    cwnd: f64,
    packet_bytes: f64,
    /// The rate that the application needs, bytes/s.
    desired: f64,
}

impl SenderLaw for Sender {
    type Params = Params;

    fn check(params: &Params) -> Result<(), Refused> {
        within("gain", params.gain, 0.001, 1.0)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let packet_bytes = f64::from(flow.packet_bytes);
        Self {
            params: *params,
            rate: 0.0,
            cwnd: flow.initial_window * packet_bytes, // deviation 1
            packet_bytes,
            desired: flow.app_rate.map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec),
        }
    }

    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    fn pacing(&self) -> Option<Pacing> {
        (self.rate > 0.0).then(|| Rate::from_bytes_per_sec(self.rate).into())
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let offered = Header::from(*ack.stamp).rate;
        let gap = offered - self.rate;
        self.rate = if self.rate > 0.0 { self.rate + self.params.gain * gap } else { offered }; // eq. 1
        self.cwnd = (2.0 * self.rate * ack.srtt.as_secs_f64()).max(2.0 * self.packet_bytes); // eq. 2
    }

    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {} // deviation 2

    fn stamp(&self, _: Time, srtt: Time) -> Stamp {
        Header { rate: self.desired, rtt_s: srtt.as_secs_f64(), age_bytes: 0.0 }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eq. 1: 40 acks leave 0.875^40 = 0.5% of the gap.
    #[test]
    fn the_rate_approaches_the_routers_rate() {
        let flow = FlowView { packet_bytes: 1000, initial_window: 2.0, app_rate: None };
        let mut sender = Sender::new(&Params::default(), &flow);
        for (offered, acks) in [(1e6, 1), (2e6, 40)] {
            let stamp = Header { rate: offered, rtt_s: 0.04, age_bytes: 0.0 }.into();
            for _ in 0..acks {
                sender.on_ack(&Ack::of_one(Time::ZERO, Time::from_millis(40), &stamp));
            }
            assert!((sender.rate / offered - 1.0).abs() < 0.005, "{sender:?}");
        }
    }
}
