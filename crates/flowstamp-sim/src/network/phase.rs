//! Finds flows that may become phase-locked to the bottleneck's queue: phase effects (Floyd, Jacobson 1992).
//!
//! If hosts' links are exactly as fast as a drop-tail bottleneck, packets arrive one packet time apart, as they leave.
//! Among flows with the same RTT, packets of the same flow then always meet a full queue. A rate that differs by one
//! part in a million ends that, in ns-2 as here; so does a random delay at the senders.
//!
//! A group is reported only where nothing else would explain uneven shares:
//!
//! - its flows are endless, unpaced TCPs of one RTT and one law, active since warm-up, without a random delay;
//! - the link has no router law, no classes, no shared medium, no impairments, a constant capacity, and no flows that
//!   arrive during the run;
//! - packets were dropped, and windows are at least four packets: smaller ones leave recovery to timeouts;
//! - it was observed for four epochs of Reno's at the fair window W, W/2 round trips each (the slowest of the TCPs
//!   here): AIMD converges by epochs (Chiu, Jain 1989);
//! - Jain's index is below 3/4. Unsynchronised windows, spread evenly from 2/3 to 4/3 of their mean like Reno's
//!   sawtooth, scatter by 1/sqrt(27) of the mean at any instant, and less over time. 3/4 corresponds to three times
//!   that: 1/(1 + 9/27).
//!
//! Datagrams sent by a clock without jitter lock as well: a packet of the same flow always arrives when a place in the
//! queue becomes free. They are judged together, over links and interfaces of cells, by Jain's index of the fractions
//! of offered data that arrive:
//!
//! - all data on the link are datagrams of a constant rate, without a stop, and some have a jitter of less than a
//!   packet time;
//! - the link has no router law, no classes and no impairments, and is the slowest on their path;
//! - packets were dropped there, and a hundred packets of the slowest flow were observed: by chance alone a fraction of
//!   them scatters by at most 1/20;
//! - the index is below 9/10: fractions scatter by a third of their mean, 1/(1 + 1/9).

use super::Builder;
use crate::medium::Capacity;
use crate::plan::{GroupPlan, LinkPlan, Medium, Network, Phase};
use crate::scenario::Priority;
use flowstamp_laws::Bytes;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{Header, QueueSpec, RouterSpec};
use flowstamp_laws::units::Time;

/// Smallest window, packets, that recovers without timeouts.
const LEAST_WINDOW: f64 = 4.0;
const EPOCHS: u64 = 4;

/// Number of packets of a datagram flow that must be observed.
const DATAGRAMS: u64 = 100;

impl Builder<'_> {
    /// Finds the groups that may be phase-locked.
    pub(super) fn phases(&self, network: &mut Network) {
        let counts: Vec<u32> =
            network.groups.iter().map(|g| self.scenario.flows[g.spec].count.unwrap_or(1)).collect();
        let of = |g| self.phase(network, &counts, g).or_else(|| self.datagram_phase(network, g));
        let phases: Vec<_> = (0..network.groups.len()).map(of).collect();
        for (plan, phase) in network.groups.iter_mut().zip(phases) {
            plan.phase = phase;
        }
    }

    fn phase(&self, network: &Network, counts: &[u32], number: usize) -> Option<Phase> {
        let plan = &network.groups[number];
        let spec = &self.scenario.flows[plan.spec];
        let [law] = &plan.laws[..] else { return None };
        let endless = !spec.arrives() && spec.size.is_none() && !spec.produces();
        let stays = spec.stop.is_none() && spec.lifetime.is_none();
        let tcp = law.header() == Header::Plain && !law.traits().datagrams && !law.traits().governs;
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
        if !lawless || others().any(|(_, g)| self.scenario.flows[g.spec].arrives() || g.laws != plan.laws) {
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
            datagrams: false,
            link,
            span: Time::from_secs_f64(full_rtt_s * window / 2.0) * EPOCHS,
            packet: Time::from_micros((packet.as_secs_f64() * 1e6).ceil() as u64),
        })
    }
}

impl Builder<'_> {
    fn datagram_phase(&self, network: &Network, number: usize) -> Option<Phase> {
        let beat = |plan: &GroupPlan| {
            let spec = &self.scenario.flows[plan.spec];
            let stays = spec.stop.is_none() && spec.lifetime.is_none();
            let process = plan.application.as_ref().filter(|_| spec.law.traits().datagrams && stays)?;
            process.constant_rate().map(|_| process.beat())
        };
        let plan = &network.groups[number];
        beat(plan)?;
        let process = plan.application.as_ref()?;
        if plan.send_jitter >= self.slowest_packet_time(process.packet_bytes(), &plan.links) {
            return None;
        }
        let packet = self.default_jitter(process, &plan.links);
        let rate = |link: &u32| self.mean_rate(&self.links[*link as usize].capacity).bps();
        let link = *plan.links.iter().min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
        let bottleneck = &self.links[link as usize];
        let alone = matches!(bottleneck.medium, Medium::Own | Medium::Cell { .. });
        let beats = network.groups.iter().filter(|g| g.links.contains(&link)).map(beat);
        let slowest = beats.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        (alone && bottleneck.is_lawless_drop_tail()).then(|| Phase {
            datagrams: true,
            link,
            span: slowest * DATAGRAMS,
            packet,
        })
    }
}

impl LinkPlan {
    /// Whether only the buffer decides which packets are lost here, and no other link's packets matter.
    fn is_plain_drop_tail(&self) -> bool {
        self.is_lawless_drop_tail() && self.medium == Medium::Own
    }

    /// Whether only the buffer before this link decides which packets are lost.
    fn is_lawless_drop_tail(&self) -> bool {
        let lawless = matches!(self.queue, QueueSpec::DropTail(_))
            && !self.queue.drops_head()
            && matches!(self.router, RouterSpec::None(_));
        let shared = self.share.params().is_some() || self.priority != Priority::None || self.is_held();
        lawless
            && !shared
            && !self.governed
            && !self.acts_at_its_end()
            && !self.holds
            && self.police.is_none()
    }
}
