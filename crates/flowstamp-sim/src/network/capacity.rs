//! Capacities and buffers of links.

use super::{Builder, Result, error};
use crate::medium::Capacity;
use crate::scenario::{Buffer, LinkRate};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::QueueSpec;
use flowstamp_laws::units::{Rate, Time};
use std::path::Path;

impl Builder<'_> {
    pub(super) fn capacity(&self, key: &str, rate: &LinkRate) -> Result<Capacity> {
        let text = |path: &Path| self.loaded.files.get(path).cloned().unwrap_or_default();
        rate.capacity(key, self.scenario.duration, text)
    }

    pub(super) fn mean_rate(&self, capacity: &Capacity) -> Rate {
        capacity.mean(Time::ZERO, self.scenario.duration)
    }

    /// The buffer of a link: the shaper's own if it has one, otherwise `buffer` at the rate at which packets leave.
    pub(super) fn limit(
        &self,
        key: &str,
        buffer: Buffer,
        rate: Rate,
        rtt: Option<Time>,
        queue: &QueueSpec,
    ) -> Result<Limit> {
        let shaper = queue.shaper();
        if let Some(limit) = shaper.and_then(|shaper| shaper.own_limit(self.scenario.packet)) {
            return Ok(limit);
        }
        let rate = shaper.map_or(rate, |shaper| Rate::from_bps(rate.bps().min(shaper.rate.bps())));
        let packet = self.scenario.packet.as_f64();
        Ok(match buffer {
            Buffer::Packets(n) => Limit::Packets(n),
            Buffer::Bytes(b) => Limit::Bytes(b.get()),
            Buffer::Time(t) => Limit::Bytes(rate.bytes_in(t) as u64),
            Buffer::Bdp(f) => match rtt {
                // A buffer of less than a packet would drop every packet that has to wait.
                Some(rtt) if f > 0.0 => Limit::Bytes((f * rate.bytes_in(rtt)).max(packet) as u64),
                Some(_) => Limit::Bytes(0),
                None => return error(key, "is in BDP, but no round-trip time is known here"),
            },
        })
    }
}
