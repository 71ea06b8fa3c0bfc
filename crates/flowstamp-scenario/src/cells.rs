//! Radio cells in a graph: their nodes, data rates and interface queues.

use super::wireless::{Dcf, Standard};
use super::{Buffer, LinkRate, Priority, Weight};
use flowstamp_laws::registry::{QueueSpec, RouterSpec};
use flowstamp_laws::units::{Rate, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;
use std::fmt;

/// Nodes that share one 802.11 medium by DCF, half duplex; all hear one another. Each has one interface, which is a link from it
/// to whichever of the others a packet is for, and is named `cell.node` in results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The first part of its links' names.
    pub name: String,
    /// The node that is its access point: what it sends and receives goes at the other station's rate, and stations reach one another
    /// through it. Default: there is none, and stations reach one another directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_point: Option<String>,
    /// MAC and PHY: the name of a standard alone, or what is not as that has it.
    #[serde(default)]
    pub mac: Mac,
    /// What it costs to take one of its links, where links of the graph have weights. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<Weight>,
    /// Nodes beside the access point.
    pub stations: Vec<Station>,
    /// Buffer of each interface, in packets or bytes: of a medium nobody knows the bandwidth-delay product.
    #[serde(default = "interface_queue")]
    pub buffer: Buffer,
    /// Queue of each interface.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Router law of each interface.
    #[serde(default)]
    pub router: RouterSpec,
    /// Packets of each interface that go before all others. Default: acks where the router law wants it, else none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The capacity that router laws of the cell are told, right or wrong. Default: they are told of none, and laws that cannot do without
    /// are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Rate>,
}

/// A node of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// The node.
    pub name: String,
    /// Its data rate, of what it sends and of what is sent to it: one, or steps over time.
    pub rate: LinkRate,
    /// Share of data frames, to it and from it, that are lost though nothing collides. The MAC repeats them.
    #[serde(default)]
    pub error_rate: Ratio,
    /// Its buffer, where it is not the cell's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Its queue, where it is not the cell's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// Its router law, where it is not the cell's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
            "description": "the name of a standard, or a table with `standard` and what is not as that has it",
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
                    "the name of a standard, or a table with `standard` and what is not as that has it",
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
