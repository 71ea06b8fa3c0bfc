//! Observations of a run between two steps, without the cost of [`Simulation::results`].

use super::Simulation;
use flowstamp_laws::sender::{SenderLaw, Tally};
use flowstamp_laws::units::{Rate, Time};

/// A router link: the values by which observations are scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkView<'a> {
    /// The link's name.
    pub name: &'a str,
    /// Mean rate over the whole run, including changes so far; for a trace, the mean of one period.
    pub mean_rate: Rate,
    /// Buffer size, bytes.
    pub buffer_bytes: f64,
}

/// Counts of a flow with a told law, since the flow began. The difference between two steps is what happened in one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderView<'a> {
    /// Name of the group.
    pub group: &'a str,
    /// Number within the group.
    pub index: u32,
    /// Propagation round-trip time of the group as the scenario states it, seconds; the mean if there are several.
    pub path_rtt_s: f64,
    /// Packets sent, including retransmissions.
    pub sent: u64,
    /// Packets lost and retransmitted. Spurious retransmissions, which D-SACK reports (RFC 2883), are left out.
    pub lost: u64,
    /// Packets that the sender knows to be delivered.
    pub delivered: u64,
    /// Bytes of payload in a full packet.
    pub payload_bytes: u64,
    /// Acks, marks and round-trip times.
    pub tally: Tally,
    /// Minimum round-trip time so far; zero before the first sample.
    pub min_rtt: Time,
}

impl Simulation {
    /// The router links.
    pub fn link_views(&self) -> impl Iterator<Item = LinkView<'_>> {
        let (duration, packet) = (self.scenario.duration, self.scenario.packet.as_f64());
        self.net.routers().map(move |(port, _)| {
            let laws = port.laws();
            LinkView {
                name: &laws.name,
                mean_rate: laws.capacity.mean_of_run(duration),
                buffer_bytes: laws.buffer_bytes(packet),
            }
        })
    }

    /// The flows with a told law, except groups whose flows arrive during the run.
    pub fn sender_views(&self) -> impl Iterator<Item = SenderView<'_>> {
        let (hosts, payload_bytes) = (&self.hosts, self.scenario.payload());
        hosts.flows.iter().filter_map(move |flow| {
            let group = &hosts.groups[flow.group as usize];
            let tally = flow.law.report().tally.filter(|_| !group.arriving)?;
            let resent = u64::from(flow.sender.retransmissions());
            Some(SenderView {
                group: &group.name,
                index: hosts.records[flow.record as usize].index,
                path_rtt_s: group.plan.path_rtt_s,
                sent: u64::from(flow.sender.next_seq()) + resent,
                lost: resent.saturating_sub(u64::from(flow.copies())),
                delivered: u64::from(flow.sender.delivered()),
                payload_bytes,
                tally,
                min_rtt: flow.sender.min_rtt(),
            })
        })
    }
}
