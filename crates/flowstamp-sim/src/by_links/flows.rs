//! The flows of a network, drawn before the run as the engine draws them during it.

use crate::plan::{Comes, FlowRoutes, Network};
use crate::release::Release;
use crate::scenario::Scenario;
use flowstamp_laws::units::Time;
use serde::{Deserialize, Serialize};

/// A flow that was drawn before the run.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Index of the group.
    pub group: u32,
    /// Number within the group.
    pub index: u32,
    /// Index into the laws of the group.
    pub law: u32,
    /// Routes.
    pub routes: FlowRoutes,
    /// Start of the flow.
    pub start: Time,
    /// Size, bytes of payload.
    pub size: u64,
    /// Whether the flow starts during the run.
    pub runs: bool,
}

/// The first pass's findings about a flow on one link and on others.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Elsewhere {
    /// When the data come from the link that slows the flow down most, apart from this one.
    pub release: Release,
    /// The sender's time on this link, picoseconds, if no other link slows the flow down more.
    pub slowest: Option<u64>,
}

/// A flow that crosses a link.
#[derive(Clone, Copy, Debug)]
pub struct CrossingFlow {
    /// Number of the flow.
    pub flow: u32,
    /// Index of the link among the router links of the flow's path.
    pub place: u32,
    /// RTT of a packet on the empty path, with the time of its transmission on each link.
    pub rtt: Time,
    /// Time from the sender to the link on empty links.
    pub before: Time,
    /// The flow's slowest other link, from [`super::combine::Delays::elsewhere`]. `None` in the first pass.
    pub elsewhere: Option<Elsewhere>,
}

/// All flows, in the order of the records of a run.
#[derive(Debug)]
pub struct Flows {
    /// The flows: planned ones, listed ones by row, random ones by start.
    pub all: Vec<Flow>,
    /// Number of planned flows.
    pub planned: u32,
}

impl Flows {
    /// Number of flows of a network, or more than `most` if there are more than that.
    pub fn count(network: &Network, scenario: &Scenario, most: u64) -> u64 {
        let mut all = network.flows.len() as u64;
        for plan in &network.arrivals {
            match &plan.comes {
                Comes::Listed { list, .. } => all += list.rows.len() as u64,
                Comes::Random { arrivals, .. } => {
                    let mut arrivals = arrivals.clone();
                    let mut start = plan.start + arrivals.gap();
                    while start < plan.stop && start <= scenario.duration && all <= most {
                        all += 1;
                        start = start.saturating_add(arrivals.gap());
                    }
                }
            }
        }
        all
    }

    /// Draws the flows of a network.
    pub fn of(network: &Network, scenario: &Scenario) -> Self {
        let planned = network.flows.iter().map(|plan| {
            let size = scenario.flows[network.groups[plan.group as usize].spec].size;
            let size = size.map_or(0, flowstamp_laws::Bytes::get);
            let runs = plan.start <= scenario.duration;
            let (group, index) = (plan.group, plan.index);
            Flow { group, index, law: 0, routes: plan.routes, start: plan.start, size, runs }
        });
        let mut all: Vec<Flow> = planned.collect();
        let count = all.len() as u32;
        let mut random = Vec::new();
        for plan in &network.arrivals {
            let (group, mut routes, mut comes) = (plan.group, plan.routes.clone(), plan.comes.clone());
            let mut route = |pair: usize| {
                let first = routes[pair][0];
                routes[pair].rotate_left(1);
                first
            };
            let comes_by = |start: Time| start < plan.stop && start <= scenario.duration;
            match &mut comes {
                Comes::Listed { list, .. } => {
                    let first = all.len();
                    all.extend((0..).zip(&list.rows).map(|(index, row)| Flow {
                        group,
                        index,
                        law: row.law,
                        routes: FlowRoutes { data: u32::MAX, acks: u32::MAX },
                        start: plan.start.saturating_add(row.start),
                        size: row.size,
                        runs: false,
                    }));
                    for row in &list.order {
                        let flow = &mut all[first + *row as usize];
                        flow.runs = comes_by(flow.start);
                        if flow.runs {
                            flow.routes = route(list.rows[*row as usize].pair as usize);
                        }
                    }
                }
                Comes::Random { arrivals, sizes } => {
                    let mut start = plan.start + arrivals.gap();
                    let mut index = 0;
                    while comes_by(start) {
                        let (size, routes) = (sizes.draw(), route(0));
                        random.push(Flow { group, index, law: 0, routes, start, size, runs: true });
                        index += 1;
                        start = start.saturating_add(arrivals.gap());
                    }
                }
            }
        }
        random.sort_by_key(|flow| flow.start);
        all.append(&mut random);
        Self { all, planned: count }
    }
}
