//! Topologies: one bottleneck, several in a row, data-centre networks, any graph.
//!
//! The options of a link are repeated for each kind of network. One struct under `#[serde(flatten)]` would lose the key
//! in error messages: an error in `dumbbell.queue` would be reported for `dumbbell`, and a misspelt key without a
//! suggestion.

use super::{Buffer, Impairments, LinkRate, Weight};
use flowstamp_laws::Refused;
use flowstamp_laws::registry::{QueueSpec, RouterSpec, ShareSpec};
use flowstamp_laws::share::police::Params;
use flowstamp_laws::units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which packets of a link go before all others. A transmission is not interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// None do.
    #[default]
    None,
    /// Acks, and the answers to packets that open or end a flow or probe its path. The buffer is that of all.
    Acks,
    /// Strict priority by `label` of the flows: the greatest label that waits is next. Each label has a queue and a buffer of its own.
    Labels,
}

/// Who is tested on a link, and what becomes of who fails.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Police {
    /// Flows below it are not tested. Default: a tenth of the link's rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heavy: Option<Rate>,
    /// Time from a test passed to the next of that flow.
    pub retest: Time,
    /// How long a flow that has failed is held to its allowance: half of its rate at first, less while the link drops packets.
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
    /// The first invalid parameter, and what would be right.
    pub fn params(&self, rate: Rate) -> Result<Params, Refused> {
        let Self { heavy, retest, isolate } = *self;
        let params = Params { heavy: heavy.unwrap_or(Rate::from_bps(rate.bps() / 10.0)), retest, isolate };
        params.check().map(|()| params)
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
    /// Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they
    /// come. Not together with `share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Flows that do not obey are found by tests and isolated (Katabi 2002, section 7): `{}` for all defaults. For links with a router law of
    /// XCP or RCP. Default: nobody is tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<Police>,
    /// Packets that the bottleneck loses, copies, holds back or sends another way once they have crossed it. Both ways. Default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impairments: Option<Impairments>,
    /// Capacity of each access link. Default: ten times the bottleneck's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_rate: Option<Rate>,
    /// Capacity from right to left, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_rate: Option<LinkRate>,
    /// What happens to packets from right to left, where it differs; `{}` is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_impairments: Option<Impairments>,
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
    /// Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they
    /// come. Not together with `share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Flows that do not obey are found by tests and isolated (Katabi 2002, section 7): `{}` for all defaults. For links with a router law of
    /// XCP or RCP. Default: nobody is tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<Police>,
    /// Packets that each link loses, copies, holds back or sends another way once they have crossed it. Default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impairments: Option<Impairments>,
    /// Capacity of each access link. Default: ten times the fastest link's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_rate: Option<Rate>,
    /// One-way propagation delay of each access link.
    #[serde(default)]
    pub access_delay: Time,
}

/// Every leaf switch is joined with every spine switch, and has hosts of its own: Clos' network in two stages. Nodes are `leaf0`, ...,
/// `spine0`, ... and `h0`, ..., whose first are at `leaf0`; links are named by their ends, `h0->leaf0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Leaf switches.
    pub leaves: u32,
    /// Spine switches.
    pub spines: u32,
    /// Hosts of each leaf.
    pub hosts: u32,
    /// Capacity of each host's link, both ways.
    pub rate: Rate,
    /// Capacity of each link between leaf and spine, both ways. Default: the hosts'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spine_rate: Option<Rate>,
    /// One-way propagation delay of each host's link.
    pub delay: Time,
    /// One-way propagation delay of each link between leaf and spine. Default: the hosts'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spine_delay: Option<Time>,
    /// Buffer in front of each link between switches, and from a switch to a host; `BDP` is the link's capacity times `rtt`.
    #[serde(default)]
    pub buffer: Buffer,
    /// Buffer of a host's own link, which is its memory. Default: 2MB.
    #[serde(default = "host_buffer")]
    pub host_buffer: Buffer,
    /// The round-trip time that `BDP` refers to. Default: the longest of any flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Time>,
    /// The queue of each link.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The router law of each link, hosts' own among them.
    #[serde(default)]
    pub router: RouterSpec,
    /// How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.
    #[serde(default)]
    pub share: ShareSpec,
    /// Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they
    /// come. Not together with `share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// A fat tree of switches with `k` ports (Al-Fares 2008): `k` pods of `k/2` edge and `k/2` aggregation switches, `(k/2)^2` core switches and
/// `k^3/4` hosts, with as much capacity at each stage. Nodes are `h0`, ..., `pod0-edge0`, ..., `pod0-agg0`, ..., and `core0`, ...; links are
/// named by their ends, `h0->pod0-edge0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of each switch: even.
    pub k: u32,
    /// Capacity of each link, both ways.
    pub rate: Rate,
    /// One-way propagation delay of each link.
    pub delay: Time,
    /// Buffer in front of each link between switches, and from a switch to a host; `BDP` is the link's capacity times `rtt`.
    #[serde(default)]
    pub buffer: Buffer,
    /// Buffer of a host's own link, which is its memory. Default: 2MB.
    #[serde(default = "host_buffer")]
    pub host_buffer: Buffer,
    /// The round-trip time that `BDP` refers to. Default: the longest of any flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Time>,
    /// The queue of each link.
    #[serde(default)]
    pub queue: QueueSpec,
    /// The router law of each link, hosts' own among them.
    #[serde(default)]
    pub router: RouterSpec,
    /// How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.
    #[serde(default)]
    pub share: ShareSpec,
    /// Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they
    /// come. Not together with `share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

fn host_buffer() -> Buffer {
    Buffer::Bytes(Bytes::new(2_000_000))
}

/// Any network of named nodes. Packets take the path of least delay, or of least weight if links have weights. Of equal paths between two
/// nodes each flow takes one, by a hash of its group's name, its number and the seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The links; their ends name the nodes.
    #[serde(default)]
    pub links: Vec<Link>,
    /// In place of `links` a file of them, relative to the scenario's folder: GraphML as networkx writes it, whose edges have `rate` (or
    /// `capacity`) and `delay`, or CSV (with commas, semicolons or tabs) with columns `source`, `target`, `rate` and `delay`. Both may also say
    /// `weight`, `name`, `buffer`, `queue`, `router`, `priority`, `medium` and `duplex`. Edges of an undirected graph lead both ways, and so do
    /// rows of CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Links that do not say `duplex` lead one way, from the first node to the second. Default: as the GraphML file says; false otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directed: Option<bool>,
    /// The file's column or attribute that is the capacity. Default: `rate` or `capacity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_key: Option<String>,
    /// The unit of capacities in the file that have none: `"bps"`, `"kbps"`, `"Mbps"`, `"Gbps"` or `"Tbps"`. Default: they are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_unit: Option<String>,
    /// The file's column or attribute that is the one-way propagation delay. Default: `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_key: Option<String>,
    /// The unit of delays in the file that have none, such as `"ms"`. Default: they are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_unit: Option<String>,
    /// The file's column or attribute that is the weight. Default: `weight`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_key: Option<String>,
    /// Columns of a CSV file that are left alone; any other unknown column is refused. `"*"` stands for all unknown columns. Unknown
    /// attributes of GraphML are left alone anyway; one that is named here is, too, if it is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_columns: Vec<String>,
    /// Capacity of the file's links that name none, as are the following.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<LinkRate>,
    /// One-way propagation delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// Weight, by which routes go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<Weight>,
    /// Buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// Router law.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterSpec>,
    /// How the router law shares the link with traffic of other protocols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareSpec>,
    /// Packets that go before all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
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
    /// Name in results. Default: `from->to`, and `from->to#2` of a second link between the same nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Capacity.
    pub rate: LinkRate,
    /// One-way propagation delay.
    pub delay: Time,
    /// What it costs to take the link. If one link has a weight, all need one, and packets take the path whose weights have the least
    /// sum. Default: paths go by delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<Weight>,
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
    /// Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they
    /// come. Not together with `share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Flows that do not obey are found by tests and isolated (Katabi 2002, section 7): `{}` for all defaults. For links with a router law of
    /// XCP or RCP. Default: nobody is tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<Police>,
    /// Packets that the link loses, copies, holds back or sends another way once they have crossed it. Default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impairments: Option<Impairments>,
    /// Links that name the same medium share it: one of them sends at a time, in turn. Default: a medium of its own for each
    /// direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
    /// The same link also leads back, as `to->from` or `name.reverse`.
    #[serde(default = "yes")]
    pub duplex: bool,
}

fn yes() -> bool {
    true
}
