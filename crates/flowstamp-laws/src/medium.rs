//! Transmission times of packets on links with a constant rate, a list of rates, or recorded delivery opportunities.

mod steps;
mod trace;
mod wire;

pub use steps::Steps;
pub use trace::{OPPORTUNITY_BYTES, Trace};
pub use wire::Wire;

use crate::units::{Rate, Time};

/// A link's transmitter.
#[derive(Clone, Debug)]
pub enum Service {
    /// A constant rate.
    Constant(Wire),
    /// Rates that change at given instants.
    Steps(Box<Steps>),
    /// Recorded delivery opportunities.
    Trace(Box<Trace>),
    /// An interface of a radio cell, whose transmission times are computed elsewhere.
    Air,
}

impl Service {
    /// Creates a transmitter of constant rate, which must be above zero.
    #[must_use]
    pub fn constant(rate: Rate) -> Self {
        Self::Constant(Wire::new(rate))
    }

    /// End of a transmission of `size` bytes that can begin at `start`. Successive starts must not decrease.
    #[inline(always)] // one multiplication, where the rate is constant
    pub fn finish(&mut self, start: Time, size: u32) -> Time {
        match self {
            Self::Constant(wire) => wire.finish(start, size),
            _ => self.finish_of_varying(start, size),
        }
    }

    #[cold] // for the compiler: most links have a constant rate
    #[inline(never)]
    fn finish_of_varying(&mut self, start: Time, size: u32) -> Time {
        match self {
            Self::Constant(wire) => wire.finish(start, size),
            Self::Steps(steps) => steps.finish(start, size),
            Self::Trace(trace) => trace.finish(start, size),
            Self::Air => Time::MAX,
        }
    }
}

/// Capacity of a link over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// A constant rate.
    Constant(Rate),
    /// Rates that change at given instants.
    Steps(Vec<(Time, Rate)>),
    /// Recorded opportunities, and the window of past time over which a router measures them.
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

    /// The mean rate of a run of `duration`. For a trace this is the mean of one period, whatever part of it the run
    /// covers.
    #[must_use]
    pub fn mean_of_run(&self, duration: Time) -> Rate {
        match self {
            Self::Trace(trace, _) => trace.mean(),
            _ => self.mean(Time::ZERO, duration),
        }
    }

    /// This capacity until `now`, and `rate` from then on.
    #[must_use]
    pub fn from_then_on(self, now: Time, rate: Rate) -> Self {
        let mut steps = match self {
            Self::Constant(before) => vec![(Time::ZERO, before)],
            Self::Steps(steps) => steps,
            Self::Trace(..) => return self,
        };
        steps.retain(|(t, _)| *t < now);
        steps.push((now, rate));
        Self::Steps(steps)
    }

    /// The transmitter with this capacity.
    #[must_use]
    pub fn service(&self) -> Service {
        match self {
            Self::Constant(rate) => Service::constant(*rate),
            Self::Steps(steps) => Service::Steps(Box::new(Steps::new(steps.clone()))),
            Self::Trace(trace, _) => Service::Trace(trace.clone()),
        }
    }

    /// The capacity that a router knows at `now`, and when to look again.
    #[must_use]
    pub fn known_at(&self, now: Time) -> (Rate, Option<Time>) {
        match self {
            Self::Constant(rate) => (*rate, None),
            Self::Steps(steps) => {
                let next = steps.partition_point(|(t, _)| *t <= now);
                (steps[next.saturating_sub(1)].1, steps.get(next).map(|(t, _)| *t))
            }
            Self::Trace(_, window) => {
                // Until the first window has passed, the first window replaces the past.
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
        // Two half packets share an opportunity; a third one waits for the next.
        assert_eq!(s.finish(Time::from_millis(4), 750), Time::from_millis(5));
        assert_eq!(s.finish(Time::from_millis(5), 750), Time::from_millis(5));
        assert_eq!(s.finish(Time::from_millis(5), 750), Time::from_millis(6));
        // An opportunity is lost if no packet waits for it.
        assert_eq!(s.finish(Time::from_ps(Time::from_secs(9).as_ps() + 1), 100), Time::from_millis(9001));
    }

    #[test]
    fn a_runs_mean_is_that_of_its_steps_or_of_a_traces_period() {
        let steps =
            [(0, 0.0), (1, 10.0), (2, 2.0)].map(|(s, mbps)| (Time::from_secs(s), Rate::from_mbps(mbps)));
        let mean = Capacity::Steps(steps.into()).mean_of_run(Time::from_secs(4));
        assert!((mean.bps() / 3.5e6 - 1.0).abs() < 1e-12, "{mean}"); // (0 + 10 + 2 * 2) / 4 Mb/s
        // A trace of two packets per second, the first of which comes after a run of 0.3 s.
        let late = Capacity::Trace(Box::new(Trace::new(&[500, 1000])), Time::from_millis(100));
        for ms in [300, 999, 60_000] {
            assert!((late.mean_of_run(Time::from_millis(ms)).bps() / 24e3 - 1.0).abs() < 1e-12);
        }
        assert_eq!(Capacity::Constant(Rate::from_mbps(3.0)).mean_of_run(Time::ZERO), Rate::from_mbps(3.0));
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
