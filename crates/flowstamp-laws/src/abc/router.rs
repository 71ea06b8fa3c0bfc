//! The ABC router: it marks the share of accelerates with which the senders' next round trip has the target rate.
//!
//! Goyal et al. 2020, section 3.1.2, when the transmission of a packet starts:
//!
//! ```text
//!   tr    = eta mu - (mu / delta) max(0, x - d_t)               eq. 1; mu capacity, x queueing delay
//!   f     = min(1, max(0, tr / (2 cr)))                         eq. 2; cr dequeue rate
//!   token = min(token + f, token_limit)                         alg. 1
//!   an accelerate stays one if token > 1, which takes a token; else it becomes a brake
//! ```
//!
//! A brake never becomes an accelerate, so that a path has the fewest accelerates of its routers. The *dequeue* rate
//! counts because each ack follows a departure: one round trip after a share `f` the arrivals are `2 f cr`. XCP and RCP
//! compare the capacity with arrivals.
//!
//! Stable for `delta > 2/3 RTT` (theorem 3.1). Valid for 1 kb/s to 400 Gb/s and RTTs from 1 us to 20 s.
//!
//! Deviations (paper says / we do / because):
//! 1. Times are for an RTT of 100 ms / the defaults are the same shares of the flows' mean RTT / they then suit any path. The
//!    evaluation has delta 133 ms and `d_t` 50 ms. The authors' emulation measures rates over 20 ms.
//! 2. The rate `cr` is that of the last `T` / it is a mean with weights that decay within `T / 2` / a window needs an entry per
//!    packet. The mean age is the same.
//! 3. Nothing on other traffic in the same queue / it counts in `cr` when it arrives / the link carries both, but the law
//!    sees only departures of its own packets.
//! 4. Nothing on the token bucket's size and start / it holds 5 tokens and starts full / as in the emulation.
//! 5. `x` is measured / it is the queue over the capacity / the law sees the queue, and the product `mu x` of eq. 1
//!    needs no division.
//! 6. Eq. 1 begins with `eta mu` / with `variant = "emulation"` it begins with `eta cr`, and an idle opportunity adds
//!    0.49 tokens / the authors' emulation does so.
//! 7. The paper says nothing on a Wi-Fi link before its first block ack. Until then all packets stay accelerates, because
//!    no rate is known that could be exceeded.

use super::wifi::{self, Estimator};
use super::{Header, Mark, RTT};
use crate::router::{
    Batches, LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterTraits, RouterView,
};
use crate::units::{Ratio, Time};
use crate::{Open, Refused, check_times, within};

/// The target rate's first term (deviation 6).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// `eta mu`, as in the paper.
    #[default]
    Paper,
    /// `eta cr`, as in the authors' emulation.
    Emulation,
}

/// Where the router's capacity comes from.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Capacity {
    /// The router is told the link's capacity.
    #[default]
    Known,
    /// The router estimates it from A-MPDUs and block acks ([`wifi`]), on an interface of a radio cell.
    Wifi,
}

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `eta`: target utilisation, above 0.
        pub eta: Ratio = Ratio::new(0.98), // the evaluation
        /// `delta`: time in which the queue's excess drains, above 2/3 of the RTT. Default: 1.33 times `rtt`.
        pub delta: Option<Time> = None, // deviation 1
        /// `d_t`: queueing delay that the router tolerates. Default: half of `rtt`.
        pub d_t: Option<Time> = None, // deviation 1
        /// `T`: time over which the router measures the dequeue rate. Default: a fifth of `rtt`.
        pub rate_window: Option<Time> = None, // deviation 1
        /// RTT from which the defaults of `delta`, `d_t` and `rate_window` follow. Default: the mean RTT of the link's flows.
        pub rtt: Option<Time> = None, // deviation 1
        /// Size of the token bucket in packets, 2 or more.
        pub token_limit: f64 = 5.0, // deviation 4
        /// The target rate's first term: that of the paper, or of the authors' emulation.
        pub variant: Variant = Variant::Paper,
        /// Where the capacity comes from: `"known"`, or `"wifi"` on an interface of a radio cell, which estimates it
        /// from A-MPDUs and block acks.
        pub capacity: Capacity = Capacity::Known,
        /// Time over which `capacity = "wifi"` averages its estimates.
        pub wifi_window: Time = wifi::WINDOW, // section 5.1
    }
}

impl Params {
    /// A time that is unset, as a share of the RTT.
    fn time(&self, set: Option<Time>, paper_ms: f64) -> Time {
        let rtt = self.rtt.unwrap_or(RTT).as_secs_f64();
        set.unwrap_or_else(|| Time::from_secs_f64(rtt * paper_ms / 100.0))
    }

    /// `delta` (evaluation: 133 ms at an RTT of 100 ms).
    #[must_use]
    pub fn delta(&self) -> Time {
        self.time(self.delta, 133.0)
    }

    /// `d_t` (evaluation: 50 ms).
    #[must_use]
    pub fn d_t(&self) -> Time {
        self.time(self.d_t, 50.0)
    }

    /// `T` (the emulation: 20 ms).
    #[must_use]
    pub fn rate_window(&self) -> Time {
        self.time(self.rate_window, 20.0)
    }
}

/// Tokens that an idle delivery opportunity adds in the emulation, half of `eta`.
const IDLE_TOKENS: f64 = 0.49;

/// `tr` in bytes/s (eq. 1): `base` is `eta mu` or `eta cr`, `queue` in bytes, `capacity` in bytes/s, times in seconds.
#[inline]
#[must_use]
pub fn target_rate(base: f64, queue: f64, capacity: f64, d_t: f64, delta: f64) -> f64 {
    base - (queue - capacity * d_t).max(0.0) / delta
}

/// `f` (eq. 2), 0 to 1. On a link that carried nothing there is no rate that could be exceeded.
#[inline]
#[must_use]
pub fn accelerates(target: f64, dequeue: f64) -> f64 {
    if target <= 0.0 {
        0.0
    } else if dequeue <= 0.0 {
        1.0
    } else {
        (target / (2.0 * dequeue)).min(1.0)
    }
}

/// `cr` in bytes/s after `carried` bytes left in `elapsed` seconds, above 0 (deviation 2). `mean_age` is half of `T` in seconds,
/// and `dequeue` is the rate before.
#[inline]
#[must_use]
pub fn dequeue_rate(dequeue: f64, carried: f64, elapsed: f64, mean_age: f64) -> f64 {
    let weight = (elapsed / mean_age).min(1.0);
    dequeue + weight * (carried / elapsed - dequeue)
}

/// State of the law on one link. Rates are in bytes/s, times in seconds.
#[derive(Clone, Debug)]
pub struct Router {
    variant: Variant,
    eta: f64,
    delta: f64,
    d_t: f64,
    /// Half of `T`: the mean age of the bytes that count in `dequeue`.
    mean_age: f64,
    token_limit: f64,
    packet: f64,
    /// `mu`.
    capacity: f64,
    /// `cr`.
    dequeue: f64,
    target: f64,
    share: f64,
    tokens: f64,
    /// When the last own packet departed, and bytes that the link has carried since, with this packet.
    last: Time,
    carried: f64,
    /// The last own packet left the queue empty.
    emptied: bool,
    /// Estimates `mu`, with `capacity = "wifi"`.
    wifi: Option<Box<Estimator>>,
}

impl Router {
    /// `f`: the share of accelerates, 0 to 1.
    #[must_use]
    pub const fn share(&self) -> f64 {
        self.share
    }

    /// Tokens in the bucket, 0 to its size.
    #[must_use]
    pub const fn tokens(&self) -> f64 {
        self.tokens
    }

    /// `cr`: the dequeue rate, bytes/s.
    #[must_use]
    pub const fn dequeue_rate(&self) -> f64 {
        self.dequeue
    }

    /// `tr`: the target rate, bytes/s.
    #[must_use]
    pub const fn target(&self) -> f64 {
        self.target
    }

    /// `mu` in bytes/s. On Wi-Fi it is the estimate, at most twice the dequeue rate. [`wifi`] says why.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.wifi.as_ref().map_or(self.capacity, |estimator| {
            estimator.capacity().unwrap_or(f64::INFINITY).min(2.0 * self.dequeue)
        })
    }

    fn set(&mut self, p: &Params) {
        if let Some(estimator) = &mut self.wifi {
            **estimator = estimator.with_window(p.wifi_window);
        }
        (self.variant, self.eta, self.token_limit) = (p.variant, p.eta.get(), p.token_limit);
        (self.delta, self.d_t) = (p.delta().as_secs_f64(), p.d_t().as_secs_f64());
        self.mean_age = p.rate_window().as_secs_f64() / 2.0;
        self.tokens = self.tokens.min(self.token_limit);
    }

    /// Brings `cr` up to the start of a transmission of `size` bytes (deviation 2).
    fn measure(&mut self, link: LinkView, size: f64) {
        let elapsed = link.now.saturating_sub(self.last).as_secs_f64();
        if elapsed > 0.0 {
            self.dequeue = dequeue_rate(self.dequeue, self.carried, elapsed, self.mean_age);
            if self.variant == Variant::Emulation && self.emptied {
                let idle = (self.capacity * elapsed - self.carried).max(0.0) / self.packet;
                self.tokens = (self.tokens + IDLE_TOKENS * idle).min(self.token_limit); // deviation 6
            }
            (self.last, self.carried) = (link.now, 0.0);
        }
        self.carried += size;
        self.emptied = link.queue_bytes == 0;
    }
}

impl RouterLaw for Router {
    type Params = Params;

    fn traits(p: &Params) -> RouterTraits {
        let wifi = p.capacity == Capacity::Wifi;
        RouterTraits {
            needs_capacity: !wifi,
            batches: if wifi { Batches::Needed } else { Batches::Suffice("capacity = \"wifi\"") },
            begins_with: &["capacity"],
            ..RouterTraits::DEFAULT
        }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("eta", p.eta.get(), 0.01, 1.0)?;
        check_times([("delta", p.delta), ("d_t", p.d_t), ("rate_window", p.rate_window), ("rtt", p.rtt)])?;
        within("token_limit", p.token_limit, 2.0, 1e6)?;
        if p.capacity == Capacity::Wifi && p.variant == Variant::Emulation {
            let message = "is \"emulation\", which needs the capacity; leave it out with capacity = \"wifi\"";
            return Err(("variant", message.to_owned()));
        }
        if p.capacity == Capacity::Known && p.wifi_window != wifi::WINDOW {
            let message = format!("is {}; only capacity = \"wifi\" uses it: set that, too", p.wifi_window);
            return Err(("wifi_window", message));
        }
        check_times([("wifi_window", Some(p.wifi_window))])
    }

    fn open(p: &mut Params) -> Open<'_> {
        Open { time_constant: Some(("rtt", &mut p.rtt)), ..Open::default() }
    }

    fn new(p: &Params, link: &RouterView) -> Self {
        let mut router = Self {
            variant: p.variant,
            eta: 0.0,
            delta: 0.0,
            d_t: 0.0,
            mean_age: 0.0,
            token_limit: 0.0,
            packet: f64::from(link.packet_bytes.max(1)),
            capacity: if p.capacity == Capacity::Known { link.known_capacity().bytes_per_sec() } else { 0.0 },
            dequeue: 0.0,
            target: 0.0,
            share: 1.0,
            tokens: p.token_limit, // deviation 4
            last: Time::ZERO,
            carried: 0.0,
            emptied: false,
            wifi: (p.capacity == Capacity::Wifi).then(|| Box::new(Estimator::new(p.wifi_window))),
        };
        router.set(p);
        router
    }

    #[inline]
    fn on_arrival(&mut self, _: LinkView, packet: PacketIn<'_>) {
        if packet.stamp.is_none() {
            self.carried += f64::from(packet.size); // deviation 3
        }
    }

    #[inline]
    fn on_departure(&mut self, link: LinkView, packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        self.measure(link, f64::from(packet.size));
        let capacity = self.capacity();
        let base = self.eta * if self.variant == Variant::Paper { capacity } else { self.dequeue };
        self.target = target_rate(base, link.queue_bytes as f64, capacity, self.d_t, self.delta); // eq. 1
        self.share = accelerates(self.target, self.dequeue); // eq. 2
        if self.wifi.as_ref().is_some_and(|wifi| wifi.capacity().is_none() || self.dequeue <= 0.0) {
            self.share = 1.0; // deviation 7
        }
        self.tokens = (self.tokens + self.share).min(self.token_limit); // alg. 1
        if Mark::read(*packet.bits) != Mark::Accelerate {
            return;
        }
        if self.tokens > 1.0 {
            self.tokens -= 1.0;
        } else {
            *packet.bits = Mark::Brake.bits();
            *packet.stamp = Header::BRAKED.into();
        }
    }

    fn on_timer(&mut self, _: usize, _: LinkView) -> Time {
        Time::MAX
    }

    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        match change {
            LinkChange::Params(params) => self.set(params),
            LinkChange::Capacity(capacity) => self.capacity = capacity.bytes_per_sec(),
            LinkChange::Acked(batch) => {
                if let Some(estimator) = &mut self.wifi {
                    estimator.on_batch(batch);
                }
            }
            LinkChange::Part { .. } | LinkChange::Buffer(_) => {}
        }
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("target_rate_bps", 8.0 * self.target);
        report("dequeue_rate_bps", 8.0 * self.dequeue);
        report("accelerate_share", self.share);
        report("tokens", self.tokens);
        if let Some(estimator) = &self.wifi {
            report("wifi_capacity_bps", 8.0 * estimator.capacity().unwrap_or(0.0));
        }
    }
}
