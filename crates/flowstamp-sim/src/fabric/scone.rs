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
use flowstamp_laws::units::Time;
use flowstamp_wire::scone::{PERIOD_S, Signal};
use std::collections::VecDeque;

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

/// Mean of a rate over the last [`PERIOD_S`] seconds, in slots of a second.
#[derive(Clone, Debug, Default)]
struct Mean {
    /// Second, duration in seconds, and the integral of the rate over it.
    slots: VecDeque<(u64, f64, f64)>,
    sampled: Time,
}

impl Mean {
    /// Adds the rate since the last sample. A gap without packets counts in each of its seconds, as far as the mean reaches back.
    fn add(&mut self, now: Time, rate: f64) {
        let second = Time::from_secs(1);
        let mut from = self.sampled.max(now.saturating_sub(second * PERIOD_S));
        while now - from >= second {
            let end = second * (from.as_ps() / second.as_ps() + 1);
            self.add_to(from.as_ps() / second.as_ps(), (end - from).as_secs_f64(), rate);
            from = end;
        }
        self.add_to(now.as_ps() / second.as_ps(), (now - from).as_secs_f64(), rate);
        self.sampled = now;
    }

    /// Adds the rate of `passed_s` seconds to the slot of a second.
    fn add_to(&mut self, second: u64, passed_s: f64, rate: f64) {
        match self.slots.back_mut() {
            Some((of, lasted_s, sum)) if *of == second => {
                *lasted_s += passed_s;
                *sum += rate * passed_s;
            }
            _ => self.slots.push_back((second, passed_s, rate * passed_s)),
        }
        while self.slots.front().is_some_and(|(of, ..)| of + PERIOD_S <= second) {
            self.slots.pop_front();
        }
    }

    fn get(&self) -> Option<f64> {
        let (lasted_s, sum) =
            self.slots.iter().fold((0.0, 0.0), |(t, s), (_, lasted_s, sum)| (t + lasted_s, s + sum));
        (lasted_s > 0.0).then(|| sum / lasted_s)
    }
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
                if asked || self.now >= advisor.mean.sampled + SAMPLED_EACH {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_forgets_after_a_period() {
        let mut mean = Mean::default();
        assert_eq!(mean.get(), None);
        for ms in 1..=10_000 {
            mean.add(Time::from_millis(ms), 4e6);
        }
        assert!((mean.get().expect("a mean") / 4e6 - 1.0).abs() < 1e-9);
        // 10 s at 4 Mb/s and 30 s at 2 Mb/s.
        for ms in 10_001..=40_000 {
            mean.add(Time::from_millis(ms), 2e6);
        }
        assert!((mean.get().expect("a mean") / 2.5e6 - 1.0).abs() < 1e-3);
        for ms in 40_001..=80_000 {
            mean.add(Time::from_millis(ms), 2e6);
        }
        assert!((mean.get().expect("a mean") / 2e6 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_gap_counts_as_far_as_the_mean_reaches_back() {
        let mut mean = Mean::default();
        // Nothing passed for 300 s, while the rate was 10 Mb/s; then 1 Mb/s for 60 s.
        mean.add(Time::from_secs(300), 10e6);
        for ms in 300_001..=360_000 {
            mean.add(Time::from_millis(ms), 1e6);
        }
        // The second that has just begun is one of the 67, so six are left of the gap.
        let expected = (6.0 * 10e6 + 60.0 * 1e6) / 66.0;
        assert!((mean.get().expect("a mean") / expected - 1.0).abs() < 1e-9, "{:?}", mean.get());
        mean.add(Time::from_secs(600), 2e6);
        assert!((mean.get().expect("a mean") / 2e6 - 1.0).abs() < 1e-9);
    }
}
