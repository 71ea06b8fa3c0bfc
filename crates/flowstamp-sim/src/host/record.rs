//! What remains of a flow for the results.

use super::Flow;
use flowstamp_laws::sender::SenderLaw;
use flowstamp_laws::units::Time;
use std::num::NonZeroU64;

/// What the results say of a flow, and is known when it begins or arrives.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its group.
    pub group: u32,
    /// Number within the group.
    pub index: u32,
    /// When it started.
    pub start: Time,
    /// When its last byte arrived; [`Time::MAX`] if it has not.
    pub end: Time,
    /// What it was to transfer.
    pub size: Option<NonZeroU64>,
    /// Where its data go: the beginning of its route.
    pub route: u32,
    /// What it had done by the end of warm-up.
    pub at_warmup: Done,
}

/// What a flow has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Unique bytes of payload delivered.
    pub delivered_bytes: u64,
    /// Packets sent again.
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
    /// Of a flow that has not delivered anything.
    pub(super) fn new(group: u32, index: u32, start: Time, size: Option<u64>) -> Self {
        let size = size.and_then(NonZeroU64::new);
        Self { group, index, start, end: Time::MAX, size, route: u32::MAX, at_warmup: Done::default() }
    }
}

/// What else they say: known of a flow that is over, or when the run is.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// What it has done.
    pub done: Done,
    /// When all of it was acknowledged at the sender; [`Time::MAX`] if it was not.
    pub acknowledged: Time,
    /// Least RTT sample.
    pub min_rtt: Time,
    /// Last smoothed RTT.
    pub srtt: Time,
    /// When the flow gave up its protocol; [`Time::MAX`] if it did not.
    pub switched: Time,
}

impl Outcome {
    /// Of a flow of which nothing is known.
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
