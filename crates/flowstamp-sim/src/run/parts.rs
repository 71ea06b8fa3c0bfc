//! One run on several threads, with the same results to the bit.
//!
//! Each thread has some parts of the network ([`Threads`]) and a copy of the simulation, in which it handles only their events.
//! All threads run up to the same instant, exchange the packets between them, and go on. A packet that enters a link now
//! reaches the other end no sooner than the link's delay from now. Up to the least such delay, no thread needs to know what
//! the others do (conservative windows: Chandy and Misra 1979). The order of events does not depend on threads, because
//! their time, class and number decide it.

use super::rounds::Rounds;
use super::{EVENTS_PER_TICK, Simulation, Stopped};
use crate::clock::Clock;
use crate::events::MANY_LINKS;
use crate::fabric::Moved;
use crate::parts::Threads;
use crate::plan::Network;
use crate::results::Results;
use crate::scenario::Loaded;
use crate::{Progress, ScenarioError};
use flowstamp_laws::units::Time;
use std::hint::spin_loop;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Number of times that a thread reads a barrier before it yields the core.
const SPINS: u32 = 1 << 12;

/// A laid-out network that runs on several threads.
#[derive(Debug)]
pub struct Divided {
    simulation: Simulation,
    parts: Threads,
}

impl Divided {
    /// Lays out the network of `loaded` for `threads` threads. `seed` replaces the scenario's.
    ///
    /// # Errors
    /// One line for the first thing that is wrong, or that cannot be divided.
    pub fn new(loaded: &Loaded, seed: Option<u64>, threads: usize) -> Result<Self, ScenarioError> {
        let loaded = loaded.with_seed(seed.unwrap_or(loaded.scenario.seed));
        let network = Network::new(&loaded, loaded.scenario.seed)?;
        if let Some(arrival) = network.arrivals.first().filter(|_| network.links.len() < MANY_LINKS) {
            let name = &network.groups[arrival.group as usize].name;
            let links = network.links.len();
            let message = format!(
                "is {threads}, but the flows of {name:?} arrive during the run. With fewer than {MANY_LINKS} router links that needs \
                 one thread, and this network has {links}; leave --threads out"
            );
            return Err(ScenarioError::new("threads", message));
        }
        Self::of_network(loaded, network, threads)
    }

    fn of_network(loaded: Loaded, network: Network, threads: usize) -> Result<Self, ScenarioError> {
        let parts = Threads::new(&network, &loaded.scenario, threads)?;
        Ok(Self { simulation: Simulation::of_network(Arc::new(loaded), network), parts })
    }

    /// As [`Self::new`], but flows linger in their slots as in a large network, for tests with small ones.
    ///
    /// # Errors
    /// As [`Self::new`].
    #[doc(hidden)]
    pub fn as_large(loaded: &Loaded, threads: usize) -> Result<Self, ScenarioError> {
        let network = Network::new(loaded, loaded.scenario.seed)?;
        let Self { simulation, parts } = Self::of_network(loaded.clone(), network, threads)?;
        Ok(Self { simulation: simulation.as_large(), parts })
    }

    /// Runs to the end. `tick` is called now and then and may stop the run.
    ///
    /// # Errors
    /// [`Stopped`] if `tick` said so.
    pub fn run(self, tick: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Results, Stopped> {
        self.run_and_weigh(tick).map(|(results, _)| results)
    }

    /// As [`Self::run`], and says how evenly the parts shared the work.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_and_weigh(
        self,
        tick: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(Results, Balance), Stopped> {
        let Self { simulation, parts } = self;
        let mut simulation = simulation;
        simulation.in_turn = None;
        simulation.probe.iter_mut().for_each(|probe| probe.of_a_part());
        let shared = Shared::new(parts.count());
        let others: Vec<Simulation> = (1..parts.count()).map(|_| simulation.clone()).collect();
        let clock = Clock::start();
        let (mut whole, others) = thread::scope(|scope| {
            let (shared, parts) = (&shared, &parts);
            let run = |(number, part): (usize, Simulation)| {
                scope.spawn(move || {
                    Part { simulation: part, number, parts, shared }.run(&mut |_| ControlFlow::Continue(()))
                })
            };
            let threads: Vec<_> = (1..).zip(others).map(run).collect();
            let first = Part { simulation, number: 0, parts, shared }.run(tick);
            let others: Option<Vec<Simulation>> =
                threads.into_iter().map(|thread| thread.join().ok()).collect();
            (first, others.unwrap_or_default())
        });
        if shared.stopped.load(Ordering::Acquire) {
            return Err(Stopped);
        }
        assert_eq!(others.len() + 1, parts.count(), "a part of the network has failed");
        let probes = others.iter().filter_map(|part| part.probe.as_ref());
        if let Some(probe) = &mut whole.probe {
            probe.take_over(&probes.collect::<Vec<_>>(), &parts, &whole.net, &whole.hosts);
        }
        for (number, part) in (1..).zip(others) {
            whole.events += part.events;
            whole.took.1 += part.took.1;
            whole.net.take_over(part.net, number, &parts);
            whole.hosts.take_over(part.hosts, &whole.net, number, &parts);
        }
        whole.took.0 = clock.elapsed().0;
        let longest = shared.longest.iter().map(|sum| sum.load(Ordering::Relaxed)).sum();
        let balance =
            Balance { windows: shared.windows.load(Ordering::Relaxed), events: whole.events, longest };
        Ok((whole.finish(), balance))
    }
}

/// How evenly the parts shared the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Number of windows.
    pub windows: u64,
    /// Number of events, all parts together.
    pub events: u64,
    /// The sum over all windows of the events of the part that has most. With threads of equal speed and barriers without
    /// cost, the run is `events / longest` times as fast as on one thread.
    pub longest: u64,
}

/// The packets from one part to another: those of even and of odd windows, so that one barrier for each window suffices.
type Mail = [Mutex<Vec<Moved>>; 2];

/// The flows that have ended on a thread: when, and in which slot. One list is for even windows, one for odd.
type Ended = [Mutex<Vec<(Time, u32)>>; 2];

/// State that parts share.
struct Shared {
    barrier: Barrier,
    /// From each part to each.
    mail: Vec<Mail>,
    /// For each thread, its ended flows, which all other threads read.
    ended: Vec<Ended>,
    /// The next event of any part, in picoseconds, after windows 3n, 3n + 1 and 3n + 2.
    next: [AtomicU64; 3],
    /// Most events of a part: of the windows so far in the first, and of the last windows in the others.
    longest: [AtomicU64; 4],
    windows: AtomicU64,
    stopped: AtomicBool,
    events: AtomicU64,
}

impl Shared {
    fn new(parts: usize) -> Self {
        Self {
            barrier: Barrier { parts, ..Barrier::default() },
            mail: (0..parts * parts).map(|_| Mail::default()).collect(),
            ended: (0..parts).map(|_| Ended::default()).collect(),
            next: [const { AtomicU64::new(u64::MAX) }; 3],
            longest: [const { AtomicU64::new(0) }; 4],
            windows: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            events: AtomicU64::new(0),
        }
    }

    /// The packets from one part to another after window `window`.
    fn mail(&self, from: usize, to: usize, window: u64) -> &Mutex<Vec<Moved>> {
        &self.mail[from * self.barrier.parts + to][window as usize % 2]
    }
}

/// A part of the network on its thread.
struct Part<'a> {
    simulation: Simulation,
    number: usize,
    parts: &'a Threads,
    shared: &'a Shared,
}

impl Part<'_> {
    fn run(mut self, tick: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Simulation {
        let clock = Clock::start();
        let fails = Fails(&self.shared.barrier);
        let duration = self.simulation.scenario.duration;
        let Threads { parts, ranges, .. } = self.parts;
        self.simulation.hosts.start_elsewhere(self.number, self.parts);
        self.simulation.hosts.begin_threads();
        // Slots of the flows that arrive in a window are known when it begins, as for rounds.
        let lookahead = self.parts.lookahead();
        let lookahead =
            self.simulation.hosts.lingering_time().map_or(lookahead, |linger| linger.min(lookahead));
        let mut rounds = Rounds::new(parts.clone(), ranges[self.number].clone(), &mut self.simulation);
        let (mut told, mut until, mut idle) = (0, Time::ZERO, Time::ZERO);
        for window in 0.. {
            until = (until + lookahead).max(idle).min(duration);
            let before = self.simulation.events - rounds.common;
            rounds.run_to(&mut self.simulation, until);
            let events = self.simulation.events;
            let worked = events - rounds.common - before;
            self.shared.longest[1 + window as usize % 3].fetch_max(worked, Ordering::Relaxed);
            if events - told >= EVENTS_PER_TICK || until == duration {
                let events = self.shared.events.fetch_add(events - told, Ordering::Relaxed) + events - told;
                told = self.simulation.events;
                if tick(Progress { simulated: until, duration, events }).is_break() {
                    self.shared.stopped.store(true, Ordering::Release);
                }
            }
            if until == duration {
                break;
            }
            self.send_out(&mut rounds, window, (until + lookahead).min(duration));
            if !self.shared.barrier.wait() || self.shared.stopped.load(Ordering::Acquire) {
                break;
            }
            self.take_in(window);
            // Nothing that other threads need happens before the next event of all parts. Packets that it sends arrive one window
            // later. A flow may leave its slot before, which its receiver's part does by itself.
            let next = self.shared.next[window as usize % 3].load(Ordering::Relaxed);
            idle = Time::from_ps(next - 1);
        }
        std::mem::forget(fails);
        self.simulation.net.settle();
        self.simulation.events += self.simulation.net.events.stale();
        // All parts handle events that concern all, and the first counts them.
        self.simulation.events -= if self.number > 0 { rounds.common } else { 0 };
        self.simulation.took = clock.elapsed();
        self.simulation
    }

    /// Sends the packets that reach other parts by `until`, and publishes the time of the part's next event.
    fn send_out(&mut self, rounds: &mut Rounds, window: u64, until: Time) {
        let common = self.simulation.net.events.next_common().map_or(Time::MAX, |(time, _)| time);
        let mut next = rounds.first(&mut self.simulation).min(common);
        let Simulation { net, hosts, .. } = &mut self.simulation;
        let ended = &self.shared.ended[self.number][window as usize % 2];
        hosts.take_ended(&mut ended.lock().unwrap_or_else(PoisonError::into_inner));
        for (to, links) in self.parts.out(self.number) {
            let mail = self.shared.mail(self.number, *to, window);
            let mut mail = mail.lock().unwrap_or_else(PoisonError::into_inner);
            for link in links {
                let rest = net.take_out(*link, until, &mut mail);
                next = next.min(rest);
            }
            next = mail.iter().map(Moved::arrives).min().map_or(next, |first| next.min(first));
        }
        if self.number == 0 {
            // The others have read this one, and use it after the barrier.
            let other = (window as usize + 1) % 3;
            self.shared.next[other].store(u64::MAX, Ordering::Relaxed);
            let longest = self.shared.longest[1 + other].swap(0, Ordering::Relaxed);
            self.shared.longest[0].fetch_add(longest, Ordering::Relaxed);
            self.shared.windows.store(window + 2, Ordering::Relaxed);
        }
        self.shared.next[window as usize % 3].fetch_min(next.as_ps(), Ordering::Relaxed);
    }

    /// Takes in what the other parts have sent after this window.
    fn take_in(&mut self, window: u64) {
        for from in (0..self.parts.count()).filter(|from| *from != self.number) {
            let mail = self.shared.mail(from, self.number, window);
            let mut mail = mail.lock().unwrap_or_else(PoisonError::into_inner);
            for moved in mail.drain(..) {
                self.simulation.net.take_in(&moved);
            }
            let ended = &self.shared.ended[from][window as usize % 2];
            let Simulation { net, hosts, .. } = &mut self.simulation;
            hosts.end_elsewhere(net, &ended.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Lets all threads go on when all have come.
#[derive(Debug, Default)]
struct Barrier {
    parts: usize,
    come: AtomicUsize,
    turn: AtomicUsize,
    failed: AtomicBool,
}

impl Barrier {
    /// Waits for the others. Returns whether all are alive.
    fn wait(&self) -> bool {
        let turn = self.turn.load(Ordering::Acquire);
        if self.come.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
            self.come.store(0, Ordering::Relaxed);
            self.turn.store(turn + 1, Ordering::Release);
        }
        let mut spins = 0;
        while self.turn.load(Ordering::Acquire) == turn {
            if self.failed.load(Ordering::Acquire) {
                return false;
            }
            if spins < SPINS {
                spins += 1;
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
        true
    }
}

/// Lets the other threads end when this one panics.
struct Fails<'a>(&'a Barrier);

impl Drop for Fails<'_> {
    fn drop(&mut self) {
        self.0.failed.store(true, Ordering::Release);
    }
}
