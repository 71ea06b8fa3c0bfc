//! The stability border of the switched system ([`Switched`], equation 5.14 of Dukkipati 2007), to more digits than by waiting until it settles.

use super::delay::Solution;
use super::models::Switched;
use super::routes::STEP;
use std::f64::consts::FRAC_PI_2;
use std::ops::ControlFlow;

/// Whether a disturbance dies out, judged over `rtts` round trips. The system is scale-free, so after long its peaks grow or shrink by the
/// same factor in each period. It dies out if the peaks of the last third are below those of the second.
#[must_use]
pub fn dies(alpha: f64, beta: f64, rtts: f64) -> bool {
    let system = Switched { alpha, beta, floor: true, error: 0.0 };
    let mut peaks = [0.0f64; 3];
    let Ok(mut solution) = Solution::new(system, [0.5, 0.0], STEP) else { return false };
    let ended = solution.run(rtts, |step| {
        let size = step.end[0].abs().max(step.end[1]);
        let third = ((step.to / rtts * 3.0) as usize).min(2);
        peaks[third] = peaks[third].max(size);
        if size < 1e9 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    matches!(ended, Ok(ControlFlow::Continue(()))) && (peaks[2] < peaks[1] || peaks[1] < 1e-9)
}

/// The alpha below which a disturbance dies out with this beta, to within `within`.
#[must_use]
pub fn border(beta: f64, rtts: f64, within: f64) -> f64 {
    // The border is at pi/2 without a queue, and lower with one.
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    if beta <= 0.0 {
        return high;
    }
    while high - low > within {
        let middle = f64::midpoint(low, high);
        if dies(middle, beta, rtts) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}
