//! PI2: a proportional-integral controller of the queue's delay whose output is squared for classic flows (De Schepper, Bondarenko,
//! Tsang & Briscoe, CoNEXT 2016).
//!
//! ```text
//! every T, with q the queue's delay now and q_ before:
//!   p' = p' + alpha (q - q0) + beta (q - q_)      within 0 and 1
//! each packet, in one queue:
//!   classic:   marked, or dropped if not ECN-capable, with p = p'^2     its window is proportional to 1/sqrt(p)
//!   L4S:       marked with min(1, k p'), ECT(1) or CE                   its window is proportional to 1/p
//! ```
//! The square cancels TCP's square root in the loop, so that the same gains suit any rate. With k p' above 1 the
//! classic p exceeds p_Cmax = 1/k^2, which is an overload. Classic packets are then dropped, ECN-capable or not, and
//! L4S packets are also dropped with p'^2.
//!
//! Valid for round trips up to `max_rtt` (RFC 9332, appendix A.1: the gains give a margin of 10 dB there).
//!
//! Deviations (paper says / we do / because):
//! 1. Gains of 5/16 and 50/16 Hz every 32 ms for a target of 20 ms (2016) / 0.16 and 3.2 Hz every 16 ms for 15 ms, as
//!    in Linux's `sch_dualpi2` / RFC 9332 settled on these. The RFC's text is not available to us: its numbers are
//!    from Linux and from memory.
//! 2. Constants for a longest round trip of 100 ms / they scale with `max_rtt`, which is the paths' where that is
//!    below 10 or above 100 ms: T and q0 in proportion, alpha and beta in inverse proportion / RFC 9332's own
//!    formulas scale like that.
//! 3. The queue's delay from its head's arrival time or a measured departure rate / the backlog over the current
//!    capacity / this is the same at a constant capacity, and needs no event for each departure.
//! 4. Linux makes two draws with p' / one draw with p'^2 / the probability is the same.
//! 5. p' always applies / no packet is marked or dropped early while fewer than two packets wait / Linux has this
//!    rule, for links on which one packet's transmission takes as long as the target.

use super::{Arrival, Hears, Limit, QueueLaw, QueueView, TimeConstant, Verdict};
use crate::link::LinkView;
use crate::units::{Rate, Time};
use crate::{Refused, within};
use std::ops::RangeInclusive;

/// RFC 9332, appendix A.1: the longest round trip for the default gains.
const USUAL_MAX_RTT: Time = Time::from_millis(100);
/// Round trips for which the defaults suit. Below 10 ms the target of 15 ms exceeds the path's own delay.
pub(super) const USUAL_RTTS: RangeInclusive<Time> = Time::from_millis(10)..=USUAL_MAX_RTT;

/// The proportional-integral controller, which several laws share.
#[derive(Clone, Copy, Debug)]
pub struct Pi {
    target_s: f64,
    interval: Time,
    alpha: f64,
    beta: f64,
    /// The delay at the last update, seconds.
    before_s: f64,
    probability: f64,
}

/// Parameters of the controller that a scenario may set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gains {
    pub max_rtt: Option<Time>,
    pub target: Option<Time>,
    pub interval: Option<Time>,
    pub alpha: Option<f64>,
    pub beta: Option<f64>,
}

impl Gains {
    pub(super) fn check(&self) -> Result<(), Refused> {
        for (name, time) in [("max_rtt", self.max_rtt), ("target", self.target), ("interval", self.interval)]
        {
            if let Some(time) = time.filter(|t| !(Time::from_micros(1)..=Time::from_secs(1000)).contains(t)) {
                return Err((name, format!("is {time}; it must be 1us to 1000s")));
            }
        }
        within("alpha", self.alpha.unwrap_or(0.0), 0.0, 1e9)?;
        within("beta", self.beta.unwrap_or(0.0), 0.0, 1e9)
    }
}

impl Pi {
    pub(super) fn new(given: &Gains) -> Self {
        let max_rtt = given.max_rtt.unwrap_or(USUAL_MAX_RTT);
        let per_rtt = 1.0 / max_rtt.as_secs_f64();
        Self {
            target_s: given.target.unwrap_or(max_rtt.scale(0.15)).as_secs_f64(), // 15 ms of 100 ms
            interval: given.interval.unwrap_or(max_rtt.scale(0.16)).max(Time::from_nanos(100)), // 16 ms
            alpha: given.alpha.unwrap_or(0.016 * per_rtt),                       // 0.16 Hz
            beta: given.beta.unwrap_or(0.32 * per_rtt),                          // 3.2 Hz
            before_s: 0.0,
            probability: 0.0,
        }
    }

    /// The probability `p'`, before it is squared.
    #[must_use]
    pub const fn probability(&self) -> f64 {
        self.probability
    }

    /// `q0` in seconds, `T`, alpha and beta.
    #[must_use]
    pub const fn constants(&self) -> (f64, Time, f64, f64) {
        (self.target_s, self.interval, self.alpha, self.beta)
    }

    pub(super) const fn interval(&self) -> Time {
        self.interval
    }

    pub(super) fn update(&mut self, delay_s: f64) {
        let change = self.alpha * (delay_s - self.target_s) + self.beta * (delay_s - self.before_s);
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        self.before_s = delay_s;
    }

    /// Decides on a classic packet. `k` is the coupling.
    pub(super) fn classic(&self, k: f64, ecn_capable: bool, draw: f64) -> Verdict {
        match draw < self.probability * self.probability {
            false => Verdict::Enqueue,
            true if ecn_capable && k * self.probability <= 1.0 => Verdict::Mark,
            true => Verdict::Drop,
        }
    }

    /// Decides on an L4S packet, which its own queue marks with probability `native`.
    pub(super) fn scalable(&self, k: f64, native: f64, mut draw: impl FnMut() -> f64) -> Verdict {
        let coupled = k * self.probability;
        if coupled > 1.0 && draw() < self.probability * self.probability {
            return Verdict::Drop;
        }
        let likely = coupled.max(native);
        if likely > 0.0 && draw() < likely { Verdict::Mark } else { Verdict::Enqueue }
    }
}

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// The longest round trip for which the controller must be stable. `target`, `interval`, `alpha` and `beta`
        /// follow from it. Default: 100 ms, or the longest propagation RTT of the flows through the link if that is
        /// below 10 ms or above 100 ms.
        pub max_rtt: Option<Time> = None,
        /// `q0`: target queueing delay. Default: 0.15 of `max_rtt`, 15 ms for 100 ms.
        pub target: Option<Time> = None,
        /// `T`: time between two updates. Default: 0.16 of `max_rtt`, 16 ms for 100 ms.
        pub interval: Option<Time> = None,
        /// `alpha`: what an update adds to p' for each second of delay above the target. Default: 0.016 s / `max_rtt`,
        /// 0.16 for 100 ms.
        pub alpha: Option<f64> = None,
        /// `beta`: what an update adds to p' for each second by which the delay grew. Default: 0.32 s / `max_rtt`, 3.2
        /// for 100 ms.
        pub beta: Option<f64> = None,
        /// `k`: coupling factor. L4S packets are marked with probability k p', classic packets with p'^2.
        pub coupling: f64 = 2.0, // RFC 9332, section 2.1
        /// Whether classic ECN-capable packets are marked instead of dropped.
        pub ecn: bool = true,
    }
}

impl Params {
    const fn gains(&self) -> Gains {
        let Self { max_rtt, target, interval, alpha, beta, .. } = *self;
        Gains { max_rtt, target, interval, alpha, beta }
    }
}

/// State of the law.
#[derive(Clone, Debug)]
pub struct Pi2 {
    limit: Limit,
    pi: Pi,
    coupling: f64,
    ecn: bool,
    /// Bytes/s.
    capacity: f64,
}

impl Pi2 {
    /// The controller.
    #[must_use]
    pub const fn controller(&self) -> &Pi {
        &self.pi
    }
}

impl QueueLaw for Pi2 {
    type Params = Params;
    const HEARS: Hears = Hears { capacity: true, ..Hears::ARRIVALS };

    fn check(p: &Params) -> Result<(), Refused> {
        p.gains().check()?;
        within("coupling", p.coupling, 0.1, 100.0)
    }

    fn time_constant(params: &mut Params) -> Option<TimeConstant<'_>> {
        Some(TimeConstant { name: "max_rtt", value: &mut params.max_rtt, usual_for: Some(USUAL_RTTS) })
    }

    fn new(params: &Params, view: &QueueView) -> Self {
        Self {
            limit: view.limit,
            pi: Pi::new(&params.gains()),
            coupling: params.coupling,
            ecn: params.ecn,
            capacity: view.capacity.bytes_per_sec(),
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn set_capacity(&mut self, capacity: Rate) {
        self.capacity = capacity.bytes_per_sec();
    }

    fn on_arrival(&mut self, packet: &Arrival, mut uniform: impl FnMut() -> f64) -> Verdict {
        if !packet.fits(self.limit) {
            Verdict::Drop
        } else if packet.queue_packets < 2 || self.pi.probability == 0.0 {
            Verdict::Enqueue
        } else if packet.l4s {
            self.pi.scalable(self.coupling, 0.0, uniform)
        } else {
            self.pi.classic(self.coupling, self.ecn && packet.ecn_capable, uniform())
        }
    }

    fn first_timer(&self) -> Option<Time> {
        Some(self.pi.interval)
    }

    fn on_timer(&mut self, link: LinkView) -> Time {
        // On a stalled link the delay would be infinite. The bound of 1000 s is beyond any target.
        let delay_s = (link.queue_bytes as f64 / self.capacity.max(1.0)).min(1e3);
        self.pi.update(delay_s);
        link.now.saturating_add(self.pi.interval)
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("base_probability", self.pi.probability);
        report("delay_s", self.pi.before_s);
    }
}
