//! The queue of one class.

use super::laws::Backlog;
use crate::packet::{ECN_CAPABLE, Packet};
use flowstamp_laws::queue::Verdict;
use flowstamp_laws::queue::fq_codel::{FqCodel, Waits};
use flowstamp_laws::units::Time;
use std::collections::VecDeque;

/// A queued packet, and the time at which it was queued.
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

/// The order in which packets of one class leave.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// In the order of arrival.
    Arrival(VecDeque<Waiting>),
    /// By flow, as FQ-CoDel serves them.
    Flows(Box<FqCodel<Waiting>>),
}

/// The queue of one class.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub order: Order,
    pub backlog: Backlog,
}

impl Queue {
    /// Size of the next packet, bytes. With an order by flow it is 0, because the packet is chosen only when it leaves.
    /// Such a class therefore cannot have a scheduler that looks at sizes.
    pub fn head(&self) -> Option<u32> {
        match &self.order {
            Order::Arrival(packets) => packets.front().map(|w| u32::from(w.packet.size)),
            Order::Flows(_) => (self.backlog.packets > 0).then_some(0),
        }
    }

    /// Takes the next packet. With an order by flow it comes with FQ-CoDel's verdict.
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

    /// Bytes queued of the longest flow, or of the class where there is no order by flow.
    pub fn longest_bytes(&self) -> u64 {
        match &self.order {
            Order::Arrival(_) => self.backlog.bytes,
            Order::Flows(flows) => flows.longest_bytes(),
        }
    }
}
