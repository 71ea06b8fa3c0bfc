//! Groups of flows, flows that arrive at random, and their hosts.

use crate::application::{Application, Jitter, MessageSizes, PacketSizes};
use crate::sizes::Sizes;
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::transport;
use flowstamp_laws::units::{Bytes, Rate, Ratio, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Flows that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    /// Name in results; unique.
    pub name: String,
    /// The sender's law.
    pub law: SenderSpec,
    /// How many flows, which may be 0, so that a sweep can leave them out; of web flows and of those of a `list`, how many host pairs
    /// they share between two nodes. Default 1; web flows and lists 10; with a `pattern` as that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Where data comes from: a node. Default: the first node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where data goes: a node. Default: the last node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Between which hosts the flows go, in place of `from` and `to`. Hosts are those of a fat_tree or leaf_spine, and in a graph the nodes
    /// with one neighbour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// Data goes the other way: `from` and `to` change places.
    #[serde(default)]
    pub reverse: bool,
    /// In a parking lot: one such group of flows over each single link.
    #[serde(default)]
    pub each_hop: bool,
    /// Round-trip propagation time, by a longer access link at the sender; one for all, or a list, one for each flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<OneOrMany<Time>>,
    /// When the first flow starts, or a list, one for each flow; of a `list` in a file, what is added to each row's.
    #[serde(default = "at_once")]
    pub start: OneOrMany<Time>,
    /// How much later than the one before each flow starts.
    #[serde(default)]
    pub every: Time,
    /// Each flow starts up to so much later, drawn uniformly.
    #[serde(default)]
    pub spread: Time,
    /// When the flows stop sending new data. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// How long each flow sends new data, from its own start on. Default: until `stop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Time>,
    /// Each flow lasts up to so much longer than `lifetime`, drawn uniformly.
    #[serde(default)]
    pub lifetime_spread: Time,
    /// How much payload each flow transfers. Default: without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// How fast the application produces payload: short for an `application` of kind `"constant"`. Default: faster than the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// What the application of each flow produces, and when. Default: more than the network carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// Sizes of datagrams as they are on the wire: one size, `"imix"`, or a list of sizes with weights. From the scenario's `header` to its `packet`,
    /// which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<PacketSizes>,
    /// How far a datagram application's packets leave behind the ticks of its clock, drawn uniformly for each, in their order: up to 1 s, or `"none"`
    /// for the bare clock. Default: up to eight times as long as the slowest link on the way takes for a packet, and at most 1 s; of Poisson
    /// datagrams none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// The most datagrams, in bytes on the wire, that may wait for the host's own link. The source drops what an application produces beyond it. Needs
    /// hosts of their own (`access`). Default: without bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Bytes>,
    /// Flows that arrive at random, each with a size of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<Web>,
    /// Flows that a file lists, relative to the scenario's folder: CSV whose first line names its columns, or Parquet. A row is a flow. Columns
    /// `start` (seconds, or with a unit: `0.25`, `250ms`) and `size` (bytes of payload, or with a unit: `15000`, `15kB`) must be there; `from`, `to`
    /// and `law` say otherwise than the group, where they are not empty: nodes, and a law's name, with the group's parameters if it is the group's and its default ones else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<PathBuf>,
    /// Columns of `list` that are left alone; any other unknown column is refused. `"*"` stands for all unknown columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_columns: Vec<String>,
    /// What the receiving hosts know. With `"tcp"` stamps do not come back, and laws that rely on them are refused, unless they ask for
    /// their protocol first (`negotiate`).
    #[serde(default)]
    pub receiver: Receiver,
    /// The link that the flow governs, by its name: what waits for it leaves at the rate of this flow, which has no data of its own. For
    /// laws of macro-flows, `"xcp-edge"` and `"vcp-edge"`; the flow goes from the link's end to where all flows over the link leave the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governs: Option<String>,
    /// Window, acks and recovery.
    #[serde(default)]
    pub transport: transport::Params,
    /// Which packets go first on links with `priority = "labels"`: those of flows with a greater label, acks too. 0 to 7, as the priority code
    /// point of IEEE 802.1Q.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = 7))]
    pub label: u8,
    /// Hosts of their own on access links. Default: as the topology says; in a graph none, flows start at the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(label: &u8) -> bool {
    *label == 0
}

impl FlowGroup {
    /// Whether the flows have an application that does not always have more to send.
    #[must_use]
    pub const fn produces(&self) -> bool {
        self.rate.is_some() || self.application.is_some()
    }

    /// The distribution of sizes, for flows that arrive at random or for an application.
    #[must_use]
    pub fn drawn_sizes(&self) -> Option<(&'static str, &Sizes)> {
        let web = self.web.as_ref().map(|web| ("web.sizes", &web.sizes));
        web.or_else(|| match self.application.as_ref()?.message_sizes()? {
            MessageSizes::Drawn(sizes) => Some(("application.sizes", sizes)),
            _ => None,
        })
    }
}

fn at_once() -> OneOrMany<Time> {
    OneOrMany::One(Time::ZERO)
}

/// Between which hosts the flows of a group go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Each flow between two that are drawn at random. `count` is how many pairs are drawn: as many as there are hosts by default, of web
    /// flows, which take them in turn, 10,000.
    Random,
    /// Each host sends to one other and receives from one, drawn at random. `count` is by default the number of hosts; more flows go round
    /// again.
    Permutation,
    /// All to one host, which `to` may name (default: the last), from others drawn at random. `count` is by default all of the others;
    /// more flows go round again.
    Incast,
}

/// What a receiving host knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Receiver {
    /// Every protocol.
    #[default]
    Any,
    /// TCP alone.
    Tcp,
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

impl<T: Copy + Default> OneOrMany<T> {
    /// The value of number `i`; the default if the list is too short.
    #[must_use]
    pub fn of(&self, i: usize) -> T {
        match self {
            Self::One(value) => *value,
            Self::Many(values) => values.get(i).copied().unwrap_or_default(),
        }
    }
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
    /// Mean number of new flows per second, whatever they bring. Exactly one of `flows_per_s` and `load` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows_per_s: Option<f64>,
    /// Offered load, headers included, as a share of the slowest link's capacity on the path; with a `pattern`, of what the hosts' own links
    /// carry together, those of all that send or of all that receive, whichever is less. What arrives in the warm-up, and after it, is that
    /// within 5%: so many flows are drawn as bring it, at random times, and a flow that would bring more is drawn again. Of less than a
    /// hundred flows in either it is so on average, as with `flows_per_s`.
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
