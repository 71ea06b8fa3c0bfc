//! What moves packets: links, the packets between them, and the order of events.
//!
//! Cost is per packet-hop. A delivery takes one packet out of its link's ring and puts it into the next one's; the
//! event queue holds one event per busy link and the timers. State is in flat arrays; nothing is allocated, hashed or
//! looked up through a vtable per packet.

mod impaired;

use crate::air::Air;
use crate::capture::{Capture, wanted};
use crate::events::{Class, EventQueue, Source};
use crate::link::{Admission, Impaired, Laws, LinkStats, Plain, Port, Tap};
use crate::medium::dcf::{Happened, Kind};
use crate::medium::{Capacity, Grant, Service, Turns};
use crate::network::{CellPlan, END, LinkPlan, Medium};
use crate::packet::{DATA, Packet, SackPool};
use crate::port::port;
use crate::prefetch::prefetch;
use crate::scenario::{Access, Priority, Scenario};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::router::MAX_TIMERS;
use flowstamp_laws::units::{Rate, Time};

/// The most queue laws that a link may have.
const MAX_QUEUES: usize = 8;

/// A link leads to a host: with these bits, whose packets all come from one link, of which they are known in advance, and
/// what may be done there ahead of time ([`Fabric::sides`]).
const HOST: u32 = END - 7;
const BY_ONE: u32 = 4;
/// Data that arrive by a link may be answered ahead of time.
pub const RECEIVERS: u32 = 1;
/// So may acks.
pub const SENDER: u32 = 2;

/// A link leads to several links.
const SEVERAL: u32 = HOST - 1;
/// What becomes of packets at the end of a link is not only to be looked up.
const IMPAIRED: u32 = HOST - 2;

/// What became of a packet that reached the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// It is on its next link, or lost.
    Done,
    /// It is at its host, who will take it.
    Host,
    /// It is still there: its next link is an access link that no other link feeds, so that what becomes of it and of
    /// those behind it is known.
    Exits,
    /// It is still there: the link is impaired, and [`Fabric::impair`] says what becomes of it.
    Impaired,
}

/// What became of a packet that leaves a router for an access link.
#[derive(Clone, Copy, Debug)]
pub enum Exit {
    /// It is still there: it leaves by a link that others feed too.
    Other,
    /// It is on its access link.
    Access,
    /// Its host can have it, for when it arrives there.
    Host(Time, Packet),
}

/// Links, packets and time.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// The time of the last event.
    pub now: Time,
    /// How far hosts, and packets that leave for them, have gone ahead of it.
    pub reached: Time,
    /// What is pending.
    pub events: EventQueue,
    /// All links: those of routers first.
    links: Vec<Plain>,
    /// What stands before each of the router links.
    ports: Vec<Port>,
    /// Media that links share in turn, the cells, and what each router link is on.
    media: Vec<Turns>,
    air: Air,
    medium_of: Vec<Medium>,
    /// What becomes of packets at the end of each router link, where that is not known.
    impaired: Vec<Option<Box<Impaired>>>,
    routes: Vec<u32>,
    policed: bool,
    /// Of each link the one that all its packets go to next, [`SEVERAL`], [`IMPAIRED`], or [`HOST`] and what is known of it.
    leads_to: Vec<u32>,
    /// Selective acks of packets that are under way.
    pub sacks: SackPool,
    /// Some link goes by labels of flows.
    labelled: bool,
    /// Packets that are recorded.
    pub capture: Capture,
    /// Packets that hosts sent, and copies that impaired links made of them.
    pub sent: u64,
    /// Packets that reached a host, for the conservation of packets.
    pub arrived: u64,
    /// Packets that queues dropped, stations gave up and impaired links lost.
    pub lost: u64,
}

impl Fabric {
    /// Links at rest, with the first event of each of their timers. `sides` is what may be done ahead of time where a link
    /// leads to a host.
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
        let impaired = |plan: &LinkPlan| Impaired::new(plan, scenario.seed).map(Box::new);
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
            events: EventQueue::default(),
            links: router_links.chain(access).collect(),
            ports: plans.iter().map(|plan| port(scenario, plan)).collect(),
            media: vec![Turns::default(); media.max().unwrap_or(0)],
            air: Air::new(cells, receivers, scenario.seed),
            medium_of: plans.iter().map(|p| p.medium).collect(),
            impaired: plans.iter().map(impaired).collect(),
            leads_to: Vec::new(),
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
        for (number, cell) in cells.iter().enumerate().filter(|(_, c)| wanted(scenario, &c.name, false)) {
            let captured = fabric.capture.add_cell(cell);
            fabric.air.listen(number as u32, captured);
        }
        for (number, port) in fabric.ports.iter_mut().enumerate() {
            for (class, law) in port.queue_laws().iter().enumerate() {
                if let Some(at) = law.first_timer() {
                    let source = Source::new(Class::Queue, (number * MAX_QUEUES + class) as u32);
                    fabric.events.push(at, source);
                }
            }
            let laws = port.laws();
            for which in 0..MAX_TIMERS {
                if let Some(at) = laws.router.as_ref().and_then(|r| r.first_timer(which)) {
                    let source = Source::new(Class::Router, (number * MAX_TIMERS + which) as u32);
                    fabric.events.push(at, source);
                }
            }
            if let (true, (_, Some(at))) = (port.hears_capacity(), laws.capacity.known_at(Time::ZERO)) {
                fabric.events.push(at, Source::new(Class::Capacity, number as u32));
            }
            if let Some(at) = port.first_division() {
                fabric.events.push(at, Source::new(Class::Share, number as u32));
            }
        }
        for (number, at) in fabric.air.changes() {
            fabric.events.push(at, Source::new(Class::Capacity, number));
        }
        fabric
    }

    /// Whether flows are tested anywhere.
    #[must_use]
    pub fn has_police(&self) -> bool {
        self.policed
    }

    /// The flow that has `slot` from now on has this label.
    pub fn label(&mut self, slot: u32, label: u8) {
        if self.labelled {
            self.sacks.labels.set(slot, label);
        }
    }

    /// Router links of the route that begins at `route`.
    #[must_use]
    pub fn hops(&self, route: u32) -> u8 {
        let links = self.routes[route as usize..].iter().take_while(|link| **link != END);
        links.filter(|link| (**link as usize) < self.ports.len()).count().min(usize::from(u8::MAX)) as u8
    }

    /// Where each link leads; of one that leads to a host, `sides` too.
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

    /// Of each link, whether it is an access link that one router link feeds and nobody else. The router link must be one
    /// whose laws hear of nothing but packets and their own timers: both catch up with what was transmitted before. And what
    /// reaches its end must go on then.
    fn fed_by_one(&self) -> Vec<bool> {
        /// Nothing seen yet; a host, or several links.
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

    /// From now on each packet goes on by an event of its own, whatever else is known of it.
    pub fn one_by_one(&mut self) {
        self.leads_to.iter_mut().filter(|to| **to >= HOST).for_each(|to| *to = HOST);
    }

    #[inline]
    fn is_fed_by_one(&self, number: u32) -> bool {
        let to = self.leads_to[number as usize];
        to >= HOST && to & BY_ONE != 0
    }

    /// What may be done ahead of time with packets of a link: [`RECEIVERS`], [`SENDER`].
    #[inline]
    pub fn sides(&self, number: u32) -> u32 {
        let to = self.leads_to[number as usize];
        if to >= HOST { to & (RECEIVERS | SENDER) } else { 0 }
    }

    /// The router links: what stands before each, and its line.
    pub fn routers(&self) -> impl Iterator<Item = (&Port, &Plain)> {
        self.ports.iter().zip(&self.links)
    }

    /// The cells.
    #[must_use]
    pub fn cells(&self) -> &Air {
        &self.air
    }

    /// Links without laws.
    #[must_use]
    pub fn access(&self) -> &[Plain] {
        &self.links[self.ports.len()..]
    }

    /// Packets and acks, counted at each link they reached.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|l| l.arrivals).sum()
    }

    /// The links are done with: frees their memory.
    pub fn drop_links(&mut self) {
        self.links = Vec::new();
    }

    /// Packets that are neither lost nor at a host.
    #[must_use]
    pub fn held(&self) -> u64 {
        let waiting = self.ports.iter().map(Port::held);
        let aside = self.impaired.iter().flatten().map(|link| link.held()).sum::<u64>();
        self.links.iter().map(Plain::held).chain(waiting).map(u64::from).sum::<u64>() + aside
    }

    /// The head of a link's flight has arrived: on to the next link, if there is one and it is not known in advance what
    /// becomes of the packet there.
    #[inline]
    pub fn forward(&mut self, number: u32, source: Source) -> Onward {
        let at = number as usize;
        let link = &mut self.links[at];
        if let Some(port) = self.ports.get_mut(at) {
            let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number };
            port.advance(link, self.now, &mut tap);
        }
        // Without a look at the packet where that is possible: it is far away.
        let mut to = self.leads_to[at];
        if to == SEVERAL {
            to = self.routes[link.head().next as usize];
        }
        if to >= IMPAIRED {
            return if to == IMPAIRED { Onward::Impaired } else { Onward::Host };
        }
        if self.is_fed_by_one(to) {
            return Onward::Exits;
        }
        // From ring to ring in one copy. A route never has a link twice in a row: ends of a link differ.
        let Ok([link, next]) = self.links.get_disjoint_mut([at, to as usize]) else { return Onward::Done };
        let packet = link.deliver();
        let admission = match self.ports.get_mut(to as usize) {
            None => next.admit(self.now, packet),
            Some(port) => {
                let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: to };
                port.admit(next, self.now, packet, &mut tap)
            }
        };
        let sack = packet.sack;
        if let Some(time) = link.next_arrival() {
            self.events.push(time, source);
        }
        self.admitted(to, admission, sack);
        Onward::Done
    }

    /// The head of a router link's flight goes on to an access link that no other link feeds, if that is where it goes.
    /// `ahead` is asked whether its host can do at the given time what it would do when the packet arrives there.
    #[inline]
    pub fn exit(&mut self, number: u32, time: Time, ahead: impl FnOnce(u32, &Packet, Time) -> bool) -> Exit {
        let at = number as usize;
        let to = self.routes[self.links[at].head().next as usize];
        if to == END || !self.is_fed_by_one(to) {
            return Exit::Other;
        }
        let sides = self.sides(to);
        let Ok([link, next]) = self.links.get_disjoint_mut([at, to as usize]) else { return Exit::Other };
        let packet = link.deliver();
        if next.held() == 0 {
            let arrives = next.pass(time, packet);
            if ahead(sides, packet, arrives) {
                self.arrived += 1;
                return Exit::Host(arrives, *packet);
            }
            next.append(arrives, packet);
            self.events.push(arrives, Source::new(Class::Delivery, to));
        } else {
            next.admit(time, packet);
        }
        Exit::Access
    }

    /// A packet that is `behind` after the head of a link's flight will go on soon: its next link is brought near. Returns its flow's
    /// slot, and whether it is data.
    #[inline]
    pub fn ask_for_exit(&self, number: u32, behind: u32) -> Option<(u32, bool)> {
        let packet = self.links[number as usize].behind_head(behind)?;
        if let Some(next) = self.links.get(self.routes[packet.next as usize] as usize) {
            prefetch(next);
        }
        Some((packet.flow, packet.flags & DATA != 0))
    }

    /// When the next packet on a link arrives at its end, if one is on its way.
    #[inline]
    pub fn next_arrival(&self, number: u32) -> Option<Time> {
        self.links[number as usize].next_arrival()
    }

    /// The head of a link's flight; there is one.
    #[inline]
    pub fn head(&self, number: u32) -> &Packet {
        self.links[number as usize].head()
    }

    /// When a packet that arrives now at the far end of a router link began its way there.
    #[inline]
    pub fn delay(&self, number: u32) -> Time {
        self.links[number as usize].delay()
    }

    /// The head of a link's flight, which is at its host.
    #[inline]
    pub fn take(&mut self, number: u32) -> Packet {
        self.arrived += 1;
        *self.links[number as usize].deliver()
    }

    /// How long what waits for a host's own link takes, which the route begins with; zero where it begins with a router's.
    pub fn backlog(&self, route: u32) -> Time {
        let number = self.routes[route as usize] as usize;
        if number < self.ports.len() {
            Time::ZERO
        } else {
            self.links[number].free_at().saturating_sub(self.now)
        }
    }

    /// A host's packet goes to the first link of its route.
    pub fn send(&mut self, packet: Packet) {
        self.sent += 1;
        self.enter(self.routes[packet.next as usize], packet);
    }

    /// A host's packet of `size` bytes goes to the first link of its route, which begins at `route`. `make` makes it where it
    /// belongs: what is copied from where it was written field by field a moment ago has to wait for the writes.
    #[inline(always)]
    pub fn send_made(&mut self, route: u32, size: u16, make: impl FnOnce() -> Packet) {
        self.sent += 1;
        let number = self.routes[route as usize];
        let mut aside = Packet::NONE;
        let (admission, place) = match self.links.get_mut(number as usize) {
            Some(link) if number as usize >= self.ports.len() => link.admit_place(self.now, size),
            _ => (Admission::Behind, &mut aside),
        };
        // In one place, so that it is inlined.
        *place = make();
        if (number as usize) < self.ports.len() {
            return self.enter_router(number, aside);
        }
        place.next += 1;
        if let Admission::First(time) = admission {
            self.events.push(time, Source::new(Class::Delivery, number));
        }
    }

    /// A packet enters a link.
    #[inline]
    fn enter(&mut self, number: u32, packet: Packet) {
        if (number as usize) < self.ports.len() {
            return self.enter_router(number, packet);
        }
        if let Admission::First(time) = self.links[number as usize].admit(self.now, &packet) {
            self.events.push(time, Source::new(Class::Delivery, number));
        }
    }

    #[inline(never)]
    fn enter_router(&mut self, number: u32, packet: Packet) {
        let at = number as usize;
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number };
        let admission = self.ports[at].admit(&mut self.links[at], self.now, &packet, &mut tap);
        self.admitted(number, admission, packet.sack);
    }

    /// What follows from a link's answer.
    #[inline(always)] // mostly one comparison
    fn admitted(&mut self, number: u32, admission: Admission, sack: u32) {
        match admission {
            Admission::First(time) => self.events.push(time, Source::new(Class::Delivery, number)),
            Admission::Behind => {}
            Admission::Choose(time) => match self.medium_of[number as usize] {
                Medium::Own => self.events.push(time, Source::new(Class::Transmit, number)),
                Medium::Turns(medium) => {
                    let grant = self.media[medium as usize].request(self.now, number);
                    self.granted(grant);
                }
                Medium::Cell { cell, station } => self.take_up(number, cell, station),
            },
            Admission::Dropped => {
                self.lost += 1;
                self.sacks.release(sack);
            }
            Admission::Overfull => self.overfull(number),
        }
    }

    /// Packets that waited are lost.
    #[cold]
    fn overfull(&mut self, number: u32) {
        if let Port::Served(port) = &mut self.ports[number as usize] {
            for sack in port.given_up() {
                self.lost += 1;
                self.sacks.release(sack);
            }
        }
    }

    /// A link that serves its queues by events sends the next packet that is not dropped.
    pub fn choose(&mut self, number: u32) {
        let at = number as usize;
        loop {
            let Port::Served(port) = &mut self.ports[at] else { return };
            let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number };
            let Some((admission, sack)) = port.choose(&mut self.links[at], self.now, &mut tap) else { break };
            self.admitted(number, admission, sack);
            if admission != Admission::Dropped {
                break;
            }
        }
        let next = self.ports[at].choice(&self.links[at]);
        match (self.medium_of[at], next) {
            (Medium::Own | Medium::Cell { .. }, None) | (Medium::Cell { .. }, Some(_)) => {}
            (Medium::Own, Some(next)) => self.events.push(next, Source::new(Class::Transmit, number)),
            (Medium::Turns(medium), next) => {
                let until = self.links[at].free_at().max(self.now);
                let grant = self.media[medium as usize].begin(self.now, number, until, next.is_some());
                self.granted(grant);
            }
        }
    }

    /// A link may send a packet.
    fn granted(&mut self, grant: Option<Grant>) {
        if let Some((number, time)) = grant {
            self.events.push(time, Source::new(Class::Transmit, number));
        }
    }

    /// The MAC of a station takes the next packet that is not dropped of those that wait, if it has none.
    fn take_up(&mut self, number: u32, cell: u32, station: u32) {
        if self.air.has_frame(cell, station) {
            return;
        }
        let at = number as usize;
        while let Port::Served(port) = &mut self.ports[at] {
            let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number };
            let Some((admission, sack)) = port.choose(&mut self.links[at], self.now, &mut tap) else {
                return;
            };
            if admission != Admission::Dropped {
                let moved = self.air.offer(self.now, cell, station, self.links[at].head());
                self.air_moves(cell, moved);
                return;
            }
            self.admitted(number, admission, sack);
        }
    }

    /// The next event of a cell is at another time.
    fn air_moves(&mut self, cell: u32, (from, to): (Option<Time>, Option<Time>)) {
        let source = Source::new(Class::Air, cell);
        match (from, to) {
            (Some(from), Some(to)) if from != to => self.events.reschedule(from, to, source),
            (None, Some(to)) => self.events.push(to, source),
            _ => {}
        }
    }

    /// Something happens in a cell. Returns the link of a frame that has arrived, which is to be forwarded now.
    #[cold] // where there are cells at all, an event of theirs is dear
    pub fn air(&mut self, cell: u32) -> Option<u32> {
        let mut delivered = None;
        let happened = self.air.step(self.now, cell);
        self.air.heard(cell, |captured, sent, link| {
            let line = &self.links[link as usize];
            let packet = (sent.kind == Kind::Data).then(|| line.head());
            self.capture.record_frame(captured, sent, (link, packet), &self.sacks);
        });
        for (number, what) in happened.iter() {
            let at = *number as usize;
            match what {
                Happened::Delivered { .. } => {
                    let packet = self.links[at].land(self.now);
                    if let Some(back) = self.air.interface_of_receiver(cell, packet) {
                        self.ports[back as usize].comes_in(self.now, packet);
                    }
                    delivered = Some(*number);
                }
                Happened::Free { station, sent } => {
                    let line = &mut self.links[at];
                    if !sent {
                        let sack = line.deliver().sack;
                        self.lost += 1;
                        self.sacks.release(sack);
                    }
                    line.release(self.now);
                    self.take_up(*number, cell, *station);
                }
            }
        }
        self.air.give_back(happened);
        let moved = self.air.planned(cell);
        self.air_moves(cell, moved);
        delivered
    }

    /// Brings the statistics of all router links up to now.
    pub fn settle(&mut self) {
        for number in 0..self.ports.len() {
            self.settle_link(number);
        }
    }

    /// A router link's laws hear of all transmissions that have begun by now.
    pub fn advance(&mut self, number: usize) {
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number as u32 };
        self.ports[number].advance(&mut self.links[number], self.now, &mut tap);
    }

    fn settle_link(&mut self, number: usize) {
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number as u32 };
        self.ports[number].settle(&mut self.links[number], self.now, &mut tap);
    }

    /// A router law's timer.
    pub fn router_timer(&mut self, source: u32) {
        let (number, which) = (source as usize / MAX_TIMERS, source as usize % MAX_TIMERS);
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number as u32 };
        let port = &mut self.ports[number];
        port.advance(&mut self.links[number], self.now, &mut tap);
        let view = port.view(self.now);
        if let Some(router) = &mut port.laws_mut().router {
            // A law whose timer stands still must not stop time.
            let next = router.on_timer(which, view).max(self.now + Time::from_ps(1));
            self.events.push(next, Source::new(Class::Router, source));
        }
    }

    /// A queue law's timer.
    pub fn queue_timer(&mut self, source: u32) {
        let (number, class) = (source as usize / MAX_QUEUES, source as usize % MAX_QUEUES);
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number as u32 };
        let port = &mut self.ports[number];
        port.advance(&mut self.links[number], self.now, &mut tap);
        let view = port.queue_view(class, self.now);
        if let Some(law) = port.queue_laws().get_mut(class) {
            let next = law.on_timer(view).max(self.now + Time::from_ps(1));
            self.events.push(next, Source::new(Class::Queue, source));
        }
    }

    /// A link is divided anew among its classes.
    pub fn divide(&mut self, number: u32) {
        if let Some(next) = self.ports[number as usize].divide(self.now) {
            let next = next.max(self.now + Time::from_ps(1));
            self.events.push(next, Source::new(Class::Share, number));
        }
    }

    /// A link's capacity has changed, as its laws know it, or a station's data rate.
    pub fn learn_capacity(&mut self, number: u32) {
        if let Medium::Cell { cell, station } = self.medium_of[number as usize] {
            if let Some(next) = self.air.change(self.now, cell, station) {
                self.events.push(next, Source::new(Class::Capacity, number));
            }
            let moved = self.air.planned(cell);
            self.air_moves(cell, moved);
            return;
        }
        if let Some(next) = self.ports[number as usize].learn_capacity(self.now) {
            self.events.push(next, Source::new(Class::Capacity, number));
        }
    }

    /// A router link's rate is `rate` from now on.
    pub fn set_rate(&mut self, number: usize, rate: Rate) {
        self.settle_link(number);
        let (port, link) = (&mut self.ports[number], &mut self.links[number]);
        let before = (link.next_arrival(), port.choice(link));
        port.set_rate(link, self.now, rate);
        let after = (link.next_arrival(), port.choice(link));
        for (class, from, to) in [(Class::Delivery, before.0, after.0), (Class::Transmit, before.1, after.1)]
        {
            if let (Some(from), Some(to)) = (from, to) {
                self.events.reschedule(from, to, Source::new(class, number as u32));
            }
        }
    }

    /// The propagation delay of any link is `delay` from now on.
    pub fn set_delay(&mut self, number: usize, delay: Time) {
        if number < self.ports.len() {
            self.settle_link(number);
        }
        let link = &mut self.links[number];
        let before = link.next_arrival();
        link.set_delay(self.now, delay);
        if let (Some(from), Some(to)) = (before, link.next_arrival()) {
            self.events.reschedule(from, to, Source::new(Class::Delivery, number as u32));
        }
    }

    /// A router link's buffer is `limit` from now on.
    pub fn set_limit(&mut self, number: usize, limit: Limit) {
        self.ports[number].set_limit(limit);
    }

    /// A station's data rate is `rate` from now on.
    pub fn set_station_rate(&mut self, cell: u32, station: u32, rate: Rate) {
        self.air.set_rate(self.now, cell, station, rate);
        let moved = self.air.planned(cell);
        self.air_moves(cell, moved);
    }

    /// A rate that stands for the capacity of an interface of a cell, the fastest that there is, is now at least this.
    pub fn raise_capacity(&mut self, number: usize, rate: Rate) {
        let port = &mut self.ports[number];
        if matches!(port.laws().capacity, Capacity::Constant(before) if before < rate) {
            port.laws_mut().capacity = Capacity::Constant(rate);
            port.learn_capacity(self.now);
        }
    }

    /// What waits for a governed link leaves at `rate` from now on. Returns the bytes that it has sent so far.
    pub fn shape(&mut self, number: usize, rate: Option<Rate>) -> f64 {
        self.settle_link(number);
        let (port, link) = (&mut self.ports[number], &self.links[number]);
        if let Some(rate) = rate {
            let before = port.choice(link);
            port.shape(rate);
            if let (Some(from), Some(to)) = (before, port.choice(link)) {
                // It may be overdue by the new rate, as the old one was lower.
                let to = to.max(self.now);
                self.events.reschedule(from, to, Source::new(Class::Transmit, number as u32));
            }
        }
        port.sent_bytes(link, self.now)
    }

    /// Laws and statistics of a router link, to be changed.
    pub fn laws_mut(&mut self, number: usize) -> &mut Laws {
        self.ports[number].laws_mut()
    }

    /// Statistics of router links begin anew, as of now; `before` sees each link's number, bytes sent and statistics.
    pub fn end_warmup(&mut self, mut before: impl FnMut(usize, f64, &LinkStats)) {
        self.settle();
        self.air.end_warmup(self.now);
        self.impaired.iter_mut().flatten().for_each(|link| link.restart());
        for (number, (port, link)) in self.ports.iter_mut().zip(&self.links).enumerate() {
            before(number, port.sent_bytes(link, self.now), &port.laws().stats);
            let queue = port.laws().queue_bytes();
            port.laws_mut().stats.restart(self.now, queue);
            // What waits or is under way was accepted before and is sent after.
            let sent = port.sent_bytes(link, self.now);
            port.laws_mut().stats.accepted_bytes = 0.0 - sent;
        }
    }
}
