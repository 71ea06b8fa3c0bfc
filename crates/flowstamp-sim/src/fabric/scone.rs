//! Throughput advice: links lower the rate signal of the SCONE packets that cross them (draft-ietf-scone-protocol).
//!
//! ```text
//! policy    the signal of the scenario's rate
//! router    the highest signal at or below the mean of the RCP router's rate R(t) over the last 67 s
//! ```
//!
//! A link writes the signal where the packet reaches its end.
//!
//! Deviations (the draft says / we do / because):
//! 1. A SCONE packet shares a datagram with another QUIC packet / it is a packet of its own, as large as an ack / the
//!    simulator's data packets have one size.
//! 2. The mean is of R(t) as it is when packets pass / a router samples it at fixed times / a link without packets has
//!    nobody to advise.
//! 3. Linux's router has a floor for this mean (`--scone-least`) / there is none / SCONE's lowest signal is the floor.

use super::Fabric;
use crate::packet::Packet;
use crate::plan::{LinkPlan, SconePlan};
use crate::results::SconeSummary;
use flowstamp_laws::scone::Mean;
use flowstamp_laws::units::Time;
use flowstamp_wire::scone::Signal;

/// Time between two samples of the router's rate, far below the monitoring period.
const SAMPLED_EACH: Time = Time::from_millis(10);

/// The advice of one link.
#[derive(Clone, Debug)]
pub(super) struct Advisor {
    plan: SconePlan,
    mean: Mean,
    /// SCONE packets that reached the end of the link, and those whose signal it lowered. Its impairments may lose them after that.
    packets: u64,
    lowered: u64,
    /// Sum of the advised rates, bits/s.
    advised_bps: f64,
}

/// The advisors of links; empty if no link advises.
pub(super) fn advisors(plans: &[LinkPlan]) -> Vec<Option<Box<Advisor>>> {
    if plans.iter().all(|plan| plan.scone.is_none()) {
        return Vec::new();
    }
    let advisor = |plan: SconePlan| {
        Box::new(Advisor { plan, mean: Mean::default(), packets: 0, lowered: 0, advised_bps: 0.0 })
    };
    plans.iter().map(|plan| plan.scone.map(advisor)).collect()
}

impl Fabric {
    /// Whether a link gives throughput advice.
    #[must_use]
    pub fn advises(&self) -> bool {
        !self.advisors.is_empty()
    }

    /// Lowers the signal of a SCONE packet at the end of a link that advises.
    pub(super) fn advise(&mut self, number: u32, packet: &mut Packet) {
        if !self.advises() {
            return;
        }
        let Some(advisor) = &mut self.advisors[number as usize] else { return };
        let asked = packet.is_advice();
        let signal = match advisor.plan {
            SconePlan::Policy(bits) => Signal::from_bits(bits),
            SconePlan::Router => {
                if asked || self.now >= advisor.mean.sampled() + SAMPLED_EACH {
                    let mut rate_bps = 0.0;
                    if let Some(router) = &self.ports[number as usize].laws().router {
                        router.variables(&mut |name, value| {
                            if name == "rate_bps" {
                                rate_bps = value;
                            }
                        });
                    }
                    advisor.mean.add(self.now, rate_bps);
                }
                if !asked {
                    return;
                }
                // Below 100 kb/s there is no signal, and the lowest one is the best advice.
                advisor.mean.get().map(|bps| Signal::at_most(bps as u64).unwrap_or(Signal::MIN))
            }
        };
        let Some(signal) = signal.filter(|_| asked) else { return };
        advisor.packets += 1;
        advisor.advised_bps += signal.bits_per_sec().map_or(0.0, |bps| bps as f64);
        if u16::from(signal.bits()) < packet.bits {
            packet.bits = u16::from(signal.bits());
            advisor.lowered += 1;
        }
    }

    /// Counts of a link's advice in the whole run.
    #[must_use]
    pub fn advice(&self, number: usize) -> Option<SconeSummary> {
        let advisor = self.advisors.get(number)?.as_ref()?;
        let Advisor { packets, lowered, advised_bps, .. } = **advisor;
        let mean_advice_bps = (packets > 0).then(|| advised_bps / packets as f64);
        Some(SconeSummary { packets, lowered, mean_advice_bps })
    }
}
