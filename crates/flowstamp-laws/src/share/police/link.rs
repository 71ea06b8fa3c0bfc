//! State of a policed link: whether it drops packets continually, and the RTTs that its proven flows have stated.

use super::Params;
use crate::units::Time;

/// Period for checks of the link's drops, and the number of successive periods with drops after which the link is in
/// trouble.
const PERIOD: Time = Time::from_secs(1);
const TROUBLED_PERIODS: u32 = 2;
/// Length of a memory period, in retest intervals. RTTs of proven flows are kept for one to two periods.
const MEMORY: u64 = 2;

/// Detects that a link drops packets continually.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    since: Time,
    seen: u64,
    /// Periods with drops: in a row, and in total.
    row: u32,
    pub(super) all: u64,
}

impl Trouble {
    /// Reports that the link has dropped `drops` packets by now.
    pub fn look(&mut self, now: Time, drops: u64) {
        if now.saturating_sub(self.since) < PERIOD {
            return;
        }
        let bad = drops != self.seen;
        self.row = if bad { self.row.saturating_add(1) } else { 0 };
        self.all += u64::from(bad);
        self.seen = drops;
        self.since = now;
    }

    /// Whether the link is in trouble.
    #[must_use]
    pub fn lasts(&self) -> bool {
        self.row >= TROUBLED_PERIODS
    }
}

/// RTTs stated by proven flows, which bound the RTTs of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Witnesses {
    longest: Time,
    before: Time,
    until: Time,
}

impl Witnesses {
    /// Notes the RTT of a flow that has passed a test.
    pub fn passed(&mut self, params: &Params, now: Time, rtt: Time) {
        if now >= self.until {
            self.before = self.longest;
            self.longest = Time::ZERO;
            self.until = now.saturating_add(params.retest * MEMORY);
        }
        self.longest = self.longest.max(rtt);
    }

    /// The longest RTT kept; `None` before the first.
    #[must_use]
    pub fn longest(&self) -> Option<Time> {
        Some(self.longest.max(self.before)).filter(|rtt| *rtt > Time::ZERO)
    }
}
