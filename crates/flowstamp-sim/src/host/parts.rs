//! Flows whose two ends are in different parts of the network.
//!
//! Each part has a copy of all flows, and changes only the fields of the ends that it has.

use super::{Delays, Flow, Hosts};
use crate::parts::Threads;

impl Hosts {
    /// Notes that the senders of some flows are in other parts than `number`. Their receivers may run ahead as soon as
    /// packets come, and count at the end of warm-up.
    pub fn start_elsewhere(&mut self, number: usize, parts: &Threads) {
        for (slot, flow) in
            self.flows.iter_mut().enumerate().filter(|(slot, _)| parts.of_flow(*slot).0 != number)
        {
            debug_assert_eq!(flow.delivered_bytes, 0, "flow {slot} has begun");
            flow.application.cancel();
            flow.started = true;
        }
    }

    /// Takes over the state and the counts of part `number` of the network.
    pub fn take_over(&mut self, mut of: Self, number: usize, parts: &Threads) {
        for (here, there) in self.groups.iter_mut().zip(&of.groups) {
            here.delivered_bytes += there.delivered_bytes;
            here.delivered_at_warmup += there.delivered_at_warmup;
            here.tally.add(&there.tally);
        }
        for (here, there) in self.delays.iter_mut().zip(&of.delays) {
            *here = Delays::together([&*here, there]);
        }
        for slot in 0..self.flows.len() {
            let (sender, receiver) = parts.of_flow(slot);
            if receiver == number {
                self.take_receiver(&of, slot);
            }
            if sender == number {
                self.take_sender(&mut of, slot);
            }
        }
    }

    /// Takes the sending end of a flow.
    fn take_sender(&mut self, of: &mut Self, slot: usize) {
        let receiver = self.flows[slot].clone();
        std::mem::swap(&mut self.flows[slot], &mut of.flows[slot]);
        self.flows[slot].take_receiver(&receiver);
        let record = self.flows[slot].record as usize;
        let (here, there) = (&mut self.records[record].at_warmup, of.records[record].at_warmup);
        (here.retransmissions, here.timeouts) = (there.retransmissions, there.timeouts);
        if of.outcomes.len() > record {
            if self.outcomes.len() <= record {
                self.outcomes.resize(record + 1, super::Outcome::NONE);
            }
            self.outcomes[record] = of.outcomes[record];
        }
    }

    /// Takes the receiving end of a flow.
    fn take_receiver(&mut self, of: &Self, slot: usize) {
        self.flows[slot].take_receiver(&of.flows[slot]);
        let record = self.flows[slot].record as usize;
        self.records[record].end = of.records[record].end;
        self.records[record].at_warmup.delivered_bytes = of.records[record].at_warmup.delivered_bytes;
    }
}

impl Flow {
    fn take_receiver(&mut self, of: &Self) {
        self.receiver = of.receiver.clone();
        self.delivered_bytes = of.delivered_bytes;
        self.ack = of.ack;
    }
}
