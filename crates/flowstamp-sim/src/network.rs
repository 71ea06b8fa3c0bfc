//! Lays out the network of a scenario: links, routes, flows and arrival processes, all checked.

mod applications;
mod assumed;
pub(crate) mod budget;
mod capacity;
mod cells;
mod checks;
mod datacentre;
mod delays;
mod edges;
mod group_checks;
mod group_keys;
mod groups;
mod incasts;
mod lists;
mod outages;
mod paths;
mod patterns;
mod pfc;
mod phase;
mod scone;
mod spread;
mod topology;

pub use budget::size;

use crate::ScenarioError;
use crate::plan::{CellPlan, Choice, LinkPlan, Network};
use crate::scenario::{Access, Loaded, Scenario};
use assumed::PathRtts;
use datacentre::Laid;
use flowstamp_laws::units::Time;
use lists::Placed;
use outages::{Demand, Outages};
use paths::Core;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of samples of one quantity in a run. It bounds the memory.
const MOST_SAMPLES: u64 = 10_000_000;
/// Maximum number of flows of a group.
const MOST_FLOWS: u32 = 1_000_000;
/// Maximum number of random arrivals.
const MOST_ARRIVALS: f64 = 1e8;

type Result<T> = std::result::Result<T, ScenarioError>;

fn error<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T> {
    Err(ScenarioError::new(key, message))
}

/// Returns an error in a build without the feature `full`. It is inlined, so that the compiler also drops the code after
/// the call there.
#[inline(always)]
fn of_full(key: impl Into<String>, what: &str) -> Result<()> {
    if cfg!(feature = "full") { Ok(()) } else { error(key, format!("this build has no {what}")) }
}

impl Network {
    /// Lays out the network of `loaded` with this seed.
    ///
    /// # Errors
    /// If the network is invalid: a rate of zero, no path, a start after the end.
    pub fn new(loaded: &Loaded, seed: u64) -> Result<Self> {
        Self::within(loaded, seed, None)
    }

    /// Like [`Self::new`], but refuses the network, before any memory is taken, if the run may need more than `memory`
    /// bytes.
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
            spreads: BTreeMap::new(),
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
    /// Memory that the run may use, bytes.
    memory: Option<u64>,
    scenario: &'a Scenario,
    seed: u64,
    links: Vec<LinkPlan>,
    access: Vec<Access>,
    routes: Vec<u32>,
    spreads: BTreeMap<u32, Vec<Choice>>,
    cells: Vec<CellPlan>,
    /// For each cell, the node of the graph of each station.
    nodes: Vec<Vec<usize>>,
    receivers: Vec<u32>,
    /// Propagation RTTs of the flows over each router link.
    rtts: Vec<PathRtts>,
    /// Lists of flows by the number of their group. A list is removed when its group is placed.
    lists: BTreeMap<usize, Placed>,
    /// Links that data take. `parallel` has the links that data could take beside others of the same cost.
    carries: BTreeSet<u32>,
    parallel: BTreeSet<u32>,
    /// Outages. `demands` has the flows whose routes follow them.
    outages: Outages,
    demands: Vec<Demand>,
    /// The topology as a graph, unless it is a dumbbell or a parking lot.
    graph: Option<Laid>,
}

impl Builder<'_> {
    fn build(mut self) -> Result<Network> {
        checks::scenario(self.scenario)?;
        let mut core = self.lay_out_core()?;
        checks::flows_are_given(self.scenario)?;
        self.lists = self.read_lists(&core)?;
        let mut network = Network { needs: self.needs(&core)?, ..Network::default() };
        let longest = self.lay_out_flows(&mut core, &mut network)?;
        self.reroute(&core, &mut network)?;
        self.edges(&core, &mut network)?;
        self.graph_buffers(longest)?;
        self.pfc_thresholds(&network)?;
        network.warnings.extend(self.idle());
        network.warnings.extend(checks::labels(self.scenario, &self.links));
        network.warnings.extend(checks::advice(self.scenario, &self.links));
        self.agree(&mut network);
        self.assume(&mut network)?;
        self.phases(&mut network);
        checks::captured_links(self.scenario, &self.links, &self.cells)?;
        self.pause();
        network.links = self.links;
        network.access = self.access;
        network.routes = self.routes;
        network.routes.shrink_to_fit();
        network.spreads = self.spreads;
        network.cells = self.cells;
        network.receivers = self.receivers;
        Ok(network)
    }

    /// The first phase: lays out links, cells and nodes, and checks them as far as that needs no flows.
    fn lay_out_core(&mut self) -> Result<Core> {
        let s = self.scenario;
        let laid = self.laid()?;
        let core = match &laid {
            Some(laid) => {
                let core = self.graph(laid)?;
                self.pauses(laid, &core)?;
                core
            }
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
        self.links.iter().try_for_each(|plan| checks::link(plan, s.packet))?;
        self.varying_delays()?;
        self.outages()?;
        checks::schedulers(&self.links)?;
        Ok(core)
    }

    /// The second phase: lays out flows, hosts and routes. Returns the longest propagation RTT.
    fn lay_out_flows(&mut self, core: &mut Core, network: &mut Network) -> Result<Time> {
        self.rtts = vec![PathRtts::default(); self.links.len()];
        let mut longest = Time::ZERO;
        let mut names = BTreeSet::new();
        for (i, group) in self.scenario.flows.iter().enumerate() {
            if !names.insert(group.name.as_str()) {
                return error(
                    format!("flows[{i}].name"),
                    format!("\"{}\" appears twice; names must differ", group.name),
                );
            }
            longest = longest.max(self.group(i, group, core, network)?);
        }
        Ok(longest)
    }

    /// The warning for links on equal-cost paths that carry no flow's data, if there are any.
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
