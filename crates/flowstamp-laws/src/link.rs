//! What laws of routers and of queues see of their link.

use crate::units::Time;

/// What a law may see of the link it governs, at one instant.
#[derive(Clone, Copy, Debug)]
pub struct LinkView {
    /// Now.
    pub now: Time,
    /// Bytes that wait, without the packet in transmission.
    pub queue_bytes: u64,
    /// Packets that wait, without the one in transmission.
    pub queue_packets: u32,
}
