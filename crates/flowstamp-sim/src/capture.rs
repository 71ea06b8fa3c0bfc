//! Records packets whose transmission begins, and frames on the air of cells, until it has enough.

use crate::medium::dcf::{Kind, Transmission};
use crate::packet::{
    CONGESTED, CONTROL, DATA, ECN_CAPABLE, ECN_ECHO, FIN, L4S, Packet, REDUCED, SYN, SackPool,
};
use crate::plan::CellPlan;
use crate::results::{Captured, CapturedCell, CapturedFrame, CapturedPacket, Recorded};
use crate::scenario::Scenario;
use crate::scenario::wireless::Standard;
use flowstamp_laws::units::Time;

/// The user of a flow's slot, as a capture knows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct User {
    /// Which user it is; see [`Packet::generation`].
    pub generation: u16,
    /// Number of the flow in the results.
    pub record: u32,
    /// Packets to transfer; `u32::MAX` for endless.
    pub packets: u32,
    /// Size of the last packet.
    pub last_size: u16,
}

/// What is recorded, and may still be.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    captured: Captured,
    /// How many packets of each link, and then of each cell's frames, may still be recorded; none if nothing is recorded at all.
    left: Vec<u32>,
    most: u32,
    packet_bytes: u32,
    users: Vec<User>,
}

/// Whether the scenario wants this link or cell to be recorded: all that it names; without names, links and cells, but no interface,
/// whose packets are in its cell's frames.
pub fn wanted(scenario: &Scenario, name: &str, interface: bool) -> bool {
    let names = scenario.capture.as_ref().map(|c| c.links.as_ref());
    names.is_some_and(|names| names.map_or(!interface, |names| names.iter().any(|n| n == name)))
}

impl Capture {
    /// A capture of up to `most` packets on links of these names.
    #[must_use]
    pub fn new(links: Vec<String>, most: u32, packet_bytes: u32) -> Self {
        let left = vec![most; links.len()];
        let captured = Captured { links, ..Captured::default() };
        Self { captured, left, most, packet_bytes, users: Vec::new() }
    }

    /// Frames of this cell are recorded too; returns its number here.
    pub fn add_cell(&mut self, plan: &CellPlan) -> u32 {
        let number = self.captured.cells.len() as u32;
        let params = &plan.params;
        self.captured.cells.push(CapturedCell {
            name: plan.name.clone(),
            access_point: plan.stations.first().is_some_and(|s| s.params.rate.is_none()),
            ofdm: matches!(params.standard, Standard::G | Standard::GNs2),
            overhead: params.overhead(),
        });
        self.left.push(self.most);
        number
    }

    /// A slot has a new user.
    pub fn open(&mut self, slot: u32, user: User) {
        if self.left.is_empty() {
            return;
        }
        let slot = slot as usize;
        if slot >= self.users.len() {
            self.users.resize(slot + 1, User::default());
        }
        self.users[slot] = user;
    }

    /// The transmission of `packet` began on `link`.
    pub fn record(&mut self, link: u32, time: Time, packet: &Packet, sacks: &SackPool) {
        // Links are looked at when there is a reason to, not in the order of time: each may fill the capture alone, and
        // the first packets of all are picked at the end.
        if self.left[link as usize] == 0 {
            return;
        }
        if let Some(packet) = self.seen(link, time, packet, sacks) {
            self.left[link as usize] -= 1;
            self.captured.packets.push(packet);
        }
    }

    /// A frame has been on the air of a cell; `packet` is what it carries, on its way by `link`.
    pub fn record_frame(
        &mut self,
        cell: u32,
        sent: Transmission,
        (link, packet): (u32, Option<&Packet>),
        sacks: &SackPool,
    ) {
        let number = self.captured.links.len() + cell as usize;
        if self.left[number] == 0 {
            return;
        }
        self.left[number] -= 1;
        let packet = packet.filter(|_| sent.kind == Kind::Data);
        let packet = packet.and_then(|packet| self.seen(link, sent.begin, packet, sacks));
        self.captured.frames.push(CapturedFrame { cell, sent, packet });
    }

    /// A packet as captures have it; `None` if its flow is over and its slot has another user.
    fn seen(&self, link: u32, time: Time, packet: &Packet, sacks: &SackPool) -> Option<CapturedPacket> {
        let user = self.users[packet.flow as usize];
        (user.generation == packet.generation).then(|| CapturedPacket {
            time_ps: time.as_ps(),
            link,
            flow: user.record,
            data: packet.flags & DATA != 0,
            control: packet.flags & CONTROL != 0,
            syn: packet.flags & SYN != 0,
            fin: packet.flags & FIN != 0,
            seq: packet.seq,
            size: u32::from(packet.size),
            packet_bytes: self.packet_bytes,
            packets: user.packets,
            last_size: u32::from(user.last_size),
            ecn_capable: packet.flags & ECN_CAPABLE != 0,
            congestion_experienced: packet.flags & CONGESTED != 0,
            l4s: packet.flags & (DATA | L4S) == DATA | L4S,
            ecn_echo: packet.flags & (DATA | ECN_ECHO) == ECN_ECHO,
            cwr: packet.flags & REDUCED != 0,
            header: packet.header,
            stamp: packet.stamp,
            bits: packet.bits,
            sack: sacks.get(packet.sack),
        })
    }

    /// What was recorded, in the order of time.
    #[must_use]
    pub fn finish(mut self) -> Captured {
        self.captured.packets.sort_by_key(|p| (p.time_ps, p.link));
        self.captured.frames.sort_by_key(|f| (f.sent.begin, f.cell));
        let first = self.captured.in_order().take(self.most as usize);
        let packets = first.filter(|r| matches!(r, Recorded::Packet(_))).count();
        self.captured.frames.truncate(self.most as usize - packets);
        self.captured.packets.truncate(packets);
        self.captured
    }
}
