//! The scenario: what a user writes, in TOML, as a Python object or with `--set`.
//!
//! One format for all of them: a tree of tables that these types define. The JSON Schema is made from the same types
//! ([`schema`]), so it cannot differ. Quantities carry their units.

use flowstamp_laws::registry::{QueueSpec, RouterSpec, SenderSpec, ShareSpec};
use flowstamp_laws::transport;
use flowstamp_laws::units::{Bytes, Rate, Ratio, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A whole experiment: a network, the flows on it, and what to record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A name for titles and tables.
    #[serde(default)]
    pub name: String,
    /// What the scenario shows, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Simulated time.
    pub duration: Time,
    /// Statistics start here; series cover the whole run.
    #[serde(default)]
    pub warmup: Time,
    /// Every random choice follows from this and from stable names.
    #[serde(default = "one")]
    pub seed: u64,
    /// Size of a data packet as it is on the wire.
    #[serde(default = "data_packet")]
    pub packet: Bytes,
    /// How much of a data packet is headers; the rest is payload, which is what sizes of flows, application rates, goodput
    /// and delivered bytes count. Links, queues and windows count whole packets.
    #[serde(default = "headers")]
    pub header: Bytes,
    /// Size of an ack as it is on the wire.
    #[serde(default = "ack_packet")]
    pub ack: Bytes,
    /// One bottleneck. Exactly one of `dumbbell`, `parking_lot` and `graph` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dumbbell: Option<Dumbbell>,
    /// Several bottlenecks in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parking_lot: Option<ParkingLot>,
    /// Any network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
    /// Groups of flows.
    #[serde(default)]
    pub flows: Vec<FlowGroup>,
    /// What is sampled over time.
    #[serde(default)]
    pub probes: Probes,
    /// Packets to record as they leave links, for `trace.pcapng`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
}

fn one() -> u64 {
    1
}
fn data_packet() -> Bytes {
    Bytes::new(1000) // Katabi 2002, section 5.1
}
/// IPv4 and TCP without options: an ack's size. What a law's stamp takes on a wire is left to the user to add.
fn headers() -> Bytes {
    ack_packet()
}
fn ack_packet() -> Bytes {
    Bytes::new(40)
}

impl Scenario {
    /// Payload of a full data packet, bytes.
    #[must_use]
    pub fn payload(&self) -> u64 {
        self.packet.get().saturating_sub(self.header.get()).max(1)
    }
}

/// Two routers, `left` and `right`, one link each way between them; hosts hang on access links of their own.
/// The links are named `bottleneck` (left to right) and `bottleneck.reverse`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Capacity of the bottleneck, both ways.
    pub rate: LinkRate,
    /// Round-trip propagation time of flows that do not name their own, over all six links.
    pub rtt: Time,
    /// One-way propagation delay of the bottleneck. Default: 0.4 rtt, which leaves 0.05 rtt to each access link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// Buffer in front of the bottleneck; `BDP` is the capacity times `rtt`.
    #[serde(default)]
    pub buffer: Buffer,
    /// The bottleneck's queue.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The bottleneck's router law.
    #[serde(default)]
    pub router: RouterSpec,
    /// How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.
    #[serde(default)]
    pub share: ShareSpec,
    /// Capacity of each access link. Default: ten times the bottleneck's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_rate: Option<Rate>,
    /// Capacity from right to left, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_rate: Option<LinkRate>,
}

/// Routers `n0`, `n1`, ... in a row; `link1` leads from `n0` to `n1` and `link1.reverse` back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParkingLot {
    /// Capacity of each link in turn, both ways; as many links as there are rates.
    pub rates: Vec<Rate>,
    /// One-way propagation delay of each link.
    pub delay: Time,
    /// Buffer of each link; `BDP` is the link's capacity times `rtt`.
    #[serde(default)]
    pub buffer: Buffer,
    /// The round-trip time that `BDP` refers to. Default: that of a flow over all links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Time>,
    /// The queue of each link.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The router law of each link.
    #[serde(default)]
    pub router: RouterSpec,
    /// How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.
    #[serde(default)]
    pub share: ShareSpec,
    /// Capacity of each access link. Default: ten times the fastest link's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_rate: Option<Rate>,
    /// One-way propagation delay of each access link.
    #[serde(default)]
    pub access_delay: Time,
}

/// Any network of named nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The links; their ends name the nodes.
    pub links: Vec<Link>,
    /// The round-trip time that a buffer in `BDP` refers to. Default: the longest of any flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Time>,
}

/// One link of a graph, or one each way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Name in results. Default: `from->to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Capacity.
    pub rate: LinkRate,
    /// One-way propagation delay.
    pub delay: Time,
    /// Buffer.
    #[serde(default)]
    pub buffer: Buffer,
    /// Queue.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Router law.
    #[serde(default)]
    pub router: RouterSpec,
    /// How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.
    #[serde(default)]
    pub share: ShareSpec,
    /// The same link also leads back, as `to->from` or `name.reverse`.
    #[serde(default = "yes")]
    pub duplex: bool,
}

fn yes() -> bool {
    true
}

/// Capacity of a link: a rate, or a rate that varies.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LinkRate {
    /// The same all the time.
    Constant(Rate),
    /// Follows a list or a recording.
    Varying(VaryingRate),
}

/// A rate that varies; exactly one of `steps` and `trace` is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaryingRate {
    /// Instants and the rate from then on; the first is at 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<(Time, Rate)>>,
    /// A file in Mahimahi's format: one line for each 1500-byte delivery opportunity, in milliseconds from the start.
    /// It repeats when it ends. A path is relative to the scenario's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// Over how much of the past a router law's capacity is measured on a trace.
    #[serde(default = "capacity_window")]
    pub capacity_window: Time,
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

/// Flows that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    /// Name in results; unique.
    pub name: String,
    /// The sender's law.
    pub law: SenderSpec,
    /// How many flows; of web flows, how many host pairs they share. Default 1; web flows 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Where data comes from: a node. Default: the first node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where data goes: a node. Default: the last node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Data goes the other way: `from` and `to` change places.
    #[serde(default)]
    pub reverse: bool,
    /// In a parking lot: one such group of flows over each single link.
    #[serde(default)]
    pub each_hop: bool,
    /// Round-trip propagation time, by a longer access link at the sender; one for all, or a list, one for each flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<OneOrMany<Time>>,
    /// When the first flow starts.
    #[serde(default)]
    pub start: Time,
    /// How much later than the one before each flow starts.
    #[serde(default)]
    pub every: Time,
    /// Each flow starts up to so much later, drawn uniformly.
    #[serde(default)]
    pub spread: Time,
    /// When the flows stop sending new data. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// How much payload each flow transfers. Default: without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// How fast the application produces payload. Default: faster than the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Flows that arrive at random, each with a size of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<Web>,
    /// Window, acks and recovery.
    #[serde(default)]
    pub transport: transport::Params,
    /// Hosts of their own on access links. Default: as the topology says; in a graph none, flows start at the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
}

/// An access link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Capacity.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Time,
}

/// One value for all, or a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// The same for all.
    One(T),
    /// One for each.
    Many(Vec<T>),
}

impl<'de, T: Deserialize<'de> + FromStr<Err: fmt::Display>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: de::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de> + FromStr<Err: fmt::Display>> de::Visitor<'de> for V<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity with its unit, or a list of them")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<OneOrMany<T>, E> {
                v.parse().map(OneOrMany::One).map_err(E::custom)
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<OneOrMany<T>, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(OneOrMany::Many)
            }
        }
        d.deserialize_any(V(std::marker::PhantomData))
    }
}

/// Flows that arrive at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Mean number of new flows per second. Exactly one of `flows_per_s` and `load` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows_per_s: Option<f64>,
    /// Offered load, headers included, as a share of the slowest link's capacity on the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Ratio>,
    /// How arrivals are spaced.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How large the transfers are.
    pub sizes: Sizes,
}

/// Spacing of flow arrivals.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "process", rename_all = "lowercase", deny_unknown_fields)]
pub enum Arrivals {
    /// Exponential gaps.
    #[default]
    Poisson,
    /// Pareto gaps.
    Pareto {
        /// Above 1; near 1 is heavy-tailed.
        shape: f64,
    },
}

/// Sizes of transfers, in bytes of payload; a transfer has at least one packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum Sizes {
    /// All alike.
    Fixed {
        /// The size.
        size: Bytes,
    },
    /// Evenly spread.
    Uniform {
        /// The least.
        min: Bytes,
        /// The most.
        max: Bytes,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Bytes,
    },
    /// Pareto: heavy-tailed, as web transfers are.
    Pareto {
        /// The mean.
        mean: Bytes,
        /// Above 1; the mean diverges at 1.
        shape: f64,
    },
    /// A measured distribution: a file of lines `bytes percent`, a cumulative distribution that ends at 100.
    Empirical {
        /// The file, relative to the scenario's folder.
        file: PathBuf,
    },
}

/// What is sampled over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Probes {
    /// Sampling interval. Default: a hundredth of the duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// Utilisation, queue, drops and marks of each router link.
    pub links: bool,
    /// Throughput of each group.
    pub groups: bool,
    /// Throughput, window and RTT of each long flow.
    pub flows: bool,
    /// Variables of router and queue laws.
    pub laws: bool,
}

impl Default for Probes {
    fn default() -> Self {
        Self { every: None, links: true, groups: true, flows: false, laws: false }
    }
}

/// Packets to record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Links whose departures are recorded. Default: all router links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<String>>,
    /// Recording ends after so many packets.
    #[serde(default = "capture_packets")]
    pub packets: u32,
}

fn capture_packets() -> u32 {
    100_000
}

/// The JSON Schema of a scenario.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Scenario);
    schema.insert("title".to_owned(), "Flowstamp scenario".into());
    schema.to_value()
}

/// Extra data that a scenario names by path, read before the run so that the engine does no I/O.
pub type Files = BTreeMap<PathBuf, String>;
