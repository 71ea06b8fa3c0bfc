//! Runs scenarios and holds their results.

use crate::source::{FilesOf, Source};
use crate::table::Table;
use crate::wait::{Board, heard, interruptible, watched};
use crate::{OutputError, scenario_error};
use flowstamp_sim::network::size;
use flowstamp_sim::results::{Results, Series};
use flowstamp_sim::{Loaded, Needs, ScenarioError, output, run_each_within, run_many_within};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::Path;
use std::sync::OnceLock;

/// A finished run.
#[pyclass(frozen, module = "flowstamp._flowstamp")]
pub struct Run {
    results: Results,
    /// The rows of each series, computed at first use: a run of many flows has thousands of series, and a search for each would read the
    /// whole table.
    rows: OnceLock<Vec<Vec<u32>>>,
}

impl From<Results> for Run {
    fn from(results: Results) -> Self {
        Self { results, rows: OnceLock::new() }
    }
}

fn told(json: serde_json::Result<String>) -> PyResult<String> {
    json.map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

#[pymethods]
impl Run {
    /// `summary.json`; `pretty` has the file's line breaks.
    #[pyo3(signature = (*, pretty=false))]
    fn summary_json(&self, pretty: bool) -> PyResult<String> {
        let summary = &self.results.summary;
        if pretty {
            told(serde_json::to_string_pretty(summary))
        } else {
            told(serde_json::to_string(summary))
        }
    }

    /// The scenario as it ran, with every default spelled out.
    fn scenario_toml(&self) -> String {
        self.results.scenario.to_toml()
    }

    fn manifest_json(&self) -> PyResult<String> {
        told(serde_json::to_string(&output::manifest(&self.results)))
    }

    /// Samples over time, one row per sample.
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

    /// Distributions of delays.
    #[getter]
    fn delays(&self) -> PyResult<Table> {
        let batch = output::delays_table(&self.results.delays);
        batch.map(Table::new).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Times and values of one series as native float64 buffers; both are empty if no series has these names.
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

    /// Writes the run's files into a folder; returns their paths.
    fn write(&self, py: Python<'_>, directory: &str) -> PyResult<Vec<String>> {
        let paths = py
            .detach(|| output::write(&self.results, Path::new(directory)))
            .map_err(|error| OutputError::new_err(error.to_string()))?;
        Ok(paths.iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }
}

/// Times and values of one series as native float64 buffers; both are empty if no series has these names.
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

/// Index of the series with these names.
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

/// Text, name in messages, overrides, and the folder that paths are relative to or the files' contents.
type Scenario = (String, String, Vec<(String, String)>, FilesOf);

fn loaded(py: Python<'_>, scenarios: Vec<Scenario>, memory: Option<u64>) -> PyResult<Vec<(Loaded, Needs)>> {
    let load = move |(text, source, sets, files): Scenario| {
        Source { text, source, format: "toml".to_owned(), sets, files, memory }.load()
    };
    interruptible(py, move || scenarios.into_iter().map(load).collect())
}

/// Runs many scenarios on all cores; returns results in the order given. All are checked before the first starts. The runs share `memory`
/// bytes: a run waits until there is room. If they would not fit even one at a time, none starts.
#[pyfunction]
#[pyo3(signature = (scenarios, *, seed=None, threads=None, memory=None, progress=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands objects over")]
pub fn run_many(
    py: Python<'_>,
    scenarios: Vec<Scenario>,
    seed: Option<u64>,
    threads: Option<usize>,
    memory: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Run>> {
    let loaded = loaded(py, scenarios, memory)?;
    let together = Needs::together(&loaded.iter().map(|(_, needs)| *needs).collect::<Vec<_>>());
    if let (Some(memory), Some((first, _))) = (memory, loaded.first()) {
        if together > memory {
            let message = format!(
                "{} runs may need {} of memory, the results of all and one at a time; they may have {}: run fewer, or give more (--memory)",
                loaded.len(),
                size(together as f64),
                size(memory as f64)
            );
            return Err(scenario_error(&ScenarioError::new("", message).at(&first.source)));
        }
    }
    let board = Board::new(loaded.len());
    let results = watched(py, progress.as_ref(), &board, || {
        Ok(run_many_within(&loaded, memory, seed, threads, &|run, progress| board.tick(run, &progress)).ok())
    })?;
    Ok(results.into_iter().map(Run::from).collect())
}

/// As `run_many`, but calls `done` with the number of each run and the run as it ends. If `done` or `progress` raises, no more runs start.
/// `done` is still called for runs that have ended by then, unless `done` itself raised.
#[pyfunction]
#[pyo3(signature = (scenarios, done, *, threads=None, memory=None, progress=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands objects over")]
pub fn run_each(
    py: Python<'_>,
    scenarios: Vec<Scenario>,
    done: Py<PyAny>,
    threads: Option<usize>,
    memory: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let loaded = loaded(py, scenarios, memory)?;
    let board = Board::new(loaded.len());
    heard(
        py,
        progress.as_ref(),
        &board,
        |end: &(dyn Fn((usize, Results)) + Sync)| {
            let tick = |run, progress| board.tick(run, &progress);
            Ok(run_each_within(&loaded, memory, threads, &tick, &|run, results| end((run, results))).ok())
        },
        |(run, results)| done.call1(py, (run, Run::from(results))).map(|_| ()),
    )
}
