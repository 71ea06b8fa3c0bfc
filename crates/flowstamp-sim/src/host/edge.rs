//! Flows that govern a link, and which flows send otherwise than their window alone allows.

use super::{Hosts, Sends};
use crate::events::Class;
use crate::fabric::Fabric;
use flowstamp_laws::sender::SenderLaw;
use flowstamp_laws::units::Time;

impl Hosts {
    /// What sends otherwise than a window alone allows: datagrams, messages of an application. Who governs a link has nothing to send.
    #[cold]
    #[inline(never)]
    pub(super) fn send_otherwise(&mut self, net: &mut Fabric, number: u32) {
        match self.flows[number as usize].sends {
            Sends::Datagrams => self.send_datagrams(net, number),
            Sends::Messages => self.send_window::<true>(net, number),
            Sends::Window | Sends::Requests => {}
        }
    }

    /// The flow that governs a link asks for it once in a round trip.
    pub(super) fn ask_for_link(&mut self, net: &mut Fabric, number: u32) {
        self.send_control(net, number);
        let flow = &mut self.flows[number as usize];
        let jitter = flow.jitter.as_mut().map_or(Time::ZERO, |jitter| jitter.draw());
        let next = net.now.saturating_add(flow.sender.srtt().saturating_add(jitter));
        let next = next.max(net.now + Time::from_ps(1));
        flow.control.set(next, &mut net.events, Class::Control, number);
    }

    /// Bytes that the governed link has carried since the last answer.
    pub(super) fn carried(&mut self, net: &mut Fabric, number: u32) -> f64 {
        let group = &mut self.groups[self.flows[number as usize].group as usize];
        let Some((link, _)) = group.plan.governs else { return 0.0 };
        let sent = net.shape(link as usize, None);
        // At the end of warm-up a link counts anew.
        let carried = (sent - group.carried).max(0.0);
        group.carried = sent;
        carried
    }

    /// The law has heard of the answer: the link's rate is its pace.
    pub(super) fn govern(&mut self, net: &mut Fabric, number: u32) {
        let flow = &self.flows[number as usize];
        if let Some((link, _)) = self.groups[flow.group as usize].plan.governs {
            net.shape(link as usize, flow.law.pacing().map(|pacing| pacing.rate));
        }
    }
}
