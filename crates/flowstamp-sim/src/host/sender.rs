//! The sending end: window, pacing and application decide what leaves.

use super::supply::Supply;
use super::{Hosts, Sends, balance};
use crate::events::Class;
use crate::fabric::Fabric;
use crate::packet::{DATA, ECN_ECHO, NO_SACK, Packet, REDUCED};
use flowstamp_laws::sender::SenderLaw;
use flowstamp_laws::transport::AckPacket;
use flowstamp_laws::units::Time;

impl Hosts {
    #[inline]
    pub(super) fn arrive_ack(&mut self, net: &mut Fabric, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let sack = net.sacks.get(packet.sack);
        let ack = AckPacket {
            cumulative: packet.seq,
            sack: sack.as_slice(),
            ecn_echo: packet.flags & ECN_ECHO != 0,
            sent_at: packet.sent_at,
            stamp: &packet.stamp,
            bits: packet.bits,
        };
        flow.sender.on_ack(net.now, &mut flow.law, u32::from(self.packet_bytes), &ack);
        if packet.sack != NO_SACK {
            net.sacks.release(packet.sack);
        }
        self.send(net, packet.flow);
    }

    /// Number of packets for a size, and size of the last packet, bytes. The number is `u32::MAX` for an endless flow.
    pub(super) fn packets(&self, size: Option<u64>) -> (u32, u16) {
        let payload = u64::from(self.payload());
        let packets = size.map_or(u32::MAX, |s| s.div_ceil(payload).min(u64::from(u32::MAX - 1)) as u32);
        // A size of more packets than a `u32` counts ends with a full one.
        let last = size.map_or(payload, |s| (s - (u64::from(packets) - 1) * payload).min(payload));
        (packets, self.header_bytes + last as u16)
    }

    /// Number of packets that a flow transfers.
    #[cfg(feature = "full")]
    pub(crate) fn packets_of(&self, number: u32) -> u32 {
        self.flows[number as usize].packets
    }

    /// Sends what the window, the pace and the application allow.
    pub(super) fn send(&mut self, net: &mut Fabric, number: u32) {
        let flow = &self.flows[number as usize];
        if !(flow.started && flow.open) {
            return;
        }
        if flow.sends != Sends::Window {
            return self.send_otherwise(net, number);
        }
        self.send_window::<false>(net, number);
    }

    /// Sends for an open flow with a window. With `MESSAGES` its application produces messages.
    #[inline(always)]
    pub(super) fn send_window<const MESSAGES: bool>(&mut self, net: &mut Fabric, number: u32) {
        let now = net.now;
        if MESSAGES {
            let flow = &mut self.flows[number as usize];
            let una = flow.sender.unacked();
            flow.app.iter_mut().for_each(|app| app.forget(una));
        }
        loop {
            let flow = &mut self.flows[number as usize];
            let group = &self.groups[flow.group as usize];
            let available = match &group.supply {
                _ if MESSAGES => flow.app.as_ref().map_or(0, |app| app.available()),
                Supply::All => u32::MAX,
                limited => {
                    let record = &self.records[flow.record as usize];
                    limited.available(record, flow.packets, self.packet_bytes - self.header_bytes, now)
                }
            };
            let pacing = flow.law.pacing();
            let mut due = now;
            if let Some(pacing) = &pacing {
                let size = flowstamp_laws::Bytes::new(u64::from(flow.last_departed));
                due = flow.last_departure.saturating_add(pacing.rate.tx_time(size));
                if due > now {
                    self.wait_for_pace(net, number, due);
                    break;
                }
            }
            let mut allowed = true;
            if let Some(jitter) = &mut flow.jitter {
                allowed = flow.sender.may_send(&flow.law, u32::from(self.packet_bytes), available);
                if allowed {
                    let leaves = jitter.leaves(now, due);
                    if leaves > now {
                        flow.pace.arm(leaves, &mut net.events, Class::Pace, number);
                        break;
                    }
                }
            }
            let Some(out) = flow.sender.next_packet(now, &flow.law, u32::from(self.packet_bytes), available)
            else {
                if !MESSAGES && available != u32::MAX && flow.sender.next_seq() >= available {
                    self.wait_for_application(net, number, available);
                }
                break;
            };
            debug_assert!(allowed, "flow {number} sends without its delay");
            let size = if MESSAGES {
                flow.app.as_ref().map_or(self.packet_bytes, |app| app.size(out.seq, self.packet_bytes))
            } else if out.seq + 1 == flow.packets || flow.packets == 1 {
                flow.last_size
            } else {
                self.packet_bytes
            };
            if pacing.is_some() {
                flow.last_departure = flow.jitter.as_mut().map_or(now, |jitter| jitter.paced());
                flow.last_departed = size;
            }
            // A retransmission must not be ECN-capable (RFC 3168 section 6.1.5): its loss says more than a mark.
            let ect = if out.retransmission { 0 } else { flow.ect };
            let route = balance::route(&mut self.balancer, flow.routes.data, number, balance::DATA, now);
            net.send_made(route, size, || Packet {
                stamp: flow.law.stamp(now, flow.sender.srtt()),
                sent_at: now,
                flow: number,
                seq: out.seq,
                next: route,
                sack: NO_SACK,
                size,
                generation: flow.generation,
                bits: flow.law.bits(),
                flags: DATA | ect | if out.cwr { REDUCED } else { 0 },
                header: flow.spoken(),
            });
        }
        let flow = &mut self.flows[number as usize];
        if let Some(jitter) = &mut flow.jitter {
            jitter.sent(now);
        }
        if flow.sender.is_complete() {
            self.complete(net, number);
            return;
        }
        flow.retransmit.arm(flow.sender.deadline(), &mut net.events, Class::Retransmit, number);
    }

    /// Lets a paced flow wait until `next` for its next packet.
    fn wait_for_pace(&mut self, net: &mut Fabric, number: u32, next: Time) {
        let flow = &mut self.flows[number as usize];
        // At a rate near zero the time overflows. The flow waits all the same: a probe may bring a better rate.
        let next = next.min(Time::from_ps(Time::MAX.as_ps() - 1));
        flow.pace.arm(next, &mut net.events, Class::Pace, number);
        // The gap is longer than the round-trip time: send a probe meanwhile, or the flow would learn of a better rate
        // only after the gap.
        let srtt = flow.sender.srtt();
        if next <= net.now + srtt || srtt == Time::ZERO {
            return;
        }
        let Some(pacing) = flow.law.pacing() else { return };
        let probe = net.now + pacing.probe_after(srtt, self.ack_bytes.into());
        if next > probe {
            self.arm_probe(net, number, probe);
        }
    }

    /// Handles the pacing timer.
    pub fn pace_timer(&mut self, net: &mut Fabric, number: u32) {
        if self.flows[number as usize].pace.fires(net.now) {
            self.send(net, number);
        }
    }

    /// Handles the retransmission timer.
    pub fn retransmission_timer(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        if !flow.retransmit.fires(net.now) {
            return;
        }
        if flow.sender.deadline() <= net.now {
            flow.sender.on_timeout(net.now, &mut flow.law);
        }
        self.send(net, number);
    }

    /// Lets a flow with an application rate wait until packet `available` is produced.
    fn wait_for_application(&mut self, net: &mut Fabric, number: u32, available: u32) {
        let flow = &mut self.flows[number as usize];
        let supply = &self.groups[flow.group as usize].supply;
        if supply.is_limited() {
            let (record, payload) =
                (&self.records[flow.record as usize], self.packet_bytes - self.header_bytes);
            let at = supply.time_of(record, flow.packets, payload, available);
            let at = at.max(net.now + Time::from_ps(1));
            flow.application.arm(at, &mut net.events, Class::Application, number);
        }
    }

    /// Handles the application timer: the application starts, stops or has produced a packet.
    pub fn application_timer(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        if !flow.application.fires(net.now) {
            return;
        }
        let begins = !flow.started;
        let stop = self.groups[flow.group as usize].stops(&self.records[flow.record as usize]);
        if net.now >= stop {
            flow.sender.stop();
        }
        self.produce(net, number, stop);
        if begins {
            self.begin(net, number);
        } else {
            self.send(net, number);
        }
        if net.now < stop {
            self.flows[number as usize].application.arm(stop, &mut net.events, Class::Application, number);
        }
    }
}
