//! Running scenarios with the interpreter released, and what a run leaves.
//!
//! The engine runs in threads of its own while the calling thread waits, wakes ten times a second to look for signals
//! and to report progress, and tells the engine to stop if Python raised. So a callback costs the engine nothing, and
//! Ctrl-C is seen whatever the callback does: Python handles signals in the main thread only.

use crate::table::Table;
use crate::{OutputError, Source, scenario_error};
use flowstamp_sim::results::{Results, Series};
use flowstamp_sim::{Loaded, Progress, Simulation, output, run_many as simulate_many};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// How often the calling thread looks up.
const LOOK_UP: Duration = Duration::from_millis(100);

/// A finished run.
#[pyclass(frozen, module = "flowstamp._flowstamp")]
pub struct Run {
    results: Results,
    /// The rows of each series, once somebody has asked for one: a run of many flows has thousands of series, and a search for each
    /// would read the whole table.
    rows: OnceLock<Vec<Vec<u32>>>,
}

impl From<Results> for Run {
    fn from(results: Results) -> Self {
        Self { results, rows: OnceLock::new() }
    }
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

#[pymethods]
impl Run {
    fn summary_json(&self) -> PyResult<String> {
        json(&self.results.summary)
    }

    /// The scenario as it ran, with every default spelled out.
    fn scenario_toml(&self) -> String {
        self.results.scenario.to_toml()
    }

    fn manifest_json(&self) -> PyResult<String> {
        json(&output::manifest(&self.results))
    }

    /// Samples over time in long form.
    #[getter]
    fn series(&self) -> PyResult<Table> {
        let batch = output::series_table(&self.results.series);
        batch.map(Table::new).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// One row per flow.
    #[getter]
    fn flows(&self) -> PyResult<Table> {
        let batch = output::flows_table(&self.results.flows);
        batch.map(Table::new).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Times and values of one series as native float64 buffers; both empty if nothing was sampled under these names.
    fn series_points<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        name: &str,
        metric: &str,
    ) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
        let series = &self.results.series;
        let rows = self.rows.get_or_init(|| {
            let mut rows = vec![Vec::new(); series.keys.len()];
            for (row, key) in (0..).zip(&series.key) {
                rows[*key as usize].push(row);
            }
            rows
        });
        let wanted = position(series, kind, name, metric);
        points(py, series, wanted.iter().flat_map(|wanted| &rows[*wanted]).map(|row| *row as usize))
    }

    /// Fills a run's folder; returns the files' paths.
    fn write(&self, py: Python<'_>, directory: &str) -> PyResult<Vec<String>> {
        let paths = py
            .detach(|| output::write(&self.results, Path::new(directory)))
            .map_err(|error| OutputError::new_err(error.to_string()))?;
        Ok(paths.iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }
}

/// Times and values of one series as native float64 buffers; both empty if nothing was sampled under these names.
pub fn series_points<'py>(
    py: Python<'py>,
    series: &Series,
    kind: &str,
    name: &str,
    metric: &str,
) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
    let wanted = position(series, kind, name, metric);
    points(py, series, (0..series.key.len()).filter(|row| Some(series.key[*row] as usize) == wanted))
}

/// Which of the series has these names.
fn position(series: &Series, kind: &str, name: &str, metric: &str) -> Option<usize> {
    series.keys.iter().position(|k| k.kind == kind && k.name == name && k.metric == metric)
}

fn points<'py>(
    py: Python<'py>,
    series: &Series,
    rows: impl Iterator<Item = usize>,
) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
    let (mut times, mut values) = (Vec::new(), Vec::new());
    for row in rows {
        times.extend_from_slice(&series.time_s[row].to_ne_bytes());
        values.extend_from_slice(&series.value[row].to_ne_bytes());
    }
    (PyBytes::new(py, &times), PyBytes::new(py, &values))
}

/// How far one run is, as its own thread left it for the calling thread to see.
#[derive(Default)]
struct Seen {
    simulated_ps: AtomicU64,
    duration_ps: AtomicU64,
    events: AtomicU64,
}

/// What the engine's threads and the calling thread share.
pub struct Board {
    stop: AtomicBool,
    runs: Vec<Seen>,
}

impl Board {
    pub fn new(runs: usize) -> Self {
        Self { stop: AtomicBool::new(false), runs: (0..runs).map(|_| Seen::default()).collect() }
    }

    /// Called by the engine.
    pub fn tick(&self, run: usize, progress: &Progress) -> ControlFlow<()> {
        let seen = &self.runs[run];
        // Nothing follows from the order in which these are seen: they are shown to a person.
        seen.simulated_ps.store(progress.simulated.as_ps(), Ordering::Relaxed);
        seen.duration_ps.store(progress.duration.as_ps(), Ordering::Relaxed);
        seen.events.store(progress.events, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Tells Python of the runs that came further since `shown`, which counts events.
    fn report(&self, py: Python<'_>, shown: &mut [u64], progress: Option<&Py<PyAny>>) -> PyResult<()> {
        py.check_signals()?;
        let Some(progress) = progress else { return Ok(()) };
        for (index, (seen, shown)) in self.runs.iter().zip(shown).enumerate() {
            let events = seen.events.load(Ordering::Relaxed);
            if events != *shown {
                *shown = events;
                let seconds = |ps: &AtomicU64| ps.load(Ordering::Relaxed) as f64 * 1e-12;
                let (simulated_s, duration_s) = (seconds(&seen.simulated_ps), seconds(&seen.duration_ps));
                progress.call1(py, (index, self.runs.len(), simulated_s, duration_s, events))?;
            }
        }
        Ok(())
    }
}

/// Runs `work` in a thread of its own and waits for it as this module's header says. `work` returns `None` if it was
/// stopped.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    board: &Board,
    work: impl FnOnce() -> PyResult<Option<T>> + Send,
) -> PyResult<T> {
    let (send, receive) = mpsc::channel();
    let receive = Mutex::new(receive); // so that it may be waited on without the interpreter
    let wait = || receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK_UP);
    thread::scope(|scope| {
        let worker = scope.spawn(move || send.send(work()));
        let mut shown = vec![0; board.runs.len()];
        let mut raised = None;
        loop {
            match py.detach(wait) {
                Ok(result) => {
                    return match (raised, result?) {
                        (None, Some(result)) => Ok(result),
                        (Some(error), _) => Err(error),
                        (None, None) => Err(PyKeyboardInterrupt::new_err("interrupted")),
                    };
                }
                Err(RecvTimeoutError::Timeout) => {
                    if raised.is_none() {
                        raised = board.report(py, &mut shown, progress).err();
                        board.stop.store(raised.is_some(), Ordering::Relaxed);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // It panicked, and said so on standard error.
                    let _ = worker.join();
                    return Err(PyRuntimeError::new_err(
                        "the simulator failed: this is a defect in Flowstamp",
                    ));
                }
            }
        }
    })
}

/// Runs one scenario.
#[pyfunction]
#[pyo3(
    signature = (text, *, source="scenario", format="toml", sets=Vec::new(), base_dir=".", seed=None, progress=None),
    text_signature = "(text, *, source='scenario', format='toml', sets=(), base_dir='.', seed=None, progress=None)"
)]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands lists and objects over")]
pub fn run(
    py: Python<'_>,
    text: &str,
    source: &str,
    format: &str,
    sets: Vec<(String, String)>,
    base_dir: &str,
    seed: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let source = Source { text, source, format, sets: &sets, base_dir };
    let loaded = py.detach(|| source.load())?;
    let board = Board::new(1);
    let results = watched(py, progress.as_ref(), &board, || {
        let simulation = Simulation::new(&loaded, seed).map_err(|e| scenario_error(&e))?;
        Ok(simulation.run(&mut |progress| board.tick(0, &progress)).ok())
    })?;
    Ok(results.into())
}

/// Text, name in messages, overrides, folder that paths are relative to.
type Scenario = (String, String, Vec<(String, String)>, String);

/// Runs many scenarios on all cores; results in the order given. All are checked before the first starts.
#[pyfunction]
#[pyo3(signature = (scenarios, *, seed=None, threads=None, progress=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands lists and objects over")]
pub fn run_many(
    py: Python<'_>,
    scenarios: Vec<Scenario>,
    seed: Option<u64>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Run>> {
    let load = |(text, source, sets, base_dir): &Scenario| {
        Source { text, source, format: "toml", sets, base_dir }.load()
    };
    let loaded: Vec<Loaded> = py.detach(|| scenarios.iter().map(load).collect::<PyResult<_>>())?;
    let board = Board::new(loaded.len());
    let results = watched(py, progress.as_ref(), &board, || {
        Ok(simulate_many(&loaded, seed, threads, &|run, progress| board.tick(run, &progress)).ok())
    })?;
    Ok(results.into_iter().map(Run::from).collect())
}
