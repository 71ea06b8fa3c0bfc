//! A look at the earliest event, which stays.

use super::{BUCKETS, EventQueue};
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
        let mut slot = self.next_slot();
        if self.far_bucket <= self.current {
            self.fetch();
            slot = (self.current % BUCKETS) as usize;
        }
        Some(Time::from_ps(self.nodes[self.buckets[slot].first as usize].time))
    }
}
