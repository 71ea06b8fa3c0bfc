//! The steady state of DCTCP: synchronised flows of one round-trip time at a switch that marks by a step.
//!
//! ```text
//!   W*      = (C RTT + K)/N                       the window at which the queue reaches K
//!   alpha   from alpha^2 (1 - alpha/4) = (2 W* + 1)/(W* + 1)^2, about sqrt(2/W*)                        eq. 6
//!   D       = (W* + 1) alpha/2                    a window's swing, packets                             eq. 7
//!   A       = N D, about sqrt(2 N (C RTT + K))/2  the queue's swing, packets                            eq. 8
//!   T_C     = D, about sqrt(2 (C RTT + K)/N)/2    its period, round trips                               eq. 9
//!   Q_max   = K + N                               packets                                               eq. 10
//!   Q_min   = Q_max - A                           packets                                               eq. 11
//! ```
//!
//! Alizadeh et al. 2010, section 3.3. Windows grow by a packet in each round trip. Senders respond to a mark one round trip after
//! the queue has reached K. If windows do not grow for `held` round trips after a reduction, a cycle is longer by that many:
//!
//! ```text
//!   alpha   from alpha = S(W*, W*+1) / (S(low, W*+1) + held low),  low = (W* + 1)(1 - alpha/2), S(a, b) = (b^2 - a^2)/2        eq. 5
//!   T_C     = D + held
//! ```
//!
//! RFC 3168 section 6.1.2 holds the window for the one round trip in which acks carry ECN-Echo; the paper's model does not.
//! Valid for a few tens of flows at most, because more are not synchronised (section 3.3), and where `Q_min` is above zero.
//! Otherwise the link idles, which cuts off the queue's swing.
//!
//! Deviations (paper says / we do / because):
//! 1. Equations 8 and 9 use `sqrt(2/W*)` for alpha / we use alpha of equation 6 / with windows of ten packets the two differ
//!    by a tenth. [`SteadyState::rough_amplitude`] is the paper's value.

use flowstamp_laws::{Rate, Time};

/// The steady state; windows and queues in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// `N`.
    pub flows: f64,
    /// `W*`: the window at which the queue reaches `K`.
    pub window: f64,
    /// The share of packets that are marked.
    pub alpha: f64,
    /// `A`: how far the queue swings, from its shortest to its longest.
    pub amplitude: f64,
    /// `T_C`: round trips from one reduction to the next.
    pub period_rtts: f64,
    /// The longest queue.
    pub queue_max: f64,
    /// The shortest queue, at least 0.
    pub queue_min: f64,
}

impl SteadyState {
    /// `flows` flows over a link of `capacity` whose switch marks beyond `threshold` packets of `packet_bytes`. `rtt` is the
    /// round-trip time without a queue. `held` is the number of round trips without growth after a reduction: 0 in the paper.
    /// `None` without flows, if `W*` is below one packet, or if `held` is below 0.
    #[must_use]
    pub fn new(
        flows: u32,
        capacity: Rate,
        rtt: Time,
        packet_bytes: u32,
        threshold: f64,
        held: f64,
    ) -> Option<Self> {
        let (n, pipe) = (f64::from(flows), capacity.bytes_in(rtt) / f64::from(packet_bytes));
        let window = (pipe + threshold) / n;
        if !(window >= 1.0 && window.is_finite() && held >= 0.0) {
            return None;
        }
        let alpha = alpha(window, held);
        let swing = (window + 1.0) * alpha / 2.0; // eq. 7
        let (queue_max, amplitude) = (threshold + n, n * swing); // eq. 10, eq. 8
        Some(Self {
            flows: n,
            window,
            alpha,
            amplitude,
            period_rtts: swing + held, // eq. 9
            queue_max,
            queue_min: (queue_max - amplitude).max(0.0), // eq. 11
        })
    }

    /// `A` with `sqrt(2/W*)` for alpha, as in equation 8.
    #[must_use]
    pub fn rough_amplitude(&self) -> f64 {
        0.5 * libm::sqrt(2.0 * self.flows * self.flows * self.window)
    }
}

/// Solves equation 5 for `alpha` by bisection: `alpha` times the packets sent in a cycle rises with `alpha`.
fn alpha(window: f64, held: f64) -> f64 {
    let top = window + 1.0;
    let marked = top - 0.5; // S(W*, W* + 1)
    let (mut low, mut high) = (0.0, 1.0);
    // Each halving gains one bit.
    for _ in 0..64 {
        let middle: f64 = 0.5 * (low + high);
        let low_window = top * (1.0 - middle / 2.0);
        let sent = 0.5 * (top * top - low_window * low_window) + held * low_window;
        if middle * sent < marked {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(flows: u32) -> SteadyState {
        SteadyState::new(flows, Rate::from_gbps(10.0), Time::from_micros(100), 1500, 40.0, 0.0)
            .expect("a state")
    }

    /// Section 3.3, eqs. 5 and 6: the fixed point of the marked share of a cycle.
    #[test]
    fn alpha_is_the_share_of_a_cycle_that_is_marked() {
        let sent = |from: f64, to: f64| (to * to - from * from) / 2.0;
        for flows in [1, 2, 10, 40] {
            let s = state(flows);
            let top = s.window + 1.0;
            let share = sent(s.window, top) / sent(top * (1.0 - s.alpha / 2.0), top);
            assert!((share - s.alpha).abs() < 1e-12, "{share} {s:?}");
            let left = s.alpha * s.alpha * (1.0 - s.alpha / 4.0);
            assert!((left * top * top - 2.0 * s.window - 1.0).abs() < 1e-9, "eq. 6: {s:?}");
        }
    }

    #[test]
    fn rough_forms_are_near_for_large_windows() {
        for flows in [1, 2] {
            let s = state(flows);
            assert!((s.alpha / libm::sqrt(2.0 / s.window) - 1.0).abs() < 0.05, "{s:?}");
            assert!((s.amplitude / s.rough_amplitude() - 1.0).abs() < 0.05, "{s:?}");
            assert_eq!((s.queue_max, s.queue_min), (40.0 + f64::from(flows), s.queue_max - s.amplitude));
        }
    }

    #[test]
    fn a_window_that_is_held_is_marked_less() {
        let held = SteadyState::new(2, Rate::from_gbps(10.0), Time::from_micros(100), 1500, 40.0, 1.0);
        let (held, grown) = (held.expect("a state"), state(2));
        assert!(held.alpha < grown.alpha && held.amplitude < grown.amplitude);
        assert!((held.period_rtts - held.amplitude / 2.0 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_state_has_none() {
        let of = |flows, rtt| SteadyState::new(flows, Rate::from_gbps(1.0), rtt, 1500, 20.0, 0.0);
        assert!(of(0, Time::from_micros(100)).is_none());
        assert!(of(50, Time::from_micros(100)).is_none());
        assert!(of(2, Time::from_micros(100)).is_some());
    }
}
