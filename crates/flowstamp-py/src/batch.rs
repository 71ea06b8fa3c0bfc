//! Runs many scenarios.

use crate::run::Run;
use crate::scenario_error;
use crate::source::{FilesOf, Source};
use crate::wait::{Board, heard, interruptible, watched};
use flowstamp_sim::network::size;
use flowstamp_sim::results::Results;
use flowstamp_sim::{Loaded, Needs, ScenarioError, run_each_within, run_many_within};
use pyo3::prelude::*;

/// Text, name in messages, overrides, and the folder that paths are relative to or the files' contents.
pub type Scenario = (String, String, Vec<(String, String)>, FilesOf);

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
