//! The HPCC router: it tells each packet how much of the link is in use.
//!
//! HPCC-PINT (Ben Basat et al. 2020) moves lines 4 to 9 of HPCC's algorithm 1 into the router.
//! When the transmission of a packet starts, `tau` after that of the one before:
//!
//! ```text
//!   u = qlen / (B T) + txRate / B             alg. 1 line 5; txRate = bytes sent in tau / tau
//!   U = (1 - tau/T) U + tau/T u               alg. 1 line 9; tau at most T (line 8)
//!   the packet leaves with the largest U and the least B of its path
//! ```
//!
//! Both terms of `u` are times over `T`: how long the queue takes to drain, and how long the link was busy. A link
//! whose `U` is 1 carries its capacity without a queue.
//!
//! Valid for 1 kb/s to 400 Gb/s and `T` from 1 us to 20 s.
//!
//! Deviations (paper says / we do / because):
//! 1. Packets collect time, bytes sent, queue and capacity at each hop, and the sender computes `U` of each / the
//!    router computes `U`, as HPCC-PINT does / a stamp has a fixed size.
//! 2. Line 5 takes the lesser of the queues at two acks / the queue at the departure counts, as in HPCC-PINT / the
//!    router sees each packet, so that the average filters bursts.
//! 3. PINT rounds `U` to a byte at random / `U` is exact / the stamp has room for a number.
//! 4. The router knows the bytes that it sent / they follow from arrivals and the queue, and are at most `B tau` /
//!    a law sees departures of its own packets only. Where packets were dropped, the link was busy, and the bound is
//!    what it sent.

use super::{BASE_RTT, Header};
use crate::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterTraits, RouterView};
use crate::units::{Rate, Time};
use crate::{Open, Refused, check_times};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `T`: the time over which the router averages, the same for all routers and senders of a network. Default: 1.1
        /// times the flows' mean RTT; the paper has 9 us and 13 us.
        pub base_rtt: Option<Time> = None,
    }
}

/// `u` of a link that sends at `rate` and has `queue` bytes waiting (alg. 1 line 5).
#[inline]
#[must_use]
pub fn sample(queue: f64, rate: f64, capacity: f64, base_rtt: f64) -> f64 {
    queue / (capacity * base_rtt) + rate / capacity
}

/// `U` after a sample that covers `tau` (alg. 1 line 9).
#[inline]
#[must_use]
pub fn average(utilization: f64, sample: f64, tau: f64, base_rtt: f64) -> f64 {
    let weight = tau / base_rtt;
    (1.0 - weight) * utilization + weight * sample
}

/// State of the law on one link.
#[derive(Clone, Debug)]
pub struct Router {
    /// `T`, seconds.
    base_rtt: f64,
    /// `B`, bytes/s.
    capacity: f64,
    /// `U`.
    utilization: f64,
    /// When the last packet departed.
    last: Time,
    /// Bytes that have arrived since the last departure, and bytes that were in the queue at that time.
    arrived: f64,
    queue: f64,
    /// Size of the packet that departed last.
    departed: f64,
}

impl Router {
    /// `U`: utilisation of the link, with its queue.
    #[must_use]
    pub const fn utilization(&self) -> f64 {
        self.utilization
    }

    /// Updates `U` when the transmission of a packet of `size` bytes starts.
    fn measure(&mut self, link: LinkView, size: f64) {
        let queue = link.queue_bytes as f64;
        let elapsed = link.now.saturating_sub(self.last).as_secs_f64();
        if elapsed > 0.0 {
            // Bytes sent since the last departure: with the packet that departed then, without this one.
            let sent = self.queue + self.arrived - queue - size + self.departed;
            let sent = sent.clamp(0.0, self.capacity * elapsed); // deviation 4
            let tau = elapsed.min(self.base_rtt); // line 8
            let sample = sample(queue, sent / elapsed, self.capacity, self.base_rtt);
            self.utilization = average(self.utilization, sample, tau, self.base_rtt);
            (self.last, self.arrived, self.queue, self.departed) = (link.now, 0.0, queue, size);
        }
    }
}

/// The capacity in bytes/s by which the law divides, never zero.
fn divisor(capacity: Rate) -> f64 {
    capacity.bytes_per_sec().max(1.0)
}

impl RouterLaw for Router {
    type Params = Params;

    fn traits(_: &Params) -> RouterTraits {
        RouterTraits { begins_with: &["base_rtt"], ..RouterTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        check_times([("base_rtt", p.base_rtt)])
    }

    fn open(p: &mut Params) -> Open<'_> {
        super::open(&mut p.base_rtt)
    }

    fn new(p: &Params, link: &RouterView) -> Self {
        Self {
            base_rtt: p.base_rtt.unwrap_or(BASE_RTT).as_secs_f64(),
            capacity: divisor(link.known_capacity()),
            utilization: 0.0,
            last: Time::ZERO,
            arrived: 0.0,
            queue: 0.0,
            departed: 0.0,
        }
    }

    #[inline]
    fn on_arrival(&mut self, _: LinkView, packet: PacketIn<'_>) {
        self.arrived += f64::from(packet.size);
    }

    fn on_departure(&mut self, link: LinkView, packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        self.measure(link, f64::from(packet.size));
        let before = Header::from(*packet.stamp);
        let slower = before.capacity <= 0.0 || self.capacity < before.capacity;
        *packet.stamp = Header {
            utilization: before.utilization.max(self.utilization),
            capacity: if slower { self.capacity } else { before.capacity },
        }
        .into();
    }

    fn on_timer(&mut self, _: usize, _: LinkView) -> Time {
        Time::MAX
    }

    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        if let LinkChange::Capacity(capacity) = change {
            self.capacity = divisor(capacity);
        }
    }

    /// Reports `U` as inflight bytes over `B T`, the paper's other name: a link's `utilization` has no queue.
    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("inflight_share", self.utilization);
    }
}
