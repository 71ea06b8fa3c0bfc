//! Packets of one class that wait.

use super::laws::Backlog;
use crate::packet::{ECN_CAPABLE, Packet};
use flowstamp_laws::queue::Verdict;
use flowstamp_laws::queue::fq_codel::{FqCodel, Waits};
use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// A packet, and since when it waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub(super) since: Time,
    pub(super) packet: Packet,
}

impl Waits for Waiting {
    fn size(&self) -> u32 {
        u32::from(self.packet.size)
    }
    fn since(&self) -> Time {
        self.since
    }
    fn ecn_capable(&self) -> bool {
        self.packet.flags & ECN_CAPABLE != 0
    }
}

/// In which order packets of one class go.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// As they came.
    Arrival(VecDeque<Waiting>),
    /// By their flows.
    Flows(Box<FqCodel<Waiting>>),
}

/// What waits of one class.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub order: Order,
    pub backlog: Backlog,
}

impl Queue {
    /// The size of the packet that is next. Who that is among flows is known as it leaves: a scheduler that looks at sizes cannot serve them.
    pub fn head(&self) -> Option<u32> {
        match &self.order {
            Order::Arrival(packets) => packets.front().map(|w| u32::from(w.packet.size)),
            Order::Flows(_) => (self.backlog.packets > 0).then_some(0),
        }
    }

    /// Takes the packet that is next; and what becomes of it, where that goes by flows.
    pub fn take(&mut self, now: Time) -> Option<(Waiting, Option<Verdict>)> {
        let (waiting, verdict) = match &mut self.order {
            Order::Arrival(packets) => (packets.pop_front()?, None),
            Order::Flows(flows) => {
                let (waiting, verdict) = flows.dequeue(now)?;
                (waiting, Some(verdict))
            }
        };
        self.backlog.take(waiting.packet.size);
        Some((waiting, verdict))
    }

    /// Bytes of the longest flow.
    pub fn longest_bytes(&self) -> u64 {
        match &self.order {
            Order::Arrival(_) => self.backlog.bytes,
            Order::Flows(flows) => flows.longest_bytes(),
        }
    }
}
