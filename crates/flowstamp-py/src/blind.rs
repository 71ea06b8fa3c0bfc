//! XCP-b on a link of unknown capacity. Glue only: the unit of rates is the capacity, of queues the bandwidth-delay product, of times the RTT.

use crate::theory::{buffer, refused, word};
use flowstamp_fluid::control::blind::{BlindLink, Senders};
use flowstamp_laws::xcp::blind::Detection;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A row for each step: arrival and departure rates over the capacity, and the queue at the step's end.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn blind_steps<'py>(
    py: Python<'py>,
    senders: &str,
    detection: &str,
    gains: (f64, f64),
    chi: Option<f64>,
    q_max: f64,
    kappa: f64,
    start: f64,
    parts: u32,
    rtts: u32,
) -> PyResult<Bound<'py, PyBytes>> {
    let known = [("at_once", Senders::AtOnce), ("rates", Senders::Rates), ("windows", Senders::Windows)];
    let ways = [("average", Detection::Average), ("counter", Detection::Counter)];
    let link = BlindLink {
        gains: [gains.0, gains.1],
        chi,
        q_max,
        kappa,
        detection: word("detection", detection, &ways)?,
        senders: word("senders", senders, &known)?,
        start,
        parts,
    };
    let steps = py.detach(|| link.steps(rtts)).map_err(refused)?;
    let rows: Vec<f64> = steps.iter().flat_map(|s| [s.arrived, s.left, s.queue]).collect();
    Ok(buffer(py, &rows))
}
