//! When web flows arrive and how large they are.

use crate::random::Stream;
use crate::scenario::{Arrivals, Loaded, Sizes};
use flowstamp_laws::units::Time;

/// A refused parameter: its key below the group's `web`, and why.
type Refused = (&'static str, String);

/// Instants of flow arrivals.
#[derive(Clone, Debug)]
pub struct ArrivalProcess {
    mean_gap_s: f64,
    /// `None` for Poisson.
    pareto_shape: Option<f64>,
    stream: Stream,
}

impl ArrivalProcess {
    /// Arrivals at a mean of `flows_per_s`.
    ///
    /// # Errors
    /// A Pareto shape that has no mean.
    pub fn new(law: &Arrivals, flows_per_s: f64, stream: Stream) -> Result<Self, Refused> {
        let pareto_shape = match law {
            Arrivals::Poisson => None,
            Arrivals::Pareto { shape } => Some(shape_with_mean("arrivals.shape", *shape)?),
        };
        Ok(Self { mean_gap_s: 1.0 / flows_per_s, pareto_shape, stream })
    }

    /// Mean number of arrivals per second.
    #[must_use]
    pub fn flows_per_s(&self) -> f64 {
        1.0 / self.mean_gap_s
    }

    /// The time from one arrival to the next.
    pub fn gap(&mut self) -> Time {
        Time::from_secs_f64(match self.pareto_shape {
            None => self.stream.exponential(self.mean_gap_s),
            Some(shape) => self.stream.pareto(self.mean_gap_s, shape),
        })
    }
}

/// Sizes of transfers.
#[derive(Clone, Debug)]
pub struct SizeLaw {
    kind: Kind,
    stream: Stream,
}

#[derive(Clone, Debug)]
enum Kind {
    Fixed(f64),
    Uniform(f64, f64),
    Exponential(f64),
    Pareto(f64, f64),
    /// Points `(bytes, probability)`, linear between them.
    Empirical(Vec<(f64, f64)>),
}

fn shape_with_mean(key: &'static str, shape: f64) -> Result<f64, Refused> {
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
    /// Parameters without a distribution, or a file that is none.
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
            Sizes::Empirical { file } => {
                let text = loaded.files.get(file).map_or("", String::as_str);
                Kind::Empirical(
                    parse_cdf(text).map_err(|m| ("sizes.file", format!("\"{}\": {m}", file.display())))?,
                )
            }
        };
        Ok(Self { kind, stream })
    }

    /// The next transfer's size in bytes, at least one.
    pub fn draw(&mut self) -> u64 {
        let bytes = match &self.kind {
            Kind::Fixed(size) => *size,
            Kind::Uniform(min, max) => min + (max - min) * self.stream.uniform(),
            Kind::Exponential(mean) => self.stream.exponential(*mean),
            Kind::Pareto(mean, shape) => self.stream.pareto(*mean, *shape),
            Kind::Empirical(points) => quantile(points, self.stream.uniform()),
        };
        (bytes + 0.5).max(1.0) as u64
    }

    /// The mean size with its headers, one to each packet of `payload` bytes. Of sizes that vary, the last packet is half
    /// full on average.
    #[must_use]
    pub fn mean_wire_bytes(&self, payload: u64, header: u64) -> f64 {
        let packets = self.mean_bytes() / payload as f64;
        let packets = match &self.kind {
            Kind::Fixed(_) => libm::ceil(packets),
            _ => packets + 0.5,
        };
        self.mean_bytes() + header as f64 * packets.max(1.0)
    }

    /// The mean size in bytes.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        match &self.kind {
            Kind::Fixed(size) => *size,
            Kind::Uniform(min, max) => f64::midpoint(*min, *max),
            Kind::Exponential(mean) | Kind::Pareto(mean, _) => *mean,
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
