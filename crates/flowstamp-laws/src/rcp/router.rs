//! The RCP router: it gives all flows one rate, adapted to keep the link full and its queue empty.
//!
//! Dukkipati 2007, chapter 3 and appendix F. Every interval `T = min(d, 10 ms)`:
//!
//! ```text
//!              T/d (alpha (eta C - y) - beta q / d)
//!   R = R (1 + ------------------------------------)                    eq. 3.3, app. F line 8
//!                             eta C
//!
//!   d = theta d_T + (1 - theta) d                                       section 3.5, app. F lines 2 to 7
//!   theta = T/d if d_T >= d, else (R/C) (d_T/d) (T/d)
//! ```
//!
//! with `R` between `MIN_RATE = 0.01 MTU / d` and `eta C`. The router stamps every packet with the minimum of `R` and
//! the rate in its header. This costs at most three additions, two comparisons and one write per packet.
//!
//! `y` is the input rate, including packets that are then dropped, and `q` the queue. `d_T` is the mean of the RTTs
//! in an interval's packets, and `d` its moving average.
//!
//! Variants:
//! - [`Capacity::Unknown`]: equation 6.2, for links that do not know or cannot trust their capacity.
//! - [`Params::fairness`]: alpha-fair sharing (Kelly, Raina and Voice 2008): the routers of a path add up `R^-alpha`,
//!   and the flow sends at the sum to the power of `-1/alpha`. As alpha grows without bound, only the slowest router
//!   counts, which is RCP. alpha = 1 is proportional fairness.
//! - Weights (sections 1.3 and 3.6): a packet that states the weight `w` leaves with `w R`, so that `C/R` estimates the
//!   sum of the weights. [`Params::max_weight`] bounds what senders may state.
//! - [`Params::long_share`]: classes by age (section 3.6) without per-flow state. With two classes rates are 1 : theta;
//!   with [`Params::levels`] classes they are `1 : theta : theta^2 : ...`, and R may grow until the oldest class alone
//!   can fill the link.
//! - [`Params::rtt_gain`]: the estimator that section 3.5's replaced, `d = g RTT + (1 - g) d` for each packet. Section
//!   5.3 finds it unstable where RTTs differ.
//! - [`Params::rtt_share`]: only this share of packets enters the average RTT (section 3.7, footnote 2). Multiples of
//!   the golden ratio, modulo 1, choose them, which no order of the flows' packets can follow.
//!
//! The router averages the RTTs that packets state, and lines 3 to 6 follow a higher RTT at once and a lower one
//! slowly. A few small packets that state 19 s therefore hold `d` there, and so keep `R` from changing.
//! [`Params::max_rtt_factor`], `c`, bounds this effect and keeps the lines:
//!
//! ```text
//!   d_T = sum s min(RTT, c m) / sum s        a packet weighs by its bytes
//!   d   = min(d, c m)
//!   m   = mean of min(RTT, c m) by bytes over 16 d, by weights that decay
//! ```
//!
//! Suppose lying packets have at most a share `b < 1/c` of the bytes behind `m`, and all others state at most `r`.
//! Then `m <= (1 - b) r / (1 - c b)` and `d <= c m`, whatever the liars state.
//!
//! Valid for 1 kb/s to 400 Gb/s and RTTs of 1 us to 20 s.
//!
//! Deviations (thesis says / we do / because):
//! 1. `R(t)` has no first value / it is the share `initial_rate` of the capacity: 0.05 C, as in figure 3.9 and the
//!    author's ns-2 model / a single flow reaches 0.9 C after 13 RTTs, and up to twenty flows that start at once do
//!    not exceed the link. Section 3.4 finds no influence on completion times.
//! 2. The RTT field of a packet without an RTT is all ones / it is zero / times here are real numbers.
//! 3. Line 8 may give a rate below zero when the queue is long / it is held at `MIN_RATE`, as line 9 says, before
//!    anything is divided by it.
//! 4. Times are in milliseconds / in seconds, so that RTTs below a millisecond keep their meaning.
//! 5. `avg_rtt` has no first value (200 ms in the author's ns-2 model) / it is `initial_rtt`, the path's where the
//!    scenario knows it. Else `d` is unknown: intervals last `max_interval` and R stays until an interval brings
//!    RTTs, whose mean is the first `d` / a first `d` of 200 ms makes R grow as slowly on a path of 30 us as on one
//!    of 200 ms, and it decays slowly.
//! 6. Section 6.3.3's router has no capacity, yet lines 6, 9 and 10 use it, and it has no first rate / where the
//!    capacity is unknown, line 6 uses `y` for `C`, R is at most 400 Gb/s, and R starts with one packet per `d` (per
//!    `max_interval` while `d` is unknown) / `R/C` in line 6 is the inverse of the number of flows, and so is `R/y`.

use super::header::{Header, MOST_WEIGHT, weight_of};
use crate::router::{Gains, LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterTraits, RouterView};
use crate::sender::AS_MUCH_AS_THERE_IS;
use crate::units::{Bytes, Rate, Time};
use crate::{LongestRtt, Open, Refused, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::params! {
    /// Constants of the control law.
    pub struct Params {
        /// Gain on spare capacity.
        pub alpha: f64 = 0.4, // section 6.3; app. F: 0.4 to 0.6
        /// Gain on the queue.
        pub beta: f64 = 0.5, // section 6.3; app. F: 0.2 to 0.6
        /// Target utilisation, above 0 and at most 1.
        pub eta: f64 = 1.0, // chapter 4
        /// The longest control interval (MAX_RATE_ESTIMATION_INTERVAL).
        pub max_interval: Time = Time::from_millis(10), // app. F line 13
        /// RTT from which on the router ignores the RTTs of packets (MAX_ALLOWABLE_RTT). Default: 20 s, or three times
        /// the longest propagation RTT of the flows through the link if that is longer.
        pub max_allowable_rtt: Option<Time> = None,
        /// Limit of an RTT, as a multiple of the mean RTT; at least 1. The mean then weighs RTTs by bytes. Default:
        /// none, as in the thesis. On Linux 4.
        pub max_rtt_factor: Option<f64> = None,
        /// MTU. `MIN_RATE` is a hundredth of it in an average RTT.
        pub mtu: Bytes = Bytes::new(1000), // the data packet of chapter 4
        /// First rate, as a share of the capacity.
        pub initial_rate: f64 = 0.05, // figure 3.9
        /// Average RTT until a packet carries one. Default: the mean propagation RTT of the flows through the link. If
        /// that is unknown, it is the first RTT that packets carry.
        pub initial_rtt: Option<Time> = None,
        /// Whether the capacity is known.
        pub capacity: Capacity = Capacity::Known,
        /// Spare capacity that the router assumes while its queue is empty, as a share of the input rate; 0 to 10. Used
        /// only if the capacity is unknown (equation 6.2).
        pub growth: f64 = 0.1, // ours: section 6.3.3 leaves it to the user
        /// Exponent of alpha-fair sharing; 0 for max-min, the plain law.
        pub fairness: f64 = 0.0,
        /// Rate of long flows as a share of the rate of short ones: theta of section 3.6. 1 stands for one class.
        pub long_share: f64 = 1.0,
        /// A flow is long once it has sent this much.
        pub long_after: Bytes = Bytes::new(100_000), // ours: section 3.6 leaves the threshold open
        /// Number of classes by age, 2 to 16. Each has `long_share` of the rate of the class before it.
        pub levels: u32 = 2, // section 3.6; more is its "any number of levels"
        /// Age at which a class begins, from the third on, as a multiple of that of the class before it; above 1.
        pub level_ratio: f64 = 4.0, // ours
        /// Largest weight that a sender may state; at least 1. A larger one counts as this. Default: unbounded.
        pub max_weight: Option<f64> = None,
        /// Gain of a moving average over packets, which replaces section 3.5's estimate of the RTT; above 0, at most 1.
        /// The author's ns-2 model: 0.02.
        pub rtt_gain: Option<f64> = None,
        /// Share of packets whose RTT the router reads; above 0, at most 1 (section 3.7).
        pub rtt_share: f64 = 1.0,
    }
}

/// Whether a router knows its link's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Capacity {
    /// The router knows it: equation 3.3.
    Known,
    /// The router uses the queue alone: equation 6.2.
    Unknown,
}

/// Default bound from which on the router ignores RTTs: app. F.2.1. The scenario or its paths may raise it.
pub const MAX_ALLOWABLE_RTT: Time = Time::from_secs(20);

impl Params {
    fn max_allowable_rtt(&self) -> Time {
        self.max_allowable_rtt.unwrap_or(MAX_ALLOWABLE_RTT)
    }

    /// Share of `R` for a flow that has sent `age_bytes` (section 3.6).
    #[inline]
    fn level_share(&self, age_bytes: f64) -> f64 {
        let (mut share, mut after) = (1.0, self.long_after.as_f64());
        for _ in 1..self.levels {
            if age_bytes <= after {
                break;
            }
            share *= self.long_share;
            after *= self.level_ratio;
        }
        share
    }

    /// Length of the first interval, seconds.
    fn first_interval_s(&self) -> f64 {
        self.initial_rtt.unwrap_or(Time::MAX).min(self.max_interval).as_secs_f64()
    }
}

/// Largest rate offered to a flow where the capacity is unknown, bytes/s: the end of the law's valid range.
const FASTEST: f64 = 400e9 / 8.0;

/// Averaging time of the mean RTT by bytes, in units of `d`. It covers some tens of packets of a flow in equilibrium,
/// so that a liar's packets never make up a whole interval.
const MEMORY: f64 = 16.0;

/// The golden ratio's fraction of 2^32. Its multiples spread evenly over the range of 32 bits.
const GOLDEN: u32 = 0x9e37_79b9;

/// The mean RTT by bytes, which bounds RTTs.
#[derive(Clone, Copy, Debug)]
struct ByBytes {
    /// `m`, seconds; zero while unknown.
    mean: f64,
    /// The decayed number of bytes behind the mean.
    bytes: f64,
}

/// Relative growth of `R` in an average RTT `d` (equation 3.3). `spare` is `eta C - y`, `target` is `eta C`.
#[inline]
#[must_use]
pub fn growth(alpha: f64, beta: f64, spare: f64, queue: f64, d: f64, target: f64) -> f64 {
    (alpha * spare - beta * queue / d) / target
}

/// `theta`: the weight of an interval's mean RTT in the average `d` (section 3.5, lines 3 to 6). `share` is `R/C`.
#[inline]
#[must_use]
pub fn sample_weight(sample: f64, d: f64, interval: f64, share: impl FnOnce() -> f64) -> f64 {
    if sample >= d {
        interval / d // line 4
    } else {
        share() * (sample / d) * (interval / d) // line 6
    }
}

/// State of the law on one link.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    /// Bytes/s; `None` where the capacity is unknown.
    link_rate: Option<f64>,
    /// `R`, bytes/s.
    rate: f64,
    /// `d`, seconds; zero while unknown (deviation 5).
    avg_rtt: f64,
    /// `T`: length of the running interval, seconds.
    interval: f64,
    /// `input_traffic_Bytes`.
    input_bytes: f64,
    /// `sum_rtt_Tr`, seconds; byte seconds where RTTs weigh by bytes.
    sum_rtt: f64,
    /// Divisor of that sum: `num_pkts_with_rtt`, or bytes.
    sum_weight: f64,
    /// Upper bound of RTTs, seconds.
    most_rtt: f64,
    by_bytes: ByBytes,
    /// Chooses the packets whose RTT counts, if only a share does.
    choice: u32,
    /// `num_pkts_with_rtt`.
    packets_with_rtt: u32,
    /// Queue at the last update, in bytes.
    last_queue: f64,
    /// `y` of the last interval, for probes, bytes/s.
    input_rate: f64,
    /// `d_T` of the last interval with RTTs, for probes, seconds.
    sample_rtt: f64,
    /// Packets of the last interval that carried an RTT, for probes.
    sampled_packets: u32,
    /// Intervals that have ended, for probes.
    updates: u32,
}

impl Router {
    /// The rate given to flows, bytes/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The moving average of RTTs, seconds; zero while unknown.
    #[must_use]
    pub fn avg_rtt_s(&self) -> f64 {
        self.avg_rtt
    }

    /// `R / C`; zero for a link without capacity. `input_rate` replaces an unknown capacity (deviation 6).
    fn link_share(&self, input_rate: f64) -> f64 {
        let link_rate = self.link_rate.unwrap_or(input_rate);
        if link_rate > 0.0 { self.rate / link_rate } else { 0.0 }
    }

    /// Largest rate that a flow may be offered, bytes/s.
    fn most(&self) -> f64 {
        self.link_rate.unwrap_or(FASTEST)
    }

    /// Whether the RTT of the packet that arrives counts.
    #[inline]
    fn reads_rtt(&mut self) -> bool {
        let share = self.params.rtt_share;
        self.choice = self.choice.wrapping_add(GOLDEN);
        share >= 1.0 || f64::from(self.choice) < share * f64::from(u32::MAX)
    }

    /// Appendix F lines 1 to 16, with a queue of `queue` bytes.
    fn update(&mut self, queue: f64) {
        let p = self.params;
        let interval = self.interval;
        let input_rate = self.input_bytes / interval; // line 1
        if self.packets_with_rtt > 0 {
            let sample = self.sum_rtt / self.sum_weight; // line 2
            self.sample_rtt = sample;
            if self.avg_rtt <= 0.0 {
                self.avg_rtt = sample;
                self.bound_rtt(sample);
                self.begin_interval(queue, input_rate);
                return;
            }
            if p.rtt_gain.is_none() {
                let share = || self.link_share(input_rate);
                let weight = sample_weight(sample, self.avg_rtt, interval, share).clamp(0.0, 1.0);
                self.avg_rtt = weight * sample + (1.0 - weight) * self.avg_rtt; // line 7
            }
            self.bound_rtt(sample);
        }
        if self.avg_rtt <= 0.0 {
            self.begin_interval(queue, input_rate);
            return;
        }
        let target = p.eta * self.most();
        let min_rate = 0.01 * p.mtu.as_f64() / self.avg_rtt;
        let change = match p.capacity {
            // A link without capacity: lines 9 and 10 leave no rate.
            Capacity::Known if target <= 0.0 => 0.0,
            Capacity::Known => {
                growth(p.alpha, p.beta, target - input_rate, queue, self.avg_rtt, target) // line 8
            }
            Capacity::Unknown => {
                let growth =
                    if queue > 0.0 { (queue - self.last_queue) / interval } else { -p.growth * input_rate };
                let change = -p.alpha * growth - p.beta * queue / self.avg_rtt;
                if input_rate > 0.0 { change / input_rate } else { p.growth } // eq. 6.2
            }
        };
        let rate = self.rate * (1.0 + interval / self.avg_rtt * change);
        // Section 3.6: R may grow until long flows alone can fill the link.
        let most = target / p.level_share(f64::INFINITY);
        self.rate = rate.min(most).max(min_rate.min(most)); // lines 9 to 12
        self.begin_interval(queue, input_rate);
    }

    /// Updates `m` with the interval's mean, and bounds `d` and the next interval's RTTs by it.
    fn bound_rtt(&mut self, sample: f64) {
        let Some(factor) = self.params.max_rtt_factor else { return };
        let old = self.by_bytes.bytes * (1.0 - self.interval / (MEMORY * self.avg_rtt)).max(0.0);
        self.by_bytes.bytes = old + self.sum_weight;
        self.by_bytes.mean += (sample - self.by_bytes.mean) * (self.sum_weight / self.by_bytes.bytes);
        self.most_rtt = factor * self.by_bytes.mean;
        self.avg_rtt = self.avg_rtt.min(self.most_rtt);
    }

    /// Lines 13 to 16.
    fn begin_interval(&mut self, queue: f64, input_rate: f64) {
        let longest = self.params.max_interval.as_secs_f64();
        self.interval = if self.avg_rtt > 0.0 { self.avg_rtt.min(longest) } else { longest }; // line 13
        self.last_queue = queue;
        self.input_rate = input_rate;
        self.sampled_packets = self.packets_with_rtt;
        self.updates = self.updates.wrapping_add(1);
        self.input_bytes = 0.0; // line 14
        self.packets_with_rtt = 0; // line 15
        self.sum_weight = 0.0;
        self.sum_rtt = 0.0; // line 16
    }
}

impl RouterLaw for Router {
    type Params = Params;

    fn traits(p: &Params) -> RouterTraits {
        let known = p.capacity == Capacity::Known;
        RouterTraits {
            first_timers: [Some(Time::from_secs_f64(p.first_interval_s())), None],
            needs_capacity: known,
            gains: known.then_some(Gains { alpha: p.alpha, beta: p.beta, shuffle: 0.0 }),
            begins_with: &["initial_rate", "initial_rtt"],
            ..RouterTraits::DEFAULT
        }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("alpha", p.alpha, 0.0, 10.0)?;
        within("beta", p.beta, 0.0, 10.0)?;
        within("eta", p.eta, 0.01, 1.0)?;
        within("initial_rate", p.initial_rate, 1e-9, 1.0)?;
        within("growth", p.growth, 0.0, 10.0)?;
        within("fairness", p.fairness, 0.0, 100.0)?;
        within("long_share", p.long_share, 0.001, 1.0)?;
        within("levels", f64::from(p.levels), 2.0, 16.0)?;
        within("level_ratio", p.level_ratio, 1.001, 1e6)?;
        p.max_weight.map_or(Ok(()), |most| within("max_weight", most, 1.0, MOST_WEIGHT))?;
        p.rtt_gain.map_or(Ok(()), |gain| within("rtt_gain", gain, 1e-9, 1.0))?;
        within("rtt_share", p.rtt_share, 1e-6, 1.0)?;
        p.max_rtt_factor.map_or(Ok(()), |c| within("max_rtt_factor", c, 1.0, 1e6))?;
        within("mtu", p.mtu.as_f64(), 1.0, 65_535.0)?;
        for (name, time) in [
            ("max_interval", Some(p.max_interval)),
            ("max_allowable_rtt", p.max_allowable_rtt),
            ("initial_rtt", p.initial_rtt),
        ] {
            let Some(time) = time else { continue };
            within(name, time.as_secs_f64(), 1e-9, 1e6)
                .map_err(|_| (name, format!("is {time}; it must be 1ns to 1000000s")))?;
        }
        Ok(())
    }

    fn open(params: &mut Params) -> Open<'_> {
        let usual = MAX_ALLOWABLE_RTT;
        let longest = LongestRtt { name: "max_allowable_rtt", value: &mut params.max_allowable_rtt, usual };
        let time_constant = Some(("initial_rtt", &mut params.initial_rtt));
        Open { longest_rtt: Some(longest), time_constant, ..Open::default() }
    }

    fn new(params: &Params, link: &RouterView) -> Self {
        let link_rate = link.capacity.map(Rate::bytes_per_sec);
        let first_rtt = params.initial_rtt.unwrap_or(Time::ZERO).as_secs_f64();
        let rate = match link_rate {
            Some(link_rate) => params.initial_rate * link_rate,
            None => {
                let delay = params.initial_rtt.unwrap_or(params.max_interval).as_secs_f64();
                f64::from(link.packet_bytes) / delay // deviation 6
            }
        };
        Self {
            params: *params,
            link_rate,
            rate,
            avg_rtt: first_rtt,
            interval: params.first_interval_s(),
            input_bytes: 0.0,
            sum_rtt: 0.0,
            sum_weight: 0.0,
            most_rtt: f64::INFINITY,
            by_bytes: ByBytes { mean: 0.0, bytes: 0.0 },
            choice: 0,
            packets_with_rtt: 0,
            last_queue: 0.0,
            input_rate: 0.0,
            sample_rtt: first_rtt,
            sampled_packets: 0,
            updates: 0,
        }
    }

    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        match change {
            LinkChange::Params(params) => {
                self.params = *params;
                if params.max_rtt_factor.is_none() {
                    self.most_rtt = f64::INFINITY;
                }
            }
            LinkChange::Capacity(capacity) => self.link_rate = Some(capacity.bytes_per_sec()),
            LinkChange::Part { .. } | LinkChange::Buffer(_) | LinkChange::Acked(_) => {}
        }
    }

    #[inline]
    fn on_arrival(&mut self, _: LinkView, PacketIn { size, stamp, .. }: PacketIn<'_>) {
        self.input_bytes += f64::from(size); // line 18
        if let Some(stamp) = stamp {
            let rtt_s = Header::from(*stamp).rtt_s;
            if rtt_s > 0.0 && rtt_s < self.params.max_allowable_rtt().as_secs_f64() && self.reads_rtt() {
                let rtt_s = rtt_s.min(self.most_rtt);
                if let (Some(gain), true) = (self.params.rtt_gain, self.avg_rtt > 0.0) {
                    self.avg_rtt = gain * rtt_s + (1.0 - gain) * self.avg_rtt; // section 5.3
                }
                let weight = if self.params.max_rtt_factor.is_some() { f64::from(size) } else { 1.0 };
                self.sum_rtt += rtt_s * weight; // line 20
                self.sum_weight += weight;
                self.packets_with_rtt += 1; // line 21
            }
        }
    }

    #[inline]
    fn on_departure(&mut self, _: LinkView, packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        let stamp = packet.stamp;
        let mut header = Header::from(*stamp);
        let p = &self.params;
        let weight = weight_of(*packet.bits);
        let weight = p.max_weight.map_or(weight, |most| weight.min(most));
        let offer = (self.rate * p.level_share(header.age_bytes) * weight).min(self.most());
        if p.fairness > 0.0 {
            // The routers' R^-alpha add up; a single router leaves its own R. Factoring out the lower rate avoids
            // overflow, because the remaining ratio is at most 1.
            let (low, high) = (header.rate.min(offer), header.rate.max(offer));
            // A sender without a desired rate sets no limit, and adds nothing.
            let adds = high > 0.0 && high < AS_MUCH_AS_THERE_IS;
            let ratio = if adds { libm::pow(low / high, p.fairness) } else { 0.0 };
            header.rate = low * libm::pow(1.0 + ratio, -1.0 / p.fairness);
            *stamp = header.into();
        } else if header.rate > offer {
            header.rate = offer; // lines 22 and 23
            *stamp = header.into();
        }
    }

    fn on_timer(&mut self, _: usize, link: LinkView) -> Time {
        self.update(link.queue_bytes as f64);
        // Line 17; at least a picosecond, so that time advances.
        link.now.saturating_add(Time::from_secs_f64(self.interval).max(Time::from_ps(1)))
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("rate_bps", self.rate * 8.0);
        report("avg_rtt_s", self.avg_rtt);
        report("sample_rtt_s", self.sample_rtt);
        report("input_rate_bps", self.input_rate * 8.0);
        // The router's estimate of the number of flows, C/R (section 3.2.1).
        let share = self.link_share(self.input_rate);
        report("flows_estimate", if share > 0.0 { self.params.eta / share } else { 0.0 });
        // Inputs from which a test can recompute an interval.
        report("interval_s", self.interval);
        report("update_queue_bytes", self.last_queue);
        report("sampled_packets", f64::from(self.sampled_packets));
        report("updates", f64::from(self.updates));
    }
}
