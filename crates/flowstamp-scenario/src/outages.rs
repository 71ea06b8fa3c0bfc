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
    /// The link fails.
    pub from: Time,
    /// It returns. Default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Its way back, `b->a` or `name.reverse`, fails with it.
    #[serde(default = "yes")]
    pub both_ways: bool,
    /// What becomes of packets that wait for the link or are on it.
    #[serde(default)]
    pub on_failure: OnFailure,
}

fn yes() -> bool {
    true
}

/// What becomes of the packets of a link that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// They are lost: those on their way, and all that leave the transmitter, which goes on, until the link returns.
    #[default]
    Lose,
    /// Nothing is lost: the transmitter stops and the queue waits. Packets that have left it arrive.
    Hold,
}

/// What routes do when links fail and return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Routing {
    /// Routes are computed anew, without the links that are down. A flow without another way keeps its own. If false, all flows keep theirs.
    pub reroute: bool,
    /// How long after a link fails or returns all routes follow.
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
