//! Builds the fabric before a run: idle links, the link or host that each one leads to, and first timers. Also describes the
//! paths of flows.

use super::pfc::Pfc;
use super::{BY_ONE, Fabric, HOST, IMPAIRED, PAUSED, PREFETCHED, SEVERAL};
use crate::FULL;
use crate::air::Air;
use crate::capture::{Capture, wanted};
use crate::events::{Class, EventQueue, Source};
use crate::link::{Impaired, LinkStats, MAX_QUEUES, Plain, Port};
use crate::medium::{Service, Turns};
use crate::packet::SackPool;
use crate::plan::{CellPlan, END, FlowRoutes, LinkPlan, Medium};
use crate::port::port;
use crate::scenario::{Access, Priority, Scenario};
use flowstamp_laws::router::{Batches, MAX_TIMERS};
use flowstamp_laws::sender::PathView;
use flowstamp_laws::units::{Rate, Time};

impl Fabric {
    /// Creates idle links, and schedules the first event of each timer. `sides` has the flags of each link's host: what the
    /// host may do ahead of time.
    #[must_use]
    pub fn new(
        scenario: &Scenario,
        plans: &[LinkPlan],
        access: &[Access],
        routes: Vec<u32>,
        sides: &[u32],
        (cells, receivers): (&[CellPlan], Vec<u32>),
    ) -> Self {
        let service = |plan: &LinkPlan| match plan.medium {
            Medium::Cell { .. } => Service::Air,
            _ => plan.capacity.service(),
        };
        let impaired = |plan: &LinkPlan| {
            Impaired::new(plan, scenario.seed).filter(|_| cfg!(feature = "full")).map(Box::new)
        };
        let router_links = plans.iter().map(|plan| Plain::new(service(plan), plan.line_delay()));
        let media = plans.iter().map(|p| if let Medium::Turns(m) = p.medium { m as usize + 1 } else { 0 });
        let access = access.iter().map(|a| Plain::new(Service::constant(a.rate), a.delay));
        let capture = scenario.capture.as_ref().map(|capture| {
            let names = plans.iter().map(|p| p.name.clone()).collect();
            Capture::new(names, capture.packets, scenario.packet.get() as u32)
        });
        let mut fabric = Self {
            now: Time::ZERO,
            reached: Time::ZERO,
            events: EventQueue::for_links(plans.len()),
            links: router_links.chain(access).collect(),
            ports: plans.iter().map(|plan| port(scenario, plan)).collect(),
            media: vec![Turns::default(); media.max().unwrap_or(0)],
            air: Air::new(cells, receivers, scenario.seed),
            medium_of: plans.iter().map(|p| if p.is_held() { Medium::Held } else { p.medium }).collect(),
            impaired: plans.iter().map(impaired).collect(),
            leads_to: Vec::new(),
            prefetches: plans.len() >= PREFETCHED,
            clouds: false,
            #[cfg(feature = "full")]
            advisors: super::scone::advisors(plans),
            pfc: if FULL { Pfc::new(plans, &routes) } else { None },
            policed: plans.iter().any(|plan| plan.police.is_some()),
            routes,
            sacks: SackPool::default(),
            labelled: plans.iter().any(|plan| plan.priority == Priority::Labels),
            capture: capture.unwrap_or_default(),
            sent: 0,
            arrived: 0,
            lost: 0,
        };
        fabric.leads_to = fabric.leads_to(sides);
        fabric.pause_at_ends(plans);
        for (number, cell) in cells.iter().enumerate().filter(|(_, c)| wanted(scenario, &c.name, false)) {
            let captured = fabric.capture.add_cell(cell);
            fabric.air.listen(number as u32, captured);
        }
        fabric.begin(plans);
        fabric.report_acks(plans);
        for (number, at) in fabric.air.changes() {
            fabric.events.push(at, Source::new(Class::Capacity, number));
        }
        fabric
    }

    /// Makes cells tell of each ack, where a router law needs that.
    fn report_acks(&mut self, plans: &[LinkPlan]) {
        for plan in plans.iter().filter(|plan| plan.router.traits().batches == Batches::Needed) {
            if let Medium::Cell { cell, .. } = plan.medium {
                self.air.report(cell);
            }
        }
    }

    /// Switches to the event queue and the prefetching of a network of many links, so that a test of a small network covers them.
    #[cfg(test)]
    pub fn as_of_many_links(&mut self) {
        self.events = std::mem::take(&mut self.events).into_many();
        self.prefetches = true;
    }

    /// Marks links with priority flow control that lead to a switch, because the switch may pause them.
    fn pause_at_ends(&mut self, plans: &[LinkPlan]) {
        for (to, _) in self.leads_to.iter_mut().zip(plans).filter(|(_, plan)| FULL && plan.pfc.is_some()) {
            // A host takes its packets at once, and never pauses.
            *to = if *to >= HOST { *to } else { PAUSED };
        }
    }

    /// Schedules the first events of laws' timers and of capacities that change, and begins the statistics.
    fn begin(&mut self, plans: &[LinkPlan]) {
        for ((number, port), plan) in self.ports.iter_mut().enumerate().zip(plans) {
            if self.prefetches && FULL {
                port.laws_mut().stats = LinkStats::in_bulk();
            }
            for (class, law) in port.queue_laws().iter().enumerate() {
                if let Some(at) = law.first_timer() {
                    let source = Source::new(Class::Queue, (number * MAX_QUEUES + class) as u32);
                    self.events.push(at, source);
                }
            }
            let laws = port.laws();
            for (which, first) in plan.router.traits().first_timers.into_iter().enumerate() {
                if let Some(at) = first {
                    let source = Source::new(Class::Router, (number * MAX_TIMERS + which) as u32);
                    self.events.push(at, source);
                }
            }
            if let (true, (_, Some(at))) = (port.hears_capacity(), laws.capacity.known_at(Time::ZERO)) {
                self.events.push(at, Source::new(Class::Capacity, number as u32));
            }
            if let Some(at) = port.first_division() {
                self.events.push(at, Source::new(Class::Share, number as u32));
            }
        }
    }

    /// Computes `Fabric::leads_to`, including `sides` for links to hosts.
    fn leads_to(&self, sides: &[u32]) -> Vec<u32> {
        let mut next_of = vec![None; self.links.len()];
        for pair in self.routes.windows(2).filter(|pair| pair[0] != END) {
            let next = next_of[pair[0] as usize].get_or_insert(pair[1]);
            if *next != pair[1] {
                *next = SEVERAL;
            }
        }
        let fed_by_one = self.fed_by_one();
        let all = next_of.iter().zip(&fed_by_one).zip(sides).enumerate();
        all.map(|(number, ((next, by_one), side))| match next.unwrap_or(SEVERAL) {
            _ if self.impaired.get(number).is_some_and(Option::is_some) => IMPAIRED,
            END => HOST | side | if *by_one { BY_ONE } else { 0 },
            next => next,
        })
        .collect()
    }

    /// For each link, whether it is an access link whose arrivals are known in advance. Such a link has only one feeder, which
    /// is a router link without events per packet and without impairments. Only packets and its own timers may change the
    /// feeder's laws. Both first process all earlier transmissions, which a capture or a change of capacity does not.
    fn fed_by_one(&self) -> Vec<bool> {
        /// No feeder has been seen yet. `OTHERS` stands for a host or for several links.
        const NOBODY: u32 = u32::MAX;
        const OTHERS: u32 = u32::MAX - 1;
        let mut feeder = vec![NOBODY; self.links.len()];
        let mut before = OTHERS;
        for link in &self.routes {
            if *link == END {
                before = OTHERS;
                continue;
            }
            let feeder = &mut feeder[*link as usize];
            *feeder = if *feeder == NOBODY || *feeder == before { before } else { OTHERS };
            before = *link;
        }
        let steady = |port: &Port| {
            let laws = port.laws();
            matches!(port, Port::Fifo(_) | Port::Ranked(_))
                && !laws.captured
                && laws.capacity.known_at(Time::ZERO).1.is_none()
        };
        let routers = self.ports.len();
        let sound = |by: usize| self.impaired.get(by).is_some_and(Option::is_none);
        let by_one = |by: &u32| sound(*by as usize) && self.ports.get(*by as usize).is_some_and(steady);
        feeder.iter().enumerate().map(|(number, by)| number >= routers && by_one(by)).collect()
    }

    /// Describes the path along these routes, for packets and acks of these sizes. It has no RTT if a delay on it is random.
    #[must_use]
    pub fn path(&self, routes: FlowRoutes, [packet, ack]: [u16; 2]) -> PathView {
        let links = |route: u32| {
            let links = self.routes[route as usize..].iter().take_while(|link| **link != END);
            links.map(|link| *link as usize)
        };
        let slowest = links(routes.data)
            .try_fold(Time::ZERO, |most, link| Some(most.max(self.links[link].sending_time(packet)?)));
        let passing = |link: usize, size: u16| {
            let drawn = self.impaired.get(link).and_then(Option::as_ref).is_some_and(|it| it.draws_delays());
            let sending = self.links[link].sending_time(size).unwrap_or_default();
            (!drawn).then(|| self.links[link].delay() + sending)
        };
        let there = links(routes.data).map(|link| passing(link, packet));
        let back = links(routes.acks).map(|link| passing(link, ack));
        let hops = links(routes.data).filter(|link| *link < self.ports.len()).count();
        PathView {
            hops: hops.min(usize::from(u8::MAX)) as u8,
            rtt: there.chain(back).try_fold(Time::ZERO, |sum, time| Some(sum + time?)),
            rate: slowest.map(|time| Rate::from_bytes_per_sec(f64::from(packet) / time.as_secs_f64())),
        }
    }
}
