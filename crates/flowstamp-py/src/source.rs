//! The text of a scenario, and what can be done with it.

use crate::run::Run;
use crate::simulation::Simulation;
use crate::wait::{Board, interruptible, watched};
use crate::{scenario_error, shared};
use flowstamp_sim::network::size;
use flowstamp_sim::scenario::Files;
use flowstamp_sim::{Divided, FilesFrom, Format, Loaded, Needs, ScenarioError, load_within, run_by_links};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// Everything needed to read a scenario. It owns its data, because the caller may stop waiting while it is read.
#[pyclass(frozen, module = "flowstamp._flowstamp")]
#[derive(Clone)]
pub struct Source {
    pub text: String,
    pub source: String,
    pub format: String,
    pub sets: Vec<(String, String)>,
    pub files: FilesOf,
    /// Bytes that a run may need.
    pub memory: Option<u64>,
}

/// The files that a scenario names.
#[derive(Clone, FromPyObject)]
pub enum FilesOf {
    /// A folder that their paths are relative to.
    Folder(String),
    /// Their contents by path.
    Contents(BTreeMap<String, String>),
}

impl Source {
    pub fn load(&self) -> PyResult<(Loaded, Needs)> {
        let format = match self.format.as_str() {
            "toml" => Format::Toml,
            "json" => Format::Json,
            other => return Err(PyValueError::new_err(format!("format \"{other}\": must be toml or json"))),
        };
        let contents: Files;
        let files: FilesFrom<'_> = match &self.files {
            FilesOf::Folder(folder) => Path::new(folder).into(),
            FilesOf::Contents(files) => {
                contents = files.iter().map(|(path, text)| (path.into(), text.clone())).collect();
                (&contents).into()
            }
        };
        load_within(&self.text, format, &self.source, &self.sets, files, self.memory)
            .map_err(|e| scenario_error(&e))
    }

    /// Reads the scenario and lays out its network for several threads, each of which has a copy of it.
    fn divided(&self, py: Python<'_>, seed: Option<u64>, threads: usize) -> PyResult<Divided> {
        let source = self.clone();
        interruptible(py, move || {
            let (loaded, needs) = source.load()?;
            let bytes = needs.bytes.saturating_mul(threads as u64);
            if let Some(memory) = source.memory.filter(|memory| bytes > *memory) {
                let message = format!(
                    "{threads} copies of this network, one for each thread, may need {} of memory; they may have {}: \
                     use fewer threads, or give more (--memory)",
                    size(bytes as f64),
                    size(memory as f64)
                );
                return Err(scenario_error(&ScenarioError::new("threads", message).at(&source.source)));
            }
            Divided::new(&loaded, seed, threads).map_err(|e| scenario_error(&e.at(&source.source)))
        })
    }

    /// Reads the scenario and lays out its network.
    fn laid_out(&self, py: Python<'_>, seed: Option<u64>) -> PyResult<flowstamp_sim::Simulation> {
        let source = self.clone();
        interruptible(py, move || {
            flowstamp_sim::Simulation::new(&source.load()?.0, seed).map_err(|e| scenario_error(&e))
        })
    }
}

#[pymethods]
impl Source {
    #[new]
    #[pyo3(
        signature = (text, *, source="scenario".to_owned(), format="toml".to_owned(), sets=Vec::new(), base_dir=".".to_owned(), memory=None),
        text_signature = "(text, *, source='scenario', format='toml', sets=(), base_dir='.', memory=None)"
    )]
    const fn new(
        text: String,
        source: String,
        format: String,
        sets: Vec<(String, String)>,
        base_dir: String,
        memory: Option<u64>,
    ) -> Self {
        Self { text, source, format, sets, files: FilesOf::Folder(base_dir), memory }
    }

    /// Checks the scenario without running it; returns it as TOML with every default spelled out.
    fn check(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.resolve(py)?.0)
    }

    /// As `check`, and returns the contents of the files that the scenario names by path, and the bytes of memory that a run may need.
    fn resolve(&self, py: Python<'_>) -> PyResult<(String, BTreeMap<String, String>, u64)> {
        let source = self.clone();
        interruptible(py, move || {
            let (loaded, needs) = source.load()?;
            let toml = loaded.scenario.to_toml();
            let files = loaded.files.into_iter().map(|(path, text)| (path.display().to_string(), text));
            Ok((toml, files.collect(), needs.bytes))
        })
    }

    /// Links of the scenario whose router laws have gains, as `shared::Loops`.
    fn router_loops(&self, py: Python<'_>) -> PyResult<shared::Loops> {
        let source = self.clone();
        interruptible(py, move || shared::loops(&source.load()?.0))
    }

    /// Runs the scenario, on `threads` threads.
    #[pyo3(signature = (*, seed=None, threads=1, progress=None))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands objects over")]
    fn run(
        &self,
        py: Python<'_>,
        seed: Option<u64>,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Run> {
        let board = Board::new(1);
        let mut tick = |progress| board.tick(0, &progress);
        let results = if threads > 1 {
            let divided = self.divided(py, seed, threads)?;
            watched(py, progress.as_ref(), &board, || Ok(divided.run(&mut tick).ok()))?
        } else {
            let simulation = self.laid_out(py, seed)?;
            watched(py, progress.as_ref(), &board, || Ok(simulation.run(&mut tick).ok()))?
        };
        Ok(results.into())
    }

    /// Runs each link of the scenario alone, and combines the results.
    #[pyo3(signature = (*, seed=None, threads=None, progress=None))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands objects over")]
    fn run_by_links(
        &self,
        py: Python<'_>,
        seed: Option<u64>,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Run> {
        // The limit here is not that of a run of the whole network.
        let source = Self { memory: None, ..self.clone() };
        let memory = self.memory;
        let loaded = interruptible(py, move || Ok(source.load()?.0))?;
        let board = Board::new(1);
        let results = watched(py, progress.as_ref(), &board, || {
            let ran = run_by_links(&loaded, seed, threads, memory, &|progress| board.tick(0, &progress));
            Ok(ran.map_err(|e| scenario_error(&e))?.ok())
        })?;
        Ok(results.into())
    }

    /// Lays out the scenario and returns it ready to run.
    #[pyo3(signature = (*, seed=None))]
    fn start(&self, py: Python<'_>, seed: Option<u64>) -> PyResult<Simulation> {
        Ok(Simulation { simulation: self.laid_out(py, seed)? })
    }
}
