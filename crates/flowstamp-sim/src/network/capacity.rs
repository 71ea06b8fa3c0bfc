//! Rates, traces and buffers of links.

use super::{Builder, FASTEST, Result, error, plausible, positive};
use crate::ScenarioError;
use crate::medium::{Capacity, Trace};
use crate::scenario::{Buffer, LinkRate};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::QueueSpec;
use flowstamp_laws::units::{Rate, Time};
use std::path::Path;

/// What a link of `rate` can carry for `duration`, where `text` is what is in the file that it names; `key` is what to call it.
///
/// # Errors
/// The key, its value, and what would be right.
pub fn capacity_of(
    key: &str,
    rate: &LinkRate,
    duration: Time,
    text: impl FnOnce(&Path) -> String,
) -> Result<Capacity> {
    match rate {
        LinkRate::Constant(r) => {
            positive(key, *r)?;
            Ok(Capacity::Constant(*r))
        }
        LinkRate::Varying(v) => match (&v.steps, &v.trace) {
            (Some(steps), None) => {
                let key = format!("{key}.steps");
                if steps.first().is_none_or(|(t, _)| *t != Time::ZERO) {
                    return error(key, "must start with an entry at \"0s\"");
                }
                if steps.windows(2).any(|w| w[1].0 <= w[0].0) {
                    return error(key, "must be in rising order of time");
                }
                if let Some((at, rate)) = steps.iter().find(|(_, r)| r.bps() > 0.0 && !plausible(*r)) {
                    return error(key, format!("has {rate} at {at}; a rate is 0bps, or 1bps to {FASTEST}"));
                }
                if steps.iter().all(|(_, r)| r.bps() == 0.0)
                    || steps.last().is_some_and(|(_, r)| r.bps() == 0.0)
                {
                    return error(key, "ends with a rate of zero; the last rate must be above 0bps");
                }
                Ok(Capacity::Steps(steps.clone()))
            }
            (None, Some(path)) => {
                let key = format!("{key}.trace");
                if v.capacity_window < Time::from_millis(1) {
                    let message = format!("is {}; it must be 1ms or longer", v.capacity_window);
                    return error(key.replace(".trace", ".capacity_window"), message);
                }
                let trace = parse_trace(&text(path))
                    .map_err(|m| ScenarioError::new(key.clone(), format!("\"{}\": {m}", path.display())))?;
                if trace.capacity_bytes(Time::ZERO, duration) == 0.0 {
                    let message = format!("\"{}\" has nothing before duration, {duration}", path.display());
                    return error(key, message);
                }
                Ok(Capacity::Trace(Box::new(trace), v.capacity_window))
            }
            _ => error(key, "needs exactly one of `steps` and `trace`"),
        },
    }
}

impl Builder<'_> {
    pub(super) fn capacity(&self, key: &str, rate: &LinkRate) -> Result<Capacity> {
        capacity_of(key, rate, self.scenario.duration, |path| {
            self.loaded.files.get(path).cloned().unwrap_or_default()
        })
    }

    pub(super) fn mean_rate(&self, capacity: &Capacity) -> Rate {
        capacity.mean(Time::ZERO, self.scenario.duration)
    }

    /// The buffer before a link: the shaper's own where it has one, and else `buffer` at the rate at which packets leave.
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
                // A buffer of less than a packet would pass nothing that has to wait.
                Some(rtt) if f > 0.0 => Limit::Bytes((f * rate.bytes_in(rtt)).max(packet) as u64),
                Some(_) => Limit::Bytes(0),
                None => return error(key, "is in BDP, but no round-trip time is known here"),
            },
        })
    }
}

/// Reads a trace in Mahimahi's format: milliseconds, one per line, never falling.
fn parse_trace(text: &str) -> std::result::Result<Trace, String> {
    let mut lines = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let ms: u64 = line.trim().parse().map_err(|_| {
            format!("line {}: \"{}\" is not a whole number of milliseconds", n + 1, line.trim())
        })?;
        if lines.last().is_some_and(|last| ms < *last) {
            return Err(format!("line {}: {ms} is before the line above; times must not fall", n + 1));
        }
        lines.push(ms);
    }
    match lines.last() {
        None => Err("has no lines; one number of milliseconds is expected per line".to_owned()),
        Some(0) => Err("ends at 0 ms; the last time is the period and must be later".to_owned()),
        Some(_) => Ok(Trace::new(&lines)),
    }
}
