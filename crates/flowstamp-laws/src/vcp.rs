//! VCP, the variable-structure congestion control protocol (Xia, Subramanian, Stoica, Kalyanaraman 2008).
//!
//! Routers signal their load in two bits; senders then increase multiplicatively, increase additively or decrease.
//! [`exact`] is section V's model, in which headers carry the load factor itself.

pub mod edge;
pub mod exact;
pub mod header;
pub mod router;
pub mod sender;

pub use header::Code;
pub use router::Router;
pub use sender::Sender;

use crate::units::Time;

/// `t_rho` where the paths are unknown: longer than the RTTs of 75% to 90% of the Internet's flows (section III-B).
pub const T_RHO: Time = Time::from_millis(200);

/// `t_rho` over the flows' RTT where the paths are known. The paper's basic case has 200 ms at an RTT of 80 ms
/// (section IV-A).
pub const T_RHO_PER_RTT: f64 = 2.5;

/// The load factor at which low load ends and high load begins (section III-B).
pub const TRANSITION: f64 = 0.8;

use crate::{AgreedTime, Open};

/// `xi`: relative growth of a window per `t_rho` at this load factor (eq. 10; eq. 5 at the transition).
#[inline]
#[must_use]
pub fn growth(kappa: f64, load: f64) -> f64 {
    kappa * (1.0 - load) / load
}

/// `xi_s`: relative growth of a window in `x` times `t_rho` (eq. 6), where `ln_growth` is `ln(1 + xi)`.
#[inline]
#[must_use]
pub fn scaled_growth(ln_growth: f64, x: f64) -> f64 {
    libm::expm1(x * ln_growth)
}

/// Declares that routers and senders must agree on `t_rho`.
pub(crate) fn open(t_rho: &mut Option<Time>) -> Open<'_> {
    let agreed = AgreedTime { name: "t_rho", value: t_rho, per_rtt: T_RHO_PER_RTT };
    Open { agreed_time: Some(agreed), ..Open::default() }
}
