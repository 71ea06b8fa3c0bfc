//! Where models settle: from one start, and over a grid of two parameters.

use super::delay::{Solution, System, Trouble};
use std::ops::ControlFlow;

/// What became of a disturbance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It has died, and was within the band for good from this time on.
    Settles {
        /// In the unit of time.
        after: f64,
    },
    /// It goes on, as large as before.
    Oscillates,
}

impl Fate {
    /// It has died.
    #[must_use]
    pub fn settles(&self) -> bool {
        matches!(self, Self::Settles { .. })
    }
}

/// When a disturbance has died, and how long it is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Of the distance, from when on it is of no matter: section 5.4 of the thesis has 2% of R and 1% of the queue.
    pub band: f64,
    /// How long it has to stay below.
    pub hold: f64,
    /// How long it is waited for until it does.
    pub most: f64,
    /// More than that does not come back.
    pub lost: f64,
}

/// Runs a model until it has settled or patience has ended. `distance` is how far a state is from rest.
///
/// # Errors
///
/// [`Trouble`] of the solver, but for what diverges, which oscillates.
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

/// What `each` says of every item: on all processors, if the crate has its feature `parallel`.
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

/// A grid of yes and no, of which only what lies near the border has been asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Columns.
    pub width: usize,
    /// By row, then column.
    pub cells: Vec<bool>,
    /// How often the question was asked.
    pub asked: usize,
}

/// Blocks whose corners agree are taken to agree inside: nothing smaller than that is seen away from the border.
const BLOCK: usize = 8;

/// Asks for the cells of a grid: those of a coarse grid first, and of what lies between where they differ. `ask` has a list of cells, column and row,
/// to answer in one go, on as many threads as it likes.
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
