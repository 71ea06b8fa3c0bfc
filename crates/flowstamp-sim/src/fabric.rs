//! The fabric: links, the packets between them, and the event queue.
//!
//! The cost is per packet-hop. A delivery moves one packet from its link's ring into the next one's. The event queue
//! holds one event per busy link, and the timers. State is in flat arrays; no packet causes an allocation, a hash or a
//! vtable lookup.

mod cells;
mod change;
mod impaired;
mod layout;
#[cfg(feature = "parallel")]
mod parts;
mod pfc;
#[cfg(feature = "parallel")]
mod rounds;
#[cfg(feature = "full")]
mod scone;

#[cfg(feature = "parallel")]
pub use parts::Moved;

use crate::air::Air;
use crate::capture::Capture;
use crate::events::{Class, EventQueue, Source};
use crate::link::{Admission, Impaired, MAX_QUEUES, Plain, Port, Tap};
use crate::medium::{Grant, Turns};
use crate::packet::{DATA, Packet, SackPool};
use crate::plan::{END, Medium};
use crate::prefetch::{prefetch, prefetch_part};
use flowstamp_laws::router::MAX_TIMERS;
use flowstamp_laws::units::Time;
use pfc::Pfc;

/// A link leads to a host. The low three bits say whether one router link feeds it ([`BY_ONE`]), so that arrivals are
/// known in advance, and what its host may do ahead of time ([`Fabric::sides`]).
const HOST: u32 = END - 7;
const BY_ONE: u32 = 4;
/// The receiver may handle data from this link ahead of time.
pub const RECEIVERS: u32 = 1;
/// The sender may handle acks from this link ahead of time.
pub const SENDER: u32 = 2;

/// Numbers of events ahead at which these are prefetched: a link, the packet that it delivers, the packet's next link, and
/// its place there.
const LINK_AHEAD: usize = 7;
const HEAD_AHEAD: usize = 5;
const NEXT_AHEAD: usize = 3;
const PLACE_AHEAD: usize = 1;
/// Number of router links from which prefetching pays. Smaller networks are in the cache anyway.
const PREFETCHED: usize = 1500;

/// Number of links whose rings are looked at together.
const SHRUNK_AT_ONCE: usize = 4096;

/// A link leads to several links.
const SEVERAL: u32 = HOST - 1;
/// A link leads on through impairments, which decide the fate of each packet.
const IMPAIRED: u32 = HOST - 2;
/// A link leads to a switch that may pause it.
const PAUSED: u32 = HOST - 3;

/// The state of a packet that reached the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// The packet is on its next link, or dropped.
    Done,
    /// The packet is at its host, which must take it.
    Host,
    /// The packet is still in the ring. Its next link is an access link that no other link feeds, so its arrival and
    /// those behind it are known.
    Exits,
    /// The packet is still in the ring. The link is impaired, and [`Fabric::impair`] decides the packet's fate.
    Impaired,
}

/// The state of a packet that leaves a router for an access link.
#[derive(Clone, Copy, Debug)]
pub enum Exit {
    /// The packet is still in the ring: its next link is fed by other links too.
    Other,
    /// The packet is on its access link.
    Access,
    /// The host may handle the packet now, as of its arrival at this time.
    Host(Time, Packet),
}

/// Links, packets in flight, and simulated time.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// The time of the last event.
    pub now: Time,
    /// The latest time that hosts have reached ahead of `now`.
    pub reached: Time,
    /// Pending events.
    pub events: EventQueue,
    /// All links, router links first.
    links: Vec<Plain>,
    /// The port of each router link.
    ports: Vec<Port>,
    /// Media that links share in turn.
    media: Vec<Turns>,
    air: Air,
    medium_of: Vec<Medium>,
    /// Impairments of each router link, if it has any.
    impaired: Vec<Option<Box<Impaired>>>,
    routes: Vec<u32>,
    policed: bool,
    /// Priority flow control, if a link has it.
    pfc: Option<Box<Pfc>>,
    /// Throughput advice of each router link; empty if no link advises.
    #[cfg(feature = "full")]
    advisors: Vec<Option<Box<scone::Advisor>>>,
    /// Some packets carry the header of a cloud ([`Fabric::stamp_link`]).
    clouds: bool,
    /// Memory that the next events need is prefetched.
    prefetches: bool,
    /// For each link the next link of all its packets, or [`SEVERAL`], [`IMPAIRED`], or [`HOST`] with its bits.
    leads_to: Vec<u32>,
    /// Selective acks of packets in flight.
    pub sacks: SackPool,
    /// Some link has classes by label.
    labelled: bool,
    /// Captured packets.
    pub capture: Capture,
    /// Packets that hosts sent, and copies that impaired links made of them.
    pub sent: u64,
    /// Packets that reached a host, for the check that packets are conserved.
    pub arrived: u64,
    /// Packets dropped by queues, given up by stations or lost at impaired links.
    pub lost: u64,
}

impl Fabric {
    /// Whether any link has police.
    #[must_use]
    pub fn has_police(&self) -> bool {
        self.policed
    }

    /// Sets the label of the flow in `slot`.
    pub fn label(&mut self, slot: u32, label: u8) {
        if self.labelled {
            self.sacks.labels.set(slot, label);
        }
    }

    /// Turns off all handling ahead of time: each packet moves by an event of its own.
    pub fn one_by_one(&mut self) {
        self.leads_to.iter_mut().filter(|to| **to >= HOST).for_each(|to| *to = HOST);
    }

    #[inline]
    fn is_fed_by_one(&self, number: u32) -> bool {
        let to = self.leads_to[number as usize];
        to >= HOST && to & BY_ONE != 0
    }

    /// The actions that hosts may take ahead of time with packets of a link: bits [`RECEIVERS`] and [`SENDER`].
    #[inline]
    pub fn sides(&self, number: u32) -> u32 {
        let to = self.leads_to[number as usize];
        if to >= HOST { to & (RECEIVERS | SENDER) } else { 0 }
    }

    /// Port and line of each router link.
    pub fn routers(&self) -> impl Iterator<Item = (&Port, &Plain)> {
        self.ports.iter().zip(&self.links)
    }

    /// The cells.
    #[must_use]
    pub fn cells(&self) -> &Air {
        &self.air
    }

    /// Access links, which have no laws.
    #[must_use]
    pub fn access(&self) -> &[Plain] {
        &self.links[self.ports.len()..]
    }

    /// Number of packet-hops: packets, acks included, counted at each link they reached.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|l| l.arrivals).sum()
    }

    /// Frees the memory of the links at the end of a run.
    pub fn drop_links(&mut self) {
        self.links = Vec::new();
    }

    /// Number of packets that are neither lost nor at a host.
    #[must_use]
    pub fn held(&self) -> u64 {
        let waiting = self.ports.iter().map(Port::held);
        let aside = self.impaired.iter().flatten().map(|link| link.held()).sum::<u64>();
        self.links.iter().map(Plain::held).chain(waiting).map(u64::from).sum::<u64>()
            + aside
            + self.air.held()
    }

    /// Frees memory that former peaks took, in a network of many links. Each call takes the next part of the links, which it
    /// has to read.
    pub fn shrink(&mut self, call: usize) {
        if self.events.is_many() {
            let part = call % self.links.len().div_ceil(SHRUNK_AT_ONCE).max(1) * SHRUNK_AT_ONCE;
            self.links.iter_mut().skip(part).take(SHRUNK_AT_ONCE).for_each(Plain::shrink);
        }
    }

    /// Prefetches what the next events need, in a network so large that it is not in the cache.
    #[inline(always)]
    pub fn look_ahead(&self) {
        if self.prefetches {
            self.ask_ahead();
        }
    }

    #[inline]
    fn ask_ahead(&self) {
        let delivering = |count: usize| {
            let source = self.events.ahead(count)?;
            (source.class() == Class::Delivery).then_some(source.number() as usize)
        };
        let leads_to = |at: usize| {
            let head = self.links[at].first()?;
            Some(*self.routes.get(head.packet.next as usize)? as usize)
        };
        if let Some(at) = delivering(LINK_AHEAD) {
            prefetch(&self.links[at]);
            if let Some(port) = self.ports.get(at) {
                prefetch_part(port, 0..256);
            }
        }
        if let Some(head) = delivering(HEAD_AHEAD).and_then(|at| self.links[at].first()) {
            prefetch_part(head, 0..128);
        }
        if let Some(to) = delivering(NEXT_AHEAD).and_then(leads_to) {
            if let Some(link) = self.links.get(to) {
                prefetch(link);
            }
            if let Some(port) = self.ports.get(to) {
                prefetch_part(port, 0..256);
                port.expect();
            }
        }
        if let Some(link) = delivering(PLACE_AHEAD).and_then(leads_to).and_then(|to| self.links.get(to)) {
            link.expect();
        }
    }

    /// Moves the head of a link, which has arrived, on to its next link. Leaves it in the ring if it is at its host, or
    /// if the caller can handle it ahead of time. All arrivals at the link's entry up to `known` have been handled.
    #[inline(always)] // into all loops, of whole networks and of parts
    pub fn forward(&mut self, number: u32, source: Source, known: Time) -> Onward {
        let at = number as usize;
        let link = &mut self.links[at];
        if let Some(port) = self.ports.get_mut(at) {
            let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number };
            port.advance(link, known, &mut tap);
        }
        // Avoid reading the packet, which is not in the cache.
        let mut to = self.leads_to[at];
        if to == SEVERAL {
            to = self.routes[link.head().next as usize];
        }
        if to >= PAUSED {
            // Without `full` no link is impaired or paused, and the compiler leaves out what follows from it.
            return if to >= HOST || cfg!(not(feature = "full")) {
                Onward::Host
            } else if to == IMPAIRED {
                Onward::Impaired
            } else {
                self.enter_switch(number, source)
            };
        }
        if self.is_fed_by_one(to) {
            return Onward::Exits;
        }
        // Copies from ring to ring once. A route never has a link twice in a row, because the ends of a link differ.
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

    /// Moves the head of a router link to its access link, if no other link feeds that link. `ahead` tells whether the
    /// host may handle the packet now as of the given time.
    #[inline(always)] // as `forward`
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

    /// Prefetches the next link of the packet `behind` positions after a link's head, which will move soon. Returns its
    /// flow's slot, and whether it is data.
    #[inline]
    pub fn ask_for_exit(&self, number: u32, behind: u32) -> Option<(u32, bool)> {
        let packet = self.links[number as usize].behind_head(behind)?;
        if let Some(next) = self.links.get(self.routes[packet.next as usize] as usize) {
            prefetch(next);
        }
        Some((packet.flow, packet.flags & DATA != 0))
    }

    /// When the next packet on a link arrives at its end, if there is one.
    #[inline]
    pub fn next_arrival(&self, number: u32) -> Option<Time> {
        self.links[number as usize].next_arrival()
    }

    /// The head of a link, which must not be empty.
    #[inline]
    pub fn head(&self, number: u32) -> &Packet {
        self.links[number as usize].head()
    }

    /// Propagation delay of a link.
    #[inline]
    pub fn delay(&self, number: u32) -> Time {
        self.links[number as usize].delay()
    }

    /// Removes the head of a link, which is at its host.
    #[inline]
    pub fn take(&mut self, number: u32) -> Packet {
        self.arrived += 1;
        *self.links[number as usize].deliver()
    }

    /// Time to transmit the backlog of a host's own link, with which the route begins. Zero if the route begins with a
    /// router link.
    pub fn backlog(&self, route: u32) -> Time {
        let number = self.routes[route as usize] as usize;
        if number < self.ports.len() {
            Time::ZERO
        } else {
            self.links[number].free_at().saturating_sub(self.now)
        }
    }

    /// Sends a host's packet to the first link of its route.
    pub fn send(&mut self, packet: Packet) {
        self.sent += 1;
        self.enter(self.routes[packet.next as usize], packet);
    }

    /// Sends a host's packet of `size` bytes to the first link of the route that begins at `route`. `make` writes the
    /// packet in place: a copy right after writing single fields would have to wait for the writes.
    #[inline(always)]
    pub fn send_made(&mut self, route: u32, size: u16, make: impl FnOnce() -> Packet) {
        self.sent += 1;
        let number = self.routes[route as usize];
        let mut aside = Packet::NONE;
        let (admission, place) = match self.links.get_mut(number as usize) {
            Some(link) if number as usize >= self.ports.len() => link.admit_place(self.now, size),
            _ => (Admission::Behind, &mut aside),
        };
        // Called in one place only, so that it is inlined.
        *place = make();
        if (number as usize) < self.ports.len() {
            return self.enter_router(number, aside);
        }
        place.next += 1;
        if let Admission::First(time) = admission {
            self.events.push(time, Source::new(Class::Delivery, number));
        }
    }

    /// Puts a packet on a link.
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

    /// Schedules the event, or counts the loss, that a link's [`Admission`] asks for.
    #[inline(always)] // mostly one comparison
    fn admitted(&mut self, number: u32, admission: Admission, sack: u32) {
        match admission {
            Admission::First(time) => self.events.push(time, Source::new(Class::Delivery, number)),
            Admission::Behind => {}
            Admission::Choose(time) => match self.medium_of[number as usize] {
                Medium::Own => self.events.push(time, Source::new(Class::Transmit, number)),
                Medium::Held => self.choose_unless_stopped(number, time),
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

    /// Counts packets that a full buffer has dropped.
    #[cold]
    fn overfull(&mut self, number: u32) {
        if let Port::Served(port) = &mut self.ports[number as usize] {
            for sack in port.given_up() {
                self.lost += 1;
                self.sacks.release(sack);
            }
        }
    }

    /// Lets a link that serves its queues by events send the next packet that is not dropped.
    pub fn choose(&mut self, number: u32) {
        let at = number as usize;
        if at >= self.ports.len() {
            return self.choose_held(number - self.ports.len() as u32);
        }
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
            (Medium::Held, _) => {}
            (Medium::Own, Some(next)) => self.events.push(next, Source::new(Class::Transmit, number)),
            (Medium::Turns(medium), next) => {
                let until = self.links[at].free_at().max(self.now);
                let grant = self.media[medium as usize].begin(self.now, number, until, next.is_some());
                self.granted(grant);
            }
        }
    }

    /// Schedules the transmission that a shared medium has granted.
    fn granted(&mut self, grant: Option<Grant>) {
        if let Some((number, time)) = grant {
            self.events.push(time, Source::new(Class::Transmit, number));
        }
    }

    /// Brings the statistics of all router links up to `now`.
    pub fn settle(&mut self) {
        for number in 0..self.ports.len() {
            self.settle_link(number);
        }
    }

    /// Processes all transmissions that have begun by `now` on a router link.
    pub fn advance(&mut self, number: usize) {
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number as u32 };
        self.ports[number].advance(&mut self.links[number], self.now, &mut tap);
    }

    fn settle_link(&mut self, number: usize) {
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number as u32 };
        self.ports[number].settle(&mut self.links[number], self.now, &mut tap);
    }

    /// Handles a router law's timer.
    pub fn router_timer(&mut self, source: u32) {
        let (number, which) = (source as usize / MAX_TIMERS, source as usize % MAX_TIMERS);
        let mut tap = Tap { capture: &mut self.capture, sacks: &self.sacks, link: number as u32 };
        let port = &mut self.ports[number];
        port.advance(&mut self.links[number], self.now, &mut tap);
        let view = port.view(self.now);
        if let Some(router) = &mut port.laws_mut().router {
            // A law that returns the same time again must not stop the run.
            let next = router.on_timer(which, view).max(self.now + Time::from_ps(1));
            self.events.push(next, Source::new(Class::Router, source));
        }
    }

    /// Handles a queue law's timer.
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
}
