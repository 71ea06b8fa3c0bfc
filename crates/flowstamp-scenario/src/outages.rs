//! Links that fail and return during a run, and how routes react.

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

/// How routes follow links that fail and return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Routing {
    /// Whether routes are computed anew, without the links that are down. A flow without another route keeps its
    /// own.
    pub reroute: bool,
    /// Time from the failure or return of a link until all routes follow.
    pub convergence: Time,
}

impl Default for Routing {
    fn default() -> Self {
        Self { reroute: true, convergence: Time::ZERO } // as ns-3's global routing with RespondToInterfaceEvents
    }
}

impl Routing {
    /// Whether all values are the defaults.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
