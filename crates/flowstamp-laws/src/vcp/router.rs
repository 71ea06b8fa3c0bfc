//! The VCP router: it signals the load of its link in two bits.
//!
//! Xia and others 2008, section III-B and III-E.1. Every arriving packet counts (R.1). The router samples the queue
//! every `t_q` and computes the load factor every `t_rho`:
//!
//! ```text
//!   lambda = bytes that arrived in t_rho                            R.1
//!   q~     = (1 - a) q~ + a q              every t_q                R.2, a = 1/8
//!   rho    = (lambda + k_q q~) / (gamma C t_rho)   every t_rho      eq. 1, R.3
//!   packet's code = max(packet's code, code(rho))                   R.4, unless it is 00
//! ```
//!
//! With `mark_others` TCP sources take code 11 as congestion experienced, and all other codes as no mark (section VI-C). With
//! `tcp_friendly` the router sends code 11 with RED's probability instead of always, so that TCP and TCP-friendly VCP
//! flows see the same marks:
//!
//! ```text
//!   p = 0 below red_min, up to red_max_p at red_max, then up to 1 at twice that       in q~ over the buffer
//! ```
//!
//! The router sends acks before data (section III-E.1), unless the link's `priority` says otherwise. Valid for 1 kb/s
//! to 400 Gb/s; `t_rho` should be longer than most flows' RTT.
//!
//! Deviations (paper says / we do / because):
//! 1. Nothing on the time before the first load factor / the code is 01 / an idle link has the same code.
//! 2. `t_rho` is 200 ms / where the scenario does not set it, it follows the paths, for routers and senders alike
//!    ([`T_RHO_PER_RTT`](super::T_RHO_PER_RTT)), and `t_q` is a twentieth of it, as in the paper / at an RTT of 30 us
//!    the window would otherwise grow by only a sixteenth in 6,700 round trips.
//! 3. The text omits the weight of R.2 and RED's parameters for section VI-C / the weight is 1/8, the thresholds are
//!    a third and two thirds of the buffer, and the probability is 0.1 / the authors' code has weights of 1/8 and
//!    1/4, and Katabi 2002 has these thresholds.
//! 4. A link without capacity has no load factor / overload if any packet arrives or is queued, else low load.

use super::T_RHO;
use super::header::Code;
use crate::queue::Limit;
use crate::queue::red::base_probability;
use crate::router::{
    LinkChange, LinkView, MAX_TIMERS, PacketIn, PacketOut, RouterLaw, RouterTraits, RouterView,
};
use crate::units::{Ratio, Time};
use crate::{Open, Refused, check_times, within};

crate::params! {
    /// Constants of the law (table I).
    pub struct Params {
        /// `t_rho`: time over which a load factor is measured, the same for all routers and senders of a network. Default: 2.5 times
        /// the flows' mean RTT; the paper has 200 ms.
        pub t_rho: Option<Time> = None,
        /// `t_q`: time between samples of the queue. Default: a twentieth of `t_rho`.
        pub t_q: Option<Time> = None,
        /// `k_q`: share of the queue that counts as load.
        pub k_q: f64 = 0.5, // section III-B
        /// `gamma`: target utilisation.
        pub gamma: Ratio = Ratio::new(0.98), // section III-B
        /// `a`: weight of a sample of the queue, above 0.
        pub queue_weight: Ratio = Ratio::new(0.125), // deviation 3
        /// Whether overload also marks ECN-capable packets of other protocols as congestion experienced (section VI-C).
        /// Default: true; on Linux false.
        pub mark_others: bool = true,
        /// Whether the router signals overload with a probability instead of always.
        pub tcp_friendly: bool = false,
        /// With `tcp_friendly`, the queue, as a share of the buffer, at which the probability begins to rise.
        pub red_min: Ratio = Ratio::new(1.0 / 3.0), // deviation 3
        /// With `tcp_friendly`, the queue, as a share of the buffer, at which the probability is `red_max_p`.
        pub red_max: Ratio = Ratio::new(2.0 / 3.0),
        /// With `tcp_friendly`, the probability at a queue of `red_max`.
        pub red_max_p: Ratio = Ratio::new(0.1),
    }
}

impl Params {
    fn t_rho(&self) -> Time {
        self.t_rho.unwrap_or(T_RHO)
    }

    fn t_q(&self) -> Time {
        self.t_q.unwrap_or(Time::from_ps((self.t_rho().as_ps() / 20).max(1)))
    }
}

/// State of the law on one link.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    meter: Meter,
    /// Load code of the link.
    code: Code,
    limit: Limit,
    packet_bytes: f64,
}

/// Measures the load factor of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    /// Bytes/s.
    pub capacity: f64,
    /// `lambda` of the running interval so far, bytes.
    pub input: f64,
    /// `q~`, bytes.
    pub queue: f64,
    /// `rho` of the last interval.
    pub load: f64,
}

impl Meter {
    pub(super) fn new(link: &RouterView) -> Self {
        Self { capacity: link.known_capacity().bytes_per_sec(), input: 0.0, queue: 0.0, load: 0.0 }
    }

    pub(super) fn sample(&mut self, weight: f64, queue_bytes: u64) {
        self.queue += weight * (queue_bytes as f64 - self.queue); // R.2
    }

    /// Computes the load factor (eq. 1) and begins a new interval.
    pub(super) fn measure(&mut self, k_q: f64, gamma: f64, interval: Time) {
        let demand = self.input + k_q * self.queue;
        let target = gamma * self.capacity * interval.as_secs_f64();
        self.load = if demand <= 0.0 { 0.0 } else { (demand / target).min(f64::MAX) }; // deviation 4
        self.input = 0.0;
    }
}

/// Index of the timer of the load factor.
const LOAD: usize = 0;
/// Index of the timer that samples the queue.
const QUEUE: usize = 1;

impl Router {
    /// The load factor of the last interval.
    #[must_use]
    pub const fn load(&self) -> f64 {
        self.meter.load
    }

    /// The code for a departing packet: the link's code, where overload may be sent only with a probability.
    fn told(&self, mut uniform: impl FnMut() -> f64) -> Code {
        if self.code == Code::Overload && self.params.tcp_friendly && uniform() >= self.probability() {
            return Code::High;
        }
        self.code
    }

    /// Probability of gentle RED.
    fn probability(&self) -> f64 {
        let p = &self.params;
        let thresholds = [p.red_min.get(), p.red_max.get()];
        let buffer = self.limit.bytes(self.packet_bytes).max(1.0);
        base_probability(self.meter.queue / buffer, thresholds, p.red_max_p.get(), true)
    }
}

impl RouterLaw for Router {
    type Params = Params;

    fn traits(p: &Params) -> RouterTraits {
        let mut first_timers = [None; MAX_TIMERS];
        (first_timers[LOAD], first_timers[QUEUE]) = (Some(p.t_rho()), Some(p.t_q()));
        RouterTraits {
            first_timers,
            acks_first: true,
            marks: p.mark_others,
            begins_with: &["t_rho"],
            ..RouterTraits::DEFAULT
        }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        check_times([("t_rho", Some(p.t_rho())), ("t_q", Some(p.t_q()))])?;
        if p.t_q() > p.t_rho() {
            return Err(("t_q", format!("is {}; it must be at most t_rho, {}", p.t_q(), p.t_rho())));
        }
        within("k_q", p.k_q, 0.0, 100.0)?;
        within("gamma", p.gamma.get(), 0.01, 1.0)?;
        within("queue_weight", p.queue_weight.get(), 1e-6, 1.0)?;
        within("red_max", p.red_max.get(), 1e-6, 1.0)?;
        if p.red_min >= p.red_max {
            let (min, max) = (p.red_min.get(), p.red_max.get());
            return Err(("red_min", format!("is {min}; it must be less than red_max, {max}")));
        }
        Ok(())
    }

    fn open(p: &mut Params) -> Open<'_> {
        super::open(&mut p.t_rho)
    }

    fn new(params: &Params, link: &RouterView) -> Self {
        let packet_bytes = f64::from(link.packet_bytes);
        Self { params: *params, meter: Meter::new(link), code: Code::Low, limit: link.limit, packet_bytes }
    }

    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        match change {
            LinkChange::Params(params) => self.params = *params,
            LinkChange::Capacity(capacity) => self.meter.capacity = capacity.bytes_per_sec(),
            LinkChange::Part { .. } | LinkChange::Acked(_) => {}
            LinkChange::Buffer(limit) => self.limit = limit,
        }
    }

    #[inline]
    fn on_arrival(&mut self, _: LinkView, packet: PacketIn<'_>) {
        self.meter.input += f64::from(packet.size); // R.1
    }

    #[inline]
    fn on_departure(&mut self, _: LinkView, packet: PacketOut<'_>, uniform: impl FnMut() -> f64) {
        // R.4. The codes are ECN's, so that overload is congestion experienced for packets of other protocols.
        *packet.bits = Code::read(*packet.bits).raised(self.told(uniform)).bits();
    }

    fn on_timer(&mut self, which: usize, link: LinkView) -> Time {
        let p = &self.params;
        if which == QUEUE {
            self.meter.sample(p.queue_weight.get(), link.queue_bytes);
            return link.now.saturating_add(p.t_q());
        }
        self.meter.measure(p.k_q, p.gamma.get(), p.t_rho());
        self.code = Code::of_load(self.meter.load); // R.3
        link.now.saturating_add(p.t_rho())
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("load_factor", self.meter.load);
        report("load_code", f64::from(self.code.bits()));
        report("persistent_queue_bytes", self.meter.queue);
    }
}
