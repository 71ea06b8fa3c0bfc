//! Runs of the links of a network in several processes.

use crate::batch::Scenario;
use crate::run::Run;
use crate::scenario_error;
use crate::source::Source;
use crate::wait::{Board, interruptible, watched};
use flowstamp_sim::{ByLinks, Found, PASSES};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The links of a scenario. The main process hands out numbers of links and what `before` returns. Other processes call
/// `part` and send back bytes. The main process passes these to `take`, and calls `end` last.
#[pyclass(frozen, module = "flowstamp._flowstamp")]
pub struct Links {
    links: Mutex<Option<Arc<ByLinks>>>,
    found: Mutex<Option<Found>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(error: impl AsRef<str>) -> PyErr {
    PyValueError::new_err(format!("results of links: {}", error.as_ref()))
}

impl Links {
    fn get(&self) -> PyResult<Arc<ByLinks>> {
        locked(&self.links).clone().ok_or_else(|| PyRuntimeError::new_err("the run has ended"))
    }

    /// Calls `with` with the results so far.
    fn found<T>(&self, with: impl FnOnce(&ByLinks, &mut Found) -> T) -> PyResult<T> {
        let links = self.get()?;
        let mut found = locked(&self.found);
        Ok(with(&links, found.get_or_insert_with(|| Found::new(&links))))
    }
}

#[pymethods]
impl Links {
    /// Reads the scenario, lays out its network and draws its flows, which may need `memory` bytes.
    #[new]
    #[pyo3(signature = (scenario, *, seed=None, memory=None))]
    fn new(py: Python<'_>, scenario: Scenario, seed: Option<u64>, memory: Option<u64>) -> PyResult<Self> {
        let (text, source, sets, files) = scenario;
        // The limit here is not that of a run of the whole network.
        let source = Source { text, source, format: "toml".to_owned(), sets, files, memory: None };
        let links = interruptible(py, move || {
            let (loaded, _) = source.load()?;
            ByLinks::new(&loaded, seed, memory).map_err(|e| scenario_error(&e))
        })?;
        Ok(Self { links: Mutex::new(Some(Arc::new(links))), found: Mutex::new(None) })
    }

    /// Returns the links that carry data with their work in packets, most work first.
    fn works(&self) -> PyResult<Vec<(u32, u64)>> {
        Ok(self.get()?.works())
    }

    #[getter]
    fn duration_s(&self) -> PyResult<f64> {
        Ok(self.get()?.duration().as_secs_f64())
    }

    /// Number of times that each link runs.
    #[getter]
    #[expect(clippy::unused_self, reason = "PyO3 has no properties of classes")]
    fn passes(&self) -> u64 {
        PASSES
    }

    /// Returns the memory in bytes that a process may need to run `jobs` links at a time, and to hold the results if it has
    /// them.
    #[pyo3(signature = (jobs, *, results, memory=None))]
    fn needs(&self, jobs: usize, results: bool, memory: Option<u64>) -> PyResult<u64> {
        self.get()?.needs(jobs, results, memory).map_err(|e| scenario_error(&e))
    }

    /// Runs links and returns their results.
    #[pyo3(signature = (links, before=None, *, progress=None))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands objects over")]
    fn part<'py>(
        &self,
        py: Python<'py>,
        links: Vec<u32>,
        before: Option<Vec<u8>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let all = self.get()?;
        let board = Board::new(1);
        let bytes = watched(py, progress.as_ref(), &board, || {
            let ran = all.part(&links, before.as_deref(), &|progress| board.tick(0, &progress));
            Ok(ran.map_err(broken)?.ok())
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Takes the results that `part` returned; returns how many events there have been.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands objects over")]
    fn take(&self, py: Python<'_>, part: Vec<u8>) -> PyResult<u64> {
        py.detach(|| self.found(|_, found| found.take(&part)))?.map_err(broken)
    }

    /// Ends a pass.
    fn next_pass(&self) -> PyResult<()> {
        self.found(|_, found| found.next_pass())
    }

    /// The argument `before` of `part` for these links.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands objects over")]
    fn before<'py>(&self, py: Python<'py>, links: Vec<u32>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let bytes = py.detach(|| self.found(|all, found| found.before(all, &links)))?.map_err(broken)?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Combines the results. All of it took `wall_s` seconds.
    fn end(&self, py: Python<'_>, wall_s: f64) -> PyResult<Run> {
        self.found(|_, _| ())?;
        let (links, found) = (locked(&self.links).take(), locked(&self.found).take());
        let both = links.and_then(Arc::into_inner).zip(found);
        let (links, found) = both.ok_or_else(|| PyRuntimeError::new_err("a part still runs"))?;
        Ok(py.detach(|| links.end(found, wall_s)).into())
    }
}
