//! The round-trip time and the retransmission timeout (RFC 6298).
//!
//! ```text
//! first sample R:   SRTT = R, RTTVAR = R/2                                  (2.2)
//! later samples:    RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|                    (2.3, beta = 1/4)
//!                   SRTT   = 7/8 SRTT + 1/8 R                               (2.3, alpha = 1/8)
//! always:           RTO = SRTT + max(G, 4 RTTVAR), at least min_rto, at most max_rto   (2.3, 2.4, 2.5)
//! on expiry:        RTO = 2 RTO, at most max_rto                            (5.5)
//! ```
//!
//! G is the clock's granularity. Without a `tick` the clock is exact and G is zero: on a path of constant delay the RTO falls to
//! SRTT, or to `min_rto` if that is longer.
//!
//! With a `tick`, time is read from a clock of that period, as in ns-2 (`TcpAgent::rtt_update`, without timestamps,
//! and `rtt_timeout`). A sample is the number of ticks between departure and ack, at least one. G is one tick. The
//! RTO is rounded down to whole ticks, at least two.
//!
//! Deviations:
//!
//! 1. RFC 6298 assumes about one sample per round trip; RFC 7323 appendix G shrinks the gains when every ack is a
//!    sample. We keep 1/8 for SRTT. We update RTTVAR once per round trip with the round's largest deviation from the
//!    SRTT at its start, or at once if that raises the RTO. Explicit-feedback laws need a fresh SRTT, but an RTTVAR
//!    updated 40,000 times per round trip would forget everything except the last millisecond. With one sample per
//!    round trip this is exactly RFC 6298.
//! 2. RFC 6298 (2.4) rounds the RTO up to 1 s. `min_rto` is a parameter, 200 ms by default, because the published
//!    figures were made with ns-2, whose `minrto_` is 0.2.

use crate::units::Time;

/// State of the estimator and its bounds.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt: u64,
    /// SRTT when the current round trip began.
    round_srtt: u64,
    rttvar: u64,
    /// The largest deviation from `round_srtt` in this round trip.
    deviation: u64,
    min_rtt: u64,
    /// The RTO with its backoff.
    rto: Time,
    min_rto: Time,
    max_rto: Time,
    /// Period of the clock in ps; zero for an exact clock.
    tick: u64,
}

impl RttEstimator {
    /// Creates an estimator whose RTO is `initial_rto` before the first sample (RFC 6298 (2.1)).
    #[must_use]
    pub fn new(initial_rto: Time, min_rto: Time, max_rto: Time) -> Self {
        Self {
            srtt: 0,
            round_srtt: 0,
            rttvar: 0,
            deviation: 0,
            min_rtt: u64::MAX,
            rto: initial_rto.max(min_rto).min(max_rto),
            min_rto,
            max_rto,
            tick: 0,
        }
    }

    /// Sets the period of the clock; `None` makes it exact.
    #[must_use]
    pub fn ticking(mut self, tick: Option<Time>) -> Self {
        self.tick = tick.map_or(0, Time::as_ps);
        self
    }

    /// The time between a departure and its ack, as measured by the clock.
    #[inline]
    #[must_use]
    pub fn measured(&self, sent_at: Time, now: Time) -> Time {
        if self.tick == 0 {
            return now.saturating_sub(sent_at);
        }
        let ticks = (now.as_ps() / self.tick).saturating_sub(sent_at.as_ps() / self.tick);
        Time::from_ps(ticks.max(1) * self.tick)
    }

    /// Takes a sample. `round_over` means that the sampled packet left after the previous call with `round_over` set.
    /// Ends any backoff (RFC 6298 section 5, last paragraph): the sample comes from a timestamp, so it is unambiguous
    /// even for a retransmission.
    #[inline]
    pub fn sample(&mut self, rtt: Time, round_over: bool) {
        let r = rtt.as_ps();
        self.min_rtt = self.min_rtt.min(r);
        if self.srtt == 0 {
            self.srtt = r.max(1);
            self.round_srtt = self.srtt;
            self.rttvar = r / 2; // (2.2)
            self.set_rto(self.rttvar);
            return;
        }
        self.deviation = self.deviation.max(self.round_srtt.abs_diff(r));
        let candidate = self.rttvar - self.rttvar / 4 + self.deviation / 4; // (2.3)
        self.srtt = (self.srtt - self.srtt / 8 + r / 8).max(1); // (2.3)
        if round_over {
            self.rttvar = candidate;
            self.deviation = 0;
            self.round_srtt = self.srtt;
        }
        self.set_rto(candidate.max(self.rttvar));
    }

    #[inline]
    fn set_rto(&mut self, rttvar: u64) {
        let mut rto = self.srtt.saturating_add(rttvar.saturating_mul(4).max(self.tick));
        if self.tick > 0 {
            rto = (rto - rto % self.tick).max(2 * self.tick);
        }
        self.rto = Time::from_ps(rto).max(self.min_rto).min(self.max_rto);
    }

    /// Doubles the RTO after the timer expired (RFC 6298 (5.5)).
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.max_rto);
    }

    /// The retransmission timeout with its backoff.
    #[inline]
    #[must_use]
    pub const fn rto(&self) -> Time {
        self.rto
    }

    /// The smoothed round-trip time, zero before the first sample.
    #[inline]
    #[must_use]
    pub const fn srtt(&self) -> Time {
        Time::from_ps(self.srtt)
    }

    /// The smallest sample, zero before the first.
    #[must_use]
    pub const fn min_rtt(&self) -> Time {
        Time::from_ps(if self.srtt == 0 { 0 } else { self.min_rtt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(Time::from_secs(1), Time::from_millis(1), Time::from_secs(60))
    }

    /// Follows RFC 6298 section 2 step by step with one sample per round trip.
    #[test]
    fn one_sample_per_round_trip_is_rfc_6298() {
        let mut e = estimator();
        assert_eq!((e.rto(), e.srtt(), e.min_rtt()), (Time::from_secs(1), Time::ZERO, Time::ZERO));
        let (mut srtt, mut rttvar) = (0.0f64, 0.0f64);
        for (i, ms) in [100.0, 140.0, 90.0, 300.0, 300.0, 300.0, 300.0, 80.0, 81.0].into_iter().enumerate() {
            e.sample(Time::from_secs_f64(ms / 1e3), true);
            if i == 0 {
                (srtt, rttvar) = (ms, ms / 2.0);
            } else {
                rttvar = 0.75 * rttvar + 0.25 * (srtt - ms).abs();
                srtt = 0.875 * srtt + 0.125 * ms;
            }
            let rto = srtt + 4.0 * rttvar;
            assert!((e.srtt().as_secs_f64() * 1e3 - srtt).abs() < 1e-6);
            assert!((e.rto().as_secs_f64() * 1e3 - rto).abs() < 1e-6, "{} {rto}", e.rto());
        }
        assert_eq!(e.min_rtt(), Time::from_millis(80));
    }

    /// ns-2's numbers: with a clock of 100 ms, 80 ms measure one tick even without a clock edge, and 130 ms measure
    /// one or two.
    #[test]
    fn a_coarse_clock_tells_ticks() {
        let ms = Time::from_millis;
        let mut e = RttEstimator::new(ms(3000), ms(1), ms(60_000)).ticking(Some(ms(100)));
        for (sent, now, measured) in
            [(0, 80, 100), (30, 110, 100), (95, 225, 200), (100, 230, 100), (10, 10, 100)]
        {
            assert_eq!(e.measured(ms(sent), ms(now)), ms(measured), "{sent} to {now}");
        }
        e.sample(ms(100), true);
        assert_eq!(e.rto(), ms(300)); // 1 tick, and four times a half
        for _ in 0..100 {
            e.sample(ms(100), true);
        }
        assert_eq!(e.rto(), ms(200));
        e.sample(ms(200), true);
        // SRTT is 112.5 ms, plus four times the RTTVAR: slightly above 212.5 ms, rounded down to ticks.
        assert_eq!(e.rto(), ms(200));
    }

    /// Checks RFC 6298 (2.3) and (2.4) where RTTVAR is zero: max(min_rto, SRTT + G), at any scale of the path.
    #[test]
    fn a_constant_path_keeps_the_stated_granularity_and_no_other() {
        let settled = |rtt: Time, min_rto: Time, tick: Option<Time>| {
            let mut e = RttEstimator::new(Time::from_secs(1), min_rto, Time::from_secs(60)).ticking(tick);
            (0..200).for_each(|_| e.sample(rtt, true));
            e.rto()
        };
        let (us, ms) = (Time::from_micros, Time::from_millis);
        for (rtt, min_rto, tick, rto) in [
            (us(100), ms(2), None, ms(2)),
            (us(100), us(10), None, us(100)),
            (ms(100), ms(2), None, ms(100)),
            (ms(100), ms(200), None, ms(200)),
            (ms(100), ms(2), Some(ms(1)), ms(101)),
            (ms(100), ms(2), Some(ms(10)), ms(110)),
        ] {
            let settled = settled(rtt, min_rto, tick);
            // RTTVAR is rounded down to picoseconds and stays below 4 ps.
            assert!(
                settled.saturating_sub(rto) <= Time::from_ps(12),
                "{rtt}, {min_rto}: {settled}, not {rto}"
            );
            assert!(rto <= settled, "{rtt}, {min_rto}: {settled}, not {rto}");
        }
    }

    #[test]
    fn many_samples_in_a_round_trip_do_not_wash_out_its_variation() {
        // A queue that swings by 40 ms each round trip, with a thousand samples per round trip.
        let mut e = estimator();
        for _ in 0..50 {
            for i in 0..1000u64 {
                e.sample(Time::from_micros(100_000 + 40 * i), i == 0);
            }
        }
        let slack = e.rto() - e.srtt();
        assert!(slack > Time::from_millis(120), "{slack}");
    }

    #[test]
    fn a_jump_raises_the_timeout_before_the_round_trip_ends() {
        let mut e = estimator();
        for _ in 0..100 {
            e.sample(Time::from_millis(100), true);
        }
        e.sample(Time::from_millis(200), false);
        assert!(e.rto() > Time::from_millis(200), "{}", e.rto());
    }

    #[test]
    fn bounds_hold_and_a_sample_ends_the_backoff() {
        let mut e = RttEstimator::new(Time::from_secs(1), Time::from_millis(200), Time::from_secs(3));
        e.back_off();
        e.back_off();
        assert_eq!(e.rto(), Time::from_secs(3));
        e.sample(Time::from_millis(10), true);
        assert_eq!(e.rto(), Time::from_millis(200));
        e.sample(Time::from_secs(100), true);
        assert_eq!(e.rto(), Time::from_secs(3));
    }
}
