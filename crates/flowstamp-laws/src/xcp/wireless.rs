//! XCPw: an XCP router that computes its feedback anew for each packet, for links whose rate varies within a round trip.
//!
//! Goyal et al. 2020 (the paper of ABC) compare ABC with this variant of XCP. XCP's router (Katabi 2002, [`super::router`])
//! measures for an average RTT `d`, and hands out the result in the next. Here each departing packet gets its part of
//! what the last `d` has shown:
//!
//! ```text
//!   F    = alpha (C - y) - beta Q / d                      eq. 1 of Katabi 2002, in bytes/s
//!   h    = max(0, gamma y - |F|)                           eq. 2, shuffled traffic
//!   p    = (h + max( F, 0)) X / (sum X of the last d)      eqs. 4 and 6
//!   n    = (h + max(-F, 0)) s / (sum s of the last d)      eqs. 7 and 9
//!   feedback = min(feedback of earlier routers, p - n)     eq. 3, in throughput
//! ```
//!
//! `C` and `y` are the mean capacity and the mean input rate of the last `d`, `Q` the least queue of the last propagation delay, and `d` the mean RTT. `X`
//! is the flow's inter-packet time and `s` the packet's size. The sums are over departures: with the ack clock, the
//! packets that left in the last `d` are as many as those that get feedback in the next.
//!
//! The *emulation* below is the authors' queue for Mahimahi (`xcp_packet_queue.cc`). With `variant = "emulation"` each
//! packet gets an equal part, whatever its flow, and nothing is shuffled:
//!
//! ```text
//!   change of the window = (alpha d (C - y) - beta Q) s / (sum s of the last d)
//! ```
//!
//! One flow then behaves alike in both. Several flows keep the ratio of their rates in the emulation.
//!
//! Valid for 1 kb/s to 400 Gb/s and RTTs of 1 us to `max_rtt`.
//!
//! Deviations (source says / we do / because), in addition to 2, 11 and 12 of [`super::router`]:
//! 1. The emulation counts packets over exactly `d` / `y` and the sums have weights that decay within `d / 2` / the mean
//!    age is the same, and a window would need an entry for each packet.
//! 2. The emulation counts delivery opportunities over `d` for `C` / it is the mean of the rates that the link told, with the
//!    same weights as `y` / links here tell their rate. More packets leave while the rate is high: with the rate of the moment,
//!    increases would find more packets than decreases, and the queue would grow.
//! 3. The emulation takes 100 ms and the queueing delay for an RTT, and 100 ms for the propagation delay / `d` is the mean
//!    RTT that headers state, and the propagation delay is `d` without the queue / it then suits any path.
//! 4. The emulation looks at its queue when a packet leaves / at arrivals too, in quarters of the propagation delay / the
//!    least of four numbers needs no entry for each packet.
//! 5. The emulation has no limit on what packets get together / with `variant = "paper"` a packet gets increases only
//!    while those of the last `d` are below `h + max(F, 0)`, and likewise for decreases / appendix A's residues do so in
//!    each interval. After an outage the sums are small, and the first packets would together get several times `F`.
//! 6. The first `d` gives no feedback, as in XCP / the arrivals so far do not measure `y`. The emulation begins at once.
//! 7. Its gains are arguments without a value / they are Katabi's / the paper's text, which may have others, could not
//!    be checked.

use super::header::{Encoding, Window};
use super::router::aggregate_feedback;
use super::shares::{MAX_RTT, Shares, Shuffle, pools};
use crate::negotiation;
use crate::router::{Gains, LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterTraits, RouterView};
use crate::units::Time;
use crate::{Open, Refused, check_times, within};

/// How the feedback is divided among packets.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// XCP's fairness controller and residues.
    #[default]
    Paper,
    /// An equal part for each packet, as in the authors' emulation.
    Emulation,
}

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Gain on spare bandwidth.
        pub alpha: f64 = 0.4, // Katabi 2002, section 3.5.1: deviation 7
        /// Gain on the persistent queue.
        pub beta: f64 = 0.226, // Katabi 2002, section 3.5.1: deviation 7
        /// Share of the traffic that is shuffled every average RTT. The emulation shuffles nothing.
        pub gamma: f64 = 0.1, // Katabi 2002, section 3.5.2
        /// How feedback is divided: by XCP's fairness controller, or in equal parts as in the authors' emulation.
        pub variant: Variant = Variant::Paper,
        /// The mean RTT until packets carry one; the router gives no feedback for that long. Default: the mean
        /// propagation RTT of the flows through the link, or that of the first packet.
        pub initial_interval: Option<Time> = None,
        /// The shortest mean RTT.
        pub min_interval: Time = Time::from_micros(10), // XCP's deviation 9
        /// Largest RTT; longer RTTs count as this one. Default: 4 s, or three times the longest propagation RTT of the
        /// flows through the link if that is longer.
        pub max_rtt: Option<Time> = None,
    }
}

/// Parts of a propagation delay for which the least queue is kept (deviation 4).
const PARTS: usize = 4;

/// The least queue of the last propagation delay, in bytes.
#[derive(Clone, Copy, Debug)]
struct Least {
    /// The least queue of each part; the newest first.
    parts: [f64; PARTS],
    /// When the newest part began.
    began: Time,
}

impl Least {
    /// Counts a queue that was seen at `now`, and returns the least of the last `delay` seconds.
    fn see(&mut self, now: Time, queue: f64, delay: f64) -> f64 {
        let part = Time::from_secs_f64(delay / PARTS as f64).max(Time::from_ps(1));
        let parts = now.saturating_sub(self.began).as_ps() / part.as_ps();
        if parts > 0 {
            let shift = usize::try_from(parts).unwrap_or(PARTS).min(PARTS);
            self.parts.rotate_right(shift % PARTS);
            self.parts[..shift].fill(queue);
            self.began = now;
        }
        self.parts[0] = self.parts[0].min(queue);
        self.parts.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Means with weights that decay: each is a sum over the last `d`, divided by `d`.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    /// `y`, bytes/s.
    input: f64,
    /// Bytes of departures that get feedback, bytes/s.
    bytes: f64,
    /// Their `X`, and `X rtt` in seconds.
    x: f64,
    x_rtt: f64,
    /// Increases and decreases, bytes/s per second.
    given: f64,
    taken: f64,
}

impl Rates {
    fn decay(&mut self, factor: f64) {
        for rate in
            [&mut self.input, &mut self.bytes, &mut self.x, &mut self.x_rtt, &mut self.given, &mut self.taken]
        {
            *rate *= factor;
        }
    }
}

/// State of the law on one link. Rates are in bytes/s, times in seconds.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    /// The capacity that the link told last.
    told: f64,
    /// `C`.
    capacity: f64,
    rates: Rates,
    /// Half of what arrived at this instant. It enters `y` later, so that `y` is right on average at an arrival, too.
    arrived: f64,
    /// `d`; zero while unknown.
    avg_rtt: f64,
    /// When the sums were last decayed.
    last: Time,
    /// When the first packet that gets feedback left.
    first: Option<Time>,
    least: Least,
    /// `Q`, bytes.
    persistent_queue: f64,
    /// `F` of the last packet.
    aggregate: f64,
}

impl Router {
    /// `F` of the last packet, bytes/s.
    #[must_use]
    pub const fn aggregate(&self) -> f64 {
        self.aggregate
    }

    /// `y`, bytes/s.
    #[must_use]
    pub const fn input_rate(&self) -> f64 {
        self.rates.input
    }

    /// Increases and decreases of the last `d`, bytes/s.
    #[must_use]
    pub fn handed_out(&self) -> [f64; 2] {
        [self.rates.given, self.rates.taken].map(|rate| rate * self.avg_rtt)
    }

    /// Brings sums and the persistent queue up to now.
    fn advance(&mut self, link: LinkView) {
        let elapsed = link.now.saturating_sub(self.last).as_secs_f64();
        if elapsed > 0.0 && self.avg_rtt > 0.0 {
            self.rates.input += self.arrived;
            self.arrived = 0.0;
            let kept = libm::exp(-elapsed / self.mean_age()); // deviation 1
            self.rates.decay(kept);
            self.capacity = self.told + (self.capacity - self.told) * kept; // deviation 2
        }
        self.last = link.now;
        let queue = link.queue_bytes as f64;
        let wait = if self.capacity > 0.0 { queue / self.capacity } else { 0.0 };
        let propagation = (self.avg_rtt - wait).max(self.params.min_interval.as_secs_f64()); // deviation 3
        self.persistent_queue = self.least.see(link.now, queue, propagation);
    }

    /// The time within which weights decay, half of `d`.
    fn mean_age(&self) -> f64 {
        (self.avg_rtt / 2.0).max(self.params.min_interval.as_secs_f64() / 2.0)
    }

    /// Counts a packet with the inter-packet time `x` that leaves, and computes `d`. Returns `sum X` and `sum s`.
    fn count(&mut self, x: f64, rtt_s: f64, size: f64) -> [f64; 2] {
        let [least, most] =
            [self.params.min_interval, self.params.max_rtt.unwrap_or(MAX_RTT)].map(Time::as_secs_f64);
        let rtt_s = rtt_s.min(most);
        let d = if self.avg_rtt > 0.0 { self.avg_rtt } else { rtt_s.max(least) };
        let sum_x = self.rates.x * d + x;
        let sum_bytes = self.rates.bytes * d + size;
        if sum_x > 0.0 {
            self.avg_rtt = ((self.rates.x_rtt * d + x * rtt_s) / sum_x).min(most).max(least);
        }
        let age = self.mean_age();
        self.rates.bytes += size / age;
        self.rates.x += x / age;
        self.rates.x_rtt += x * rtt_s / age;
        [sum_x, sum_bytes]
    }

    /// `p` and `n` of a packet, in bytes/s. `sums` are those of its `X` and its bytes.
    fn portions(&self, [x, rtt_s, size]: [f64; 3], sums: [f64; 2]) -> [f64; 2] {
        if self.params.variant == Variant::Emulation {
            let change = self.aggregate * self.avg_rtt / rtt_s * size / sums[1];
            return [change.max(0.0), (-change).max(0.0)];
        }
        let [give, take] = self.pools();
        let [given, taken] = self.handed_out();
        let [give_rest, take_rest] = [give - given, take - taken].map(|rest| rest.max(0.0)); // deviation 5
        [(give * x / sums[0]).min(give_rest), (take * size / sums[1]).min(take_rest)]
    }

    /// The positive and the negative pool of an average RTT, bytes/s.
    fn pools(&self) -> [f64; 2] {
        pools(self.aggregate, self.params.gamma, self.rates.input, Shuffle::Rest)
    }
}

impl RouterLaw for Router {
    type Params = Params;

    fn traits(p: &Params) -> RouterTraits {
        let shuffle = if p.variant == Variant::Paper { p.gamma } else { 0.0 };
        RouterTraits {
            gains: Some(Gains { alpha: p.alpha, beta: p.beta, shuffle }),
            over_medium: true, // XCP's deviation 11
            begins_with: &["initial_interval"],
            ..RouterTraits::DEFAULT
        }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("alpha", p.alpha, 0.0, 10.0)?;
        within("beta", p.beta, 0.0, 10.0)?;
        within("gamma", p.gamma, 0.0, 1.0)?;
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
        Self {
            params: *params,
            told: link.known_capacity().bytes_per_sec(),
            capacity: link.known_capacity().bytes_per_sec(),
            rates: Rates::default(),
            arrived: 0.0,
            avg_rtt: params.initial_interval.unwrap_or(Time::ZERO).as_secs_f64(),
            last: Time::ZERO,
            first: None,
            least: Least { parts: [0.0; PARTS], began: Time::ZERO },
            persistent_queue: 0.0,
            aggregate: 0.0,
        }
    }

    #[inline]
    fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>) {
        self.advance(link);
        if self.avg_rtt > 0.0 {
            let half = f64::from(packet.size) / self.mean_age() / 2.0;
            self.rates.input += half;
            self.arrived += half;
        }
    }

    #[inline]
    fn on_departure(&mut self, link: LinkView, packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        *packet.bits = negotiation::passed(*packet.bits); // Katabi 2002, section 8.2
        self.advance(link);
        let stamp = packet.stamp;
        let size = Shares::<Window>::stands_for(stamp, f64::from(packet.size), *packet.bits);
        let view = Window::read(stamp, size);
        if view.inter_packet_s <= 0.0 {
            Window::refuse_increase(stamp); // XCP's deviation 2
            return;
        }
        let sums = self.count(view.inter_packet_s, view.rtt_s, size);
        let spare = self.capacity - self.rates.input;
        let p = &self.params;
        self.aggregate = aggregate_feedback(p.alpha, p.beta, spare, self.persistent_queue, self.avg_rtt);
        let first = *self.first.get_or_insert(link.now);
        if link.now.saturating_sub(first).as_secs_f64() < self.avg_rtt {
            Window::refuse_increase(stamp); // deviation 6
            return;
        }
        let [give, take] = self.portions([view.inter_packet_s, view.rtt_s, size], sums);
        let feedback = give - take;
        let (mut given, mut taken) = (give, take);
        if view.feedback >= feedback {
            Window::write_feedback(stamp, feedback, view.rtt_s);
        } else {
            (given, taken) = Window::booked(give, take, view.feedback, take);
        }
        let age = self.mean_age();
        self.rates.given += given / age;
        self.rates.taken += taken / age;
    }

    fn on_timer(&mut self, _: usize, _: LinkView) -> Time {
        Time::MAX
    }

    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        match change {
            LinkChange::Params(params) => self.params = *params,
            LinkChange::Capacity(capacity) => self.told = capacity.bytes_per_sec(),
            LinkChange::Part { .. } | LinkChange::Buffer(_) | LinkChange::Acked(_) => {}
        }
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("avg_rtt_s", self.avg_rtt);
        report("input_rate_bps", 8.0 * self.rates.input);
        report("aggregate_feedback_bps", 8.0 * self.aggregate);
        report("persistent_queue_bytes", self.persistent_queue);
    }
}
