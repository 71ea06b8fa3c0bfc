//! Rounds: a thread runs the parts of a large network one after the other, with the same results to the bit.
//!
//! In the order of time, consecutive events are at links all over the network, and a large network does not fit into the
//! processor's cache. Here each part of the network ([`Parts`]) handles its events of a *round*, and then the next part.
//! A round is as long as the least delay of a link between two parts, so no part needs to know what the others do in it
//! (conservative windows: Chandy and Misra 1979). All parts share one state: a packet enters a link in one part's turn and
//! leaves it in another's.

use super::{EVENTS_PER_TICK, Simulation, Stopped};
use crate::clock::Clock;
use crate::events::{Class, NUMBER_BITS, Source};
use crate::fabric::Fabric;
use crate::parts::{Parts, parts_of_many_links};
use crate::plan::Network;
use crate::scenario::{Loaded, Scenario};
use crate::{Progress, ScenarioError};
use flowstamp_laws::units::Time;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Fewest events of a part in its turn, on average. With few, turns cost more than they save.
const FEWEST: u64 = 16;
/// Number of rounds between two checks that parts have [`FEWEST`] events. It is large, because a run begins with few flows.
const ROUNDS_PER_LOOK: u64 = 1024;
/// Longest round, so that a time within it has 36 bits.
const LONGEST: Time = Time::from_millis(60);
const NUMBERS: u32 = (1 << NUMBER_BITS) - 1;
/// Numbers of packets ahead at which these are prefetched: the packet's next link, and its place there.
const NEXT_AHEAD: usize = 4;
const PLACE_AHEAD: usize = 2;
const INSTANT: Time = Time::from_ps(1);

/// The parts of a network that run in turn.
#[derive(Clone, Debug)]
pub(super) struct InTurn {
    parts: Parts,
    /// Fewest events of a part in its turn, on average. With fewer, the network goes on as a whole.
    fewest: u64,
    /// Number of rounds between two checks that parts have `fewest` events.
    every: u64,
}

/// The parts for rounds, if the network is large and can be divided.
pub(super) fn in_turn(network: &Network, scenario: &Scenario) -> Option<Box<InTurn>> {
    let parts = Parts::new(network, scenario, parts_of_many_links(network)?).ok()?;
    Some(Box::new(InTurn { parts, fewest: FEWEST, every: ROUNDS_PER_LOOK }))
}

/// How far the rounds are.
pub(super) struct Rounds {
    /// Number of parts.
    parts: usize,
    /// Those that have turns.
    mine: Range<usize>,
    /// Length of a round.
    length: Time,
    /// Whether each link leads to another part.
    cut: Vec<bool>,
    /// For each part, the links that lead to it and take at least a round. Arrivals over them are known when a round begins.
    known: Vec<Vec<u32>>,
    /// The packets that arrive in a turn, in order: the time since the round began, and the link.
    arrivals: Vec<u64>,
    /// All events before this time are done.
    from: Time,
    /// The last round had no events.
    idle: bool,
    /// Rounds since the last check of the number of events, and events before it.
    rounds: u64,
    looked: u64,
    /// Number of events so far that concern all parts, plus one for each plan whose arrivals have stopped.
    pub common: u64,
}

impl Simulation {
    /// Lays out the network of `loaded` to run in rounds of `count` parts, whatever its size. Every 64 rounds it checks that
    /// parts had at least `fewest` events per turn on average. If not, the network goes on as a whole.
    ///
    /// # Errors
    /// As [`super::Divided::new`].
    #[doc(hidden)]
    pub fn in_rounds(loaded: &Loaded, count: usize, fewest: u64) -> Result<Self, ScenarioError> {
        let network = Network::new(loaded, loaded.scenario.seed)?;
        let parts = Parts::new(&network, &loaded.scenario, count)?;
        let mut simulation = Self::of_network(Arc::new(loaded.clone()), network).as_large();
        simulation.in_turn = Some(Box::new(InTurn { parts, fewest, every: 64 }));
        Ok(simulation)
    }

    /// Runs in rounds, to the end of the scenario or until there are too few events in a round.
    pub(super) fn run_in_rounds(
        &mut self,
        tick: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        // After a step or a change of the scenario, the run goes on as it began.
        let Some(in_turn) = self.in_turn.take().filter(|_| self.events == 0 && self.changes.is_empty())
        else {
            return Ok(());
        };
        let clock = Clock::start();
        let InTurn { parts, fewest, every } = *in_turn;
        let count = parts.count;
        let mut rounds = Rounds::new(parts, 0..count, self);
        let duration = self.scenario.duration;
        let (mut told, mut stopped) = (0, Ok(()));
        while rounds.from <= duration && (rounds.rounds < every || rounds.have(fewest, self.events)) {
            rounds.next(self, duration);
            if self.events - told < EVENTS_PER_TICK {
                continue;
            }
            told = self.events;
            self.net.shrink((told / EVENTS_PER_TICK) as usize);
            if cfg!(debug_assertions) {
                self.hosts.audit(&self.net);
            }
            if tick(Progress { simulated: self.net.now, duration, events: told }).is_break() {
                stopped = Err(Stopped);
                break;
            }
        }
        self.events += self.net.events.stale();
        self.net.events.unite();
        self.hosts.end_rounds(&mut self.net);
        rounds.known.iter().flatten().for_each(|link| self.net.await_next(*link));
        let (wall, cpu) = clock.elapsed();
        self.took = (self.took.0 + wall, self.took.1 + cpu);
        stopped
    }
}

impl Rounds {
    /// Rounds of the parts `mine`. Other parts have no turn.
    pub fn new(parts: Parts, mine: Range<usize>, simulation: &mut Simulation) -> Self {
        let Parts { count, owners, lookahead, known: all } = parts;
        let Simulation { net, hosts, .. } = simulation;
        // Slots of the flows that arrive in a round are known when it begins. This bound matters only without links between parts,
        // because flows linger for the delay of the longest router link.
        let lookahead = hosts.lingering_time().map_or(lookahead, |linger| lookahead.min(linger));
        let mut known = vec![Vec::new(); count];
        for link in all.iter().filter(|link| net.delay(**link) >= lookahead) {
            known[usize::from(owners.end[*link as usize])].push(*link);
        }
        let cut = owners.begin.iter().zip(&owners.end).map(|(begin, end)| begin != end).collect();
        net.events.divide(count, mine.clone(), owners, known.iter().flatten());
        hosts.begin_rounds();
        known[..mine.start].fill(Vec::new());
        known[mine.end..].fill(Vec::new());
        Self {
            parts: count,
            mine,
            length: lookahead.min(LONGEST),
            cut,
            known,
            arrivals: Vec::new(),
            from: Time::ZERO,
            idle: true,
            rounds: 0,
            looked: 0,
            common: 0,
        }
    }

    /// Runs until `until`.
    pub fn run_to(&mut self, simulation: &mut Simulation, until: Time) {
        while self.from <= until {
            self.next(simulation, until);
        }
    }

    /// Returns whether parts had at least `fewest` events per turn since the last check. `events` is the number so far.
    fn have(&mut self, fewest: u64, events: u64) -> bool {
        let enough = events - self.looked >= fewest * self.rounds * self.mine.len() as u64;
        (self.rounds, self.looked) = (0, events);
        enough
    }

    /// Runs the next round, up to `last` at most.
    fn next(&mut self, simulation: &mut Simulation, mut last: Time) {
        let common = simulation.net.events.next_common();
        match common {
            Some((time, Class::Warmup)) if time == self.from => return self.run_common(simulation, time),
            Some((time, Class::Warmup)) => last = last.min(time.saturating_sub(INSTANT)),
            // Probes come after all other events of their instant.
            Some((time, _)) => last = last.min(time),
            None => {}
        }
        // Nothing happens up to this time.
        let first = if self.idle { self.first(simulation) } else { self.from };
        let quiet = first.max(self.from).saturating_sub(INSTANT).min(last);
        let until = quiet.saturating_add(self.length).min(last);
        let events = simulation.events;
        let stopped = simulation.hosts.arrive_until(&mut simulation.net, until);
        simulation.events += stopped;
        self.common += stopped;
        for part in self.mine.clone() {
            self.turn(simulation, part, quiet, until);
        }
        self.idle = simulation.events == events;
        simulation.net.now = until;
        self.from = until + INSTANT;
        self.rounds += 1;
        if let Some((time, Class::Probe)) = common {
            if time == until {
                self.run_common(simulation, time);
            }
        }
    }

    /// No part has an event before the returned time.
    pub fn first(&self, simulation: &mut Simulation) -> Time {
        let Simulation { net, hosts, .. } = simulation;
        let timers = self.mine.clone().filter_map(|part| net.events.earliest(part));
        let mut first = timers.min().unwrap_or(Time::MAX).min(hosts.next_arrival());
        for link in self.known.iter().flatten() {
            net.arrivals(*link, self.from.saturating_sub(INSTANT), first, |time| first = first.min(time));
        }
        first
    }

    /// Handles the events of a part after `quiet` and up to `until`.
    fn turn(&mut self, simulation: &mut Simulation, part: usize, quiet: Time, until: Time) {
        self.arrivals.clear();
        let Self { known, arrivals, .. } = self;
        for link in &known[part] {
            simulation.net.arrivals(*link, quiet, until, |time| {
                arrivals.push((time - quiet).as_ps() << NUMBER_BITS | u64::from(*link));
            });
        }
        self.arrivals.sort_unstable();
        simulation.net.events.turn_to(part);
        simulation.net.now = quiet;
        // If the part with a link's entry has not had its turn yet, its state is that of the end of the last round. Packets that
        // arrive in this round had left the link's queue by then.
        let known = |net: &Fabric, link: u32| if self.cut[link as usize] { quiet } else { net.now };
        let prefetches = simulation.net.prefetches();
        for at in 0..self.arrivals.len() {
            let arrival =
                |at: usize| self.arrivals.get(at).map(|word| (word >> NUMBER_BITS, *word as u32 & NUMBERS));
            let Some((since, link)) = arrival(at) else { break };
            if let Some((_, link)) = arrival(at + NEXT_AHEAD).filter(|_| prefetches) {
                simulation.net.ask_for_next(link);
            }
            if let Some((_, link)) = arrival(at + PLACE_AHEAD).filter(|_| prefetches) {
                simulation.net.ask_for_place(link);
            }
            let (time, source) = (quiet + Time::from_ps(since), Source::new(Class::Delivery, link));
            while simulation.net.events.has_before(time, source) {
                simulation.run_knowing(until, 1, known);
            }
            // Hosts may have taken it ahead of time.
            if simulation.net.next_arrival(link) == Some(time) {
                simulation.net.now = time;
                simulation.events += 1;
                simulation.deliver(source, until, known(&simulation.net, link));
            }
        }
        simulation.run_knowing(until, u64::MAX, known);
    }

    /// Handles the next event that concerns all parts.
    fn run_common(&mut self, simulation: &mut Simulation, time: Time) {
        self.common += 1;
        simulation.net.events.turn_to(self.parts);
        simulation.run_knowing(time, 1, |net, _| net.now);
    }
}
