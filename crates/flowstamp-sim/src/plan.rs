//! What a laid-out network consists of.

use crate::application::Process;
use crate::flow_list::FlowList;
use crate::medium::{Capacity, VaryingDelay, dcf};
use crate::results::Named;
use crate::scenario::{Access, Impairments, Priority, Weight};
use crate::workload::{ArrivalProcess, SizeLaw};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{QueueSpec, RouterSpec, SenderSpec, ShareSpec};
use flowstamp_laws::share::police;
use flowstamp_laws::units::{Rate, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// What it costs to take the link, where routes go by weights; else they go by delay.
    pub weight: Option<Weight>,
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
    /// Who is tested on it.
    pub police: Option<police::Params>,
    /// With whom it shares its medium.
    pub medium: Medium,
    /// A flow governs its rate.
    pub governed: bool,
    /// What becomes of packets that have crossed it.
    pub impairments: Option<Impairments>,
    /// Its delay over time, where that varies.
    pub varying_delay: Option<VaryingDelay>,
    /// When it is down and its packets are lost, in their order.
    pub outages: Vec<(Time, Time)>,
    /// It is down at times and holds its packets then.
    pub holds: bool,
}

impl LinkPlan {
    /// What becomes of packets at its end is not only that they go on.
    #[must_use]
    pub fn is_impaired(&self) -> bool {
        self.impairments.is_some() || !self.outages.is_empty()
    }

    /// The delay of all packets alike: none where each has its own, which is said by the impairments.
    #[must_use]
    pub fn line_delay(&self) -> Time {
        let own = self.impairments.as_ref().is_some_and(Impairments::have_delays);
        if own { Time::ZERO } else { self.delay }
    }
}

/// With whom a link shares its medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// With nobody.
    #[default]
    Own,
    /// With the other links of this number, in turn.
    Turns(u32),
    /// With the other interfaces of a cell: the link is an interface.
    Cell {
        /// Index into [`Network::cells`].
        cell: u32,
        /// Number of its node there.
        station: u32,
    },
}

impl Medium {
    /// With anybody.
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
    /// Its nodes.
    pub stations: Vec<StationPlan>,
}

/// A node of a cell.
#[derive(Clone, Debug)]
pub struct StationPlan {
    /// The node's name.
    pub name: String,
    /// Its interface.
    pub link: u32,
    /// What its radio is like at the beginning.
    pub params: dcf::StationParams,
    /// Its data rate from instants on, where it varies.
    pub rates: Vec<(Time, Rate)>,
}

/// A hop that is not over the air, in [`Network::receivers`].
pub const NOBODY: u32 = u32::MAX;

/// Where packets of a flow go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Index into [`Network::routes`] of the first link for data.
    pub data: u32,
    /// Likewise for acks.
    pub acks: u32,
}

/// Flows take other routes, as a link has failed or returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reroute {
    /// From then on.
    pub time: Time,
    /// Where a route begins that is left, and the one that is taken in its place, in the order of the first.
    pub changes: Vec<(u32, u32)>,
}

impl Reroute {
    /// The route that is taken in place of one, if that is left.
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
    /// Its path.
    pub path: Path,
    /// When it starts.
    pub start: Time,
}

/// Flows that arrive in the run: at random, or as a file lists them.
#[derive(Clone, Debug)]
pub struct WebPlan {
    /// Index into [`Network::groups`].
    pub group: u32,
    /// Host pairs, used in turn: one list of them, or one for each `FlowList::pairs`.
    pub paths: Vec<Vec<Path>>,
    /// Which flows come.
    pub comes: Comes,
    /// Arrivals begin here.
    pub start: Time,
    /// And end here.
    pub stop: Time,
}

/// Which flows arrive.
#[derive(Clone, Debug)]
pub enum Comes {
    /// At random.
    Random {
        /// When.
        arrivals: ArrivalProcess,
        /// How large they are.
        sizes: SizeLaw,
    },
    /// Those of a list.
    Listed {
        /// The list.
        list: Arc<FlowList>,
        /// Index into `FlowList::order` of the next one.
        next: usize,
    },
}

impl WebPlan {
    /// When the first flow comes.
    pub fn first(&mut self) -> Time {
        match &mut self.comes {
            Comes::Random { arrivals, .. } => self.start + arrivals.gap(),
            Comes::Listed { list, .. } => self.start.saturating_add(list.rows[list.order[0] as usize].start),
        }
    }
}

/// A group of flows with its name in results; `each_hop` makes several of one `FlowGroup` of the scenario.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Name in results.
    pub name: String,
    /// Index into `flows` of the scenario.
    pub spec: usize,
    /// Its law, with what the scenario leaves open and follows from the paths; of a list, also those that it names.
    pub laws: Vec<SenderSpec>,
    /// Router links that its data takes, each once.
    pub links: Vec<u32>,
    /// Those links in their order, of each way that its flows go.
    pub ways: Vec<Vec<u32>>,
    /// The router link that its flow governs, and what that can carry.
    pub governs: Option<(u32, Rate)>,
    /// Round-trip propagation time, seconds: the mean of its flows'.
    pub path_rtt_s: f64,
    /// Mean size of its flows, bytes of payload; `None` if they are endless.
    pub mean_size_bytes: Option<f64>,
    /// What flows that arrive in the run bring to each of `links` on average, headers included, bits per second.
    pub offered_bps: Vec<f64>,
    /// Retransmission timeout before the first RTT sample.
    pub initial_rto: Time,
    /// The largest retransmission timeout.
    pub max_rto: Time,
    /// How long each of its flows sends new data; empty where that is not limited.
    pub lifetimes: Vec<Time>,
    /// How fast its hosts' own links are, if they have some.
    pub access: Option<Rate>,
    /// All its flows have the same round-trip propagation time.
    pub one_rtt: bool,
    /// Whether its flows may fall into step with a bottleneck.
    pub phase: Option<Phase>,
    /// Its flows, if a file lists them.
    pub list: Option<Arc<FlowList>>,
    /// What each of its flows produces, message by message or as datagrams.
    pub application: Option<Process>,
    /// The constant rate of payload of applications of flows with a window.
    pub rate: Option<Rate>,
    /// Up to so much later than it may does a packet leave its host.
    pub send_jitter: Time,
}

impl GroupPlan {
    /// The laws of its flows between one pair of nodes.
    #[must_use]
    pub fn laws_between(&self, pair: u32) -> Vec<&SenderSpec> {
        self.list
            .as_ref()
            .map_or_else(|| self.laws.iter().collect(), |list| list.laws_between(pair).collect())
    }
}

/// How a group may be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// It sends datagrams by a bare clock.
    pub datagrams: bool,
    /// Index of the bottleneck.
    pub link: u32,
    /// How long flows must be looked at.
    pub span: Time,
    /// How long the bottleneck takes for a packet, rounded up to microseconds; of datagrams for as many as their default jitter has.
    pub packet: Time,
}

/// What a run may need.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// At its height, bytes.
    pub bytes: u64,
    /// As long as its results are kept, bytes.
    pub kept: u64,
}

impl Needs {
    /// What runs may need of which at least one is under way at a time, and whose results are kept, bytes.
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
    /// For each link of `routes` the station of its cell that it leads to, or [`NOBODY`]; empty where there are no cells.
    pub receivers: Vec<u32>,
    /// When flows take other routes, in the order of time.
    pub reroutes: Vec<Reroute>,
    /// Groups.
    pub groups: Vec<GroupPlan>,
    /// Flows known before the run.
    pub flows: Vec<FlowPlan>,
    /// Flows that arrive in the run.
    pub web: Vec<WebPlan>,
    /// What the scenario leaves open and follows from the paths, by key.
    pub assumed: Named<String>,
    /// What the scenario says and probably does not mean.
    pub warnings: Vec<String>,
    /// Links whose router closes a loop with its flows.
    pub loops: Vec<Loop>,
    /// How much memory its run may need.
    pub needs: Needs,
}

/// A link whose router law has gains, and the flows that obey it.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Name of the link.
    pub link: String,
    /// The law, as the scenario has it.
    pub router: RouterSpec,
    /// Their propagation RTTs, each with the number of flows that have it; empty where no flow obeys.
    pub rtts: Vec<(Time, u32)>,
    /// What the link carries, the mean over the run where it varies.
    pub capacity: Rate,
}

/// Lasting flows that go one way through links whose routers they obey.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// Those links in their order, as numbers in [`Network::links`], each with the time that data need to get there without queues.
    pub links: Vec<(u32, Time)>,
    /// Their propagation RTT.
    pub rtt: Time,
    /// How many there are.
    pub flows: u32,
}

impl Network {
    /// The ways of all flows that are known before the run and obey some link of [`Self::loops`].
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
            for link in route(flow.path.data) {
                let router = self.links.get(link as usize).map(|plan| &plan.router);
                if router.is_some_and(|it| it.traits().gains.is_some() && it.header() == law.header()) {
                    links.push((link, after));
                }
                after += delay(link);
            }
            let rtt = route(flow.path.acks).map(delay).fold(after, |sum, delay| sum + delay);
            if !links.is_empty() {
                *found.entry((links, rtt)).or_default() += 1;
            }
        }
        found.into_iter().map(|((links, rtt), flows)| Way { links, rtt, flows }).collect()
    }
}
