//! The window of CUBIC: a cubic function of the time since the last loss (Ha, Rhee and Xu 2008; RFC 9438).
//!
//! ```text
//!             "paper": 2008                                "rfc9438"
//! W(t)      = C (t - K)^3 + W_max                          the same            2008 section 3.2, RFC section 4.2
//! K         = cbrt((W_max - cwnd) / C)                     the same            t = 0: the first ack after the repair
//! target    = W(t + RTT_min)                               W(t + SRTT), up to 1.5 cwnd
//! ack:        cwnd += (target - cwnd) / cwnd               the same            2008 algorithm 1, RFC sections 4.4, 4.5
//!             cwnd += 0.01 / cwnd if target <= cwnd        nothing
//! W_est    += a / cwnd for each packet, from cwnd at t = 0                     2008 section 3.3, RFC section 4.3
//!             a = 3 (1 - beta) / (1 + beta)                the same, and a = 1 once W_est is what the loss found
//!             cwnd = W_est if that is more than cwnd       if it is more than W(t)
//! loss:       W_max = cwnd, (1 + beta)/2 cwnd if that is below the last W_max  2008 section 3.7, RFC section 4.7
//!             cwnd = beta cwnd, beta = 0.8                 beta = 0.7          2008 section 3.6, RFC section 4.6
//! timeout:    the same threshold; then W_max = cwnd, K = 0                     2008 algorithm 1, RFC section 4.8
//! ```
//!
//! C = 0.4 packets/s^3, windows in packets. The paper's beta is the share that a loss takes, 0.2; here, as in the
//! RFC, it is the share that a loss leaves. Where `W_est` does not apply, one loss in 1/p packets gives a mean window
//! of (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4) (RFC section 5). The factor is 1.17 for the paper and
//! 1.054 for the RFC.
//!
//! Valid for windows of 1 to 10^9 packets and any round-trip time. Where the round-trip time is short, `W_est`
//! applies and the law is TCP's.
//!
//! Deviations (source says / we do / because):
//! 1. RFC section 4.3 sets the window to `W_est` / an ack opens the window by at most one packet and never closes it
//!    / no law here grows faster than slow start.
//! 2. The paper's clock keeps running while a sender is idle / time in which the application limits the sender does
//!    not count, as RFC section 5.8 says / a window that is not used probes nothing.
//! 3. beta applies to the window (2008) or to the packets in flight (RFC) / it applies to the lesser of the two / as
//!    in `window.rs`, deviation 1.
//! 4. The paper's window may grow even when it is not used / it does not grow while the application limits the sender
//!    / as in `window.rs`, deviation 2.
//! 5. RFC section 4.9 undoes a reduction that was spurious / nothing is undone / this transport detects none.
//! 6. RFC section 4.10 recommends `HyStart++` / slow start ends at `initial_ssthresh` or at a loss / `HyStart++` is a
//!    law of its own that applies to any TCP.

use super::window::{Growth, Window, window_params};
use crate::sender::{Ack, FlowView};
use crate::units::{Ratio, Time};
use crate::{Refused, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The specification that the law follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Ha, Rhee and Xu 2008.
    Paper,
    /// RFC 9438.
    #[default]
    Rfc9438,
}

impl Variant {
    /// Share of the window that a loss leaves, as the variant's text sets it.
    #[must_use]
    pub const fn beta(self) -> f64 {
        match self {
            Self::Paper => 0.8,   // 2008 section 3.6: 0.2 is taken
            Self::Rfc9438 => 0.7, // RFC 9438 section 4.6
        }
    }
}

window_params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// The specification: the paper of 2008 or RFC 9438.
        pub variant: Variant = Variant::Rfc9438,
        /// `C` in packets/s^3.
        pub c: f64 = 0.4, // 2008 section 3.2; RFC 9438 section 5
        /// `beta`: the share of the window that a loss leaves. Default: the variant's, 0.8 in the paper and 0.7 in the
        /// RFC.
        pub beta: Option<Ratio> = None,
        /// Whether the flow gives room to others after losses at smaller and smaller windows.
        pub fast_convergence: bool = true, // 2008 algorithm 1; RFC 9438 section 4.7
        /// Whether the window is never less than that of a TCP with this `beta`.
        pub tcp_friendly: bool = true, // 2008 algorithm 1; RFC 9438 section 4.3
    }
}

/// `K` in seconds: the time from a loss until the window is back at `w_max`. Windows are in packets.
#[must_use]
pub fn k(w_max: f64, cwnd: f64, c: f64) -> f64 {
    libm::cbrt((w_max - cwnd) / c)
}

/// CUBIC: a window that grows by a cubic function of time.
pub type Cubic = Window<Curve>;

/// Constants of one epoch: the time between two losses.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Time at which `t = 0`.
    start: Time,
    /// `K` in seconds.
    k: f64,
    /// `W_max`, or the window at `t = 0` if that is more.
    origin: f64,
    w_est: f64,
}

/// State of CUBIC's growth. Windows are in packets.
#[derive(Clone, Debug)]
pub struct Curve {
    packet: f64,
    variant: Variant,
    c: f64,
    beta: f64,
    fast_convergence: bool,
    tcp_friendly: bool,
    /// `W_max`; zero while unknown.
    w_max: f64,
    /// The window at the last loss.
    w_prior: f64,
    epoch: Option<Epoch>,
    last_ack: Time,
}

impl Curve {
    /// `K` of the current epoch, in seconds.
    #[must_use]
    pub fn k(&self) -> Option<f64> {
        self.epoch.map(|epoch| epoch.k)
    }

    /// `W_max` in packets, zero while unknown.
    #[must_use]
    pub const fn w_max(&self) -> f64 {
        self.w_max
    }

    /// Window in packets after an ack, from a window of `w` packets.
    fn wanted(&mut self, w: f64, ack: &Ack<'_>) -> f64 {
        let (w_max, c) = (self.w_max, self.c);
        let epoch = self.epoch.get_or_insert_with(|| {
            let below = w < w_max;
            Epoch {
                start: ack.now,
                k: if below { k(w_max, w, c) } else { 0.0 },
                origin: w_max.max(w),
                w_est: w,
            }
        });
        let at = |time: Time| {
            let from_k = time.as_secs_f64() - epoch.k;
            c * from_k * from_k * from_k + epoch.origin
        };
        let t = ack.now.saturating_sub(epoch.start);
        let reno = match self.variant {
            // RFC section 4.3: alpha_cubic makes up for the smaller reduction until the window is back where the loss
            // found it.
            Variant::Rfc9438 if epoch.w_est >= self.w_prior => 1.0,
            _ => 3.0 * (1.0 - self.beta) / (1.0 + self.beta),
        };
        let (cubic, estimate_holds_from) = match self.variant {
            Variant::Paper => {
                let target = at(t.saturating_add(ack.min_rtt));
                let step = if target > w { (target - w) / w } else { 0.01 / w };
                (w + step, w + step)
            }
            Variant::Rfc9438 => {
                let target = at(t.saturating_add(ack.srtt)).clamp(w, 1.5 * w);
                (w + (target - w) / w, at(t))
            }
        };
        epoch.w_est += reno * f64::from(ack.newly_acked) / w;
        if self.tcp_friendly && epoch.w_est > estimate_holds_from { epoch.w_est } else { cubic }
    }

    fn reduce(&mut self, used: f64, w_max: f64) -> f64 {
        self.w_prior = used / self.packet;
        self.w_max = w_max;
        self.epoch = None;
        used * self.beta
    }
}

impl Growth for Curve {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        within("c", p.c, 1e-6, 1e6)?;
        within("beta", p.beta.map_or(0.5, Ratio::get), 0.0, 0.999)
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        Self {
            packet: f64::from(flow.packet_bytes),
            variant: p.variant,
            c: p.c,
            beta: p.beta.map_or(p.variant.beta(), Ratio::get),
            fast_convergence: p.fast_convergence,
            tcp_friendly: p.tcp_friendly,
            w_max: 0.0,
            w_prior: 0.0,
            epoch: None,
            last_ack: Time::ZERO,
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Some(epoch) = self.epoch.as_mut().filter(|_| !ack.window_limited) {
            // Deviation 2.
            epoch.start = epoch.start.saturating_add(ack.now.saturating_sub(self.last_ack)).min(ack.now);
        }
        self.last_ack = ack.now;
    }

    #[inline]
    fn step(&mut self, cwnd: f64, ack: &Ack<'_>) -> f64 {
        let w = cwnd / self.packet;
        (self.wanted(w, ack) - w).clamp(0.0, 1.0) * self.packet // deviation 1
    }

    fn after_loss(&mut self, _: Time, used: f64) -> f64 {
        let w = used / self.packet;
        let given_way = self.fast_convergence && w < self.w_max;
        self.reduce(used, if given_way { 0.5 * (1.0 + self.beta) * w } else { w })
    }

    fn after_timeout(&mut self, _: Time, used: f64) -> f64 {
        self.reduce(used, 0.0)
    }
}
