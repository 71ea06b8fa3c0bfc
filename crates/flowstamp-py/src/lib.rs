//! The native module `flowstamp._flowstamp`: runs scenarios, holds their results, and computes the theory. Glue only.
//!
//! `python/flowstamp/_flowstamp.pyi` is its contract; the typed facade is in the modules beside it.

mod blind;
mod control;
mod routes;
mod run;
mod shared;
mod simulation;
mod stability;
mod table;
mod theory;
mod wait;

use flowstamp_laws::registry;
use flowstamp_sim::scenario::Files;
use flowstamp_sim::{FilesFrom, Format, Loaded, Needs, load_within};
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

create_exception!(
    _flowstamp,
    ScenarioError,
    PyValueError,
    "Bad input: one line that names the source, the key, the value and what would be right."
);
create_exception!(
    _flowstamp,
    OutputError,
    PyOSError,
    "Results could not be written: one line that names the path and the reason."
);

fn scenario_error(error: &flowstamp_sim::ScenarioError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// Everything needed to read a scenario. It owns its data, because the caller may stop waiting while it is read.
struct Source {
    text: String,
    source: String,
    format: String,
    sets: Vec<(String, String)>,
    files: FilesOf,
    /// Bytes that a run may need.
    memory: Option<u64>,
}

/// The files that a scenario names.
#[derive(FromPyObject)]
enum FilesOf {
    /// A folder that their paths are relative to.
    Folder(String),
    /// Their contents by path.
    Contents(BTreeMap<String, String>),
}

impl Source {
    fn new(
        text: &str,
        source: &str,
        format: &str,
        sets: Vec<(String, String)>,
        files: FilesOf,
        memory: Option<u64>,
    ) -> Self {
        let [text, source, format] = [text, source, format].map(str::to_owned);
        Self { text, source, format, sets, files, memory }
    }

    fn load(&self) -> PyResult<(Loaded, Needs)> {
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
}

/// Checks a scenario without running it; returns it as TOML with every default spelled out.
#[pyfunction]
#[pyo3(
    signature = (text, *, source="scenario", format="toml", sets=Vec::new(), base_dir=".".to_owned(), memory=None),
    text_signature = "(text, *, source='scenario', format='toml', sets=(), base_dir='.', memory=None)"
)]
fn check(
    py: Python<'_>,
    text: &str,
    source: &str,
    format: &str,
    sets: Vec<(String, String)>,
    base_dir: String,
    memory: Option<u64>,
) -> PyResult<String> {
    let source = Source::new(text, source, format, sets, FilesOf::Folder(base_dir), memory);
    wait::interruptible(py, move || Ok(source.load()?.0.scenario.to_toml()))
}

/// Checks a scenario without running it. Returns the scenario as TOML with every default spelled out, the contents of the files that it
/// names by path, and the bytes of memory that a run may need.
#[pyfunction]
#[pyo3(
    signature = (text, *, source="scenario", format="toml", sets=Vec::new(), base_dir=".".to_owned(), memory=None),
    text_signature = "(text, *, source='scenario', format='toml', sets=(), base_dir='.', memory=None)"
)]
fn resolve(
    py: Python<'_>,
    text: &str,
    source: &str,
    format: &str,
    sets: Vec<(String, String)>,
    base_dir: String,
    memory: Option<u64>,
) -> PyResult<(String, BTreeMap<String, String>, u64)> {
    let source = Source::new(text, source, format, sets, FilesOf::Folder(base_dir), memory);
    wait::interruptible(py, move || {
        let (loaded, needs) = source.load()?;
        let toml = loaded.scenario.to_toml();
        let files = loaded.files.into_iter().map(|(path, text)| (path.display().to_string(), text));
        Ok((toml, files.collect(), needs.bytes))
    })
}

/// Links of a scenario whose router laws have gains, as `shared::Loops`.
#[pyfunction]
#[pyo3(
    signature = (text, *, source="scenario", format="toml", sets=Vec::new(), base_dir=".".to_owned(), memory=None),
    text_signature = "(text, *, source='scenario', format='toml', sets=(), base_dir='.', memory=None)"
)]
fn router_loops(
    py: Python<'_>,
    text: &str,
    source: &str,
    format: &str,
    sets: Vec<(String, String)>,
    base_dir: String,
    memory: Option<u64>,
) -> PyResult<shared::Loops> {
    let source = Source::new(text, source, format, sets, FilesOf::Folder(base_dir), memory);
    wait::interruptible(py, move || shared::loops(&source.load()?.0))
}

/// JSON Schema of a scenario.
#[pyfunction]
fn scenario_schema() -> String {
    flowstamp_sim::scenario::schema().to_string()
}

/// Lua dissector for Wireshark: it decodes the headers in trace.pcapng, and the TCP option of hosts on Linux.
#[pyfunction]
fn dissector_lua() -> &'static str {
    flowstamp_wire::DISSECTOR
}

/// Names of the laws in the registry, by kind.
#[pyfunction]
fn laws() -> BTreeMap<&'static str, Vec<String>> {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    BTreeMap::from([
        ("senders", owned(registry::SenderSpec::NAMES)),
        ("routers", owned(registry::RouterSpec::NAMES)),
        ("queues", owned(registry::QueueSpec::NAMES)),
        ("schedulers", owned(registry::ShareSpec::NAMES)),
    ])
}

/// The router law that each sender law names in the registry, or `none`. With `blind`, the one that it names for links of unknown capacity,
/// or `none`.
#[pyfunction]
#[pyo3(signature = (*, blind = false))]
fn router_of(blind: bool) -> BTreeMap<&'static str, &'static str> {
    let of = |sender: &registry::SenderSpec| {
        let router = if blind { sender.blind_router() } else { sender.router() };
        (sender.name(), router.map_or("none", |router| router.name()))
    };
    registry::SenderSpec::all().iter().map(of).collect()
}

#[pymodule]
mod _flowstamp {
    use super::PyResult;
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::blind::blind_steps;
    #[pymodule_export]
    use super::control::{
        loop_crossings, loop_unstable_roots, loop_within, rcp_settling, rcp_trajectory, vcp_windows,
    };
    #[pymodule_export]
    use super::routes::{max_min, network_trajectory};
    #[pymodule_export]
    use super::run::{Run, run, run_each, run_many};
    #[pymodule_export]
    use super::shared::{shared_map, shared_settling, shared_trajectory};
    #[pymodule_export]
    use super::simulation::{Simulation, start};
    #[pymodule_export]
    use super::stability::{
        loop_border, loop_encirclements, loop_margins, loop_response, loop_roots, own_gains, proved,
        settling, settling_map, switched_border, trajectory,
    };
    #[pymodule_export]
    use super::table::{Table, parquet_notes};
    #[pymodule_export]
    use super::theory::{
        PyMg1Queue, Sizes, TheoryError, batch_means, completion_times, mser5, quantity, rate_limited,
        round_trips, serve,
    };
    #[pymodule_export]
    use super::{
        OutputError, ScenarioError, check, dissector_lua, laws, resolve, router_loops, router_of,
        scenario_schema,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
