//! Weights of links, by which routes can be chosen.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Fixed-point parts of one, so that sums of weights are exact and paths of equal weight are equal (0.1 + 0.2 and 0.3).
const PARTS: f64 = 1e6;
const MOST: f64 = 1e9;
const RIGHT: &str = "a number from 0.000001 to 1000000000";

/// The weight of a link: an integer or a real number from 0.000001 to 1000000000, rounded to a millionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u64);

impl Weight {
    /// The weight of one hop.
    pub const ONE: Self = Self(PARTS as u64);

    /// The weight in millionths: at least 1.
    #[must_use]
    pub const fn millionths(self) -> u64 {
        self.0
    }

    fn of(value: f64) -> Option<Self> {
        let parts = (value * PARTS).round();
        (parts >= 1.0 && value <= MOST).then_some(Self(parts as u64))
    }
}

impl FromStr for Weight {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().ok().and_then(Self::of).ok_or_else(|| format!("write {RIGHT}"))
    }
}

impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / PARTS)
    }
}

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl de::Visitor<'_> for V {
            type Value = Weight;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(RIGHT)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Weight, E> {
                Weight::of(value).ok_or_else(|| E::custom(format!("is {value}; write {RIGHT}")))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Weight, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Weight, E> {
                self.visit_f64(value as f64)
            }
        }
        deserializer.deserialize_f64(V)
    }
}

impl JsonSchema for Weight {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Weight")
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "number",
            "description": "the weight of a link, rounded to a millionth",
            "minimum": 1.0 / PARTS,
            "maximum": MOST,
            "examples": [1, 2.5],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Weight;

    #[test]
    fn sums_are_exact_and_the_range_has_ends() {
        let parts = |text: &str| text.parse().map(Weight::millionths);
        assert_eq!(parts("0.1").and_then(|a| Ok(a + parts("0.2")?)), parts("0.3"));
        assert_eq!(parts("1"), Ok(Weight::ONE.millionths()));
        assert_eq!(parts("1e9"), Ok(1_000_000_000_000_000));
        for bad in ["0", "-1", "1e-7", "1.1e9", "nan", "inf", "", "two"] {
            assert!(parts(bad).is_err(), "{bad}");
        }
    }
}
