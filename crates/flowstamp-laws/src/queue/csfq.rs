//! Core-stateless fair queueing: edges label packets with their flow's rate, and every router drops the excess over
//! its estimated fair rate without per-flow state (Stoica, Shenker & Zhang, SIGCOMM 1998).
//!
//! ```text
//! edge, for each packet of l bytes, T after its flow's previous packet:
//!   r     = (1 - e^(-T/K)) l/T + e^(-T/K) r              the packet's label
//! everywhere, with A and F the same averages, over K_alpha, of all arrivals and of admitted packets:
//!   prob  = max(0, 1 - alpha/label)                      dropped; admitted packets leave with min(label, alpha)
//!   A >= C throughout K_c:     alpha = alpha C/F         the line through (alpha, F(alpha)) and the origin, at C
//!   A <  C throughout K_c:     alpha = the largest label in it
//!   the buffer overflows:      alpha = 0.99 alpha, by no more than a quarter between two of the updates above
//! ```
//! A link on which A has been below C does not count as congested while less than a given share of its buffer is in
//! use.
//!
//! The first link of this law on a flow's path is its edge, and the others are its core, unless `edge` says
//! otherwise. Acks and packets with a header that routers write into carry no label. Each link estimates their rate
//! itself.
//!
//! Valid where K, K_alpha and K_c exceed the queueing delay (section 4: twice the largest), and flows send several
//! packets in K.
//!
//! Deviations (paper says / we do / because):
//! 1. Packets are dropped / ECN-capable ones are marked / Katabi 2002, section 5.1, runs it "with ECN enabled". F
//!    counts only unmarked packets, so that alpha stays the rate at which flows fill the link: F(alpha) = C.
//! 2. alpha before the first congestion is open / nothing is dropped until then, and alpha starts at the largest
//!    label seen so far, at most C / this is the same rule as after a time without congestion.
//! 3. A flow's first packet has no T / r = l/K, as for packets at one instant, T -> 0 / the rate rises from below.
//! 4. K, K_alpha and K_c are 100 ms, twice the largest queueing delay (section 4) / they are the longest RTT of the
//!    flows, or 100 ms where no path is known / usual buffers here have a queueing delay of one round trip, and a
//!    flow sends a window in each.
//! 5. Buffers of 64 KB with a threshold of 16 KB (section 4) / the threshold is a quarter of the buffer / buffers
//!    come in bytes, packets and BDP. The paper's text is not available to us; these numbers are from memory.
//! 6. Flow state is never removed / the law forgets flows without a packet for 10 K whenever the number of flows has
//!    doubled since it last did so / the rate of such a flow has decayed to e^-10.

use super::{Arrival, Hears, Limit, QueueLaw, QueueView, TimeConstant, Verdict};
use crate::units::{Rate, Ratio, Time};
use crate::{Refused, within};
use std::collections::BTreeMap;

/// Default `interval` (1998, section 4).
const USUAL_INTERVAL: Time = Time::from_millis(100);
/// Least share of alpha that overflows leave between two updates (1998, section 3.1.3).
const LEAST_CUT: f64 = 0.75;
/// Number of flows below which the law forgets none.
const FEW: usize = 1000;

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Whether this router labels all packets, even if they have a label (true), or none (false). Default: it
        /// labels packets that have no label.
        pub edge: Option<bool> = None,
        /// `K`: the time over which a flow's rate is averaged. Default: the longest propagation RTT of the flows
        /// through the link.
        pub interval: Option<Time> = None,
        /// `K_alpha`: the time over which the link's rates are averaged. Default: `interval`.
        pub link_interval: Option<Time> = None,
        /// `K_c`: how long the link must have been congested, or uncongested, before the fair rate is updated. Default:
        /// `interval`.
        pub window: Option<Time> = None,
        /// Share of the buffer below which a link that was not congested stays uncongested.
        pub threshold: Ratio = Ratio::new(0.25), // 1998, section 4: 16 of 64 KB
        /// Share by which an overflow lowers the fair rate.
        pub overflow_cut: Ratio = Ratio::new(0.01), // 1998, section 3.1.3
        /// Whether ECN-capable packets are marked instead of dropped, except when the buffer is full.
        pub ecn: bool = true, // Katabi 2002, section 5.1
    }
}

/// An exponential average of a rate.
#[derive(Clone, Copy, Debug)]
struct Average {
    /// Bytes/s.
    rate: f64,
    last: Time,
}

impl Average {
    const NEW: Self = Self { rate: 0.0, last: Time::ZERO };

    /// Adds `bytes` that arrived at `now`, averaged over `k` seconds. Returns the rate in bytes/s.
    fn add(&mut self, now: Time, bytes: f64, k: f64) -> f64 {
        let passed = now.saturating_sub(self.last).as_secs_f64();
        self.last = now;
        let keep = libm::exp(-passed / k);
        // -expm1(-x) = 1 - exp(-x) without cancellation.
        let per_second = if passed > 0.0 { -libm::expm1(-passed / k) / passed } else { 1.0 / k };
        self.rate = per_second * bytes + keep * self.rate;
        self.rate
    }
}

/// State of the law. Rates are in bytes/s.
#[derive(Clone, Debug)]
pub struct Csfq {
    edge: Option<bool>,
    limit: Limit,
    threshold_bytes: f64,
    capacity: f64,
    overflow_cut: f64,
    ecn: bool,
    /// `K`.
    interval: Time,
    /// `K`, `K_alpha`, in seconds.
    k: f64,
    k_alpha: f64,
    /// `K_c`.
    window: Time,
    flows: BTreeMap<u64, Average>,
    /// Number of flows at which the law forgets old ones.
    room: usize,
    /// `A`, `F`.
    arrived: Average,
    accepted: Average,
    /// `alpha`; `None` before the first congestion.
    fair_rate: Option<f64>,
    /// `alpha` as last set, without the cuts for overflows.
    set_rate: f64,
    congested: bool,
    /// When `congested` last changed, or when `alpha` was last set.
    since: Time,
    /// Largest label since then.
    largest: f64,
    /// Label of the last packet.
    label: f64,
}

impl Csfq {
    /// The fair rate `alpha`, if the link has been congested.
    #[must_use]
    pub fn fair_rate(&self) -> Option<Rate> {
        self.fair_rate.map(Rate::from_bytes_per_sec)
    }

    /// The label of the last packet on arrival.
    #[must_use]
    pub const fn last_label(&self) -> Rate {
        Rate::from_bytes_per_sec(self.label)
    }

    /// Rate of the packet's flow: its label, or at its edge the rate of its arrivals.
    fn label_of(&mut self, packet: &Arrival) -> f64 {
        let labels = self.edge.unwrap_or(packet.label.is_none());
        if !labels {
            return packet.label.unwrap_or(0.0).clamp(0.0, f64::MAX);
        }
        if self.flows.len() >= self.room {
            let memory = self.interval * 10; // deviation 6
            self.flows.retain(|_, flow| packet.now.saturating_sub(flow.last) < memory);
            self.room = (2 * self.flows.len()).max(FEW);
        }
        let first = Average { last: packet.now, ..Average::NEW }; // deviation 3
        let flow = self.flows.entry(packet.flow).or_insert(first);
        flow.add(packet.now, f64::from(packet.size), self.k)
    }

    /// `estimate_alpha` of 1998, figure 3, after an arrival. `dropped` tells whether the packet was dropped or
    /// marked.
    fn estimate(&mut self, packet: &Arrival, dropped: bool) {
        let size = f64::from(packet.size);
        let arrived = self.arrived.add(packet.now, size, self.k_alpha);
        let accepted = self.accepted.add(packet.now, if dropped { 0.0 } else { size }, self.k_alpha);
        let waits = packet.queue_bytes as f64 >= self.threshold_bytes;
        self.largest = self.largest.max(self.label);
        let over = packet.now.saturating_sub(self.since) >= self.window;
        if arrived >= self.capacity && (self.congested || waits) {
            if !self.congested {
                (self.congested, self.since) = (true, packet.now);
                let largest = self.largest.min(self.capacity);
                self.set(self.fair_rate.unwrap_or(largest));
            } else if over {
                let fair_rate = self.fair_rate.unwrap_or(self.capacity);
                if accepted > 0.0 {
                    self.set((fair_rate * self.capacity / accepted).min(self.capacity));
                }
                self.since = packet.now;
            }
        } else if self.congested {
            (self.congested, self.since, self.largest) = (false, packet.now, 0.0);
        } else if over {
            if self.fair_rate.is_some() {
                self.set(self.largest.min(self.capacity));
            }
            (self.since, self.largest) = (packet.now, 0.0);
        }
    }

    fn set(&mut self, fair_rate: f64) {
        // A fair rate of zero could never grow again.
        self.set_rate = fair_rate.max(self.capacity * 1e-9);
        self.fair_rate = Some(self.set_rate);
    }
}

impl QueueLaw for Csfq {
    type Params = Params;
    const HEARS: Hears = Hears { labels: true, capacity: true, ..Hears::ARRIVALS };

    fn check(p: &Params) -> Result<(), Refused> {
        within("threshold", p.threshold.get(), 0.0, 1.0)?;
        within("overflow_cut", p.overflow_cut.get(), 0.0, 0.5)?;
        for (name, time) in
            [("interval", p.interval), ("link_interval", p.link_interval), ("window", p.window)]
        {
            if let Some(time) = time.filter(|t| !(Time::from_nanos(1)..=Time::from_secs(1000)).contains(t)) {
                return Err((name, format!("is {time}; it must be 1ns to 1000s")));
            }
        }
        Ok(())
    }

    fn time_constant(params: &mut Params) -> Option<TimeConstant<'_>> {
        Some(TimeConstant { name: "interval", value: &mut params.interval, usual_for: None })
    }

    fn new(params: &Params, view: &QueueView) -> Self {
        let buffer = match view.limit {
            Limit::Bytes(n) => n as f64,
            Limit::Packets(n) => f64::from(n) * f64::from(view.mean_packet_bytes),
        };
        let interval = params.interval.unwrap_or(USUAL_INTERVAL);
        Self {
            edge: params.edge,
            limit: view.limit,
            threshold_bytes: params.threshold.get() * buffer,
            capacity: view.capacity.bytes_per_sec(),
            overflow_cut: params.overflow_cut.get(),
            ecn: params.ecn,
            interval,
            k: interval.as_secs_f64(),
            k_alpha: params.link_interval.unwrap_or(interval).as_secs_f64(),
            window: params.window.unwrap_or(interval),
            flows: BTreeMap::new(),
            room: FEW,
            arrived: Average::NEW,
            accepted: Average::NEW,
            fair_rate: None,
            set_rate: 0.0,
            congested: false,
            since: Time::ZERO,
            largest: 0.0,
            label: 0.0,
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn set_capacity(&mut self, capacity: Rate) {
        self.capacity = capacity.bytes_per_sec();
    }

    fn on_arrival(&mut self, packet: &Arrival, mut uniform: impl FnMut() -> f64) -> Verdict {
        self.label = self.label_of(packet);
        let exceeds = |fair: &f64| self.label > *fair;
        let probability = self.fair_rate.filter(exceeds).map_or(0.0, |fair| 1.0 - fair / self.label);
        let beyond = probability > 0.0 && uniform() < probability;
        self.estimate(packet, beyond);
        if !packet.fits(self.limit) {
            if let Some(fair_rate) = &mut self.fair_rate {
                *fair_rate = (*fair_rate * (1.0 - self.overflow_cut)).max(self.set_rate * LEAST_CUT);
            }
            return Verdict::Drop;
        }
        match beyond {
            false => Verdict::Enqueue,
            true if self.ecn && packet.ecn_capable => Verdict::Mark,
            true => Verdict::Drop,
        }
    }

    fn label(&mut self, _: &Arrival) -> Option<f64> {
        Some(self.fair_rate.map_or(self.label, |fair| self.label.min(fair)))
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("fair_rate_bps", self.fair_rate.unwrap_or(self.capacity) * 8.0);
        report("congested", f64::from(u8::from(self.congested)));
        report("arrival_rate_bps", self.arrived.rate * 8.0);
        report("accepted_rate_bps", self.accepted.rate * 8.0);
        report("flows", self.flows.len() as f64);
    }
}
