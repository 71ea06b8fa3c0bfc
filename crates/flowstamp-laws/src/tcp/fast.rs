//! FAST TCP (Wei, Jin, Low and Hegde 2006): a window that keeps `alpha` of its packets in queues, whatever its rate.
//!
//! ```text
//! each ack:         RTT     = (1 - eta) RTT + eta sample,   eta = min(3 packets / cwnd, 1/4)
//!                   baseRTT = the least sample
//! each round trip:  target  = min(2 w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha))
//!                   while nothing is queued:  target = 2 w         alpha(w, 0) = a w
//!                   spread over the acks of the round trip
//! loss, mark:       w / 2
//! timeout:          w = 1 packet
//! ```
//!
//! The window is in equilibrium where w - w baseRTT / RTT = alpha, which is when `alpha` packets of the flow are
//! queued. N flows then share a link evenly, and its queue holds N alpha packets.
//!
//! Valid for windows of 2 to 10^9 packets and a buffer of more than alpha packets for each flow; with a smaller
//! buffer the window falls back to losses, as TCP's does.
//!
//! Deviations (paper says / we do / because):
//! 1. The prototype chooses alpha by the expected rate, 200 packets at 1 Gb/s / alpha is 20 unless the scenario sets
//!    it / a queue of 200 packets per flow is 1.6 s at 1 Mb/s.
//! 2. alpha(w, 0) = a w while the queueing delay is zero, and the paper leaves a open / the window doubles while less
//!    than one of its packets is queued, w (1 - baseRTT / RTT) < 1 / the delay is never exactly zero where packets
//!    meet; min(2 w, ...) doubles too.
//! 3. The prototype updates the window every other round trip / we update it every round trip, as the law is written;
//!    a round trip ends with the first ack of a packet that left after its start / the prototype waits because of the
//!    delay of its own measurement.
//! 4. A timer spreads growth over a round trip / growth is spread over the acks, and a decrease is immediate / a law
//!    has no timer.
//! 5. A loss leaves what TCP's would / it leaves half of the lesser of the window and the packets in flight / as in
//!    `window.rs`, deviation 1.
//! 6. The window may grow even when it is not used / it does not grow while the application limits the sender / as in
//!    `window.rs`, deviation 2.

use crate::sender::{Ack, Congestion, FlowView, SenderLaw};
use crate::stamp::Stamp;
use crate::units::{Ratio, Time};
use crate::{Refused, within};

/// Least window in packets, except after a timeout: RFC 5681 eq. 4.
const MIN_WINDOW: f64 = 2.0;

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `alpha`: target number of the flow's packets in queues.
        pub alpha: f64 = 20.0, // deviation 1
        /// `gamma`: share of the distance to its target that the window covers in a round trip, above 0.
        pub gamma: Ratio = Ratio::new(0.5), // 2006
        /// Largest window in packets.
        pub max_window: Option<f64> = None,
    }
}

/// State of one FAST TCP flow. Windows are in packets.
#[derive(Clone, Debug)]
pub struct Fast {
    packet: f64,
    alpha: f64,
    gamma: f64,
    max_window: f64,
    window: f64,
    /// Packets that each acknowledged packet adds until the round trip ends.
    step: f64,
    target: f64,
    /// Averaged RTT in seconds; zero before the first sample.
    rtt_s: f64,
    /// The round trip ends when more packets than this are delivered.
    round_end: u32,
}

/// Target in packets of a window of `w` packets, where `ratio` = baseRTT / RTT.
#[must_use]
pub fn update(w: f64, ratio: f64, alpha: f64, gamma: f64) -> f64 {
    (2.0 * w).min((1.0 - gamma) * w + gamma * (ratio * w + alpha))
}

impl Fast {
    /// The averaged round-trip time in seconds.
    #[must_use]
    pub const fn rtt_s(&self) -> f64 {
        self.rtt_s
    }

    fn set(&mut self, window: f64) {
        self.window = window.min(self.max_window).max(1.0);
        (self.target, self.step) = (self.window, 0.0);
    }

    fn halve(&mut self, flight: u32) {
        self.set((0.5 * self.window.min(f64::from(flight))).max(MIN_WINDOW));
    }
}

impl SenderLaw for Fast {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        within("alpha", p.alpha, 1e-3, 1e9)?;
        within("gamma", p.gamma.get(), 1e-6, 1.0)?;
        within("max_window", p.max_window.unwrap_or(1.0), 1.0, 1e9)
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        let max_window = p.max_window.map_or(f64::MAX, |w| w.max(1.0));
        let window = flow.initial_window.max(1.0).min(max_window);
        Self {
            packet: f64::from(flow.packet_bytes),
            alpha: p.alpha,
            gamma: p.gamma.get(),
            max_window,
            window,
            step: 0.0,
            target: window,
            rtt_s: 0.0,
            round_end: 0,
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.window * self.packet
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let sample = ack.rtt.as_secs_f64();
        let eta = if self.rtt_s > 0.0 { (3.0 / self.window).min(0.25) } else { 1.0 };
        self.rtt_s += eta * (sample - self.rtt_s);
        let round_over = ack.delivered > self.round_end;
        if round_over {
            self.round_end = (ack.delivered - ack.newly_acked.min(ack.delivered)).saturating_add(ack.flight);
        }
        if ack.in_recovery || ack.marked > 0 || !ack.window_limited {
            (self.target, self.step) = (self.window, 0.0);
            return;
        }
        if round_over && self.rtt_s > 0.0 {
            let ratio = (ack.min_rtt.as_secs_f64() / self.rtt_s).min(1.0);
            let w = self.window;
            let idle = w * (1.0 - ratio) < 1.0; // deviation 2
            let target = if idle { 2.0 * w } else { update(w, ratio, self.alpha, self.gamma) };
            if target < w {
                self.set(target.max(MIN_WINDOW));
            } else {
                self.target = target.min(self.max_window);
                self.step = (self.target - w) / w;
            }
        }
        self.window = (self.window + self.step * f64::from(ack.newly_acked)).min(self.target);
    }

    fn on_congestion(&mut self, _: Time, sign: Congestion<'_>) {
        match sign {
            Congestion::Loss { flight } | Congestion::Mark { flight } => self.halve(flight),
            Congestion::Timeout { .. } => self.set(1.0),
            _ => {}
        }
    }

    #[inline]
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}
