//! Capacities and buffers of links.

use crate::ScenarioError;
use flowstamp_laws::medium::{Capacity, Trace};
use flowstamp_laws::units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Capacity of a link: a rate, or a rate that varies.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LinkRate {
    /// A constant rate.
    Constant(Rate),
    /// A rate that follows a list or a recording.
    Varying(VaryingRate),
}

/// A rate that varies; exactly one of `steps` and `trace` is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaryingRate {
    /// List of pairs of a time and the rate from that time on. The times rise, and the first is 0s.
    pub steps: Option<Vec<(Time, Rate)>>,
    /// File in Mahimahi's format. Each line is the time, in whole milliseconds from the start, at which 1500 bytes may be
    /// delivered. The trace repeats when it ends. A relative path starts at the scenario's folder.
    pub trace: Option<PathBuf>,
    /// With `trace`: router laws are told the mean capacity of the last period of this length; at least 1ms.
    #[serde(default = "capacity_window")]
    pub capacity_window: Time,
    /// Whether router laws are told the capacity. Set it to false for a medium of unknown capacity. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub known: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(super) fn is_true(known: &bool) -> bool {
    *known
}

impl LinkRate {
    /// Whether router laws are told the capacity.
    #[must_use]
    pub fn known(&self) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Varying(v) => v.known,
        }
    }

    /// The capacity of a link with this rate, in a run of `duration`. `text` reads the file of a trace. Errors call the
    /// rate `key`.
    ///
    /// # Errors
    ///
    /// The key, its value, and a value that would be right.
    pub fn capacity(
        &self,
        key: &str,
        duration: Time,
        text: impl FnOnce(&Path) -> String,
    ) -> Result<Capacity, ScenarioError> {
        let error = |key: String, message: String| Err(ScenarioError::new(key, message));
        let varying = match self {
            Self::Constant(rate) => return check_rate(key, *rate).map(|()| Capacity::Constant(*rate)),
            Self::Varying(varying) => varying,
        };
        match (&varying.steps, &varying.trace) {
            (Some(steps), None) => match wrong_steps(steps) {
                Some(message) => error(format!("{key}.steps"), message),
                None => Ok(Capacity::Steps(steps.clone())),
            },
            (None, Some(path)) => {
                if varying.capacity_window < Time::from_millis(1) {
                    let message = format!("is {}; it must be 1ms or longer", varying.capacity_window);
                    return error(format!("{key}.capacity_window"), message);
                }
                let key = format!("{key}.trace");
                let trace = match parse_trace(&text(path)) {
                    Ok(trace) => trace,
                    Err(message) => return error(key, format!("\"{}\": {message}", path.display())),
                };
                if trace.capacity_bytes(Time::ZERO, duration) == 0.0 {
                    let message = format!("\"{}\" has nothing before duration, {duration}", path.display());
                    return error(key, message);
                }
                Ok(Capacity::Trace(Box::new(trace), varying.capacity_window))
            }
            _ => error(key.to_owned(), "needs exactly one of `steps` and `trace`".to_owned()),
        }
    }
}

/// The fastest link: on a faster one an ack would take less than a picosecond, the engine's unit of time.
const FASTEST: Rate = Rate::from_gbps(100_000.0);

/// Refuses a rate that no link can have.
///
/// # Errors
///
/// The key, its value, and a value that would be right.
pub fn check_rate(key: &str, rate: Rate) -> Result<(), ScenarioError> {
    if is_plausible(rate) {
        return Ok(());
    }
    Err(ScenarioError::new(key, format!("is {rate}; a rate is 1bps to {FASTEST}")))
}

fn is_plausible(rate: Rate) -> bool {
    (1.0..=FASTEST.bps()).contains(&rate.bps())
}

/// The message for an invalid list of steps; `None` if it is valid.
fn wrong_steps(steps: &[(Time, Rate)]) -> Option<String> {
    if steps.first().is_none_or(|(t, _)| *t != Time::ZERO) {
        return Some("must start with an entry at \"0s\"".to_owned());
    }
    if steps.windows(2).any(|w| w[1].0 <= w[0].0) {
        return Some("must be in rising order of time".to_owned());
    }
    if let Some((at, rate)) = steps.iter().find(|(_, r)| r.bps() > 0.0 && !is_plausible(*r)) {
        return Some(format!("has {rate} at {at}; a rate is 0bps, or 1bps to {FASTEST}"));
    }
    let ends_idle = steps.last().is_some_and(|(_, r)| r.bps() == 0.0);
    ends_idle.then(|| "ends with a rate of zero; the last rate must be above 0bps".to_owned())
}

/// Reads a trace in Mahimahi's format: milliseconds, one per line, never falling.
fn parse_trace(text: &str) -> Result<Trace, String> {
    let mut lines = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let ms: u64 = line.trim().parse().map_err(|_| {
            format!("line {}: \"{}\" is not a whole number of milliseconds", n + 1, line.trim())
        })?;
        if lines.last().is_some_and(|last| ms < *last) {
            return Err(format!("line {}: {ms} is before the line above; times must not fall", n + 1));
        }
        lines.push(ms);
    }
    match lines.last() {
        None => Err("has no lines; one number of milliseconds is expected per line".to_owned()),
        Some(0) => Err("ends at 0 ms; the last time is the period and must be later".to_owned()),
        Some(_) => Ok(Trace::new(&lines)),
    }
}

fn capacity_window() -> Time {
    Time::from_millis(100)
}

impl<'de> Deserialize<'de> for LinkRate {
    fn deserialize<D: de::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> de::Visitor<'de> for V {
            type Value = LinkRate;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate with its unit such as \"45Mbps\", or a table with `steps` or `trace`")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<LinkRate, E> {
                v.parse().map(LinkRate::Constant).map_err(E::custom)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<LinkRate, A::Error> {
                VaryingRate::deserialize(de::value::MapAccessDeserializer::new(map)).map(LinkRate::Varying)
            }
        }
        d.deserialize_any(V)
    }
}

/// Room for waiting packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// In bandwidth-delay products: `1BDP`.
    Bdp(f64),
    /// In bytes: `64kB`.
    Bytes(Bytes),
    /// In packets of any size: `100pkt`.
    Packets(u32),
    /// In time at the link's capacity: `50ms`.
    Time(Time),
}

impl Default for Buffer {
    fn default() -> Self {
        Self::Bdp(1.0) // Katabi 2002, section 5.1
    }
}

impl FromStr for Buffer {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let t = text.trim();
        let number = |suffix: &str| t.strip_suffix(suffix).map(|n| n.trim_end().parse::<f64>());
        if let Some(v) = number("BDP") {
            return match v {
                Ok(v) if v.is_finite() && v >= 0.0 => Ok(Self::Bdp(v)),
                _ => Err(format!("\"{text}\" is not a buffer; write for example \"1BDP\"")),
            };
        }
        if let Some(v) = t.strip_suffix("pkt").map(|n| n.trim_end().parse::<u32>()) {
            return v.map(Self::Packets).map_err(|_| {
                format!("\"{text}\" is not a whole number of packets; write for example \"100pkt\"")
            });
        }
        if let Ok(v) = t.parse::<Time>() {
            return Ok(Self::Time(v));
        }
        t.parse::<Bytes>().map(Self::Bytes).map_err(|_| {
            format!("\"{text}\" is not a buffer; write \"1BDP\", \"100pkt\", \"64kB\" or \"50ms\"")
        })
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bdp(v) => write!(f, "{v}BDP"),
            Self::Bytes(v) => v.fmt(f),
            Self::Packets(v) => write!(f, "{v}pkt"),
            Self::Time(v) => v.fmt(f),
        }
    }
}

impl Serialize for Buffer {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Buffer {
    fn deserialize<D: de::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl de::Visitor<'_> for V {
            type Value = Buffer;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a buffer such as \"1BDP\", \"100pkt\", \"64kB\" or \"50ms\"")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Buffer, E> {
                v.parse().map_err(E::custom)
            }
        }
        d.deserialize_str(V)
    }
}
impl JsonSchema for Buffer {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Buffer")
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "room for waiting packets: bandwidth-delay products, packets, bytes or time",
            "examples": ["1BDP", "100pkt", "64kB", "50ms"],
        })
    }
}
