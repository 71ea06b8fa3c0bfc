//! Propagation delays that vary over time.

use flowstamp_laws::units::Time;

/// A propagation delay over time.
#[derive(Clone, Debug, PartialEq)]
pub struct VaryingDelay {
    /// Times and the delay from then on. The first time is zero, and times increase.
    pub entries: Vec<(Time, Time)>,
    /// The entries repeat after this time.
    pub period: Option<Time>,
    /// The delay changes linearly from entry to entry.
    pub interpolate: bool,
}

impl VaryingDelay {
    /// The delay of a packet that leaves the transmitter at `time`.
    #[must_use]
    pub fn at(&self, time: Time) -> Time {
        let time = self.period.map_or(time, |period| Time::from_ps(time.as_ps() % period.as_ps()));
        let next = self.entries.partition_point(|(from, _)| *from <= time);
        let Some((from, before)) = next.checked_sub(1).and_then(|at| self.entries.get(at)).copied() else {
            return Time::ZERO;
        };
        match self.entries.get(next).copied() {
            Some((to, after)) if self.interpolate => {
                let part = |ps: u64, of: Time| u128::from(ps) * u128::from(of.as_ps());
                let (passed, left) = ((time - from).as_ps(), (to - time).as_ps());
                let sum = part(passed, after) + part(left, before);
                Time::from_ps((sum / u128::from((to - from).as_ps())) as u64)
            }
            _ => before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_stepped_or_interpolated_and_repeats() {
        let ms = Time::from_millis;
        let entries = vec![(ms(0), ms(20)), (ms(100), ms(40)), (ms(300), ms(10))];
        let mut delay = VaryingDelay { entries, period: None, interpolate: false };
        let at = |delay: &VaryingDelay, t: &[u64]| t.iter().map(|t| delay.at(ms(*t))).collect::<Vec<_>>();
        assert_eq!(at(&delay, &[0, 99, 100, 299, 300, 999]), [20, 20, 40, 40, 10, 10].map(ms));
        delay.interpolate = true;
        assert_eq!(at(&delay, &[0, 50, 100, 200, 300, 999]), [20, 30, 40, 25, 10, 10].map(ms));
        delay.period = Some(ms(300));
        assert_eq!(
            at(&delay, &[0, 200, 299, 300, 350, 500]),
            [20_000, 25_000, 10_150, 20_000, 30_000, 25_000].map(Time::from_micros)
        );
    }
}
