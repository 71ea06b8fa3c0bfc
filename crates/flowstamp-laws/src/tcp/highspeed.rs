//! The window of HighSpeed TCP (RFC 3649): a larger increase and a smaller decrease at large windows.
//!
//! ```text
//! S    = (ln High_Window - ln Low_Window) / (ln High_P - ln Low_P)                      section 5
//! p(w) = Low_P (w / Low_Window)^(1/S)                                                   section 5, about 0.078 / w^1.2
//! b(w) = (High_Decrease - 0.5) (ln w - ln Low_Window) / (ln High_Window - ln Low_Window) + 0.5         section 5
//! a(w) = w^2 p(w) 2 b(w) / (2 - b(w))                                                   section 5
//!
//! cwnd < ssthresh:   cwnd += packet per ack                        slow start, as TCP's
//! else               cwnd += a(w) packet^2 / cwnd per ack          w = cwnd in packets
//! loss or ECN mark:  ssthresh = max((1 - b(w)) cwnd, 2 packets), cwnd = ssthresh
//! timeout:           ssthresh = max(cwnd / 2, 2 packets), cwnd = 1 packet
//! ```
//!
//! Up to `Low_Window` this is TCP: a = 1, b = 1/2. At `High_Window`, a = 72 packets per round trip and b = 0.1.
//! `p(w)` is the loss rate at which the mean window is `w`: a straight line through the two points in log-log scale.
//!
//! Valid for windows of 1 to 10^9 packets.
//!
//! Deviations (RFC says / we do / because):
//! 1. Appendix B uses the rounded 0.078 / w^1.2 / we use the exact line through the two points / the line then passes
//!    through both, and follows them when a scenario moves them. a(w) is up to 2.4% larger.
//! 2. Appendix B has two rows above `High_Window`, with b below `High_Decrease` / b stays at `High_Decrease` / the
//!    line reaches zero at 567,000 packets, and a flow that never gives way starves all others.
//! 3. a(w) just above `Low_Window` is 0.97 / a(w) is at least 1 / a flow is never slower than TCP.
//! 4. b(w) applies to the window / it applies to the lesser of the window and the packets in flight, and a timeout
//!    halves that / as in `window.rs`, deviation 1; the RFC's law covers congestion avoidance only.
//! 5. w is a real number / a(w) is computed for whole packets / most acks then need no logarithm.
//! 6. The window may grow even when it is not used / it does not grow while the application limits the sender / as in
//!    `window.rs`, deviation 2.

use super::window::{Growth, Window, window_params};
use crate::sender::{Ack, FlowView};
use crate::units::{Ratio, Time};
use crate::{Refused, within};

window_params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `Low_Window` in packets. Up to this window the law is TCP's.
        pub low_window: f64 = 38.0, // RFC 3649 section 5
        /// `Low_P`: loss rate at which the mean window is `low_window`.
        pub low_p: f64 = 1e-3, // RFC 3649 section 5
        /// `High_Window` in packets.
        pub high_window: f64 = 83_000.0, // RFC 3649 section 5: 10 Gb/s, 100 ms, 1500 bytes
        /// `High_P`: loss rate at which the mean window is `high_window`.
        pub high_p: f64 = 1e-7, // RFC 3649 section 5
        /// `High_Decrease`: the share of the window that a loss takes at `high_window`.
        pub high_decrease: Ratio = Ratio::new(0.1), // RFC 3649 section 5
    }
}

/// The response function: `p(w)`, `a(w)` and `b(w)`. Windows are in packets.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    low_window: f64,
    low_p: f64,
    /// `1 / S`.
    exponent: f64,
    /// Slope of `b` over `ln w`.
    slope: f64,
    high_decrease: f64,
    high_window: f64,
}

impl Response {
    /// Builds the response from the parameters. Contradictory ones are moved to the nearest valid values:
    /// `high_window` above `low_window`, `high_p` at most `low_p`.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let low_window = params.low_window.max(1.0);
        let high_window = params.high_window.max(low_window + 1.0);
        let low_p = params.low_p.clamp(1e-18, 1.0);
        let high_p = params.high_p.clamp(1e-18, low_p);
        let span = libm::log(high_window / low_window);
        let high_decrease = params.high_decrease.get();
        Self {
            low_window,
            low_p,
            exponent: libm::log(high_p / low_p) / span,
            slope: (high_decrease - 0.5) / span,
            high_decrease,
            high_window,
        }
    }

    /// `p(w)`: the loss rate at which the mean window is `w` packets. Valid above `Low_Window`.
    #[must_use]
    pub fn loss_rate(&self, w: f64) -> f64 {
        self.low_p * libm::exp(self.exponent * libm::log(w / self.low_window))
    }

    /// `b(w)`: the share of the window that a loss takes.
    #[must_use]
    pub fn decrease(&self, w: f64) -> f64 {
        if w <= self.low_window {
            0.5
        } else if w >= self.high_window {
            self.high_decrease // deviation 2
        } else {
            self.slope * libm::log(w / self.low_window) + 0.5
        }
    }

    /// `a(w)`: packets by which the window grows in a round trip.
    #[must_use]
    pub fn increase(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return 1.0;
        }
        let b = self.decrease(w);
        (w * w * self.loss_rate(w) * 2.0 * b / (2.0 - b)).max(1.0) // deviation 3
    }
}

/// HighSpeed TCP: a window with RFC 3649's response.
pub type HighSpeed = Window<Table>;

/// State of HighSpeed TCP's growth.
#[derive(Clone, Debug)]
pub struct Table {
    response: Response,
    packet: f64,
    /// The window in whole packets for which `increase` was computed.
    increase_at: f64,
    /// `a(increase_at)`.
    increase: f64,
}

impl Growth for Table {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        within("low_window", p.low_window, 1.0, 1e9)?;
        within("high_window", p.high_window, p.low_window + 1.0, 1e10)?;
        within("low_p", p.low_p, 1e-18, 1.0)?;
        within("high_p", p.high_p, 1e-18, p.low_p)?;
        within("high_decrease", p.high_decrease.get(), 0.0, 0.5)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let packet = f64::from(flow.packet_bytes);
        Self { response: Response::new(params), packet, increase_at: 0.0, increase: 1.0 }
    }

    #[inline]
    fn step(&mut self, cwnd: f64, _: &Ack<'_>) -> f64 {
        let w = (cwnd / self.packet).floor();
        if w != self.increase_at {
            self.increase_at = w;
            self.increase = self.response.increase(w); // deviation 5
        }
        // The window grows no faster than in slow start, whatever the parameters.
        (self.increase * self.packet / cwnd).min(1.0) * self.packet
    }

    fn after_loss(&mut self, _: Time, used: f64) -> f64 {
        used * (1.0 - self.response.decrease(used / self.packet))
    }

    fn after_timeout(&mut self, _: Time, used: f64) -> f64 {
        0.5 * used
    }
}
