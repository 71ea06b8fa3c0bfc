//! The plan of a network: links, cells, routes, groups and flows, laid out before the run.

use crate::application::Process;
use crate::flow_list::FlowList;
use crate::medium::{Capacity, VaryingDelay, dcf};
use crate::release::Release;
use crate::results::Named;
use crate::scenario::{Access, Impairments, PfcThresholds, Priority, Weight};
use crate::workload::{ArrivalProcess, SizeLaw};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{QueueSpec, RouterSpec, SenderSpec, ShareSpec};
use flowstamp_laws::share::police;
use flowstamp_laws::units::{Rate, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// One directed link between routers.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Name in results.
    pub name: String,
    /// Capacity.
    pub capacity: Capacity,
    /// The router law is told the capacity.
    pub told: bool,
    /// Path of the scenario's table that has the link's laws.
    pub table: String,
    /// One-way propagation delay.
    pub delay: Time,
    /// Routing weight of the link, where routes go by weight; otherwise they go by delay.
    pub weight: Option<Weight>,
    /// Buffer.
    pub limit: Limit,
    /// Queue law.
    pub queue: QueueSpec,
    /// Router law.
    pub router: RouterSpec,
    /// How the router law shares the link with other traffic.
    pub share: ShareSpec,
    /// Packets with priority.
    pub priority: Priority,
    /// Police of the link.
    pub police: Option<police::Params>,
    /// The medium.
    pub medium: Medium,
    /// A flow sets the link's rate.
    pub governed: bool,
    /// Impairments of packets at the end of the link.
    pub impairments: Option<Impairments>,
    /// Delay over time, where it varies.
    pub varying_delay: Option<VaryingDelay>,
    /// Outages (begin, end) that lose packets, in order.
    pub outages: Vec<(Time, Time)>,
    /// The link has outages that hold its packets.
    pub holds: bool,
    /// Priority flow control of the link.
    pub pfc: Option<PfcPlan>,
    /// Links with priority flow control that lead to the entry of this one.
    pub fed_by: Vec<u32>,
    /// Throughput advice.
    pub scone: Option<SconePlan>,
}

/// Throughput advice of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SconePlan {
    /// This signal.
    Policy(u8),
    /// The rate of the RCP router.
    Router,
}

/// Priority flow control of a link: what its far end does about the bytes that came over it and wait there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcPlan {
    /// The thresholds that the scenario gives.
    pub given: PfcThresholds,
    /// The link that carries pause frames to the sender.
    pub back: u32,
    /// A pause is sent above this many bytes.
    pub xoff: u64,
    /// The link may go on at this many bytes.
    pub xon: u64,
    /// Room above `xoff`, bytes.
    pub headroom: u64,
}

impl LinkPlan {
    /// Path of a key in the scenario's table of the link.
    #[must_use]
    pub fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.table)
    }

    /// Whether the link's packets wait one by one, because a pause may stop it, or because its node counts the bytes of
    /// other links.
    #[must_use]
    pub fn is_held(&self) -> bool {
        cfg!(feature = "full") && (self.pfc.is_some() || !self.fed_by.is_empty())
    }

    /// Whether packets at the end of the link may be lost, copied, marked or delayed.
    #[must_use]
    pub fn is_impaired(&self) -> bool {
        self.impairments.is_some() || !self.outages.is_empty()
    }

    /// Whether packets are handled one by one at the end of the link: it is impaired, or writes throughput advice.
    #[must_use]
    pub fn acts_at_its_end(&self) -> bool {
        self.is_impaired() || self.scone.is_some()
    }

    /// The propagation delay common to all packets. It is zero where each packet has its own delay, which the
    /// impairments add.
    #[must_use]
    pub fn line_delay(&self) -> Time {
        let own = self.impairments.as_ref().is_some_and(Impairments::have_delays);
        if own { Time::ZERO } else { self.delay }
    }
}

/// The medium of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// A medium of its own.
    #[default]
    Own,
    /// A medium of its own, for a link that [holds its packets](LinkPlan::is_held).
    Held,
    /// A medium shared in turn with the other links of this number.
    Turns(u32),
    /// A cell: the link is one of its interfaces.
    Cell {
        /// Index into [`Network::cells`].
        cell: u32,
        /// Number of its node in the cell.
        station: u32,
    },
}

impl Medium {
    /// Whether other links share the medium.
    #[must_use]
    pub fn is_shared(self) -> bool {
        self != Self::Own
    }
}

/// A cell whose interfaces are links.
#[derive(Clone, Debug)]
pub struct CellPlan {
    /// Name in results.
    pub name: String,
    /// MAC and PHY.
    pub params: dcf::Params,
    /// The nodes of the cell.
    pub stations: Vec<StationPlan>,
}

/// A node of a cell.
#[derive(Clone, Debug)]
pub struct StationPlan {
    /// The node's name.
    pub name: String,
    /// The node's interface, as a link number.
    pub link: u32,
    /// Parameters of the radio at the beginning.
    pub params: dcf::StationParams,
    /// Data rate over time, where it varies: (from, rate).
    pub rates: Vec<(Time, Rate)>,
}

/// Marks a hop that is not over the air, in [`Network::receivers`].
pub const NOBODY: u32 = u32::MAX;

/// The routes of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRoutes {
    /// Index into [`Network::routes`] of the first link for data.
    pub data: u32,
    /// Index into [`Network::routes`] of the first link for acks.
    pub acks: u32,
}

/// A route that packets of a flow may take instead of the flow's first one. Bounds of the routes of a flow grow up to
/// `u32::MAX`, and a random `u32` picks the first route whose bound is not below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The largest random number that picks this route.
    pub bound: u32,
    /// Index into [`Network::routes`].
    pub route: u32,
}

/// A change of routes, because a link has failed or returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reroute {
    /// Time of the change.
    pub time: Time,
    /// Pairs of the route that is left and the one that replaces it, sorted by the first.
    pub changes: Vec<(u32, u32)>,
}

impl Reroute {
    /// The route that replaces `route`, if it is left.
    #[must_use]
    pub fn of(&self, route: u32) -> Option<u32> {
        let at = self.changes.binary_search_by_key(&route, |(before, _)| *before).ok()?;
        Some(self.changes[at].1)
    }
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
    /// Routes of the flow.
    pub routes: FlowRoutes,
    /// When the flow starts.
    pub start: Time,
}

/// Flows that arrive during the run, at random or as a file lists them.
#[derive(Clone, Debug)]
pub struct ArrivalPlan {
    /// Index into [`Network::groups`].
    pub group: u32,
    /// Routes of host pairs, used in turn: one list, or one for each of `FlowList::pairs`.
    pub routes: Vec<VecDeque<FlowRoutes>>,
    /// The flows that arrive.
    pub comes: Comes,
    /// When arrivals begin.
    pub start: Time,
    /// When arrivals end.
    pub stop: Time,
}

/// The flows that arrive.
#[derive(Clone, Debug)]
pub enum Comes {
    /// Random arrivals.
    Random {
        /// Arrival process.
        arrivals: ArrivalProcess,
        /// Distribution of sizes.
        sizes: SizeLaw,
    },
    /// The flows of a list.
    Listed {
        /// The list.
        list: Arc<FlowList>,
        /// Index into `FlowList::order` of the next one.
        next: usize,
    },
}

impl ArrivalPlan {
    /// When the first flow arrives.
    pub fn first(&mut self) -> Time {
        match &mut self.comes {
            Comes::Random { arrivals, .. } => self.start + arrivals.gap(),
            Comes::Listed { list, .. } => self.start.saturating_add(list.rows[list.order[0] as usize].start),
        }
    }
}

/// A group of flows with its name in results. With `each_hop`, one `FlowGroup` of the scenario becomes several groups.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Name in results.
    pub name: String,
    /// Index into `flows` of the scenario.
    pub spec: usize,
    /// The group's law, with values that the scenario leaves open and the paths determine. For a list, also the laws
    /// that it names.
    pub laws: Vec<SenderSpec>,
    /// Router links that the group's data take, each once.
    pub links: Vec<u32>,
    /// For each route of the flows, these links in order.
    pub ways: Vec<Vec<u32>>,
    /// The router link that the group's flow governs, and the link's capacity.
    pub governs: Option<(u32, Rate)>,
    /// Propagation round-trip time, seconds: the mean over the group's flows.
    pub path_rtt_s: f64,
    /// Mean size of the flows, bytes of payload; `None` if they are endless.
    pub mean_size_bytes: Option<f64>,
    /// Mean load that flows arriving during the run offer to each of `links`, headers included, bits per second.
    pub offered_bps: Vec<f64>,
    /// Retransmission timeout before the first RTT sample.
    pub initial_rto: Time,
    /// The largest retransmission timeout.
    pub max_rto: Time,
    /// How long each flow sends new data; empty where that is not limited.
    pub lifetimes: Vec<Time>,
    /// Rate of the hosts' own links, if there are any.
    pub access: Option<Rate>,
    /// All flows have the same propagation round-trip time.
    pub one_rtt: bool,
    /// How the flows may become phase-locked to a bottleneck, if they may.
    pub phase: Option<Phase>,
    /// The flows, if a file lists them.
    pub list: Option<Arc<FlowList>>,
    /// The application of each flow, which produces messages or datagrams.
    pub application: Option<Process>,
    /// Constant rate of payload that applications of flows with a window produce.
    pub rate: Option<Rate>,
    /// When the data of each flow become available, by its number within the group.
    pub release: Option<Arc<Vec<Release>>>,
    /// The collective operations that the flows carry out.
    pub collective: Option<CollectivePlan>,
    /// Upper bound of the random delay before a packet leaves its host.
    pub send_jitter: Time,
}

/// Collective operations, one after the other.
#[derive(Clone, Debug)]
pub struct CollectivePlan {
    /// Messages that each flow sends in an operation, one in each step.
    pub steps: u32,
    /// Payload of a message, bytes.
    pub message: u64,
    /// Number of operations.
    pub operations: u32,
    /// Time from the end of an operation to the start of the next.
    pub gap: Time,
}

impl GroupPlan {
    /// The laws of the flows between one pair of nodes.
    #[must_use]
    pub fn laws_between(&self, pair: u32) -> Vec<&SenderSpec> {
        self.list
            .as_ref()
            .map_or_else(|| self.laws.iter().collect(), |list| list.laws_between(pair).collect())
    }

    /// The router link that the group's flow governs, and the link's capacity. Without `full` there is none, and the
    /// compiler leaves out what follows from it.
    #[inline]
    #[must_use]
    pub fn governs(&self) -> Option<(u32, Rate)> {
        self.governs.filter(|_| cfg!(feature = "full"))
    }
}

/// How a group's flows may be phase-locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The flows send datagrams by a clock without jitter.
    pub datagrams: bool,
    /// Index of the bottleneck.
    pub link: u32,
    /// How long flows must be observed.
    pub span: Time,
    /// Transmission time of a packet at the bottleneck, rounded up to microseconds. For datagrams it is the time for as
    /// many packets as their default jitter spans.
    pub packet: Time,
}

/// Memory that a run may need.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Peak memory, bytes.
    pub bytes: u64,
    /// Memory while the results are kept, bytes.
    pub kept: u64,
}

impl Needs {
    /// Memory that several runs need, bytes, if only one runs at a time and all results are kept.
    #[must_use]
    pub fn together(all: &[Self]) -> u64 {
        let kept = all.iter().fold(0u64, |sum, needs| sum.saturating_add(needs.kept));
        let most = all.iter().map(|needs| needs.bytes.saturating_sub(needs.kept)).max().unwrap_or(0);
        kept.saturating_add(most)
    }
}

/// The network of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Directed links between routers, numbered from 0.
    pub links: Vec<LinkPlan>,
    /// Directed access links, numbered on from the last router link. They have no law and drop nothing.
    pub access: Vec<Access>,
    /// Link numbers of all routes, each ended by [`END`].
    pub routes: Vec<u32>,
    /// Cells.
    pub cells: Vec<CellPlan>,
    /// For each link of `routes` the station of its cell that it leads to, or [`NOBODY`]; empty where there are no
    /// cells.
    pub receivers: Vec<u32>,
    /// For flows whose packets are balanced over several routes, these routes by the first of them.
    pub spreads: BTreeMap<u32, Vec<Choice>>,
    /// Changes of routes, in the order of time.
    pub reroutes: Vec<Reroute>,
    /// Groups.
    pub groups: Vec<GroupPlan>,
    /// Flows planned before the run.
    pub flows: Vec<FlowPlan>,
    /// Flows that arrive during the run.
    pub arrivals: Vec<ArrivalPlan>,
    /// Values that the scenario leaves open and the paths determine, by key.
    pub assumed: Named<String>,
    /// Warnings about the scenario.
    pub warnings: Vec<String>,
    /// Links whose router law forms a control loop with its flows.
    pub loops: Vec<Loop>,
    /// Memory that the run may need.
    pub needs: Needs,
}

/// A link whose router law has gains, and the flows that follow it.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Name of the link.
    pub link: String,
    /// The router law, as in the scenario.
    pub router: RouterSpec,
    /// Propagation RTTs of the flows, each with the number of flows that have it; empty where no flow follows the law.
    pub rtts: Vec<(Time, u32)>,
    /// Mean capacity of the link over the run.
    pub capacity: Rate,
}

/// Planned flows that take the same route through links whose router laws they follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// Those links in order, as numbers in [`Network::links`], each with the propagation delay of data up to it.
    pub links: Vec<(u32, Time)>,
    /// Propagation RTT of the flows.
    pub rtt: Time,
    /// Number of flows.
    pub flows: u32,
}

impl Network {
    /// The routes of all planned flows that follow some link of [`Self::loops`].
    #[must_use]
    pub fn ways(&self) -> Vec<Way> {
        let delay = |link: u32| match self.links.get(link as usize) {
            Some(plan) => plan.delay,
            None => self.access[link as usize - self.links.len()].delay,
        };
        let route = |from: u32| self.routes[from as usize..].iter().copied().take_while(|link| *link != END);
        let mut found: BTreeMap<(Vec<(u32, Time)>, Time), u32> = BTreeMap::new();
        for flow in &self.flows {
            let Some(law) = self.groups[flow.group as usize].laws.first() else { continue };
            let (mut links, mut after) = (Vec::new(), Time::ZERO);
            for link in route(flow.routes.data) {
                let router = self.links.get(link as usize).map(|plan| &plan.router);
                if router.is_some_and(|it| it.traits().gains.is_some() && it.header() == law.header()) {
                    links.push((link, after));
                }
                after += delay(link);
            }
            let rtt = route(flow.routes.acks).map(delay).fold(after, |sum, delay| sum + delay);
            if !links.is_empty() {
                *found.entry((links, rtt)).or_default() += 1;
            }
        }
        found.into_iter().map(|((links, rtt), flows)| Way { links, rtt, flows }).collect()
    }
}
