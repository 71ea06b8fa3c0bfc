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

impl Record {
    /// Record of a flow that has delivered nothing yet.
    pub(super) fn new(group: u32, index: u32, start: Time, size: Option<u64>) -> Self {
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
    pub(super) const NONE: Self = Self {
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
