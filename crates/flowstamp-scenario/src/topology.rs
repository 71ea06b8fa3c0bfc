//! Topologies: one bottleneck, several in a row, data-centre networks, any graph.
//!
//! The options of a link are repeated for each kind of network. One struct under `#[serde(flatten)]` would lose the key
//! in error messages: an error in `dumbbell.queue` would be reported for `dumbbell`, and a misspelt key without a
//! suggestion.

use super::{Buffer, Impairments, LinkRate, Pfc, Scone, Weight};
use flowstamp_laws::Refused;
use flowstamp_laws::registry::{QueueSpec, RouterSpec, ShareSpec};
use flowstamp_laws::share::police::Params;
use flowstamp_laws::units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which packets a link sends before all others. It does not interrupt a transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// None.
    #[default]
    None,
    /// Acks, and the answers to packets that open or end a flow or probe its path. All packets share one buffer.
    Acks,
    /// Strict priority by the flows' `label`: the greatest waiting label is next. Each label has a queue and a
    /// buffer of its own.
    Labels,
}

/// Which flows are tested on a link, and for how long a flow that fails is isolated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Police {
    /// Rate below which flows are not tested. Default: a tenth of the link's rate.
    pub heavy: Option<Rate>,
    /// Time from a passed test to the flow's next test.
    pub retest: Time,
    /// How long a flow that failed is held to its allowance. The allowance is half of its rate at first, and less
    /// while the link drops packets.
    pub isolate: Time,
}

impl Default for Police {
    fn default() -> Self {
        Self { heavy: None, retest: Time::from_secs(10), isolate: Time::from_secs(30) } // as `router police`
    }
}

impl Police {
    /// The parameters of the police on a link of this rate.
    ///
    /// # Errors
    /// The first invalid parameter, and a value that would be right.
    pub fn params(&self, rate: Rate) -> Result<Params, Refused> {
        let Self { heavy, retest, isolate } = *self;
        let params = Params { heavy: heavy.unwrap_or(Rate::from_bps(rate.bps() / 10.0)), retest, isolate };
        params.check().map(|()| params)
    }
}

/// One bottleneck: two routers, `left` and `right`, with one link each way. Each host has an access link of its
/// own. The links are named `bottleneck` (left to right) and `bottleneck.reverse`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Capacity of the bottleneck, both ways.
    pub rate: LinkRate,
    /// Round-trip propagation time of flows without an `rtt` of their own. It covers all six links.
    pub rtt: Time,
    /// One-way propagation delay of the bottleneck. Default: 0.4 rtt, which leaves 0.05 rtt to each access link.
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
    /// How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its
    /// own.
    #[serde(default)]
    pub share: ShareSpec,
    /// Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does;
    /// otherwise none. It excludes `share`.
    pub priority: Option<Priority>,
    /// Tests flows, and isolates those that do not obey the router (Katabi 2002, section 7). `{}` takes all
    /// defaults. Needs a router law of XCP or RCP. Default: no tests.
    pub police: Option<Police>,
    /// Throughput advice for videos (SCONE): `{}` for the rate of the RCP router, `{ rate = "3Mbps" }` for a fixed rate.
    /// Default: no advice.
    pub scone: Option<Scone>,
    /// Losses, marks, copies, delays and detours of packets after they have crossed the bottleneck, in both
    /// directions. Default: none.
    pub impairments: Option<Impairments>,
    /// Capacity of each access link. Default: ten times the bottleneck's.
    pub access_rate: Option<Rate>,
    /// Capacity from right to left. Default: as `rate`.
    pub reverse_rate: Option<LinkRate>,
    /// Impairments from right to left; `{}` for none. Default: as `impairments`.
    pub reverse_impairments: Option<Impairments>,
}

/// Routers `n0`, `n1`, ... in a row; `link1` leads from `n0` to `n1` and `link1.reverse` back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParkingLot {
    /// Capacity of each link in order, both ways. There are as many links as rates.
    pub rates: Vec<Rate>,
    /// One-way propagation delay of each link.
    pub delay: Time,
    /// Buffer of each link; `BDP` is the link's capacity times `rtt`.
    #[serde(default)]
    pub buffer: Buffer,
    /// The round-trip time that `BDP` refers to. Default: that of a flow over all links.
    pub rtt: Option<Time>,
    /// The queue of each link.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The router law of each link.
    #[serde(default)]
    pub router: RouterSpec,
    /// How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its
    /// own.
    #[serde(default)]
    pub share: ShareSpec,
    /// Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does;
    /// otherwise none. It excludes `share`.
    pub priority: Option<Priority>,
    /// Tests flows, and isolates those that do not obey the router (Katabi 2002, section 7). `{}` takes all
    /// defaults. Needs a router law of XCP or RCP. Default: no tests.
    pub police: Option<Police>,
    /// Losses, marks, copies, delays and detours of packets after they have crossed each link. Default: none.
    pub impairments: Option<Impairments>,
    /// Capacity of each access link. Default: ten times the fastest link's.
    pub access_rate: Option<Rate>,
    /// One-way propagation delay of each access link.
    #[serde(default)]
    pub access_delay: Time,
}

/// A two-stage Clos network: every leaf switch has a link to every spine switch, and hosts of its own. Nodes are
/// `leaf0`, ..., `spine0`, ... and `h0`, ...; the first hosts are at `leaf0`. Links are named by their ends, such
/// as `h0->leaf0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Number of leaf switches.
    pub leaves: u32,
    /// Number of spine switches.
    pub spines: u32,
    /// Number of hosts at each leaf.
    pub hosts: u32,
    /// Capacity of each host's link, both ways.
    pub rate: Rate,
    /// Capacity of each link between leaf and spine, both ways. Default: as `rate`.
    pub spine_rate: Option<Rate>,
    /// Capacity of a leaf's hosts over that of its links to spines, 1 to 1000: with 4, all hosts of a leaf together
    /// get a quarter of their capacity to other leaves. It sets `spine_rate`.
    pub oversubscription: Option<f64>,
    /// One-way propagation delay of each host's link.
    pub delay: Time,
    /// One-way propagation delay of each link between leaf and spine. Default: as `delay`.
    pub spine_delay: Option<Time>,
    /// Buffer in front of each link of a switch, to another switch or to a host. `BDP` is the link's capacity times
    /// `rtt`.
    #[serde(default)]
    pub buffer: Buffer,
    /// Buffer in front of a host's own link: the host's send memory. Default: 2MB.
    #[serde(default = "host_buffer")]
    pub host_buffer: Buffer,
    /// The round-trip time that `BDP` refers to. Default: the longest of any flow.
    pub rtt: Option<Time>,
    /// The queue of each link.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The router law of each link, including the hosts' own.
    #[serde(default)]
    pub router: RouterSpec,
    /// How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its
    /// own.
    #[serde(default)]
    pub share: ShareSpec,
    /// Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does;
    /// otherwise none. It excludes `share`.
    pub priority: Option<Priority>,
    /// Priority flow control of all links: switches pause links before a buffer overflows. Default: none.
    pub pfc: Option<Pfc>,
}

/// A fat tree of switches with `k` ports (Al-Fares 2008). It has `k` pods of `k/2` edge and `k/2` aggregation
/// switches, `(k/2)^2` core switches and `k^3/4` hosts, and the same capacity at each stage. Nodes are `h0`, ...,
/// `pod0-edge0`, ..., `pod0-agg0`, ..., and `core0`, .... Links are named by their ends, such as `h0->pod0-edge0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Number of ports of each switch, which must be even.
    pub k: u32,
    /// Capacity of an edge switch's hosts over that of its links to aggregation switches, 1 to 1000. It sets the number
    /// of hosts of each edge switch, `oversubscription * k/2`, which must be whole. Default: 1.
    pub oversubscription: Option<f64>,
    /// Capacity of each link, both ways.
    pub rate: Rate,
    /// One-way propagation delay of each link.
    pub delay: Time,
    /// Buffer in front of each link of a switch, to another switch or to a host. `BDP` is the link's capacity times
    /// `rtt`.
    #[serde(default)]
    pub buffer: Buffer,
    /// Buffer in front of a host's own link: the host's send memory. Default: 2MB.
    #[serde(default = "host_buffer")]
    pub host_buffer: Buffer,
    /// The round-trip time that `BDP` refers to. Default: the longest of any flow.
    pub rtt: Option<Time>,
    /// The queue of each link.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The router law of each link, including the hosts' own.
    #[serde(default)]
    pub router: RouterSpec,
    /// How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its
    /// own.
    #[serde(default)]
    pub share: ShareSpec,
    /// Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does;
    /// otherwise none. It excludes `share`.
    pub priority: Option<Priority>,
    /// Priority flow control of all links: switches pause links before a buffer overflows. Default: none.
    pub pfc: Option<Pfc>,
}

fn host_buffer() -> Buffer {
    Buffer::Bytes(Bytes::new(2_000_000))
}

/// Any network of named nodes. Packets take the path of least delay, or of least weight if links have weights. If
/// several paths are equal, each flow takes one, by a hash of its group's name, its number and the seed, or
/// `routing.balance` spreads its packets over them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The links. The names of their ends are the nodes.
    #[serde(default)]
    pub links: Vec<Link>,
    /// A file of links in place of `links`, relative to the scenario's folder. GraphML, as networkx writes it, has
    /// `rate` (or `capacity`) and `delay` on its edges. CSV, with commas, semicolons or tabs, has columns `source`,
    /// `target`, `rate` and `delay`. Both may also have `weight`, `name`, `buffer`, `queue`, `router`, `priority`,
    /// `medium` and `duplex`. An edge of an undirected graph leads both ways, and so does a row of CSV.
    pub file: Option<PathBuf>,
    /// Whether links without `duplex` lead one way only, from the first node to the second. Default: as the GraphML
    /// file says; otherwise false.
    pub directed: Option<bool>,
    /// The file's column or attribute that holds the capacity. Default: `rate` or `capacity`.
    pub rate_key: Option<String>,
    /// The unit of capacities that are bare numbers in the file: `"bps"`, `"kbps"`, `"Mbps"`, `"Gbps"` or `"Tbps"`.
    /// Default: bare numbers are refused.
    pub rate_unit: Option<String>,
    /// The file's column or attribute that holds the one-way propagation delay. Default: `delay`.
    pub delay_key: Option<String>,
    /// The unit of delays that are bare numbers in the file, such as `"ms"`. Default: bare numbers are refused.
    pub delay_unit: Option<String>,
    /// The file's column or attribute that holds the weight. Default: `weight`.
    pub weight_key: Option<String>,
    /// Columns of a CSV file to ignore. Any other unknown column is refused; `"*"` ignores all unknown columns. In
    /// GraphML, unknown attributes are ignored anyway, and a known one is ignored if it is named here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_columns: Vec<String>,
    /// Capacity of the file's links that have none of their own.
    pub rate: Option<LinkRate>,
    /// One-way propagation delay of the file's links that have none of their own.
    pub delay: Option<Time>,
    /// Weight of the file's links that have none of their own. Routes go by weights.
    pub weight: Option<Weight>,
    /// Buffer of the file's links that have none of their own.
    pub buffer: Option<Buffer>,
    /// Queue of the file's links that have none of their own.
    pub queue: Option<QueueSpec>,
    /// Router law of the file's links that have none of their own.
    pub router: Option<RouterSpec>,
    /// How the router laws of the file's links share them with traffic of other protocols.
    pub share: Option<ShareSpec>,
    /// Packets that the file's links send before all others, if a link does not say otherwise.
    pub priority: Option<Priority>,
    /// Priority flow control of the file's links that have none of their own.
    pub pfc: Option<Pfc>,
    /// The round-trip time that a buffer in `BDP` refers to. Default: the longest of any flow.
    pub rtt: Option<Time>,
}

/// A link of a graph, or one each way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Name in results. Default: `from->to`, and `from->to#2` for a second link between the same nodes.
    pub name: Option<String>,
    /// Capacity of the link.
    pub rate: LinkRate,
    /// One-way propagation delay of the link.
    pub delay: Time,
    /// Cost of taking the link. If one link has a weight, all need one, and packets take the path whose weights
    /// have the least sum. Default: packets take the path of least delay.
    pub weight: Option<Weight>,
    /// Buffer in front of the link.
    #[serde(default)]
    pub buffer: Buffer,
    /// The link's queue.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The link's router law.
    #[serde(default)]
    pub router: RouterSpec,
    /// How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its
    /// own.
    #[serde(default)]
    pub share: ShareSpec,
    /// Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does;
    /// otherwise none. It excludes `share`.
    pub priority: Option<Priority>,
    /// Priority flow control: the node to which the link leads pauses it before a buffer overflows. It needs a link that
    /// leads back. Default: none.
    pub pfc: Option<Pfc>,
    /// Tests flows, and isolates those that do not obey the router (Katabi 2002, section 7). `{}` takes all
    /// defaults. Needs a router law of XCP or RCP. Default: no tests.
    pub police: Option<Police>,
    /// Throughput advice for videos (SCONE): `{}` for the rate of the RCP router, `{ rate = "3Mbps" }` for a fixed rate. It
    /// cannot be combined with `pfc`. Default: no advice.
    pub scone: Option<Scone>,
    /// Losses, marks, copies, delays and detours of packets after they have crossed the link. Default: none.
    pub impairments: Option<Impairments>,
    /// The medium that carries the link. Links with the same medium share it: they send one at a time, in turn.
    /// Default: a medium of its own for each direction.
    pub medium: Option<String>,
    /// Whether the same link also leads back, as `to->from` or `name.reverse`.
    #[serde(default = "yes")]
    pub duplex: bool,
}

fn yes() -> bool {
    true
}
