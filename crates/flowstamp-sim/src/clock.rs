//! The only clock: measures wall and CPU time of a run. Without the feature `clock` all times are 0.

use std::time::Duration;
#[cfg(feature = "clock")]
use std::time::Instant;

/// Wall and CPU time since a start.
#[derive(Debug)]
pub struct Clock {
    #[cfg(feature = "clock")]
    wall: Instant,
    #[cfg(feature = "clock")]
    cpu: cpu_time::ThreadTime,
}

#[cfg(feature = "clock")]
impl Clock {
    /// Starts the clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "the speed of a run is reported, and nothing else depends on it"
    )]
    #[must_use]
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_time::ThreadTime::now() }
    }

    /// Wall time and this thread's CPU time since the start. Call it on the thread that started the clock.
    #[must_use]
    pub fn elapsed(&self) -> (Duration, Duration) {
        (self.wall.elapsed(), self.cpu.elapsed())
    }
}

#[cfg(not(feature = "clock"))]
impl Clock {
    /// Does nothing.
    #[must_use]
    pub fn start() -> Self {
        Self {}
    }

    /// Zero.
    #[must_use]
    pub fn elapsed(&self) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }
}
