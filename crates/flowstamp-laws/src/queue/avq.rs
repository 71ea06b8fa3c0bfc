//! Adaptive virtual queue: marks packets that overflow a virtual queue, which is served more slowly than the real one
//! (Kunniyur & Srikant, SIGCOMM 2001 and IEEE/ACM Transactions on Networking 12(2), 2004).
//!
//! ```text
//! each packet of b bytes, t - s after the previous one, with the capacity C and the buffer B:
//!   VQ  = max(0, VQ - C~ (t - s))                         length of the virtual queue
//!   VQ + b > B: marked, or dropped if not ECN-capable;    else VQ = VQ + b
//!   C~  = max(min(C~ + alpha gamma C (t - s), C) - alpha b, 0)        the same as dC~/dt = alpha (gamma C - lambda)
//! ```
//! In equilibrium the input rate lambda is gamma C, so that the real queue is short, whatever the number of flows.
//!
//! *Choice of alpha*: take N flows with round trip d, each with dx/dt = 1/d^2 - beta x(t) x(t-d) p, beta = 2/3 and p
//! = (lambda - C~)/lambda. They are stable about this equilibrium below the alpha at which
//!
//! ```text
//!   w d + atan(w/K1) - atan(w/alpha) = pi/2,   w^2 = (K2^2 - K1^2)/2 + sqrt((K2^2 - K1^2)^2/4 + alpha^2 K2^2)
//!   K1 = N/(gamma C d^2)    K2 = beta gamma C/N           C in packets per second
//! ```
//! No alpha is stable where a flow's share gamma C d/N exceeds 2.7 packets (Katabi & Blake 2002 found that for fast
//! links). There is no equilibrium where the share is less than sqrt(3/2).
//!
//! Valid at any rate; alpha is per second, so that on a path of microseconds C~ needs many round trips to change. The
//! virtual queue then controls at its current C~.
//!
//! Deviations (paper says / we do / because):
//! 1. Any alpha below the bound is stable / alpha is half of the bound, where `flows` and the RTT are known and a
//!    bound exists; else 0.15, as in the paper's simulations (Katabi 2002, section 5.1) / at the bound it would
//!    oscillate for ever.
//! 2. The paper's theorem gives the bound / we derive it from the paper's model, above / the theorem's text is not
//!    available to us.
//! 3. With drops, lambda counts only admitted packets / the same: a packet that the virtual queue drops takes nothing
//!    off C~. A packet that the buffer cannot hold takes its alpha b off, as in the authors' ns-2 model / an overflow
//!    shows that too much arrived.
//! 4. C~ at the start is open / it is gamma C / this is its value if nothing is marked. ns-2's model starts at 0.8 C.
//! 5. C is constant / C~ changes in proportion to C / a link's rate may change.

use super::{Arrival, Hears, Limit, QueueLaw, QueueView, TimeConstant, Verdict};
use crate::units::{Rate, Ratio, Time};
use crate::{Refused, within};
use std::f64::consts::FRAC_PI_2;

/// `alpha` where no bound is known (Katabi 2002, section 5.1, after Kunniyur & Srikant 2001).
const USUAL_ALPHA: f64 = 0.15;
/// Share of its window that TCP loses per mark in the paper's model, so that x = sqrt(3/2)/(d sqrt(p)).
const BETA: f64 = 2.0 / 3.0;

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `gamma`: target utilisation.
        pub gamma: Ratio = Ratio::new(0.98), // Katabi 2002, section 5.1
        /// `alpha`: how fast the virtual capacity adapts, per second. Default: half of the stability limit for `flows`
        /// flows with a round trip of `rtt`; 0.15 without `flows`, or if no value is stable.
        pub alpha: Option<f64> = None,
        /// `N`: the least number of flows, from which `alpha` follows.
        pub flows: Option<u32> = None,
        /// `d`: the longest round trip, from which `alpha` follows if `flows` is given. Default: the longest
        /// propagation RTT of the flows through the link.
        pub rtt: Option<Time> = None,
        /// The virtual buffer, as a share of the buffer.
        pub virtual_buffer: Ratio = Ratio::new(1.0), // 2001, the algorithm: B is the buffer's
        /// Whether ECN-capable packets are marked instead of dropped early.
        pub ecn: bool = true, // Katabi 2002, section 5.1
    }
}

/// The alpha per second below which `flows` flows over a link of `packets_per_sec` are stable, by the equation above.
/// `None` where they never are, or where there is no equilibrium.
#[must_use]
pub fn stable_below(gamma: f64, packets_per_sec: f64, flows: f64, rtt_s: f64) -> Option<f64> {
    let share = gamma * packets_per_sec / flows;
    let (k1, k2) = (1.0 / (share * rtt_s * rtt_s), BETA * share);
    // p = K1/K2 = 1/(beta (share d)^2) is a probability.
    if !(k1 < k2 && rtt_s > 0.0 && k2.is_finite()) {
        return None;
    }
    let turn = |alpha: f64| {
        let half = 0.5 * (k2 * k2 - k1 * k1);
        let w = libm::sqrt(half + libm::sqrt(half * half + alpha * alpha * k2 * k2));
        w * rtt_s + libm::atan(w / k1) - libm::atan(w / alpha) - FRAC_PI_2
    };
    // `turn` rises with alpha, whose scale is 1/d.
    let (mut low, mut high) = (1e-9 / rtt_s, 1e3 / rtt_s);
    if turn(low) >= 0.0 {
        return None;
    }
    for _ in 0..100 {
        let middle = libm::sqrt(low * high);
        if turn(middle) < 0.0 { low = middle } else { high = middle }
    }
    Some(low)
}

/// State of the law. Rates are in bytes/s.
#[derive(Clone, Debug)]
pub struct Avq {
    params: Params,
    limit: Limit,
    mean_packet: f64,
    capacity: f64,
    alpha: f64,
    /// `B`, bytes.
    virtual_buffer: f64,
    /// `VQ`, bytes.
    virtual_queue: f64,
    /// `C~`.
    virtual_capacity: f64,
    /// Arrival time of the last packet.
    last: Option<Time>,
}

impl Avq {
    /// `alpha`, per second.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The virtual queue `VQ` in bytes, and the virtual capacity `C~`.
    #[must_use]
    pub const fn virtual_state(&self) -> (f64, Rate) {
        (self.virtual_queue, Rate::from_bytes_per_sec(self.virtual_capacity))
    }

    fn choose_alpha(&mut self) {
        let Params { gamma, alpha, flows, rtt, .. } = self.params;
        let bound = flows.zip(rtt).and_then(|(flows, rtt)| {
            let packets_per_sec = self.capacity / self.mean_packet;
            stable_below(gamma.get(), packets_per_sec, f64::from(flows), rtt.as_secs_f64())
        });
        self.alpha = alpha.or(bound.map(|b| 0.5 * b)).unwrap_or(USUAL_ALPHA);
    }
}

impl QueueLaw for Avq {
    type Params = Params;
    const HEARS: Hears = Hears { capacity: true, ..Hears::ARRIVALS };

    fn check(p: &Params) -> Result<(), Refused> {
        within("gamma", p.gamma.get(), 0.01, 1.0)?;
        within("alpha", p.alpha.unwrap_or(USUAL_ALPHA), 0.0, 1e9)?;
        within("flows", f64::from(p.flows.unwrap_or(1)), 1.0, 1e9)?;
        within("virtual_buffer", p.virtual_buffer.get(), 0.001, 1000.0)?;
        if p.rtt == Some(Time::ZERO) {
            return Err(("rtt", "is 0s; it must be longer".to_owned()));
        }
        match (p.alpha, p.flows) {
            (Some(alpha), Some(flows)) => Err((
                "flows",
                format!("is {flows} beside alpha, {alpha}, which follows from it; leave out one of them"),
            )),
            _ => Ok(()),
        }
    }

    fn time_constant(params: &mut Params) -> Option<TimeConstant<'_>> {
        params.flows.map(|_| TimeConstant { name: "rtt", value: &mut params.rtt, usual_for: None })
    }

    fn new(params: &Params, view: &QueueView) -> Self {
        let mean_packet = f64::from(view.mean_packet_bytes.max(1));
        let buffer = match view.limit {
            Limit::Bytes(n) => n as f64,
            Limit::Packets(n) => f64::from(n) * mean_packet,
        };
        let capacity = view.capacity.bytes_per_sec();
        let mut law = Self {
            params: *params,
            limit: view.limit,
            mean_packet,
            capacity,
            alpha: USUAL_ALPHA,
            virtual_buffer: params.virtual_buffer.get() * buffer,
            virtual_queue: 0.0,
            virtual_capacity: params.gamma.get() * capacity,
            last: None,
        };
        law.choose_alpha();
        law
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn set_capacity(&mut self, capacity: Rate) {
        let before = std::mem::replace(&mut self.capacity, capacity.bytes_per_sec());
        // The ratio of `C~` to the old capacity holds for the new one.
        self.virtual_capacity = if before > 0.0 {
            self.virtual_capacity * (self.capacity / before)
        } else {
            self.params.gamma.get() * self.capacity
        };
        self.choose_alpha();
    }

    fn on_arrival(&mut self, arrival: &Arrival, _: impl FnMut() -> f64) -> Verdict {
        let size = f64::from(arrival.size);
        let passed = arrival.now.saturating_sub(self.last.unwrap_or(arrival.now)).as_secs_f64();
        self.last = Some(arrival.now);
        self.virtual_queue = (self.virtual_queue - self.virtual_capacity * passed).max(0.0);
        let full = self.virtual_queue + size > self.virtual_buffer;
        if !full {
            self.virtual_queue += size;
        }
        let verdict = match full {
            _ if !arrival.fits(self.limit) => Verdict::Drop,
            false => Verdict::Enqueue,
            true if self.params.ecn && arrival.ecn_capable => Verdict::Mark,
            true => Verdict::Drop,
        };
        let gained = self.alpha * self.params.gamma.get() * self.capacity * passed;
        self.virtual_capacity = (self.virtual_capacity + gained).min(self.capacity);
        if verdict != Verdict::Drop || !arrival.fits(self.limit) {
            self.virtual_capacity = (self.virtual_capacity - self.alpha * size).max(0.0);
        }
        verdict
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("virtual_queue_bytes", self.virtual_queue);
        report("virtual_capacity_bps", self.virtual_capacity * 8.0);
        report("alpha", self.alpha);
    }
}
