//! A timer that is set more often than it fires.

use crate::events::{Class, EventQueue, Source};
use flowstamp_laws::units::Time;

/// Remembers the earliest event that is pending for it. An event that was overtaken by an earlier one finds that it is
/// not the one remembered; whoever finds a later deadline when one fires sets the timer anew.
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

    /// When the event comes that counts; [`Time::MAX`] if nothing is pending.
    #[inline]
    #[must_use]
    pub fn due(self) -> Time {
        self.0
    }

    /// Sees to it that an event comes at `deadline`, or before. [`Time::MAX`] is no deadline.
    #[inline]
    pub fn arm(&mut self, deadline: Time, events: &mut EventQueue, class: Class, number: u32) {
        if deadline < self.0 {
            self.set(deadline, events, class, number);
        }
    }

    /// The next event that counts comes at `time`, whatever was pending.
    #[inline]
    pub fn set(&mut self, time: Time, events: &mut EventQueue, class: Class, number: u32) {
        self.0 = time;
        events.push(time, Source::new(class, number));
    }

    /// An event has come: whether it is the one that counts. If so, nothing is pending any more.
    #[inline]
    #[must_use]
    pub fn fires(&mut self, now: Time) -> bool {
        let due = self.0 == now;
        if due {
            self.0 = Time::MAX;
        }
        due
    }

    /// What is pending does not count any more.
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
        /// Against a timer whose every change counts at once: it fires at each deadline that stands when it comes, and at
        /// no other time.
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
