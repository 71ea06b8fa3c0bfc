//! Mean flow completion times of one link: the reference that RCP, XCP and TCP are measured against.
//!
//! ```text
//!   FCT_min(L)  = 1.5 RTT + L/C                                             section 4.1
//!   FCT_PS(L)   = 1.5 RTT + L/(C (1 - rho))                                 eq. 4.1
//!   FCT_SS(L)   = (log2(L + 1) + 1/2) RTT + L/C,  L in packets              section 4.2.1
//!   E[FCT_PS]   = 2 RTT + E[L]/(C (1 - rho))                                eq. 6.1
//!
//!   M/G/1, p = L/C, rho(p) = lambda E[p; p' <= p]:
//!   E[T_PS]     = E[p]/(1 - rho)                                            eq. 2.1
//!   E[T_SRPT]   = lambda/2 int (int_0^p t^2 dF + p^2 (1 - F(p)))/(1 - rho(p))^2 dF(p)
//!                 + int (1 - F(t))/(1 - rho(t)) dt                          eq. 2.1 (Schrage and Miller 1966)
//!   E[T_FCFS]   = lambda E[p^2]/(2 (1 - rho)) + E[p]                        eq. 3.5 (Pollaczek and Khinchine)
//!   T_FB(p)     = (lambda E[min(p',p)^2]/(2 (1 - r)) + p)/(1 - r),  r = lambda E[min(p',p)]
//!                                                                           section 2.1, reference [29]
//! ```
//!
//! Dukkipati 2007. `L` flow size, `C` capacity, `lambda` Poisson arrival rate of flows, `rho = lambda E[L]/C` load,
//! `F` distribution of `p`. The thesis counts round-trip times in three ways, and [`RoundTrips`] has all of them: one in
//! equation 2.1, one and a half in 4.1 (request, answer, half a trip for the last packet), two in 6.1.
//!
//! Valid for loads from 0 to below 1.
//!
//! ```
//! use flowstamp_fluid::{formulas::{Mg1Queue, Mean, RoundTrips}, servers::Discipline, sizes::SizeDistribution};
//! use flowstamp_laws::{Rate, Time};
//!
//! // Figure 2.9 at a load of 0.9.
//! let sizes = SizeDistribution::pareto(25_000.0, 1.2)?;
//! let link = Mg1Queue::new(&sizes, Rate::from_mbps(45.0), 0.9)?;
//! let fct = |d| link.mean_fct(d, Time::from_millis(100), RoundTrips::One);
//! assert!(fct(Discipline::Srpt) < fct(Discipline::Ps));
//! assert_eq!(fct(Discipline::Fcfs), Mean::Infinite);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Deviations (thesis says / we do / because):
//! 1. Equation 2.1 divides the wait by `(1 - rho(p))^2` / by `(1 - rho(p-)) (1 - rho(p))` / flows of equal size are served in
//!    order of arrival, so that the square would count them twice; both agree where `F` is continuous.
//! 2. Section 4.2.1's slow-start curve is for a first window of one packet while the thesis's TCPs start with two /
//!    [`slow_start_fct`] takes the first window, and with one packet gives the thesis's curve.
//! 3. Equation 3.5 for Pareto sizes of shape at most 2 / [`Mean::Infinite`] / the thesis says so in section 3.3.
//! 4. Figure 2.9 names no Pareto shape / the caller names one / the rest of the thesis uses 1.2.

use crate::servers::Discipline;
use crate::sizes::SizeDistribution;
use flowstamp_laws::{Rate, Time};

/// Why a formula has no value.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FormulaError {
    /// The load is not below what the link can carry.
    #[error("load is {0}; it must be at least 0 and below 1, or flows pile up without end")]
    Load(f64),
    /// The link carries nothing.
    #[error("the capacity is 0bps; it must be above 0")]
    Capacity,
}

/// A mean in seconds, which may not exist.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Mean {
    /// Seconds.
    Finite(f64),
    /// The mean does not exist: the tail is too heavy, and the average grows with the length of the measurement.
    Infinite,
}

impl Mean {
    fn from_s(seconds: f64) -> Self {
        if seconds.is_finite() { Self::Finite(seconds) } else { Self::Infinite }
    }
    /// Returns the value in seconds, [`f64::INFINITY`] if infinite.
    #[must_use]
    pub fn seconds(self) -> f64 {
        match self {
            Self::Finite(s) => s,
            Self::Infinite => f64::INFINITY,
        }
    }
    /// With `seconds` added.
    #[must_use]
    pub fn plus(self, seconds: f64) -> Self {
        match self {
            Self::Finite(s) => Self::Finite(s + seconds),
            Self::Infinite => Self::Infinite,
        }
    }
}

/// How many round-trip times the thesis adds to the time in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrips {
    /// Equation 2.1 and figure 2.9: one.
    One,
    /// Equation 4.1 and chapter 4: from the SYN's departure to the last packet's arrival, one and a half.
    OneAndAHalf,
    /// Equation 6.1 and section 6.3: until the sender knows, two.
    Two,
}

impl RoundTrips {
    /// Duration of the round trips in seconds.
    #[must_use]
    pub fn seconds(self, rtt: Time) -> f64 {
        rtt.as_secs_f64()
            * match self {
                Self::One => 1.0,
                Self::OneAndAHalf => 1.5,
                Self::Two => 2.0,
            }
    }
}

/// Seconds to carry `bytes` at `rate`, which must be above zero.
fn seconds_for(bytes: f64, rate: Rate) -> f64 {
    bytes / rate.bytes_per_sec()
}

fn check_load(load: f64) -> Result<f64, FormulaError> {
    if (0.0..1.0).contains(&load) { Ok(load) } else { Err(FormulaError::Load(load)) }
}

fn check_capacity(capacity: Rate) -> Result<Rate, FormulaError> {
    if capacity.bps() > 0.0 { Ok(capacity) } else { Err(FormulaError::Capacity) }
}

/// The least completion time of a flow of `bytes`, in seconds: `1.5 RTT + L/C` (section 4.1).
///
/// # Errors
/// A capacity of zero.
pub fn lower_bound_fct(bytes: f64, rtt: Time, capacity: Rate) -> Result<f64, FormulaError> {
    Ok(RoundTrips::OneAndAHalf.seconds(rtt) + seconds_for(bytes, check_capacity(capacity)?))
}

/// Completion time of a flow of `bytes` under processor sharing, in seconds: `1.5 RTT + L/(C (1 - rho))` (eq. 4.1).
///
/// # Errors
/// A capacity of zero, a load outside [0, 1).
pub fn ps_fct(bytes: f64, rtt: Time, capacity: Rate, load: f64) -> Result<f64, FormulaError> {
    let free = 1.0 - check_load(load)?;
    Ok(RoundTrips::OneAndAHalf.seconds(rtt) + seconds_for(bytes, check_capacity(capacity)?) / free)
}

/// Mean completion time under processor sharing, in seconds: `2 RTT + E[L]/(C (1 - rho))` (eq. 6.1).
///
/// # Errors
/// A capacity of zero, a load outside [0, 1).
pub fn ps_mean_fct_eq_6_1(
    mean_bytes: f64,
    rtt: Time,
    capacity: Rate,
    load: f64,
) -> Result<f64, FormulaError> {
    let free = 1.0 - check_load(load)?;
    Ok(RoundTrips::Two.seconds(rtt) + seconds_for(mean_bytes, check_capacity(capacity)?) / free)
}

/// Completion time of a TCP flow that never leaves slow start, in seconds, without queueing:
/// `(log2(L/w + 1) + 1/2) RTT + L/C` (section 4.2.1, where the first window `w` is one packet).
///
/// `packets` at least 0, `packet_bytes` and `first_window_packets` above 0. The result includes one trip for the handshake, then
/// `log2(L/w + 1)` windows, of which the last takes half a trip.
///
/// # Errors
/// A capacity of zero.
pub fn slow_start_fct(
    packets: f64,
    packet_bytes: f64,
    first_window_packets: f64,
    rtt: Time,
    capacity: Rate,
) -> Result<f64, FormulaError> {
    let trips = libm::log2(packets / first_window_packets + 1.0) + 0.5;
    Ok(trips * rtt.as_secs_f64() + seconds_for(packets * packet_bytes, check_capacity(capacity)?))
}

/// A formula for a flow's completion time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CompletionTime {
    /// [`ps_fct`] at a load.
    ProcessorSharing(f64),
    /// [`lower_bound_fct`].
    LowerBound,
    /// [`slow_start_fct`] with packets of this many bytes and a first window of one, as the thesis draws it.
    SlowStart(f64),
}

impl CompletionTime {
    /// Completion times of flows of these `sizes` in bytes, in seconds.
    ///
    /// # Errors
    /// Errors of the formula.
    pub fn of(self, sizes: &[f64], rtt: Time, capacity: Rate) -> Result<Vec<f64>, FormulaError> {
        let time = |bytes: f64| match self {
            Self::ProcessorSharing(load) => ps_fct(bytes, rtt, capacity, load),
            Self::LowerBound => lower_bound_fct(bytes, rtt, capacity),
            Self::SlowStart(packet) => slow_start_fct(bytes / packet, packet, 1.0, rtt, capacity),
        };
        sizes.iter().map(|bytes| time(*bytes)).collect()
    }
}

/// Flows arriving as a Poisson process at one link: an M/G/1 queue.
#[derive(Clone, Copy, Debug)]
pub struct Mg1Queue<'a> {
    sizes: &'a SizeDistribution,
    capacity: Rate,
    load: f64,
}

impl<'a> Mg1Queue<'a> {
    /// A link of `capacity` under a `load`, as a share of the capacity, of flows of `sizes`.
    ///
    /// # Errors
    /// A capacity of zero, a load outside [0, 1).
    pub fn new(sizes: &'a SizeDistribution, capacity: Rate, load: f64) -> Result<Self, FormulaError> {
        Ok(Self { sizes, capacity: check_capacity(capacity)?, load: check_load(load)? })
    }

    /// A link of `capacity` at which `flows_per_s` flows of `sizes` arrive.
    ///
    /// # Errors
    /// A capacity of zero, a load outside [0, 1).
    pub fn with_arrivals(
        sizes: &'a SizeDistribution,
        capacity: Rate,
        flows_per_s: f64,
    ) -> Result<Self, FormulaError> {
        let load = flows_per_s * seconds_for(sizes.mean(), check_capacity(capacity)?);
        Self::new(sizes, capacity, load)
    }

    /// The flow sizes.
    #[must_use]
    pub fn sizes(&self) -> &'a SizeDistribution {
        self.sizes
    }

    /// The capacity.
    #[must_use]
    pub fn capacity(&self) -> Rate {
        self.capacity
    }

    /// `rho = lambda E[L]/C`.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.load
    }

    /// `lambda`, in flows per second.
    #[must_use]
    pub fn flows_per_s(&self) -> f64 {
        self.load * self.capacity.bytes_per_sec() / self.sizes.mean()
    }

    /// `lambda/C`, in 1/byte: converts truncated moments, in bytes, to load.
    fn per_byte(&self) -> f64 {
        self.load / self.sizes.mean()
    }

    /// Mean time in the queue and in service over all flows, in seconds, without round-trip times (eq. 2.1, 3.5).
    #[must_use]
    pub fn mean_time(&self, discipline: Discipline) -> Mean {
        let bytes = match discipline {
            Discipline::Ps => self.sizes.mean() / (1.0 - self.load),
            Discipline::Fcfs => self.fcfs_wait_bytes() + self.sizes.mean(),
            Discipline::Srpt => {
                // Second term of eq. 2.1: the residence time, averaged over sizes by exchanging the integrals.
                self.sizes.expect(|x| self.srpt_wait_bytes(x))
                    + self.sizes.integrate_ccdf(|t| 1.0 / (1.0 - self.load_below(t)))
            }
            Discipline::Fb => self.sizes.expect(|x| self.fb_bytes(x)),
        };
        Mean::from_s(seconds_for(bytes, self.capacity))
    }

    /// Mean time of the flows of `bytes` bytes, in seconds, without round-trip times.
    #[must_use]
    pub fn mean_time_of_size(&self, discipline: Discipline, bytes: f64) -> Mean {
        let work = match discipline {
            Discipline::Ps => bytes / (1.0 - self.load),
            Discipline::Fcfs => self.fcfs_wait_bytes() + bytes,
            Discipline::Srpt => {
                self.srpt_wait_bytes(bytes)
                    + self.sizes.integrate_to(bytes, |t| 1.0 / (1.0 - self.load_below(t)))
            }
            Discipline::Fb => self.fb_bytes(bytes),
        };
        Mean::from_s(seconds_for(work, self.capacity))
    }

    /// Mean completion time over all flows: [`Self::mean_time`] and the round trips.
    #[must_use]
    pub fn mean_fct(&self, discipline: Discipline, rtt: Time, trips: RoundTrips) -> Mean {
        self.mean_time(discipline).plus(trips.seconds(rtt))
    }

    /// Load of the flows of at most `x` bytes: `rho(p)`.
    fn load_up_to(&self, x: f64) -> f64 {
        self.per_byte() * self.sizes.partial_moment(1, x)
    }

    /// Load of the flows of fewer than `x` bytes.
    fn load_below(&self, x: f64) -> f64 {
        self.per_byte() * self.sizes.partial_moment_below(1, x)
    }

    /// Mean bytes served between a flow's arrival and its first byte, FCFS.
    fn fcfs_wait_bytes(&self) -> f64 {
        if self.load > 0.0 {
            self.per_byte() * self.sizes.second_moment() / (2.0 * (1.0 - self.load))
        } else {
            0.0
        }
    }

    /// Mean bytes served between the arrival of a flow of `x` bytes and its first byte, SRPT.
    fn srpt_wait_bytes(&self, x: f64) -> f64 {
        let work = 0.5 * self.per_byte() * self.sizes.capped_moment(2, x);
        work / ((1.0 - self.load_below(x)) * (1.0 - self.load_up_to(x))) // deviation 1
    }

    /// Mean bytes served while a flow of `x` bytes is there, FB.
    fn fb_bytes(&self, x: f64) -> f64 {
        let free = 1.0 - self.per_byte() * self.sizes.capped_moment(1, x);
        (0.5 * self.per_byte() * self.sizes.capped_moment(2, x) / free + x) / free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Time = Time::from_millis(100);

    fn mbps(v: f64) -> Rate {
        Rate::from_mbps(v)
    }

    #[test]
    fn per_size_curves() {
        // 8 Mb/s carry a megabyte in a second.
        let c = mbps(8.0);
        assert!((lower_bound_fct(1e6, RTT, c).unwrap() - 1.15).abs() < 1e-12);
        assert!((ps_fct(1e6, RTT, c, 0.5).unwrap() - 2.15).abs() < 1e-12);
        assert!((ps_mean_fct_eq_6_1(1e6, RTT, c, 0.5).unwrap() - 2.2).abs() < 1e-12);
        // Seven packets: windows of 1, 2, 4.
        assert!((slow_start_fct(7.0, 1000.0, 1.0, RTT, c).unwrap() - 0.357).abs() < 1e-12);
        assert!((slow_start_fct(6.0, 1000.0, 2.0, RTT, c).unwrap() - 0.256).abs() < 1e-12);
        assert_eq!(ps_fct(1.0, RTT, c, 1.0), Err(FormulaError::Load(1.0)));
        assert_eq!(lower_bound_fct(1.0, RTT, Rate::ZERO), Err(FormulaError::Capacity));
    }

    #[test]
    fn exponential_has_known_values() {
        // Mean service 1 s: PS and FCFS are both 1/(1 - rho).
        let sizes = SizeDistribution::exponential(1e6).unwrap();
        for load in [0.0, 0.3, 0.5, 0.8, 0.9, 0.99] {
            let link = Mg1Queue::new(&sizes, mbps(8.0), load).unwrap();
            let known = 1.0 / (1.0 - load);
            for d in [Discipline::Ps, Discipline::Fcfs] {
                assert!((link.mean_time(d).seconds() / known - 1.0).abs() < 1e-12, "{d:?} {load}");
            }
            // FB is PS here: the exponential's remaining size does not depend on its age (Kleinrock vol. 2, section 4.7).
            let fb = link.mean_time(Discipline::Fb).seconds();
            assert!((fb / known - 1.0).abs() < 1e-9, "FB {load}: {fb}");
            let srpt = link.mean_time(Discipline::Srpt).seconds();
            assert!(srpt <= known * (1.0 + 1e-9), "SRPT {load}: {srpt}");
        }
    }

    #[test]
    fn fixed_sizes_leave_srpt_nothing_to_choose() {
        let sizes = SizeDistribution::fixed(1e6).unwrap();
        let link = Mg1Queue::new(&sizes, mbps(8.0), 0.8).unwrap();
        let fcfs = link.mean_time(Discipline::Fcfs).seconds();
        assert!((fcfs - 3.0).abs() < 1e-12);
        assert!((link.mean_time(Discipline::Srpt).seconds() - fcfs).abs() < 1e-12);
        assert!((link.mean_time(Discipline::Ps).seconds() - 5.0).abs() < 1e-12);
        // FB never ends a flow before the others: (rho/(2 (1 - rho)) + 1)/(1 - rho), the most of all.
        assert!((link.mean_time(Discipline::Fb).seconds() - (0.4 / 0.2 + 1.0) / 0.2).abs() < 1e-9);
    }

    #[test]
    fn heavy_tail_is_infinite_under_fcfs_only() {
        let sizes = SizeDistribution::pareto(25_000.0, 1.2).unwrap();
        let link = Mg1Queue::new(&sizes, mbps(150.0), 0.8).unwrap();
        assert_eq!(link.mean_time(Discipline::Fcfs), Mean::Infinite);
        let ps = link.mean_time(Discipline::Ps).seconds();
        let srpt = link.mean_time(Discipline::Srpt).seconds();
        let fb = link.mean_time(Discipline::Fb).seconds();
        assert!(srpt < fb && fb < ps, "{srpt} {fb} {ps}");
        // Shape 3 has a second moment.
        let light = SizeDistribution::pareto(25_000.0, 3.0).unwrap();
        let link = Mg1Queue::new(&light, mbps(150.0), 0.8).unwrap();
        assert!(matches!(link.mean_time(Discipline::Fcfs), Mean::Finite(_)));
    }

    #[test]
    fn mean_is_the_mean_of_the_sizes() {
        for sizes in [
            SizeDistribution::uniform(100.0, 10_000.0).unwrap(),
            SizeDistribution::exponential(30_000.0).unwrap(),
            SizeDistribution::pareto(25_000.0, 1.2).unwrap(),
            SizeDistribution::bounded_pareto(4000.0, 1e9, 1.2).unwrap(),
            SizeDistribution::empirical(&[(500.0, 0.2), (2000.0, 0.7), (2000.0, 0.8), (1e5, 1.0)]).unwrap(),
        ] {
            let link = Mg1Queue::new(&sizes, mbps(100.0), 0.9).unwrap();
            for d in [Discipline::Ps, Discipline::Srpt, Discipline::Fb] {
                let all = link.mean_time(d).seconds();
                let by_size = sizes.expect(|x| link.mean_time_of_size(d, x).seconds());
                assert!((by_size / all - 1.0).abs() < 1e-7, "{sizes:?} {d:?}: {by_size} {all}");
            }
        }
    }

    #[test]
    fn figure_2_9() {
        // Close at low and medium load, apart from 0.95 on; shape 1.2 as in the other chapters.
        let sizes = SizeDistribution::pareto(25_000.0, 1.2).unwrap();
        for c in [45.0, 150.0] {
            let at = |d, load| {
                Mg1Queue::new(&sizes, mbps(c), load).unwrap().mean_fct(d, RTT, RoundTrips::One).seconds()
            };
            for load in [0.1, 0.3, 0.5] {
                let (ps, srpt) = (at(Discipline::Ps, load), at(Discipline::Srpt, load));
                assert!(srpt < ps && ps / srpt < 1.06, "{c} {load}: {ps} {srpt}");
            }
            assert!(at(Discipline::Ps, 0.95) / at(Discipline::Srpt, 0.95) > 1.2);
        }
    }
}
