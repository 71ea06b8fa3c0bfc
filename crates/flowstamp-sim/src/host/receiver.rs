//! The receiving end: takes data and sends acks.

use super::{Hosts, Sends, balance};
use crate::events::Class;
use crate::fabric::Fabric;
use crate::packet::{CONGESTED, ECN_ECHO, Packet, REDUCED};
use flowstamp_laws::Stamp;
use flowstamp_laws::transport::{AckInfo, DataPacket};

impl Hosts {
    #[inline]
    pub(super) fn arrive_data(&mut self, net: &mut Fabric, packet: &Packet) {
        let number = packet.flow;
        let delays = self.flows[number as usize].delays;
        self.delays[delays as usize].add(net.now - packet.sent_at);
        match self.flows[number as usize].sends {
            Sends::Datagrams => self.arrive_datagram(net, packet),
            Sends::Messages => self.arrive_message(net, packet),
            Sends::Window | Sends::Requests => self.arrive_for_window::<false>(net, packet),
        }
    }

    #[cold]
    #[inline(never)]
    fn arrive_message(&mut self, net: &mut Fabric, packet: &Packet) {
        self.arrive_for_window::<true>(net, packet);
    }

    /// Handles data of a flow with a window. With `MESSAGES` its application produces messages.
    #[inline(always)]
    fn arrive_for_window<const MESSAGES: bool>(&mut self, net: &mut Fabric, packet: &Packet) {
        let now = net.now;
        let number = packet.flow;
        if let Some(info) = self.flows[number as usize].receiver.before_data(packet.flags & CONGESTED != 0) {
            self.send_ack(net, number, &info);
        }
        let flow = &mut self.flows[number as usize];
        let before = flow.receiver.delivered();
        let data = DataPacket {
            seq: packet.seq,
            ce: packet.flags & CONGESTED != 0,
            cwr: packet.flags & REDUCED != 0,
            sent_at: packet.sent_at,
            stamp: &packet.stamp,
            bits: packet.bits,
        };
        let header = flow.header;
        let info = flow.receiver.on_data(now, &data, |pending, newer| header.merge(pending, newer));
        let delivered = flow.receiver.delivered();
        // With repair by count, more packets may arrive than the flow has. Otherwise the sender, which is not in the
        // cache, need not be read.
        if delivered != before && (!flow.receiver.counts() || before < flow.sender.length()) {
            let mut bytes = u64::from(packet.size - self.header_bytes);
            if !MESSAGES && delivered == flow.packets {
                let record = &mut self.records[flow.record as usize];
                record.end = now;
                // The packet that replaces a shorter last packet may have been a full one.
                bytes = record.size.map_or(bytes, |size| size.get() - flow.delivered_bytes);
                if self.groups[flow.group as usize].arriving {
                    self.groups[flow.group as usize].active.end(now);
                }
            }
            self.groups[flow.group as usize].delivered_bytes += bytes;
            flow.delivered_bytes += bytes;
            if MESSAGES {
                self.delivered(net, number);
            }
        }
        match info {
            Some(info) => self.send_ack_here(net, number, &info),
            None => self.schedule_ack(net, number),
        }
    }

    #[inline(never)]
    fn send_ack(&mut self, net: &mut Fabric, number: u32, info: &AckInfo) {
        self.send_ack_here(net, number, info);
    }

    /// Sends an ack, inlined for the common case.
    #[inline(always)]
    fn send_ack_here(&mut self, net: &mut Fabric, number: u32, info: &AckInfo) {
        let flow = &self.flows[number as usize];
        let (stamp, bits) = if flow.deaf { (Stamp::default(), 0) } else { (info.stamp, info.bits) };
        let sack = net.sacks.put(info.sack);
        let header = flow.spoken(); // outside of the closure, which is then inlined
        let route = balance::route(&mut self.balancer, flow.routes.acks, number, balance::ACKS, net.now);
        net.send_made(route, self.ack_bytes, || Packet {
            stamp,
            sent_at: info.sent_at,
            flow: number,
            seq: info.cumulative,
            next: route,
            sack,
            size: self.ack_bytes,
            generation: flow.generation,
            bits,
            flags: if info.ecn_echo { ECN_ECHO } else { 0 },
            header,
        });
    }

    /// Handles the delayed-ack timer.
    pub fn ack_timer(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        if !flow.ack.fires(net.now) {
            return;
        }
        if flow.receiver.deadline() <= net.now {
            if let Some(info) = flow.receiver.on_timer(net.now) {
                self.send_ack(net, number, &info);
            }
        }
        self.schedule_ack(net, number);
    }

    fn schedule_ack(&mut self, net: &mut Fabric, number: u32) {
        let flow = &mut self.flows[number as usize];
        flow.ack.arm(flow.receiver.deadline(), &mut net.events, Class::Ack, number);
    }
}
