//! Runs each link of a network alone, and combines the results into flow completion times.
//!
//! The method is Parsimon's (Zhao et al., NSDI 2023): each directed link is simulated with the flows that cross it, and with
//! the delays of their paths. A flow's delays on its links are then combined. Links are independent jobs.
//!
//! ```text
//!   first links of paths --> links before --> THE LINK --> the rest of the path's delay, no other queue --> receivers
//!           ^                                                                                                  |
//!           +----------------------- acks: the delay of their path --------------------------------------------+
//! ```
//!
//! A flow's completion time on a link has two parts. One part is queueing, `q`: the mean time that the flow's packets wait at
//! the link. The rest, `t`, is the sender's: the ideal time, small first windows, a low rate, a timeout. Queueing adds up
//! along the path. The sender's time does not, because the slowest link sets the sender's pace, and because each link's run
//! contains the round trips that the law takes to start:
//!
//! ```text
//!   completion time = sum of q over the links + largest t of the links, at least the ideal time of the path
//! ```
//!
//! Each link runs twice. A flow's slowness on a link is `t` less the flow's least ideal time on any of its links. Another link
//! holds a flow up if its slowness there is more than twice that on this link. In the second pass, the application of such a
//! flow produces data at the rate that the other link left to it. The flow then adds only queueing on this link, and other
//! flows meet it as in the whole network. After one pass alone, DCTCP's queues were several times too long.
//!
//! Deviations from the paper:
//!
//! 1. Parsimon adds whole delays. With laws that take several round trips to start, or that send at the rate of the
//!    slowest link, that counts the same time once for each link.
//! 2. Parsimon draws delays by size from each link, as if links were independent. Here the same flows run on each link,
//!    and a flow's own delays are taken.
//! 3. Parsimon keeps the first links of the paths. Here the links just before the link are kept, too, because they let
//!    only so many packets through at once. Both keep their queues and laws where flows share them. Waits there count
//!    in those links' own runs only.
//! 4. Parsimon has one pass.
//! 5. Acks cross no queue, as in the paper. The capacity of each link is reduced by the share that acks take.

mod combine;
mod flows;
mod link;
mod refusals;

use crate::clock::Clock;
use crate::many::on_threads;
use crate::plan::Network;
use crate::results::Results;
use crate::run::LinkRun;
use crate::{Loaded, Progress, ScenarioError, Simulation, Stopped, summary};
use combine::Delays;
use flows::Flows;
use flowstamp_laws::units::Time;
use link::Links;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs each link of a scenario alone, on `threads` threads (by default one per core), and combines the flows'
/// times. `seed` replaces the scenario's. `tick` gets the progress and may stop the run.
///
/// Results do not depend on the number of threads. Series are empty.
///
/// # Errors
/// One line for the first thing that is wrong, or that needs a run of the whole network. The inner error says that
/// `tick` stopped the run.
pub fn run_by_links(
    loaded: &Loaded,
    seed: Option<u64>,
    threads: Option<usize>,
    tick: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
) -> Result<Result<Results, Stopped>, ScenarioError> {
    let clock = Clock::start();
    let mut loaded = loaded.with_seed(seed.unwrap_or(loaded.scenario.seed));
    refusals::check_scenario(&loaded.scenario).map_err(|e| e.at(&loaded.source))?;
    let network = Network::new(&loaded, loaded.scenario.seed)?;
    refusals::check_network(&network).map_err(|e| e.at(&loaded.source))?;
    // Single links have no time series of the whole network.
    loaded.scenario.probes.links = false;
    loaded.scenario.probes.groups = false;
    let flows = Flows::of(&network, &loaded.scenario);
    let ran = match run_links(&loaded, &network, &flows, threads, tick) {
        Ok(ran) => ran,
        Err(stopped) => return Ok(Err(stopped)),
    };
    let mut results = put_together(loaded, network, flows, ran);
    results.took.wall_s = clock.elapsed().0.as_secs_f64();
    if results.took.wall_s > 0.0 {
        results.took.packet_hops_per_s = results.summary.packet_hops as f64 / results.took.wall_s;
    }
    Ok(Ok(results))
}

/// Number of times that each link runs.
const PASSES: u64 = 2;

/// The runs of all links: the flows' delays, each link's number and run without its flows, and the work.
struct Ran {
    delays: Delays,
    links: Vec<(usize, LinkRun)>,
    spent: Spent,
}

/// Packet-hops, events and CPU time of runs.
#[derive(Default)]
struct Spent {
    packet_hops: u64,
    events: u64,
    cpu: Duration,
}

impl Spent {
    fn add(&mut self, other: &Self) {
        self.packet_hops += other.packet_hops;
        self.events += other.events;
        self.cpu += other.cpu;
    }
}

fn run_links(
    loaded: &Loaded,
    network: &Network,
    flows: &Flows,
    threads: Option<usize>,
    tick: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
) -> Result<Ran, Stopped> {
    let duration = loaded.scenario.duration;
    let links = Links::new(loaded, network, flows);
    let work = links.by_work();
    let all: u64 = PASSES * work.iter().map(|(_, work)| *work).sum::<u64>();
    let (done, events) = (AtomicU64::new(0), AtomicU64::new(0));
    let tell = |events: u64| {
        let part = done.load(Ordering::Relaxed) as f64 / all.max(1) as f64;
        tick(Progress { simulated: duration.scale(part.min(1.0)), duration, events })
    };
    let pass = |before: Option<&Delays>| {
        let delays = Mutex::new(Delays::new(links.places()));
        let one = |(_, (link, work)): (usize, (u32, u64))| {
            let (own, crossing) = links.network(link, before);
            let handled = events.load(Ordering::Relaxed);
            let simulation = Simulation::of_network(links.loaded.clone(), own);
            let mut run = simulation.run_link(&mut |progress| tell(handled + progress.events))?;
            run.waited.resize(run.flows.len(), Time::ZERO);
            let mut delays = delays.lock().unwrap_or_else(PoisonError::into_inner);
            for ((row, waited), crossing) in run.flows.iter().zip(&run.waited).zip(&crossing) {
                delays.add(row, *waited, crossing, before);
            }
            drop(delays);
            done.fetch_add(work, Ordering::Relaxed);
            events.fetch_add(run.events, Ordering::Relaxed);
            if tell(events.load(Ordering::Relaxed)).is_break() {
                return Err(Stopped);
            }
            (run.flows, run.waited) = (Vec::new(), Vec::new());
            Ok((link as usize, run))
        };
        let links = on_threads(work.iter().copied(), threads, one)?;
        let mut spent = Spent::default();
        for (_, LinkRun { packet_hops, events, cpu, .. }) in &links {
            spent.add(&Spent { packet_hops: *packet_hops, events: *events, cpu: *cpu });
        }
        Ok(Ran { delays: delays.into_inner().unwrap_or_else(PoisonError::into_inner), links, spent })
    };
    let first = pass(None)?;
    let mut ran = pass(Some(&first.delays))?;
    ran.spent.add(&first.spent);
    Ok(ran)
}

/// Combines the results of all links into those of the whole network.
fn put_together(loaded: Loaded, network: Network, flows: Flows, ran: Ran) -> Results {
    let ends = (loaded.scenario.warmup, loaded.scenario.duration);
    let names: Vec<String> = network.links.iter().map(|plan| plan.name.clone()).collect();
    let ideal = summary::Routed::new(&network.links, &network.access, &network.routes, &loaded.scenario);
    let (records, outcomes) = flows
        .all
        .iter()
        .enumerate()
        .map(|(number, flow)| {
            let ideal =
                if flow.runs { ideal.ideal_s(flow.routes.data, flow.size, &loaded.scenario) } else { None };
            ran.delays.ended(number, flow, ideal.map(Time::from_secs_f64), ends)
        })
        .unzip();
    drop(flows);
    let mut results = Simulation::of_network(Arc::new(loaded), network).with_outcomes(records, outcomes);
    results.by_links = true;
    (results.summary.packet_hops, results.summary.events) = (ran.spent.packet_hops, ran.spent.events);
    results.took.cpu_s = ran.spent.cpu.as_secs_f64();
    let links = ran.links.into_iter().map(|(link, run)| (link, names[link].clone(), run.summary, run.waits));
    summary::put_links(&mut results, links.collect());
    results
}
