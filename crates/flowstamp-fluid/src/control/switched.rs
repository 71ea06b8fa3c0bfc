//! Where the switched system is stable ([`Switched`], equation 5.14 of Dukkipati 2007), to more digits than by waiting until it has settled.

use super::delay::Solution;
use super::models::Switched;
use super::settle::STEP;
use std::f64::consts::FRAC_PI_2;
use std::ops::ControlFlow;

/// Whether a disturbance dies: it has no scale, so that after long its peaks grow or fall by the same factor in each swing, and those of the last
/// third of so many round trips are below those of the second or not.
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

/// The alpha below which it dies with a beta, to so much.
#[must_use]
pub fn border(beta: f64, rtts: f64, within: f64) -> f64 {
    // Without a queue it is pi/2, and a queue makes it less.
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
