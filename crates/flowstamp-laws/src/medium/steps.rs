//! Rates from instants on.

use crate::units::{Rate, Time};

/// Rates from instants on.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: Vec<(Time, Rate)>,
    /// The step that the last transmission ended in; starts never go back, so nor does this.
    at: usize,
}

impl Steps {
    /// From a list whose first instant is zero and whose instants rise.
    #[must_use]
    pub fn new(steps: Vec<(Time, Rate)>) -> Self {
        Self { steps, at: 0 }
    }

    /// When the transmission of `size` bytes ends that can begin at `start`.
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
