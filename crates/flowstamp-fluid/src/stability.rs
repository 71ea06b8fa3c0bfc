//! Stability of the control loops of XCP and RCP, by the linear form that both have near their equilibrium.
//!
//! ```text
//!   q' = x,   x' = -alpha/d x(t - d) - beta/d^2 q(t - d)       Katabi 2002, appendix B; Dukkipati 2007, eq. 5.6
//!   G(s) = (alpha s d + beta) / (s d)^2  e^(-s d)              open loop, theta = w d at |G(jw)| = 1:
//!   theta^2 = (alpha^2 + sqrt(alpha^4 + 4 beta^2)) / 2         eq. 5.10
//!   phase margin = arctan(alpha theta / beta) - theta
//! ```
//!
//! `x` is the input rate less the capacity, `q` the queue, `d` the RTT of all flows. |G| falls as w grows. The phase is above -pi up
//! to one w and below it beyond. Therefore the loop is stable where the phase margin is above zero. The border, where it is zero, is
//!
//! ```text
//!   alpha = theta sin(theta),   beta = theta^2 cos(theta),   0 < theta < pi/2
//! ```
//!
//! `alpha` grows along the border from 0 to pi/2; `beta` rises from 0 to [`MOST_BETA`] and falls back to 0. Theorem 1's curve,
//! `beta = alpha^2 sqrt(2)`, meets the border at the curve's end, `alpha = pi / (4 sqrt(2))`. The border depends neither on capacity
//! nor on delay nor on the number of flows.
//!
//! The linear form lets the queue fall below zero. The thesis's section 5.2 shows what that leaves out. The switched loop, whose queue
//! stops at zero, is stable in a larger region, for example with `alpha` 0.1 and `beta` 1. Near the right end it is unstable within
//! the linear region. Its border has no closed form; [`switched_alpha`] interpolates values from [`crate::control::switched`].

use std::f64::consts::FRAC_PI_2;

/// From this `alpha` on no `beta` is stable, not even 0 (no feedback from the queue).
pub const MOST_ALPHA: f64 = FRAC_PI_2;

/// From this `beta` on no `alpha` is stable: `theta^2 cos(theta)` where `theta tan(theta) = 2`.
pub const MOST_BETA: f64 = 0.549_774_025_605_498_5;

/// The `theta` at which the border reaches [`MOST_BETA`].
const PEAK: f64 = 1.076_873_986_311_803_5;

/// Phase margin in radians; the loop is stable where it is above zero. `None` if both gains are 0.
#[must_use]
pub fn phase_margin(alpha: f64, beta: f64) -> Option<f64> {
    let theta = gain_crossing(alpha, beta);
    (theta > 0.0).then(|| libm::atan2(alpha * theta, beta) - theta)
}

/// `w d` at which |G(jw)| = 1 (equation 5.10).
#[must_use]
pub fn gain_crossing(alpha: f64, beta: f64) -> f64 {
    let squared = alpha * alpha;
    libm::sqrt((squared + libm::sqrt(squared * squared + 4.0 * beta * beta)) / 2.0)
}

/// `w d` above zero at which the phase is -pi: the solution of `w d alpha / beta = tan(w d)` (equation 5.11). It exists if alpha is
/// above beta (equation 5.12).
#[must_use]
pub fn phase_crossing(alpha: f64, beta: f64) -> Option<f64> {
    // From the phase's maximum on (appendix C) the phase falls.
    let top = beta / alpha * libm::sqrt(alpha / beta - 1.0);
    (alpha > beta && beta > 0.0)
        .then(|| crossing((top, FRAC_PI_2), |theta| libm::atan(alpha * theta / beta) > theta))
}

/// The `beta` below which the loop with this `alpha` is stable; `None` if no `beta` is.
#[must_use]
pub fn largest_beta(alpha: f64) -> Option<f64> {
    (alpha > 0.0 && alpha < MOST_ALPHA).then(|| {
        let theta = crossing((0.0, FRAC_PI_2), |theta| theta * libm::sin(theta) < alpha);
        theta * theta * libm::cos(theta)
    })
}

/// The `alpha` below which the loop with this `beta` is stable; `None` if no `alpha` is. The loop is unstable again below a
/// smaller `alpha`, which this function does not return.
#[must_use]
pub fn largest_alpha(beta: f64) -> Option<f64> {
    (0.0..MOST_BETA).contains(&beta).then(|| {
        let theta = crossing((PEAK, FRAC_PI_2), |theta| theta * theta * libm::cos(theta) > beta);
        theta * libm::sin(theta)
    })
}

/// `(beta, alpha)` of the switched system (Dukkipati 2007, equation 5.14), which is stable below that `alpha`. The crate's tests
/// compare the values with [`crate::control::switched::border`], which computes them.
const SWITCHED: [(f64, f64); 20] = [
    (0.0, MOST_ALPHA),
    (0.1, 1.5236),
    (0.2, 1.4661),
    (0.3, 1.4011),
    (0.4, 1.3317),
    (0.5, 1.2610),
    (0.6, 1.1923),
    (0.7, 1.1287),
    (0.8, 1.0719),
    (0.9, 1.0225),
    (1.0, 0.9801),
    (1.25, 0.8989),
    (1.5, 0.8422),
    (2.0, 0.7689),
    (2.5, 0.7230),
    (3.0, 0.6912),
    (4.0, 0.6490),
    (5.0, 0.6216),
    (7.0, 0.5870),
    (10.0, 0.5571),
];

/// Error bound of [`switched_alpha`]. The crate's tests find at most half of it between the table's points. A loop nearer to the
/// border than this takes thousands of round trips to classify.
pub const SWITCHED_WITHIN: f64 = 0.01;

/// The `alpha` below which the switched system with this `beta` is stable, within [`SWITCHED_WITHIN`]. `None` beyond a `beta` of 10.
#[must_use]
pub fn switched_alpha(beta: f64) -> Option<f64> {
    SWITCHED.windows(2).find(|w| (w[0].0..=w[1].0).contains(&beta)).map(|w| {
        let along = (beta - w[0].0) / (w[1].0 - w[0].0);
        w[0].1 + along * (w[1].1 - w[0].1)
    })
}

/// The point up to which `holds` is true, to the last bit.
fn crossing((mut low, mut high): (f64, f64), holds: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return low;
        }
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}
