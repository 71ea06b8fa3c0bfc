//! What whoever governs a run may look at between two steps, without the cost of [`Simulation::results`].

use super::Simulation;
use flowstamp_laws::sender::{SenderLaw, Tally};
use flowstamp_laws::units::{Rate, Time};

/// A router link: what observations are scaled by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkView<'a> {
    /// The link's name.
    pub name: &'a str,
    /// The mean rate of the whole run, with the changes so far; of a trace the mean of one period.
    pub mean_rate: Rate,
    /// Bytes that the buffer holds.
    pub buffer_bytes: f64,
}

/// Counts of a flow whose law is told, since the flow began. The differences between two steps are what happened in one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderView<'a> {
    /// Its group.
    pub group: &'a str,
    /// Its number in the group.
    pub index: u32,
    /// The group's round-trip time without queues, as the scenario states it (for several, their mean).
    pub path_rtt_s: f64,
    /// Packets sent, those sent again among them.
    pub sent: u64,
    /// Packets lost, as far as they have been sent again: without those that were sent again in vain, as D-SACK (RFC 2883) tells.
    pub lost: u64,
    /// Packets that the sender knows to have arrived.
    pub delivered: u64,
    /// Bytes of payload in a full packet.
    pub payload_bytes: u64,
    /// Acks, marks and round-trip times.
    pub tally: Tally,
    /// The least round-trip time so far, zero before the first.
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

    /// The flows whose law is told, but for groups whose flows come and go.
    pub fn sender_views(&self) -> impl Iterator<Item = SenderView<'_>> {
        let (hosts, payload_bytes) = (&self.hosts, self.scenario.payload());
        hosts.flows.iter().filter_map(move |flow| {
            let group = &hosts.groups[flow.group as usize];
            let tally = flow.law.report().tally.filter(|_| !group.web)?;
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
