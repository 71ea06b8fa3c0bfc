//! What a laid-out network consists of.

use crate::medium::Capacity;
use crate::results::Named;
use crate::scenario::{Access, Priority};
use crate::workload::{ArrivalProcess, SizeLaw};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{QueueSpec, RouterSpec, SenderSpec, ShareSpec};
use flowstamp_laws::units::{Rate, Time};

/// One directed link between routers.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Name in results.
    pub name: String,
    /// What it can carry.
    pub capacity: Capacity,
    /// The router law is told of that.
    pub told: bool,
    /// One-way propagation delay.
    pub delay: Time,
    /// Buffer.
    pub limit: Limit,
    /// Queue law.
    pub queue: QueueSpec,
    /// Router law.
    pub router: RouterSpec,
    /// How it shares the link.
    pub share: ShareSpec,
    /// Packets that go before others.
    pub priority: Priority,
    /// The medium that it shares with other links: one number for each.
    pub medium: Option<u32>,
    /// A flow governs its rate.
    pub governed: bool,
}

/// Where packets of a flow go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Index into [`Network::routes`] of the first link for data.
    pub data: u32,
    /// Likewise for acks.
    pub acks: u32,
}

/// Marks the end of a route: the packet has arrived.
pub const END: u32 = u32::MAX;

/// A flow that is known before the run.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Index into [`Network::groups`].
    pub group: u32,
    /// Number within the group.
    pub index: u32,
    /// Its path.
    pub path: Path,
    /// When it starts.
    pub start: Time,
}

/// Flows that arrive at random.
#[derive(Clone, Debug)]
pub struct WebPlan {
    /// Index into [`Network::groups`].
    pub group: u32,
    /// Host pairs, used in turn.
    pub paths: Vec<Path>,
    /// When flows arrive.
    pub arrivals: ArrivalProcess,
    /// How large they are.
    pub sizes: SizeLaw,
    /// Arrivals begin here.
    pub start: Time,
    /// And end here.
    pub stop: Time,
}

/// A group of flows with its name in results; `each_hop` makes several of one `FlowGroup` of the scenario.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Name in results.
    pub name: String,
    /// Index into `flows` of the scenario.
    pub spec: usize,
    /// Its law, with what the scenario leaves open and follows from the paths.
    pub law: SenderSpec,
    /// Router links that its data takes.
    pub links: Vec<u32>,
    /// The router link that its flow governs, and what that can carry.
    pub governs: Option<(u32, Rate)>,
    /// Round-trip propagation time, seconds: the mean of its flows'.
    pub path_rtt_s: f64,
    /// Mean size of its flows, bytes of payload; `None` if they are endless.
    pub mean_size_bytes: Option<f64>,
    /// What flows that arrive at random bring on average, headers included, bits per second.
    pub offered_bps: f64,
    /// Retransmission timeout before the first RTT sample.
    pub initial_rto: Time,
}

/// The network of a scenario.
#[derive(Clone, Debug)]
pub struct Network {
    /// Directed links between routers, numbered from 0.
    pub links: Vec<LinkPlan>,
    /// Directed access links, numbered on from the last router link. They have no law and drop nothing.
    pub access: Vec<Access>,
    /// Link numbers of all routes, each ended by [`END`].
    pub routes: Vec<u32>,
    /// Groups.
    pub groups: Vec<GroupPlan>,
    /// Flows known before the run.
    pub flows: Vec<FlowPlan>,
    /// Arrival processes.
    pub web: Vec<WebPlan>,
    /// What the scenario leaves open and follows from the paths, by key.
    pub assumed: Named<String>,
    /// What the scenario says and probably does not mean.
    pub warnings: Vec<String>,
}
