//! Formulas, ideal servers and statistics of `flowstamp-fluid`. Glue only: rates are bits/s, times seconds, sizes bytes;
//! series are native float64 buffers.

use flowstamp_fluid::buffers;
use flowstamp_fluid::formulas::{CompletionTime, Mean, Mg1Queue, RoundTrips};
use flowstamp_fluid::servers::{self, Discipline, Flow};
use flowstamp_fluid::sizes::SizeDistribution;
use flowstamp_fluid::stats::{self, Warmup};
use flowstamp_fluid::u_curve::{self, Blocking, Reading};
use flowstamp_laws::units::{Bytes, Rate, Time};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fmt::Display;

create_exception!(
    _flowstamp,
    TheoryError,
    PyValueError,
    "A formula, a server or a statistic has no result for these arguments. The message says why."
);

pub(crate) fn refused(error: impl Display) -> PyErr {
    TheoryError::new_err(error.to_string())
}

/// The value that a word stands for.
pub(crate) fn word<T: Copy>(name: &str, text: &str, known: &[(&str, T)]) -> PyResult<T> {
    known.iter().find(|(key, _)| *key == text).map(|(_, value)| *value).ok_or_else(|| {
        let keys: Vec<&str> = known.iter().map(|(key, _)| *key).collect();
        refused(format!("{name} \"{text}\" is unknown; it must be one of {}", keys.join(", ")))
    })
}

fn discipline(text: &str) -> PyResult<Discipline> {
    let known = [
        ("fcfs", Discipline::Fcfs),
        ("ps", Discipline::Ps),
        ("srpt", Discipline::Srpt),
        ("fb", Discipline::Fb),
    ];
    word("discipline", text, &known)
}

fn reading(text: &str) -> PyResult<Reading> {
    word("reading", text, &[("last_packet", Reading::LastPacket), ("as_printed", Reading::AsPrinted)])
}

fn blocking(text: &str) -> PyResult<Blocking> {
    let known = [
        ("two_point", Blocking::TwoPoint),
        ("two_point_smooth", Blocking::TwoPointSmooth),
        ("erlang_c", Blocking::ErlangC),
    ];
    word("blocking", text, &known)
}

fn rate(name: &str, bps: f64) -> PyResult<Rate> {
    if bps.is_finite() && bps >= 0.0 {
        Ok(Rate::from_bps(bps))
    } else {
        Err(refused(format!("{name} is {bps} bit/s; it must be a finite number, at least 0")))
    }
}

fn seconds(name: &str, value: f64) -> PyResult<Time> {
    // The upper end of `Time`: 213 days.
    if (0.0..1.8e7).contains(&value) {
        Ok(Time::from_secs_f64(value))
    } else {
        Err(refused(format!("{name} is {value} s; it must be at least 0 and below 213 days")))
    }
}

pub(crate) fn floats(name: &str, buffer: &[u8]) -> PyResult<Vec<f64>> {
    buffers::numbers(buffer).ok_or_else(|| {
        refused(format!("{name} has {} bytes; a buffer of float64 has eight to each number", buffer.len()))
    })
}

pub(crate) fn buffer<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &buffers::bytes(values))
}

fn flows(arrivals_s: &[u8], sizes_bytes: &[u8]) -> PyResult<Vec<Flow>> {
    let (arrivals, sizes) = (floats("arrivals_s", arrivals_s)?, floats("sizes_bytes", sizes_bytes)?);
    if arrivals.len() == sizes.len() {
        Ok(Flow::all(&arrivals, &sizes))
    } else {
        Err(refused(format!(
            "{} arrivals and {} sizes; each flow has one of both",
            arrivals.len(),
            sizes.len()
        )))
    }
}

/// Parses a quantity with its unit: a rate in bits/s, a time in seconds, a size in bytes.
#[pyfunction]
pub fn quantity(kind: &str, text: &str) -> PyResult<f64> {
    match kind {
        "rate" => text.parse().map(Rate::bps).map_err(refused),
        "time" => text.parse().map(Time::as_secs_f64).map_err(refused),
        "size" => text.parse().map(Bytes::as_f64).map_err(refused),
        _ => Err(refused(format!("quantity \"{kind}\" is unknown; it must be one of rate, time, size"))),
    }
}

/// A distribution of flow sizes.
#[pyclass(frozen, module = "flowstamp._flowstamp")]
pub struct Sizes(SizeDistribution);

#[pymethods]
impl Sizes {
    #[staticmethod]
    fn fixed(size: f64) -> PyResult<Self> {
        SizeDistribution::fixed(size).map(Self).map_err(refused)
    }
    #[staticmethod]
    fn uniform(min: f64, max: f64) -> PyResult<Self> {
        SizeDistribution::uniform(min, max).map(Self).map_err(refused)
    }
    #[staticmethod]
    fn exponential(mean: f64) -> PyResult<Self> {
        SizeDistribution::exponential(mean).map(Self).map_err(refused)
    }
    #[staticmethod]
    #[pyo3(signature = (mean, shape, max=None))]
    fn pareto(mean: f64, shape: f64, max: Option<f64>) -> PyResult<Self> {
        match max {
            None => SizeDistribution::pareto(mean, shape),
            Some(max) => SizeDistribution::bounded_pareto_with_mean(mean, max, shape),
        }
        .map(Self)
        .map_err(refused)
    }
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands lists over")]
    fn empirical(points: Vec<(f64, f64)>) -> PyResult<Self> {
        SizeDistribution::empirical(&points).map(Self).map_err(refused)
    }
    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }
    #[getter]
    fn second_moment(&self) -> f64 {
        self.0.second_moment()
    }
    /// P(L <= x).
    fn cdf(&self, x: f64) -> f64 {
        self.0.cdf(x)
    }
}

/// An M/G/1 queue: flows that arrive as a Poisson process at one link.
#[pyclass(frozen, name = "Link", module = "flowstamp._flowstamp")]
pub struct PyMg1Queue {
    sizes: Py<Sizes>,
    capacity: Rate,
    load: f64,
}

impl PyMg1Queue {
    fn queue(&self) -> PyResult<Mg1Queue<'_>> {
        Mg1Queue::new(&self.sizes.get().0, self.capacity, self.load).map_err(refused)
    }
    fn of(&self, py: Python<'_>, f: impl FnOnce(&Mg1Queue<'_>) -> PyResult<f64> + Send) -> PyResult<f64> {
        let queue = self.queue()?;
        py.detach(|| f(&queue))
    }
}

#[pymethods]
impl PyMg1Queue {
    #[new]
    fn new(sizes: Py<Sizes>, capacity_bps: f64, load: f64) -> PyResult<Self> {
        let capacity = rate("capacity_bps", capacity_bps)?;
        let link = Self { sizes, capacity, load };
        link.queue()?;
        Ok(link)
    }
    #[getter]
    fn load(&self) -> f64 {
        self.load
    }
    #[getter]
    fn flows_per_s(&self) -> PyResult<f64> {
        Ok(self.queue()?.flows_per_s())
    }
    /// Mean time in the queue and in service, in seconds; infinite if the mean does not exist.
    #[pyo3(signature = (discipline, size_bytes=None))]
    fn mean_time(&self, py: Python<'_>, discipline: &str, size_bytes: Option<f64>) -> PyResult<f64> {
        let discipline = self::discipline(discipline)?;
        self.of(py, |queue| {
            let mean = match size_bytes {
                None => queue.mean_time(discipline),
                Some(size) => queue.mean_time_of_size(discipline, size),
            };
            Ok(mean.seconds())
        })
    }
    /// Mean flow duration in seconds when every flow sends at `rate_share` of the capacity (appendix A).
    fn mean_duration(&self, py: Python<'_>, rate_share: f64, reading: &str, blocking: &str) -> PyResult<f64> {
        let (reading, blocking) = (self::reading(reading)?, self::blocking(blocking)?);
        self.of(py, |queue| {
            u_curve::mean_duration(queue, rate_share, reading, blocking).map(Mean::seconds).map_err(refused)
        })
    }
    /// Mean queue when every flow sends at `rate_share` of the capacity (appendix A).
    fn mean_queue_bytes(&self, py: Python<'_>, rate_share: f64, blocking: &str) -> PyResult<f64> {
        let blocking = self::blocking(blocking)?;
        self.of(py, |queue| u_curve::mean_queue_bytes(queue, rate_share, blocking).map_err(refused))
    }
    /// The rate over the capacity with the least mean duration within a range, and that duration.
    fn best_rate(
        &self,
        py: Python<'_>,
        reading: &str,
        blocking: &str,
        range: (f64, f64),
    ) -> PyResult<(f64, f64)> {
        let (reading, blocking) = (self::reading(reading)?, self::blocking(blocking)?);
        let queue = self.queue()?;
        let (best, mean) =
            py.detach(|| u_curve::best_rate(&queue, reading, blocking, range)).map_err(refused)?;
        Ok((best, mean.seconds()))
    }
}

/// Completion times in seconds of flows of these sizes, by one of the thesis's formulas.
#[pyfunction]
#[pyo3(signature = (formula, sizes_bytes, rtt_s, capacity_bps, load=0.0, packet_bytes=1000.0))]
pub fn completion_times<'py>(
    py: Python<'py>,
    formula: &str,
    sizes_bytes: &[u8],
    rtt_s: f64,
    capacity_bps: f64,
    load: f64,
    packet_bytes: f64,
) -> PyResult<Bound<'py, PyBytes>> {
    let (rtt, capacity) = (seconds("rtt_s", rtt_s)?, rate("capacity_bps", capacity_bps)?);
    let formula = match formula {
        "ps" => CompletionTime::ProcessorSharing(load),
        "bound" => CompletionTime::LowerBound,
        "slow_start" => CompletionTime::SlowStart(packet_bytes),
        _ => {
            return Err(refused(format!(
                "formula \"{formula}\" is unknown; it must be one of ps, bound, slow_start"
            )));
        }
    };
    let sizes = floats("sizes_bytes", sizes_bytes)?;
    Ok(buffer(py, &formula.of(&sizes, rtt, capacity).map_err(refused)?))
}

/// Seconds that the thesis adds to the time in the queue: 1, 1.5 or 2 round trips.
#[pyfunction]
pub fn round_trips(equation: &str, rtt_s: f64) -> PyResult<f64> {
    let known = [("2.1", RoundTrips::One), ("4.1", RoundTrips::OneAndAHalf), ("6.1", RoundTrips::Two)];
    Ok(word("equation", equation, &known)?.seconds(seconds("rtt_s", rtt_s)?))
}

/// Time in seconds that each flow, sorted by arrival, spends at an ideal server.
#[pyfunction]
pub fn serve<'py>(
    py: Python<'py>,
    discipline: &str,
    arrivals_s: &[u8],
    sizes_bytes: &[u8],
    capacity_bps: f64,
) -> PyResult<Bound<'py, PyBytes>> {
    let (discipline, capacity) = (self::discipline(discipline)?, rate("capacity_bps", capacity_bps)?);
    let flows = flows(arrivals_s, sizes_bytes)?;
    let times = py
        .detach(|| {
            servers::completions(discipline, &flows, capacity).map(|ends| servers::sojourns(&flows, &ends))
        })
        .map_err(refused)?;
    Ok(buffer(py, &times))
}

/// Flows that each send at one rate into a FIFO queue: durations, mean queue in bytes, utilisation.
#[pyfunction]
pub fn rate_limited<'py>(
    py: Python<'py>,
    arrivals_s: &[u8],
    sizes_bytes: &[u8],
    flow_rate_bps: f64,
    capacity_bps: f64,
) -> PyResult<(Bound<'py, PyBytes>, f64, f64)> {
    let (flow_rate, capacity) = (rate("flow_rate_bps", flow_rate_bps)?, rate("capacity_bps", capacity_bps)?);
    let flows = flows(arrivals_s, sizes_bytes)?;
    let came = py.detach(|| servers::rate_limited(&flows, flow_rate, capacity)).map_err(refused)?;
    Ok((buffer(py, &came.durations_s), came.mean_queue_bytes, came.utilization))
}

/// Mean, half width of its confidence interval and correlation of successive batches.
#[pyfunction]
#[pyo3(signature = (values, batches=10, level=0.95))]
pub fn batch_means(values: &[u8], batches: usize, level: f64) -> PyResult<(f64, f64, f64)> {
    let interval = stats::batch_means(&floats("values", values)?, batches, level).map_err(refused)?;
    Ok((interval.mean, interval.half_width, interval.lag1))
}

/// Number of initial values that the MSER-5 rule drops.
#[pyfunction]
pub fn mser5(values: &[u8]) -> PyResult<usize> {
    let values = floats("values", values)?;
    Ok(values.len() - Warmup::Mser5.remove(&values).len())
}
