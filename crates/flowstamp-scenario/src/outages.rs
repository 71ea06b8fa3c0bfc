//! Links that fail and return during a run, how routes react, and how packets are balanced over equal routes.

use flowstamp_laws::units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time during which a link carries nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Name of the link, such as `a->b`.
    pub link: String,
    /// When the link fails.
    pub from: Time,
    /// When the link returns. Default: never.
    pub until: Option<Time>,
    /// Whether the way back, `b->a` or `name.reverse`, fails with it.
    #[serde(default = "yes")]
    pub both_ways: bool,
    /// The fate of packets that wait for the link or are on it.
    #[serde(default)]
    pub on_failure: OnFailure,
}

fn yes() -> bool {
    true
}

/// The fate of the packets of a link that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Packets on their way are lost. The transmitter goes on, and all packets that it sends are lost until the
    /// link returns.
    #[default]
    Lose,
    /// Nothing is lost: the transmitter stops and the queue waits. Packets that have left it arrive.
    Hold,
}

/// How packets are balanced over paths of equal cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Balance {
    /// Equal-cost multipath (RFC 2992): a hash of the flow picks one path, which all its packets take.
    #[default]
    Ecmp,
    /// Packet spraying (Dixit et al. 2013): each packet takes a path at random. Packets then arrive out of order, which
    /// loss detection by duplicate acks mistakes for losses.
    Spray,
    /// Flowlets (Vanini et al. 2017, "LetFlow"): after a pause of more than `flowlet_gap` a flow takes a path at random.
    Flowlet,
}

/// How routes follow links that fail and return, and how packets are balanced over equal routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Routing {
    /// Whether routes are computed anew, without the links that are down. A flow without another route keeps its
    /// own.
    pub reroute: bool,
    /// Time from the failure or return of a link until all routes follow.
    pub convergence: Time,
    /// How packets are balanced over paths of equal cost, data and acks alike. At each node, all links on such paths are
    /// equally likely. Flows that govern a link keep one path.
    pub balance: Balance,
    /// With `balance = "flowlet"`, the least pause between two packets of a flow that lets it change its path. It is
    /// measured where packets leave the flow's host.
    pub flowlet_gap: Time,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            reroute: true, // as ns-3's global routing with RespondToInterfaceEvents
            convergence: Time::ZERO,
            balance: Balance::Ecmp,
            flowlet_gap: Time::from_micros(500), // LetFlow section 4
        }
    }
}

impl Routing {
    /// Whether all values are the defaults.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
