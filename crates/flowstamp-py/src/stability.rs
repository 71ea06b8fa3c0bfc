//! Loops and models of `flowstamp-fluid`. Glue only: times of loops are seconds, those of models round trips; series are native float64
//! buffers.

use crate::theory::{buffer, floats, refused, word};
use flowstamp_fluid::control::frequency::OpenLoop;
use flowstamp_fluid::control::proof::proof;
use flowstamp_fluid::control::region::{self, Fate, Patience};
use flowstamp_fluid::control::settle::{Model, Setting};
use flowstamp_fluid::control::switched;
use flowstamp_laws::registry::RouterSpec;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

/// Default gains (alpha, beta) of router laws whose loop has XCP's form.
#[pyfunction]
pub fn own_gains() -> PyResult<BTreeMap<&'static str, (f64, f64)>> {
    let mut found = BTreeMap::new();
    for law in RouterSpec::all().into_iter().filter(|law| law.traits().gains.is_some()) {
        let set = serde_json::to_value(&law).map_err(refused)?;
        if let (Some(alpha), Some(beta)) = (set["alpha"].as_f64(), set["beta"].as_f64()) {
            found.insert(law.name(), (alpha, beta));
        }
    }
    Ok(found)
}

/// Gains for which a closed-loop root lies on the imaginary axis: alphas and betas up to `most`, with NaN between pieces of the curve. `flows`
/// are pairs of a number of flows and their RTT in seconds.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a list as a vector of its own")]
pub fn loop_border<'py>(
    py: Python<'py>,
    shuffle: f64,
    flows: Vec<(f64, f64)>,
    most: (f64, f64),
) -> PyResult<[Bound<'py, PyBytes>; 2]> {
    let curve = OpenLoop::border(shuffle, &flows, most).ok_or_else(|| no_loop(most.0, most.1, &flows))?;
    let (alphas, betas): (Vec<f64>, Vec<f64>) = curve.into_iter().unzip();
    Ok([buffer(py, &alphas), buffer(py, &betas)])
}

fn no_loop(alpha: f64, beta: f64, flows: &[(f64, f64)]) -> PyErr {
    refused(format!("gains {alpha} and {beta} with flows of RTTs {flows:?} do not form a loop"))
}

fn open_loop(alpha: f64, beta: f64, shuffle: f64, flows: &[(f64, f64)]) -> PyResult<OpenLoop> {
    OpenLoop::of_flows(alpha, beta, shuffle, flows).ok_or_else(|| no_loop(alpha, beta, flows))
}

/// Gain margin and its frequency, phase margin and its frequency, delay margin.
#[pyfunction]
#[expect(clippy::type_complexity, clippy::needless_pass_by_value, reason = "tuples and lists are Python's")]
pub fn loop_margins(
    alpha: f64,
    beta: f64,
    shuffle: f64,
    flows: Vec<(f64, f64)>,
) -> PyResult<(Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>)> {
    let m = open_loop(alpha, beta, shuffle, &flows)?.margins();
    Ok((m.gain, m.phase_crossover, m.phase, m.gain_crossover, m.delay))
}

/// Real part, imaginary part and phase of the response at angular frequencies.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a list as a vector of its own")]
pub fn loop_response<'py>(
    py: Python<'py>,
    alpha: f64,
    beta: f64,
    shuffle: f64,
    flows: Vec<(f64, f64)>,
    omega: &[u8],
) -> PyResult<[Bound<'py, PyBytes>; 3]> {
    let (open, omega) = (open_loop(alpha, beta, shuffle, &flows)?, floats("omega", omega)?);
    let points: Vec<_> = omega.iter().map(|w| open.response(*w)).collect();
    let of = |value: fn(&flowstamp_fluid::control::frequency::Point) -> f64| {
        buffer(py, &points.iter().map(value).collect::<Vec<f64>>())
    };
    Ok([of(|p| p.response.re), of(|p| p.response.im), of(|p| p.phase)])
}

/// Clockwise encirclements of -1 by the Nyquist plot; None on the border of stability.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a list as a vector of its own")]
pub fn loop_encirclements(
    alpha: f64,
    beta: f64,
    shuffle: f64,
    flows: Vec<(f64, f64)>,
) -> PyResult<Option<i64>> {
    Ok(open_loop(alpha, beta, shuffle, &flows)?.encirclements())
}

/// For each pair of gains a byte, 1 if there is a proof that the switched system is stable.
#[pyfunction]
pub fn proved<'py>(py: Python<'py>, alphas: &[u8], betas: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let pairs = pairs(alphas, betas)?;
    let found = py.detach(|| region::all(&pairs, |(alpha, beta)| u8::from(proof(*alpha, *beta).is_some())));
    Ok(PyBytes::new(py, &found))
}

/// For each beta the alpha below which the switched system is stable.
#[pyfunction]
pub fn switched_border<'py>(py: Python<'py>, betas: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let betas = floats("betas", betas)?;
    let found = py.detach(|| region::all(&betas, |beta| switched::border(*beta, 1000.0, 1e-3)));
    Ok(buffer(py, &found))
}

/// The closed loop's roots with a real part above `right_of`, as (real, imaginary) pairs.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a list as a vector of its own")]
pub fn loop_roots(
    alpha: f64,
    beta: f64,
    shuffle: f64,
    flows: Vec<(f64, f64)>,
    right_of: f64,
) -> PyResult<Vec<(f64, f64)>> {
    let roots = open_loop(alpha, beta, shuffle, &flows)?.roots_right_of(right_of);
    let roots = roots.ok_or_else(|| {
        refused(format!("a root has the real part {right_of}; ask for those right of another"))
    })?;
    Ok(roots.iter().map(|root| (root.re, root.im)).collect())
}

/// How long to wait until a model settles, in round trips. Gains just beyond the border bring RCP's model close to equilibrium, from where
/// it takes a hundred round trips or more to oscillate again. Therefore it must stay there for 200.
pub fn patience(most: f64) -> Patience {
    Patience { band: 1.0, hold: 200.0, most, lost: 1e9 }
}

/// Pairs of gains from two buffers.
pub fn pairs(alphas: &[u8], betas: &[u8]) -> PyResult<Vec<(f64, f64)>> {
    Ok(floats("alphas", alphas)?.into_iter().zip(floats("betas", betas)?).collect())
}

/// Settling time of each in round trips, NaN if it does not settle.
pub fn settled<'py, T: Sync>(
    py: Python<'py>,
    all: &[T],
    fate: impl Fn(&T) -> Fate + Send + Sync,
) -> Bound<'py, PyBytes> {
    let times = py.detach(|| {
        region::all(all, |one| if let Fate::Settles { after } = fate(one) { after } else { f64::NAN })
    });
    buffer(py, &times)
}

fn setting(model: &str, start: (f64, f64), flows: f64, buffer: f64) -> PyResult<Setting> {
    let rcp = Model::Rcp { most: flows, buffer };
    let models = [("rcp", rcp), ("switched", Model::Switched), ("linear", Model::Linear)];
    Ok(Setting { model: word("model", model, &models)?, start: [start.0, start.1] })
}

/// For each pair of gains and its buffer, round trips until rate and queue stay within 2% and 1%; NaN if they do not settle within `most`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn settling<'py>(
    py: Python<'py>,
    model: &str,
    alphas: &[u8],
    betas: &[u8],
    buffers: &[u8],
    start: (f64, f64),
    flows: f64,
    most: f64,
) -> PyResult<Bound<'py, PyBytes>> {
    let settings = floats("buffers", buffers)?.into_iter().map(|buffer| setting(model, start, flows, buffer));
    let settings = settings.collect::<PyResult<Vec<_>>>()?;
    let all: Vec<_> = settings.into_iter().zip(pairs(alphas, betas)?).collect();
    Ok(settled(py, &all, |(setting, (alpha, beta))| setting.fate(*alpha, *beta, &patience(most))))
}

/// Whether each pair of a grid settles, in rows of one beta each, and how many pairs were computed: those near the border.
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
    let setting = setting(model, start, flows, f64::INFINITY)?;
    let (alphas, betas) = (floats("alphas", alphas)?, floats("betas", betas)?);
    mapped(py, &alphas, &betas, |alpha, beta| setting.fate(alpha, beta, &patience(most)).settles())
}

/// The cells of a map over gains as bytes, and how many were computed.
pub fn mapped<'py>(
    py: Python<'py>,
    alphas: &[f64],
    betas: &[f64],
    settles: impl Fn(f64, f64) -> bool + Send + Sync,
) -> PyResult<(Bound<'py, PyBytes>, usize)> {
    if alphas.len() < 2 || betas.len() < 2 {
        return Err(refused("a map needs two alphas and two betas at least"));
    }
    let map = py.detach(|| {
        region::map(alphas.len(), betas.len(), |cells| {
            region::all(cells, |(x, y)| settles(alphas[*x], betas[*y]))
        })
    });
    let cells: Vec<u8> = map.cells.iter().map(|cell| u8::from(*cell)).collect();
    Ok((PyBytes::new(py, &cells), map.asked))
}

/// Ascending times of a trajectory; refuses others.
pub fn growing(times: &[u8]) -> PyResult<Vec<f64>> {
    let times = floats("times", times)?;
    if times.iter().any(|t| !t.is_finite() || *t < 0.0) || times.windows(2).any(|w| w[1] < w[0]) {
        return Err(refused("times must be finite numbers from 0 on that only grow"));
    }
    Ok(times)
}

/// Rate over the equilibrium's less one and queue in bandwidth-delay products, at ascending times in round trips.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn trajectory<'py>(
    py: Python<'py>,
    model: &str,
    alpha: f64,
    beta: f64,
    start: (f64, f64),
    flows: f64,
    buffer_bdp: f64,
    error: f64,
    times: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let (setting, times) = (setting(model, start, flows, buffer_bdp)?, growing(times)?);
    let found = py.detach(|| setting.states(alpha, beta, error, &times)).map_err(refused)?;
    Ok(buffer(py, found.as_flattened()))
}
