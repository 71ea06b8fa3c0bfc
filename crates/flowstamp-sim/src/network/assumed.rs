//! What laws take for the RTT until packets carry one: the paths', where the scenario does not say.

use super::Builder;
use super::plan::Network;
use flowstamp_laws::units::Time;
use std::collections::BTreeMap;

/// A time constant this many times longer or shorter than the path's RTT is probably a mistake.
const FAR_OFF: f64 = 10.0;

/// The round-trip propagation times of flows over a link: of those whose header its router writes into, first of those whose data
/// pass, then of those whose acks do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathRtts([(u64, u32); 2]);

impl PathRtts {
    pub(super) fn add(&mut self, acks: bool, rtt: Time) {
        let (sum, count) = &mut self.0[usize::from(acks)];
        *sum = sum.saturating_add(rtt.as_ps());
        *count += 1;
    }

    /// The mean; of acks only where no data pass.
    fn mean(&self) -> Option<Time> {
        let (sum, count) = self.0.into_iter().find(|(_, count)| *count > 0)?;
        Some(Time::from_ps(sum / u64::from(count))).filter(|t| *t > Time::ZERO)
    }
}

impl Builder<'_> {
    /// Sets what the scenario leaves open, and looks at what it does not.
    pub(super) fn assume(&mut self, network: &mut Network) {
        let mut far_off: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (plan, rtts) in self.links.iter_mut().zip(&self.rtts) {
            let (Some((name, open)), Some(rtt)) = (plan.router.time_constant(), rtts.mean()) else {
                continue;
            };
            let Some(given) = *open else {
                *open = Some(rtt);
                network.assumed.insert(format!("{}.router.{name}", plan.name), rtt.to_string());
                continue;
            };
            let ratio = given.as_secs_f64() / rtt.as_secs_f64();
            if !(1.0 / FAR_OFF..=FAR_OFF).contains(&ratio) {
                let message =
                    format!("{name}: is {given}, but the flows' RTT is {rtt}; leave it out for that");
                far_off.entry(message).or_default().push(&plan.name);
            }
        }
        for (message, links) in far_off {
            network.warnings.push(format!("router of {}: {message}", links.join(" and ")));
        }
    }
}
