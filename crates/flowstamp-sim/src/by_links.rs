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
//! A flow's completion time on a link, F, has two parts. One part is queueing, Q: the mean time that the flow's packets wait
//! at the link. The rest, S, is the sender's: the ideal time, small first windows, a low rate, a timeout. Queueing adds up
//! along the path. The sender's time does not, because the slowest link sets the sender's pace, and because each link's run
//! contains the round trips that the law takes to start:
//!
//! ```text
//!   completion time = sum of Q over the links + max(S over the links, ideal time of the path)
//! ```
//!
//! Each link runs twice. In the first pass, flows send as fast as this link alone allows. Too many large flows then meet at
//! full rate, and RCP's rate collapses more often than in the whole network (docs/notes/engine-experiments.md has the
//! numbers). In the second pass, a flow's sender gets its data at the pace of the flow's slowest other link: the departure
//! times of the first pass, minus the travel time from the host ([`crate::release`]). These times are the feed. A flow has
//! no feed if no other link slows it down. With a feed, the flow's time S on this link includes the time of the other
//! link. A is the departure of the last packet from this link, minus the travel time from the host, minus the packet's feed
//! time. S1 is the sender's time in the first pass, and "ideal" the flow's time on this link if nothing else is there:
//!
//! ```text
//!   low  = ideal + max(0, min(F - ideal, A) - Q)     with the delay that this link certainly adds to the feed
//!   high = F - Q                                     the sender's whole time
//!
//!   S = low                       if another link was slower in the first pass
//!       S1 clamped to [low, high] if no other link was slower
//!       high                      if the flow has no feed
//! ```
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
//! 4. Parsimon has one pass, in which flows come as from an idle host.
//! 5. Acks cross no queue, as in the paper. The capacity of each link is reduced by the share that acks take.

mod budget;
mod combine;
mod flows;
mod link;
mod part;
mod refusals;

use crate::clock::Clock;
use crate::many::on_threads;
use crate::plan::Network;
use crate::results::{DelayCurve, Results};
use crate::{Loaded, Progress, ScenarioError, Simulation, Stopped, summary};
use combine::{Delays, OnLink};
use flows::Flows;
use flowstamp_laws::units::Time;
use link::{Links, Slower};
use part::{Broken, Left, Part, SlowerOn, Spent};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Gets the progress of a run and may stop it.
type Tick<'a> = &'a (dyn Fn(Progress) -> ControlFlow<()> + Sync);

/// Number of times that each link runs.
pub const PASSES: u64 = 2;

/// Runs each link of a scenario alone, on `threads` threads (by default one per core), and combines the flows'
/// times. `seed` replaces the scenario's. `tick` gets the progress and may stop the run.
///
/// Results do not depend on the number of threads. Series are empty.
///
/// # Errors
/// One line for the first thing that is wrong, that needs a run of the whole network, or that may need more than `memory`
/// bytes. The inner error says that `tick` stopped the run.
pub fn run_by_links(
    loaded: &Loaded,
    seed: Option<u64>,
    threads: Option<usize>,
    memory: Option<u64>,
    tick: Tick<'_>,
) -> Result<Result<Results, Stopped>, ScenarioError> {
    let clock = Clock::start();
    let links = ByLinks::new(loaded, seed, memory)?;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    links.needs(threads.unwrap_or_else(cores), true, memory)?;
    Ok(links.run(threads, tick, &clock))
}

/// The links of a scenario, whose runs are independent jobs.
///
/// One process has the [`Found`] results, and any process can run [`part`](Self::part) of the links. Each process lays out
/// the same network and draws the same flows. Results do not depend on how links are divided.
pub struct ByLinks {
    loaded: Loaded,
    links: Links,
}

impl ByLinks {
    /// Lays out the network and draws its flows. `seed` replaces the scenario's. A network whose flows alone need more
    /// than `memory` bytes is refused before they are drawn.
    ///
    /// # Errors
    /// One line for the first thing that is wrong, or that needs a run of the whole network.
    pub fn new(loaded: &Loaded, seed: Option<u64>, memory: Option<u64>) -> Result<Self, ScenarioError> {
        let mut loaded = loaded.with_seed(seed.unwrap_or(loaded.scenario.seed));
        refusals::check_scenario(&loaded.scenario).map_err(|e| e.at(&loaded.source))?;
        let network = Network::new(&loaded, loaded.scenario.seed)?;
        refusals::check_network(&network).map_err(|e| e.at(&loaded.source))?;
        budget::check_flows(&network, &loaded.scenario, memory).map_err(|e| e.at(&loaded.source))?;
        // Single links have no time series of the whole network.
        loaded.scenario.probes.links = false;
        loaded.scenario.probes.groups = false;
        let flows = Flows::of(&network, &loaded.scenario);
        let links = Links::new(&loaded, network, flows);
        Ok(Self { loaded, links })
    }

    /// The links that carry data, those with most work first, each with its work. That is a number of packets.
    #[must_use]
    pub fn works(&self) -> Vec<(u32, u64)> {
        self.links.by_work()
    }

    /// Simulated time.
    #[must_use]
    pub fn duration(&self) -> Time {
        self.loaded.scenario.duration
    }

    /// Upper bound of the memory of a process with `jobs` links at a time, bytes. The process with the results needs more
    /// than others.
    ///
    /// # Errors
    /// One line that names what takes most if this is more than `memory` bytes.
    pub fn needs(&self, jobs: usize, results: bool, memory: Option<u64>) -> Result<u64, ScenarioError> {
        budget::needs(&self.links, jobs, results, memory).map_err(|e| e.at(&self.loaded.source))
    }

    /// Runs everything, on `threads` threads.
    fn run(self, threads: Option<usize>, tick: Tick<'_>, clock: &Clock) -> Result<Results, Stopped> {
        let mut found = Found::new(&self);
        let work = self.works();
        let all = PASSES * work.iter().map(|(_, work)| *work).sum::<u64>();
        let done = AtomicU64::new(0);
        let told = |progress: Progress| {
            let part = done.load(Ordering::Relaxed) as f64 / all.max(1) as f64;
            tick(Progress { simulated: self.duration().scale(part.min(1.0)), ..progress })
        };
        for _ in 0..PASSES {
            let next = Mutex::new(found.pass());
            let before = found.before.as_ref();
            let slower = |_, flow, place| before.and_then(|before| before.elsewhere(flow, place));
            let slower: Option<Slower<'_>> = if before.is_some() { Some(&slower) } else { None };
            let keep = |work: u64, part: Part| {
                next.lock().unwrap_or_else(PoisonError::into_inner).take(part);
                done.fetch_add(work, Ordering::Relaxed);
            };
            self.each(&work, slower, threads, &told, &keep)?;
            let next = next.into_inner().unwrap_or_else(PoisonError::into_inner);
            found.end_pass(next);
        }
        Ok(self.end(found, clock.elapsed().0.as_secs_f64()))
    }

    /// Runs links, each with its work, and passes on what they leave as each ends.
    fn each(
        &self,
        work: &[(u32, u64)],
        slower: Option<Slower<'_>>,
        threads: Option<usize>,
        tick: Tick<'_>,
        done: &(dyn Fn(u64, Part) + Sync),
    ) -> Result<(), Stopped> {
        let duration = self.duration();
        let events = AtomicU64::new(0);
        let tell = |events| tick(Progress { simulated: Time::ZERO, duration, events });
        let one = |(_, (link, work)): (usize, (u32, u64))| {
            let (own, crossing) = self.links.network(link, slower);
            let handled = events.load(Ordering::Relaxed);
            let simulation = Simulation::of_network(self.links.loaded.clone(), own);
            let run = simulation.run_link(&mut |progress| tell(handled + progress.events))?;
            let rows = run.flows.iter().zip(&run.waited).zip(&crossing);
            let flows = rows.map(|((row, waited), crossing)| OnLink::of(row, *waited, crossing));
            let spent = Spent { packet_hops: run.packet_hops, events: run.events, cpu: run.cpu };
            events.fetch_add(run.events, Ordering::Relaxed);
            done(work, Part { flows: flows.collect(), left: (link, run.summary, run.waits.points), spent });
            if tell(events.load(Ordering::Relaxed)).is_break() { Err(Stopped) } else { Ok(()) }
        };
        on_threads(work.iter().copied(), threads, one).map(|_| ())
    }

    /// Runs links in this process for another one, on this thread, and returns their results as bytes. `before` is what
    /// [`Found::before`] says in the second pass.
    ///
    /// # Errors
    /// One line if `before` is broken, or a link does not exist. The inner error says that `tick` stopped the run.
    pub fn part(
        &self,
        links: &[u32],
        before: Option<&[u8]>,
        tick: Tick<'_>,
    ) -> Result<Result<Vec<u8>, Stopped>, Broken> {
        let all = self.links.network.links.len();
        if let Some(link) = links.iter().find(|link| **link as usize >= all) {
            return Err(format!("there is no link {link}"));
        }
        let before: Option<SlowerOn> = before.map(part::read).transpose()?;
        let slower = |link, flow, _| before.as_ref().and_then(|before| before.get(&self.links, link, flow));
        let slower: Option<Slower<'_>> = if before.is_some() { Some(&slower) } else { None };
        let parts = Mutex::new(Vec::new());
        let keep = |_, part: Part| parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
        let work: Vec<(u32, u64)> = links.iter().map(|link| (*link, 0)).collect();
        if let Err(stopped) = self.each(&work, slower, Some(1), tick, &keep) {
            return Ok(Err(stopped));
        }
        let parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        part::written(&parts).map(Ok)
    }

    /// Combines the results of all links into those of the whole network. All of it took `wall_s` seconds.
    #[must_use]
    pub fn end(self, found: Found, wall_s: f64) -> Results {
        let Self { loaded, links } = self;
        let ends = (loaded.scenario.warmup, loaded.scenario.duration);
        let Links { network, flows, .. } = links;
        let names: Vec<String> = network.links.iter().map(|plan| plan.name.clone()).collect();
        let ideal = summary::Routed::new(&network.links, &network.access, &network.routes, &loaded.scenario);
        let delays = found.before.unwrap_or_else(|| Delays::new(std::iter::empty(), false));
        let outcome = |(number, flow): (usize, &flows::Flow)| {
            let ideal =
                if flow.runs { ideal.ideal_s(flow.routes.data, flow.size, &loaded.scenario) } else { None };
            delays.ended(number, flow, ideal.map(Time::from_secs_f64), ends)
        };
        let (records, outcomes) = flows.iter().enumerate().map(outcome).unzip();
        drop((flows, delays));
        let mut results = Simulation::of_network(Arc::new(loaded), network).with_outcomes(records, outcomes);
        results.by_links = true;
        results.summary.packets = None;
        results.summary.access.arrivals = None;
        (results.summary.packet_hops, results.summary.events) = (found.spent.packet_hops, found.spent.events);
        let curve =
            |name: &str, points| DelayCurve { kind: "link", name: name.to_owned(), bytes: None, points };
        let left = found.left.into_iter().map(|(link, summary, points)| {
            let name = names[link as usize].clone();
            (link as usize, name.clone(), summary, curve(&name, points))
        });
        summary::put_links(&mut results, left.collect());
        results.took.cpu_s = found.spent.cpu.as_secs_f64();
        results.took.wall_s = wall_s;
        if wall_s > 0.0 {
            results.took.packet_hops_per_s = results.summary.packet_hops as f64 / wall_s;
        }
        results
    }
}

/// The results of the links so far, of both passes.
pub struct Found {
    places: Vec<usize>,
    /// Delays of the pass before.
    before: Option<Delays>,
    left: Vec<Left>,
    spent: Spent,
    now: Option<Pass>,
}

/// The results of links in one pass.
struct Pass {
    delays: Delays,
    left: Vec<Left>,
    spent: Spent,
}

impl Pass {
    fn take(&mut self, part: Part) {
        part.flows.iter().for_each(|on| self.delays.add(on));
        self.spent.add(&part.spent);
        self.left.push(part.left);
    }
}

impl Found {
    /// No results yet.
    #[must_use]
    pub fn new(links: &ByLinks) -> Self {
        let places = links.links.places().collect();
        Self { places, before: None, left: Vec::new(), spent: Spent::default(), now: None }
    }

    fn pass(&self) -> Pass {
        let delays = Delays::new(self.places.iter().copied(), self.before.is_none());
        Pass { delays, left: Vec::new(), spent: Spent::default() }
    }

    fn end_pass(&mut self, pass: Pass) {
        self.spent.add(&pass.spent);
        (self.before, self.left) = (Some(pass.delays), pass.left);
    }

    /// Takes the results of links that [`ByLinks::part`] returned, and returns how many events there have been.
    ///
    /// # Errors
    /// One line if the bytes are broken.
    pub fn take(&mut self, bytes: &[u8]) -> Result<u64, Broken> {
        let parts: Vec<Part> = part::read(bytes)?;
        let mut pass = self.now.take().unwrap_or_else(|| self.pass());
        parts.into_iter().for_each(|part| pass.take(part));
        let events = self.spent.events + pass.spent.events;
        self.now = Some(pass);
        Ok(events)
    }

    /// Ends a pass, in which each link has run.
    pub fn next_pass(&mut self) {
        let pass = self.now.take().unwrap_or_else(|| self.pass());
        self.end_pass(pass);
    }

    /// The argument `before` of [`ByLinks::part`] for these links, after the first pass.
    ///
    /// # Errors
    /// Never: memory takes all bytes.
    pub fn before(&self, links: &ByLinks, wanted: &[u32]) -> Result<Option<Vec<u8>>, Broken> {
        let of = |delays| part::written(&SlowerOn::of(&links.links, wanted, delays));
        self.before.as_ref().map(of).transpose()
    }
}
