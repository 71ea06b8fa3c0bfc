//! Updates of the path model by acks (section 5.5), and the states before ProbeBW's cycle.

use super::{Bbr3, Repair, State};
use crate::sender::Ack;
use crate::units::Time;

/// The pipe is full after this many round trips in which the rate grew by less than a quarter (section 5.3.1.2).
const FULL_ROUNDS: u8 = 3;
/// Longest duration of Drain in round trips (section 5.3.2).
const DRAIN_ROUNDS: u32 = 3;

/// Updates of the path model by acks (section 5.5).
impl Bbr3 {
    /// Sections 5.5.10.3 and 5.5.5.
    pub(super) fn update_signals(&mut self, ack: &Ack<'_>) {
        self.rounds.start = false;
        self.loss_round_start = false;
        let Some(rate) = ack.rate else { return };
        self.bw_latest = self.bw_latest.max(self.sample.rate);
        self.inflight_latest = self.inflight_latest.max(self.sample.delivered);
        if rate.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = ack.delivered;
            self.loss_round_start = true;
        }
        self.rounds.on_ack(rate.prior_delivered, ack.delivered);
        if self.rounds.start {
            self.round_count = self.round_count.wrapping_add(1);
            self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
            self.extra_acked.forget_a_round();
        }
        if self.sample.rate >= self.max_bw() || !self.sample.app_limited {
            self.max_bw.add(self.sample.rate);
        }
        if self.loss_round_start {
            self.adapt_lower_bounds();
            self.loss_in_round = false;
        }
    }

    /// Section 5.5.9.
    pub(super) fn update_extra_acked(&mut self, now: Time) {
        let mut expected = self.bw * now.saturating_sub(self.extra_began).as_secs_f64();
        if self.extra_delivered <= expected {
            self.extra_delivered = 0.0;
            self.extra_began = now;
            expected = 0.0;
        }
        self.extra_delivered += self.newly;
        self.extra_acked.set_window(if self.full_bw_reached { self.params.extra_acked_rounds } else { 1 });
        self.extra_acked.add((self.extra_delivered - expected).min(self.window));
    }

    pub(super) fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    /// Section 5.3.1.2.
    pub(super) fn check_full_bw(&mut self) {
        if self.full_bw_now || !self.rounds.start || self.sample.app_limited {
            return;
        }
        if self.sample.rate >= self.full_bw * 1.25 {
            self.reset_full_bw();
            self.full_bw = self.sample.rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// Section 5.3.1.3, at the first ack of a packet that left after the first loss of a round trip was found.
    pub(super) fn check_startup_done(&mut self) {
        let recovering = self.repair == Repair::Recovery;
        let enough = self.loss_ranges >= if self.selective { self.params.startup_losses } else { 1 };
        let lossy = !self.selective || self.too_high(self.sample.lost, self.sample.tx_in_flight);
        if self.state == State::Startup && self.loss_round_start && recovering && enough && lossy {
            self.undo.state = Some(State::Startup);
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp_multiple(self.bw, 1.0).max(self.inflight_latest);
        }
        if self.loss_round_start {
            self.loss_ranges = 0;
        }
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round_count;
        }
    }

    /// Section 5.3.2.
    pub(super) fn check_drain_done(&mut self, now: Time) {
        let late = self.round_count.wrapping_sub(self.drain_start_round) > DRAIN_ROUNDS;
        if self.state == State::Drain && (late || self.in_flight <= self.inflight(self.bw)) {
            self.start_down(now);
        }
    }
}
