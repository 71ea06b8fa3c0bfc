//! The view of a link that router laws and queue laws share.

use crate::units::Time;

/// State of the link at one instant, as its law sees it.
#[derive(Clone, Copy, Debug)]
pub struct LinkView {
    /// Now.
    pub now: Time,
    /// Bytes in the queue, without the packet in transmission.
    pub queue_bytes: u64,
    /// Packets in the queue, without the one in transmission.
    pub queue_packets: u32,
}
