//! The window of H-TCP (Leith and Shorten 2004; draft-leith-tcp-htcp-06): it grows faster the longer no loss occurs.
//!
//! ```text
//! Delta      time since the last loss or mark
//! alpha_H  = 1                                                        Delta <= Delta_L
//!          = 1 + 10 (Delta - Delta_L) + ((Delta - Delta_L) / 2)^2     else
//! alpha_H  = max(alpha_H RTT_min / RTT_ref, 1)                        RTT scaling
//! alpha    = 2 (1 - beta) alpha_H
//! ack:       cwnd += alpha packet^2 / cwnd
//! loss:      beta = RTT_min / RTT_max, 0.5 to 0.8                     |B(k) - B(k-1)| <= 0.2 B(k-1): adaptive backoff
//!                 = 0.5                                               else
//!            cwnd = beta cwnd,  Delta = 0
//! ```
//!
//! B(k) is the throughput just before the k-th loss. A loss that leaves the share `RTT_min / RTT_max` just empties
//! the queue. The factor 2 (1 - beta) makes a flow with that share fair to one that halves its window.
//!
//! Valid for windows of 1 to 10^9 packets and round trips up to seconds: alpha's clock is time, not round trips.
//!
//! Deviations (paper says / we do / because):
//! 1. The paper leaves the reference RTT of the scaling open / it is 100 ms, with a ratio of 0.1 to 2 / as in the
//!    authors' Linux module.
//! 2. alpha is what the formulas give / alpha_H is at least TCP's one packet, so only 2 (1 - beta) makes alpha less /
//!    RTT scaling alone would make a flow on a short path slower than TCP.
//! 3. `RTT_max` is "the maximum" / it is the largest sample since the last loss / an earlier queue of the path says
//!    nothing about the present one.
//! 4. B(k) is the throughput "immediately before" the loss / it is that of the last whole round trip by the smoothed
//!    RTT / a throughput needs a time span.
//! 5. A timeout is not treated separately / beta is 0.5 and Delta restarts / RFC 5681; a timeout says nothing about a
//!    queue.
//! 6. beta applies to the window / it applies to the lesser of the window and the packets in flight / as in
//!    `window.rs`, deviation 1.
//! 7. The window may grow even when it is not used / it does not grow while the application limits the sender / as in
//!    `window.rs`, deviation 2.

use super::window::{Growth, Window, window_params};
use crate::sender::{Ack, FlowView};
use crate::units::{Ratio, Time};
use crate::{Refused, within};

/// Bounds of `RTT_min / RTT_ref` (deviation 1).
const SCALING: (f64, f64) = (0.1, 2.0);

window_params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `Delta_L`: time after a loss during which the law is TCP's.
        pub low_speed_time: Time = Time::from_secs(1), // 2004
        /// Smallest share of the window that a loss leaves.
        pub min_beta: Ratio = Ratio::new(0.5), // 2004
        /// Largest share of the window that a loss leaves.
        pub max_beta: Ratio = Ratio::new(0.8), // 2004
        /// `Delta_B`: relative change of throughput from loss to loss above which a loss leaves `min_beta`.
        pub throughput_change: Ratio = Ratio::new(0.2), // 2004
        /// `RTT_ref`: the round-trip time at which `alpha_H` is not scaled. 0 turns scaling off.
        pub reference_rtt: Time = Time::from_millis(100), // deviation 1
    }
}

/// Unscaled `alpha_H` at `beyond_s` seconds after `Delta_L`, in packets per round trip.
#[must_use]
pub fn alpha_h(beyond_s: f64) -> f64 {
    let beyond = beyond_s.max(0.0);
    1.0 + 10.0 * beyond + 0.25 * beyond * beyond // 2004, the quadratic increase
}

/// H-TCP: a window that grows with the time since the last loss.
pub type Htcp = Window<Since>;

/// State of H-TCP's growth. Throughputs are in packets/s.
#[derive(Clone, Debug)]
pub struct Since {
    packet: f64,
    low_speed_s: f64,
    min_beta: f64,
    max_beta: f64,
    throughput_change: f64,
    reference_rtt_s: f64,
    /// Start of `Delta`; `None` before congestion avoidance first begins.
    since: Option<Time>,
    beta: f64,
    min_rtt: Time,
    /// Largest RTT sample since the last loss.
    max_rtt: Time,
    /// Start of the running round trip, and the packets delivered by then.
    round: Option<(Time, u32)>,
    throughput: f64,
    /// `B(k-1)`; zero before a loss.
    last_throughput: f64,
}

impl Since {
    /// `alpha` at `now`: growth of the window in packets per round trip.
    #[must_use]
    pub fn alpha(&self, now: Time) -> f64 {
        let delta = now.saturating_sub(self.since.unwrap_or(now)).as_secs_f64();
        let scaling = if self.reference_rtt_s > 0.0 {
            (self.min_rtt.as_secs_f64() / self.reference_rtt_s).clamp(SCALING.0, SCALING.1)
        } else {
            1.0
        };
        2.0 * (1.0 - self.beta) * (alpha_h(delta - self.low_speed_s) * scaling).max(1.0)
    }

    /// `beta`: the share of the window that the last loss left.
    #[must_use]
    pub const fn beta(&self) -> f64 {
        self.beta
    }

    fn restart(&mut self, now: Time, beta: f64) {
        self.beta = beta;
        self.since = Some(now);
        self.max_rtt = Time::ZERO;
        self.last_throughput = self.throughput;
    }
}

impl Growth for Since {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        within("min_beta", p.min_beta.get(), 0.0, 1.0)?;
        within("max_beta", p.max_beta.get(), p.min_beta.get(), 1.0)?;
        within("throughput_change", p.throughput_change.get(), 0.0, 1.0)
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        Self {
            packet: f64::from(flow.packet_bytes),
            low_speed_s: p.low_speed_time.as_secs_f64(),
            min_beta: p.min_beta.get(),
            max_beta: p.max_beta.get().max(p.min_beta.get()),
            throughput_change: p.throughput_change.get(),
            reference_rtt_s: p.reference_rtt.as_secs_f64(),
            since: None,
            beta: p.min_beta.get(),
            min_rtt: Time::ZERO,
            max_rtt: Time::ZERO,
            round: None,
            throughput: 0.0,
            last_throughput: 0.0,
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.min_rtt = ack.min_rtt;
        self.max_rtt = self.max_rtt.max(ack.rtt);
        let (start, delivered) = *self.round.get_or_insert((ack.now, ack.delivered));
        let span = ack.now.saturating_sub(start);
        if span > Time::ZERO && span >= ack.srtt {
            self.throughput = f64::from(ack.delivered.wrapping_sub(delivered)) / span.as_secs_f64();
            self.round = Some((ack.now, ack.delivered));
        }
    }

    #[inline]
    fn step(&mut self, cwnd: f64, ack: &Ack<'_>) -> f64 {
        self.since.get_or_insert(ack.now);
        // The window grows no faster than in slow start, however long no loss occurs.
        (self.alpha(ack.now) * self.packet / cwnd).min(1.0) * self.packet
    }

    fn after_loss(&mut self, now: Time, used: f64) -> f64 {
        let change = (self.throughput - self.last_throughput).abs();
        let steady = self.last_throughput > 0.0 && change <= self.throughput_change * self.last_throughput;
        let beta = if steady && self.max_rtt > Time::ZERO {
            (self.min_rtt.as_secs_f64() / self.max_rtt.as_secs_f64()).clamp(self.min_beta, self.max_beta)
        } else {
            self.min_beta
        };
        self.restart(now, beta);
        used * self.beta
    }

    fn after_timeout(&mut self, now: Time, used: f64) -> f64 {
        self.restart(now, self.min_beta); // deviation 5
        used * self.beta
    }
}
