//! Reads the time of the earliest event without removing it.

use super::EventQueue;
use flowstamp_laws::units::Time;

impl EventQueue {
    /// The time of the earliest event.
    pub fn next_time(&mut self) -> Option<Time> {
        if self.in_wheel == 0 {
            if let Some(many) = &mut self.many {
                return many.next_time();
            }
            if !self.refill() {
                return None;
            }
        }
        let slot = self.first_slot();
        Some(Time::from_ps(self.nodes[self.buckets[slot].first as usize].time))
    }
}
