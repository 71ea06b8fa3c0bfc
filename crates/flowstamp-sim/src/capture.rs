//! Records packets whose transmission begins, until it has enough.

use crate::packet::{CONGESTED, CONTROL, DATA, ECN_CAPABLE, ECN_ECHO, FIN, Packet, REDUCED, SYN, SackPool};
use crate::results::{Captured, CapturedPacket};
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
    /// How many packets of each link may still be recorded; none if nothing is recorded at all.
    left: Vec<u32>,
    most: u32,
    packet_bytes: u32,
    users: Vec<User>,
}

impl Capture {
    /// A capture of up to `most` packets on links of these names.
    #[must_use]
    pub fn new(links: Vec<String>, most: u32, packet_bytes: u32) -> Self {
        let left = vec![most; links.len()];
        Self {
            captured: Captured { links, packets: Vec::new() },
            left,
            most,
            packet_bytes,
            users: Vec::new(),
        }
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
        let left = &mut self.left[link as usize];
        let user = self.users[packet.flow as usize];
        if *left == 0 || user.generation != packet.generation {
            return;
        }
        *left -= 1;
        self.captured.packets.push(CapturedPacket {
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
            ecn_echo: packet.flags & ECN_ECHO != 0,
            cwr: packet.flags & REDUCED != 0,
            header: packet.header,
            stamp: packet.stamp,
            bits: packet.bits,
            sack: sacks.get(packet.sack),
        });
    }

    /// What was recorded, in the order of time.
    #[must_use]
    pub fn finish(mut self) -> Captured {
        self.captured.packets.sort_by_key(|p| (p.time_ps, p.link));
        self.captured.packets.truncate(self.most as usize);
        self.captured
    }
}
