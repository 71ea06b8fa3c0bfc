//! Links: a line, and on a router link a port before it with queue, laws and statistics.
//!
//! | kind | what it is |
//! |---|---|
//! | [`Plain`] | an access link: no laws, no loss |
//! | [`Fifo`] | a router link in the order of arrival: departures are known on arrival |
//! | [`Ranked`] | a router link that sends acks first: departures are caught up with |
//! | [`Served`] | a router link with classes and a scheduler, or whose queue law decides as packets leave: an event for each packet that waited |
//!
//! [`Impaired`] is what becomes of packets behind a line that loses, copies or delays them.

mod classes;
mod delays;
mod fifo;
mod impaired;
#[cfg(test)]
mod labels;
mod laws;
mod plain;
mod police;
mod ranked;
mod ring;
mod served;
mod stats;
#[cfg(test)]
mod tests;
mod waiting;

pub use classes::{Classifier, Ranks};
pub use fifo::{Alone, Fifo, Sharing, Soft};
pub use impaired::{Counts, Fate, Impaired};
pub use laws::Laws;
pub use plain::Plain;
pub use police::{Police, Tested};
pub use ranked::Ranked;
pub use ring::{InFlight, Ring};
pub use served::Served;
pub use stats::{LinkStats, QueueTimes};

use crate::capture::Capture;
use crate::packet::{DATA, Packet, SackPool};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{AnyQueue, AnyRouter};
use flowstamp_laws::router::{LinkChange, LinkView, PacketIn, PacketOut};
use flowstamp_laws::share::split::Split;
use flowstamp_laws::units::{Rate, Time};

/// What became of a packet that reached a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The link was idle: this delivery must enter the event queue.
    First(Time),
    /// It follows others.
    Behind,
    /// It waits for its turn: the choice of who is next must enter the event queue.
    Choose(Time),
    /// It was lost.
    Dropped,
    /// It waits behind others, or was lost with them: some were given up, to be asked for ([`Served::given_up`]).
    Overfull,
}

impl Admission {
    #[inline]
    fn sent(first: bool, arrives: Time) -> Self {
        if first { Self::First(arrives) } else { Self::Behind }
    }
}

/// Sees packets whose transmission begins on one link, and what is known of packets beside them.
pub struct Tap<'a> {
    /// Who records them.
    pub capture: &'a mut Capture,
    /// Their selective acks and labels.
    pub sacks: &'a SackPool,
    /// The link.
    pub link: u32,
}

impl Tap<'_> {
    #[cold]
    fn record(&mut self, time: Time, packet: &Packet) {
        self.capture.record(self.link, time, packet, self.sacks);
    }
}

/// What stands before the line of a router link.
#[derive(Clone, Debug)]
pub enum Port {
    /// One queue.
    Fifo(Fifo<Alone>),
    /// One queue, of which the router law takes a part.
    Soft(Fifo<Soft>),
    /// Acks before data.
    Ranked(Ranked),
    /// A queue for each class.
    Served(Served),
}

/// The same expression for each kind.
macro_rules! each {
    ($port:expr, $it:ident => $do:expr) => {
        match $port {
            Port::Fifo($it) => $do,
            Port::Soft($it) => $do,
            Port::Ranked($it) => $do,
            Port::Served($it) => $do,
        }
    };
}

impl Port {
    /// Laws and statistics.
    #[must_use]
    pub fn laws(&self) -> &Laws {
        each!(self, port => &port.laws)
    }

    /// Laws and statistics, to be changed.
    pub fn laws_mut(&mut self) -> &mut Laws {
        each!(self, port => &mut port.laws)
    }

    /// Packets that wait and are not in the line.
    #[must_use]
    pub fn held(&self) -> u32 {
        match self {
            Self::Fifo(_) | Self::Soft(_) => 0,
            Self::Ranked(port) => port.waiting(),
            Self::Served(port) => port.waiting(),
        }
    }

    /// Those packets, in the order of their classes and within one in that of their arrival; not those that wait by flows.
    pub fn before_the_line(&self) -> impl Iterator<Item = &Packet> {
        let served = if let Self::Served(port) = self { Some(port) } else { None };
        let ranked = if let Self::Ranked(port) = self { Some(port) } else { None };
        let ranked = ranked.into_iter().flat_map(Ranked::waiting_packets);
        served.into_iter().flat_map(Served::waiting_packets).chain(ranked)
    }

    /// What the router law sees.
    #[must_use]
    pub fn view(&self, now: Time) -> LinkView {
        each!(self, port => port.seen()).view(now)
    }

    /// The buffer is `limit` from now on.
    pub fn set_limit(&mut self, limit: Limit) {
        let buffers = if let Self::Served(port) = self { port.buffers() } else { 1 };
        let laws = self.laws_mut();
        laws.limit = limit.times(buffers);
        laws.queue.set_limit(limit);
        self.queue_laws().iter_mut().for_each(|law| law.set_limit(limit));
    }

    /// The queue laws: one for each class where the link is divided, else one.
    pub fn queue_laws(&mut self) -> &mut [AnyQueue] {
        match self {
            Self::Fifo(port) => std::slice::from_mut(&mut port.laws.queue),
            Self::Soft(port) => std::slice::from_mut(&mut port.laws.queue),
            Self::Ranked(port) => std::slice::from_mut(&mut port.laws.queue),
            Self::Served(port) => port.queue_laws(),
        }
    }

    /// What queue law number `class` sees.
    #[must_use]
    pub fn queue_view(&self, class: usize, now: Time) -> LinkView {
        match self {
            Self::Fifo(port) => port.laws.backlog(),
            Self::Soft(port) => port.laws.backlog(),
            Self::Ranked(port) => port.laws.backlog(),
            Self::Served(port) => port.seen_by(class),
        }
        .view(now)
    }

    /// Whether any law wants to know when the capacity changes.
    #[must_use]
    pub fn hears_capacity(&self) -> bool {
        let laws = self.laws();
        (laws.told && laws.router.is_some()) || laws.queue.hears().capacity
    }

    /// A copy of `packet` reaches the link.
    #[inline(always)] // once per packet at a router
    pub fn admit(&mut self, line: &mut Plain, now: Time, packet: &Packet, tap: &mut Tap<'_>) -> Admission {
        each!(self, port => port.admit(line, now, packet, tap))
    }

    /// A packet has come in over the medium that the link shares.
    pub fn comes_in(&mut self, now: Time, packet: &mut Packet) {
        let view = self.view(now);
        let Laws { router: Some(router), over_medium: true, random, .. } = self.laws_mut() else { return };
        let own = packet.flags & DATA != 0 && packet.header == router.header();
        let (size, mut bits) = (u32::from(packet.size), packet.bits);
        router.on_arrival(view, PacketIn { size, stamp: own.then_some(&packet.stamp), bits });
        if own {
            // Its bits say what it has passed: the router that sent it.
            let packet = PacketOut { size, stamp: &mut packet.stamp, bits: &mut bits };
            router.on_departure(view, packet, || random.uniform());
        }
    }

    /// Catches up with the transmissions that have begun by `now`.
    #[inline(always)] // mostly there is nothing to catch up with
    pub fn advance(&mut self, line: &mut Plain, now: Time, tap: &mut Tap<'_>) {
        match self {
            Self::Fifo(port) => port.advance(line, now, tap),
            Self::Soft(port) => port.advance(line, now, tap),
            Self::Ranked(port) => port.advance(line, now, tap),
            Self::Served(_) => {}
        }
    }

    /// Brings statistics up to `now`.
    pub fn settle(&mut self, line: &mut Plain, now: Time, tap: &mut Tap<'_>) {
        self.advance(line, now, tap);
        self.laws_mut().account(now);
    }

    /// Bytes that have been transmitted by `now`, to which the link has been settled.
    #[must_use]
    pub fn sent_bytes(&self, line: &Plain, now: Time) -> f64 {
        match self {
            Self::Fifo(port) => port.sent_bytes(line, now),
            Self::Soft(port) => port.sent_bytes(line, now),
            Self::Ranked(Ranked { laws, .. }) | Self::Served(Served { laws, .. }) => {
                laws.sent_bytes(now, line.free_at(), line.in_transmission(now, 0))
            }
        }
    }

    fn split(&mut self) -> Option<&mut Split> {
        match self {
            Self::Fifo(_) | Self::Ranked(_) => None,
            Self::Soft(port) => Some(&mut *port.sharing.split),
            Self::Served(port) => port.split(),
        }
    }

    /// When the law that divides the link first wants to be called, if there is one.
    pub fn first_division(&mut self) -> Option<Time> {
        self.split().map(|split| split.first_timer())
    }

    /// The link is divided anew among its classes; returns when that is next due.
    pub fn divide(&mut self, now: Time) -> Option<Time> {
        let flows = self.laws().router.as_ref().and_then(AnyRouter::own_flows);
        if let Some(split) = self.split() {
            split.set_own_flows(flows);
        }
        let next = match self {
            Self::Fifo(_) | Self::Ranked(_) => None,
            Self::Soft(port) => Some(port.sharing.split.on_timer(now)),
            Self::Served(port) => port.divide(now),
        };
        if let Some((own, part)) = self.split().map(|split| (split.own_capacity(), split.own_part())) {
            self.tell_router(own, part);
        }
        next
    }

    /// The router law hears of the capacity, and of its part where the link is shared by windows.
    fn tell_router(&mut self, capacity: Rate, part: Option<(Rate, Rate)>) {
        let Some(router) = &mut self.laws_mut().router else { return };
        router.on_change(LinkChange::Capacity(capacity));
        if let Some((own, link)) = part {
            router.on_change(LinkChange::Part { own, link });
        }
    }

    /// The laws are told of the capacity as it is known now; returns when to look again.
    pub fn learn_capacity(&mut self, now: Time) -> Option<Time> {
        let (mut rate, next) = self.laws().capacity.known_at(now);
        let whole = rate;
        let mut part = None;
        if let Some(split) = self.split() {
            split.set_capacity(rate);
            rate = split.own_capacity();
            part = split.own_part();
        }
        if let Self::Served(port) = self {
            port.tell(whole);
        } else if self.laws().queue.hears().capacity {
            self.laws_mut().queue.set_capacity(whole);
        }
        if self.laws().told {
            self.tell_router(rate, part);
        }
        next
    }

    /// The line's rate is `rate` from `now` on, to which the link has been settled.
    pub fn set_rate(&mut self, line: &mut Plain, now: Time, rate: Rate) {
        let before = self.laws().capacity.clone();
        let gone = line.set_rate(now, &before, rate);
        match self {
            Self::Fifo(port) => port.retime(gone),
            Self::Soft(port) => port.retime(gone),
            Self::Ranked(_) | Self::Served(_) => {}
        }
        self.laws_mut().capacity = before.from_then_on(now, rate);
        self.learn_capacity(now);
    }

    /// What waits for a governed link leaves at `rate` from now on.
    pub fn shape(&mut self, rate: Rate) {
        if let Self::Served(port) = self {
            port.shape(rate);
        }
    }

    /// When the choice of the next packet is due, if one is.
    #[must_use]
    pub fn choice(&self, line: &Plain) -> Option<Time> {
        match self {
            Self::Fifo(_) | Self::Soft(_) | Self::Ranked(_) => None,
            Self::Served(port) => port.choice(line),
        }
    }

    /// Calls `report` with the name and value of each of the laws' variables, for probes.
    pub fn variables(&self, report: &mut dyn FnMut(&str, f64)) {
        if let Some(router) = &self.laws().router {
            router.variables(&mut |name, value| report(name, value));
        }
        match self {
            Self::Fifo(_) => {}
            Self::Soft(port) => {
                port.sharing.split.variables(&mut |name, value| report(name, value));
                report("own_queue_bytes", port.sharing.queues[0].bytes as f64);
                report("other_queue_bytes", port.sharing.queues[1].bytes as f64);
            }
            Self::Ranked(port) => port.variables(report),
            Self::Served(port) => return port.variables(report),
        }
        self.laws().queue.variables(&mut |name, value| report(name, value));
    }
}
