//! Datagrams, and flows that govern a link: what sends without a window.

use super::{Hosts, Sends};
use crate::events::Class;
use crate::fabric::Fabric;
use crate::packet::{DATA, NO_SACK, Packet};
use flowstamp_laws::sender::SenderLaw;
use flowstamp_laws::units::{Bytes, Time};

impl Hosts {
    /// A flow of datagrams sends what its pace allows, until it stops; one that governs a link has nothing to send.
    #[cold]
    #[inline(never)]
    pub(super) fn send_without_window(&mut self, net: &mut Fabric, number: u32) {
        let now = net.now;
        let flow = &mut self.flows[number as usize];
        if flow.sends == Sends::Requests {
            return;
        }
        let group = &self.groups[flow.group as usize];
        let stop = group.stops(&self.records[flow.record as usize]);
        let Some(rate) = flow.law.pacing_rate().filter(|_| now < stop) else { return };
        let gap = rate.tx_time(Bytes::new(u64::from(flow.last_departed)));
        let mut next = flow.last_departure.saturating_add(gap);
        if next <= now {
            flow.last_departure = now;
            flow.last_departed = self.packet_bytes;
            next = now.saturating_add(rate.tx_time(Bytes::new(u64::from(self.packet_bytes))));
            let packet = Packet {
                stamp: flow.law.stamp(now, Time::ZERO),
                sent_at: now,
                flow: number,
                seq: flow.sent,
                next: flow.path.data,
                sack: NO_SACK,
                size: self.packet_bytes,
                generation: flow.generation,
                bits: flow.law.bits(),
                flags: DATA | flow.ect,
                header: flow.spoken(),
            };
            flow.sent = flow.sent.wrapping_add(1);
            net.send(packet);
        }
        let next = next.max(now + Time::from_ps(1)).min(Time::from_ps(Time::MAX.as_ps() - 1));
        self.flows[number as usize].pace.arm(next, &mut net.events, Class::Pace, number);
    }

    /// A datagram has arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn arrive_datagram(&mut self, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        if !flow.receiver.count(packet.seq) {
            return; // A copy.
        }
        let bytes = u64::from(packet.size - self.header_bytes);
        flow.delivered_bytes += bytes;
        self.groups[flow.group as usize].delivered_bytes += bytes;
    }

    /// The flow that governs a link asks for it once in a round trip.
    pub(super) fn ask_for_link(&mut self, net: &mut Fabric, number: u32) {
        self.send_control(net, number);
        let flow = &mut self.flows[number as usize];
        let next = net.now.saturating_add(flow.sender.srtt()).max(net.now + Time::from_ps(1));
        flow.control.set(next, &mut net.events, Class::Control, number);
    }

    /// An answer to it is on its way to the law: what the link has carried since the last.
    pub(super) fn tell_carried(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        let group = &mut self.groups[flow.group as usize];
        let Some((link, _)) = group.plan.governs else { return };
        let sent = net.shape(link as usize, None);
        // At the end of warm-up a link counts anew.
        flow.law.carried((sent - group.carried).max(0.0));
        group.carried = sent;
    }

    /// The law has heard of the answer: the link's rate is its pace.
    pub(super) fn govern(&mut self, net: &mut Fabric, number: u32) {
        let flow = &self.flows[number as usize];
        if let Some((link, _)) = self.groups[flow.group as usize].plan.governs {
            net.shape(link as usize, flow.law.pacing_rate());
        }
    }
}
