//! The VCP sender: multiplicative increase, additive increase or multiplicative decrease, chosen by the load code.
//!
//! Xia and others 2008, sections III-C to III-E. `w` is the window in packets, `x = rtt / t_rho` with the smoothed RTT.
//!
//! ```text
//!   code 01, per ack:   w += xi_s           xi_s = (1 + xi)^min(x, 2.5) - 1               eqs. 2 and 6, S.1
//!                                           xi   = kappa (1 - 0.8) / 0.8 = 1/16           eq. 5 at the transition
//!   code 10, per ack:   w += alpha_s / w    alpha_s = weight alpha (rtt / base)^2         eqs. 3 and 8, S.2
//!   code 11, once:      w *= beta           then nothing for t_rho, then as for 10 for an RTT     eq. 4, S.3
//!   loss, timeout:      as TCP Reno's (section III-E.2)
//! ```
//!
//! There is no slow start: a window of 2 packets grows by a sixteenth in `t_rho`. After many cuts, flows with
//! different RTTs have windows in proportion to their `alpha_s`, and so rates in proportion to their weights (section
//! III-D).
//!
//! **Left open by the paper:** how S.1 and S.2 bound the increase at long RTTs. `docs/models/vcp.md` shows the
//! choices as curves. The defaults reproduce figures 3, 4, 5, 7 and 13 best together. `mi_limit` bounds `x` (2.5 in
//! the authors' code), `ai_base` is `t_rho` as in equation 8, and additive increase adds at most a tenth of the
//! window per round trip ([`Limiter`]).
//!
//! With equal windows (footnote 5, equation 7) `alpha_s = weight alpha rtt / base`, and rates are in inverse proportion
//! to RTTs.
//!
//! TCP-friendly (section VI-C): `alpha_s = 4 (1 - beta^2) / 3` packets per RTT, independent of the RTT, as in general
//! AIMD for this `beta` (Yang and Lam 2000). Routers then need their own `tcp_friendly`.
//!
//! Valid for RTTs up to a few `t_rho` and windows of 1 to 10^9 packets.
//!
//! Deviations (paper says / we do / because):
//! 1. The window changes per ack / it changes per newly acknowledged packet / an ack may answer several.
//! 2. Nothing on application-limited senders / their window does not grow / nothing else would bound it.
//! 3. Nothing on fast recovery / the window does not grow during it / as in Reno.
//! 4. Nothing on a returned code of 00 / it counts as 10 / a node on the path cleared the code: neither multiply nor
//!    cut.
//! 5. The two waits after a cut begin with the cut / they end by the clock, not by acks / S.3 gives them as times.

use super::header::Code;
use super::{T_RHO, TRANSITION, growth, scaled_growth};
use crate::sender::{Ack, Congestion, FlowView, Recovery, SenderLaw, SenderTraits};
use crate::stamp::Stamp;
use crate::units::{Ratio, Time};
use crate::{Open, Refused, check_times, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::params! {
    /// Parameters that a scenario may set (table I).
    pub struct Params {
        /// `t_rho`: time over which routers measure a load factor, the same for all routers and senders of a network. Default: 2.5
        /// times the flows' mean RTT; the paper has 200 ms.
        pub t_rho: Option<Time> = None,
        /// `kappa`: gain of the multiplicative increase, above 0.
        pub kappa: f64 = 0.25, // section III-C
        /// `alpha`: packets that the additive increase adds in a round trip of `ai_base`.
        pub alpha: f64 = 1.0, // section III-C
        /// `beta`: share of the window that a cut leaves.
        pub beta: Ratio = Ratio::new(0.875), // section III-B
        /// Weight of the flow, above 0. Throughputs at one bottleneck are in proportion to it (section IV-D).
        pub weight: f64 = 1.0,
        /// Limit of the multiplicative increase in a round trip: the increase of this many `t_rho`.
        pub mi_limit: f64 = 2.5, // the authors' code
        /// The RTT at which the additive increase is `alpha`. Default: `t_rho` (equation 8); the authors' code has 100 ms.
        pub ai_base: Option<Time> = None, // equation 8
        /// Whether flows of different RTTs get equal windows instead of equal rates: the additive increase is then
        /// proportional to the RTT instead of to its square (footnote 5: equation 7 in place of equation 8).
        pub equal_windows: bool = false,
        /// RTT, as a multiple of `ai_base`, below which the additive increase is proportional to the RTT instead of to
        /// its square. The authors' code has 0.2.
        pub ai_square_from: f64 = 0.0,
        /// RTT, as a multiple of `ai_base`, above which the additive increase is proportional to the RTT instead of to
        /// its square. The authors' code has 5.
        pub ai_square_to: f64 = 1e9,
        /// Maximum number of packets that the additive increase adds in a round trip.
        pub ai_most: f64 = 1e9,
        /// Largest share of the window that the additive increase adds in a round trip.
        pub ai_limiter: Limiter = Limiter::Tenth,
        /// Whether the flow follows general AIMD without scaling, so that TCP flows get their share (section VI-C).
        /// `weight` still counts.
        pub tcp_friendly: bool = false,
    }
}

/// Largest share of a window that the additive increase adds in a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Limiter {
    /// No limit.
    None,
    /// A tenth, which is less than the eighth that a cut takes.
    Tenth,
    /// A tenth up to 10 packets, 6% up to 100, 4% up to 1000, 2% beyond. The authors' code computes it and does not
    /// use it.
    Table,
}

impl Limiter {
    /// The bound at a window of `window` packets, as a share of it per round trip.
    #[must_use]
    pub fn share(self, window: f64) -> f64 {
        match self {
            Self::None => f64::INFINITY,
            Self::Tenth => 0.1,
            Self::Table if window < 10.0 => 0.1,
            Self::Table if window < 100.0 => 0.06,
            Self::Table if window < 1000.0 => 0.04,
            Self::Table => 0.02,
        }
    }
}

/// State of one VCP flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Bytes.
    cwnd: f64,
    packet: f64,
    /// `t_rho`, seconds.
    t_rho: f64,
    /// `ln(1 + xi)`.
    ln_growth: f64,
    /// `weight alpha`, where `alpha` is general AIMD's if TCP-friendly.
    alpha: f64,
    beta: f64,
    mi_limit: f64,
    /// Seconds.
    ai_base: f64,
    ai_square: [f64; 2],
    ai_most: f64,
    ai_limiter: Limiter,
    /// The additive increase does not follow the RTT.
    unscaled: bool,
    /// Codes do not change the window before this time.
    frozen_until: Time,
    /// After that, the window increases additively until this time, whatever the codes.
    adds_until: Time,
}

impl Sender {
    /// `xi_s`: relative growth of the window per round trip at low load (eq. 6, S.1).
    #[must_use]
    pub fn multiplies_by(&self, rtt: Time) -> f64 {
        let x = (rtt.as_secs_f64() / self.t_rho).min(self.mi_limit);
        scaled_growth(self.ln_growth, x)
    }

    /// `alpha_s`: packets that a round trip adds to a window of `window` packets at high load (eq. 8, S.2).
    #[must_use]
    pub fn adds(&self, rtt: Time, window: f64) -> f64 {
        let x = rtt.as_secs_f64() / self.ai_base;
        let scale = if self.unscaled { 1.0 } else { x * x.max(self.ai_square[0]).min(self.ai_square[1]) };
        (self.alpha * scale).min(self.ai_most).min(self.ai_limiter.share(window) * window)
    }

    /// The window in packets.
    fn window(&self) -> f64 {
        self.cwnd / self.packet
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    /// The authors built VCP on Reno. With selective acks the law is the same, and the rare losses cost less.
    fn traits(p: &Params) -> SenderTraits {
        // S.1 with the longest RTT that counts. Without feedback of overload, a longer RTT raises the window faster.
        let most = scaled_growth(libm::log1p(growth(p.kappa, TRANSITION)), p.mi_limit);
        let per_acked = libm::ceil(most).clamp(1.0, 1e6) as u32;
        SenderTraits { recovery: Recovery::Sack, per_acked, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        check_times([("t_rho", p.t_rho), ("ai_base", p.ai_base)])?;
        within("kappa", p.kappa, 1e-6, 100.0)?;
        within("alpha", p.alpha, 0.0, 1e6)?;
        within("beta", p.beta.get(), 0.0, 1.0)?;
        within("weight", p.weight, 1e-6, 1e6)?;
        within("mi_limit", p.mi_limit, 1e-6, 1e3)?;
        if p.equal_windows && (p.ai_square_from, p.ai_square_to) != (0.0, 1e9) {
            let wrong =
                "is true, which leaves nothing for `ai_square_from` and `ai_square_to`; leave them out";
            return Err(("equal_windows", wrong.to_owned()));
        }
        within("ai_square_from", p.ai_square_from, 0.0, 1e9)?;
        within("ai_square_to", p.ai_square_to, p.ai_square_from, 1e9)?;
        within("ai_most", p.ai_most, 1e-9, 1e9)
    }

    fn open(p: &mut Params) -> Open<'_> {
        super::open(&mut p.t_rho)
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        let packet = f64::from(flow.packet_bytes);
        let t_rho = p.t_rho.unwrap_or(T_RHO);
        let beta = p.beta.get();
        let alpha = if p.tcp_friendly { 4.0 * (1.0 - beta * beta) / 3.0 } else { p.alpha };
        Self {
            cwnd: (flow.initial_window * packet).max(packet),
            packet,
            t_rho: t_rho.as_secs_f64(),
            ln_growth: libm::log1p(growth(p.kappa, TRANSITION)), // eq. 5
            alpha: p.weight * alpha,
            beta,
            mi_limit: p.mi_limit,
            ai_base: p.ai_base.unwrap_or(t_rho).as_secs_f64(),
            ai_square: if p.equal_windows { [1.0; 2] } else { [p.ai_square_from, p.ai_square_to] }, // eq. 7 or 8
            ai_most: p.ai_most,
            ai_limiter: p.ai_limiter,
            unscaled: p.tcp_friendly,
            frozen_until: Time::ZERO,
            adds_until: Time::ZERO,
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.now < self.frozen_until {
            return;
        }
        let code = if ack.now < self.adds_until { Code::High } else { Code::read(ack.bits) };
        if code == Code::Overload {
            self.cwnd = (self.cwnd * self.beta).max(self.packet); // eq. 4
            self.frozen_until = ack.now.saturating_add(Time::from_secs_f64(self.t_rho));
            self.adds_until = self.frozen_until.saturating_add(ack.srtt);
            return;
        }
        if ack.in_recovery || !ack.window_limited {
            return; // deviations 2 and 3
        }
        let per_packet = match code {
            Code::Low => self.multiplies_by(ack.srtt),               // S.1
            _ => self.adds(ack.srtt, self.window()) / self.window(), // S.2
        };
        self.cwnd += f64::from(ack.newly_acked) * per_packet * self.packet;
    }

    fn on_congestion(&mut self, _: Time, sign: Congestion<'_>) {
        // The code tells more than a mark.
        if !matches!(sign, Congestion::Mark { .. }) {
            self.cwnd = sign.halve(self.cwnd, self.packet);
        }
    }

    #[inline]
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }

    #[inline]
    fn bits(&self) -> u16 {
        Code::Low.bits()
    }
}
