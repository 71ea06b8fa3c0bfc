//! Random early detection (Floyd & Jacobson 1993), gentle (Floyd 2000) and adaptive (Floyd, Gummadi & Shenker 2001).
//!
//! ```text
//! avg   = (1 - w) avg + w q                   at each arrival; q in packets or bytes          1993 section 4
//! avg   = (1 - w)^m avg                       after idling for m typical transmission times   1993 section 4
//! p_b   = max_p (avg - min) / (max - min)                             min <= avg < max        1993 section 4
//!       = max_p + (1 - max_p) (avg - max) / max                       max <= avg < 2 max, gentle
//! p_a   = p_b / (1 - count p_b), or with `wait`: 0, p_b / (2 - count p_b) or 1 for count p_b < 1, < 2 or more
//! p_a   = p_a size / mean size                byte mode                                       1993 section 4
//! drop  if avg >= max (gentle: 2 max) or the buffer is full; else with p_a mark, or drop if not ECN-capable or p_b >= mark_p
//! adaptive: every 0.5 s, avg below the middle fifth of [min, max]: max_p *= 0.9; above: max_p += min(0.01, max_p/4)
//! ```
//! With `step`, a packet that finds more than K packets queued is marked, or dropped if not ECN-capable, and nothing
//! else counts (Alizadeh 2010, section 3.1).
//!
//! `count` is the number of packets since the last mark or drop.
//!
//! Deviations:
//!
//! 1. 1993: the average alone decides. As in ns-2, no packet is marked or dropped early while fewer than two wait, nor
//!    the first one that finds the average above min.
//! 2. 1993: m is the idle time over a transmission time, a real number. As in ns-2, m is a whole number.
//! 3. ns-2 keeps the gentle slope of the initial `max_p`. We use the current one, as the adaptive paper means it.
//! 4. The adaptive paper lets `max_p` fall to 0.01. As in ns-2, it may fall to one mark per 0.1 s of 1000-byte
//!    packets if that is less: above 8 Mb/s, 1% is too much.
//! 5. Alizadeh 2010 builds DCTCP's switch from RED with both thresholds at K and a weight of 1. This would not be a
//!    step here, because of deviation 1 and because packets above the upper threshold are dropped. `step` is a step.
//! 6. Thresholds are shares of the buffer (Katabi 2002 section 5.1), not packets, unless `target_delay` sets them.

use super::{Arrival, Limit, QueueLaw, QueueView, Verdict};
use crate::units::{Ratio, Time};
use crate::{Refused, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit in which the queue is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Packets, whatever their size.
    #[default]
    Packets,
    /// Bytes; large packets are marked more often.
    Bytes,
}

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Lower threshold, as a share of the buffer. Below it nothing is marked.
        pub min_threshold: Ratio = Ratio::new(1.0 / 3.0), // Katabi 2002 section 5.1
        /// Upper threshold, as a share of the buffer. There the probability is `max_p`.
        pub max_threshold: Ratio = Ratio::new(2.0 / 3.0), // Katabi 2002 section 5.1
        /// Probability at the upper threshold.
        pub max_p: Ratio = Ratio::new(0.1), // Floyd, "RED: discussions of setting parameters", 1997
        /// Weight of a new sample in the average, at most 1. 0 stands for 1 - exp(-1/C), with C the link's rate in
        /// packets per second (2001 section 4.2).
        pub weight: f64 = 0.002, // 1993 section 4.2
        /// Whether the probability rises to 1 between the upper threshold and its double, instead of at once.
        pub gentle: bool = true,
        /// Whether ECN-capable packets are marked instead of dropped early.
        pub ecn: bool = true,
        /// Probability below which ECN-capable packets are marked, and from which on they are dropped. At 1 they are
        /// always marked (ns-2's `mark_p_`).
        pub mark_p: Ratio = Ratio::new(1.0), // whatever the probability; ns-2 has 0.1
        /// Whether `max_p` adapts so that the average stays in the middle between the thresholds.
        pub adaptive: bool = false,
        /// Target queueing delay (2001 section 4). The lower threshold is half of what the link carries in this time,
        /// at least 5 packets. The upper threshold is three times the lower. Default: `min_threshold` and
        /// `max_threshold`.
        pub target_delay: Option<Time> = None,
        /// K: queue in packets above which each arrival is marked, as in DCTCP's switch (Alizadeh 2010, section 3.1).
        /// It compares the queue itself, not the average. The thresholds, `max_p`, `mark_p`, `weight`, `gentle` and
        /// `wait` then have no effect.
        pub step: Option<u32> = None,
        /// Whether packets that are not ECN-capable are dropped above K, acks among them (RFC 3168, section 7).
        /// Otherwise they wait with the others, as in switches whose drop profile is separate from marking.
        pub step_drops: bool = true, // RFC 3168, section 7
        /// Whether queues are counted in packets or in bytes.
        pub mode: Mode = Mode::Packets,
        /// Whether marks are 1/p to 2/p packets apart instead of up to 1/p (ns-2's `wait_`).
        pub wait: bool = true, // ns-2 wait_
    }
}

/// `p_b` for an average and its two thresholds, all in the same unit.
#[must_use]
pub fn base_probability(average: f64, [min, max]: [f64; 2], max_p: f64, gentle: bool) -> f64 {
    let p = if average < min {
        0.0
    } else if average < max {
        max_p * (average - min) / (max - min)
    } else if gentle {
        max_p + (1.0 - max_p) * (average - max) / max
    } else {
        1.0
    };
    p.min(1.0)
}

/// Adaptive: least time between changes of `max_p` (2001 figure 1).
const INTERVAL: Time = Time::from_millis(500);
/// Adaptive: the largest increase of `max_p` at a time.
const ALPHA: f64 = 0.01;
/// Adaptive: factor on `max_p` in a decrease.
const BETA: f64 = 0.9;
/// Adaptive: the largest `max_p`.
const TOP: f64 = 0.5;

/// State of the law.
#[derive(Clone, Debug)]
pub struct Red {
    limit: Limit,
    step: Option<u32>,
    step_drops: bool,
    /// Average queue, in packets or bytes like the thresholds.
    average: f64,
    min: f64,
    max: f64,
    max_p: f64,
    weight: f64,
    /// Typical packet, bytes.
    mean_packet: f64,
    packets_per_sec: f64,
    /// Packets since the last mark or drop; in byte mode their bytes over the typical packet.
    count: f64,
    /// `p_b` at the last arrival.
    probability: f64,
    adapted_at: Time,
    bottom: f64,
    gentle: bool,
    ecn: bool,
    /// ECN-capable packets are marked below this.
    mark_p: f64,
    adaptive: bool,
    bytes: bool,
    wait: bool,
    /// The last arrival found the average at or above the lower threshold.
    above: bool,
}

impl Red {
    /// The average queue, in packets or bytes depending on the mode.
    #[must_use]
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// The current `max_p`.
    #[must_use]
    pub const fn max_p(&self) -> f64 {
        self.max_p
    }

    /// The lower and the upper threshold, in packets or bytes depending on the mode.
    #[must_use]
    pub const fn thresholds(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    /// `p_b` at the current average.
    fn base_probability(&self) -> f64 {
        base_probability(self.average, [self.min, self.max], self.max_p, self.gentle)
    }

    /// `p_a`: makes the intervals between marks uniform.
    fn spaced(&self, p: f64, size: u32) -> f64 {
        let n = self.count * p;
        let p = match (self.wait, n) {
            (true, n) if n < 1.0 => 0.0,
            (true, n) if n < 2.0 => p / (2.0 - n),
            (false, n) if n < 1.0 => p / (1.0 - n),
            _ => 1.0,
        };
        // A certain mark stays certain.
        if self.bytes && p < 1.0 { (p * f64::from(size) / self.mean_packet).min(1.0) } else { p.min(1.0) }
    }

    fn adapt(&mut self, now: Time) {
        if now <= self.adapted_at.saturating_add(INTERVAL) {
            return;
        }
        let part = 0.4 * (self.max - self.min);
        if self.average < self.min + part && self.max_p > self.bottom {
            self.max_p *= BETA;
            self.adapted_at = now;
        } else if self.average > self.max - part && self.max_p < TOP {
            self.max_p += ALPHA.min(self.max_p / 4.0);
            self.adapted_at = now;
        }
    }
}

impl QueueLaw for Red {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        within("weight", p.weight, 0.0, 1.0)?;
        within("max_p", p.max_p.get(), 0.0, 1.0)?;
        within("mark_p", p.mark_p.get(), 0.0, 1.0)?;
        within("min_threshold", p.min_threshold.get(), 0.0, 1.0)?;
        within("max_threshold", p.max_threshold.get(), p.min_threshold.get(), 10.0)?;
        let other = if p.adaptive {
            "adaptive"
        } else if p.target_delay.is_some() {
            "target_delay"
        } else if p.mode == Mode::Bytes {
            "mode = \"bytes\""
        } else {
            return Ok(());
        };
        match p.step {
            Some(k) => Err(("step", format!("is {k} packets beside {other}; leave out one of them"))),
            None => Ok(()),
        }
    }

    fn new(params: &Params, view: &QueueView) -> Self {
        let mean_packet = f64::from(view.mean_packet_bytes.max(1));
        let bytes = params.mode == Mode::Bytes;
        let unit = if bytes { mean_packet } else { 1.0 };
        let packets_per_sec = view.capacity.bytes_per_sec() / mean_packet;
        let buffer = match view.limit {
            Limit::Bytes(n) => n as f64 / mean_packet,
            Limit::Packets(n) => f64::from(n),
        };
        let (min, max) = match params.target_delay {
            Some(delay) => {
                let min = (delay.as_secs_f64() * packets_per_sec / 2.0).max(5.0);
                (min, 3.0 * min)
            }
            None => (params.min_threshold.get() * buffer, params.max_threshold.get() * buffer),
        };
        Self {
            limit: view.limit,
            step: params.step,
            step_drops: params.step_drops,
            average: 0.0,
            min: min * unit,
            max: max.max(min) * unit,
            max_p: params.max_p.get().min(1.0),
            // -expm1(-x) = 1 - exp(-x) without cancellation.
            weight: if params.weight > 0.0 {
                params.weight.min(1.0)
            } else {
                -libm::expm1(-1.0 / packets_per_sec.max(1e-9))
            },
            mean_packet,
            packets_per_sec,
            count: 0.0,
            probability: 0.0,
            adapted_at: Time::ZERO,
            bottom: (80_000.0 / view.capacity.bps().max(1.0)).min(0.01),
            gentle: params.gentle,
            ecn: params.ecn,
            mark_p: if params.mark_p.get() < 1.0 { params.mark_p.get() } else { f64::INFINITY },
            adaptive: params.adaptive,
            bytes,
            wait: params.wait,
            above: false,
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn on_arrival(&mut self, arrival: &Arrival, mut uniform: impl FnMut() -> f64) -> Verdict {
        if let Some(most) = self.step {
            return match arrival.queue_packets > most {
                _ if !arrival.fits(self.limit) => Verdict::Drop,
                false => Verdict::Enqueue,
                true if self.ecn && arrival.ecn_capable => Verdict::Mark,
                true if self.step_drops => Verdict::Drop,
                true => Verdict::Enqueue,
            };
        }
        let queue = if self.bytes { arrival.queue_bytes as f64 } else { f64::from(arrival.queue_packets) };
        if let Some(since) = arrival.idle_since {
            let idle = arrival.now.saturating_sub(since).as_secs_f64();
            let missed = (idle * self.packets_per_sec) as u64;
            if missed > 0 {
                self.average *= libm::pow(1.0 - self.weight, missed as f64);
            }
        }
        self.average += self.weight * (queue - self.average);
        if self.adaptive {
            self.adapt(arrival.now);
        }
        self.count += if self.bytes { f64::from(arrival.size) / self.mean_packet } else { 1.0 };
        self.probability = self.base_probability();

        let mut verdict = Verdict::Enqueue;
        if self.average >= self.min && arrival.queue_packets > 1 {
            let ceiling = if self.gentle { 2.0 * self.max } else { self.max };
            if self.average >= ceiling {
                verdict = Verdict::Drop;
            } else if !self.above {
                self.above = true;
                self.count = if self.bytes { f64::from(arrival.size) / self.mean_packet } else { 1.0 };
            } else {
                let p = self.spaced(self.probability, arrival.size);
                if p > 0.0 && (p >= 1.0 || uniform() < p) {
                    let mark = self.ecn && arrival.ecn_capable && self.probability < self.mark_p;
                    verdict = if mark { Verdict::Mark } else { Verdict::Drop };
                }
            }
        } else {
            self.above = false;
        }
        if !arrival.fits(self.limit) {
            verdict = Verdict::Drop;
        }
        if verdict != Verdict::Enqueue {
            self.count = 0.0;
        }
        verdict
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("average", self.average);
        report("max_p", self.max_p);
        report("probability", self.probability);
    }
}
