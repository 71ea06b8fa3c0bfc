//! Records of flows for the results.

use super::Flow;
use flowstamp_laws::sender::SenderLaw;
use flowstamp_laws::units::Time;
use std::num::NonZeroU64;

/// The part of a flow's results that is known when it begins or arrives.
#[derive(Clone, Debug)]
pub struct Record {
    /// Index of the group.
    pub group: u32,
    /// Number within the group.
    pub index: u32,
    /// When the flow started.
    pub start: Time,
    /// When the last byte arrived; [`Time::MAX`] if it has not.
    pub end: Time,
    /// Bytes to transfer; `None` for endless.
    pub size: Option<NonZeroU64>,
    /// Start of the data route; `u32::MAX` if none is assigned.
    pub route: u32,
    /// Counts at the end of warm-up.
    pub at_warmup: Done,
}

/// Counts of a flow so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Unique bytes of payload delivered.
    pub delivered_bytes: u64,
    /// Packets retransmitted.
    pub retransmissions: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
}

impl Done {
    pub(super) fn of(flow: &Flow) -> Self {
        Self {
            delivered_bytes: flow.delivered_bytes,
            retransmissions: flow.sender.retransmissions(),
            timeouts: flow.sender.timeouts(),
        }
    }
}

#[cfg(feature = "full")]
impl Done {
    /// Returns the counts at `now`, as if they had grown evenly from `start` to `end`.
    pub fn by(self, start: Time, now: Time, end: Time) -> Self {
        let passed = now.min(end).saturating_sub(start).as_secs_f64();
        let part = passed / end.saturating_sub(start).as_secs_f64().max(f64::MIN_POSITIVE);
        let of = |count: u32| (f64::from(count) * part.min(1.0)) as u32;
        Self {
            delivered_bytes: (self.delivered_bytes as f64 * part.min(1.0)) as u64,
            retransmissions: of(self.retransmissions),
            timeouts: of(self.timeouts),
        }
    }
}

impl Record {
    /// Record of a flow that has delivered nothing yet.
    pub(crate) fn new(group: u32, index: u32, start: Time, size: Option<u64>) -> Self {
        let size = size.and_then(NonZeroU64::new);
        Self { group, index, start, end: Time::MAX, size, route: u32::MAX, at_warmup: Done::default() }
    }
}

/// The part of a flow's results that is known when it or the run is over.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Final counts.
    pub done: Done,
    /// When all data were acknowledged at the sender; [`Time::MAX`] if they were not.
    pub acknowledged: Time,
    /// Minimum RTT sample.
    pub min_rtt: Time,
    /// Last smoothed RTT.
    pub srtt: Time,
    /// When the flow fell back from its protocol; [`Time::MAX`] if it did not.
    pub switched: Time,
}

impl Outcome {
    /// Outcome of a flow of which nothing is known.
    pub(crate) const NONE: Self = Self {
        done: Done { delivered_bytes: 0, retransmissions: 0, timeouts: 0 },
        acknowledged: Time::MAX,
        min_rtt: Time::ZERO,
        srtt: Time::ZERO,
        switched: Time::MAX,
    };

    pub(super) fn of(flow: &Flow, acknowledged: Time) -> Self {
        Self {
            done: Done::of(flow),
            acknowledged,
            min_rtt: flow.sender.min_rtt(),
            srtt: flow.sender.srtt(),
            switched: flow.law.report().fallen_back.unwrap_or(Time::MAX),
        }
    }
}

impl super::Hosts {
    /// Writes the outcome of a flow. All its data were acknowledged at `acknowledged` or earlier.
    pub(super) fn write_outcome(&mut self, number: u32, acknowledged: Time) {
        let flow = &self.flows[number as usize];
        let record = flow.record as usize;
        if record >= self.outcomes.len() {
            self.outcomes.resize(record + 1, Outcome::NONE);
        }
        let acknowledged = self.outcomes[record].acknowledged.min(acknowledged);
        self.outcomes[record] = Outcome::of(flow, acknowledged);
    }

    /// Outcome of the flow with this record; `Outcome::NONE` if none is written.
    #[must_use]
    pub fn outcome(&self, record: usize) -> Outcome {
        self.outcomes.get(record).copied().unwrap_or(Outcome::NONE)
    }

    /// Ends the run: writes the outcomes of the flows that still exist, and frees their memory.
    pub fn end(&mut self) {
        for number in 0..self.flows.len() as u32 {
            let flow = &self.flows[number as usize];
            if flow.started || !self.groups[flow.group as usize].arriving {
                self.write_outcome(number, Time::MAX);
            }
        }
        self.flows = Vec::new();
    }
}

#[cfg(feature = "full")]
impl super::Hosts {
    /// Replaces all flows by flows with these outcomes, in a run to `end` whose warm-up ended at `warmup`.
    pub fn replace(&mut self, records: Vec<Record>, outcomes: Vec<Outcome>, warmup: Time, end: Time) {
        let mut changes = Vec::new();
        for (record, outcome) in records.iter().zip(&outcomes).filter(|(record, _)| record.route != u32::MAX)
        {
            let group = &mut self.groups[record.group as usize];
            group.flows += 1;
            group.delivered_bytes += outcome.done.delivered_bytes;
            group.delivered_at_warmup += record.at_warmup.delivered_bytes;
            changes.push((record.start, false, record.group));
            changes.extend((record.end <= end).then_some((record.end, true, record.group)));
        }
        changes.sort_unstable();
        let before = changes.partition_point(|(at, ..)| *at <= warmup);
        self.count_active(&changes[..before]);
        for group in &mut self.groups {
            group.active.restart(warmup);
        }
        self.count_active(&changes[before..]);
        (self.flows, self.records, self.outcomes) = (Vec::new(), records, outcomes);
    }

    /// Counts the active flows of groups. At each of these times, a flow of a group begins or ends.
    fn count_active(&mut self, changes: &[(Time, bool, u32)]) {
        for (at, ends, group) in changes {
            let active = &mut self.groups[*group as usize].active;
            if *ends { active.end(*at) } else { active.begin(*at) }
        }
    }
}
