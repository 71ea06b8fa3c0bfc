//! The window of BIC TCP (Xu, Harfoush and Rhee 2004): a binary search for the window at which nothing is lost.
//!
//! ```text
//! below low_window:  TCP's: a packet per round trip, half of the window
//!
//! loss:    max_win = cwnd;  cwnd = min_win = (1 - beta) cwnd
//!          max_win = (max_win + min_win) / 2      if it is below the last one: fast convergence
//! ack:     target = (max_win + min_win) / 2       cwnd += clamp(target - cwnd, S_min, S_max) packet / cwnd
//!          cwnd < max_win:  min_win = cwnd                      binary search; additive increase while S_max bounds the step
//!          else:            max probing: steps of 1, 2, 4 ... packets a round trip up to S_max, then S_max
//! ```
//!
//! The law follows the paper's pseudocode. Where S_max bounds most steps, one loss in 1/p packets gives a mean window
//! of sqrt(S_max (2 - beta) / (2 beta p)). A TCP with an increase of S_max and this decrease has the same mean
//! window.
//!
//! Valid for windows of 1 to 10^9 packets.
//!
//! Deviations (paper says / we do / because):
//! 1. The text halves the distance to max_win once per round trip, the pseudocode moves the target with each ack / we
//!    follow the pseudocode / a round trip then leaves e^-1/2 of the distance.
//! 2. The pseudocode names S_min as a parameter and does not use it / S_min is the least step of the search / without
//!    a least step the window never reaches max_win.
//! 3. In max probing the pseudocode compares the window with a default max_win that has no meaning / max_win is unset
//!    there, and a loss sets it without fast convergence / the flow was above its last maximum, so no other flow has
//!    taken its share.
//! 4. beta applies to the window / it applies to the lesser of the window and the packets in flight; the threshold
//!    after a timeout too, and the search then starts again / as in `window.rs`, deviation 1.
//! 5. The window may grow even when it is not used / it does not grow while the application limits the sender / as in
//!    `window.rs`, deviation 2.

use super::window::{Growth, Window, window_params};
use crate::sender::{Ack, FlowView};
use crate::units::{Ratio, Time};
use crate::{Refused, within};

window_params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `S_max`: largest growth of the window in a round trip, in packets.
        pub max_step: f64 = 32.0, // 2004, of its simulations
        /// `S_min`: smallest growth of the window in a round trip of the search, in packets.
        pub min_step: f64 = 0.01, // 2004, of its simulations
        /// `beta`: the share of the window that a loss takes.
        pub decrease: Ratio = Ratio::new(0.125), // 2004, of its simulations
        /// `low_window` in packets. Below this window the law is TCP's.
        pub low_window: f64 = 14.0, // 2004, of its simulations
        /// Whether the flow gives room to others after losses at smaller and smaller windows.
        pub fast_convergence: bool = true, // 2004, pseudocode
    }
}

/// BIC TCP: a window that grows by binary search.
pub type Bic = Window<Search>;

/// State of BIC's growth. Windows are in packets.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    packet: f64,
    max_step: f64,
    min_step: f64,
    decrease: f64,
    low_window: f64,
    fast_convergence: bool,
    /// Window at which the search ends; infinite while unknown.
    max_win: f64,
    /// `ss_cwnd` and `ss_target`: packets per round trip, and the window at which that step doubles; set only in max
    /// probing.
    probe: Option<(f64, f64)>,
}

impl Search {
    /// Growth in packets per round trip at a window of `w`; also moves the search or the probe on.
    fn increment(&mut self, w: f64) -> f64 {
        if w < self.low_window {
            return 1.0;
        }
        if self.probe.is_none() && w >= self.max_win {
            self.max_win = f64::INFINITY;
            self.probe = Some((1.0, w + 1.0));
        }
        if let Some((step, target)) = &mut self.probe {
            if w >= *target {
                *step *= 2.0;
                *target = w + *step;
            }
            if *step < self.max_step {
                return *step;
            }
            self.probe = None;
        }
        (0.5 * (self.max_win - w)).clamp(self.min_step, self.max_step)
    }
}

impl Growth for Search {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        within("max_step", p.max_step, 1e-6, 1e9)?;
        within("min_step", p.min_step, 1e-6, p.max_step)?;
        within("decrease", p.decrease.get(), 0.0, 1.0)?;
        within("low_window", p.low_window, 0.0, 1e9)
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        Self {
            packet: f64::from(flow.packet_bytes),
            max_step: p.max_step.max(p.min_step),
            min_step: p.min_step,
            decrease: p.decrease.get(),
            low_window: p.low_window,
            fast_convergence: p.fast_convergence,
            max_win: f64::INFINITY,
            probe: None,
        }
    }

    #[inline]
    fn step(&mut self, cwnd: f64, _: &Ack<'_>) -> f64 {
        // The window grows no faster than in slow start, whatever the parameters.
        (self.increment(cwnd / self.packet) * self.packet / cwnd).min(1.0) * self.packet
    }

    fn after_loss(&mut self, _: Time, used: f64) -> f64 {
        let w = used / self.packet;
        self.probe = None;
        if w < self.low_window {
            self.max_win = f64::INFINITY;
            return 0.5 * used;
        }
        let left = (1.0 - self.decrease) * w;
        let below = w < self.max_win && self.max_win.is_finite();
        self.max_win = if self.fast_convergence && below { 0.5 * (w + left) } else { w };
        left * self.packet
    }

    fn after_timeout(&mut self, now: Time, used: f64) -> f64 {
        let left = self.after_loss(now, used);
        self.max_win = f64::INFINITY; // deviation 4
        left
    }
}
