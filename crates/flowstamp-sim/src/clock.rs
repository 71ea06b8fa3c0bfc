//! The only clock: how long a run took.

use std::time::{Duration, Instant};

/// Wall and CPU time since a start.
#[derive(Debug)]
pub struct Clock {
    wall: Instant,
    cpu: cpu_time::ThreadTime,
}

impl Clock {
    /// Starts.
    #[expect(
        clippy::disallowed_methods,
        reason = "the speed of a run is reported, and nothing else depends on it"
    )]
    #[must_use]
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_time::ThreadTime::now() }
    }

    /// Wall-clock and this thread's CPU time since the start. Call on the thread that started it.
    #[must_use]
    pub fn elapsed(&self) -> (Duration, Duration) {
        (self.wall.elapsed(), self.cpu.elapsed())
    }
}
