//! Flows that may fall into step with the bottleneck's queue: phase effects (Floyd, Jacobson 1992).
//!
//! Where hosts' links are exactly as fast as a drop-tail bottleneck, packets come one packet time apart, as they leave. Of flows with
//! the same RTT it is then always the same whose packets meet a full queue. One part in a million of another rate ends that,
//! in ns-2 as here; so does a random delay at the senders.
//!
//! A group is told of only where nothing else would explain uneven shares:
//!
//! - its flows are endless, unpaced TCPs of one RTT and one law, there since warm-up, without a random delay;
//! - the link has neither router law nor classes, neither another medium nor impairments, a constant capacity, and no web flows;
//! - packets were dropped, and windows are of four packets at least: fewer leave recovery to timeouts;
//! - it was looked at for four epochs of Reno's at the fair window W, W/2 round trips each (the slowest of the TCPs here): AIMD
//!   converges by epochs (Chiu, Jain 1989);
//! - Jain's index is below 3/4. Windows out of step, spread evenly from 2/3 to 4/3 of their mean as Reno's sawtooth is,
//!   scatter by 1/sqrt(27) of it at any instant, and less over time; 3/4 is three times that: 1/(1 + 9/27).

use super::Builder;
use super::plan::{LinkPlan, Medium, Network};
use crate::medium::Capacity;
use crate::scenario::{FlowGroup, Priority};
use flowstamp_laws::Bytes;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{Header, QueueSpec, RouterSpec};
use flowstamp_laws::units::Time;

/// Below this index shares are uneven.
const JAIN: f64 = 0.75;
/// Packets of a window that recovers without timeouts.
const LEAST_WINDOW: f64 = 4.0;
const EPOCHS: u64 = 4;

/// How a group may be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Index of the bottleneck.
    pub link: u32,
    /// How long flows must be looked at.
    pub span: Time,
    /// How long the bottleneck takes for a packet, rounded up to microseconds.
    pub packet: Time,
}

impl Phase {
    /// What to say of shares this uneven, if they are.
    #[must_use]
    pub fn warning(&self, group: &str, jain: f64) -> Option<String> {
        (jain < JAIN).then(|| {
            format!(
                "flows.{group}: looks phase-locked: Jain's index is {jain:.2}, over drop-tail with hosts' links exactly as fast as \
                 the bottleneck; set transport.send_jitter = \"{}\", or another access rate",
                self.packet
            )
        })
    }
}

impl Builder<'_> {
    /// Finds the groups that may be locked.
    pub(super) fn phases(&self, network: &mut Network) {
        let counts: Vec<u32> =
            network.groups.iter().map(|g| self.scenario.flows[g.spec].count.unwrap_or(1)).collect();
        let phases: Vec<_> = (0..network.groups.len()).map(|g| self.phase(network, &counts, g)).collect();
        for (plan, phase) in network.groups.iter_mut().zip(phases) {
            plan.phase = phase;
        }
    }

    fn phase(&self, network: &Network, counts: &[u32], number: usize) -> Option<Phase> {
        let plan = &network.groups[number];
        let spec = &self.scenario.flows[plan.spec];
        let [law] = &plan.laws[..] else { return None };
        let comes = |spec: &FlowGroup| spec.web.is_some() || spec.list.is_some();
        let endless = !comes(spec) && spec.size.is_none() && spec.rate.is_none();
        let stays = spec.stop.is_none() && spec.lifetime.is_none();
        let tcp = law.header() == Header::Plain && !law.datagrams() && !law.governs();
        let alike = plan.one_rtt && counts[number] >= 2;
        if !(endless && stays && tcp && alike) || spec.transport.send_jitter > Time::ZERO {
            return None;
        }
        let access = plan.access?;
        let slowest = |link: &&u32| {
            let link = &self.links[**link as usize];
            matches!(link.capacity, Capacity::Constant(rate) if rate.bps() <= access.bps())
        };
        let slow: Vec<u32> = plan.links.iter().filter(slowest).copied().collect();
        let [link] = slow[..] else { return None };
        let bottleneck = &self.links[link as usize];
        let others = || network.groups.iter().enumerate().filter(|(_, g)| g.links.contains(&link));
        let lawless = bottleneck.is_plain_drop_tail()
            && matches!(bottleneck.capacity, Capacity::Constant(rate) if rate == access);
        if !lawless || others().any(|(_, g)| comes(&self.scenario.flows[g.spec]) || g.laws != plan.laws) {
            return None;
        }
        let flows: u32 = others().map(|(g, _)| counts[g]).sum();
        let size = self.scenario.packet.as_f64();
        let buffer = match bottleneck.limit {
            Limit::Bytes(bytes) => bytes as f64,
            Limit::Packets(packets) => f64::from(packets) * size,
        };
        let full_rtt_s = plan.path_rtt_s + buffer / access.bytes_per_sec();
        let window = access.bytes_per_sec() * full_rtt_s / size / f64::from(flows);
        let packet = access.tx_time(Bytes::new(self.scenario.packet.get()));
        (window >= LEAST_WINDOW).then(|| Phase {
            link,
            span: Time::from_secs_f64(full_rtt_s * window / 2.0) * EPOCHS,
            packet: Time::from_micros((packet.as_secs_f64() * 1e6).ceil() as u64),
        })
    }
}

impl LinkPlan {
    /// Nothing but a buffer decides who is lost here.
    fn is_plain_drop_tail(&self) -> bool {
        let lawless = matches!(self.queue, QueueSpec::DropTail(_))
            && !self.queue.drops_head()
            && matches!(self.router, RouterSpec::None(_));
        let shared =
            self.share.params().is_some() || self.priority != Priority::None || self.medium != Medium::Own;
        lawless && !shared && !self.governed && self.impairments.is_none() && self.police.is_none()
    }
}
