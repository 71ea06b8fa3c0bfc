//! From a scenario to a laid-out network: links, routes, flows and arrival processes, all checked.

mod applications;
mod assumed;
mod budget;
mod capacity;
mod cells;
mod datacentre;
mod delays;
mod edges;
mod groups;
mod lists;
mod outages;
mod paths;
mod patterns;
mod phase;
mod plan;
mod topology;

pub use budget::{Needs, size};
pub use plan::{
    CellPlan, Comes, END, FlowPlan, GroupPlan, LinkPlan, Loop, Medium, NOBODY, Network, Path, Reroute,
    StationPlan, WebPlan,
};

use crate::ScenarioError;
use crate::link::Classifier;
use crate::results::Named;
use crate::scenario::{Access, Loaded, Priority, Scenario};
use assumed::PathRtts;
use datacentre::Laid;
use flowstamp_laws::registry::{RouterSpec, ShareSpec};
use flowstamp_laws::share::Weights;
use flowstamp_laws::units::{Bytes, Time};
use lists::Placed;
use outages::{Demand, Outages};
use std::collections::{BTreeMap, BTreeSet};

/// The most samples of one quantity, and the most flows of a group, that a run may have: what memory holds.
const MOST_SAMPLES: u64 = 10_000_000;
const MOST_FLOWS: u32 = 1_000_000;
const MOST_WEB_FLOWS: f64 = 1e8;

type Result<T> = std::result::Result<T, ScenarioError>;

fn error<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T> {
    Err(ScenarioError::new(key, message))
}

/// Refuses what a build without the feature `full` has not. What comes after it is not compiled into such a build either.
#[inline(always)]
fn of_full(key: impl Into<String>, what: &str) -> Result<()> {
    if cfg!(feature = "full") { Ok(()) } else { error(key, format!("this build has no {what}")) }
}

impl Network {
    /// Lays out the network of `loaded` with this seed.
    ///
    /// # Errors
    /// Whatever cannot be: a rate of zero, no path, a start after the end.
    pub fn new(loaded: &Loaded, seed: u64) -> Result<Self> {
        Self::within(loaded, seed, None)
    }

    /// The same, refused before any memory is taken if the run may need more than `memory` bytes.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn within(loaded: &Loaded, seed: u64, memory: Option<u64>) -> Result<Self> {
        Builder {
            loaded,
            memory,
            scenario: &loaded.scenario,
            seed,
            links: Vec::new(),
            access: Vec::new(),
            routes: Vec::new(),
            cells: Vec::new(),
            nodes: Vec::new(),
            receivers: Vec::new(),
            rtts: Vec::new(),
            lists: BTreeMap::new(),
            carries: BTreeSet::new(),
            parallel: BTreeSet::new(),
            outages: Outages::default(),
            demands: Vec::new(),
            graph: None,
        }
        .build()
        .map_err(|e| loaded.in_file(e))
        .map_err(|e| if e.source.is_empty() { e.at(&loaded.source) } else { e })
    }
}

struct Builder<'a> {
    loaded: &'a Loaded,
    /// What the run may have, bytes.
    memory: Option<u64>,
    scenario: &'a Scenario,
    seed: u64,
    links: Vec<LinkPlan>,
    access: Vec<Access>,
    routes: Vec<u32>,
    cells: Vec<CellPlan>,
    /// Of each cell's stations the node of the graph.
    nodes: Vec<Vec<usize>>,
    receivers: Vec<u32>,
    /// Of each router link.
    rtts: Vec<PathRtts>,
    /// Lists of flows by the number of their group, until it is placed.
    lists: BTreeMap<usize, Placed>,
    /// Links that data take, and those that they might take beside others of the same cost.
    carries: BTreeSet<u32>,
    parallel: BTreeSet<u32>,
    /// When links are down, and the flows whose routes follow that.
    outages: Outages,
    demands: Vec<Demand>,
    /// The links that the topology stands for, if it is not a dumbbell or a parking lot.
    graph: Option<Laid>,
}

impl Builder<'_> {
    fn build(mut self) -> Result<Network> {
        let s = self.scenario;
        if s.duration == Time::ZERO {
            return error("duration", "is 0s; it must be longer");
        }
        if s.warmup >= s.duration {
            return error(
                "warmup",
                format!("is {}; it must be shorter than duration, {}", s.warmup, s.duration),
            );
        }
        for (key, size) in [("packet", s.packet), ("ack", s.ack)] {
            if !(1..=65_535).contains(&size.get()) {
                return error(key, format!("is {size}; it must be 1B to 65535B"));
            }
        }
        if s.header >= s.packet {
            let message = format!("is {}; it must be less than packet, {}", s.header, s.packet);
            return error("header", message);
        }
        if let Some(every) = s.probes.every {
            if every == Time::ZERO {
                return error("probes.every", "is 0s; it must be above zero");
            }
            if s.duration.as_ps() / every.as_ps() > MOST_SAMPLES {
                return error(
                    "probes.every",
                    format!("is {every}; the run of {} may have {MOST_SAMPLES} samples", s.duration),
                );
            }
        }
        let given = [
            s.dumbbell.is_some(),
            s.parking_lot.is_some(),
            s.leaf_spine.is_some(),
            s.fat_tree.is_some(),
            s.graph.is_some(),
        ];
        const ONE_OF: &str = "give one of [dumbbell], [parking_lot], [leaf_spine], [fat_tree] and [graph]";
        match given.iter().filter(|given| **given).count() {
            0 => return error("", format!("no topology; {ONE_OF}")),
            1 => {}
            _ => return error("", format!("more than one topology; {ONE_OF}")),
        }
        let laid = self.laid()?;
        let mut core = match &laid {
            Some(laid) => self.graph(laid)?,
            None if s.dumbbell.is_some() => self.dumbbell()?,
            None => self.parking_lot()?,
        };
        self.graph = laid;
        if !s.wireless.is_empty() && s.graph.is_none() {
            return error(
                "wireless",
                "has cells of a graph, but there is none; give [graph], with links = [] if all is wireless",
            );
        }
        for plan in &self.links {
            let at = |kind: &str, k: &str| format!("{kind} of {}: {k}", plan.name);
            plan.router.check().map_err(|(k, m)| ScenarioError::new(at("router", k), m))?;
            plan.queue.check().map_err(|(k, m)| ScenarioError::new(at("queue", k), m))?;
            plan.share.check().map_err(|(k, m)| ScenarioError::new(at("share", k), m))?;
            if let Some(impairments) = &plan.impairments {
                impairments
                    .check_on(plan.delay)
                    .map_err(|(k, m)| ScenarioError::new(at("impairments", &k), m))?;
            }
            if !plan.told && plan.router.needs_capacity() {
                let law = plan.router.name();
                let message = match plan.medium {
                    Medium::Cell { .. } => {
                        let other = plan.router.blind();
                        let other =
                            other.map_or(String::new(), |other| format!("take \"{}\", or ", other.name()));
                        format!(
                            "\"{law}\" needs the link's capacity, which nobody knows in a cell; {other}say with `told` what it shall believe"
                        )
                    }
                    _ => format!(
                        "\"{law}\" needs the link's capacity, which rate.known = false keeps from it; leave out known"
                    ),
                };
                return error(format!("router of {}", plan.name), message);
            }
            if !plan.told && plan.share.params().is_some() {
                return error(
                    format!("share of {}", plan.name),
                    "divides the link's capacity, which rate.known = false keeps from it; leave out one of them",
                );
            }
            check_queue(plan, s.packet)?;
            let classes = Classifier::Protocol.classes();
            let one_queue = plan.share.params().is_some() && plan.share.build(classes).is_none();
            if one_queue && plan.queue.needs_events() {
                let (share, queue) = (plan.share.name(), plan.queue.name());
                return error(
                    format!("queue of {}", plan.name),
                    format!(
                        "\"{queue}\" decides as packets leave, which share = \"{share}\" has no event for; use \"wfq\" or \"drr\""
                    ),
                );
            }
            let other =
                [("share", plan.share.params().is_some()), ("priority", plan.priority != Priority::None)];
            if let (Some(_), Some((key, _))) = (plan.queue.two_queues(), other.iter().find(|o| o.1)) {
                let queue = plan.queue.name();
                return error(
                    format!("queue of {}", plan.name),
                    format!(
                        "\"{queue}\" is two queues with a scheduler, and cannot be together with {key}; leave out one of them"
                    ),
                );
            }
            if plan.share.params().is_some() && matches!(plan.router, RouterSpec::None(_)) {
                return error(
                    format!("share of {}", plan.name),
                    "is for a link with a router law; give router, or leave out share",
                );
            }
            if one_queue && plan.share.params().is_some_and(|p| p.own_droptail) {
                return error(
                    format!("share of {}: own_droptail", plan.name),
                    format!(
                        "is true, but share = \"{}\" has one queue for all; give \"wfq\" or \"drr\"",
                        plan.share.name()
                    ),
                );
            }
            let by_windows = plan.share.params().is_some_and(|p| p.weights == Weights::Windows);
            if by_windows && plan.router.by_windows().is_none() {
                let law = plan.router.name();
                return error(
                    format!("share of {}: weights", plan.name),
                    format!(
                        "is \"windows\", but \"{law}\" does not know its flows' mean window; give \"flows\""
                    ),
                );
            }
        }
        self.varying_delays()?;
        self.outages()?;
        if let Some(plan) =
            self.links.iter().find(|l| l.share.params().is_some() && l.priority != Priority::None)
        {
            return error(
                format!("priority of {}", plan.name),
                "cannot be together with share: a link has one scheduler; leave out one of them",
            );
        }
        let soft = |l: &&LinkPlan| matches!(l.share, ShareSpec::Fifo(_)) && l.medium.is_shared();
        if let Some(plan) = self.links.iter().find(soft) {
            return error(
                format!("share of {}", plan.name),
                "is \"fifo\" on a shared medium, where departures are not known on arrival; give \"wfq\" or \"drr\"",
            );
        }
        for plan in self.links.iter().filter(|l| l.police.is_some()) {
            let key = format!("police of {}", plan.name);
            if !plan.router.header().is_tested() {
                let law = plan.router.name();
                return error(
                    key,
                    format!(
                        "\"{law}\" tells no flow what it alone is to do, which could be tested; give a router of xcp or rcp, or leave it out"
                    ),
                );
            }
        }
        if s.flows.is_empty() {
            return error("flows", "is empty; give at least one [[flows]]");
        }
        self.lists = self.read_lists(&core)?;
        let mut network = Network {
            links: Vec::new(),
            access: Vec::new(),
            routes: Vec::new(),
            cells: Vec::new(),
            receivers: Vec::new(),
            reroutes: Vec::new(),
            groups: Vec::new(),
            flows: Vec::new(),
            web: Vec::new(),
            assumed: Named::new(),
            warnings: Vec::new(),
            loops: Vec::new(),
            needs: self.needs(&core)?,
        };
        self.rtts = vec![PathRtts::default(); self.links.len()];
        let mut longest = Time::ZERO;
        let mut names = BTreeSet::new();
        for (i, group) in s.flows.iter().enumerate() {
            if !names.insert(group.name.as_str()) {
                return error(
                    format!("flows[{i}].name"),
                    format!("\"{}\" is there twice; names must differ", group.name),
                );
            }
            longest = longest.max(self.group(i, group, &mut core, &mut network)?);
        }
        self.reroute(&core, &mut network)?;
        self.edges(&core, &mut network)?;
        self.graph_buffers(longest)?;
        network.warnings.extend(self.idle());
        network.warnings.extend(labels(s, &self.links));
        self.agree(&mut network);
        self.assume(&mut network)?;
        self.phases(&mut network);
        if let Some(wanted) = s.capture.as_ref().and_then(|c| c.links.as_ref()) {
            for name in wanted {
                let names = self.links.iter().map(|l| &l.name).chain(self.cells.iter().map(|c| &c.name));
                let known: Vec<_> = names.map(String::as_str).collect();
                if !known.contains(&name.as_str()) {
                    let or_cell = if self.cells.is_empty() { "" } else { " and no cell" };
                    return error(
                        "capture.links",
                        format!("\"{name}\" is no link{or_cell}; there are {}", known.join(", ")),
                    );
                }
            }
        }
        self.pause();
        network.links = self.links;
        network.access = self.access;
        network.routes = self.routes;
        network.routes.shrink_to_fit();
        network.cells = self.cells;
        network.receivers = self.receivers;
        Ok(network)
    }
}

impl Builder<'_> {
    /// Links that lie on ways of the least delay, beside others, and that no flow's data take.
    fn idle(&self) -> Option<String> {
        const NAMED: usize = 3;
        let idle: Vec<&u32> = self.parallel.difference(&self.carries).collect();
        let names: Vec<&str> =
            idle.iter().take(NAMED).map(|link| self.links[**link as usize].name.as_str()).collect();
        let more = idle.len().checked_sub(names.len()).filter(|more| *more > 0);
        let more = more.map_or(String::new(), |more| format!(" and {more} more"));
        (!idle.is_empty()).then(|| {
            format!(
                "{} of {} links on equal-cost paths carry no data ({}{more}): each flow takes one path, by a hash of its group's name, \
                 its number and the seed; more flows (count), or another seed, use others",
                idle.len(),
                self.parallel.len(),
                names.join(", ")
            )
        })
    }
}

/// Whether a link can carry its queue out.
fn check_queue(plan: &LinkPlan, packet: Bytes) -> Result<()> {
    let queue = plan.queue.name();
    let refused = |message: String| error(format!("queue of {}", plan.name), message);
    let shares = plan.share.params().is_some();
    if let Some(why) = plan.queue.is_alone() {
        let acks =
            plan.priority == Priority::Acks && (plan.queue.drops_head() || plan.queue.shaper().is_some());
        let other = match plan.priority {
            _ if shares => Some("share"),
            Priority::Labels => Some("priority = \"labels\""),
            Priority::Acks if acks => Some("priority = \"acks\""),
            _ => None,
        };
        if let Some(other) = other {
            return refused(format!(
                "\"{queue}\" {why}, and cannot be together with {other}; leave out one of them"
            ));
        }
    }
    if plan.queue.shaper().is_some() {
        if !matches!(plan.router, RouterSpec::None(_)) {
            let law = plan.router.name();
            return refused(format!(
                "\"{queue}\" holds packets back from a link whose whole rate router = \"{law}\" gives to flows; give the link the shaper's rate in its place"
            ));
        }
        if plan.medium.is_shared() {
            return refused(format!(
                "\"{queue}\" says when packets leave, and so does a shared medium; leave out one of them"
            ));
        }
    }
    match plan.queue.smallest_bucket() {
        Some((key, most)) if most < packet => error(
            format!("queue of {}: {key}", plan.name),
            format!("is {most}, and no packet of {packet} would pass; give {packet} or more"),
        ),
        _ => Ok(()),
    }
}

/// What is wrong with labels: nobody goes by them, or nobody has one.
fn labels(scenario: &Scenario, links: &[LinkPlan]) -> Option<String> {
    let labelled = scenario.flows.iter().find(|group| group.label > 0);
    match (labelled, links.iter().find(|plan| plan.priority == Priority::Labels)) {
        (Some(group), None) => Some(format!(
            "flows.{}.label: is {}, but no link goes by labels; give one priority = \"labels\"",
            group.name, group.label
        )),
        (None, Some(plan)) => Some(format!(
            "priority of {}: is \"labels\", but no flow has a label; give [[flows]] label = 1 to those that go first",
            plan.name
        )),
        _ => None,
    }
}
