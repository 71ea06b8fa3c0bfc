//! Upper bound of the memory of messages that applications have produced.

use super::super::Builder;
use super::GROWTH;
use crate::host::{MESSAGE_BYTES, MOST_FRAMES, WAITING_BYTES};
use crate::scenario::{FlowGroup, Jitter, Pattern};
use flowstamp_laws::units::Time;

impl Builder<'_> {
    /// Maximum messages per second of a group's application, and packets per message.
    pub(super) fn most(&self, group: &FlowGroup) -> Option<(f64, f64)> {
        Some(self.process(group).ok()??.most())
    }

    /// Memory of messages at the ends of these flows, bytes: all messages of flows with a window, or as many frames as
    /// are tracked.
    pub(super) fn messages(&self, group: &FlowGroup, flows: f64) -> f64 {
        if group.is_collective() {
            // In a ring, no host is further ahead of another than the number of hosts.
            let unfinished = if group.pattern == Some(Pattern::RingAllReduce) { flows + 2.0 } else { 2.0 };
            return flows * GROWTH * MESSAGE_BYTES as f64 * unfinished;
        }
        let Some((per_s, _)) = self.most(group) else { return 0.0 };
        let all = per_s * self.scenario.duration.as_secs_f64() + 2.0;
        if !group.law.traits().datagrams {
            return if group.application.is_some() {
                flows * GROWTH * MESSAGE_BYTES as f64 * all
            } else {
                0.0
            };
        }
        let jitter = match group.jitter {
            Some(Jitter::UpTo(time)) => time,
            _ => group.transport.send_jitter.max(Time::from_millis(100)),
        };
        let waiting = all.min(per_s * jitter.as_secs_f64() + 2.0) * WAITING_BYTES as f64;
        flows * GROWTH * (all.min(MOST_FRAMES as f64) * MESSAGE_BYTES as f64 + waiting)
    }
}
