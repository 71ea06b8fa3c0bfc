//! Packets: 56 bytes, copied from link to link, so that a hop touches one cache line of its ring.

use flowstamp_laws::Stamp;
use flowstamp_laws::registry::Header;
use flowstamp_laws::transport::SackBlocks;
use flowstamp_laws::units::Time;

/// A data packet or an ack.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The stamp; in an ack, the echoed one.
    pub stamp: Stamp,
    /// When the data packet left its sender; in an ack, when the packet that it answers left.
    pub sent_at: Time,
    /// Slot of the flow.
    pub flow: u32,
    /// Sequence number; in an ack, the next expected.
    pub seq: u32,
    /// Index into the routes: the entry for the next link.
    pub next: u32,
    /// Selective acks in [`SackPool`], or [`NO_SACK`].
    pub sack: u32,
    /// Size on the wire, bytes.
    pub size: u16,
    /// Generation of the flow's slot: tells apart the flows that use the slot in turn.
    pub generation: u16,
    /// The law's bits; in an ack, the echoed ones.
    pub bits: u16,
    /// Flags: [`DATA`], [`ECN_CAPABLE`] and the other constants.
    pub flags: u8,
    /// Header format of the stamp.
    pub header: Header,
}

const _: () = assert!(size_of::<Packet>() == 56);

impl Packet {
    /// Placeholder where there is no packet.
    pub const NONE: Self = Self {
        stamp: Stamp([0.0; 3]),
        sent_at: Time::ZERO,
        flow: 0,
        seq: 0,
        next: 0,
        sack: NO_SACK,
        size: 0,
        generation: 0,
        bits: 0,
        flags: 0,
        header: Header::Plain,
    };

    /// Whether the packet belongs into an L4S queue: ECT(1), or already marked (RFC 9331 section 5.1).
    #[inline]
    #[must_use]
    pub fn is_l4s(&self) -> bool {
        self.flags & DATA != 0 && self.flags & (L4S | CONGESTED) != 0
    }

    /// Whether it is a SCONE packet.
    #[cfg(feature = "full")]
    #[must_use]
    pub fn is_advice(&self) -> bool {
        self.flags & (DATA | CONTROL | ADVICE) == DATA | CONTROL | ADVICE
    }

    /// Identifier of the flow: slot and generation.
    #[inline]
    #[must_use]
    pub fn flow_id(&self) -> u64 {
        flow_id(self.flow, self.generation)
    }
}

/// Identifier of a flow among all that use the same slot.
#[inline]
#[must_use]
pub fn flow_id(slot: u32, generation: u16) -> u64 {
    u64::from(slot) << 16 | u64::from(generation)
}

/// The packet carries data, or travels in that direction; otherwise it is an ack or an answer.
pub const DATA: u8 = 1;
/// ECN-capable transport.
pub const ECN_CAPABLE: u8 = 2;
/// Congestion experienced.
pub const CONGESTED: u8 = 4;
/// An ack's ECN echo.
pub const ECN_ECHO: u8 = 8;
/// L4S packet, ECT(1). Only packets with data use this bit, which is [`ECN_ECHO`] in acks.
pub const L4S: u8 = 8;
/// Congestion window reduced.
pub const REDUCED: u8 = 16;
/// Request of the receiver for a response. Only packets without data use this bit, which is [`REDUCED`] in others.
pub const REQUEST: u8 = 16;

/// The packet carries no data and asks for an answer, or is that answer: a SYN, a FIN or a probe.
pub const CONTROL: u8 = 32;
/// SCONE packet, whose bits are the rate signal. Only packets with [`DATA`] and [`CONTROL`] use this bit.
#[cfg(feature = "full")]
pub const ADVICE: u8 = 16;

/// The packet opens a flow.
pub const SYN: u8 = 64;
/// The packet ends a flow.
pub const FIN: u8 = 128;

/// No selective acks.
pub const NO_SACK: u32 = u32::MAX;

/// Labels of flows by slot. Few networks have any, so they are not in the packets.
#[derive(Clone, Debug, Default)]
pub struct Labels(Vec<u8>);

impl Labels {
    /// Number of possible labels, from 0 on.
    pub const COUNT: usize = 8;

    /// Sets the label of the flow in `slot`.
    pub fn set(&mut self, slot: u32, label: u8) {
        let slot = slot as usize;
        if slot >= self.0.len() {
            self.0.resize(slot + 1, 0);
        }
        self.0[slot] = label;
    }

    /// The label of the flow in `slot`.
    #[must_use]
    pub fn of(&self, slot: u32) -> u8 {
        self.0.get(slot as usize).copied().unwrap_or(0)
    }
}

/// Data for which packets have no room: selective acks in flight, which few packets carry, and labels of flows.
#[derive(Clone, Debug, Default)]
pub struct SackPool {
    blocks: Vec<SackBlocks>,
    free: Vec<u32>,
    /// Labels of flows, where a link has classes by label.
    pub labels: Labels,
}

impl SackPool {
    /// Keeps `blocks` until released.
    pub fn put(&mut self, blocks: SackBlocks) -> u32 {
        if blocks.as_slice().is_empty() {
            return NO_SACK;
        }
        if let Some(at) = self.free.pop() {
            self.blocks[at as usize] = blocks;
            return at;
        }
        self.blocks.push(blocks);
        (self.blocks.len() - 1) as u32
    }

    /// The blocks kept under `at`.
    #[must_use]
    pub fn get(&self, at: u32) -> SackBlocks {
        if at == NO_SACK { SackBlocks::default() } else { self.blocks[at as usize] }
    }

    /// Keeps a copy of the blocks under `at`, for a packet that is copied.
    pub fn copy(&mut self, at: u32) -> u32 {
        self.put(self.get(at))
    }

    /// Number of entries in use.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        (self.blocks.len() - self.free.len()) as u64
    }

    /// Releases the entry `at`.
    pub fn release(&mut self, at: u32) {
        if at != NO_SACK {
            self.free.push(at);
        }
    }
}
