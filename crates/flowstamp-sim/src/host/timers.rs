//! A timer that is set more often than it fires.

use crate::events::{Class, EventQueue, Source};
use flowstamp_laws::units::Time;

/// Remembers the earliest event pending for the timer. An event that was overtaken by an earlier one is not the
/// remembered one and does nothing. If an event fires before the current deadline, the caller arms the timer again.
#[derive(Clone, Copy, Debug)]
pub struct LazyTimer(Time);

impl LazyTimer {
    /// Nothing is pending.
    pub const IDLE: Self = Self(Time::MAX);

    /// Whether nothing is pending.
    #[inline]
    #[must_use]
    pub fn is_idle(self) -> bool {
        self.0 == Time::MAX
    }

    /// When the remembered event fires; [`Time::MAX`] if none is pending.
    #[inline]
    #[must_use]
    pub fn due(self) -> Time {
        self.0
    }

    /// Ensures that an event fires at or before `deadline`. [`Time::MAX`] means no deadline.
    #[inline]
    pub fn arm(&mut self, deadline: Time, events: &mut EventQueue, class: Class, number: u32) {
        if deadline < self.0 {
            self.set(deadline, events, class, number);
        }
    }

    /// Remembers an event at `time`, whatever was pending.
    #[inline]
    pub fn set(&mut self, time: Time, events: &mut EventQueue, class: Class, number: u32) {
        self.0 = time;
        events.push(time, Source::new(class, number));
    }

    /// Whether the event at `now` is the remembered one. If so, nothing is pending any more.
    #[inline]
    #[must_use]
    pub fn fires(&mut self, now: Time) -> bool {
        let due = self.0 == now;
        if due {
            self.0 = Time::MAX;
        }
        due
    }

    /// Forgets the pending event.
    #[inline]
    pub fn cancel(&mut self) {
        self.0 = Time::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a timer whose changes take effect at once: this one fires at each deadline that still stands
        /// when it comes, and at no other time.
        #[test]
        fn fires_when_the_deadline_comes(moves in prop::collection::vec((1u64..50, 0u64..200), 1..100)) {
            let mut events = EventQueue::default();
            let (mut timer, mut deadline) = (LazyTimer::IDLE, Time::MAX);
            let (mut fired, mut expected) = (Vec::new(), Vec::new());
            let mut now = Time::ZERO;
            for (gap, ahead) in moves.into_iter().chain([(1000, 0)]) {
                let until = now + Time::from_ps(gap);
                if deadline <= until {
                    expected.push(deadline);
                }
                while let Some((at, _)) = events.pop_until(until) {
                    if timer.fires(at) {
                        if deadline <= at {
                            fired.push(at);
                            deadline = Time::MAX;
                        }
                        timer.arm(deadline, &mut events, Class::Retransmit, 7);
                    }
                }
                now = until;
                deadline = now + Time::from_ps(ahead + 1);
                timer.arm(deadline, &mut events, Class::Retransmit, 7);
            }
            prop_assert_eq!(fired, expected);
        }
    }
}
