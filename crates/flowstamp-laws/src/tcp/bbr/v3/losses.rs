//! The bounds that losses set, and the window during a repair.

use super::{Bbr3, Repair, State, Undo};
use crate::sender::Ack;
use crate::units::Time;

/// The bounds that losses set.
impl Bbr3 {
    /// Section 5.5.10.2.
    pub(super) fn too_high(&self, lost: f64, tx_in_flight: f64) -> bool {
        lost > tx_in_flight * self.params.loss_threshold.get() || lost > 0.0 && !self.selective
    }

    pub(super) fn note_loss(&mut self, delivered: u32) {
        if !self.loss_in_round {
            self.loss_round_delivered = delivered;
            self.save_state();
        }
        self.loss_in_round = true;
    }

    /// Section 5.5.10.2: ends a probe that lost too much, once per probe.
    pub(super) fn handle_too_high(&mut self, now: Time, tx_in_flight: f64, app_limited: bool) {
        self.prev_too_high = true;
        self.probe_sample = false;
        if !app_limited {
            self.inflight_longterm = tx_in_flight.max(self.target_inflight() * self.params.beta.get());
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// Section 5.5.10.2: packets in flight when the losses crossed the threshold, interpolated within the last lost
    /// packet.
    pub(super) fn inflight_at_loss(&self, lost: f64, tx_in_flight: f64) -> f64 {
        let threshold = self.params.loss_threshold.get();
        let (before, lost_before) = (tx_in_flight - 1.0, lost - 1.0);
        before + (threshold * before - lost_before) / (1.0 - threshold)
    }

    /// Section 5.5.10.3.
    pub(super) fn adapt_lower_bounds(&mut self) {
        if self.state.probes_bandwidth() || !self.loss_in_round {
            return;
        }
        if self.bw_shortterm == f64::INFINITY {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm == f64::INFINITY {
            self.inflight_shortterm = self.window;
        }
        let beta = self.params.beta.get();
        self.bw_shortterm = self.bw_latest.max(beta * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(beta * self.inflight_shortterm);
    }

    pub(super) fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// Section 5.6.4.4.
    pub(super) fn save_window(&mut self) {
        let undisturbed = self.repair == Repair::None && self.state != State::ProbeRtt;
        self.prior_window = if undisturbed { self.window } else { self.prior_window.max(self.window) };
    }

    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// Section 5.5.11.1.
    pub(super) fn save_state(&mut self) {
        self.save_window();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// Section 5.6.4.4: begins fast recovery.
    pub(super) fn begin_repair(&mut self, repair: Repair) {
        if self.repair == Repair::None {
            self.save_state();
            self.repair = repair;
        }
    }

    pub(super) fn check_repair(&mut self, ack: &Ack<'_>) {
        let over = match self.repair {
            Repair::None => false,
            Repair::Found => {
                self.repair = Repair::Recovery;
                false
            }
            Repair::Recovery => !ack.in_recovery,
            Repair::Timeout(until) => ack.delivered >= until,
        };
        if over {
            self.repair = Repair::None;
            self.restore_window();
        }
    }
}
