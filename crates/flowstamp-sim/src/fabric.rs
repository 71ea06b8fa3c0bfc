//! What moves packets: links, the packets between them, and the order of events.
//!
//! Cost is per packet-hop. A delivery takes one packet out of its link's ring and puts it into the next one's; the
//! event queue holds one event per busy link and the timers. State is in flat arrays; nothing is allocated, hashed or
//! looked up through a vtable per packet.

mod change;
mod impaired;
mod layout;

use crate::air::Air;
use crate::capture::Capture;
use crate::events::{Class, EventQueue, Source};
use crate::link::{Admission, Impaired, Plain, Port, Tap};
use crate::medium::dcf::{Happened, Kind};
use crate::medium::{Grant, Turns};
use crate::packet::{DATA, Packet, SackPool};
use crate::plan::{END, Medium};
use crate::prefetch::prefetch;
use flowstamp_laws::router::MAX_TIMERS;
use flowstamp_laws::units::Time;

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
}
