//! Drop and mark decisions of an output queue.
//!
//! Every law hears of arrivals. What more it hears it declares in [`QueueLaw::HEARS`], because it has a price: a queue whose
//! law looks at packets as they leave, or writes into them, must be served by an event for each packet, and one whose law
//! hears only of arrivals need not.

pub mod avq;
pub mod codel;
pub mod csfq;
pub mod droptail;
pub mod dualpi2;
pub mod fq_codel;
pub mod pi2;
pub mod pie;
pub mod red;
pub mod rem;
pub mod token_bucket;

use crate::Refused;
use crate::link::LinkView;
use crate::units::{Bytes, Rate, Time};
use std::ops::RangeInclusive;

/// How much may wait in a queue, without the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most so many bytes.
    Bytes(u64),
    /// At most so many packets, whatever their size.
    Packets(u32),
}

/// What a queue law is told about its link when it is made.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// The buffer.
    pub limit: Limit,
    /// The link's capacity.
    pub capacity: Rate,
    /// Typical packet size in bytes, to turn packets into bytes and transmission times.
    pub mean_packet_bytes: u32,
}

/// What a queue law hears beside arrivals and its timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hears {
    /// Each packet that is about to be transmitted, with the time it has waited ([`QueueLaw::on_departure`]).
    pub departures: bool,
    /// Labels, which it reads on arrival and writes with [`QueueLaw::label`].
    pub labels: bool,
    /// Changes of the link's capacity ([`QueueLaw::set_capacity`]).
    pub capacity: bool,
}

impl Hears {
    /// Arrivals, and no more.
    pub const ARRIVALS: Self = Self { departures: false, labels: false, capacity: false };

    /// Whether the queue must be served by an event for each packet.
    #[must_use]
    pub const fn each_departure(self) -> bool {
        self.departures || self.labels
    }
}

/// A packet that reached the queue, and the queue as it found it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Now.
    pub now: Time,
    /// The packet's size in bytes.
    pub size: u32,
    /// Whose it is: a number that no other flow of the network has at this time.
    pub flow: u64,
    /// What the queue law of a link before this one wrote into it, if that law labels packets, this one hears of labels and
    /// the packet is one that can bear a label: data without a header that routers write into.
    pub label: Option<f64>,
    /// Bytes that wait already.
    pub queue_bytes: u64,
    /// Packets that wait already.
    pub queue_packets: u32,
    /// The packet may be marked instead of dropped (ECN-capable transport).
    pub ecn_capable: bool,
    /// It is of an L4S flow, ECT(1), or was marked before (RFC 9331).
    pub l4s: bool,
    /// Since when the link has had nothing to send; `None` if it is sending.
    pub idle_since: Option<Time>,
}

/// A packet whose transmission could begin, and the queue behind it.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Now.
    pub now: Time,
    /// The packet's size in bytes.
    pub size: u32,
    /// As in [`Arrival::flow`].
    pub flow: u64,
    /// How long it has waited; zero if the link was idle when it came.
    pub sojourn: Time,
    /// Bytes that still wait, without this packet.
    pub queue_bytes: u64,
    /// Packets that still wait, without this one.
    pub queue_packets: u32,
    /// The packet may be marked instead of dropped (ECN-capable transport).
    pub ecn_capable: bool,
    /// As in [`Arrival::l4s`].
    pub l4s: bool,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It joins the queue; at its departure: it is sent.
    Enqueue,
    /// The same, with its congestion-experienced mark set.
    Mark,
    /// It is lost.
    Drop,
}

/// The parameter of a queue law that stands for the flows' RTT.
#[derive(Debug)]
pub struct TimeConstant<'a> {
    /// Its name.
    pub name: &'static str,
    /// What the scenario says.
    pub value: &'a mut Option<Time>,
    /// The RTTs for which what the law takes where it is told nothing is right; `None` if for none in particular.
    pub usual_for: Option<RangeInclusive<Time>>,
}

/// Decides each packet's fate. It has no clock; its randomness is passed in.
///
/// Order of calls for one packet: `on_arrival`; if it may join and the law labels, `label`; if the law hears of departures,
/// `on_departure` when its transmission could begin, at once on an idle link. A packet that is dropped there makes room for
/// the next one at the same instant, which is asked for in the same way.
pub trait QueueLaw: Sized {
    /// What the scenario may set.
    type Params: Default;

    /// What it hears beside arrivals.
    const HEARS: Hears = Hears::ARRIVALS;

    /// Whether the parameters make sense; else the parameter, and what would be right.
    ///
    /// # Errors
    /// The first parameter that does not.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// The parameter that stands for the flows' RTT, if there is one: whoever knows the paths sets it where it is open and
    /// the usual value is not for them.
    fn time_constant(params: &mut Self::Params) -> Option<TimeConstant<'_>> {
        let _ = params;
        None
    }

    /// Whether L4S packets wait in a queue of their own, and then the weights by which the link serves theirs and the other; only
    /// if it hears of departures.
    fn two_queues(params: &Self::Params) -> Option<[f64; 2]> {
        let _ = params;
        None
    }

    /// The parameter that bounds the size of packets, and the largest size that passes; `None` if any does.
    fn smallest_bucket(params: &Self::Params) -> Option<(&'static str, Bytes)> {
        let _ = params;
        None
    }

    /// A queue law at rest.
    fn new(params: &Self::Params, view: &QueueView) -> Self;

    /// The link's capacity is `capacity` from now on; only if it hears of that.
    fn set_capacity(&mut self, capacity: Rate) {
        let _ = capacity;
    }

    /// The buffer is `limit` from now on. What else follows from a buffer stays as it began.
    fn set_limit(&mut self, limit: Limit);

    /// A packet arrived; `uniform` draws from `[0, 1)`.
    fn on_arrival(&mut self, arrival: &Arrival, uniform: impl FnMut() -> f64) -> Verdict;

    /// The label with which the packet goes on that joined the queue last; `None` leaves what it has. Only if it labels.
    fn label(&mut self, arrival: &Arrival) -> Option<f64> {
        let _ = arrival;
        None
    }

    /// A packet's transmission could begin; `uniform` draws from `[0, 1)`. Only if it hears of departures.
    fn on_departure(&mut self, departure: &Departure, uniform: impl FnMut() -> f64) -> Verdict {
        let _ = (departure, uniform);
        Verdict::Enqueue
    }

    /// When its timer first fires, if it keeps one.
    fn first_timer(&self) -> Option<Time> {
        None
    }

    /// Its timer fired; returns when it fires next, later than now.
    fn on_timer(&mut self, link: LinkView) -> Time {
        let _ = link;
        Time::MAX
    }

    /// Calls `report` with each variable's name and value, for probes.
    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let _ = report;
    }
}

impl Arrival {
    /// Whether the buffer has room for it, or it need not wait: a link that is idle takes it at once.
    #[must_use]
    pub fn fits(&self, limit: Limit) -> bool {
        self.idle_since.is_some() || limit.admits(self.queue_bytes, self.queue_packets, self.size)
    }
}

impl Limit {
    /// Whether a packet of `size` bytes still fits.
    #[must_use]
    pub fn admits(self, queue_bytes: u64, queue_packets: u32, size: u32) -> bool {
        match self {
            Self::Bytes(max) => queue_bytes + u64::from(size) <= max,
            Self::Packets(max) => queue_packets < max,
        }
    }

    /// So many buffers together.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        match self {
            Self::Bytes(max) => Self::Bytes(max.saturating_mul(u64::from(count))),
            Self::Packets(max) => Self::Packets(max.saturating_mul(count)),
        }
    }

    /// Whether so much may wait.
    #[must_use]
    pub fn holds(self, queue_bytes: u64, queue_packets: u32) -> bool {
        match self {
            Self::Bytes(max) => queue_bytes <= max,
            Self::Packets(max) => queue_packets <= max,
        }
    }
}
