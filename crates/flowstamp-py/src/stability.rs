//! Loops and models of `flowstamp-fluid`. Glue only: times of loops are seconds, those of models round trips; series come and go as native float64
//! buffers.

use crate::theory::{buffer, floats, refused, word};
use flowstamp_fluid::control::delay::{Solution, System};
use flowstamp_fluid::control::frequency::OpenLoop;
use flowstamp_fluid::control::models::{Rcp, Switched};
use flowstamp_fluid::control::region::{self, Fate, Patience};
use flowstamp_fluid::stability;
use flowstamp_laws::registry::RouterSpec;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A step in round trips. Near the border, where errors add up longest, peaks after 1600 of these differ by 1e-4 from those of a step of an eighth of
/// it (`steps_of_a_thirty_second_do`, in the crate's tests).
const STEP: f64 = 1.0 / 32.0;

/// Gains of router laws whose loop is XCP's, as a scenario has them that sets none.
#[pyfunction]
pub fn own_gains() -> PyResult<BTreeMap<&'static str, (f64, f64)>> {
    let mut found = BTreeMap::new();
    for law in RouterSpec::all().into_iter().filter(|law| law.gains().is_some()) {
        let set = serde_json::to_value(&law).map_err(refused)?;
        if let (Some(alpha), Some(beta)) = (set["alpha"].as_f64(), set["beta"].as_f64()) {
            found.insert(law.name(), (alpha, beta));
        }
    }
    Ok(found)
}

/// For each alpha the beta below which the linear loop is stable; NaN where there is none.
#[pyfunction]
pub fn loop_border<'py>(py: Python<'py>, alphas: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let betas =
        floats("alphas", alphas)?.into_iter().map(|alpha| stability::largest_beta(alpha).unwrap_or(f64::NAN));
    Ok(buffer(py, &betas.collect::<Vec<f64>>()))
}

fn open_loop(alpha: f64, beta: f64, rtt_s: f64) -> PyResult<OpenLoop> {
    OpenLoop::of_gains(alpha, beta, rtt_s)
        .ok_or_else(|| refused(format!("gains {alpha} and {beta} with an RTT of {rtt_s} s are no loop")))
}

/// Gain margin and the frequency there, phase margin and the frequency there, delay margin.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a tuple is what Python gets")]
pub fn loop_margins(
    alpha: f64,
    beta: f64,
    rtt_s: f64,
) -> PyResult<(Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>)> {
    let m = open_loop(alpha, beta, rtt_s)?.margins();
    Ok((m.gain, m.phase_crossover, m.phase, m.gain_crossover, m.delay))
}

/// Real part, imaginary part and phase of the response at angular frequencies.
#[pyfunction]
pub fn loop_response<'py>(
    py: Python<'py>,
    alpha: f64,
    beta: f64,
    rtt_s: f64,
    omega: &[u8],
) -> PyResult<[Bound<'py, PyBytes>; 3]> {
    let (open, omega) = (open_loop(alpha, beta, rtt_s)?, floats("omega", omega)?);
    let points: Vec<_> = omega.iter().map(|w| open.response(*w)).collect();
    let of = |value: fn(&flowstamp_fluid::control::frequency::Point) -> f64| {
        buffer(py, &points.iter().map(value).collect::<Vec<f64>>())
    };
    Ok([of(|p| p.response.re), of(|p| p.response.im), of(|p| p.phase)])
}

/// The closed loop's roots right of a real part, as pairs.
#[pyfunction]
pub fn loop_roots(alpha: f64, beta: f64, rtt_s: f64, right_of: f64) -> PyResult<Vec<(f64, f64)>> {
    let roots = open_loop(alpha, beta, rtt_s)?.roots_right_of(right_of);
    let roots = roots.ok_or_else(|| {
        refused(format!("a root has the real part {right_of}; ask for those right of another"))
    })?;
    Ok(roots.iter().map(|root| (root.re, root.im)).collect())
}

#[derive(Clone, Copy)]
enum Which {
    Rcp,
    Switched,
    Linear,
}

fn which(text: &str) -> PyResult<Which> {
    word("model", text, &[("rcp", Which::Rcp), ("switched", Which::Switched), ("linear", Which::Linear)])
}

/// The model, and the start as its variables: the rate over the equilibrium's less one, and the queue in bandwidth-delay products.
#[derive(Clone, Copy)]
struct Setting {
    which: Which,
    start: [f64; 2],
    most: f64,
}

/// Of rate and queue, 2% and 1% (Dukkipati 2007, section 5.4).
fn distance(x: &[f64; 2], rest: f64) -> f64 {
    ((x[0] - rest).abs() / 0.02).max(x[1].abs() / 0.01)
}

impl Setting {
    /// What switches too often to be told apart does not rest.
    fn fate(&self, alpha: f64, beta: f64, patience: &Patience) -> Fate {
        let fate = match self.which {
            Which::Rcp => {
                let model = Rcp { alpha, beta, most: self.most, queue_in_rtt: true };
                region::fate(model, [1.0 + self.start[0], self.start[1]], STEP, patience, |x| {
                    distance(x, 1.0)
                })
            }
            Which::Switched | Which::Linear => {
                let model =
                    Switched { alpha, beta, floor: matches!(self.which, Which::Switched), error: 0.0 };
                region::fate(model, self.start, STEP, patience, |x| distance(x, 0.0))
            }
        };
        fate.unwrap_or(Fate::Oscillates)
    }
}

fn patience(most: f64) -> Patience {
    Patience { band: 1.0, hold: 20.0, most, lost: 1e9 }
}

fn setting(model: &str, start: (f64, f64), flows: f64) -> PyResult<Setting> {
    Ok(Setting { which: which(model)?, start: [start.0, start.1], most: flows })
}

/// For each pair of gains after how many round trips rate and queue are within 2% and 1% for good; NaN where they are not within `most`.
#[pyfunction]
pub fn settling<'py>(
    py: Python<'py>,
    model: &str,
    alphas: &[u8],
    betas: &[u8],
    start: (f64, f64),
    flows: f64,
    most: f64,
) -> PyResult<Bound<'py, PyBytes>> {
    let setting = setting(model, start, flows)?;
    let pairs: Vec<(f64, f64)> = floats("alphas", alphas)?.into_iter().zip(floats("betas", betas)?).collect();
    let fates =
        py.detach(|| region::all(&pairs, |(alpha, beta)| setting.fate(*alpha, *beta, &patience(most))));
    let times =
        fates.into_iter().map(|fate| if let Fate::Settles { after } = fate { after } else { f64::NAN });
    Ok(buffer(py, &times.collect::<Vec<f64>>()))
}

/// Whether each pair of a grid settles, by rows of one beta each, and how many were tried: those near the border.
#[pyfunction]
pub fn settling_map<'py>(
    py: Python<'py>,
    model: &str,
    alphas: &[u8],
    betas: &[u8],
    start: (f64, f64),
    flows: f64,
    most: f64,
) -> PyResult<(Bound<'py, PyBytes>, usize)> {
    let setting = setting(model, start, flows)?;
    let (alphas, betas) = (floats("alphas", alphas)?, floats("betas", betas)?);
    if alphas.len() < 2 || betas.len() < 2 {
        return Err(refused("a map needs two alphas and two betas at least"));
    }
    let map = py.detach(|| {
        region::map(alphas.len(), betas.len(), |cells| {
            region::all(cells, |(x, y)| setting.fate(alphas[*x], betas[*y], &patience(most)).settles())
        })
    });
    let cells: Vec<u8> = map.cells.iter().map(|cell| u8::from(*cell)).collect();
    Ok((PyBytes::new(py, &cells), map.asked))
}

fn states<S: System<2>>(system: S, start: [f64; 2], times: &[f64]) -> PyResult<Vec<f64>> {
    let mut solution = Solution::new(system, start, STEP).map_err(refused)?;
    let mut found = Vec::with_capacity(2 * times.len());
    let mut left = times.iter().peekable();
    while left.next_if(|t| **t <= 0.0).is_some() {
        found.extend_from_slice(&start);
    }
    // In whole steps, and by their cubics in between: steps that were cut for each time would be many.
    let end = times.last().map_or(0.0, |last| last + STEP);
    let ended = solution.run(end, |step| {
        while let Some(time) = left.next_if(|t| **t <= step.to) {
            found.extend_from_slice(&step.at(*time));
        }
        if left.peek().is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let _ = ended.map_err(refused)?;
    Ok(found)
}

/// Rate over the equilibrium's less one and queue in bandwidth-delay products, at times in round trips that only grow.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn trajectory<'py>(
    py: Python<'py>,
    model: &str,
    alpha: f64,
    beta: f64,
    start: (f64, f64),
    flows: f64,
    error: f64,
    times: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let times = floats("times", times)?;
    if times.iter().any(|t| !t.is_finite() || *t < 0.0) || times.windows(2).any(|w| w[1] < w[0]) {
        return Err(refused("times must be finite numbers from 0 on that only grow"));
    }
    let (which, start) = (which(model)?, [start.0, start.1]);
    let found = py.detach(|| match which {
        Which::Rcp => {
            let model = Rcp { alpha, beta, most: flows, queue_in_rtt: true };
            let mut found = states(model, [1.0 + start[0], start[1]], &times)?;
            found.iter_mut().step_by(2).for_each(|rate| *rate -= 1.0);
            Ok(found)
        }
        Which::Switched | Which::Linear => {
            states(Switched { alpha, beta, floor: matches!(which, Which::Switched), error }, start, &times)
        }
    });
    Ok(buffer(py, &found?))
}
