//! A run in steps, which Python watches and changes on the way.

use crate::run::{Run, series_points};
use crate::scenario_error;
use crate::table::Table;
use crate::wait::{Board, watched};
use flowstamp_laws::units::Time;
use flowstamp_sim::{SenderView, StepError, output};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A run that has not ended.
#[pyclass(module = "flowstamp._flowstamp")]
pub struct Simulation {
    pub simulation: flowstamp_sim::Simulation,
}

fn time(what: &str, text: &str) -> PyResult<Time> {
    text.parse::<Time>()
        .map_err(|error| scenario_error(&flowstamp_sim::ScenarioError::new(what, error.to_string())))
}

#[pymethods]
impl Simulation {
    /// Simulated seconds so far.
    #[getter]
    fn now_s(&self) -> f64 {
        self.simulation.now().as_secs_f64()
    }

    /// Runs on until an instant, given as a time with its unit.
    #[pyo3(signature = (until, *, progress=None), text_signature = "($self, until, *, progress=None)")]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands objects over")]
    fn run_until(&mut self, py: Python<'_>, until: &str, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let until = time("run_until", until)?;
        let board = Board::new(1);
        let simulation = &mut self.simulation;
        watched(py, progress.as_ref(), &board, || {
            match simulation.run_until(until, &mut |progress| board.tick(0, &progress)) {
                Ok(()) => Ok(Some(())),
                Err(StepError::Stopped) => Ok(None),
                Err(StepError::Refused(error)) => Err(scenario_error(&error)),
            }
        })
    }

    /// Sets a key of the scenario from now on. The value is TOML, or else text.
    fn set(&mut self, key: &str, value: &str) -> PyResult<()> {
        self.simulation.set(key, value).map_err(|e| scenario_error(&e))
    }

    /// The results as if the run ended now.
    fn results(&self, py: Python<'_>) -> PyResult<Run> {
        py.detach(|| self.simulation.results()).map(Run::from).map_err(|e| scenario_error(&e))
    }

    /// The router links: name, mean rate over the run in bit/s, buffer in bytes.
    fn links(&self) -> Vec<(String, f64, f64)> {
        let links = self.simulation.link_views();
        links.map(|link| (link.name.to_owned(), link.mean_rate.bps(), link.buffer_bytes)).collect()
    }

    /// The flows of the law `told`, each with its counters; not those that arrive during the run.
    fn senders<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.simulation.sender_views().map(|sender| counts(py, &sender)).collect()
    }

    /// Samples taken after an instant, one row per sample.
    #[pyo3(signature = (since="0s"), text_signature = "($self, since='0s')")]
    fn series(&self, since: &str) -> PyResult<Table> {
        let since = time("since", since)?;
        let batch = output::series_table(&self.simulation.series_since(since));
        batch.map(Table::new).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Times and values of one series after an instant, as native float64 buffers.
    #[pyo3(
        signature = (kind, name, metric, *, since="0s"),
        text_signature = "($self, kind, name, metric, *, since='0s')"
    )]
    fn series_points<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        name: &str,
        metric: &str,
        since: &str,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let since = time("since", since)?;
        Ok(series_points(py, &self.simulation.series_since(since), kind, name, metric))
    }
}

/// One sender's counters by name.
fn counts<'py>(py: Python<'py>, sender: &SenderView<'_>) -> PyResult<Bound<'py, PyDict>> {
    let of = PyDict::new(py);
    of.set_item("group", sender.group)?;
    of.set_item("index", sender.index)?;
    of.set_item("path_rtt_s", sender.path_rtt_s)?;
    of.set_item("sent", sender.sent)?;
    of.set_item("lost", sender.lost)?;
    of.set_item("delivered", sender.delivered)?;
    of.set_item("payload_bytes", sender.payload_bytes)?;
    of.set_item("marked", sender.tally.marked)?;
    of.set_item("acks", sender.tally.acks)?;
    of.set_item("rtt_sum_ps", sender.tally.rtt_sum_ps)?;
    of.set_item("min_rtt_s", sender.min_rtt.as_secs_f64())?;
    Ok(of)
}
