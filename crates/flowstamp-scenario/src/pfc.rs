//! Priority flow control of links.

use flowstamp_laws::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de};
use std::fmt;

/// Priority flow control (IEEE 802.1Qbb): `true`, or a table of thresholds. A switch counts the bytes that wait in it by
/// the link over which they came. Above `xoff` it pauses the sender of that link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Pfc {
    /// Whether there is flow control, with all thresholds by default.
    Switch(bool),
    /// Flow control with these thresholds.
    Thresholds(PfcThresholds),
}

/// Thresholds of priority flow control, for the bytes of one link that wait in the switch to which it leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PfcThresholds {
    /// The switch pauses the link above this many bytes. Default: the buffer of the link that leads back, less
    /// `headroom`.
    pub xoff: Option<Bytes>,
    /// The switch lets the link go on at this many bytes. Default: `xoff` less two full packets (Zhu et al., SIGCOMM
    /// 2015).
    pub xon: Option<Bytes>,
    /// Room above `xoff` for what arrives before a pause takes effect. Packets beyond it are lost. Default: the most
    /// that can arrive: both delays times the rate, three full packets and a pause frame of 64 bytes, if the link is as
    /// fast both ways.
    pub headroom: Option<Bytes>,
}

impl Pfc {
    /// The thresholds, if there is flow control.
    #[must_use]
    pub fn thresholds(self) -> Option<PfcThresholds> {
        match self {
            Self::Switch(on) => on.then(PfcThresholds::default),
            Self::Thresholds(given) => Some(given),
        }
    }
}

impl<'de> Deserialize<'de> for Pfc {
    fn deserialize<D: de::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> de::Visitor<'de> for V {
            type Value = Pfc;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a table with `xoff`, `xon` and `headroom`")
            }
            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Pfc, E> {
                Ok(Pfc::Switch(on))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Pfc, A::Error> {
                PfcThresholds::deserialize(de::value::MapAccessDeserializer::new(map)).map(Pfc::Thresholds)
            }
        }
        d.deserialize_any(V)
    }
}
