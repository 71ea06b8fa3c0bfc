//! The state of a link that priority flow control can stop, or whose packets are counted one by one for other links.
//!
//! A stopped link finishes the packet in transmission and then keeps its queue. Packets of the node itself, and those of
//! links without flow control, have the link's buffer. Packets of links with flow control have been admitted by
//! thresholds, and always have room.

use super::laws::Backlog;
use flowstamp_laws::queue::Limit;

/// The state of a link that may have to hold its packets.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    /// No transmission may begin.
    pub stopped: bool,
    /// The next packet is to be chosen when the link goes on.
    pub stalled: bool,
    /// The packet that arrives now was admitted by thresholds.
    pub announced: bool,
    /// Packets that wait and were admitted by thresholds.
    pub admitted: Backlog,
    /// Buffer of the others.
    pub limit: Limit,
}
