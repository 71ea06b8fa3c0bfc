//! Captures packets as their transmission begins, and frames on the air of cells, up to a limit.

use crate::medium::dcf::{Kind, Transmission};
use crate::packet::{
    CONGESTED, CONTROL, DATA, ECN_CAPABLE, ECN_ECHO, FIN, L4S, Packet, REDUCED, SYN, SackPool,
};
use crate::plan::CellPlan;
#[cfg(feature = "full")]
use crate::release::Release;
use crate::results::{Captured, CapturedCell, CapturedFrame, CapturedPacket, Recorded};
use crate::scenario::Scenario;
use crate::scenario::wireless::Standard;
use flowstamp_laws::units::Time;

/// The flow that uses a slot, for captures.
#[derive(Clone, Copy, Debug, Default)]
pub struct User {
    /// Generation of the slot; see [`Packet::generation`].
    pub generation: u16,
    /// Number of the flow in the results.
    pub record: u32,
    /// Packets to transfer; `u32::MAX` for endless.
    pub packets: u32,
    /// Size of the last packet, bytes.
    pub last_size: u16,
    /// It sends datagrams.
    pub datagrams: bool,
}

/// The packets of a flow on one link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waited {
    /// Number of packets.
    packets: u32,
    /// The time that they waited.
    sum: Time,
    /// When they left.
    #[cfg(feature = "full")]
    pub left: Release,
}

impl Waited {
    /// How long a packet waited on average.
    #[cfg(feature = "full")]
    #[must_use]
    pub fn mean(&self) -> Time {
        self.sum / u64::from(self.packets.max(1))
    }
}

/// Captured packets and frames, and how many more may be captured.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    captured: Captured,
    /// How many more packets of each link, and then frames of each cell, may be captured. Empty if nothing is captured
    /// at all.
    left: Vec<u32>,
    most: u32,
    packet_bytes: u32,
    users: Vec<User>,
    /// Waits of each flow, if the capture records only waits.
    waits: Option<Vec<Waited>>,
}

/// Whether the scenario captures this link or cell. It captures all that it names. Without names it captures links and
/// cells, but no interfaces, because a cell's frames contain their packets.
pub fn wanted(scenario: &Scenario, name: &str, interface: bool) -> bool {
    let names = scenario.capture.as_ref().map(|c| c.links.as_ref());
    names.is_some_and(|names| names.map_or(!interface, |names| names.iter().any(|n| n == name)))
}

impl Capture {
    /// Makes a capture of up to `most` packets on links of these names.
    #[must_use]
    pub fn new(links: Vec<String>, most: u32, packet_bytes: u32) -> Self {
        let left = vec![most; links.len()];
        let captured = Captured { links, ..Captured::default() };
        Self { captured, left, most, packet_bytes, users: Vec::new(), waits: None }
    }

    /// Makes a record of how long each flow's packets wait on one link.
    #[cfg(feature = "full")]
    #[must_use]
    pub fn of_waits() -> Self {
        Self { left: vec![0], waits: Some(Vec::new()), ..Self::default() }
    }

    /// The packets of each flow, by record.
    #[cfg(feature = "full")]
    pub fn take_waits(&mut self) -> Vec<Waited> {
        self.waits.take().unwrap_or_default()
    }

    /// Adds the frames of a cell to the capture. Returns the cell's number in it.
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

    /// Takes note that a new flow uses a slot.
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

    /// Captures `packet`, whose transmission on `link` began at `time`, after it had waited.
    pub fn record(&mut self, link: u32, (time, waited): (Time, Time), packet: &Packet, sacks: &SackPool) {
        if let Some(waits) = self.waits.as_mut().filter(|_| cfg!(feature = "full")) {
            let user = self.users[packet.flow as usize];
            if user.generation == packet.generation {
                if user.record as usize >= waits.len() {
                    waits.resize(user.record as usize + 1, Waited::default());
                }
                let flow = &mut waits[user.record as usize];
                flow.packets += 1;
                flow.sum += waited;
                #[cfg(feature = "full")]
                if packet.flags & (DATA | CONTROL) == DATA {
                    flow.left.record(user.packets, packet.seq, time);
                }
            }
            return;
        }
        // Links do not report packets in the order of time. Therefore each link may fill the capture alone, and `finish` picks
        // the first packets of all.
        if self.left[link as usize] == 0 {
            return;
        }
        if let Some(packet) = self.seen(link, time, packet, sacks) {
            self.left[link as usize] -= 1;
            self.captured.packets.push(packet);
        }
    }

    /// Captures a frame on the air of a cell. `packet` is its content, on its way over `link`.
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

    /// Converts a packet; `None` if its flow has ended and another flow uses its slot.
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
            datagrams: user.datagrams,
            ecn_capable: packet.flags & ECN_CAPABLE != 0,
            congestion_experienced: packet.flags & CONGESTED != 0,
            l4s: packet.flags & (DATA | L4S) == DATA | L4S,
            ecn_echo: packet.flags & (DATA | ECN_ECHO) == ECN_ECHO,
            // Other packets use the bit for something else.
            cwr: packet.flags & (DATA | CONTROL | REDUCED) == DATA | REDUCED,
            header: packet.header,
            stamp: packet.stamp,
            bits: packet.bits,
            sack: sacks.get(packet.sack),
        })
    }

    /// Returns what was captured, in the order of time.
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
