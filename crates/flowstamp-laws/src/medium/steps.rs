//! Rates that change at given instants.

use crate::units::{Rate, Time};

/// Rates that change at given instants.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: Vec<(Time, Rate)>,
    /// Index of the step in which the last transmission ended. It never decreases, because starts do not.
    at: usize,
}

impl Steps {
    /// Creates a transmitter from a list of rising instants, of which the first is zero.
    #[must_use]
    pub fn new(steps: Vec<(Time, Rate)>) -> Self {
        Self { steps, at: 0 }
    }

    /// End of a transmission of `size` bytes that can begin at `start`.
    #[inline(never)]
    pub fn finish(&mut self, start: Time, size: u32) -> Time {
        let mut now = start;
        let mut bits = f64::from(size) * 8.0;
        loop {
            while self.steps.get(self.at + 1).is_some_and(|(t, _)| *t <= now) {
                self.at += 1;
            }
            let rate = self.steps[self.at].1.bps();
            let end = self.steps.get(self.at + 1).map_or(Time::MAX, |(t, _)| *t);
            let need = if rate > 0.0 { Time::from_secs_f64(bits / rate) } else { Time::MAX };
            let finish = now.saturating_add(need);
            if finish <= end {
                return finish;
            }
            bits -= (end - now).as_secs_f64() * rate;
            now = end;
        }
    }
}
