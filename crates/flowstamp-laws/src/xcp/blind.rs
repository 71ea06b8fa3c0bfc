//! XCP-b: an XCP router for links of unknown capacity. It controls by how fast its queue grows.
//!
//! Abrantes and Ricardo 2006, section 3. The fairness controller is XCP's own ([`super::shares`]), except that it
//! shuffles more. In every control interval of `d` seconds, the average RTT, the aggregate feedback in bytes/s is
//!
//! ```text
//!   F = -alpha dq / d - beta (q - kappa) / d             eqs. 6 and 9      the link is busy
//!   F = chi Qmax / d                                     eq. 7             it is under-used
//!   F = -alpha dq s / d - beta (q - kappa) s / d         eq. 13            q, kappa in packets, of mean size s
//!   S = gamma y                                          eq. 2             shuffled traffic
//! ```
//!
//! `q` is the persistent queue: the least queue in the control interval. `dq` is its growth since the interval
//! before. `kappa` is its length in equilibrium, above zero so that the queue's speed shows in both directions. A
//! busy link has `dq / d = y - C`, so eq. 6 is XCP's eq. 1. The link is under-used
//!
//! ```text
//!   where lambda < tau kappa,   lambda = w q + (1 - w) lambda,   tau = (1 - w)^n       eqs. 10 to 12
//!   or after n intervals in a row without a queue                                      eq. 9
//! ```
//!
//! with `n >= pi alpha / beta`, the time for which the loop's oscillation leaves the queue empty (section 3.1). With
//! `chi <= 1 / (5 - alpha - beta)`, the feedback of eq. 7 fills no more than `Qmax` before the queue shows it (figure
//! 4). This bound holds for a constant capacity and for senders with windows. For rates that react an RTT later, the
//! least queue of an interval shows too late (`flowstamp-fluid`'s `control::blind`).
//!
//! On a half-duplex medium (section 5) incoming data use the same air time as outgoing data, and their acks wait in
//! this queue. The router therefore counts and stamps incoming data like outgoing data.
//!
//! Valid for 1 kb/s to 400 Gb/s and RTTs of 1 us to `max_rtt`. The time to fill an under-used link grows with its
//! capacity over `Qmax / d`. It may be many intervals where the buffer is a small part of the bandwidth-delay product
//! (figure 5).
//!
//! Deviations (paper says / we do / because), in addition to those of [`super::router`] that concern the shares (1 to
//! 5, 7, 8):
//! 1. Eq. 6 has no upper bound / at most `chi Qmax / d` / for a queue that falls by much in one interval it would
//!    exceed eq. 7, and figure 4's bound would not hold.
//! 2. `s` is the mean size of queued packets / where none is queued, it is that of the packets that arrived in the
//!    last interval / there is no other size.
//! 3. Nothing on how the counter begins / it begins as if `n` intervals without a queue had passed / before the first
//!    packet the link was idle.
//! 4. `Qmax` is a given number / where it is not given, it is the link's buffer / the buffer must not overflow. A
//!    buffer in packets counts as that many full packets.
//! 5. `tau = (1 - w)^n`, 0.178 for `n = 6` / ours is a billionth larger / from a queue at `kappa`, `n` intervals
//!    without a queue lead exactly to this threshold, and not below it.
//! 6. The paper has a `beta` of 0.2263, Katabi 2002 of 0.226 / 0.2263 / `chi` follows from it.

use super::header::Encoding;
use super::shares::{Intervals, MAX_RTT, Shares, Shuffle, check_max_weight};
use crate::negotiation;
use crate::queue::Limit;
use crate::router::{Gains, LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterTraits, RouterView};
use crate::units::{Bytes, QueueLength, Time};
use crate::{Open, Refused, check_times, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the router detects that a link is under-used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detection {
    /// The weighted average of the queue is below `tau` times `kappa` (eqs. 10 to 12).
    #[default]
    Average,
    /// The queue was empty in `n` intervals in a row (eq. 9).
    Counter,
}

crate::params! {
    /// Constants of the control law.
    pub struct Params {
        /// Gain on the queue's rate of growth.
        pub alpha: f64 = 0.4, // Abrantes 2006, section 2.1
        /// Gain on the queue's distance from `kappa`.
        pub beta: f64 = 0.2263, // Abrantes 2006, section 2.1: deviation 6
        /// Share of the traffic that is shuffled every average RTT.
        pub gamma: f64 = 0.1, // Abrantes 2006, section 2.1
        /// How much of that share is shuffled while the aggregate feedback moves traffic too: all of it (`full`), or
        /// what the feedback leaves of it (`rest`), as in XCP.
        pub shuffle: Shuffle = Shuffle::Full, // Abrantes 2006, eq. 2
        /// Length of the queue at equilibrium, above 0, in packets (`3pkt`) or in bytes (`4kB`). The whole law then
        /// counts in that unit. Use twice as much for twice as many stations.
        pub kappa: QueueLength = QueueLength::Packets(3.0), // Abrantes 2006, section 4.2.1
        /// `Qmax`: the largest queue. Default: the link's buffer.
        pub q_max: Option<Bytes> = None,
        /// `chi`: the share of `Qmax` that an under-used link hands out in an interval. Default: 1 / (5 - alpha -
        /// beta), the largest value for which figure 4's bound holds.
        pub chi: Option<f64> = None,
        /// How the router detects under-use.
        pub detection: Detection = Detection::Average,
        /// `n`: intervals without a queue after which the link is under-used; at least pi alpha / beta.
        pub n: f64 = 6.0, // Abrantes 2006, section 3.1
        /// `tau`: the share of `kappa` below which the average queue means under-use. Default: (1 - weight)^n.
        pub tau: Option<f64> = None,
        /// The weight of the newest interval in the average queue. Default: 0.25.
        pub weight: Option<f64> = None,
        /// The first control interval, in which the router has no estimates and gives no feedback. Default: the mean
        /// propagation RTT of the flows through the link. If that is unknown, the interval lasts until packets carry an
        /// RTT.
        pub initial_interval: Option<Time> = None,
        /// The shortest control interval.
        pub min_interval: Time = Time::from_micros(10), // XCP's deviation 9
        /// Largest RTT; longer RTTs count as this one. Default: 4 s, or three times the longest propagation RTT of the
        /// flows through the link if that is longer.
        pub max_rtt: Option<Time> = None,
        /// Limit of a packet's weight per byte, as a multiple of the last interval's mean; at least 1. It applies to
        /// all averages and to the feedback. Default: none, as in the paper, so packets weigh what their senders say.
        /// On Linux 16.
        pub max_weight: Option<f64> = None,
    }
}

/// Abrantes 2006, eq. 10.
const WEIGHT: f64 = 0.25;

impl Params {
    fn max_rtt(&self) -> Time {
        self.max_rtt.unwrap_or(MAX_RTT)
    }

    fn intervals(&self) -> Intervals {
        Intervals {
            initial: self.initial_interval,
            least: self.min_interval,
            max_rtt: self.max_rtt(),
            max_weight: self.max_weight,
        }
    }

    /// `chi`.
    #[must_use]
    pub fn chi(&self) -> f64 {
        self.chi.unwrap_or_else(|| 1.0 / (5.0 - self.alpha - self.beta))
    }

    /// `tau`.
    #[must_use]
    pub fn tau(&self) -> f64 {
        self.tau.unwrap_or_else(|| libm::pow(1.0 - self.weight(), self.n) * (1.0 + 1e-9)) // eq. 12, deviation 5
    }

    /// `w`.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.weight.unwrap_or(WEIGHT)
    }
}

/// State of the law on one link.
#[derive(Clone, Debug)]
pub struct Router<E> {
    params: Params,
    shares: Shares<E>,
    limit: Limit,
    packet_bytes: f64,
    /// `q` at the last decision, in bytes and in packets.
    persistent_bytes: f64,
    persistent_packets: f64,
    /// Least queue seen since the last decision.
    min_bytes: u64,
    min_packets: u32,
    /// `lambda`, in the unit of `kappa`.
    average: f64,
    /// Intervals in a row without a queue.
    empty: f64,
    under_used: bool,
    /// Packets and bytes that arrived in this interval.
    packets: u64,
    bytes: u64,
    /// `s`, bytes.
    mean_packet: f64,
}

impl<E: Encoding> Router<E> {
    /// The residues: how much this interval may still give and take, in bytes/s.
    #[must_use]
    pub fn residues(&self) -> (f64, f64) {
        self.shares.residues()
    }

    /// Length of the running interval, seconds.
    #[must_use]
    pub fn interval_s(&self) -> f64 {
        self.shares.interval_s()
    }

    /// Whether the link counts as under-used.
    #[must_use]
    pub const fn under_used(&self) -> bool {
        self.under_used
    }

    /// `chi Qmax` in bytes: the most that an interval hands out.
    #[must_use]
    pub fn most_bytes(&self) -> f64 {
        self.params.chi() * self.q_max()
    }

    /// `Qmax`, bytes.
    fn q_max(&self) -> f64 {
        self.params.q_max.map_or_else(|| self.limit.bytes(self.packet_bytes), |q| q.get() as f64) // deviation 4
    }

    fn decide(&mut self, link: LinkView) {
        let p = &self.params;
        let closed = self.shares.close(&p.intervals());
        if link.queue_packets > 0 {
            self.mean_packet = link.queue_bytes as f64 / f64::from(link.queue_packets);
        } else if self.packets > 0 {
            self.mean_packet = self.bytes as f64 / self.packets as f64; // deviation 2
        }
        (self.packets, self.bytes) = (0, 0);
        let bytes = self.min_bytes.min(link.queue_bytes) as f64;
        let packets = f64::from(self.min_packets.min(link.queue_packets));
        let (queue, before, kappa, size) = match p.kappa {
            QueueLength::Packets(kappa) => (packets, self.persistent_packets, kappa, self.mean_packet),
            QueueLength::Bytes(kappa) => (bytes, self.persistent_bytes, kappa.get() as f64, 1.0),
        };
        let weight = p.weight();
        self.average = weight * queue + (1.0 - weight) * self.average; // eq. 10
        self.empty = if queue > 0.0 { 0.0 } else { (self.empty + 1.0).min(p.n) };
        self.under_used = match p.detection {
            Detection::Average => self.average < p.tau() * kappa, // eq. 11
            Detection::Counter => self.empty >= p.n,              // eq. 9
        };
        let most = p.chi() * self.q_max() / closed.delay; // eq. 7
        let by_speed = -(p.alpha * (queue - before) + p.beta * (queue - kappa)) * size / closed.delay; // eqs. 9, 13
        let aggregate = if self.under_used { most } else { by_speed.min(most) }; // deviation 1
        (self.persistent_bytes, self.persistent_packets) = (bytes, packets);
        (self.min_bytes, self.min_packets) = (link.queue_bytes, link.queue_packets);
        self.shares.hand_out(closed, aggregate, p.gamma, p.shuffle);
    }
}

impl<E: Encoding> RouterLaw for Router<E> {
    type Params = Params;

    fn traits(p: &Params) -> RouterTraits {
        RouterTraits {
            first_timers: [Some(p.intervals().first()), None],
            needs_capacity: false,
            gains: Some(Gains { alpha: p.alpha, beta: p.beta, shuffle: p.gamma }),
            over_medium: true, // section 5
            begins_with: &["initial_interval"],
            ..RouterTraits::DEFAULT
        }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("alpha", p.alpha, 0.0, 2.0)?;
        within("beta", p.beta, 1e-6, 2.0)?;
        within("gamma", p.gamma, 0.0, 1.0)?;
        if !p.kappa.is_positive() {
            let message = "must be above 0: a queue that rests at 0 shows no speed when it shrinks";
            return Err(("kappa", format!("is {}; it {message}", p.kappa)));
        }
        if p.q_max == Some(Bytes::new(0)) {
            return Err(("q_max", "is 0B; it must be the size of the buffer, such as 64kB".to_owned()));
        }
        if let Some(chi) = p.chi {
            within("chi", chi, 1e-6, 1.0)?;
        }
        within("n", p.n, 1.0, 1000.0)?;
        if let (Detection::Counter, Some((name, value))) =
            (p.detection, p.tau.map(|v| ("tau", v)).or(p.weight.map(|v| ("weight", v))))
        {
            return Err((name, format!("is {value}; detection = \"counter\" goes by n alone, leave it out")));
        }
        if let Some(tau) = p.tau {
            within("tau", tau, 1e-9, 1.0)?;
        }
        if let Some(weight) = p.weight {
            within("weight", weight, 1e-6, 0.999)?;
        }
        check_max_weight(p.max_weight)?;
        check_times([
            ("initial_interval", p.initial_interval),
            ("min_interval", Some(p.min_interval)),
            ("max_rtt", p.max_rtt),
        ])
    }

    fn open(params: &mut Params) -> Open<'_> {
        super::open(&mut params.max_rtt, &mut params.initial_interval)
    }

    fn new(params: &Params, link: &RouterView) -> Self {
        let packet = f64::from(link.packet_bytes);
        Self {
            params: *params,
            shares: Shares::new(&params.intervals()),
            limit: link.limit,
            packet_bytes: packet,
            persistent_bytes: 0.0,
            persistent_packets: 0.0,
            min_bytes: 0,
            min_packets: 0,
            average: 0.0,
            empty: params.n, // deviation 3
            under_used: true,
            packets: 0,
            bytes: 0,
            mean_packet: packet,
        }
    }

    /// Ignores changes of the capacity: the law controls by its queue alone.
    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        match change {
            LinkChange::Params(params) => self.params = *params,
            LinkChange::Capacity(_) | LinkChange::Part { .. } | LinkChange::Acked(_) => {}
            LinkChange::Buffer(limit) => self.limit = limit,
        }
    }

    #[inline]
    fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>) {
        self.min_bytes = self.min_bytes.min(link.queue_bytes);
        self.min_packets = self.min_packets.min(link.queue_packets);
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        self.shares.count(packet, self.params.max_rtt());
    }

    #[inline]
    fn on_departure(&mut self, _: LinkView, mut packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        self.shares.stamp(&mut packet);
        *packet.bits = negotiation::passed(*packet.bits); // Katabi 2002, section 8.2
    }

    fn on_timer(&mut self, _: usize, link: LinkView) -> Time {
        self.decide(link);
        link.now.saturating_add(Time::from_secs_f64(self.shares.interval_s()))
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        self.shares.variables(self.persistent_bytes, report);
        report("average_queue", self.average);
        report("under_used", f64::from(u8::from(self.under_used)));
    }
}
