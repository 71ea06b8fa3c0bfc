//! Collective operations: hosts send their messages in steps, each of which waits for the step before it.
//!
//! ```text
//!   all-to-all        one step: each flow carries one message
//!   ring all-reduce   flow i goes from host i to host i + 1; when its message of step s has arrived, flow i + 1 sends
//!                     that of step s + 1
//! ```
//!
//! An operation ends when all messages of all steps have arrived. The next one begins after the gap.

use super::Hosts;
use crate::fabric::Fabric;
use crate::plan::CollectivePlan;
use flowstamp_laws::units::Time;

/// The collective operations of a group.
#[derive(Clone, Debug)]
pub struct Operations {
    /// The slot of the first flow. Slots of the others follow.
    first: u32,
    /// Messages of the current operation that have arrived, by flow.
    arrived: Vec<u32>,
    /// Messages of the current operation that have not arrived.
    left: u64,
    /// When each operation began and ended; [`Time::MAX`] if it has not ended.
    pub runs: Vec<(Time, Time)>,
}

impl Operations {
    /// Takes note that a flow produces the first message of an operation.
    pub(super) fn begin(&mut self, now: Time) {
        if self.runs.last().is_none_or(|(_, end)| *end < Time::MAX) {
            self.runs.push((now, Time::MAX));
        }
    }

    /// Counts a message that has arrived. Returns the flow that sends the next message because of it.
    fn count(&mut self, flow: usize, steps: u32) -> Option<u32> {
        self.left -= 1;
        self.arrived[flow] += 1;
        let next = (flow + 1) % self.arrived.len();
        (self.arrived[flow] < steps).then_some(self.first + next as u32)
    }

    /// Ends the current operation and prepares the next one.
    fn end(&mut self, now: Time, steps: u32) {
        if let Some((_, end)) = self.runs.last_mut() {
            *end = now;
        }
        self.arrived.fill(0);
        self.left = self.arrived.len() as u64 * u64::from(steps);
    }
}

impl Hosts {
    /// Adds a planned flow to the operations of its group.
    pub(super) fn join_operations(&mut self, slot: u32) {
        if !cfg!(feature = "full") {
            return;
        }
        let group = &mut self.groups[self.flows[slot as usize].group as usize];
        let Some(plan) = &group.plan.collective else { return };
        let new = || Box::new(Operations { first: slot, arrived: Vec::new(), left: 0, runs: Vec::new() });
        let operations = group.operations.get_or_insert_with(new);
        operations.arrived.push(0);
        operations.left += u64::from(plan.steps);
    }

    /// Handles messages of a collective operation that have just arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn messages_arrived(&mut self, net: &mut Fabric, number: u32, messages: u32) {
        let number_of_group = self.flows[number as usize].group as usize;
        for _ in 0..messages {
            let group = &mut self.groups[number_of_group];
            let (Some(plan), Some(operations)) = (&group.plan.collective, &mut group.operations) else {
                return;
            };
            let CollectivePlan { steps, operations: most, gap, .. } = *plan;
            let stopped = net.now >= group.stop;
            let next = operations.count((number - operations.first) as usize, steps);
            if operations.left == 0 {
                operations.end(net.now, steps);
                let (first, flows) = (operations.first, operations.arrived.len() as u32);
                if operations.runs.len() < most as usize {
                    let start = net.now.saturating_add(gap);
                    (first..first + flows).for_each(|flow| self.produce_at(net, flow, start));
                }
            } else if let Some(next) = next.filter(|_| !stopped) {
                self.produce_now(net, next);
            }
        }
    }
}
