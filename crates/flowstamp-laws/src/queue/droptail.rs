//! First in, first out: a packet that does not fit is dropped, or replaces those that have waited longest.

use super::{Arrival, Limit, QueueLaw, QueueView, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The packet that is dropped when the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Drop {
    /// The one that arrives.
    #[default]
    Tail,
    /// Those that have waited longest, until the one that arrives fits: Linux' `pfifo_head_drop`.
    Head,
}

/// Parameters that a scenario may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The packet that is dropped when the queue is full.
    #[serde(skip_serializing_if = "Params::is_tail")]
    pub drop: Drop,
}

impl Params {
    fn is_tail(drop: &Drop) -> bool {
        *drop == Drop::Tail
    }
}

/// A queue that drops packets that do not fit, and marks none. With [`Drop::Head`] it admits any packet that fits
/// into an empty buffer. The owner of the queue then drops packets at its head until the rest fits.
#[derive(Clone, Copy, Debug)]
pub struct DropTail {
    limit: Limit,
    drop: Drop,
}

impl QueueLaw for DropTail {
    type Params = Params;

    fn new(params: &Params, view: &QueueView) -> Self {
        Self { limit: view.limit, drop: params.drop }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _: impl FnMut() -> f64) -> Verdict {
        let fits =
            arrival.fits(self.limit) || self.drop == Drop::Head && self.limit.admits(0, 0, arrival.size);
        if fits { Verdict::Enqueue } else { Verdict::Drop }
    }
}
