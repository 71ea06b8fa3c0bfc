//! Upper bound of the memory of runs of single links.
//!
//! ```text
//!   program + network + flows + (results) + the links that run at a time
//! ```
//!
//! Numbers of flows are those that were drawn. Sizes are those of the types. Packets of a link are at most those that cross
//! it in the whole run, and at most twice what its flows' first windows, its buffers and a round trip hold.

use super::combine::{Delays, OnLink};
use super::flows::{CrossingFlow, Flow, Flows};
use super::link::Links;
use crate::ScenarioError;
use crate::capture::Waited;
use crate::host::{Outcome, Record};
use crate::link::{InFlight, Plain, Port};
use crate::network::budget::{GROWTH, PROGRAM, ROW_COLUMNS, of, size};
use crate::plan::{FlowPlan, LinkPlan, Network};
use crate::release::Release;
use crate::results::{DelayCurve, FlowRow, LinkSummary};
use crate::scenario::{Access, Scenario};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::transport;
use flowstamp_laws::units::Time;

/// A link's laws, histograms and name, bytes: measured, 4 kB.
const LINK: f64 = 8_192.0;
/// Both ends of a flow, with the heaps of its law and transport, bytes: measured, 2 kB.
const ENDS: f64 = 4_096.0;
/// Points of the distribution of a link's delay.
const CURVE: f64 = 16.0 * 1_000.0;

/// Memory of a flow in the process that draws it, and in the one with the results.
fn per_flow(results: bool) -> f64 {
    let drawn = 2.0 * GROWTH * of::<Flow>();
    let kept = of::<Record>() + of::<Outcome>() + GROWTH * of::<FlowRow>() + ROW_COLUMNS;
    drawn + if results { 2.0 * Delays::PER_FLOW + kept } else { 0.0 }
}

fn refused(parts: Vec<(f64, &str, String)>, memory: u64) -> ScenarioError {
    let total: f64 = parts.iter().map(|(bytes, ..)| bytes).sum();
    let most = parts.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    let (bytes, key, what) = most.unwrap_or((0.0, "", String::new()));
    ScenarioError::new(
        key,
        format!(
            "the run by links may need {} of memory, {} of it for {what}; it may have {}: ask for less here, or give \
             more (--memory)",
            size(total),
            size(bytes),
            size(memory as f64)
        ),
    )
}

/// Refuses a network whose flows need more than `memory` bytes, before they are drawn.
pub fn check_flows(network: &Network, scenario: &Scenario, memory: Option<u64>) -> Result<(), ScenarioError> {
    let Some(memory) = memory else { return Ok(()) };
    let most = (memory as f64 / per_flow(false)) as u64;
    let count = Flows::count(network, scenario, most);
    if count <= most {
        return Ok(());
    }
    Err(refused(vec![(count as f64 * per_flow(false), "flows", format!("{count} flows or more"))], memory))
}

/// Upper bound of the memory of a process that runs `jobs` links at a time, and of the results if it has them, bytes.
pub fn needs(links: &Links, jobs: usize, results: bool, memory: Option<u64>) -> Result<u64, ScenarioError> {
    let network = &links.network;
    let (routers, access) = (network.links.len() as f64, network.access.len() as f64);
    let laid = routers * (GROWTH * of::<LinkPlan>() + 64.0) + GROWTH * (access * of::<Access>());
    let routes = GROWTH * (4 * network.routes.len()) as f64 + 64.0 * network.arrivals.len() as f64;
    let works = links.by_work();
    let crossing: f64 = works.iter().map(|(link, _)| links.crossing(*link).len() as f64).sum();
    let flows = links.flows.len() as f64;
    let mut all = (0.0, 0.0);
    if results {
        let engine = of::<Port>() + of::<Plain>() + LINK;
        let left = GROWTH * of::<LinkSummary>() + of::<DelayCurve>() + CURVE;
        all = (routers * (engine + left) + access * of::<Plain>(), 2.0 * Delays::PER_HOP * crossing);
    }
    let most = Most::of(links);
    let mut each: Vec<f64> = works.iter().map(|(link, work)| job(links, *link, *work, &most)).collect();
    each.sort_by(|a, b| b.total_cmp(a));
    let running: f64 = each.iter().take(jobs).sum();
    let parts = vec![
        (PROGRAM, "", "the program itself".to_owned()),
        (laid + routes + all.0, "links", format!("{routers} links")),
        (flows * per_flow(results) + 8.0 * crossing + all.1, "flows", format!("{flows} flows")),
        (running, "threads", format!("{jobs} links at a time")),
    ];
    let total = parts.iter().map(|(bytes, ..)| bytes).sum::<f64>() as u64;
    match memory.filter(|memory| total > *memory) {
        Some(memory) => Err(refused(parts, memory)),
        None => Ok(total),
    }
}

/// Largest values over all links and flows.
struct Most {
    rtt: Time,
    /// First window, packets.
    window: f64,
    /// Buffer, packets.
    buffer: f64,
}

impl Most {
    fn of(links: &Links) -> Self {
        let scenario = &links.loaded.scenario;
        let buffer = |plan: &LinkPlan| match plan.limit {
            Limit::Bytes(bytes) => bytes as f64 / scenario.ack.as_f64().min(scenario.packet.as_f64()),
            Limit::Packets(packets) => f64::from(packets),
        };
        Self {
            rtt: links.longest_rtt(),
            window: scenario.flows.iter().map(|group| group.transport.initial_window).fold(0.0, f64::max),
            buffer: links.network.links.iter().map(buffer).fold(0.0, f64::max),
        }
    }
}

/// Memory of the run of one link, which `packets` cross.
fn job(links: &Links, link: u32, packets: u64, most: &Most) -> f64 {
    let flows = links.crossing(link).len() as f64;
    let rows = GROWTH
        * (of::<FlowRow>() + of::<CrossingFlow>() + of::<FlowPlan>() + of::<Waited>() + of::<Release>())
        + of::<Record>()
        + of::<OnLink>();
    // A flow has at most two links upstream, and two for the rest of its path and for acks.
    let upstream = (2.0 * flows).min(links.network.links.len() as f64 + flows);
    let paths = upstream * (of::<LinkPlan>() + of::<Port>() + of::<Plain>() + LINK)
        + 2.0 * flows * (GROWTH * of::<Access>() + of::<Plain>() + 128.0);
    let packet = 2.0 * GROWTH * (of::<InFlight>() + of::<Time>()) + transport::SET_BYTES_PER_PACKET as f64;
    let scenario = &links.loaded.scenario;
    let buffers = (1.0 + upstream) * most.buffer;
    let trip = links.network.links[link as usize].capacity.mean(Time::ZERO, scenario.duration);
    let trip = trip.bytes_per_sec() * most.rtt.as_secs_f64() / scenario.packet.as_f64();
    let held = 2.0 * (flows * (most.window + 4.0) + buffers + trip);
    flows * (rows + ENDS) + paths + held.min(packets as f64) * packet
}
