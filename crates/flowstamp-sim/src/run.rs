//! The event loop: takes events in order and passes them to fabric and hosts.

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
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "full")]
mod apart;
#[cfg(feature = "parallel")]
mod parts;
#[cfg(feature = "parallel")]
mod rounds;
#[cfg(test)]
mod tests;
mod view;

#[cfg(feature = "parallel")]
pub use parts::{Balance, Divided};
pub use view::{LinkView, SenderView};

/// Events between two calls of the progress function.
const EVENTS_PER_TICK: u64 = 1 << 16;

/// The progress function stopped the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Why a step did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepError {
    /// The progress function stopped the step; the run can go on.
    Stopped,
    /// The request is invalid.
    Refused(ScenarioError),
}

/// A packet on a link, for drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// Number of the flow's group, in the order of [`Simulation::groups`].
    pub group: u32,
    /// The packet is data: no ack, SYN or FIN.
    pub data: bool,
    /// Fraction of the propagation delay that has passed, 0 to 1; `None` if the packet has not left the transmitter.
    pub part: Option<f64>,
}

/// A laid-out network, before or during its run.
///
/// Results are the same to the bit however a run is cut into steps: observation changes no state.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The loaded scenario, with the values set during the run.
    loaded: Arc<Loaded>,
    /// The scenario at the beginning.
    scenario: Scenario,
    changes: Vec<Change>,
    assumed: Named<String>,
    warnings: Vec<String>,
    routed: summary::Routed,
    net: Fabric,
    hosts: Hosts,
    probe: Option<Probe>,
    /// Time of the next sample; [`Time::MAX`] if there is none.
    next_probe: Time,
    /// Changes of routes, in the order of time.
    reroutes: Vec<Reroute>,
    rerouted: usize,
    /// The last instant before hosts are observed (by a probe or the end of warm-up) or take other routes. Hosts may
    /// run ahead until then.
    unseen: Time,
    /// Number of events handled.
    events: u64,
    /// Wall and CPU time so far.
    took: (Duration, Duration),
    /// The parts of a large network that run in turn.
    #[cfg(feature = "parallel")]
    in_turn: Option<Box<rounds::InTurn>>,
}

impl Simulation {
    /// Lays out the network of `loaded`. `seed` replaces the scenario's.
    ///
    /// # Errors
    /// One line for the first thing that is wrong.
    pub fn new(loaded: &Loaded, seed: Option<u64>) -> Result<Self, ScenarioError> {
        let seed = seed.unwrap_or(loaded.scenario.seed);
        let network = Network::new(loaded, seed)?;
        Ok(Self::of_network(Arc::new(loaded.with_seed(seed)), network))
    }

    /// A simulation of a laid-out network.
    pub(crate) fn of_network(loaded: Arc<Loaded>, network: Network) -> Self {
        let scenario = loaded.scenario.clone();
        let sides = sides(&network, &scenario);
        #[cfg(feature = "parallel")]
        let in_turn = rounds::in_turn(&network, &scenario);
        let Network {
            links,
            access,
            routes,
            spreads,
            cells,
            receivers,
            reroutes,
            groups,
            flows,
            arrivals,
            assumed,
            warnings,
            ..
        } = network;
        let routed = summary::Routed::new(&links, &access, &routes, &scenario);
        let mut net = Fabric::new(&scenario, &links, &access, routes, &sides, (&cells, receivers));
        let mut hosts = Hosts::new(&scenario, &groups, arrivals, spreads, &mut net);
        hosts.flows.reserve_exact(flows.len());
        hosts.records.reserve_exact(flows.len());
        for plan in &flows {
            hosts.add_planned(&mut net, plan.group, plan.index, plan.routes, plan.start);
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
            loaded,
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
            #[cfg(feature = "parallel")]
            in_turn,
        };
        simulation.unseen = simulation.unseen();
        simulation
    }

    /// Lets flows linger in their slots as they do in a large network, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn as_large(mut self) -> Self {
        self.hosts.linger(&self.net);
        self
    }

    /// Returns the simulation without the engine's optimisations, so that a test can check that they change no result:
    /// each packet moves from link to link by an event of its own.
    #[doc(hidden)]
    #[must_use]
    pub fn one_by_one(mut self) -> Self {
        self.net.one_by_one();
        self
    }

    /// Puts a test's law in the place of the law of a router link, by the link's number. Its timers first fire when those of
    /// the scenario's law would.
    #[cfg(any(test, feature = "scripted"))]
    #[doc(hidden)]
    pub fn replace_router(&mut self, link: usize, law: flowstamp_laws::registry::scripted::Router) {
        self.net.laws_mut(link).router = Some(flowstamp_laws::registry::AnyRouter::Scripted(Box::new(law)));
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
        #[cfg(feature = "parallel")]
        self.run_in_rounds(tick)?;
        self.advance(self.scenario.duration, tick)?;
        Ok(self.finish())
    }

    /// Runs on until `until`, including the events of that instant. `tick` is as in [`Self::run`].
    ///
    /// # Errors
    /// [`StepError::Stopped`] if `tick` said so, [`StepError::Refused`] if `until` is in the past or after the
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

    /// The results as if the run ended now. The run can go on unchanged.
    ///
    /// # Errors
    /// During warm-up there are no statistics yet.
    pub fn results(&self) -> Result<Results, ScenarioError> {
        let (now, warmup) = (self.net.now, self.scenario.warmup);
        if now <= warmup {
            let message = format!("statistics start at warmup, {warmup}; the run is at {now}");
            return Err(ScenarioError::new("results", message));
        }
        Ok(self.clone().finish())
    }

    /// The samples taken after `since`.
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

    /// The packets on a router link in the order of arrival, followed by the queued packets. Empty if there is no such
    /// link.
    pub fn crossing(&self, link: &str) -> Vec<Crossing> {
        let mut routers = self.net.routers().enumerate();
        let Some((number, (port, line))) = routers.find(|(_, (port, _))| port.laws().name == link) else {
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
        let before_it = self.net.in_mac(number).chain(port.before_the_line()).map(|packet| {
            let (group, data) = group(packet);
            Crossing { group, data, part: None }
        });
        in_line.chain(before_it).collect()
    }

    /// Sets a value of the scenario from now on. `text` is TOML, or else a string. These values can change during a
    /// run: rates, delays and buffers of links, data rates of a cell's stations, parameters of router laws and of told
    /// senders, and the start and stop of flows.
    ///
    /// # Errors
    /// One line for a key that cannot change, or for an invalid value. Nothing has changed then.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), ScenarioError> {
        let changed = change::apply(&mut self.net, &mut self.hosts, &self.loaded, key, text);
        self.loaded = Arc::new(changed.map_err(|e| e.at("set"))?);
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
            self.net.shrink((self.events / EVENTS_PER_TICK) as usize);
            debug_assert!(done || self.events > events, "no progress");
            if done {
                self.net.now = until;
            }
            if cfg!(debug_assertions) {
                self.hosts.audit(&self.net);
            }
            if tick(Progress { simulated: self.net.now, duration, events: self.events }).is_break() {
                // An observer must see one instant, so all flows advance to the time that the foremost have reached.
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

    /// Handles up to `limit` events. Returns true if none is left up to `end`.
    fn run_events(&mut self, end: Time, limit: u64) -> bool {
        self.run_knowing(end, limit, |net, _| net.now)
    }

    /// Does the same as [`Self::run_events`]. For a link whose packet has arrived, `known` returns the time up to which
    /// arrivals at the link's entry were handled.
    #[inline(always)] // so that runs as a whole do not ask
    fn run_knowing(&mut self, end: Time, limit: u64, known: impl Fn(&Fabric, u32) -> Time) -> bool {
        for _ in 0..limit {
            let Some((time, source)) = self.net.events.pop_until(end) else { return true };
            debug_assert!(time >= self.net.now, "time goes backward");
            self.net.now = time;
            self.net.look_ahead();
            self.events += 1;
            let source = match source.class() {
                Class::Air => match self.net.air(source.number()) {
                    Some(link) => Source::new(Class::Delivery, link),
                    None => continue,
                },
                _ => source,
            };
            if source.class() == Class::Delivery {
                let known = known(&self.net, source.number());
                self.deliver(source, end, known);
            } else {
                self.dispatch(source.class(), source.number());
            }
        }
        false
    }

    /// Handles a packet that has reached the end of its link, and those that can be handled with it, up to `end`. All arrivals
    /// at the link's begin up to `known` have been handled.
    #[inline(always)] // as `run_knowing`
    fn deliver(&mut self, source: Source, end: Time, known: Time) {
        let number = source.number();
        let Self { net, hosts, .. } = self;
        match net.forward(number, source, known) {
            Onward::Done => {}
            Onward::Host => {
                self.events += hosts.receive(net, number, source, end.min(self.unseen)) - 1;
            }
            Onward::Exits => {
                self.events += hosts.receive_exits(net, number, source, end, end.min(self.unseen)) - 1;
            }
            Onward::Impaired => {
                for packet in net.impair(number, source).into_iter().flatten() {
                    hosts.arrive(net, &packet);
                }
            }
        }
    }

    /// Handles every event that is not a delivery.
    fn dispatch(&mut self, class: Class, number: u32) {
        let (net, hosts) = (&mut self.net, &mut self.hosts);
        match class {
            Class::Delivery | Class::Air => {}
            Class::Warmup if number == 0 => self.end_warmup(),
            Class::Warmup => self.reroute(),
            Class::Capacity => net.learn_capacity(number),
            Class::Transmit => net.choose(number),
            Class::Rejoin if cfg!(not(feature = "full")) => {}
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
            Class::FlowArrival if cfg!(not(feature = "full")) => {}
            Class::FlowArrival => hosts.flow_arrival(net, number),
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

    /// The last instant before hosts are observed or take other routes.
    fn unseen(&self) -> Time {
        let warmup = self.scenario.warmup;
        let look = if self.net.now < warmup { warmup.min(self.next_probe) } else { self.next_probe };
        let reroute = self.reroutes.get(self.rerouted).map_or(Time::MAX, |reroute| reroute.time);
        look.min(reroute).saturating_sub(Time::from_ps(1))
    }

    /// Applies the next change of routes.
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

    fn finish(self) -> Results {
        summary::results(self.finished())
    }

    /// Ends the run.
    fn finished(mut self) -> Finished {
        self.net.settle();
        let net = &self.net;
        assert_eq!(net.sent, net.arrived + net.lost + net.held(), "packets are conserved");
        let series = self.probe.map_or_else(Series::default, Probe::into_series);
        let capture = std::mem::take(&mut self.net.capture).finish();
        Finished {
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
        }
    }
}
