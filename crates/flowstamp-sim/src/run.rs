//! The loop: takes events in their order and tells fabric and hosts of them.

use crate::change;
use crate::clock::Clock;
use crate::events::{Class, Source};
use crate::fabric::{Fabric, Onward};
use crate::host::{Hosts, sides};
use crate::packet::{DATA, Packet};
use crate::plan::{Network, Reroute};
use crate::probe::Probe;
use crate::results::{Change, Named, Results, Series};
use crate::scenario::{Loaded, Scenario};
use crate::summary::{self, Finished};
use crate::{Progress, ScenarioError};
use flowstamp_laws::units::Time;
use std::ops::ControlFlow;
use std::time::Duration;

#[cfg(test)]
mod tests;
mod view;

pub use view::{LinkView, SenderView};

/// Events between two calls of the progress function.
const EVENTS_PER_TICK: u64 = 1 << 16;

/// A run that was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Why a step was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepError {
    /// The progress function stopped it on the way; it can go on.
    Stopped,
    /// What was asked for cannot be.
    Refused(ScenarioError),
}

/// A packet on a link, to be drawn: whose it is, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// Its flow's group, as in [`Simulation::groups`].
    pub group: u32,
    /// It is data; acks and what opens or ends a flow are not.
    pub data: bool,
    /// How much of the way to the link's end is behind it, 0 to 1; `None` if it has not left the transmitter.
    pub part: Option<f64>,
}

/// A laid-out network, ready to run or in the middle of it.
///
/// However a run is cut into steps, its results are the same to the bit: what is pending and what is known are all there
/// is, and looking on changes neither.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// As it began, but for what was set since.
    loaded: Loaded,
    /// As it began.
    scenario: Scenario,
    changes: Vec<Change>,
    assumed: Named<String>,
    warnings: Vec<String>,
    routed: summary::Routed,
    net: Fabric,
    hosts: Hosts,
    probe: Option<Probe>,
    /// [`Time::MAX`] if there is none.
    next_probe: Time,
    /// When flows take other routes, and how often they have.
    reroutes: Vec<Reroute>,
    rerouted: usize,
    /// The last instant before hosts are looked at, by a probe or the end of warm-up, or take other routes.
    unseen: Time,
    /// Events handled.
    events: u64,
    /// Wall-clock and CPU time so far.
    took: (Duration, Duration),
}

impl Simulation {
    /// Lays out `loaded`; `seed` replaces the scenario's.
    ///
    /// # Errors
    /// Whatever cannot be, in one line.
    pub fn new(loaded: &Loaded, seed: Option<u64>) -> Result<Self, ScenarioError> {
        let mut scenario = loaded.scenario.clone();
        scenario.seed = seed.unwrap_or(scenario.seed);
        let network = Network::new(loaded, scenario.seed)?;
        let sides = sides(&network, &scenario);
        let Network {
            links,
            access,
            routes,
            cells,
            receivers,
            reroutes,
            groups,
            flows,
            web,
            assumed,
            warnings,
            ..
        } = network;
        let routed = summary::Routed::new(&links, &access, &routes, &scenario);
        let mut net = Fabric::new(&scenario, &links, &access, routes, &sides, (&cells, receivers));
        let mut hosts = Hosts::new(&scenario, &groups, web, &mut net);
        hosts.flows.reserve_exact(flows.len());
        hosts.records.reserve_exact(flows.len());
        for plan in &flows {
            hosts.add_planned(&mut net, plan.group, plan.index, plan.path, plan.start);
        }
        hosts.add_listed();
        net.events.push(scenario.warmup, Source::new(Class::Warmup, 0));
        for (number, reroute) in (1..).zip(&reroutes) {
            net.events.push(reroute.time, Source::new(Class::Warmup, number));
        }
        let probe = Probe::new(&scenario, &net, &hosts);
        let next_probe = probe.as_ref().map_or(Time::MAX, Probe::every);
        if probe.is_some() {
            net.events.push(next_probe, Source::new(Class::Probe, 0));
        }
        let mut simulation = Self {
            loaded: loaded.with_seed(scenario.seed),
            scenario,
            changes: Vec::new(),
            assumed,
            warnings,
            routed,
            net,
            hosts,
            probe,
            next_probe,
            reroutes,
            rerouted: 0,
            unseen: Time::ZERO,
            events: 0,
            took: (Duration::ZERO, Duration::ZERO),
        };
        simulation.unseen = simulation.unseen();
        Ok(simulation)
    }

    /// The same simulation without the engine's short cuts, so that a test can tell that they change nothing: each packet
    /// goes from link to link by an event of its own.
    #[doc(hidden)]
    #[must_use]
    pub fn one_by_one(mut self) -> Self {
        self.net.one_by_one();
        self
    }

    /// Simulated time so far.
    #[must_use]
    pub fn now(&self) -> Time {
        self.net.now
    }

    /// Runs to the end. `tick` is called about every 65,536 events and may stop the run.
    ///
    /// # Errors
    /// [`Stopped`] if `tick` said so.
    pub fn run(mut self, tick: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Results, Stopped> {
        self.advance(self.scenario.duration, tick)?;
        Ok(self.finish())
    }

    /// Runs on to `until`: everything that happens up to and at that instant has happened then. `tick` as in [`Self::run`].
    ///
    /// # Errors
    /// [`StepError::Stopped`] if `tick` said so, [`StepError::Refused`] for a time that has gone by or is beyond the
    /// scenario's end.
    pub fn run_until(
        &mut self,
        until: Time,
        tick: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(), StepError> {
        let refused = |message| Err(StepError::Refused(ScenarioError::new("run_until", message)));
        if until < self.net.now {
            return refused(format!("is {until}; the run is at {} already", self.net.now));
        }
        if until > self.scenario.duration {
            let duration = self.scenario.duration;
            return refused(format!("is {until}; it must be at most duration, {duration}"));
        }
        self.advance(until, tick).map_err(|Stopped| StepError::Stopped)
    }

    /// The results as if the run ended now. It can go on as if nothing had been asked.
    ///
    /// # Errors
    /// During warm-up there is nothing to tell.
    pub fn results(&self) -> Result<Results, ScenarioError> {
        let (now, warmup) = (self.net.now, self.scenario.warmup);
        if now <= warmup {
            let message = format!("statistics start at warmup, {warmup}; the run is at {now}");
            return Err(ScenarioError::new("results", message));
        }
        Ok(self.clone().finish())
    }

    /// The samples that were taken after `since`.
    #[must_use]
    pub fn series_since(&self, since: Time) -> Series {
        self.probe.as_ref().map_or_else(Series::default, |probe| probe.series().since(since.as_secs_f64()))
    }

    /// The names of the groups of flows.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.hosts.groups.iter().map(|group| group.name.as_str())
    }

    /// The names of the router links.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        self.net.routers().map(|(port, _)| port.laws().name.as_str())
    }

    /// The packets on a router link, the next to arrive first, and behind them those that wait. Nothing if there is no such link.
    pub fn crossing(&self, link: &str) -> Vec<Crossing> {
        let Some((port, line)) = self.net.routers().find(|(port, _)| port.laws().name == link) else {
            return Vec::new();
        };
        let (now, delay) = (self.net.now, line.delay().as_secs_f64());
        let group = |packet: &Packet| {
            let flow = &self.hosts.flows[packet.flow as usize];
            (flow.group, packet.flags & DATA != 0)
        };
        let in_line = line.under_way().map(|(gone, packet)| {
            let (group, data) = group(packet);
            let part =
                (gone <= now).then(|| ((now - gone).as_secs_f64() / delay.max(f64::MIN_POSITIVE)).min(1.0));
            Crossing { group, data, part }
        });
        let before_it = port.before_the_line().map(|packet| {
            let (group, data) = group(packet);
            Crossing { group, data, part: None }
        });
        in_line.chain(before_it).collect()
    }

    /// Sets a value of the scenario from now on; `text` is TOML, or else a string. Links' rates, delays and
    /// buffers, data rates of a cell's stations, parameters of router laws and of senders that are told, and the start and stop of flows can change in mid-run.
    ///
    /// # Errors
    /// One line for a key that cannot change, or a value that cannot be; nothing has changed then.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), ScenarioError> {
        self.loaded = change::apply(&mut self.net, &mut self.hosts, &self.loaded, key, text)
            .map_err(|e| e.at("set"))?;
        let time_s = self.net.now.as_secs_f64();
        self.changes.push(Change { time_s, key: key.to_owned(), value: text.to_owned() });
        Ok(())
    }

    fn advance(
        &mut self,
        until: Time,
        tick: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        let clock = Clock::start();
        let duration = self.scenario.duration;
        let mut stopped = Ok(());
        loop {
            let events = self.events;
            let done = self.run_events(until, EVENTS_PER_TICK);
            debug_assert!(done || self.events > events, "no progress");
            if done {
                self.net.now = until;
            }
            if cfg!(debug_assertions) {
                self.hosts.audit(&self.net);
            }
            if tick(Progress { simulated: self.net.now, duration, events: self.events }).is_break() {
                // Who looks on now is to see one instant: all come to where the foremost are.
                let foremost = self.net.now.max(self.net.reached);
                self.run_events(foremost, u64::MAX);
                self.net.now = foremost;
                stopped = Err(Stopped);
            }
            if done || stopped.is_err() {
                break;
            }
        }
        let (wall, cpu) = clock.elapsed();
        self.took = (self.took.0 + wall, self.took.1 + cpu);
        stopped
    }

    /// Handles up to `limit` events; true if none is left up to `end`.
    fn run_events(&mut self, end: Time, limit: u64) -> bool {
        for _ in 0..limit {
            let Some((time, source)) = self.net.events.pop_until(end) else { return true };
            debug_assert!(time >= self.net.now, "time goes backward");
            self.net.now = time;
            self.events += 1;
            let source = match source.class() {
                Class::Air => match self.net.air(source.number()) {
                    Some(link) => Source::new(Class::Delivery, link),
                    None => continue,
                },
                _ => source,
            };
            let number = source.number();
            if source.class() == Class::Delivery {
                let Self { net, hosts, .. } = self;
                match net.forward(number, source) {
                    Onward::Done => {}
                    Onward::Host => {
                        self.events += hosts.receive(net, number, source, end.min(self.unseen)) - 1;
                    }
                    Onward::Exits => {
                        self.events +=
                            hosts.receive_exits(net, number, source, end, end.min(self.unseen)) - 1;
                    }
                    Onward::Impaired => {
                        for packet in net.impair(number, source).into_iter().flatten() {
                            hosts.arrive(net, &packet);
                        }
                    }
                }
            } else {
                self.dispatch(source.class(), number);
            }
        }
        false
    }

    /// All that is not a delivery.
    fn dispatch(&mut self, class: Class, number: u32) {
        let (net, hosts) = (&mut self.net, &mut self.hosts);
        match class {
            Class::Delivery | Class::Air => {}
            Class::Warmup if number == 0 => self.end_warmup(),
            Class::Warmup => self.reroute(),
            Class::Capacity => net.learn_capacity(number),
            Class::Transmit => net.choose(number),
            Class::Rejoin => {
                if let Some(packet) = net.rejoin(number) {
                    hosts.arrive(net, &packet);
                }
            }
            Class::Share => net.divide(number),
            Class::Router => net.router_timer(number),
            Class::Queue => net.queue_timer(number),
            Class::Retransmit => hosts.retransmission_timer(net, number),
            Class::Ack => hosts.ack_timer(net, number),
            Class::Control => hosts.control_timer(net, number),
            Class::Pace => hosts.pace_timer(net, number),
            Class::Application => hosts.application_timer(net, number),
            Class::Web => hosts.web_arrival(net, number),
            Class::Probe => {
                net.settle();
                if let Some(probe) = &mut self.probe {
                    self.next_probe = probe.sample(net, hosts);
                    net.events.push(self.next_probe, Source::new(Class::Probe, 0));
                }
                self.unseen = self.unseen();
            }
        }
    }

    /// Until when nobody looks at hosts.
    fn unseen(&self) -> Time {
        let warmup = self.scenario.warmup;
        let look = if self.net.now < warmup { warmup.min(self.next_probe) } else { self.next_probe };
        let reroute = self.reroutes.get(self.rerouted).map_or(Time::MAX, |reroute| reroute.time);
        look.min(reroute).saturating_sub(Time::from_ps(1))
    }

    /// Flows take other routes.
    fn reroute(&mut self) {
        if let Some(reroute) = self.reroutes.get(self.rerouted) {
            self.hosts.reroute(&self.net, reroute);
            self.rerouted += 1;
        }
        self.unseen = self.unseen();
    }

    fn end_warmup(&mut self) {
        let probe = &mut self.probe;
        self.net.end_warmup(|number, sent, stats| {
            if let Some(probe) = probe {
                probe.restart_link(number, sent, stats);
            }
        });
        self.hosts.end_warmup(self.net.now);
        self.unseen = self.unseen();
    }

    fn finish(mut self) -> Results {
        self.net.settle();
        let net = &self.net;
        assert_eq!(net.sent, net.arrived + net.lost + net.held(), "packets are conserved");
        let series = self.probe.map_or_else(Series::default, Probe::into_series);
        let capture = std::mem::take(&mut self.net.capture).finish();
        summary::results(Finished {
            scenario: self.scenario,
            changes: self.changes,
            assumed: self.assumed,
            warnings: self.warnings,
            routed: self.routed,
            net: self.net,
            hosts: self.hosts,
            series,
            capture,
            events: self.events,
            took: self.took,
        })
    }
}
