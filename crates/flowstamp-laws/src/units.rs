//! Time, Rate, Bytes and Ratio: distinct types for quantities, each with one textual form.
//!
//! [`Time`], a count of picoseconds, serves as instant and as duration. Nanoseconds would round every transmission:
//! the laws are tested up to 400 Gb/s, where a 40-byte ack lasts 0.8 ns. A `u64` of picoseconds still spans 213 days.
//!
//! Parsing is strict: `45Mbps`, `40ms`, `1.5KiB`, `2%`. Prefixes of bits are decimal. A number without a unit is
//! refused. `mbps` could mean millibits or megabytes. It is refused, too, with a hint at the right unit.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::str::FromStr;

/// Picoseconds in a second.
pub const PS_PER_SEC: u64 = 1_000_000_000_000;

/// An instant since the start of a run, or a duration, in picoseconds. Range 0 to 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Time(u64);

impl Time {
    /// The start of a run; an empty duration.
    pub const ZERO: Self = Self(0);
    /// An instant that never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// Converts from picoseconds.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }
    /// Converts from nanoseconds, saturating at [`Time::MAX`].
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000))
    }
    /// Converts from microseconds, saturating at [`Time::MAX`].
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000_000))
    }
    /// Converts from milliseconds, saturating at [`Time::MAX`].
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000_000))
    }
    /// Converts from whole seconds, saturating at [`Time::MAX`].
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(PS_PER_SEC))
    }
    /// Converts from seconds, rounded to the nearest picosecond. Negative and NaN give zero, too large gives [`Time::MAX`].
    #[must_use]
    pub fn from_secs_f64(s: f64) -> Self {
        // `as` saturates and maps NaN to 0, as the doc comment promises.
        Self((s * PS_PER_SEC as f64 + 0.5) as u64)
    }
    /// Returns the value in picoseconds.
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Returns the value in seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// `self + other`, at most [`Time::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// `self - other`, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// This duration scaled by a non-negative factor.
    #[must_use]
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }
}

impl Add for Time {
    type Output = Self;
    /// Saturates at [`Time::MAX`], which means never: an overflow must not wrap to the start.
    fn add(self, o: Self) -> Self {
        self.saturating_add(o)
    }
}
impl AddAssign for Time {
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}
impl Sub for Time {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        Self(self.0 - o.0)
    }
}
impl SubAssign for Time {
    fn sub_assign(&mut self, o: Self) {
        self.0 -= o.0;
    }
}
impl Mul<u64> for Time {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}
impl Div<u64> for Time {
    type Output = Self;
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}

/// A rate in bits per second: finite and not negative.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
pub struct Rate(f64);

impl Rate {
    /// No capacity.
    pub const ZERO: Self = Self(0.0);

    /// Converts from bits per second. Negative and NaN give zero, infinity the largest finite rate.
    #[must_use]
    pub const fn from_bps(bps: f64) -> Self {
        if bps > 0.0 { Self(bps.min(f64::MAX)) } else { Self(0.0) }
    }
    /// Converts from megabits (10^6 bits) per second.
    #[must_use]
    pub const fn from_mbps(mbps: f64) -> Self {
        Self::from_bps(mbps * 1e6)
    }
    /// Converts from gigabits (10^9 bits) per second.
    #[must_use]
    pub const fn from_gbps(gbps: f64) -> Self {
        Self::from_bps(gbps * 1e9)
    }
    /// Converts from bytes per second.
    #[must_use]
    pub const fn from_bytes_per_sec(v: f64) -> Self {
        Self::from_bps(v * 8.0)
    }
    /// Returns the value in bits per second.
    #[must_use]
    pub const fn bps(self) -> f64 {
        self.0
    }
    /// Returns the value in bytes per second.
    #[must_use]
    pub const fn bytes_per_sec(self) -> f64 {
        self.0 / 8.0
    }
    /// Transmission time of `size` at this rate; [`Time::MAX`] at rate zero.
    #[must_use]
    pub fn tx_time(self, size: Bytes) -> Time {
        if self.0 > 0.0 {
            Time::from_secs_f64(size.as_f64() * 8.0 / self.0)
        } else if size.get() == 0 {
            Time::ZERO
        } else {
            Time::MAX
        }
    }
    /// Bytes carried in `t` at this rate (a real number: a bandwidth-delay product).
    #[must_use]
    pub fn bytes_in(self, t: Time) -> f64 {
        self.bytes_per_sec() * t.as_secs_f64()
    }
}

impl Mul<f64> for Rate {
    type Output = Self;
    fn mul(self, f: f64) -> Self {
        Self::from_bps(self.0 * f)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// Creates the value from a count of bytes.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// The count.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The count as a real number.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Self(self.0 + o.0)
    }
}

/// An actual or wanted queue length: in packets of any size, or in bytes. Finite and not negative.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum QueueLength {
    /// Packets; an average, so that fractions make sense.
    Packets(f64),
    /// Bytes.
    Bytes(Bytes),
}

impl QueueLength {
    /// Whether the length is above zero.
    #[must_use]
    pub fn is_positive(&self) -> bool {
        match self {
            Self::Packets(n) => *n > 0.0,
            Self::Bytes(n) => n.get() > 0,
        }
    }
}

/// A dimensionless share or factor; text may be `0.25` or `25%`.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
pub struct Ratio(f64);

impl Ratio {
    /// Creates the value from a plain factor. NaN gives zero.
    #[must_use]
    pub const fn new(v: f64) -> Self {
        if v.is_nan() { Self(0.0) } else { Self(v) }
    }
    /// The factor.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Why a quantity's text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseUnitError {
    /// No number at the start, or one that is not finite.
    #[error("\"{0}\" is not a number with a unit; write for example \"{1}\"")]
    NotANumber(String, &'static str),
    /// A number without a unit.
    #[error("\"{0}\" has no unit; write for example \"{1}\"")]
    NoUnit(String, &'static str),
    /// A unit that is not known for this quantity.
    #[error("\"{0}\" has the unknown unit \"{1}\"; use one of {2}")]
    UnknownUnit(String, String, &'static str),
    /// A unit in the wrong case, which would mean something else.
    #[error("\"{0}\" has the unit \"{1}\"; did you mean \"{2}\"?")]
    DidYouMean(String, String, &'static str),
    /// Below zero.
    #[error("\"{0}\" is negative; it must be at least 0")]
    Negative(String),
    /// Not a whole number of bytes, or too large to count.
    #[error("\"{0}\" cannot be held exactly: {1}")]
    Lossy(String, &'static str),
}

/// Splits `"1.5KiB"` into its number and unit.
fn split<'a>(text: &'a str, example: &'static str) -> Result<(f64, &'a str), ParseUnitError> {
    let t = text.trim();
    // An exponent's `e` belongs to the number only if a digit or sign follows it.
    let b = t.as_bytes();
    let mut end = 0;
    while end < b.len() {
        let c = b[end];
        let exponent = (c == b'e' || c == b'E')
            && end > 0
            && b.get(end + 1).is_some_and(|n| n.is_ascii_digit() || *n == b'-' || *n == b'+');
        if c.is_ascii_digit() || c == b'.' || c == b'-' || c == b'+' || exponent {
            end += 1;
        } else {
            break;
        }
    }
    let value: f64 = t[..end].parse().map_err(|_| ParseUnitError::NotANumber(text.to_owned(), example))?;
    if !value.is_finite() {
        return Err(ParseUnitError::NotANumber(text.to_owned(), example));
    }
    if value < 0.0 {
        return Err(ParseUnitError::Negative(text.to_owned()));
    }
    Ok((value, t[end..].trim_start()))
}

fn lookup(
    text: &str,
    units: &'static [(&'static str, f64)],
    example: &'static str,
    names: &'static str,
) -> Result<f64, ParseUnitError> {
    let (value, unit) = split(text, example)?;
    if let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) {
        return Ok(value * factor);
    }
    if unit.is_empty() {
        return Err(ParseUnitError::NoUnit(text.to_owned(), example));
    }
    Err(match units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        Some((name, _)) => ParseUnitError::DidYouMean(text.to_owned(), unit.to_owned(), name),
        None => ParseUnitError::UnknownUnit(text.to_owned(), unit.to_owned(), names),
    })
}

const TIME_UNITS: &[(&str, f64)] =
    &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12), ("min", 60e12), ("h", 3600e12)];
const RATE_UNITS: &[(&str, f64)] = &[
    ("Mbps", 1e6),
    ("kbps", 1e3),
    ("Gbps", 1e9),
    ("bps", 1.0),
    ("Tbps", 1e12),
    ("Mb/s", 1e6),
    ("kb/s", 1e3),
    ("Gb/s", 1e9),
    ("b/s", 1.0),
    ("Tb/s", 1e12),
];
const BYTE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

impl FromStr for Time {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let ps = lookup(text, TIME_UNITS, "40ms", "ps, ns, us, ms, s, min, h")?;
        if ps > 0.0 && ps < 0.5 {
            return Err(ParseUnitError::Lossy(text.to_owned(), "times are whole picoseconds"));
        }
        if ps >= u64::MAX as f64 {
            return Err(ParseUnitError::Lossy(text.to_owned(), "times end at 213 days"));
        }
        Ok(Self((ps + 0.5) as u64))
    }
}
impl FromStr for Rate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        lookup(text, RATE_UNITS, "45Mbps", "bps, kbps, Mbps, Gbps, Tbps").map(Self::from_bps)
    }
}
impl FromStr for Bytes {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let v = lookup(text, BYTE_UNITS, "1500B", "B, kB, MB, GB, KiB, MiB, GiB")?;
        // A float product such as 1.1 * 1e3 may miss the whole number by its last bit.
        if (v - v.round()).abs() > v * 1e-12 {
            return Err(ParseUnitError::Lossy(text.to_owned(), "a size is a whole number of bytes"));
        }
        if v > (1u64 << 53) as f64 {
            return Err(ParseUnitError::Lossy(text.to_owned(), "sizes end at 2^53 bytes"));
        }
        Ok(Self(v.round() as u64))
    }
}
impl FromStr for QueueLength {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        match split(text, "3pkt")? {
            (packets, "pkt") => Ok(Self::Packets(packets)),
            (_, unit) if BYTE_UNITS.iter().any(|(name, _)| *name == unit) => text.parse().map(Self::Bytes),
            (_, "") => Err(ParseUnitError::NoUnit(text.to_owned(), "3pkt")),
            (_, unit) => Err(ParseUnitError::UnknownUnit(
                text.to_owned(),
                unit.to_owned(),
                "pkt, B, kB, MB, GB, KiB, MiB, GiB",
            )),
        }
    }
}
impl FromStr for Ratio {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        match split(text, "0.25")? {
            (v, "") => Ok(Self(v)),
            (v, "%") => Ok(Self(v / 100.0)),
            (_, unit) => Err(ParseUnitError::UnknownUnit(text.to_owned(), unit.to_owned(), "% or nothing")),
        }
    }
}

/// Writes `value` in the largest unit that gives a number of at least one and parses back to the same bits. 8.3 times
/// 10^9 is not 8300 times 10^6.
fn show(f: &mut fmt::Formatter<'_>, value: f64, units: &[(&str, f64)]) -> fmt::Result {
    let (name, factor) = units
        .iter()
        .filter(|(_, factor)| value >= *factor && value / factor * factor == value)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .or_else(|| units.iter().min_by(|a, b| a.1.total_cmp(&b.1)))
        .copied()
        .unwrap_or(("", 1.0));
    write!(f, "{}{name}", value / factor)
}

/// Writes `value` as a whole number of the largest unit that divides it, so that the text parses back to the same.
fn show_exact(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, f64)]) -> fmt::Result {
    let divides = |factor: f64| value.is_multiple_of(factor as u64);
    let (name, factor) = units
        .iter()
        .filter(|(_, factor)| *factor <= 1.0 || (value > 0 && divides(*factor)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .copied()
        .unwrap_or(("", 1.0));
    write!(f, "{}{name}", value / factor as u64)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        // Minutes and hours are accepted as input, but not written.
        show_exact(f, self.0, &TIME_UNITS[..5])
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `Mb/s` is accepted as input, but not written.
        show(f, self.0, &RATE_UNITS[..5])
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_exact(f, self.0, &BYTE_UNITS[..4])
    }
}
impl fmt::Display for QueueLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(n) => write!(f, "{n}pkt"),
            Self::Bytes(n) => n.fmt(f),
        }
    }
}
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

macro_rules! textual {
    ($type:ident, $what:literal, $example:literal, $pattern:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl de::Visitor<'_> for V {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!($what, " with its unit, such as \"", $example, "\""))
                    }
                    fn visit_str<E: de::Error>(self, v: &str) -> Result<$type, E> {
                        v.parse().map_err(E::custom)
                    }
                }
                d.deserialize_str(V)
            }
        }
        impl schemars::JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($type))
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": concat!($what, " with its unit"),
                    "pattern": $pattern,
                    "examples": [$example],
                })
            }
        }
    };
}
textual!(Time, "a time", "40ms", r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*(ps|ns|us|ms|s|min|h)\s*$");
textual!(Rate, "a rate", "45Mbps", r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*[kMGT]?(bps|b/s)\s*$");
textual!(Bytes, "a size", "1500B", r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*(B|kB|MB|GB|KiB|MiB|GiB)\s*$");
textual!(
    QueueLength,
    "a length of queue",
    "3pkt",
    r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*(pkt|B|kB|MB|GB|KiB|MiB|GiB)\s*$"
);

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.0)
    }
}
impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl de::Visitor<'_> for V {
            type Value = Ratio;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a factor of at least 0 such as 0.25, or \"25%\"")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Ratio, E> {
                v.parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Ratio, E> {
                if v.is_finite() && v >= 0.0 {
                    Ok(Ratio(v))
                } else {
                    Err(E::custom(format_args!("{v} is not a factor of at least 0")))
                }
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Ratio, E> {
                self.visit_f64(v as f64)
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Ratio, E> {
                self.visit_f64(v as f64)
            }
        }
        d.deserialize_any(V)
    }
}
impl schemars::JsonSchema for Ratio {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Ratio")
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "a factor of at least 0, or a percentage",
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "^\\s*[0-9.]+\\s*%?\\s*$"}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parses_what_users_write() {
        assert_eq!("45Mbps".parse(), Ok(Rate::from_mbps(45.0)));
        assert_eq!("45 Mb/s".parse(), Ok(Rate::from_mbps(45.0)));
        assert_eq!(Rate::from_mbps(45.0).to_string(), "45Mbps");
        assert_eq!("1.5 KiB".parse(), Ok(Bytes::new(1536)));
        assert_eq!("40ms".parse(), Ok(Time::from_millis(40)));
        assert_eq!("1e3us".parse(), Ok(Time::from_millis(1)));
        assert_eq!("25%".parse(), Ok(Ratio::new(0.25)));
    }

    #[test]
    fn refuses_what_could_mean_two_things() {
        for (text, hint) in [
            ("45mbps", "did you mean \"Mbps\""),
            ("5MB/s", "did you mean \"Mb/s\""),
            ("45", "has no unit"),
            ("45furlongs", "unknown unit"),
            ("-3Mbps", "negative"),
            ("fast", "not a number"),
        ] {
            let error = text.parse::<Rate>().expect_err(text).to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
        assert!(matches!("1.5B".parse::<Bytes>(), Err(ParseUnitError::Lossy(..))));
        assert!(matches!("9e9h".parse::<Time>(), Err(ParseUnitError::Lossy(..))));
    }

    proptest! {
        #[test]
        fn text_round_trips(ps in 0u64..1 << 52, bytes in 0u64..1 << 52, bps in 1.0..1e15f64, packets in 0.0..1e9f64) {
            for length in [QueueLength::Packets(packets), QueueLength::Bytes(Bytes::new(bytes))] {
                prop_assert_eq!(length.to_string().parse(), Ok(length));
            }
            let t: Time = Time::from_ps(ps).to_string().parse().expect("time");
            prop_assert_eq!(t.as_ps(), ps);
            prop_assert_eq!(Bytes::new(bytes).to_string().parse(), Ok(Bytes::new(bytes)));
            let r: Rate = Rate::from_bps(bps).to_string().parse().expect("rate");
            prop_assert_eq!(r, Rate::from_bps(bps));
        }

        #[test]
        fn rates_as_users_write_them_round_trip(tenths in 1u32..100_000, unit in prop::sample::select(RATE_UNITS)) {
            let rate: Rate = format!("{}{}", f64::from(tenths) / 10.0, unit.0).parse().expect("rate");
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn parsing_never_panics(text in "\\PC*") {
            let _ = text.parse::<Time>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Ratio>();
            let _ = text.parse::<QueueLength>();
        }
    }
}
