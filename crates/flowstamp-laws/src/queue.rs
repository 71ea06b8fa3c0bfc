//! Drop and mark decisions of an output queue.
//!
//! Every law hears of arrivals. It declares further events in [`QueueLaw::HEARS`], because they cost time: a queue
//! whose law reads or writes departing packets needs an event for each packet. A queue whose law hears only of
//! arrivals does not.

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

/// Capacity of a buffer, without the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many bytes.
    Bytes(u64),
    /// At most this many packets, whatever their size.
    Packets(u32),
}

/// The link as a queue law sees it at its creation.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// The buffer.
    pub limit: Limit,
    /// The link's capacity.
    pub capacity: Rate,
    /// Typical packet size in bytes, to turn packets into bytes and transmission times.
    pub mean_packet_bytes: u32,
}

/// Events that a queue law hears in addition to arrivals and its timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hears {
    /// Each packet that is about to be transmitted, with its waiting time ([`QueueLaw::on_departure`]).
    pub departures: bool,
    /// Labels, which the law reads on arrival and writes with [`QueueLaw::label`].
    pub labels: bool,
    /// Changes of the link's capacity ([`QueueLaw::set_capacity`]).
    pub capacity: bool,
}

impl Hears {
    /// Arrivals only.
    pub const ARRIVALS: Self = Self { departures: false, labels: false, capacity: false };

    /// Whether the queue needs an event for each packet.
    #[must_use]
    pub const fn each_departure(self) -> bool {
        self.departures || self.labels
    }
}

/// A packet that reached the queue, and the queue before it joined.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Now.
    pub now: Time,
    /// The packet's size in bytes.
    pub size: u32,
    /// Number of the packet's flow, unique in the network at this time.
    pub flow: u64,
    /// Label from the queue law of an earlier link, if that law writes labels, this one hears labels and the packet
    /// can carry one. Only data without a header that routers write into can.
    pub label: Option<f64>,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// Packets in the queue.
    pub queue_packets: u32,
    /// The packet may be marked instead of dropped (ECN-capable transport).
    pub ecn_capable: bool,
    /// The packet belongs to an L4S flow, ECT(1), or was marked before (RFC 9331).
    pub l4s: bool,
    /// Start of the link's idle time; `None` if it is sending.
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
    /// Time that the packet has waited; zero if the link was idle on arrival.
    pub sojourn: Time,
    /// Bytes left in the queue, without this packet.
    pub queue_bytes: u64,
    /// Packets left in the queue, without this one.
    pub queue_packets: u32,
    /// The packet may be marked instead of dropped (ECN-capable transport).
    pub ecn_capable: bool,
    /// As in [`Arrival::l4s`].
    pub l4s: bool,
}

/// Decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet joins the queue, or at departure is sent.
    Enqueue,
    /// As `Enqueue`, with the congestion-experienced mark set.
    Mark,
    /// The packet is dropped.
    Drop,
}

/// The parameter of a queue law that stands for the flows' RTT.
#[derive(Debug)]
pub struct TimeConstant<'a> {
    /// The parameter's name.
    pub name: &'static str,
    /// Value from the scenario, if it sets one.
    pub value: &'a mut Option<Time>,
    /// RTTs for which the law's default suits; `None` if there are none in particular.
    pub usual_for: Option<RangeInclusive<Time>>,
}

/// Decides whether a packet is queued, marked or dropped. A law has no clock, and its randomness is passed in.
///
/// Order of calls for one packet: `on_arrival`; `label`, if the packet joins and the law labels; `on_departure` when
/// its transmission could begin, if the law hears of departures. On an idle link that is at once. If `on_departure`
/// drops a packet, it is called for the next one at the same instant.
pub trait QueueLaw: Sized {
    /// Parameters that a scenario may set.
    type Params: Default;

    /// Events that the law hears in addition to arrivals.
    const HEARS: Hears = Hears::ARRIVALS;

    /// Checks the parameters.
    ///
    /// # Errors The first invalid parameter, and a value that would be right.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// The parameter that stands for the flows' RTT, if there is one. The network layout sets it where the scenario
    /// does not and the default does not suit the paths.
    fn time_constant(params: &mut Self::Params) -> Option<TimeConstant<'_>> {
        let _ = params;
        None
    }

    /// Weights by which the link serves the L4S queue and the other one, if L4S packets have their own queue. Only
    /// for laws that hear departures.
    fn two_queues(params: &Self::Params) -> Option<[f64; 2]> {
        let _ = params;
        None
    }

    /// The parameter that bounds the packet size, and that bound; `None` without a bound.
    fn smallest_bucket(params: &Self::Params) -> Option<(&'static str, Bytes)> {
        let _ = params;
        None
    }

    /// Creates a law for an empty queue.
    fn new(params: &Self::Params, view: &QueueView) -> Self;

    /// Sets the link's capacity. Only for laws that hear of it.
    fn set_capacity(&mut self, capacity: Rate) {
        let _ = capacity;
    }

    /// Sets the buffer. Other values that were derived from the buffer do not change.
    fn set_limit(&mut self, limit: Limit);

    /// Decides on an arriving packet. `uniform` draws from `[0, 1)`.
    fn on_arrival(&mut self, arrival: &Arrival, uniform: impl FnMut() -> f64) -> Verdict;

    /// The new label of the packet that joined the queue last; `None` keeps its label. Only for laws that label.
    fn label(&mut self, arrival: &Arrival) -> Option<f64> {
        let _ = arrival;
        None
    }

    /// Decides on a packet whose transmission could begin. `uniform` draws from `[0, 1)`. Only for laws that hear
    /// departures.
    fn on_departure(&mut self, departure: &Departure, uniform: impl FnMut() -> f64) -> Verdict {
        let _ = (departure, uniform);
        Verdict::Enqueue
    }

    /// When the law's timer first fires, if it has one.
    fn first_timer(&self) -> Option<Time> {
        None
    }

    /// Handles the timer. Returns when it fires next, later than now.
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
    /// Whether the packet fits into the buffer or need not wait: an idle link sends it at once.
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

    /// The buffer's size in bytes, where packets have `packet_bytes`.
    #[must_use]
    pub fn bytes(self, packet_bytes: f64) -> f64 {
        match self {
            Self::Bytes(max) => max as f64,
            Self::Packets(max) => f64::from(max) * packet_bytes,
        }
    }

    /// The limit of `count` such buffers together.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        match self {
            Self::Bytes(max) => Self::Bytes(max.saturating_mul(u64::from(count))),
            Self::Packets(max) => Self::Packets(max.saturating_mul(count)),
        }
    }

    /// Whether a queue of this size is within the limit.
    #[must_use]
    pub fn holds(self, queue_bytes: u64, queue_packets: u32) -> bool {
        match self {
            Self::Bytes(max) => queue_bytes <= max,
            Self::Packets(max) => queue_packets <= max,
        }
    }
}
