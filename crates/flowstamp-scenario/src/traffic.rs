//! Groups of flows, flows that arrive at random, and their hosts.

use crate::application::{Application, Jitter, MessageSizes, PacketSizes};
use crate::patterns::{Collective, Incast, Pattern};
use crate::sizes::Sizes;
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::transport;
use flowstamp_laws::units::{Bytes, Rate, Ratio, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A group of flows with the same properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    /// Name in results; unique.
    pub name: String,
    /// The sender's law.
    pub law: SenderSpec,
    /// Number of flows; 0 leaves the group out, for sweeps. With `web` or `list` it is the number of host pairs
    /// that the flows share between two nodes. Default: 1; with `web` or `list` 10; with `pattern` as the pattern
    /// says.
    pub count: Option<u32>,
    /// The node that data comes from. Default: the first node.
    pub from: Option<String>,
    /// The node that data goes to. Default: the last node.
    pub to: Option<String>,
    /// Which hosts the flows connect, in place of `from` and `to`. Hosts are those of a fat_tree or leaf_spine; in
    /// a graph they are the nodes with one neighbour.
    pub pattern: Option<Pattern>,
    /// The hosts between which `pattern` places flows; a ring is in their order. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Incasts of a given size, with `pattern = "incast"`. They need no `count` and no `size`.
    pub incast: Option<Incast>,
    /// Repetitions of the operation, with `pattern = "all-to-all"` or `"ring-all-reduce"`. Default: there is one.
    pub collective: Option<Collective>,
    /// Whether `from` and `to` change places, so that data goes the other way.
    #[serde(default)]
    pub reverse: bool,
    /// In a parking lot, whether there is one such group over each single link.
    #[serde(default)]
    pub each_hop: bool,
    /// Round-trip propagation time: one for all flows, or a list with one for each. A longer access link at the
    /// sender makes up the difference.
    pub rtt: Option<OneOrMany<Time>>,
    /// When the first flow starts, or a list with one time for each flow. With `list`, it is added to each row's
    /// start.
    #[serde(default = "at_once")]
    pub start: OneOrMany<Time>,
    /// Time between the starts of successive flows.
    #[serde(default)]
    pub every: Time,
    /// Longest random delay of each flow's start, drawn uniformly from 0.
    #[serde(default)]
    pub spread: Time,
    /// When the flows stop sending new data. Default: never.
    pub stop: Option<Time>,
    /// How long each flow sends new data from its start. Default: until `stop`.
    pub lifetime: Option<Time>,
    /// Longest random extension of each flow's `lifetime`, drawn uniformly from 0.
    #[serde(default)]
    pub lifetime_spread: Time,
    /// Payload that each flow transfers. Default: endless. With a collective `pattern` it is the data of each host.
    pub size: Option<Bytes>,
    /// Rate at which the application produces payload: short for an `application` of kind `"constant"`. Default:
    /// there is always more to send.
    pub rate: Option<Rate>,
    /// The traffic that the application of each flow produces, and when. Default: there is always more to send.
    pub application: Option<Application>,
    /// Sizes of datagrams on the wire: one size, `"imix"`, or a list of sizes with weights. They range from the
    /// scenario's `header` to its `packet`, which is the default.
    pub packet: Option<PacketSizes>,
    /// Longest random delay of datagrams after the ticks of their application's clock, at most 1 s. It is drawn
    /// uniformly for each datagram, and they keep their order. `"none"` has no delay. Default: eight transmission
    /// times of a packet on the slowest link of the path, at most 1 s; none for Poisson datagrams.
    pub jitter: Option<Jitter>,
    /// Maximum size on the wire of all datagrams that wait for the host's own link. The source drops further
    /// datagrams. Needs hosts of their own (`access`). Default: unbounded.
    pub send_buffer: Option<Bytes>,
    /// Flows that arrive at random, each with a size of its own.
    pub web: Option<Web>,
    /// A file that lists flows, one in each row, relative to the scenario's folder: CSV whose first line names the
    /// columns, or Parquet. The columns `start` (seconds, or with a unit: `0.25`, `250ms`) and `size` (bytes of
    /// payload, or with a unit: `15000`, `15kB`) are required. In the columns `from`, `to` and `law`, a node or a
    /// law's name replaces the group's for its row. The group's own law keeps the group's parameters; any other law
    /// has its defaults. A file whose first line is a number has the text format of HPCC's simulator, with hosts `h0`
    /// and so on.
    pub list: Option<PathBuf>,
    /// Columns of `list` to ignore. Any other unknown column is refused; `"*"` ignores all unknown columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_columns: Vec<String>,
    /// Which protocols the receiving hosts know. With `"tcp"` they echo no stamps. Laws that rely on stamps are
    /// then refused, unless they ask for their protocol first (`negotiate`).
    #[serde(default)]
    pub receiver: Receiver,
    /// Name of the link that the flow governs. Packets leave the link at the rate of this flow, which has no data
    /// of its own. Needs the law of a macro-flow, `"xcp-edge"` or `"vcp-edge"`. The flow goes from the link's end
    /// to where all flows over the link leave the cloud.
    pub governs: Option<String>,
    /// Window, acks and recovery.
    #[serde(default)]
    pub transport: transport::Params,
    /// Priority on links with `priority = "labels"`: packets of flows with a greater label go first, and so do
    /// their acks. 0 to 7, as the priority code point of IEEE 802.1Q.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = 7))]
    pub label: u8,
    /// Gives each flow hosts of its own on such access links. Default: as the topology says; in a graph none, and
    /// flows start at the node.
    pub access: Option<Access>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(label: &u8) -> bool {
    *label == 0
}

impl FlowGroup {
    /// Whether the flows have an application that does not always have more to send.
    #[must_use]
    pub fn produces(&self) -> bool {
        self.rate.is_some() || self.application.is_some() || self.is_collective()
    }

    /// Whether the flows carry out collective operations.
    #[must_use]
    pub fn is_collective(&self) -> bool {
        self.pattern.is_some_and(Pattern::is_collective)
    }

    /// Whether all flows and their starts are known before the run, and each flow arrives when it starts.
    #[must_use]
    pub const fn is_listed(&self) -> bool {
        self.list.is_some() || self.incast.is_some()
    }

    /// Whether the flows arrive during the run, each with a size of its own.
    #[must_use]
    pub const fn arrives(&self) -> bool {
        self.web.is_some() || self.is_listed()
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

/// Which protocols a receiving host knows.
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
    /// Mean number of new flows per second, whatever their sizes. Exactly one of `flows_per_s` and `load` is given.
    pub flows_per_s: Option<f64>,
    /// Offered load, headers included, as a share of the capacity of the path's slowest link. With a `pattern` it
    /// is a share of the total capacity of the sending or of the receiving hosts' own links, whichever is less. The
    /// load that arrives in the warm-up, and after it, is within 5% of this share. For that, enough flows are drawn
    /// at random times, and a flow that would exceed the load is drawn again. With fewer than a hundred flows in
    /// either part the load is met on average only, as with `flows_per_s`.
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
        /// Exponent of the tail, above 1; near 1 is heavy-tailed.
        shape: f64,
    },
}
