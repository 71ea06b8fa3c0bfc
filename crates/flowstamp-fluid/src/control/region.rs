//! Decides whether models settle: from one start, and over a grid of two parameters.

use super::delay::{Solution, System, Trouble};
use std::ops::ControlFlow;

/// Outcome of a disturbance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// The disturbance has died out.
    Settles {
        /// The time from which on it stayed within the band, in the unit of time.
        after: f64,
    },
    /// The disturbance has not died out.
    Oscillates,
}

impl Fate {
    /// Whether the disturbance has died out.
    #[must_use]
    pub fn settles(&self) -> bool {
        matches!(self, Self::Settles { .. })
    }
}

/// When a disturbance counts as died out, and how long to wait for it.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Distance below which the model counts as settled; section 5.4 of the thesis has 2% of R and 1% of the queue.
    pub band: f64,
    /// How long the distance has to stay below the band.
    pub hold: f64,
    /// Latest time at which it may leave the band.
    pub most: f64,
    /// Distance from which a model does not return.
    pub lost: f64,
}

/// Runs a model until it has settled or `patience` has run out. `distance` is how far a state is from equilibrium.
///
/// # Errors
///
/// [`Trouble`] of the solver. A solution that diverges is no error: it oscillates.
pub fn fate<const N: usize, S: System<N>>(
    system: S,
    start: [f64; N],
    step: f64,
    patience: &Patience,
    distance: impl Fn(&[f64; N]) -> f64,
) -> Result<Fate, Trouble> {
    let mut solution = Solution::new(system, start, step)?;
    let mut outside = 0.0;
    let mut lost = false;
    let ended = solution.run(patience.most + patience.hold, |step| {
        let far = distance(&step.end);
        if far > patience.band {
            outside = step.to;
        }
        lost = far > patience.lost;
        if lost || outside > patience.most || step.to - outside > patience.hold {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    match ended {
        Ok(_) if !lost && outside <= patience.most => Ok(Fate::Settles { after: outside }),
        Ok(_) | Err(Trouble::Diverged { .. }) => Ok(Fate::Oscillates),
        Err(trouble) => Err(trouble),
    }
}

/// Applies `each` to every item, on all processors if the crate has its feature `parallel`.
pub fn all<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
    #[cfg(feature = "parallel")]
    {
        use rayon::prelude::*;
        items.par_iter().map(each).collect()
    }
    #[cfg(not(feature = "parallel"))]
    {
        items.iter().map(each).collect()
    }
}

/// A grid of yes and no answers, of which only those near the border were computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Columns.
    pub width: usize,
    /// By row, then column.
    pub cells: Vec<bool>,
    /// Number of cells computed.
    pub asked: usize,
}

/// Size of a block in cells. A block whose corners agree is taken to agree inside, so smaller features away from the border are missed.
const BLOCK: usize = 8;

/// Computes the cells of a grid: those of a coarse grid first, then those in between where its answers differ. `ask` answers a list of
/// `(column, row)` in one go, on any number of threads.
#[must_use]
pub fn map(width: usize, height: usize, ask: impl Fn(&[(usize, usize)]) -> Vec<bool>) -> Map {
    let mut known: Vec<Option<bool>> = vec![None; width * height];
    let mut asked = 0;
    let mut blocks: Vec<[usize; 4]> = Vec::new();
    for y in (0..height).step_by(BLOCK) {
        for x in (0..width).step_by(BLOCK) {
            blocks.push([x, y, (x + BLOCK).min(width - 1), (y + BLOCK).min(height - 1)]);
        }
    }
    while !blocks.is_empty() {
        let corners = |b: &[usize; 4]| [(b[0], b[1]), (b[2], b[1]), (b[0], b[3]), (b[2], b[3])];
        let mut open: Vec<(usize, usize)> =
            blocks.iter().flat_map(corners).filter(|(x, y)| known[y * width + x].is_none()).collect();
        open.sort_unstable();
        open.dedup();
        asked += open.len();
        for ((x, y), answer) in open.iter().zip(ask(&open)) {
            known[y * width + x] = Some(answer);
        }
        let mut smaller = Vec::new();
        for block in blocks {
            let [x0, y0, x1, y1] = block;
            let answers = corners(&block).map(|(x, y)| known[y * width + x]);
            if answers.iter().all(|a| *a == answers[0]) {
                for y in y0..=y1 {
                    for x in x0..=x1 {
                        known[y * width + x] = known[y * width + x].or(answers[0]);
                    }
                }
            } else if x1 - x0 > 1 || y1 - y0 > 1 {
                let (xm, ym) = (usize::midpoint(x0, x1), usize::midpoint(y0, y1));
                let parts = |a: usize, m: usize, b: usize| {
                    if m > a && b > m { vec![(a, m), (m, b)] } else { vec![(a, b)] }
                };
                for (ya, yb) in parts(y0, ym, y1) {
                    for (xa, xb) in parts(x0, xm, x1) {
                        smaller.push([xa, ya, xb, yb]);
                    }
                }
            }
        }
        blocks = smaller;
    }
    Map { width, cells: known.into_iter().map(|cell| cell.unwrap_or(false)).collect(), asked }
}
