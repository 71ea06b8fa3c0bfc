//! Flows that govern a link's rate, and the choice of the sending function for flows that do not use only a window.

use super::{Hosts, Sends};
use crate::events::Class;
use crate::fabric::Fabric;
use flowstamp_laws::Stamp;
use flowstamp_laws::sender::{CONTROLS, FlowChange, SenderLaw};
use flowstamp_laws::units::Time;

impl Hosts {
    /// Sends for flows with datagrams or messages. A flow that governs a link has nothing to send.
    #[cold]
    #[inline(never)]
    pub(super) fn send_otherwise(&mut self, net: &mut Fabric, number: u32) {
        match self.flows[number as usize].sends {
            Sends::Datagrams => self.send_datagrams(net, number),
            Sends::Messages => self.send_window::<true>(net, number),
            Sends::Window | Sends::Requests => {}
        }
    }

    /// Sends the request of a flow that governs a link, once per round trip, or [`CONTROLS`] times.
    pub(super) fn ask_for_link(&mut self, net: &mut Fabric, number: u32) {
        self.send_control(net, number);
        let flow = &mut self.flows[number as usize];
        let jitter = flow.jitter.as_mut().map_or(Time::ZERO, |jitter| jitter.draw());
        let often = self.groups[flow.group as usize].laws[0].traits.stamps_link;
        let gap = flow.sender.srtt() / u64::from(if often { CONTROLS } else { 1 });
        let next = net.now.saturating_add(gap.saturating_add(jitter));
        let next = next.max(net.now + Time::from_ps(1));
        flow.control.set(next, &mut net.events, Class::Control, number);
    }

    /// Bytes that the governed link has sent since the last answer.
    pub(super) fn carried(&mut self, net: &mut Fabric, number: u32) -> f64 {
        let group = &mut self.groups[self.flows[number as usize].group as usize];
        let Some((link, _)) = group.plan.governs() else { return 0.0 };
        let sent = net.shape(link as usize, None);
        // The link's count restarts at the end of warm-up.
        let carried = (sent - group.carried).max(0.0);
        group.carried = sent;
        carried
    }

    /// Tells a governing flow what its ingress has measured.
    pub(super) fn tell_ingress(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        let group = &self.groups[flow.group as usize];
        let Some((link, _)) = group.plan.governs() else { return };
        let idle = group.laws[0].traits.counts_flows;
        let micro_flows = idle.map(|idle| net.flows_within(link as usize, idle));
        flow.law.on_change(FlowChange::Ingress { micro_flows, min_rtt: flow.sender.min_rtt() });
    }

    /// Sets the governed link's rate to the law's pacing rate, after an answer.
    pub(super) fn govern(&mut self, net: &mut Fabric, number: u32) {
        let flow = &self.flows[number as usize];
        let group = &self.groups[flow.group as usize];
        let Some((link, _)) = group.plan.governs() else { return };
        net.shape(link as usize, flow.law.pacing().map(|pacing| pacing.rate));
        if group.laws[0].traits.stamps_link {
            let stamp = flow.law.stamp(net.now, flow.sender.srtt());
            net.stamp_link(link as usize, (flow.header, stamp), flow.routes.data);
        }
    }

    /// Adds the feedback of the governed link's packets to a request that has crossed their cloud.
    pub(super) fn add_feedback(&self, net: &mut Fabric, number: u32, stamp: &mut Stamp) {
        let group = &self.groups[self.flows[number as usize].group as usize];
        if let Some((link, _)) = group.plan.governs() {
            stamp.0[2] += net.take_feedback(link as usize);
        }
    }
}
