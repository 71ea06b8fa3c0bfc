//! Flows whose two ends are in different parts of the network.
//!
//! Each part has a copy of all flows, and changes only the fields of the ends that it has.

use super::{Delays, Done, Flow, Hosts, Outcome};
use crate::fabric::Fabric;
use crate::parts::Threads;
use flowstamp_laws::units::Time;

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
    pub fn take_over(&mut self, mut of: Self, net: &Fabric, number: usize, parts: &Threads) {
        for (here, there) in self.groups.iter_mut().zip(&of.groups) {
            here.delivered_bytes += there.delivered_bytes;
            here.delivered_at_warmup += there.delivered_at_warmup;
            here.tally.add(&there.tally);
            here.active.add(&there.active);
        }
        for (here, there) in self.delays.iter_mut().zip(&of.delays) {
            *here = Delays::together([&*here, there]);
        }
        for slot in 0..self.flows.len() {
            let (sender, receiver) = self.threads(self.flows[slot].record as usize, net, parts);
            if receiver == number {
                self.flows[slot].take_receiver(&of.flows[slot]);
            }
            if sender == number {
                let receiver = self.flows[slot].clone();
                std::mem::swap(&mut self.flows[slot], &mut of.flows[slot]);
                self.flows[slot].take_receiver(&receiver);
            }
        }
        self.outcomes.resize(self.records.len(), Outcome::NONE);
        for record in 0..self.records.len() {
            if self.records[record].route == u32::MAX {
                continue;
            }
            let (sender, receiver) = self.threads(record, net, parts);
            let (here, there) = (&mut self.records[record], &of.records[record]);
            if receiver == number {
                here.end = there.end;
                here.at_warmup.delivered_bytes = there.at_warmup.delivered_bytes;
            }
            if sender == number {
                let Done { retransmissions, timeouts, .. } = there.at_warmup;
                here.at_warmup = Done { retransmissions, timeouts, ..here.at_warmup };
                self.outcomes[record] = of.outcome(record);
            }
            // The sender's thread does not know what has arrived.
            let outcome = &mut self.outcomes[record];
            if let Some(size) =
                self.records[record].size.filter(|_| sender != receiver && outcome.acknowledged < Time::MAX)
            {
                outcome.done.delivered_bytes = size.get();
            }
        }
    }

    /// The threads of the ends of a record's flow: sender and receiver.
    fn threads(&self, record: usize, net: &Fabric, parts: &Threads) -> (usize, usize) {
        parts.of_ends(net.ends(self.records[record].route))
    }
}

impl Flow {
    fn take_receiver(&mut self, of: &Self) {
        self.receiver = of.receiver.clone();
        self.delivered_bytes = of.delivered_bytes;
        self.ack = of.ack;
    }
}
