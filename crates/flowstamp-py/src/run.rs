//! Runs scenarios and holds their results.

use crate::OutputError;
use crate::table::Table;
use flowstamp_sim::output;
use flowstamp_sim::results::{Results, Series};
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
