//! Runs each link of a network alone, and puts the flows' times together from these runs.
//!
//! The method is Parsimon's (Zhao et al., NSDI 2023): each directed link is simulated under the flows that cross it, with
//! the delays of their paths, and what the links delay a flow is combined along its path. Links are independent jobs.
//!
//! ```text
//!   sources' first links --> the link, its queue and laws --> no other queue, the rest of the path's delay --> receivers
//!        ^                                                                                                        |
//!        +----------------------- acks: the delay of their path --------------------------------------------------+
//! ```
//!
//! A flow's completion time on a link exceeds the ideal time there by a delay `D`. A part `q` of `D` is its packets'
//! queueing: the last smoothed RTT less the RTT of the empty path. The rest, `s = D - q`, is time in which the sender was
//! slow: its first windows, a low rate, a timeout. Queueing adds up along the path. Slowness does not, because the
//! slowest link sets the sender's pace, and all links see the law's start:
//!
//! ```text
//!   completion time = ideal time of the path + sum of q over its links + largest s of its links
//! ```
//!
//! Deviations from the paper:
//!
//! 1. Parsimon adds whole delays. With laws that take several round trips to start, or that fall to the rate of the
//!    slowest link, that counts the same wait once for each link.
//! 2. Parsimon draws delays by size from each link, as if links were independent. Here the same flows run on each link,
//!    so a flow's own delays are taken.
//! 3. Acks cross no queue, as there. They take capacity of links, which is reduced by their share.

mod flows;
mod link;
mod refusals;

use crate::clock::Clock;
use crate::host::{Done, Outcome, Record};
use crate::many::on_threads;
use crate::plan::Network;
use crate::results::{FlowRow, Results};
use crate::run::LinkRun;
use crate::{Loaded, Progress, ScenarioError, Simulation, Stopped, summary};
use flowstamp_laws::units::Time;
use flows::{Flow, Flows};
use link::Links;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the links did to a flow. Sums and maxima of integers do not depend on the order of the links.
#[derive(Clone, Copy, Debug)]
struct Delayed {
    /// Sum of the packets' queueing, picoseconds.
    queued: u64,
    /// The largest time in which the sender was slow, picoseconds.
    slow: u64,
    /// Time from the last byte's arrival to its ack, picoseconds.
    acked: u64,
    /// RTT of the empty path, picoseconds, and what the links add to the smallest and to the last sample.
    rtt: u64,
    least: u64,
    last: u64,
    /// Bytes delivered on the link that delivered least; all of them if the flow ended on each link.
    delivered: u64,
    retransmissions: u32,
    timeouts: u32,
}

impl Delayed {
    const NONE: Self = Self {
        queued: 0,
        slow: 0,
        acked: 0,
        rtt: 0,
        least: 0,
        last: 0,
        delivered: u64::MAX,
        retransmissions: 0,
        timeouts: 0,
    };

    /// Adds what one link did to a flow whose RTT is `rtt` without queues.
    fn add(&mut self, row: &FlowRow, rtt: Time) {
        let ps = |seconds: Option<f64>| seconds.map(|s| Time::from_secs_f64(s.max(0.0)).as_ps());
        let above = |sample: Option<f64>| ps(sample).map_or(0, |sample| sample.saturating_sub(rtt.as_ps()));
        self.rtt = self.rtt.max(rtt.as_ps());
        self.last += above(row.srtt_s.get());
        self.least += above(row.min_rtt_s.get());
        self.retransmissions += row.retransmissions;
        self.timeouts += row.timeouts;
        self.delivered = self.delivered.min(row.delivered_bytes);
        let (Some(fct), Some(ideal)) = (ps(row.fct_s), ps(row.ideal_fct_s.get())) else { return };
        let delay = fct.saturating_sub(ideal);
        let queued = above(row.srtt_s.get()).min(delay);
        self.queued += queued;
        self.slow = self.slow.max(delay - queued);
        self.acked = self.acked.max(ps(row.fct_sender_s.get()).map_or(0, |sender| sender - fct));
    }

    /// The flow's record and outcome in a run to `end` whose warm-up ends at `warmup`. `ideal` is the ideal completion
    /// time on the whole path, `None` if it has none.
    fn ended(&self, flow: &Flow, ideal: Option<Time>, (warmup, end): (Time, Time)) -> (Record, Outcome) {
        let delay = Time::from_ps(self.queued.saturating_add(self.slow));
        let complete = self.delivered >= flow.size && self.delivered < u64::MAX;
        let arrived = ideal.filter(|_| complete).map(|ideal| flow.start.saturating_add(ideal + delay));
        let arrived = arrived.filter(|arrived| *arrived <= end);
        let acked = arrived.map(|at| at.saturating_add(Time::from_ps(self.acked))).filter(|at| *at <= end);
        let mut record = Record::new(flow.group, flow.index, flow.start, Some(flow.size));
        if !flow.runs {
            return (record, Outcome::NONE);
        }
        record.route = flow.routes.data;
        record.end = arrived.unwrap_or(Time::MAX);
        let delivered_bytes =
            if arrived.is_some() { flow.size } else { self.delivered.min(flow.size.saturating_sub(1)) };
        let done =
            Done { delivered_bytes, retransmissions: self.retransmissions, timeouts: self.timeouts };
        if flow.start < warmup {
            record.at_warmup = done.by(flow.start, warmup, arrived.unwrap_or(end));
        }
        let rtt = |queued| Time::from_ps(self.rtt + queued);
        let outcome = Outcome {
            done,
            acknowledged: acked.unwrap_or(Time::MAX),
            min_rtt: rtt(self.least),
            srtt: rtt(self.last),
            switched: Time::MAX,
        };
        (record, outcome)
    }
}

/// Runs each link of a scenario alone, on `threads` threads (by default one per core), and puts the flows' times
/// together. `seed` replaces the scenario's. `tick` gets the progress and may stop the run.
///
/// Results do not depend on the number of threads. Series are empty.
///
/// # Errors
/// One line for the first thing that is wrong, or that runs of single links cannot answer. The inner error says that
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
    let mut network = Network::new(&loaded, loaded.scenario.seed)?;
    refusals::check_network(&network).map_err(|e| e.at(&loaded.source))?;
    // One line per flow in the results is all that groups keep of series.
    loaded.scenario.probes.links = false;
    loaded.scenario.probes.groups = false;
    let flows = Flows::of(&network, &loaded.scenario);
    network.warnings.push(
        "by links: each link ran alone, and the flows' times are put together from these runs; links' queues are those of \
         the links alone, and there are no series"
            .to_owned(),
    );
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

/// The runs of all links: for each flow what they did to it, and each link's number and run without flows.
struct Ran {
    delayed: Vec<Delayed>,
    links: Vec<(usize, LinkRun)>,
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
    let all: u64 = work.iter().map(|(_, work)| *work).sum();
    let (done, events) = (AtomicU64::new(0), AtomicU64::new(0));
    let tell = |events: u64| {
        let part = done.load(Ordering::Relaxed) as f64 / all.max(1) as f64;
        tick(Progress { simulated: duration.scale(part.min(1.0)), duration, events })
    };
    let delayed = Mutex::new(vec![Delayed::NONE; flows.all.len()]);
    let one = |(_, (link, work)): (usize, (u32, u64))| {
        let (own, crossing) = links.network(link);
        let before = events.load(Ordering::Relaxed);
        let simulation = Simulation::of_network(links.loaded.clone(), own);
        let mut run = simulation.run_link(&mut |progress| tell(before + progress.events))?;
        let mut delayed = delayed.lock().unwrap_or_else(PoisonError::into_inner);
        for (row, crossing) in run.flows.drain(..).zip(crossing) {
            delayed[crossing.flow as usize].add(&row, crossing.rtt);
        }
        done.fetch_add(work, Ordering::Relaxed);
        events.fetch_add(run.events, Ordering::Relaxed);
        if tell(events.load(Ordering::Relaxed)).is_break() {
            return Err(Stopped);
        }
        run.flows = Vec::new();
        Ok((link as usize, run))
    };
    let links = on_threads(work.into_iter(), threads, one)?;
    Ok(Ran { delayed: delayed.into_inner().unwrap_or_else(PoisonError::into_inner), links })
}

/// Puts the results of the whole network together.
fn put_together(loaded: Loaded, network: Network, flows: Flows, ran: Ran) -> Results {
    let ends = (loaded.scenario.warmup, loaded.scenario.duration);
    let names: Vec<String> = network.links.iter().map(|plan| plan.name.clone()).collect();
    let ideal = summary::Routed::new(&network.links, &network.access, &network.routes, &loaded.scenario);
    let (records, outcomes) = flows
        .all
        .iter()
        .zip(&ran.delayed)
        .map(|(flow, delayed)| {
            let ideal = ideal.ideal_s(flow.routes.data, flow.size, &loaded.scenario);
            delayed.ended(flow, ideal.map(Time::from_secs_f64), ends)
        })
        .unzip();
    drop(flows);
    let mut results = Simulation::of_network(Arc::new(loaded), network).with_outcomes(records, outcomes);
    results.by_links = true;
    results.summary.packet_hops = ran.links.iter().map(|(_, run)| run.packet_hops).sum();
    results.summary.events = ran.links.iter().map(|(_, run)| run.events).sum();
    results.took.cpu_s = ran.links.iter().map(|(_, run)| run.cpu.as_secs_f64()).sum();
    let links = ran.links.into_iter().map(|(link, run)| (link, names[link].clone(), run.summary, run.waits));
    summary::put_links(&mut results, links.collect());
    results
}
