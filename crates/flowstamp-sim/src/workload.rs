//! Arrival times and sizes of flows that arrive during a run.

mod mixture;

use crate::random::Stream;
use crate::scenario::{Arrivals, Loaded, Sizes};
use flowstamp_laws::units::Time;
use mixture::{HADOOP, Mixture, STORAGE, WEB_SEARCH};

/// A refused parameter: its key below the group's `web`, and why.
type Refused = (&'static str, String);

/// A process of flow arrivals.
#[derive(Clone, Debug)]
pub struct ArrivalProcess {
    mean_gap_s: f64,
    /// `None` for Poisson.
    pareto_shape: Option<f64>,
    stream: Stream,
    /// Remaining spans, the next one last, where arrivals are held to the named load; `None` for endless arrivals.
    spans: Option<Vec<Span>>,
}

/// A number of arrivals, and their mean gap. The gap from the last arrival to the end of the span counts too.
#[derive(Clone, Copy, Debug)]
struct Span {
    flows: u64,
    mean_gap_s: f64,
}

impl ArrivalProcess {
    /// Arrivals at a mean of `flows_per_s`.
    ///
    /// # Errors
    /// If the Pareto shape has no mean.
    pub fn new(law: &Arrivals, flows_per_s: f64, stream: Stream) -> Result<Self, Refused> {
        let pareto_shape = match law {
            Arrivals::Poisson => None,
            Arrivals::Pareto { shape } => Some(shape_with_mean("arrivals.shape", *shape)?),
        };
        Ok(Self { mean_gap_s: 1.0 / flows_per_s, pareto_shape, stream, spans: None })
    }

    /// Mean number of arrivals per second.
    #[must_use]
    pub fn flows_per_s(&self) -> f64 {
        1.0 / self.mean_gap_s
    }

    /// Time to the next arrival; [`Time::MAX`] after the last one.
    pub fn gap(&mut self) -> Time {
        let Some(mut spans) = self.spans.take() else {
            return Time::from_secs_f64(self.draw(self.mean_gap_s));
        };
        let mut gap_s = 0.0;
        let gap = loop {
            let Some(span) = spans.last_mut() else { break Time::MAX };
            gap_s += self.draw(span.mean_gap_s);
            if span.flows > 0 {
                span.flows -= 1;
                break Time::from_secs_f64(gap_s);
            }
            spans.pop();
        };
        self.spans = Some(spans);
        gap
    }

    fn draw(&mut self, mean_s: f64) -> f64 {
        match self.pareto_shape {
            None => self.stream.exponential(mean_s),
            Some(shape) => self.stream.pareto(mean_s, shape),
        }
    }

    /// Number of arrivals in `length_s` seconds, if they are not held to a load.
    fn within(&self, length_s: f64) -> u64 {
        let mut ahead = self.clone();
        let mut at_s = ahead.draw(self.mean_gap_s);
        let mut flows = 0;
        while at_s < length_s {
            flows += 1;
            at_s += ahead.draw(self.mean_gap_s);
        }
        flows
    }

    /// Sets the number of arrivals in each span (number, seconds). The times are those of a Poisson process, given its
    /// number of arrivals.
    fn exactly(&mut self, spans: &[(u64, f64)]) {
        let mut ahead = self.clone();
        let mut fitted: Vec<Span> = spans
            .iter()
            .map(|(flows, length_s)| {
                let drawn: f64 = (0..=*flows).map(|_| ahead.draw(1.0)).sum();
                Span { flows: *flows, mean_gap_s: length_s / drawn }
            })
            .collect();
        fitted.reverse();
        self.spans = Some(fitted);
    }
}

/// Relative deviation of the arriving load from the named load that is allowed.
const SLACK: f64 = 0.05;
/// Expected number of flows below which a span is not held to a load, because one flow may be a large part of it.
const LEAST_FLOWS: f64 = 100.0;
/// Limit on the number of flows drawn to reach the load, as a multiple of the typical number.
const MOST: f64 = 2.0;

/// Bytes of a transfer on the wire, with one header for each packet of `payload` bytes.
pub fn wire_bytes(size: u64, payload: u64, header: u64) -> f64 {
    size as f64 + header as f64 * size.div_ceil(payload) as f64
}

/// Holds the arriving load to the named one, both in the warm-up and after it. Without this, heavy-tailed sizes bring a
/// fifth less in most runs and twice as much in some. Flows are drawn until they bring `bytes_per_s` times a span's
/// length, to within half a mean flow. A flow that would exceed 1.05 of that is drawn again. Arrival times within the
/// span are random. A span with fewer than a hundred expected flows is not held; where both spans are that short, the
/// two together are held. A span is not held either if it takes twice as many flows as is typical of such sizes.
pub fn hold_to_load(
    arrivals: &mut ArrivalProcess,
    sizes: &mut SizeLaw,
    spans_s: [f64; 2],
    bytes_per_s: f64,
    packets: (u64, u64),
) {
    let mean = sizes.mean_wire_bytes(packets.0, packets.1);
    let enough = |length_s: &f64| length_s * bytes_per_s >= LEAST_FLOWS * mean;
    let whole = [spans_s[0] + spans_s[1]];
    let spans_s: &[f64] = if spans_s.iter().any(enough) { &spans_s } else { &whole };
    if !spans_s.iter().any(enough) {
        return;
    }
    let mut ahead = sizes.clone();
    let spans: Vec<_> = spans_s
        .iter()
        .map(|length_s| {
            let held = enough(length_s).then(|| ahead.hold(length_s * bytes_per_s, mean, packets)).flatten();
            let flows = held.unwrap_or_else(|| {
                let flows = arrivals.within(*length_s);
                (0..flows).for_each(|_| {
                    ahead.draw();
                });
                flows
            });
            (flows, *length_s)
        })
        .collect();
    sizes.again = ahead.again;
    arrivals.exactly(&spans);
}

/// Sizes of transfers.
#[derive(Clone, Debug)]
pub struct SizeLaw {
    kind: Kind,
    stream: Stream,
    /// Number of draws so far. `again` lists the draws to be skipped, in order ([`hold_to_load`]).
    drawn: u64,
    again: Vec<u64>,
    skipped: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    Fixed(f64),
    Uniform(f64, f64),
    Exponential(f64),
    Pareto(f64, f64),
    /// Points `(bytes, probability)`, linear between them.
    Empirical(Vec<(f64, f64)>),
    Mixture(&'static Mixture),
}

pub fn shape_with_mean(key: &'static str, shape: f64) -> Result<f64, Refused> {
    if shape.is_finite() && shape > 1.0 {
        Ok(shape)
    } else {
        Err((key, format!("is {shape}; it must be a number above 1, or the mean does not exist")))
    }
}

impl SizeLaw {
    /// The law that `sizes` names, drawing from `stream`.
    ///
    /// # Errors
    /// If parameters give no distribution, or a file is none.
    pub fn new(sizes: &Sizes, loaded: &Loaded, stream: Stream) -> Result<Self, Refused> {
        let above_zero = |key, v: f64| {
            if v > 0.0 { Ok(v) } else { Err((key, "is 0B; it must be larger".to_owned())) }
        };
        let kind = match sizes {
            Sizes::Fixed { size } => Kind::Fixed(above_zero("sizes.size", size.as_f64())?),
            Sizes::Uniform { min, max } if min > max => {
                return Err(("sizes.max", format!("is {max}; it must be at least min, {min}")));
            }
            Sizes::Uniform { min, max } => {
                Kind::Uniform(min.as_f64(), above_zero("sizes.max", max.as_f64())?)
            }
            Sizes::Exponential { mean } => Kind::Exponential(above_zero("sizes.mean", mean.as_f64())?),
            Sizes::Pareto { mean, shape } => Kind::Pareto(
                above_zero("sizes.mean", mean.as_f64())?,
                shape_with_mean("sizes.shape", *shape)?,
            ),
            Sizes::WebSearch => Kind::Mixture(&WEB_SEARCH),
            Sizes::Hadoop => Kind::Mixture(&HADOOP),
            Sizes::Storage => Kind::Mixture(&STORAGE),
            Sizes::Empirical { file } => {
                let text = loaded.files.get(file).map_or("", String::as_str);
                Kind::Empirical(
                    parse_cdf(text).map_err(|m| ("sizes.file", format!("\"{}\": {m}", file.display())))?,
                )
            }
        };
        Ok(Self { kind, stream, drawn: 0, again: Vec::new(), skipped: 0 })
    }

    /// Draws from `stream` from now on.
    pub fn draws_from(&mut self, stream: Stream) {
        self.stream = stream;
    }

    /// The next transfer's size in bytes, at least one.
    pub fn draw(&mut self) -> u64 {
        while self.again.get(self.skipped) == Some(&self.drawn) {
            self.skipped += 1;
            self.next();
        }
        self.next()
    }

    /// Draws flows that bring `target` bytes to a link, and records the draws that were too large. Returns the number
    /// of flows, or `None` without a change if there are too many.
    fn hold(&mut self, target: f64, mean: f64, (payload, header): (u64, u64)) -> Option<u64> {
        let most = MOST * target / mean * self.typical(target / mean);
        let mut ahead = self.clone();
        let (mut flows, mut sum) = (0, 0.0);
        while sum < target - mean / 2.0 {
            if ahead.drawn as f64 - self.drawn as f64 > most {
                return None;
            }
            let wire = wire_bytes(ahead.draw(), payload, header);
            if sum + wire > target * (1.0 + SLACK) {
                ahead.again.push(ahead.drawn - 1);
                ahead.skipped += 1;
            } else {
                flows += 1;
                sum += wire;
            }
        }
        *self = ahead;
        Some(flows)
    }

    /// Factor by which the number of flows that bring a load typically exceeds `flows`, the number of the mean size,
    /// plus a tenth. With heavy-tailed sizes, the part of the mean beyond the largest of n flows is missing. That flow
    /// is about n^(1/shape) times the smallest, so the missing part is n^(1/shape - 1) of the mean.
    #[must_use]
    pub fn typical(&self, flows: f64) -> f64 {
        match self.kind {
            Kind::Pareto(_, shape) => {
                (1.1 / (1.0 - libm::pow(flows.max(2.0), 1.0 / shape - 1.0))).clamp(1.0, 3.0)
            }
            _ => 1.0,
        }
    }

    fn next(&mut self) -> u64 {
        self.drawn += 1;
        let bytes = match &self.kind {
            Kind::Fixed(size) => *size,
            Kind::Uniform(min, max) => min + (max - min) * self.stream.uniform(),
            Kind::Exponential(mean) => self.stream.exponential(*mean),
            Kind::Pareto(mean, shape) => self.stream.pareto(*mean, *shape),
            Kind::Empirical(points) => quantile(points, self.stream.uniform()),
            Kind::Mixture(mixture) => mixture.draw(&mut self.stream),
        };
        (bytes + 0.5).max(1.0) as u64
    }

    /// Mean size on the wire, with one header for each packet of `payload` bytes. If sizes vary, the last packet is
    /// half full on average.
    #[must_use]
    pub fn mean_wire_bytes(&self, payload: u64, header: u64) -> f64 {
        let packets = self.mean_bytes() / payload as f64;
        let packets = match &self.kind {
            Kind::Fixed(_) => libm::ceil(packets),
            _ => packets + 0.5,
        };
        self.mean_bytes() + header as f64 * packets.max(1.0)
    }

    /// Mean size, bytes.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        match &self.kind {
            Kind::Fixed(size) => *size,
            Kind::Uniform(min, max) => f64::midpoint(*min, *max),
            Kind::Exponential(mean) | Kind::Pareto(mean, _) => *mean,
            Kind::Mixture(mixture) => mixture.mean_bytes(),
            Kind::Empirical(points) => {
                let first = points[0].0 * points[0].1;
                first
                    + points
                        .windows(2)
                        .map(|w| f64::midpoint(w[0].0, w[1].0) * (w[1].1 - w[0].1))
                        .sum::<f64>()
            }
        }
    }
}

fn quantile(points: &[(f64, f64)], u: f64) -> f64 {
    let after = points.partition_point(|(_, p)| *p <= u).min(points.len() - 1);
    if after == 0 {
        return points[0].0;
    }
    let ((x0, p0), (x1, p1)) = (points[after - 1], points[after]);
    if p1 > p0 { x0 + (x1 - x0) * (u - p0) / (p1 - p0) } else { x1 }
}

/// Reads lines `bytes percent`, both rising, the last at 100.
fn parse_cdf(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let bad = || format!("line {}: \"{}\" is not \"bytes percent\"", n + 1, line.trim());
        let mut fields = line.split_whitespace().map(str::parse::<f64>);
        let (Some(Ok(bytes)), Some(Ok(percent)), None) = (fields.next(), fields.next(), fields.next()) else {
            return Err(bad());
        };
        let p = percent / 100.0;
        if !(bytes.is_finite() && bytes >= 0.0 && (0.0..=1.0).contains(&p)) {
            return Err(bad());
        }
        if points.last().is_some_and(|(x, q)| bytes < *x || p < *q) {
            return Err(format!("line {}: sizes and percentages must not fall", n + 1));
        }
        points.push((bytes, p));
    }
    match points.last() {
        None => Err("is empty; lines \"bytes percent\" are expected, the last at 100".to_owned()),
        Some((_, p)) if *p < 1.0 => Err(format!("ends at {}%; the last line must be at 100", p * 100.0)),
        Some((bytes, _)) if *bytes <= 0.0 => Err("has no size above 0".to_owned()),
        Some(_) => Ok(points),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn loaded() -> Loaded {
        let text = r#"
            duration = "1s"
            [dumbbell]
            rate = "1Mbps"
            rtt = "10ms"
            [[flows]]
            name = "a"
            law = "sack"
        "#;
        crate::load(text, crate::Format::Toml, "test", &[], Path::new(".")).expect("scenario")
    }

    #[test]
    fn empirical_draws_follow_the_file() {
        let mut loaded = loaded();
        let path = std::path::PathBuf::from("cdf");
        loaded.files.insert(path.clone(), "0 0\n1000 50\n3000 100\n".to_owned());
        let mut law =
            SizeLaw::new(&Sizes::Empirical { file: path }, &loaded, Stream::new(3, "sizes")).expect("law");
        assert!((law.mean_bytes() - 1250.0).abs() < 1e-9);
        let n = 200_000;
        let draws: Vec<u64> = (0..n).map(|_| law.draw()).collect();
        // Standard deviation 800 bytes, hence a standard error of 1.8; five of them.
        let mean = draws.iter().sum::<u64>() as f64 / f64::from(n);
        assert!((mean - 1250.0).abs() < 9.0, "{mean}");
        // Binomial with p = 0.5: standard error 0.0011; five of them.
        let small = draws.iter().filter(|d| **d <= 1000).count() as f64 / f64::from(n);
        assert!((small - 0.5).abs() < 0.0056, "{small}");
    }

    const PACKETS: (u64, u64) = (960, 40);

    fn pareto(shape: f64, seed: u64) -> (ArrivalProcess, SizeLaw) {
        let stream = |name| Stream::new(seed, name);
        let sizes = Sizes::Pareto { mean: flowstamp_laws::units::Bytes::new(25_000), shape };
        (
            ArrivalProcess::new(&Arrivals::Poisson, 1000.0, stream("arrival")).expect("arrivals"),
            SizeLaw::new(&sizes, &loaded(), stream("size")).expect("sizes"),
        )
    }

    /// Arrival times up to `until_s` and bytes on the wire.
    fn arrived((mut arrivals, mut sizes): (ArrivalProcess, SizeLaw), until_s: f64) -> Vec<(f64, f64)> {
        let mut now = 0.0;
        std::iter::from_fn(|| {
            now += arrivals.gap().as_secs_f64();
            let size = sizes.draw();
            (now < until_s).then(|| (now, (size + PACKETS.1 * size.div_ceil(PACKETS.0)) as f64))
        })
        .collect()
    }

    fn sum(flows: &[(f64, f64)], from_s: f64, to_s: f64) -> f64 {
        flows.iter().filter(|(at, _)| (from_s..to_s).contains(at)).map(|(_, bytes)| bytes).sum()
    }

    proptest::proptest! {
        /// The load holds for any tail, in the warm-up and after it. Half a mean flow of at least a hundred is 0.5%,
        /// below every bound here.
        #[test]
        fn what_arrives_is_the_load_named(
            shape in 1.1f64..3.0, seed: u64, warm_s in 0.01f64..20.0, long_s in 1.0f64..40.0, load in 3e6f64..3e7
        ) {
            let (mut arrivals, mut sizes) = pareto(shape, seed);
            let enough = LEAST_FLOWS * sizes.mean_wire_bytes(PACKETS.0, PACKETS.1);
            hold_to_load(&mut arrivals, &mut sizes, [warm_s, long_s], load, PACKETS);
            let flows = arrived((arrivals, sizes), warm_s + long_s + 1.0);
            for (from_s, to_s) in [(0.0, warm_s), (warm_s, warm_s + long_s)] {
                if load * (to_s - from_s) < enough {
                    continue; // a short warm-up is as it comes
                }
                let part = sum(&flows, from_s, to_s) / (load * (to_s - from_s));
                proptest::prop_assert!((0.99..=1.0501).contains(&part), "{part} of the load from {from_s} to {to_s}");
            }
            proptest::prop_assert!(flows.last().is_some_and(|(at, _)| *at < warm_s + long_s), "and nothing after it");
        }
    }

    /// Arrival times are those of a Poisson process. Half of n flows come in the first half of the time, with a
    /// standard deviation of sqrt(n) / 2.
    #[test]
    fn flows_held_to_a_load_come_at_random_times() {
        let (mut arrivals, mut sizes) = pareto(1.2, 7);
        hold_to_load(&mut arrivals, &mut sizes, [0.0, 40.0], 2.5e7, PACKETS);
        let flows = arrived((arrivals, sizes), 41.0);
        let n = flows.len() as f64;
        let first = flows.iter().filter(|(at, _)| *at < 20.0).count() as f64;
        assert!((first - n / 2.0).abs() < 5.0 * n.sqrt() / 2.0, "{first} of {n}");
        assert!((first - n / 2.0).abs() > 0.5, "and not evenly");
    }

    /// A few flows arrive at their mean rate, whatever load they bring.
    #[test]
    fn few_flows_are_left_alone() {
        let (mut arrivals, mut sizes) = pareto(1.2, 7);
        hold_to_load(&mut arrivals, &mut sizes, [0.0, 0.05], 2.5e7, PACKETS);
        assert_eq!(arrived((arrivals, sizes), 1.0), arrived(pareto(1.2, 7), 1.0));
    }

    /// Sizes are nearly always small and rarely huge. A load that would take millions of flows is not held.
    #[test]
    fn what_takes_too_many_flows_is_left_alone() {
        let mut loaded = loaded();
        let path = std::path::PathBuf::from("cdf");
        loaded.files.insert(path.clone(), "1000 99.9999\n20000000000000000 100\n".to_owned());
        let of = || {
            let law = SizeLaw::new(&Sizes::Empirical { file: path.clone() }, &loaded, Stream::new(3, "size"));
            let arrivals = ArrivalProcess::new(&Arrivals::Poisson, 1.0, Stream::new(3, "arrival"));
            (arrivals.expect("arrivals"), law.expect("law"))
        };
        let (mut arrivals, mut sizes) = of();
        hold_to_load(&mut arrivals, &mut sizes, [0.0, 200.0], 1e10, PACKETS);
        let (held, plain) = (arrived((arrivals, sizes), 200.0), arrived(of(), 200.0));
        assert_eq!(held.len(), plain.len(), "as many as their rate says");
    }

    #[test]
    fn bad_files_are_refused_with_their_line() {
        for (text, word) in [
            ("", "empty"),
            ("0 0\n10 50\n", "ends at 50%"),
            ("0 0\n10 x\n", "line 2"),
            ("10 50\n5 100\n", "line 2"),
            ("0 100\n", "no size"),
        ] {
            let error = parse_cdf(text).expect_err(text);
            assert!(error.contains(word), "{error}");
        }
    }
}
