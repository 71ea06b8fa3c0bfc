//! The native module `flowstamp._flowstamp`: runs scenarios, holds their results, and computes the theory. Glue only.
//!
//! `python/flowstamp/_flowstamp.pyi` is its contract; the typed facade is in the modules beside it.

mod apart;
mod batch;
mod blind;
mod control;
mod routes;
mod run;
mod shared;
mod simulation;
mod source;
mod stability;
mod table;
mod theory;
mod wait;

use flowstamp_laws::registry;
use flowstamp_laws::tcp::dctcp;
use flowstamp_laws::units::{Rate, Time};
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;

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

/// The least marking threshold for DCTCP in bytes, for a link of a rate in bit/s and a round trip in seconds.
#[pyfunction]
fn dctcp_threshold(rate_bps: f64, rtt_s: f64) -> f64 {
    dctcp::least_threshold(Rate::from_bps(rate_bps), Time::from_secs_f64(rtt_s))
}

#[pymodule]
mod _flowstamp {
    use super::PyResult;
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::apart::Links;
    #[pymodule_export]
    use super::batch::{run_each, run_many};
    #[pymodule_export]
    use super::blind::blind_steps;
    #[pymodule_export]
    use super::control::{
        loop_crossings, loop_unstable_roots, loop_within, rcp_settling, rcp_trajectory, vcp_windows,
    };
    #[pymodule_export]
    use super::routes::{max_min, network_trajectory};
    #[pymodule_export]
    use super::run::Run;
    #[pymodule_export]
    use super::shared::{shared_map, shared_settling, shared_trajectory};
    #[pymodule_export]
    use super::simulation::Simulation;
    #[pymodule_export]
    use super::source::Source;
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
        OutputError, ScenarioError, dctcp_threshold, dissector_lua, laws, router_of, scenario_schema,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
