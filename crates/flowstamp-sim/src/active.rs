//! Little's law, `E[N] = lambda E[T]` (Dukkipati 2007, section 4.1), for flows of a group that arrive during the run.
//!
//! `N` is counted during the run; `lambda` and `T` come from the flows when it is over. These are two ways to the same
//! number, so that a wrongly counted flow or a wrong completion time shows. Over a window of length `W`
//!
//! ```text
//!   W E[N] = sum of T over the flows completed in it - before + open
//! ```
//!
//! exactly, where `before` is how long these flows lasted before the window, and `open` how long the flows still active
//! at its end lasted within it. The law leaves both out: `(before + open) / W` bounds its error.

use crate::results::LittlesLaw;
use flowstamp_laws::units::Time;

/// Number of active flows, integrated over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ActiveFlows {
    count: i128,
    /// The integral up to time `t`, in flows times picoseconds, is `count * t + rest`. Flows may begin and end in any order.
    rest: i128,
}

impl ActiveFlows {
    pub fn begin(&mut self, now: Time) {
        self.count += 1;
        self.rest -= i128::from(now.as_ps());
    }

    pub fn end(&mut self, now: Time) {
        self.count -= 1;
        self.rest += i128::from(now.as_ps());
    }

    /// Adds the flows of another part of the network, counted from the same time.
    #[cfg(feature = "parallel")]
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.rest += other.rest;
    }

    /// Starts the window: forgets the integral, and keeps the count of active flows.
    pub fn restart(&mut self, now: Time) {
        self.rest = -self.count * i128::from(now.as_ps());
    }

    /// Evaluates Little's law over `from` to `to`. The count must have been restarted at `from`. `flows` are (start,
    /// end) pairs; [`Time::MAX`] is the end of a flow that has not ended. `None` if no flow was active.
    pub fn law(
        self,
        flows: impl Iterator<Item = (Time, Time)>,
        (from, to): (Time, Time),
    ) -> Option<LittlesLaw> {
        let integral = (self.count * i128::from(to.as_ps()) + self.rest).unsigned_abs();
        let (mut completed, mut total, mut before, mut open) = (0u64, 0u128, 0u128, 0u128);
        for (start, end) in flows.filter(|(start, end)| *start <= to && *end > from) {
            if end <= to {
                completed += 1;
                total += u128::from((end - start).as_ps());
                before += u128::from(from.saturating_sub(start).as_ps());
            } else {
                open += u128::from((to - start.max(from)).as_ps());
            }
        }
        if integral == 0 {
            return None;
        }
        let window_ps = (to - from).as_ps() as f64;
        let counted = integral as f64;
        Some(LittlesLaw {
            mean_active: counted / window_ps,
            completed_per_s: completed as f64 / window_ps * 1e12,
            mean_fct_s: if completed > 0 { total as f64 / completed as f64 / 1e12 } else { 0.0 },
            relative_difference: total.abs_diff(integral) as f64 / counted,
            edge_bound: (before + open) as f64 / counted,
            unaccounted: (total + open).abs_diff(integral + before) as f64 / counted,
        })
    }
}
