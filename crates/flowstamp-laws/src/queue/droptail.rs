//! First in, first out; what does not fit is lost.

use super::{Arrival, Limit, QueueLaw, QueueView, Verdict};
use crate::router::NoParams;

/// A queue that drops the packet that does not fit, and marks none.
#[derive(Clone, Copy, Debug)]
pub struct DropTail {
    limit: Limit,
}

impl QueueLaw for DropTail {
    type Params = NoParams;

    fn new(_: &NoParams, view: &QueueView) -> Self {
        Self { limit: view.limit }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _: impl FnMut() -> f64) -> Verdict {
        if arrival.fits(self.limit) { Verdict::Enqueue } else { Verdict::Drop }
    }
}
