//! Radio cells in a graph: their nodes, data rates and interface queues.

use super::wireless::{Dcf, Standard};
use super::{Buffer, LinkRate, Priority, Weight};
use flowstamp_laws::registry::{QueueSpec, RouterSpec};
use flowstamp_laws::units::{Rate, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;
use std::fmt;

/// A wireless cell: nodes that share one half-duplex 802.11 medium by DCF and all hear one another. Each node has
/// one interface: a link from it to whichever node a packet is for. Results name it `cell.node`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Name of the cell, which begins the names of its links.
    pub name: String,
    /// The node that is the access point. Frames from it and to it go at the other station's rate, and stations
    /// reach one another through it. Default: none; stations reach one another directly.
    pub access_point: Option<String>,
    /// MAC and PHY: the name of a standard, or a table with the values that differ from it.
    #[serde(default)]
    pub mac: Mac,
    /// Cost of taking one of the cell's links, if the graph's links have weights. Default: 1.
    pub weight: Option<Weight>,
    /// The nodes other than the access point.
    pub stations: Vec<Station>,
    /// Buffer of each interface, in packets or bytes. A shared medium has no known bandwidth-delay product.
    #[serde(default = "interface_queue")]
    pub buffer: Buffer,
    /// Queue of each interface.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Router law of each interface.
    #[serde(default)]
    pub router: RouterSpec,
    /// Packets that each interface sends before all others. Default: acks if the router law asks for it; otherwise
    /// none.
    pub priority: Option<Priority>,
    /// The capacity that the cell's router laws are told, right or wrong. Default: they are told none, and laws
    /// that need it are refused.
    pub told: Option<Rate>,
}

/// A node of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Name of the node.
    pub name: String,
    /// Data rate of frames from it and to it: one rate, or steps over time.
    pub rate: LinkRate,
    /// Share of data frames from it and to it that are lost without a collision. The MAC retransmits them.
    #[serde(default)]
    pub error_rate: Ratio,
    /// Its buffer. Default: the cell's.
    pub buffer: Option<Buffer>,
    /// Its queue. Default: the cell's.
    pub queue: Option<QueueSpec>,
    /// Its router law. Default: the cell's.
    pub router: Option<RouterSpec>,
}

/// The default buffer: ns-2's interface queue, and Abrantes and Ricardo 2006, section 4.3.1.
fn interface_queue() -> Buffer {
    Buffer::Packets(50)
}

/// MAC and PHY of a cell: `"802.11g"`, or a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mac(pub Dcf);

impl JsonSchema for Mac {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Mac")
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (name, table) = (generator.subschema_for::<Standard>(), generator.subschema_for::<Dcf>());
        schemars::json_schema!({
            "description": "the name of a standard, or a table with `standard` and the values that differ from it",
            "anyOf": [name, table],
        })
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> de::Visitor<'de> for V {
            type Value = Mac;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "the name of a standard, or a table with `standard` and the values that differ from it",
                )
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Mac, E> {
                let standard = Standard::deserialize(de::value::StrDeserializer::new(name))?;
                Ok(Mac(Dcf { standard, ..Dcf::default() }))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Mac, A::Error> {
                Dcf::deserialize(de::value::MapAccessDeserializer::new(map)).map(Mac)
            }
        }
        deserializer.deserialize_any(V)
    }
}
