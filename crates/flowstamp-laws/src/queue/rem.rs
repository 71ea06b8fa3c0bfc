//! Random exponential marking: marks by a price that rises while the input rate or the queue is too large
//! (Athuraliya, Low, Li & Yin, IEEE Network, May 2001).
//!
//! ```text
//! every interval, in packets: x arrived in it, c the link can send in it, b are queued at its end
//!   p = max(0, p + gamma (alpha (b - b*) + x - c))        the price, in its form with a measured input rate
//! each packet: marked, or dropped if not ECN-capable, with probability
//!   m = 1 - phi^-p                                        so that 1 - prod (1 - m_l) = 1 - phi^-(sum p_l) over a path
//! ```
//! In equilibrium b = b* and x = c, whatever the number of flows: the price, not an average queue as in RED, sets the
//! marking rate.
//!
//! Valid for any rate. The price needs more round trips to settle the more often flows must be marked. For small m
//! and the default phi the price is `p = 1000 m`, and it changes by `gamma` per excess packet.
//!
//! Deviations (paper says / we do / because):
//! 1. Rates in packets / bytes that arrived over the typical packet size, and b likewise / an ack is smaller than a
//!    data packet.
//! 2. The paper does not say when packets are marked / on arrival / hearing of departures costs an event each. The
//!    authors' ns-2 model marks departing packets, which signals senders sooner by the waiting time.
//! 3. b* in packets / b* as a share of the buffer (Katabi 2002, section 5.1) / buffers come in bytes, packets and
//!    BDP.
//! 4. An interval of constant length / the transmission time of 10 typical packets at the current capacity (Katabi
//!    2002, section 5.1), but at least 1 us / at rates where this bound applies, a timer for every few packets would
//!    cost more than the packets.

use super::{Arrival, Hears, Limit, QueueLaw, QueueView, Verdict};
use crate::link::LinkView;
use crate::units::{Rate, Ratio, Time};
use crate::{Refused, within};

/// Default interval in packet transmission times (Katabi 2002, section 5.1).
const INTERVAL_PACKETS: f64 = 10.0;
/// Shortest default interval (deviation 4).
const LEAST_INTERVAL: Time = Time::from_micros(1);
/// Longest interval: a stalled link must not stop the timer.
const LONGEST_INTERVAL: Time = Time::from_secs(10);
/// Upper bound of the price, at which every packet is marked whatever `phi`.
const MOST_PRICE: f64 = 1e15;

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `gamma`: the step of the price per packet.
        pub gamma: f64 = 0.001, // Katabi 2002, section 5.1
        /// `alpha`: weight of a waiting packet in the price, relative to a packet that arrives above capacity.
        pub alpha: f64 = 0.1, // 2001, simulations; the authors' ns-2 model
        /// `phi`: the base of the marking probability, above 1.
        pub phi: f64 = 1.001, // Katabi 2002, section 5.1
        /// `b*`: target queue, as a share of the buffer.
        pub target: Ratio = Ratio::new(1.0 / 3.0), // Katabi 2002, section 5.1
        /// Time between two updates of the price. Default: 10 packet times.
        pub interval: Option<Time> = None,
        /// Whether ECN-capable packets are marked instead of dropped early.
        pub ecn: bool = true, // Katabi 2002, section 5.1
    }
}

/// State of the law.
#[derive(Clone, Debug)]
pub struct Rem {
    limit: Limit,
    gamma: f64,
    alpha: f64,
    /// `ln phi`.
    log_phi: f64,
    /// `b*`, packets.
    target: f64,
    given_interval: Option<Time>,
    interval: Time,
    ecn: bool,
    /// Typical packet, bytes.
    mean_packet: f64,
    /// Bytes/s.
    capacity: f64,
    /// Bytes that arrived since the last update.
    input_bytes: f64,
    price: f64,
    probability: f64,
}

impl Rem {
    /// The price `p`.
    #[must_use]
    pub const fn price(&self) -> f64 {
        self.price
    }

    /// The marking probability `m`.
    #[must_use]
    pub const fn probability(&self) -> f64 {
        self.probability
    }

    fn pace(&mut self) {
        self.interval = self.given_interval.unwrap_or_else(|| {
            let seconds = INTERVAL_PACKETS * self.mean_packet / self.capacity.max(1e-3);
            Time::from_secs_f64(seconds.min(LONGEST_INTERVAL.as_secs_f64())).max(LEAST_INTERVAL)
        });
    }
}

impl QueueLaw for Rem {
    type Params = Params;
    const HEARS: Hears = Hears { capacity: true, ..Hears::ARRIVALS };

    fn check(p: &Params) -> Result<(), Refused> {
        within("gamma", p.gamma, 1e-9, 1e3)?;
        within("alpha", p.alpha, 0.0, 1e3)?;
        within("phi", p.phi, 1.0 + 1e-9, 1e3)?;
        within("target", p.target.get(), 0.0, 1.0)?;
        match p.interval.filter(|t| !(LEAST_INTERVAL..=LONGEST_INTERVAL).contains(t)) {
            Some(t) => {
                Err(("interval", format!("is {t}; it must be {LEAST_INTERVAL} to {LONGEST_INTERVAL}")))
            }
            None => Ok(()),
        }
    }

    fn new(params: &Params, view: &QueueView) -> Self {
        let mean_packet = f64::from(view.mean_packet_bytes.max(1));
        let buffer = match view.limit {
            Limit::Bytes(n) => n as f64 / mean_packet,
            Limit::Packets(n) => f64::from(n),
        };
        let mut law = Self {
            limit: view.limit,
            gamma: params.gamma,
            alpha: params.alpha,
            log_phi: libm::log(params.phi),
            target: params.target.get() * buffer,
            given_interval: params.interval,
            interval: Time::ZERO,
            ecn: params.ecn,
            mean_packet,
            capacity: view.capacity.bytes_per_sec(),
            input_bytes: 0.0,
            price: 0.0,
            probability: 0.0,
        };
        law.pace();
        law
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn set_capacity(&mut self, capacity: Rate) {
        self.capacity = capacity.bytes_per_sec();
        self.pace();
    }

    fn on_arrival(&mut self, arrival: &Arrival, mut uniform: impl FnMut() -> f64) -> Verdict {
        self.input_bytes += f64::from(arrival.size);
        if !arrival.fits(self.limit) {
            Verdict::Drop
        } else if self.probability > 0.0 && uniform() < self.probability {
            if self.ecn && arrival.ecn_capable { Verdict::Mark } else { Verdict::Drop }
        } else {
            Verdict::Enqueue
        }
    }

    fn first_timer(&self) -> Option<Time> {
        Some(self.interval)
    }

    fn on_timer(&mut self, link: LinkView) -> Time {
        let input = self.input_bytes / self.mean_packet;
        let capacity = self.capacity * self.interval.as_secs_f64() / self.mean_packet;
        let queue = link.queue_bytes as f64 / self.mean_packet;
        let excess = self.alpha * (queue - self.target) + input - capacity;
        self.price = (self.price + self.gamma * excess).clamp(0.0, MOST_PRICE);
        // -expm1(-x) = 1 - exp(-x) without cancellation.
        self.probability = -libm::expm1(-self.price * self.log_phi);
        self.input_bytes = 0.0;
        link.now.saturating_add(self.interval)
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("price", self.price);
        report("probability", self.probability);
    }
}
