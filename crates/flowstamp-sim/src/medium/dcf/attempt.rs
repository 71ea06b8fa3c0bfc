//! The end of an attempt: its counts, the next backoff, and the retry limits.

use super::air::Exchange;
use super::{Cell, Happened};
use flowstamp_laws::units::Time;
use flowstamp_scenario::wireless::Rules;

impl Cell {
    /// Counts an attempt of a station. `sent` gives the time spent sending.
    pub(super) fn attempt(&mut self, station: u32, sent: impl Fn(&Exchange) -> Time) -> Exchange {
        let exchange = self.exchange(station);
        let s = &mut self.stations[station as usize];
        s.stats.attempts += 1;
        s.stats.retries += u64::from(s.short + s.long > 0);
        s.stats.airtime += sent(&exchange);
        exchange
    }

    /// Handles a failed attempt. `announced`: the data frame failed after a successful RTS.
    pub(super) fn fail<const S: bool>(
        &mut self,
        now: Time,
        station: u32,
        announced: bool,
        uniform: &mut impl FnMut(u32) -> f64,
        told: &mut impl FnMut(Happened),
    ) {
        if S && self.aggregates() {
            self.batch_ends(now, station, (false, announced), told);
            return self.draw(station, uniform);
        }
        let s = &mut self.stations[station as usize];
        if announced {
            s.long += 1;
            if self.rules == Rules::Ns2 {
                s.short = 0;
            }
        } else {
            s.short += 1;
        }
        if s.short < self.short_limit && s.long < self.long_limit {
            s.cw = (2 * s.cw + 1).min(self.cw_max);
            self.draw(station, uniform);
        } else {
            self.done(now, station, false, told);
            if self.rules == Rules::Standard {
                self.draw(station, uniform);
            }
        }
    }

    pub(super) fn done(&mut self, now: Time, station: u32, sent: bool, told: &mut impl FnMut(Happened)) {
        let s = &mut self.stations[station as usize];
        let since = s.waiting.take().map_or(now, |w| w.since);
        s.stats.delay += now - since;
        s.stats.sent += u64::from(sent);
        s.stats.given_up += u64::from(!sent);
        s.cw = self.cw_min;
        s.short = 0;
        s.long = 0;
        s.freed = now;
        told(Happened::Free { station, sent });
    }
}
