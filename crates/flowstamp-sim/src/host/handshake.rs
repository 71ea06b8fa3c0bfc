//! Packets without data: a SYN opens a flow, a FIN ends it, and a probe asks for the path's current feedback.

use super::{Hosts, Sends, balance};
use crate::events::Class;
use crate::fabric::Fabric;
use crate::packet::{CONTROL, DATA, FIN, NO_SACK, Packet, REQUEST, SYN};
use flowstamp_laws::Stamp;
use flowstamp_laws::sender::{Feedback, SenderLaw};
use flowstamp_laws::units::Time;

/// Maximum number of FINs sent. Together they wait for 31 timeouts.
const MOST_FINS: u8 = 5;

impl Hosts {
    /// Starts a flow, with a handshake if its law or its scenario asks for one.
    pub(super) fn begin(&mut self, net: &mut Fabric, number: u32) {
        self.flows[number as usize].started = true;
        if self.flows[number as usize].open {
            self.send(net, number);
        } else {
            self.send_control(net, number);
        }
    }

    /// Sends a SYN, a FIN or a probe, and arms the timer that repeats a SYN or FIN.
    pub(super) fn send_control(&mut self, net: &mut Fabric, number: u32) {
        let now = net.now;
        let flow = &mut self.flows[number as usize];
        let (kind, seq) = match (flow.open, flow.closing) {
            (false, _) => (SYN, 0),
            (true, true) => (FIN, flow.sender.length()),
            (true, false) => (0, flow.sender.next_seq()),
        };
        let packet = Packet {
            stamp: flow.law.stamp(now, flow.sender.srtt()),
            sent_at: now,
            flow: number,
            seq,
            next: balance::route(&mut self.balancer, flow.routes.data, number, balance::DATA, now),
            sack: NO_SACK,
            size: self.ack_bytes,
            generation: flow.generation,
            bits: flow.law.bits(),
            flags: DATA | CONTROL | kind,
            header: flow.spoken(),
        };
        if kind != 0 {
            let params = self.groups[flow.group as usize].transport();
            let first = if flow.open { flow.sender.rto() } else { params.first_rto(Time::ZERO) };
            let wait = (first * (1 << flow.tries.min(10))).min(params.last_rto(Time::ZERO));
            flow.tries = flow.tries.saturating_add(1);
            flow.control.set(now + wait, &mut net.events, Class::Control, number);
        }
        net.send(packet);
    }

    /// Schedules a probe for a paced flow, unless one is scheduled already.
    pub(super) fn arm_probe(&mut self, net: &mut Fabric, number: u32, at: Time) {
        let flow = &mut self.flows[number as usize];
        if flow.control.is_idle() && !flow.sender.is_complete() {
            flow.control.set(at, &mut net.events, Class::Control, number);
        }
    }

    /// Handles the control timer: a SYN or FIN was not answered, or a probe is due.
    pub fn control_timer(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        if !flow.control.fires(net.now) || !flow.started {
            return;
        }
        if flow.closing {
            if flow.tries < MOST_FINS {
                self.send_control(net, number);
            } else {
                self.close(net, number);
            }
            return;
        }
        if flow.open && flow.sends == Sends::Requests {
            return self.ask_for_link(net, number);
        }
        if !flow.open || !flow.pace.is_idle() && !flow.sender.is_complete() {
            self.send_control(net, number);
            self.send(net, number);
        }
    }

    /// Handles a packet without data at a host. The receiver sends an answer; the sender processes one.
    pub(super) fn arrive_control(&mut self, net: &mut Fabric, packet: &Packet) {
        let now = net.now;
        #[cfg(feature = "full")]
        if packet.is_advice() {
            return self.advised(net.now, packet);
        }
        let flow = &mut self.flows[packet.flow as usize];
        if packet.flags & DATA != 0 {
            let flags = packet.flags & !DATA;
            let (mut stamp, bits) =
                if flow.deaf { (Stamp::default(), 0) } else { (packet.stamp, packet.bits) };
            let next = balance::route(&mut self.balancer, flow.routes.acks, packet.flow, balance::ACKS, now);
            if flow.sends == Sends::Requests {
                self.add_feedback(net, packet.flow, &mut stamp);
            }
            net.send(Packet { stamp, bits, next, size: self.ack_bytes, flags, ..*packet });
            return;
        }
        if packet.flags & REQUEST != 0 {
            return self.asked(net, packet);
        }
        if flow.closing {
            // Otherwise it is a probe's answer, which comes too late.
            if packet.flags & FIN != 0 {
                flow.control.cancel();
                self.close(net, packet.flow);
            }
            return;
        }
        let edge = flow.sends == Sends::Requests;
        let carried = if edge { self.carried(net, packet.flow) } else { 0.0 };
        self.flows[packet.flow as usize].sender.on_answer(now, packet.sent_at);
        if edge {
            self.tell_ingress(net, packet.flow);
        }
        let flow = &mut self.flows[packet.flow as usize];
        let (srtt, stamp, bits) = (flow.sender.srtt(), &packet.stamp, packet.bits);
        flow.law.on_feedback(&Feedback { now, srtt, stamp, bits, carried });
        let opens = !flow.open;
        if opens {
            flow.open = true;
            flow.control.cancel();
        }
        if edge {
            self.govern(net, packet.flow);
            if opens {
                self.ask_for_link(net, packet.flow);
            }
        }
        self.send(net, packet.flow);
    }
}
