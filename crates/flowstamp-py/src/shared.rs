//! One link that flows of several RTTs share, by the models of `flowstamp-fluid`, and the control loops of a scenario. Glue only.

use crate::stability::{growing, mapped, pairs, patience, settled};
use crate::theory::{buffer, floats, refused, word};
use flowstamp_fluid::control::settle::{Shared, SharedLaw};
use flowstamp_laws::units::Time;
use flowstamp_sim::plan::Network;
use flowstamp_sim::scenario::Loaded;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

fn shared(law: &str, shuffle: f64, rtts: &[u8], flows: &[u8], start: (f64, f64)) -> PyResult<Shared> {
    let law = word("law", law, &[("xcp", SharedLaw::Xcp(shuffle)), ("rcp", SharedLaw::Rcp)])?;
    Shared::new(law, &floats("rtts", rtts)?, &floats("flows", flows)?, [start.0, start.1]).map_err(refused)
}

/// As `settling`, for flows with `rtts` in seconds; the times returned are in mean RTTs.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn shared_settling<'py>(
    py: Python<'py>,
    law: &str,
    shuffle: f64,
    alphas: &[u8],
    betas: &[u8],
    rtts: &[u8],
    flows: &[u8],
    start: (f64, f64),
    most: f64,
) -> PyResult<Bound<'py, PyBytes>> {
    let shared = shared(law, shuffle, rtts, flows, start)?;
    Ok(settled(py, &pairs(alphas, betas)?, |(alpha, beta)| shared.fate(*alpha, *beta, &patience(most))))
}

/// As `settling_map`, for flows of several RTTs in seconds.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn shared_map<'py>(
    py: Python<'py>,
    law: &str,
    shuffle: f64,
    alphas: &[u8],
    betas: &[u8],
    rtts: &[u8],
    flows: &[u8],
    start: (f64, f64),
    most: f64,
) -> PyResult<(Bound<'py, PyBytes>, usize)> {
    let shared = shared(law, shuffle, rtts, flows, start)?;
    let (alphas, betas) = (floats("alphas", alphas)?, floats("betas", betas)?);
    mapped(py, &alphas, &betas, |alpha, beta| shared.fate(alpha, beta, &patience(most)).settles())
}

/// A row for each of the ascending times, in mean RTTs: traffic over the capacity less one, queue in capacity times mean RTT, and for each
/// group the rate of one of its flows over its fair share.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn shared_trajectory<'py>(
    py: Python<'py>,
    law: &str,
    shuffle: f64,
    alpha: f64,
    beta: f64,
    rtts: &[u8],
    flows: &[u8],
    start: (f64, f64),
    times: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let (shared, times) = (shared(law, shuffle, rtts, flows, start)?, growing(times)?);
    let rows = py.detach(|| shared.rows(alpha, beta, &times)).map_err(refused)?;
    Ok(buffer(py, &rows))
}

/// A link whose router law has gains: its name, the law's name, alpha, beta, gamma if the law has it, `(RTT in seconds, number)` of the
/// flows that obey it, and its capacity in bit/s.
pub type Loop = (String, &'static str, f64, f64, Option<f64>, Vec<(f64, u32)>, f64);

/// Route of long-lived flows: `(name, seconds from sending until packets pass it)` of the links that they obey, RTT in seconds, number of flows.
pub type Way = (Vec<(String, f64)>, f64, u32);

/// Links of a checked scenario whose routers close a loop; the routes of flows through them, empty if flows arrive during the run; and the
/// warnings of a run.
pub type Loops = (Vec<Loop>, Vec<Way>, Vec<String>);

/// The loops of a checked scenario.
pub fn loops(loaded: &Loaded) -> PyResult<Loops> {
    let network = Network::new(loaded, loaded.scenario.seed).map_err(refused)?;
    let named = |links: Vec<(u32, Time)>| {
        let name = |link: u32| network.links[link as usize].name.clone();
        links.into_iter().map(|(link, after)| (name(link), after.as_secs_f64())).collect()
    };
    let ways = if network.arrivals.is_empty() { network.ways() } else { Vec::new() };
    let ways = ways.into_iter().map(|way| (named(way.links), way.rtt.as_secs_f64(), way.flows)).collect();
    let mut found = Vec::new();
    for it in network.loops {
        let set = serde_json::to_value(&it.router).map_err(refused)?;
        if let (Some(alpha), Some(beta)) = (set["alpha"].as_f64(), set["beta"].as_f64()) {
            let rtts = it.rtts.iter().map(|(rtt, count)| (rtt.as_secs_f64(), *count)).collect();
            let bps = it.capacity.bps();
            found.push((it.link, it.router.name(), alpha, beta, set["gamma"].as_f64(), rtts, bps));
        }
    }
    Ok((found, ways, network.warnings))
}
