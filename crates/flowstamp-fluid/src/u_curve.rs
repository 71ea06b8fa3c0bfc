//! Mean flow duration against the rate that flows send at: the "U curve" of section 3.3 and appendix A.
//!
//! Flows arrive as a Poisson process and each sends its `L` bytes at rate `R` into a FIFO queue served at `C`. Sending
//! faster shortens the sending and lengthens the queue; with heavy-tailed sizes there is a best rate.
//!
//! ```text
//!   tau  = L/R + Q_l/C                                                      eq. 3.4, A.1
//!   R < C, K = C/R servers of rate R:
//!   E[D] = K E[L]/C + rho/(1 - rho) E[L^2]/(2 C E[L]) P_b                   eq. A.7
//!   P_b  = 1 - PoissonCdf(rho_l K; K (1 - rho_s) - 1)                       eq. A.8
//!   rho_s = a A rho/E[L],  A = E[L] - sigma sqrt((1 - a)/a)
//!   rho_l = (1 - a) B rho/E[L],  B = E[L] + sigma sqrt(a/(1 - a)),  a = F(M/20)
//!   E[Q_c] = rho ((E[N]/rho - K) E[L] + K E[L_r]),  E[L_r] = E[L^2]/(2 E[L])   eq. A.9
//!   E[Q_a] <= E[Q_c] - lambda E[L^2]/(2 R) = lambda E[L^2] rho P_b/(2 (1 - rho) C)   eq. A.6, A.10
//!   E[tau] = E[L] K/C + lambda E[L^2] rho P_b/(2 (1 - rho) C^2)             eq. A.11
//!   R >= C:
//!   E[Q_a] = lambda E[L^2]/2 (1/((1 - rho) C) - 1/R)
//!   E[tau] = E[L]/R + E[Q_a]/C                                              eq. A.12
//! ```
//!
//! Dukkipati 2007. `Q_l` queue that a flow's last packet meets, `E[Q_a]` mean queue, `sigma` standard deviation of the
//! sizes, `M` the largest size, `F` their distribution. The propagation delay is not in `tau`: add it.
//!
//! **The corrected reading.** Our copy of the thesis has lost the radicals of `A` and `B` and a few signs. The equations
//! determine them. `A` and `B` with probabilities `a` and `1 - a` are the two-point law with the sizes' mean and variance, so the
//! radical covers the variance and the ratio. `lambda E[D]` put into A.9 gives A.10 exactly. A.11 at `K = 1`, where `P_b = 1`,
//! meets A.12 at `R = C`. "From Eqn. 3.5" before A.1 means 3.4.
//!
//! Deviations (thesis says / we do / because):
//! 1. `E[Q_l]` is about `E[Q_a]` / so is [`Reading::AsPrinted`], while [`Reading::LastPacket`] adds the flow's own packets /
//!    A.12 ends at the mean *wait* of the M/G/1 queue while section 3.3 and figures 3.6 and 3.7 end at the mean *delay*
//!    (eq. 3.5), which is longer by `E[L]/C`: the last packet finds its own flow's packets in the queue. For `R >= C` the queue
//!    is never empty while a flow sends, so that it grows by `L + rho C L/R - C L/R` on average and
//!    `E[Q_l] = E[Q_a] + E[L] (1 - (1 - rho) C/R)` without approximation. For `R < C` both this and
//!    `E[Q_a]` are lower bounds, of which the larger is taken.
//! 2. `K` is an integer, and A.8 is a step wherever `K (1 - rho_s)` passes one / `P_b` is linear in `K` between integers;
//!    [`Blocking::TwoPointSmooth`] has no steps / figures want every rate. "A unique minimum" is true of the smooth curve only: each
//!    step leaves a tooth, and as printed there is a minimum at nearly every step, the last at `R = C`.
//! 3. `A` may be negative, when `M` is only some ten times the smallest size / `rho_s` is then 0 and `rho_l` is `rho` / a load is
//!    not negative.
//! 4. Only bounded Pareto sizes are modelled / [`Blocking::ErlangC`] serves all others / for exponential sizes A.7 is then the
//!    exact M/M/K queue, and for the rest the approximation of Lee and Longton 1959, which also is exact at `K = 1`.
//! 5. The thesis does not give the largest size `M` of figure A.3 / the caller chooses it / section 3.3's footnote: it grows with the run.
//! 6. Sizes without a second moment / [`Mean::Infinite`] at every rate / the model knows sizes by two moments only. The queue
//!    itself has a finite mean at low enough rates (Borst and Zwart 2005): cut the sizes at the largest one of a run.

use crate::formulas::{Mean, Mg1Queue};
use statrs::function::gamma::gamma_lr;

/// The probability that a Poisson number of this mean is at least `number`; between whole numbers, the smooth continuation
/// (Abramowitz and Stegun, 6.5.29 and 6.5.31). NaN if an argument is.
fn poisson_at_least(number: f64, mean: f64) -> f64 {
    /// From here on, the number is the mean to within 1e-7, and the series of the gamma function does not converge.
    const LARGE: f64 = 1e15;
    if number.is_nan() || mean.is_nan() {
        return f64::NAN;
    }
    if number > LARGE || mean > LARGE {
        return if mean > number { 1.0 } else { 0.0 };
    }
    match (number > 0.0, mean > 0.0) {
        (false, _) => 1.0,
        (true, false) => 0.0,
        (true, true) => gamma_lr(number, mean).min(1.0),
    }
}

/// The queue that the last packet of a flow is assumed to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The mean queue, as appendix A prints it (A.11, A.12).
    AsPrinted,
    /// The mean queue plus what the flow itself has added to it (deviation 1): exact for `R >= C`.
    LastPacket,
}

/// How the probability that all servers are busy is estimated for `R < C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// Equation A.8: short flows take a fixed share of the servers, long ones are counted as a Poisson number.
    TwoPoint,
    /// Equation A.8 with the Poisson distribution continued between whole numbers by the incomplete gamma function, and
    /// `K` as it is: a smooth curve for `R < C`, which stays below 1 at `R = C` (deviation 2).
    TwoPointSmooth,
    /// Erlang's delay formula, divided by the load so that it is 1 for a single server.
    ErlangC,
}

/// Why the model has no value.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum UCurveError {
    /// The flow rate is not a finite number above 0.
    #[error("the flow rate is {0} times the capacity; it must be a finite number above 0")]
    FlowRate(f64),
    /// Equation A.8 needs short and long flows.
    #[error(
        "equation A.8 needs a largest size and flows below a twentieth of it; use Erlang's formula for these sizes"
    )]
    NoShortFlows,
    /// The range of flow rates is empty or reaches 0.
    #[error("the flow rates {from} to {to} do not form a range; they must be above 0 and rising")]
    Range {
        /// Lowest rate over the capacity.
        from: f64,
        /// Highest rate over the capacity.
        to: f64,
    },
}

impl Blocking {
    /// Equation A.8 where it applies, else Erlang's formula.
    #[must_use]
    pub fn for_link(link: &Mg1Queue<'_>) -> Self {
        if short_share(link).is_some() { Self::TwoPoint } else { Self::ErlangC }
    }

    /// `P_b` with this number of servers, at least 1.
    fn probability(self, link: &Mg1Queue<'_>, servers: u32) -> Result<f64, UCurveError> {
        let (load, k) = (link.load(), f64::from(servers));
        match self {
            Self::ErlangC => Ok(erlang_c(servers, load) / load),
            Self::TwoPoint | Self::TwoPointSmooth => {
                let (short, long) = short_and_long(link)?;
                // P(N > x) is P(N >= floor(x) + 1); rounding just below a whole number counts as on it.
                let at_least = (k * (1.0 - short) + 1e-9).floor();
                Ok(if at_least < 1.0 { 1.0 } else { poisson_at_least(at_least, long * k) }) // eq. A.8
            }
        }
    }

    /// `P_b` for `servers` that need not be whole (deviation 2).
    fn at(self, link: &Mg1Queue<'_>, servers: f64) -> Result<f64, UCurveError> {
        if self == Self::TwoPointSmooth {
            let (short, long) = short_and_long(link)?;
            return Ok(poisson_at_least(servers * (1.0 - short), long * servers));
        }
        let below = servers.floor().clamp(1.0, f64::from(u32::MAX - 1));
        let low = self.probability(link, below as u32)?;
        let part = servers - below;
        if part <= 0.0 {
            return Ok(low);
        }
        let high = self.probability(link, below as u32 + 1)?;
        Ok(low + (high - low) * part.min(1.0))
    }
}

/// `a = F(M/20)`, if some flows are that short.
fn short_share(link: &Mg1Queue<'_>) -> Option<f64> {
    let sizes = link.sizes();
    let short = sizes.cdf(sizes.max_bytes() / 20.0);
    (sizes.max_bytes().is_finite() && short > 0.0 && short < 1.0).then_some(short)
}

/// `rho_s` and `rho_l`, before and in eq. A.8.
fn short_and_long(link: &Mg1Queue<'_>) -> Result<(f64, f64), UCurveError> {
    let a = short_share(link).ok_or(UCurveError::NoShortFlows)?;
    let sigma = link.sizes().squared_variation().sqrt(); // over E[L]
    let short = (a * (1.0 - sigma * ((1.0 - a) / a).sqrt())).max(0.0) * link.load(); // deviation 3
    Ok((short, link.load() - short)) // a A + (1 - a) B = E[L]
}

/// Erlang's delay formula: the probability that all `servers` are busy in an M/M/K queue of this load (0 to 1 per server).
fn erlang_c(servers: u32, load: f64) -> f64 {
    let offered = load * f64::from(servers);
    let mut blocked = 1.0; // Erlang B, by its recursion over the number of servers.
    for k in 1..=servers {
        blocked = offered * blocked / (f64::from(k) + offered * blocked);
    }
    blocked / (1.0 - load * (1.0 - blocked))
}

/// `E[Q_a]/C`, the mean queue in seconds.
fn queue_s(link: &Mg1Queue<'_>, rate_over_capacity: f64, blocking: Blocking) -> Result<f64, UCurveError> {
    let r = rate_over_capacity;
    if !(r.is_finite() && r > 0.0) {
        return Err(UCurveError::FlowRate(r));
    }
    let load = link.load();
    if load <= 0.0 {
        return Ok(0.0);
    }
    let c = link.capacity().bytes_per_sec();
    let work = 0.5 * link.flows_per_s() * link.sizes().second_moment() / (c * c);
    if r >= 1.0 {
        Ok(work * (1.0 / (1.0 - load) - 1.0 / r)) // before eq. A.12
    } else {
        Ok(work * load / (1.0 - load) * blocking.at(link, 1.0 / r)?) // eq. A.10
    }
}

/// Mean queue in bytes when every flow sends at `rate_over_capacity` times the capacity: exact from 1 on (eq. A.10, A.12).
///
/// Infinite for sizes without a second moment.
///
/// # Errors
/// A rate that is not a finite number above 0; equation A.8 for sizes that it does not describe.
pub fn mean_queue_bytes(
    link: &Mg1Queue<'_>,
    rate_over_capacity: f64,
    blocking: Blocking,
) -> Result<f64, UCurveError> {
    Ok(queue_s(link, rate_over_capacity, blocking)? * link.capacity().bytes_per_sec())
}

/// Mean flow duration in seconds when every flow sends at `rate_over_capacity` times the capacity, without propagation
/// delay (eq. A.11, A.12).
///
/// # Errors
/// A rate that is not a finite number above 0; equation A.8 for sizes that it does not describe.
pub fn mean_duration(
    link: &Mg1Queue<'_>,
    rate_over_capacity: f64,
    reading: Reading,
    blocking: Blocking,
) -> Result<Mean, UCurveError> {
    let queue = queue_s(link, rate_over_capacity, blocking)?;
    let sending = link.sizes().mean() / link.capacity().bytes_per_sec();
    let own = match reading {
        Reading::AsPrinted => 0.0,
        Reading::LastPacket => (1.0 - (1.0 - link.load()) / rate_over_capacity).max(0.0),
    };
    let seconds = sending * (1.0 / rate_over_capacity + own) + queue;
    Ok(if seconds.is_finite() { Mean::Finite(seconds) } else { Mean::Infinite })
}

/// The rate over the capacity, between `from` and `to`, at which the mean flow duration is least, with that duration:
/// the best of 2000 rates evenly spaced by their logarithm.
///
/// # Errors
/// No range of rates; otherwise as [`mean_duration`].
pub fn best_rate(
    link: &Mg1Queue<'_>,
    reading: Reading,
    blocking: Blocking,
    (from, to): (f64, f64),
) -> Result<(f64, Mean), UCurveError> {
    if !(from > 0.0 && to > from && to.is_finite()) {
        return Err(UCurveError::Range { from, to });
    }
    const STEPS: u32 = 2000;
    let mut best = (from, mean_duration(link, from, reading, blocking)?);
    for i in 1..=STEPS {
        let r = from * libm::pow(to / from, f64::from(i) / f64::from(STEPS));
        let mean = mean_duration(link, r, reading, blocking)?;
        if mean.seconds() < best.1.seconds() {
            best = (r, mean);
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Discipline;
    use crate::sizes::SizeDistribution;
    use flowstamp_laws::Rate;

    const C: Rate = Rate::from_mbps(150.0);

    #[test]
    fn erlang() {
        // One server is busy with probability rho; two servers: 2 rho^2/(1 + rho).
        assert!((erlang_c(1, 0.7) - 0.7).abs() < 1e-14);
        assert!((erlang_c(2, 0.7) - 2.0 * 0.49 / 1.7).abs() < 1e-14);
    }

    #[test]
    fn poisson_of_extreme_arguments() {
        let inf = f64::INFINITY;
        for (number, mean, probability) in
            [(inf, inf, 0.0), (inf, 3.0, 0.0), (3.0, inf, 1.0), (1e300, 0.9e300, 0.0), (0.9e300, 1e300, 1.0)]
        {
            assert_eq!(poisson_at_least(number, mean), probability, "{number} {mean}");
        }
        assert!(poisson_at_least(f64::NAN, 1.0).is_nan() && poisson_at_least(1.0, f64::NAN).is_nan());
        // 1/R overflows: flows so slow never queue.
        let sizes = SizeDistribution::bounded_pareto_with_mean(25_000.0, 1e8, 1.2).unwrap();
        let link = Mg1Queue::new(&sizes, C, 0.8).unwrap();
        assert_eq!(mean_queue_bytes(&link, 1e-310, Blocking::TwoPointSmooth), Ok(0.0));
    }

    #[test]
    fn branches_meet_and_end_at_the_single_server() {
        for sizes in [
            SizeDistribution::exponential(50_000.0).unwrap(),
            SizeDistribution::bounded_pareto_with_mean(25_000.0, 1e8, 1.2).unwrap(),
        ] {
            let link = Mg1Queue::new(&sizes, C, 0.8).unwrap();
            let blocking = Blocking::for_link(&link);
            for reading in [Reading::AsPrinted, Reading::LastPacket] {
                let at = |r| mean_duration(&link, r, reading, blocking).unwrap().seconds();
                assert!((at(1.0 - 1e-9) / at(1.0) - 1.0).abs() < 1e-6, "{reading:?} {}", at(1.0));
            }
            let end = |reading| mean_duration(&link, 1e12, reading, blocking).unwrap().seconds();
            let delay = link.mean_time(Discipline::Fcfs).seconds();
            let service = sizes.mean() / C.bytes_per_sec();
            assert!((end(Reading::LastPacket) / delay - 1.0).abs() < 1e-9);
            assert!((end(Reading::AsPrinted) / (delay - service) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn exponential_falls_and_pareto_turns() {
        // Figure 3.6: 175 flows/s, 50 packets; figures 3.7 and A.3: 600 flows/s, 25 packets, shape 1.2.
        let sizes = SizeDistribution::exponential(50_000.0).unwrap();
        let link = Mg1Queue::with_arrivals(&sizes, C, 175.0).unwrap();
        let rates: Vec<f64> = (0..=120).map(|i| 10f64.powf(f64::from(i) / 30.0 - 3.0)).collect();
        let curve = |link: &Mg1Queue<'_>| -> Vec<f64> {
            let blocking = Blocking::for_link(link);
            rates
                .iter()
                .map(|r| mean_duration(link, *r, Reading::LastPacket, blocking).unwrap().seconds())
                .collect()
        };
        for (w, r) in curve(&link).windows(2).zip(&rates) {
            assert!(w[1] <= w[0] * (1.0 + 1e-12), "figure 3.6 falls or stays: {r} {w:?}");
        }
        // From R = C on it *is* the M/M/1 delay, as the caption of figure 3.6 says.
        let delay = link.mean_time(Discipline::Fcfs).seconds();
        let at = mean_duration(&link, 1.0, Reading::LastPacket, Blocking::ErlangC).unwrap().seconds();
        assert!((at / delay - 1.0).abs() < 1e-12);

        let sizes = SizeDistribution::bounded_pareto_with_mean(25_000.0, 1e8, 1.2).unwrap();
        let link = Mg1Queue::with_arrivals(&sizes, C, 600.0).unwrap();
        let (r, least) = best_rate(&link, Reading::LastPacket, Blocking::TwoPoint, (1e-3, 10.0)).unwrap();
        assert!(r > 1e-3 && r < 1.0, "{r}");
        let c = curve(&link);
        assert!(least.seconds() < c[0] && least.seconds() < c[c.len() - 1]);
        // At the minimum the queue is small: below what the link carries in the mean duration.
        let queue = mean_queue_bytes(&link, r, Blocking::TwoPoint).unwrap();
        assert!(queue < least.seconds() * C.bytes_per_sec(), "{queue}");
    }

    #[test]
    fn smooth_curve_has_one_minimum() {
        // Figure A.3, whatever its largest size; the stepped curve has teeth (deviation 2).
        for max in [1e7, 1e8, 1e9] {
            let sizes = SizeDistribution::bounded_pareto_with_mean(25_000.0, max, 1.2).unwrap();
            let link = Mg1Queue::with_arrivals(&sizes, C, 600.0).unwrap();
            let minima = |blocking| {
                let curve: Vec<f64> = (0..300)
                    .map(|i| 10f64.powf(f64::from(i) / 100.0 - 3.0))
                    .map(|r| mean_duration(&link, r, Reading::LastPacket, blocking).unwrap().seconds())
                    .collect();
                curve.windows(3).filter(|w| w[1] < w[0] && w[1] <= w[2]).count()
            };
            assert_eq!(minima(Blocking::TwoPointSmooth), 1, "{max}");
            assert!(minima(Blocking::TwoPoint) > 1, "{max}");
        }
    }

    #[test]
    fn refuses_what_has_no_value() {
        let sizes = SizeDistribution::exponential(50_000.0).unwrap();
        let link = Mg1Queue::new(&sizes, C, 0.5).unwrap();
        let at = |r, blocking| mean_duration(&link, r, Reading::AsPrinted, blocking);
        assert_eq!(at(0.0, Blocking::ErlangC), Err(UCurveError::FlowRate(0.0)));
        assert_eq!(at(0.5, Blocking::TwoPoint), Err(UCurveError::NoShortFlows));
        assert!(best_rate(&link, Reading::AsPrinted, Blocking::ErlangC, (1.0, 1.0)).is_err());
        let pareto = SizeDistribution::pareto(25_000.0, 1.2).unwrap();
        let link = Mg1Queue::new(&pareto, C, 0.5).unwrap();
        assert_eq!(mean_duration(&link, 2.0, Reading::AsPrinted, Blocking::ErlangC), Ok(Mean::Infinite));
    }
}
