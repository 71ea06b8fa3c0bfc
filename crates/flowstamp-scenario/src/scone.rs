//! Throughput advice of links.

use flowstamp_laws::units::Rate;
use schemars::JsonSchema;
#[cfg(not(feature = "full"))]
use serde::de::Error;
use serde::{Deserialize, Serialize};

/// Throughput advice (draft-ietf-scone-protocol): the link lowers the rate signal of the SCONE packets that cross it.
/// Videos send such packets, and their clients follow the advice unless they ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[cfg_attr(feature = "full", derive(Deserialize), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Scone {
    /// Rate advised to each flow, headers included: 100kbps to 199Gbps. The signal rounds it down to 100 kb/s
    /// times 10^(n/20). Default: the rate that the link's RCP router gives its flows, averaged over the 67 s of a
    /// monitoring period.
    pub rate: Option<Rate>,
}

/// The browser lab does not offer advice. Without the code that reads it its module is smaller.
#[cfg(not(feature = "full"))]
impl<'de> Deserialize<'de> for Scone {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("this build has no throughput advice"))
    }
}
