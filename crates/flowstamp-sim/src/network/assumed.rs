//! What laws take for the RTT until packets carry one: the paths', where the scenario does not say.

use super::plan::Network;
use super::{Builder, Result};
use crate::ScenarioError;
use flowstamp_laws::units::Time;
use std::collections::BTreeMap;

/// A time constant this many times longer or shorter than the path's RTT is probably a mistake.
const FAR_OFF: u64 = 10;

/// The round-trip propagation times of flows over a link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathRtts {
    /// Sum and number over those whose header its router writes into: first of those whose data pass, then of those whose
    /// acks do.
    own: [(u64, u32); 2],
    /// Of all.
    longest: Time,
}

impl PathRtts {
    pub(super) fn add(&mut self, acks: bool, rtt: Time) {
        let (sum, count) = &mut self.own[usize::from(acks)];
        *sum = sum.saturating_add(rtt.as_ps());
        *count += 1;
    }

    /// A flow's data or acks pass.
    pub(super) fn longest(&mut self, rtt: Time) {
        self.longest = self.longest.max(rtt);
    }

    /// The mean of those whose header the router writes into; of acks only where no data pass.
    fn mean(&self) -> Option<Time> {
        let (sum, count) = self.own.into_iter().find(|(_, count)| *count > 0)?;
        Some(Time::from_ps(sum / u64::from(count))).filter(|t| *t > Time::ZERO)
    }
}

/// Whether a time constant is far from the RTT that it stands for.
fn far_off(given: Time, rtt: Time) -> bool {
    given * FAR_OFF < rtt || rtt * FAR_OFF < given
}

impl Builder<'_> {
    /// Sets what the scenario leaves open, and looks at what it does not.
    pub(super) fn assume(&mut self, network: &mut Network) -> Result<()> {
        let mut warnings: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
        for (plan, rtts) in self.links.iter_mut().zip(&self.rtts) {
            let longest = Some(rtts.longest).filter(|t| *t > Time::ZERO);
            let router = plan.router.time_constant().and_then(|(name, value)| {
                let rtt = rtts.mean()?;
                Some(("router", name, value, rtt, true))
            });
            let queue = plan.queue.time_constant().and_then(|constant| {
                let rtt = longest?;
                let follows = constant.usual_for.is_none_or(|rtts| !rtts.contains(&rtt));
                Some(("queue", constant.name, constant.value, rtt, follows))
            });
            for (kind, name, value, rtt, follows) in router.into_iter().chain(queue) {
                match *value {
                    None if follows => {
                        *value = Some(rtt);
                        network.assumed.insert(format!("{}.{kind}.{name}", plan.name), rtt.to_string());
                    }
                    Some(given) if far_off(given, rtt) => {
                        let message =
                            format!("{name}: is {given}, but the flows' RTT is {rtt}; leave it out for that");
                        warnings.entry((kind, message)).or_default().push(&plan.name);
                    }
                    _ => {}
                }
            }
            // What is assumed must go with what is given.
            plan.queue
                .check()
                .map_err(|(k, m)| ScenarioError::new(format!("queue of {}: {k}", plan.name), m))?;
        }
        for ((kind, message), links) in warnings {
            network.warnings.push(format!("{kind} of {}: {message}", links.join(" and ")));
        }
        Ok(())
    }
}
