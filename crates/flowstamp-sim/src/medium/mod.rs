//! How long a packet's transmission takes: links of constant rate, of listed rates, and of recorded opportunities.

use flowstamp_laws::units::{PS_PER_SEC, Rate, Time};

/// Fraction bits of a transmission time per byte: rounding stays below a picosecond for packets up to 1 MB.
const FRACTION: u32 = 20;

/// Bytes that one line of a Mahimahi trace can carry.
const OPPORTUNITY_BYTES: u32 = 1500;

/// A link's transmitter.
#[derive(Clone, Debug)]
pub enum Service {
    /// A constant rate: picoseconds per byte with 20 fraction bits.
    Constant(u64),
    /// Rates from instants on.
    Steps(Box<Steps>),
    /// Recorded delivery opportunities.
    Trace(Box<Trace>),
}

/// Rates from instants on.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: Vec<(Time, Rate)>,
    /// The step that the last transmission ended in; starts never go back, so nor does this.
    at: usize,
}

/// Delivery opportunities, repeated for ever.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Instants of opportunities in one period.
    opportunities: Vec<Time>,
    /// After this the trace repeats.
    period: Time,
    /// The opportunity in use, counted over all repetitions, and what it can still carry.
    at: u64,
    left: u32,
}

impl Service {
    /// A transmitter of constant rate, which is above zero.
    #[must_use]
    pub fn constant(rate: Rate) -> Self {
        let ps_per_byte = 8.0 * PS_PER_SEC as f64 / rate.bps();
        Self::Constant((ps_per_byte * f64::from(1 << FRACTION) + 0.5) as u64)
    }

    /// When the transmission of `size` bytes ends that can begin at `start`. Starts never go back.
    #[inline]
    pub fn finish(&mut self, start: Time, size: u32) -> Time {
        match self {
            Self::Constant(per_byte) => {
                let ps = (u128::from(*per_byte) * u128::from(size)) >> FRACTION;
                start + Time::from_ps(ps as u64)
            }
            Self::Steps(steps) => steps.finish(start, size),
            Self::Trace(trace) => trace.finish(start, size),
        }
    }
}

impl Steps {
    /// From a list whose first instant is zero and whose instants rise.
    #[must_use]
    pub fn new(steps: Vec<(Time, Rate)>) -> Self {
        Self { steps, at: 0 }
    }

    fn finish(&mut self, start: Time, size: u32) -> Time {
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

impl Trace {
    /// From instants in milliseconds, one per opportunity, rising and not empty; the last is the period, as in
    /// Mahimahi, and above zero.
    #[must_use]
    pub fn new(milliseconds: &[u64]) -> Self {
        Self {
            opportunities: milliseconds.iter().map(|ms| Time::from_millis(*ms)).collect(),
            period: Time::from_millis(milliseconds.last().copied().unwrap_or(1).max(1)),
            at: 0,
            left: OPPORTUNITY_BYTES,
        }
    }

    /// When opportunity `k`, counted over all repetitions, comes.
    fn instant(&self, k: u64) -> Time {
        let n = self.opportunities.len() as u64;
        self.period * (k / n) + self.opportunities[(k % n) as usize]
    }

    fn finish(&mut self, start: Time, size: u32) -> Time {
        // What an opportunity could carry is lost to packets that come after it. A long idle time is skipped by
        // whole periods first.
        if self.instant(self.at) < start {
            let n = self.opportunities.len() as u64;
            let period = start.as_ps() / self.period.as_ps();
            let mut at = self.at.max(period.saturating_sub(1) * n);
            while self.instant(at) < start {
                at += 1;
            }
            self.at = at;
            self.left = OPPORTUNITY_BYTES;
        }
        let mut rest = size;
        while rest > self.left {
            rest -= self.left;
            self.at += 1;
            self.left = OPPORTUNITY_BYTES;
        }
        self.left -= rest;
        let finish = self.instant(self.at);
        if self.left == 0 {
            self.at += 1;
            self.left = OPPORTUNITY_BYTES;
        }
        finish
    }

    /// Bytes that could be carried in `(from, to]`.
    #[must_use]
    pub fn capacity_bytes(&self, from: Time, to: Time) -> f64 {
        (self.count(to) - self.count(from)) as f64 * f64::from(OPPORTUNITY_BYTES)
    }

    /// Opportunities up to and with `t`.
    fn count(&self, t: Time) -> u64 {
        let periods = t.as_ps() / self.period.as_ps();
        let rest = Time::from_ps(t.as_ps() % self.period.as_ps());
        let in_period = self.opportunities.partition_point(|o| *o <= rest) as u64;
        periods * self.opportunities.len() as u64 + in_period
    }
}

/// What a link could carry.
#[derive(Clone, Debug)]
pub enum Capacity {
    /// The same all the time.
    Constant(Rate),
    /// Rates from instants on.
    Steps(Vec<(Time, Rate)>),
    /// Recorded opportunities, and over how much of the past a router measures them.
    Trace(Box<Trace>, Time),
}

impl Capacity {
    /// Bytes that could be carried in `(from, to]`.
    #[must_use]
    pub fn bytes_between(&self, from: Time, to: Time) -> f64 {
        match self {
            Self::Constant(rate) => rate.bytes_in(to.saturating_sub(from)),
            Self::Steps(steps) => steps
                .iter()
                .enumerate()
                .map(|(i, (begin, rate))| {
                    let end = steps.get(i + 1).map_or(Time::MAX, |(t, _)| *t);
                    rate.bytes_in(end.min(to).saturating_sub((*begin).max(from)))
                })
                .sum(),
            Self::Trace(trace, _) => trace.capacity_bytes(from, to),
        }
    }

    /// The mean rate in `(from, to]`.
    #[must_use]
    pub fn mean(&self, from: Time, to: Time) -> Rate {
        match self {
            Self::Constant(rate) => *rate,
            _ if to <= from => self.mean(from, from.saturating_add(Time::from_ps(1))),
            _ => Rate::from_bytes_per_sec(self.bytes_between(from, to) / (to - from).as_secs_f64()),
        }
    }

    /// The transmitter.
    #[must_use]
    pub fn service(&self) -> Service {
        match self {
            Self::Constant(rate) => Service::constant(*rate),
            Self::Steps(steps) => Service::Steps(Box::new(Steps::new(steps.clone()))),
            Self::Trace(trace, _) => Service::Trace(trace.clone()),
        }
    }

    /// What a router knows of the capacity at `now`, and when to look again.
    #[must_use]
    pub fn known_at(&self, now: Time) -> (Rate, Option<Time>) {
        match self {
            Self::Constant(rate) => (*rate, None),
            Self::Steps(steps) => {
                let next = steps.partition_point(|(t, _)| *t <= now);
                (steps[next.saturating_sub(1)].1, steps.get(next).map(|(t, _)| *t))
            }
            Self::Trace(_, window) => {
                // Before the first window is full, the first window stands for the past.
                let end = now.max(*window);
                (self.mean(end - *window, end), Some(end + *window / 5))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_trace_carries_1500_bytes_per_line() {
        // Mahimahi's own example: one packet per millisecond is 12 Mb/s.
        let mut s = Capacity::Trace(Box::new(Trace::new(&[1])), Time::from_millis(100)).service();
        assert_eq!(s.finish(Time::ZERO, 1500), Time::from_millis(1));
        assert_eq!(s.finish(Time::from_millis(1), 1500), Time::from_millis(2));
        assert_eq!(s.finish(Time::from_millis(2), 3000), Time::from_millis(4));
        // Two half packets share an opportunity, a third waits.
        assert_eq!(s.finish(Time::from_millis(4), 750), Time::from_millis(5));
        assert_eq!(s.finish(Time::from_millis(5), 750), Time::from_millis(5));
        assert_eq!(s.finish(Time::from_millis(5), 750), Time::from_millis(6));
        // An opportunity that nobody waits for is lost.
        assert_eq!(s.finish(Time::from_ps(Time::from_secs(9).as_ps() + 1), 100), Time::from_millis(9001));
    }

    proptest! {
        #[test]
        fn steps_agree_with_the_capacity_they_use(
            rates in prop::collection::vec(1.0f64..1000.0, 1..6),
            gap_ms in 1u64..50,
            sizes in prop::collection::vec(40u32..3000, 1..60),
        ) {
            let list: Vec<_> = rates.iter().enumerate()
                .map(|(i, r)| (Time::from_millis(gap_ms * i as u64), Rate::from_mbps(*r))).collect();
            let capacity = Capacity::Steps(list);
            let mut service = capacity.service();
            let mut now = Time::ZERO;
            for size in sizes {
                let finish = service.finish(now, size);
                let carried = capacity.bytes_between(now, finish);
                // Half a picosecond at a gigabit is far below a thousandth of a byte.
                prop_assert!((carried - f64::from(size)).abs() < 1e-3, "{} of {}", carried, size);
                now = finish;
            }
        }

        #[test]
        fn a_busy_trace_loses_nothing(gaps in prop::collection::vec(0u64..5, 2..50), packets in 1usize..300) {
            let mut at = 1;
            let lines: Vec<u64> = gaps.iter().map(|g| { at += g; at }).collect();
            let trace = Trace::new(&lines);
            let capacity = Capacity::Trace(Box::new(trace), Time::from_millis(100));
            let mut service = capacity.service();
            let mut now = Time::ZERO;
            for _ in 0..packets {
                let finish = service.finish(now, 1500);
                prop_assert!(finish >= now);
                now = finish;
            }
            prop_assert!(capacity.bytes_between(Time::ZERO, now) >= packets as f64 * 1500.0);
        }

        #[test]
        fn constant_rates_are_exact_to_a_picosecond(bps in 1e3f64..4e11, size in 40u32..9000) {
            let t = Service::constant(Rate::from_bps(bps)).finish(Time::ZERO, size).as_secs_f64();
            let exact = f64::from(size) * 8.0 / bps;
            prop_assert!((t - exact).abs() < 1.5e-12 + exact * 1e-9);
        }
    }
}
