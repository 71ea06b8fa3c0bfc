//! Models of several links. Glue only: sizes are bits, times seconds, rates bit/s.

use crate::stability::growing;
use crate::theory::{buffer, refused};
use flowstamp_fluid::control::routes::{FluidLaw, Group, Routes};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The links of a route, each with the time from sending until packets pass it; RTT; number of flows.
type Route = (Vec<(usize, f64)>, f64, f64);

fn routes(capacities: &[f64], routes: Vec<Route>) -> PyResult<Routes> {
    let groups: Vec<Group> =
        routes.into_iter().map(|(over, rtt, flows)| Group { over, rtt, flows }).collect();
    Routes::new(capacities, &groups).map_err(refused)
}

/// The max-min fair rate of a flow of each route.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a list as a vector of its own")]
pub fn max_min(capacities: Vec<f64>, over: Vec<Route>) -> PyResult<Vec<f64>> {
    Ok(routes(&capacities, over)?.max_min())
}

/// A row for each time: queues by link (not for `vcp`, whose model has none), then rates of a flow of each route. `gains` are alpha, beta and
/// gamma for `xcp`, alpha and beta for `rcp`, and kappa, the additive increase, the target and `t_rho` for `vcp`. Two
/// more `gains` for `vcp` are the step of equation 14 and its interval; a row then also has each link's target.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a list as a vector of its own")]
pub fn network_trajectory<'py>(
    py: Python<'py>,
    law: &str,
    gains: Vec<f64>,
    capacities: Vec<f64>,
    over: Vec<Route>,
    rates: Vec<f64>,
    times: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let law = match (law, gains.as_slice()) {
        ("xcp", [alpha, beta, gamma]) => FluidLaw::Xcp { alpha: *alpha, beta: *beta, gamma: *gamma },
        ("rcp", [alpha, beta]) => FluidLaw::Rcp { alpha: *alpha, beta: *beta },
        ("vcp", [kappa, addition, target, t_rho, adjusts @ ..]) if matches!(adjusts.len(), 0 | 2) => {
            let adjusts = adjusts.first().copied().zip(adjusts.last().copied());
            FluidLaw::Vcp { kappa: *kappa, addition: *addition, target: *target, t_rho: *t_rho, adjusts }
        }
        _ => return Err(refused(format!("law \"{law}\" has no model with {} gains", gains.len()))),
    };
    let (routes, times) = (routes(&capacities, over)?, growing(times)?);
    let rows = py.detach(|| routes.rows(law, &rates, &times)).map_err(refused)?;
    Ok(buffer(py, &rows))
}
