//! Drop and mark decisions of an output queue.

pub mod droptail;
pub mod red;

use crate::Refused;
use crate::units::{Rate, Time};

/// How much may wait in a queue, without the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most so many bytes.
    Bytes(u64),
    /// At most so many packets, whatever their size.
    Packets(u32),
}

/// What a queue law is told about its link when it is made.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// The buffer.
    pub limit: Limit,
    /// The link's capacity.
    pub capacity: Rate,
    /// Typical packet size in bytes, to turn packets into bytes and transmission times.
    pub mean_packet_bytes: u32,
}

/// A packet that reached the queue, and the queue as it found it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Now.
    pub now: Time,
    /// The packet's size in bytes.
    pub size: u32,
    /// Bytes that wait already.
    pub queue_bytes: u64,
    /// Packets that wait already.
    pub queue_packets: u32,
    /// The packet may be marked instead of dropped (ECN-capable transport).
    pub ecn_capable: bool,
    /// Since when the link has had nothing to send; `None` if it is sending.
    pub idle_since: Option<Time>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It joins the queue.
    Enqueue,
    /// It joins the queue with its congestion-experienced mark set.
    Mark,
    /// It is lost.
    Drop,
}

/// Decides each arriving packet's fate. It has no clock; its randomness is passed in.
pub trait QueueLaw: Sized {
    /// What the scenario may set.
    type Params: Default;

    /// Whether the parameters make sense; else the parameter, and what would be right.
    ///
    /// # Errors
    /// The first parameter that does not.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// A queue law at rest.
    fn new(params: &Self::Params, view: &QueueView) -> Self;

    /// A packet arrived; `uniform` draws from `[0, 1)`.
    fn on_arrival(&mut self, arrival: &Arrival, uniform: impl FnMut() -> f64) -> Verdict;

    /// Calls `report` with each variable's name and value, for probes.
    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let _ = report;
    }
}

impl Arrival {
    /// Whether the buffer has room for it, or it need not wait: a link that is idle takes it at once.
    #[must_use]
    pub fn fits(&self, limit: Limit) -> bool {
        self.idle_since.is_some() || limit.admits(self.queue_bytes, self.queue_packets, self.size)
    }
}

impl Limit {
    /// Whether a packet of `size` bytes still fits.
    #[must_use]
    pub fn admits(self, queue_bytes: u64, queue_packets: u32, size: u32) -> bool {
        match self {
            Self::Bytes(max) => queue_bytes + u64::from(size) <= max,
            Self::Packets(max) => queue_packets < max,
        }
    }
}
