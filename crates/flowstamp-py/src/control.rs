//! Functions of `flowstamp-fluid` that figures of control theory use, beside [`crate::stability`]. Glue only: angular frequencies of
//! borders are radians per round trip; series are native float64 buffers.

use crate::stability::{growing, pairs, patience, settled};
use crate::theory::{buffer, floats, refused, word};
use flowstamp_fluid::control::frequency::OpenLoop;
use flowstamp_fluid::control::region;
use flowstamp_fluid::control::settle::{self, RcpLink};
use flowstamp_fluid::stability;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Crossings in the Bode plot: w d where the gain is 1 (equation 5.10) and where the phase is -pi (5.11); NaN if there is none.
#[pyfunction]
pub fn loop_crossings<'py>(
    py: Python<'py>,
    alphas: &[u8],
    betas: &[u8],
) -> PyResult<[Bound<'py, PyBytes>; 2]> {
    let pairs = pairs(alphas, betas)?;
    let gain: Vec<f64> = pairs.iter().map(|(a, b)| stability::gain_crossing(*a, *b)).collect();
    let phase: Vec<f64> =
        pairs.iter().map(|(a, b)| stability::phase_crossing(*a, *b).unwrap_or(f64::NAN)).collect();
    Ok([buffer(py, &gain), buffer(py, &phase)])
}

/// Number of closed-loop roots right of the imaginary axis, by Nyquist; NaN if one lies on it. `delay` is `exact`, or `pade` for its Padé
/// approximation.
#[pyfunction]
pub fn loop_unstable_roots<'py>(
    py: Python<'py>,
    delay: &str,
    alphas: &[u8],
    betas: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let exact = word("delay", delay, &[("exact", true), ("pade", false)])?;
    let of = if exact { OpenLoop::of_gains } else { OpenLoop::of_gains_by_pade };
    let pairs = pairs(alphas, betas)?;
    let counts = py.detach(|| {
        region::all(&pairs, |(alpha, beta)| {
            of(*alpha, *beta, 1.0).and_then(|l| l.unstable_roots(0.0)).map_or(f64::NAN, f64::from)
        })
    });
    Ok(buffer(py, &counts))
}

#[derive(Clone, Copy)]
enum Seen {
    Rest,
    RestByPade,
    Queue,
}

/// Real and imaginary parts of another response of the loop, at angular frequencies. `rest` leaves out a factor alpha (Dukkipati 2007,
/// appendix D's `G1`), `rest_by_pade` is its Padé approximation, and `queue` is in seconds per constant capacity error (Abrantes 2006,
/// figure 3).
#[pyfunction]
pub fn loop_within<'py>(
    py: Python<'py>,
    seen: &str,
    alpha: f64,
    beta: f64,
    rtt_s: f64,
    omega: &[u8],
) -> PyResult<[Bound<'py, PyBytes>; 2]> {
    let known = [("rest", Seen::Rest), ("rest_by_pade", Seen::RestByPade), ("queue", Seen::Queue)];
    let (forward, other) = match word("response", seen, &known)? {
        Seen::Rest => (OpenLoop::of_gains(1.0, 0.0, rtt_s), OpenLoop::of_gains(0.0, beta, rtt_s)),
        Seen::RestByPade => {
            (OpenLoop::of_gains_by_pade(1.0, 0.0, rtt_s), OpenLoop::of_gains_by_pade(0.0, beta, rtt_s))
        }
        Seen::Queue => {
            (OpenLoop::new(&[alpha / rtt_s], &[0.0, 0.0, 1.0], rtt_s), OpenLoop::of_gains(alpha, beta, rtt_s))
        }
    };
    let (Some(forward), Some(other)) = (forward, other) else {
        return Err(refused(format!("gains {alpha} and {beta} with an RTT of {rtt_s} s do not form a loop")));
    };
    let (re, im): (Vec<f64>, Vec<f64>) = floats("omega", omega)?
        .into_iter()
        .map(|w| {
            let response = forward.around(&other, w);
            (response.re, response.im)
        })
        .unzip();
    Ok([buffer(py, &re), buffer(py, &im)])
}

/// Parameters of many links: gains, C in bit/s, d0 in seconds, N, buffers in bandwidth-delay products.
struct Links([Vec<f64>; 6]);

impl Links {
    fn read(buffers: [&[u8]; 6]) -> PyResult<Self> {
        let names = ["alphas", "betas", "capacities", "rtts", "flows", "buffers"];
        let mut read = [const { Vec::new() }; 6];
        for ((name, bytes), place) in names.iter().zip(buffers).zip(&mut read) {
            *place = floats(name, bytes)?;
            if place.len() != buffers[0].len() / 8 {
                return Err(refused(format!("{name} are not as many as alphas")));
            }
        }
        if read[2..5].iter().flatten().any(|value| !value.is_finite() || *value <= 0.0) {
            return Err(refused("capacities, rtts and flows must be finite numbers above 0"));
        }
        if read[5].iter().any(|buffer| buffer.is_nan() || *buffer <= 0.0) {
            return Err(refused("buffers must be numbers above 0"));
        }
        Ok(Self(read))
    }

    fn all(&self) -> Vec<RcpLink> {
        let [alpha, beta, capacity, rtt, flows, buffer] = &self.0;
        (0..alpha.len())
            .map(|i| RcpLink {
                alpha: alpha[i],
                beta: beta[i],
                capacity: capacity[i],
                rtt: rtt[i],
                flows: flows[i],
                buffer: buffer[i],
            })
            .collect()
    }
}

/// Settling times of RCP's equations 5.1 to 5.4 in their own units: round trips until rate and queue stay within 2% and 1%, NaN if they
/// do not settle within `most`. `start` is the rate over the equilibrium's, and the queue in bandwidth-delay products.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn rcp_settling<'py>(
    py: Python<'py>,
    alphas: &[u8],
    betas: &[u8],
    capacities: &[u8],
    rtts: &[u8],
    flows: &[u8],
    buffers: &[u8],
    start: (f64, f64),
    most: f64,
) -> PyResult<Bound<'py, PyBytes>> {
    let links = Links::read([alphas, betas, capacities, rtts, flows, buffers])?.all();
    let start = |link: &RcpLink| [start.0 / link.flows, start.1];
    Ok(settled(py, &links, |link| link.fate(start(link), &patience(most))))
}

/// R over C and the queue in bandwidth-delay products, at times in seconds; `start` has the same units.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn rcp_trajectory<'py>(
    py: Python<'py>,
    alpha: f64,
    beta: f64,
    capacity: f64,
    rtt: f64,
    flows: f64,
    buffer_bdp: f64,
    start: (f64, f64),
    times: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let link = RcpLink { alpha, beta, capacity, rtt, flows, buffer: buffer_bdp };
    let times = growing(times)?;
    let found = py.detach(|| link.states([start.0, start.1], &times)).map_err(refused)?;
    Ok(buffer(py, found.as_flattened()))
}

/// VCP's MIAIMD model: the windows of up to 16 flows over up to 8 links, at ascending times in round trips. A link is the packets that it carries in an RTT at
/// its target, and the numbers of the flows that cross it. `adjusts` is the step of equation 14 and its interval in round trips; with it
/// rows also have each link's adjusted target, over the wanted one.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts a list as a vector of its own")]
pub fn vcp_windows<'py>(
    py: Python<'py>,
    kappa: f64,
    alpha: f64,
    start: Vec<f64>,
    links: Vec<(f64, Vec<usize>)>,
    adjusts: Option<(f64, f64)>,
    times: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let times = growing(times)?;
    if start.iter().any(|w| !w.is_finite() || *w <= 0.0) || links.iter().any(|l| l.0 <= 0.0) {
        return Err(refused("windows and what links carry must be numbers above 0"));
    }
    let found = py.detach(|| settle::windows(kappa, alpha, &start, &links, adjusts, &times)).map_err(refused);
    Ok(buffer(py, &found?))
}
