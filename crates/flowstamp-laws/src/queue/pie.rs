//! PIE: drops or marks arriving packets with a probability that a proportional-integral controller of the queue's delay sets (Pan,
//! Natarajan, Baker & White, RFC 8033).
//!
//! ```text
//! every T, with q the queue's delay now and q_ before                                      section 4.2
//!   d = alpha (q - q0) + beta (q - q_)
//!   d = d / 2048, 512, 128, 32, 8, 2    while p is below 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1
//!   d = min(d, 0.02)                    where p is 0.1 or more                             section 5.5
//!   p = p + d                           and 0.98 p if q and q_ are zero; within 0 and 1
//!   burst = max(0, burst - T)                                                              section 4.4
//!
//! each packet that fits                                                                    section 4.1
//!   burst = max_burst                   where p is zero, and q and q_ are below q0/2
//!   is admitted                         if burst is above zero
//!                                       or q_ < q0/2 and p < 0.2
//!                                       or at most two packets' bytes are queued
//!   else is dropped with p              or marked, if ECN-capable and p < mark_ecnth       section 5.1
//! ```
//! The divisors of `d` keep the loop stable at small `p`, where TCP's rate reacts more strongly to `p`.
//!
//! Valid for round trips up to about 100 ms, to which RFC 8033 tunes the gains (section 4.2). All defaults are the RFC's.
//!
//! Deviations (RFC says / we do / because):
//! 1. The queue's delay from a measured departure rate (section 5.2) or from timestamps / from timestamps: the
//!    waiting time of the last packet to leave, and zero if the queue is empty / a simulator has timestamps at no
//!    cost, they need no standing queue of 16 kB to measure a rate, and Linux's `sch_pie` and ns-3 also use them by
//!    default.
//! 2. Marks where the sender is ECN-capable are optional (section 5.1) / they are on / the other queue laws here mark
//!    too, as RFC 7567, section 4.2.1, asks.
//! 3. The cap of section 5.5 is optional / it is on / Linux and ns-3 have it on too.
//! 4. Linux adds 2% to `p` above a delay of 250 ms / it does not / RFC 8033 has no such rule.
//! 5. The text of the RFC is not available to us: its numbers and its pseudocode are from Linux, ns-3 and FreeBSD,
//!    which name its sections.

use super::{Arrival, Departure, Hears, Limit, QueueLaw, QueueView, Verdict};
use crate::link::LinkView;
use crate::units::{Ratio, Time};
use crate::{Refused, within};

/// Section 4.2: pairs of a bound on `p` and the divisor of a step below it.
const STEPS: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
/// Section 4.2: factor on `p` after an interval without delay.
const DECAY: f64 = 0.98;
/// Section 4.1: below this `p`, no packet is dropped early while the delay is short.
const SAFE: f64 = 0.2;
/// Section 5.5: from this `p` on, steps are bounded by `LARGEST_STEP`.
const CAPPED_FROM: f64 = 0.1;
const LARGEST_STEP: f64 = 0.02;
/// Section 5.4: bounds of the sum of probabilities since the last drop. Below the first no packet is dropped, from
/// the second on one is.
const NONE_BELOW: f64 = 0.85;
const SURE_FROM: f64 = 8.5;

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `QDELAY_REF`, q0: target queueing delay. 1us to 1000s.
        pub target: Time = Time::from_millis(15), // section 4.1
        /// `T_UPDATE`, T: time between two updates of the drop probability. 1us to 1000s.
        pub interval: Time = Time::from_millis(15), // section 4.2
        /// `MAX_BURST`: time after a queue begins to build during which nothing is dropped early. 0s to 1000s.
        pub max_burst: Time = Time::from_millis(150), // section 4.4
        /// What an update adds to the drop probability for each second of delay above the target.
        pub alpha: f64 = 0.125, // section 4.2
        /// What an update adds to the drop probability for each second by which the delay grew.
        pub beta: f64 = 1.25, // the same
        /// Whether ECN-capable packets are marked instead of dropped while the drop probability is below `mark_ecnth`.
        pub ecn: bool = true, // RFC 7567, section 4.2.1
        /// Drop probability from which on ECN-capable packets are dropped like all others.
        pub mark_ecnth: Ratio = Ratio::new(0.1), // section 5.1
        /// Whether a drop probability of 10% or more grows by at most 2 percentage points in an update.
        pub cap_drop: bool = true, // section 5.5, deviation 3
        /// Whether drops are spread. The next one then comes only when the probabilities since the last one add up to
        /// 0.85, and at the latest when they add up to 8.5.
        pub derandomize: bool = false, // section 5.4: an option
        /// Whether smaller packets are dropped less often, in proportion to their size over the scenario's `packet`.
        pub bytemode: bool = false, // as in Linux
        /// Whether PIE is inactive until a third of the buffer is in use, and again once the delay and the drop
        /// probability are zero.
        pub on_off: bool = false, // section 5.3: an option
    }
}

/// State of the law.
#[derive(Clone, Debug)]
pub struct Pie {
    params: Params,
    limit: Limit,
    packet_bytes: f64,
    /// `p`.
    probability: f64,
    /// `q` at the last departure and `q_` at the last update, in seconds.
    delay_s: f64,
    before_s: f64,
    /// Remaining burst allowance, up to `max_burst`.
    burst: Time,
    /// Sum of the probabilities of all packets since the last drop.
    sum: f64,
    active: bool,
}

impl Pie {
    /// `p`.
    #[must_use]
    pub const fn probability(&self) -> f64 {
        self.probability
    }

    /// Remaining time in which packets are admitted regardless of the drop probability.
    #[must_use]
    pub const fn burst_allowance(&self) -> Time {
        self.burst
    }

    /// Section 4.2, with the cap of section 5.5.
    fn update(&mut self, delay_s: f64) {
        let Params { target, alpha, beta, cap_drop, .. } = self.params;
        let mut step = alpha * (delay_s - target.as_secs_f64()) + beta * (delay_s - self.before_s);
        if let Some((_, part)) = STEPS.iter().find(|(below, _)| self.probability < *below) {
            step /= part;
        }
        if cap_drop && self.probability >= CAPPED_FROM {
            step = step.min(LARGEST_STEP);
        }
        self.probability += step;
        if delay_s == 0.0 && self.before_s == 0.0 {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
    }

    /// Sections 4.4 and 5.3: whether there is no congestion.
    fn is_calm(&self) -> bool {
        let half = 0.5 * self.params.target.as_secs_f64();
        self.probability == 0.0 && self.delay_s < half && self.before_s < half
    }

    /// `drop_early` of section 4.1, with section 5.4.
    fn drops_early(&mut self, packet: &Arrival, mut uniform: impl FnMut() -> f64) -> bool {
        let short = self.before_s < 0.5 * self.params.target.as_secs_f64() && self.probability < SAFE;
        if short || packet.queue_bytes as f64 <= 2.0 * self.packet_bytes {
            return false;
        }
        let mut probability = self.probability;
        if self.params.bytemode {
            probability *= (f64::from(packet.size) / self.packet_bytes).min(1.0);
        }
        if self.params.derandomize {
            self.sum = if self.probability == 0.0 { 0.0 } else { self.sum + probability };
            if self.sum < NONE_BELOW {
                return false;
            }
            if self.sum >= SURE_FROM {
                return true;
            }
        }
        uniform() < probability
    }

    /// Section 5.3: whether PIE is active. It becomes active when a third of the buffer is in use.
    fn wakes(&mut self, packet: &Arrival) -> bool {
        if !self.active {
            self.active = match self.limit {
                Limit::Bytes(most) => 3 * packet.queue_bytes >= most,
                Limit::Packets(most) => 3 * u64::from(packet.queue_packets) >= u64::from(most),
            };
            if self.active {
                (self.probability, self.before_s, self.sum) = (0.0, 0.0, 0.0);
                self.burst = self.params.max_burst;
            }
        }
        self.active
    }
}

impl QueueLaw for Pie {
    type Params = Params;
    const HEARS: Hears = Hears { departures: true, ..Hears::ARRIVALS };

    fn check(p: &Params) -> Result<(), Refused> {
        for (name, time) in [("target", p.target), ("interval", p.interval)] {
            if !(Time::from_micros(1)..=Time::from_secs(1000)).contains(&time) {
                return Err((name, format!("is {time}; it must be 1us to 1000s")));
            }
        }
        if p.max_burst > Time::from_secs(1000) {
            return Err(("max_burst", format!("is {}; it must be 0s to 1000s", p.max_burst)));
        }
        within("alpha", p.alpha, 0.0, 1e9)?;
        within("beta", p.beta, 0.0, 1e9)?;
        within("mark_ecnth", p.mark_ecnth.get(), 0.0, 1.0)
    }

    fn new(params: &Params, view: &QueueView) -> Self {
        Self {
            params: *params,
            limit: view.limit,
            packet_bytes: f64::from(view.mean_packet_bytes),
            probability: 0.0,
            delay_s: 0.0,
            before_s: 0.0,
            burst: params.max_burst,
            sum: 0.0,
            active: !params.on_off,
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn on_arrival(&mut self, packet: &Arrival, uniform: impl FnMut() -> f64) -> Verdict {
        if !packet.fits(self.limit) {
            self.sum = 0.0;
            return Verdict::Drop;
        }
        if !self.wakes(packet) {
            return Verdict::Enqueue;
        }
        if self.is_calm() {
            self.burst = self.params.max_burst;
        }
        if self.burst > Time::ZERO || !self.drops_early(packet, uniform) {
            return Verdict::Enqueue;
        }
        self.sum = 0.0;
        let marks = self.params.ecn && packet.ecn_capable;
        if marks && self.probability < self.params.mark_ecnth.get() { Verdict::Mark } else { Verdict::Drop }
    }

    fn on_departure(&mut self, packet: &Departure, _: impl FnMut() -> f64) -> Verdict {
        self.delay_s = packet.sojourn.as_secs_f64();
        Verdict::Enqueue
    }

    fn first_timer(&self) -> Option<Time> {
        Some(self.params.interval)
    }

    fn on_timer(&mut self, link: LinkView) -> Time {
        let next = link.now.saturating_add(self.params.interval);
        if link.queue_packets == 0 {
            self.delay_s = 0.0;
        }
        if !self.active {
            return next;
        }
        self.update(self.delay_s);
        let idle = self.probability == 0.0 && self.delay_s == 0.0 && self.before_s == 0.0;
        self.before_s = self.delay_s;
        self.burst = self.burst.saturating_sub(self.params.interval);
        self.active = !(self.params.on_off && idle);
        next
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("drop_probability", self.probability);
        report("delay_s", self.delay_s);
        report("burst_allowance_s", self.burst.as_secs_f64());
    }
}
