//! The cycle of ProbeBW (section 5.3.3), and ProbeRTT (section 5.3.4).

use super::super::model::drawn;
use super::{AckPhase, Bbr3, State};
use crate::units::Time;

/// Maximum number of doublings of a probe's growth (section 5.3.3.9).
const MOST_DOUBLINGS: i32 = 30;

/// The cycle of ProbeBW (section 5.3.3.9).
impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Time) {
        self.reset_congestion_signals();
        self.up_acked_per_packet = f64::INFINITY;
        // Section 5.3.3.8.3 and deviation 1: one bit for the round trips, 31 for the time.
        let drawn = drawn(now);
        self.rounds_since_probe = drawn & 1;
        let share = f64::from(drawn >> 1) / f64::from(1u32 << 31);
        let spread = Time::from_secs_f64(self.params.probe_wait_spread.as_secs_f64() * share);
        self.probe_wait = self.params.probe_wait.saturating_add(spread);
        self.cycle_began = now;
        self.ack_phase = AckPhase::Stopping;
        self.rounds.restart(self.delivered);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.reset_short_term();
        (self.up_rounds, self.up_acked) = (0, 0.0);
        self.prev_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.rounds.restart(self.delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self) {
        self.ack_phase = AckPhase::Starting;
        self.rounds.restart(self.delivered);
        self.reset_full_bw();
        self.full_bw = self.sample.rate;
        self.state = State::Up;
        self.raise_slope();
    }

    /// Doubles the growth of `inflight_longterm` per round trip.
    fn raise_slope(&mut self) {
        let growth = libm::exp2(f64::from(self.up_rounds));
        self.up_rounds = (self.up_rounds + 1).min(MOST_DOUBLINGS);
        self.up_acked_per_packet = (self.window / growth).max(1.0);
    }

    fn probe_upward(&mut self) {
        if !self.sample.window_full || self.window < self.inflight_longterm {
            return;
        }
        self.up_acked += self.newly;
        if self.up_acked >= self.up_acked_per_packet {
            let more = libm::floor(self.up_acked / self.up_acked_per_packet);
            self.up_acked -= more * self.up_acked_per_packet;
            self.inflight_longterm += more;
        }
        if self.rounds.start {
            self.raise_slope();
        }
    }

    /// Adapts `inflight_longterm`; returns whether it has chosen the next state.
    fn adapt_long_term(&mut self) -> bool {
        if self.ack_phase == AckPhase::Starting && self.rounds.start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.rounds.start {
            self.probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.in_cycle() {
                // This ack's sample counts in the cycle that ends, so that `max_bw` keeps its estimate. Google's
                // `bbr_advance_max_bw_filter` has the same condition.
                if !self.sample.app_limited {
                    self.max_bw.forget_a_round();
                }
                if self.prev_precautionary && !self.prev_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        let safe = !self.too_high(self.sample.lost, self.sample.tx_in_flight);
        if safe && self.inflight_longterm < f64::INFINITY {
            self.inflight_longterm = self.inflight_longterm.max(self.sample.tx_in_flight);
            if self.state == State::Up {
                self.probe_upward();
            }
        }
        false
    }

    pub(super) fn check_cycle(&mut self, now: Time) {
        if !self.full_bw_reached || self.adapt_long_term() {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            State::Refill if self.rounds.start => {
                self.probe_sample = true;
                self.start_up();
            }
            State::Up => self.check_up(now),
            _ => {}
        }
    }

    /// Section 5.3.3.8.3.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let waited = now > self.cycle_began.saturating_add(self.probe_wait);
        waited || f64::from(self.rounds_since_probe) >= self.reno_rounds()
    }

    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.inflight_with_headroom() && self.in_flight <= self.inflight(self.max_bw())
    }

    fn check_up(&mut self, now: Time) {
        let precaution = self.prev_too_high && self.in_flight >= self.inflight_longterm;
        self.prev_precautionary |= precaution;
        if !precaution && self.sample.window_full && self.window >= self.inflight_longterm {
            self.reset_full_bw(); // the bound limits the rate
            self.full_bw = self.sample.rate;
        } else if precaution || self.full_bw_now {
            self.prev_too_high = false;
            self.start_down(now);
        }
    }
}

/// ProbeRTT (section 5.3.4.3).
impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self, now: Time, rtt: Time) {
        self.probe_rtt_min.lower(now, rtt, now);
        self.min_rtt.lower(now, self.probe_rtt_min.rtt, self.probe_rtt_min.seen);
    }

    pub(super) fn check_probe_rtt(&mut self, now: Time, sampled: bool) {
        if self.state != State::ProbeRtt && self.probe_rtt_min.expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_window();
            self.probe_rtt_end = None;
            self.ack_phase = AckPhase::Stopping;
            self.rounds.restart(self.delivered);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        self.idle_restart &= !sampled;
    }

    fn handle_probe_rtt(&mut self, now: Time) {
        self.limited.mark(self.delivered, self.in_flight); // deviation 4
        match self.probe_rtt_end {
            None if self.in_flight <= self.probe_rtt_window() => {
                self.probe_rtt_end = Some(now.saturating_add(self.params.probe_rtt_time));
                self.probe_rtt_round_done = false;
                self.rounds.restart(self.delivered);
            }
            None => {}
            Some(end) => {
                self.probe_rtt_round_done |= self.rounds.start;
                if self.probe_rtt_round_done && now > end {
                    self.probe_rtt_min.seen = now;
                    self.restore_window();
                    self.exit_probe_rtt(now);
                }
            }
        }
    }

    /// Section 5.3.4.4.
    fn exit_probe_rtt(&mut self, now: Time) {
        self.reset_short_term();
        if self.full_bw_reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
