//! Links. Each has a line (transmitter and propagation delay). A router link also has a port before the line, with
//! queue, laws and statistics.
//!
//! | kind | what it is |
//! |---|---|
//! | [`Plain`] | an access link: no laws, no loss |
//! | [`Fifo`] | a router link in the order of arrival: departures are known on arrival |
//! | [`Ranked`] | a router link that sends acks first: departures are computed afterwards |
//! | [`Served`] | a router link with classes and a scheduler, or whose queue law decides on departure: an event for each queued packet |
//!
//! [`Impaired`] decides which packets are lost, copied or delayed at the end of a line.

mod classes;
mod cloud;
mod delays;
mod fifo;
mod hold;
mod impaired;
#[cfg(test)]
mod labels;
mod laws;
mod pausable;
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
pub use cloud::Cloud;
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
use crate::prefetch::prefetch_part;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{AnyQueue, AnyRouter};
use flowstamp_laws::router::{LinkChange, LinkView, PacketIn, PacketOut};
use flowstamp_laws::share::split::Split;
use flowstamp_laws::units::{Rate, Time};

/// Maximum number of queue laws of a link.
pub const MAX_QUEUES: usize = 8;

/// The outcome of a packet's arrival at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The link was idle. The caller must schedule this packet's delivery.
    First(Time),
    /// The packet follows others, whose delivery is already scheduled.
    Behind,
    /// The packet waits. The caller must schedule the choice of the next packet.
    Choose(Time),
    /// The packet was dropped.
    Dropped,
    /// The buffer was full, and packets were dropped to make room, possibly this one. [`Served::given_up`] returns
    /// them.
    Overfull,
}

impl Admission {
    #[inline]
    fn sent(first: bool, arrives: Time) -> Self {
        if first { Self::First(arrives) } else { Self::Behind }
    }
}

/// Records packets whose transmission begins on one link.
pub struct Tap<'a> {
    /// The capture that records them.
    pub capture: &'a mut Capture,
    /// Selective acks and labels of the packets.
    pub sacks: &'a SackPool,
    /// The link's number.
    pub link: u32,
}

impl Tap<'_> {
    #[cold]
    fn record(&mut self, time: Time, waited: Time, packet: &Packet) {
        self.capture.record(self.link, (time, waited), packet, self.sacks);
    }
}

/// The queue before the line of a router link. Rare kinds are boxed, so that a large network
/// takes less of the cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub enum Port {
    /// One queue.
    Fifo(Fifo<Alone>),
    /// One queue that the router law shares with other traffic (soft isolation).
    Soft(Box<Fifo<Soft>>),
    /// Acks before data.
    Ranked(Ranked),
    /// One queue for each class.
    Served(Box<Served>),
}

/// An odd number of cache lines, so that the first lines of many ports spread over all sets of the cache.
#[cfg(all(feature = "full", target_pointer_width = "64"))]
const _: () = assert!(size_of::<Port>() % 128 == 64);

/// Evaluates one expression for each kind of port.
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
    /// A port with one queue for each class.
    #[must_use]
    pub fn served(port: Served) -> Self {
        Self::Served(Box::new(port))
    }

    /// Laws and statistics.
    #[must_use]
    pub fn laws(&self) -> &Laws {
        each!(self, port => &port.laws)
    }

    /// Mutable laws and statistics.
    pub fn laws_mut(&mut self) -> &mut Laws {
        each!(self, port => &mut port.laws)
    }

    /// Number of queued packets that are not in the line's ring.
    #[must_use]
    pub fn held(&self) -> u32 {
        match self {
            Self::Fifo(_) | Self::Soft(_) => 0,
            Self::Ranked(port) => port.waiting(),
            Self::Served(port) => port.waiting(),
        }
    }

    /// The packets that [`held`](Self::held) counts, ordered by class and then by arrival. Queues with an order by flow
    /// are left out.
    pub fn before_the_line(&self) -> impl Iterator<Item = &Packet> {
        let served = if let Self::Served(port) = self { Some(port) } else { None };
        let ranked = if let Self::Ranked(port) = self { Some(port) } else { None };
        let ranked = ranked.into_iter().flat_map(Ranked::waiting_packets);
        served.into_iter().flat_map(|port| port.waiting_packets()).chain(ranked)
    }

    /// The queue as the router law sees it.
    #[must_use]
    pub fn view(&self, now: Time) -> LinkView {
        each!(self, port => port.seen()).view(now)
    }

    /// Sets the buffer to `limit`.
    pub fn set_limit(&mut self, limit: Limit) {
        let buffers = if let Self::Served(port) = self { port.buffers() } else { 1 };
        let laws = self.laws_mut();
        laws.limit = limit.times(buffers);
        laws.queue.set_limit(limit);
        if let Some(router) = &mut laws.router {
            router.on_change(LinkChange::Buffer(limit));
        }
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

    /// The queue as queue law number `class` sees it.
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

    /// Whether any law asks for changes of the capacity.
    #[must_use]
    pub fn hears_capacity(&self) -> bool {
        let laws = self.laws();
        (laws.told && laws.router.is_some()) || laws.queue.hears().capacity
    }

    /// Prefetches what the next arrival needs.
    #[inline]
    pub fn expect(&self) {
        if let Self::Fifo(port) = self {
            prefetch_part(&port.laws.queue, 0..64);
        }
    }

    /// Enqueues a copy of `packet`, or drops it.
    #[inline(always)] // once per packet at a router
    pub fn admit(&mut self, line: &mut Plain, now: Time, packet: &Packet, tap: &mut Tap<'_>) -> Admission {
        each!(self, port => port.admit(line, now, packet, tap))
    }

    /// Tells the router law of a packet that arrived over the shared medium.
    pub fn comes_in(&mut self, now: Time, packet: &mut Packet) {
        let view = self.view(now);
        let Laws { router: Some(router), over_medium: true, random, .. } = self.laws_mut() else { return };
        let own = packet.flags & DATA != 0 && packet.header == router.header();
        let (size, mut bits) = (u32::from(packet.size), packet.bits);
        router.on_arrival(view, PacketIn { size, stamp: own.then_some(&packet.stamp), bits });
        if own {
            // Bits are not written back: they record routers that the packet has passed, and the sending router has set
            // its own.
            let packet = PacketOut { size, stamp: &mut packet.stamp, bits: &mut bits };
            router.on_departure(view, packet, || random.uniform());
        }
    }

    /// Processes the transmissions that have begun by `now`.
    #[inline(always)] // mostly there is nothing to process
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

    /// Bytes transmitted by `now`. The link must have been settled to `now`.
    #[must_use]
    pub fn sent_bytes(&self, line: &Plain, now: Time) -> f64 {
        match self {
            Self::Fifo(port) => port.sent_bytes(line, now),
            Self::Soft(port) => port.sent_bytes(line, now),
            Self::Ranked(_) | Self::Served(_) => {
                let aside = if let Self::Served(port) = self { port.aside_bytes } else { 0 };
                self.laws().sent_bytes(now, line.free_at(), line.in_transmission(now, 0)) - aside as f64
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

    /// The first timer of the law that divides the link, if there is one.
    pub fn first_division(&mut self) -> Option<Time> {
        self.split().map(|split| split.first_timer())
    }

    /// Divides the link anew among its classes. Returns the time of the next division.
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

    /// Tells the router law the capacity, and its part where the link is shared by windows.
    fn tell_router(&mut self, capacity: Rate, part: Option<(Rate, Rate)>) {
        let Some(router) = &mut self.laws_mut().router else { return };
        router.on_change(LinkChange::Capacity(capacity));
        if let Some((own, link)) = part {
            router.on_change(LinkChange::Part { own, link });
        }
    }

    /// Tells the laws the capacity that is known at `now`. Returns when to look again.
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

    /// Sets the line's rate from `now` on. The link must have been settled to `now`.
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

    /// Sets the rate at which packets leave a governed link.
    pub fn shape(&mut self, rate: Rate) {
        if let Self::Served(port) = self {
            port.shape(rate);
        }
    }

    /// The cloud that begins behind a governed link, if its packets carry a header there. Without `full` there is none.
    pub fn cloud(&mut self) -> Option<&mut Option<Cloud>> {
        match self {
            Self::Served(port) if cfg!(feature = "full") => port.cloud(),
            _ => None,
        }
    }

    /// Number of flows whose data have arrived at a governed link within the time `idle` before `now`.
    pub fn flows_within(&mut self, idle: Time, now: Time) -> u32 {
        if let Self::Served(port) = self { port.flows_within(idle, now) } else { 0 }
    }

    /// When the next packet is to be chosen, if a choice is pending.
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
