//! XCP's fairness controller: divides the aggregate feedback of a router's efficiency controller among packets.
//!
//! It implements equations 2 to 9 of Katabi 2002 and appendix A, in throughput. [`super::router`] states the
//! equations, and the deviations that are cited here by number. [`Shares::close`] ends an interval and
//! [`Shares::hand_out`] begins the next. In between, each packet is counted when it arrives and stamped when it
//! leaves.
//!
//! `X` comes from the sender, which may lie. One small packet with a long RTT and a window of one packet can outweigh
//! all others in `sum X`, and so in `d`, in the mean window and in the feedback. [`Intervals::max_weight`] bounds `X`
//! by the weight of the last interval's packets:
//!
//! ```text
//!   X <- min(X, c s (sum X / sum s))        sums over the last interval's packets with an RTT
//! ```
//!
//! With the bound, equations 2 and 9 count only the bytes of packets that have an RTT. Nothing can be taken from
//! other packets, such as those of an isolated flow. Shuffling a tenth of them as well would leave a standing queue.
//!
//! Packets with a share `b` of the bytes then have at most `c b` of the previous interval's `sum X`, whatever they
//! claim. They raise `sum X` by at most the factor `1 / (1 - c b)`. A bound by multiples of `d` would move with the
//! value that it bounds.

use super::edge;
use super::fairness::{Aggregate, Controller, Fairness, LEVELS};
use super::header::Encoding;
use crate::router::{OwnFlows, PacketIn, PacketOut};
use crate::stamp::Stamp;
use crate::units::Time;
use crate::{Refused, within};
use core::marker::PhantomData;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Interval at which a law that knows no RTT checks for one (deviation 8).
const UNKNOWN: Time = Time::from_millis(1);

/// Default upper bound of RTTs: longer ones count as this much. It is above the 1.4 s of Katabi 2002, section 5.
pub const MAX_RTT: Time = Time::from_secs(4);

/// Bounds of the control interval: parameters of any XCP router.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// The first interval, in which the router knows and gives nothing; `None` until packets carry an RTT.
    pub initial: Option<Time>,
    /// The shortest interval.
    pub least: Time,
    /// RTTs above this count as this much.
    pub max_rtt: Time,
    /// `c`: the most that a byte may weigh relative to the mean byte of the last interval; `None` for no bound.
    pub max_weight: Option<f64>,
}

impl Intervals {
    /// Length of the first interval.
    #[must_use]
    pub fn first(&self) -> Time {
        self.initial.unwrap_or(UNKNOWN.max(self.least))
    }
}

/// Checks `c`: below 1 it would lower every packet's weight.
///
/// # Errors `max_weight` outside 1 to 10^6.
pub(super) fn check_max_weight(max_weight: Option<f64>) -> Result<(), Refused> {
    max_weight.map_or(Ok(()), |c| within("max_weight", c, 1.0, 1e6))
}

/// How much traffic an interval shuffles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shuffle {
    /// `gamma y`, whatever the aggregate feedback (Abrantes 2006, eq. 2).
    #[default]
    Full,
    /// `max(0, gamma y - |F|)`: what the aggregate feedback does not move already (Katabi 2002, eq. 2).
    Rest,
}

/// Positive and negative pool of an interval, bytes/s: their difference is `aggregate`, and both include the shuffled
/// traffic of eq. 2.
#[inline]
#[must_use]
pub fn pools(aggregate: f64, gamma: f64, input_rate: f64, shuffle: Shuffle) -> [f64; 2] {
    let shuffled = match shuffle {
        Shuffle::Full => gamma * input_rate,
        Shuffle::Rest => (gamma * input_rate - aggregate.abs()).max(0.0),
    };
    [shuffled + aggregate.max(0.0), shuffled + (-aggregate).max(0.0)]
}

/// Measurements of an interval that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Closed {
    /// The value used for `d`, which is also the length of the next interval, seconds.
    pub delay: f64,
    /// `y`, bytes/s.
    pub input_rate: f64,
    /// Bytes of the packets from which throughput can be taken.
    taken_from: f64,
    /// `d` was known before the interval began.
    was_known: bool,
}

/// Sums over the packets of this interval, and the feedback per packet decided at the end of the last interval.
#[derive(Clone, Debug)]
pub struct Shares<E> {
    // Sums since the last control decision (appendix A, first block).
    /// Bytes of every arriving packet.
    input_bytes: f64,
    /// Sum of `X`: the paper's `sum_rtt_by_cwnd`, seconds.
    sum_x: f64,
    /// Sum of `X rtt`: the paper's `sum_rtt_square_by_cwnd`, seconds squared.
    sum_x_rtt: f64,
    /// Sum of `X cwnd`, which is `rtt s`: byte seconds.
    sum_x_cwnd: f64,
    /// Sum of `s` over the packets of `sum_x`, bytes.
    sum_bytes: f64,
    // Results of the last control decision (second block).
    /// Throughput per second of inter-packet time, bytes/s^2.
    xi_pos: f64,
    /// Throughput per byte, 1/s.
    xi_neg: f64,
    /// Rest of the positive pool, bytes/s.
    residue_pos: f64,
    /// Rest of the negative pool, bytes/s.
    residue_neg: f64,
    /// `d`, seconds; zero while unknown (deviation 8).
    avg_rtt: f64,
    /// The mean window over flows, bytes; zero while unknown.
    avg_window: f64,
    /// Largest `X` per byte, seconds per byte; infinite without a bound.
    most_x: f64,
    /// Length of the running control interval, seconds.
    interval: f64,
    /// `phi / d` and `y` at the last decision, bytes/s, for probes.
    aggregate_feedback: f64,
    input_rate: f64,
    /// The controller that replaces the min-max one.
    controller: Option<Controller>,
    encoding: PhantomData<E>,
}

impl<E: Encoding> Shares<E> {
    /// Creates a controller that has counted no packet and gives nothing.
    #[must_use]
    pub fn new(intervals: &Intervals) -> Self {
        Self {
            input_bytes: 0.0,
            sum_x: 0.0,
            sum_x_rtt: 0.0,
            sum_x_cwnd: 0.0,
            sum_bytes: 0.0,
            xi_pos: 0.0,
            xi_neg: 0.0,
            residue_pos: 0.0,
            residue_neg: 0.0,
            avg_rtt: intervals.initial.unwrap_or(Time::ZERO).as_secs_f64(),
            avg_window: 0.0,
            most_x: f64::INFINITY,
            interval: intervals.first().as_secs_f64(),
            aggregate_feedback: 0.0,
            input_rate: 0.0,
            controller: None,
            encoding: PhantomData,
        }
    }

    /// Returns these sums under another fairness controller.
    #[must_use]
    pub fn fair(self, fairness: Fairness) -> Self {
        Self { controller: Controller::of(fairness), ..self }
    }

    /// The residues: how much this interval may still give and take, in bytes/s.
    #[must_use]
    pub fn residues(&self) -> (f64, f64) {
        (self.residue_pos, self.residue_neg)
    }

    /// The average RTT over flows, `d`, in seconds; zero while unknown.
    #[must_use]
    pub fn avg_rtt_s(&self) -> f64 {
        self.avg_rtt
    }

    /// Bounds what the running interval gives, in bytes/s.
    pub fn give_at_most(&mut self, most: f64) {
        if self.residue_pos > most {
            self.xi_pos *= most / self.residue_pos;
            self.residue_pos = most;
        }
    }

    /// Length of the running interval, seconds.
    #[must_use]
    pub fn interval_s(&self) -> f64 {
        self.interval
    }

    /// The mean window of the flows and the interval, if known (deviation 10).
    #[must_use]
    pub fn own_flows(&self) -> Option<OwnFlows> {
        let known = self.avg_rtt > 0.0 && self.avg_window > 0.0 && self.avg_window < f64::INFINITY;
        known.then(|| OwnFlows { window_bytes: self.avg_window, rtt: Time::from_secs_f64(self.interval) })
    }

    /// `s` of a packet of `size` bytes. A macro-flow's bits hold the number of micro-flows for which it stands.
    #[inline]
    pub(super) fn stands_for(stamp: &Stamp, size: f64, bits: u16) -> f64 {
        let micro_flows = edge::micro_flows(bits);
        if micro_flows == 0 {
            return size;
        }
        E::stands_for(stamp, f64::from(micro_flows)).unwrap_or(size).max(size)
    }

    /// The sender's priority.
    #[inline]
    fn level(bits: u16) -> usize {
        edge::priority(bits).min(LEVELS - 1)
    }

    /// `X` after the bound.
    #[inline]
    fn bounded(&self, x: f64, size: f64) -> f64 {
        x.min(self.most_x * size)
    }

    /// Counts an arriving packet (appendix A, first block).
    #[inline]
    pub fn count(&mut self, packet: PacketIn<'_>, max_rtt: Time) {
        let size = f64::from(packet.size);
        self.input_bytes += size;
        if let Some(stamp) = packet.stamp {
            let size = Self::stands_for(stamp, size, packet.bits);
            let view = E::read(stamp, size);
            // A packet without an RTT has X = 0 and so enters no sum (deviation 2).
            if view.inter_packet_s > 0.0 {
                let x = self.bounded(view.inter_packet_s, size);
                let rtt_s = view.rtt_s.min(max_rtt.as_secs_f64());
                self.sum_x += x;
                self.sum_x_rtt += x * rtt_s;
                // X cwnd is rtt s, scaled down where X is bounded. Only these few packets pay for a division.
                let part = if x < view.inter_packet_s { x / view.inter_packet_s } else { 1.0 };
                self.sum_x_cwnd += rtt_s * size * part;
                self.sum_bytes += size;
                if let Some(controller) = &mut self.controller {
                    controller.count(x, size, Self::level(packet.bits));
                }
            }
        }
    }

    /// Ends the interval and computes its averages (appendix A, second block).
    pub fn close(&mut self, intervals: &Intervals) -> Closed {
        let was_known = self.avg_rtt > 0.0;
        if self.sum_x > 0.0 {
            // The average over flows, not packets: X weighs a packet by the inverse of its flow's packet rate.
            self.avg_rtt = (self.sum_x_rtt / self.sum_x).min(intervals.max_rtt.as_secs_f64());
            self.avg_window = self.sum_x_cwnd / self.sum_x; // deviation 10
            self.most_x = intervals.max_weight.map_or(f64::INFINITY, |c| c * self.sum_x / self.sum_bytes);
        }
        let delay = match self.avg_rtt > 0.0 {
            true => self.avg_rtt.max(intervals.least.as_secs_f64()), // deviation 3
            false => UNKNOWN.max(intervals.least).as_secs_f64(),
        };
        let taken_from = if intervals.max_weight.is_some() { self.sum_bytes } else { self.input_bytes };
        Closed { delay, input_rate: self.input_bytes / self.interval, taken_from, was_known }
    }

    /// Begins the next interval, whose packets shall change the throughput by `aggregate`, bytes/s, and shuffle
    /// traffic.
    pub fn hand_out(&mut self, closed: Closed, aggregate: f64, gamma: f64, shuffle: Shuffle) {
        let shuffled_of = closed.input_rate.min(closed.taken_from / self.interval);
        let [give, take] = pools(aggregate, gamma, shuffled_of, shuffle);
        if self.sum_x > 0.0 && closed.was_known {
            self.xi_pos = give / self.sum_x; // eq. 6
            self.xi_neg = take / closed.taken_from; // eq. 9
            self.residue_pos = give;
            self.residue_neg = take;
            if let Some(controller) = &mut self.controller {
                let shuffled = give - aggregate.max(0.0);
                let (sum_x, sum_bytes, interval) = (self.sum_x, self.sum_bytes, self.interval);
                let part = gamma * shuffled_of;
                let all = Aggregate { feedback: aggregate, shuffled, part, sum_x, sum_bytes, interval };
                [self.residue_pos, self.residue_neg] = controller.decide(&all);
            }
        } else {
            // Deviations 4 and 8.
            self.xi_pos = 0.0;
            self.xi_neg = 0.0;
            self.residue_pos = 0.0;
            self.residue_neg = 0.0;
        }
        debug_assert!(self.residue_pos >= 0.0 && self.residue_neg >= 0.0, "empty pools at least: {self:?}");
        self.aggregate_feedback = aggregate;
        self.input_rate = closed.input_rate;
        self.interval = closed.delay;
        self.input_bytes = 0.0;
        self.sum_x = 0.0;
        self.sum_x_rtt = 0.0;
        self.sum_x_cwnd = 0.0;
        self.sum_bytes = 0.0;
    }

    /// Stamps a departing packet (appendix A, third block, in throughput).
    #[inline]
    pub fn stamp(&mut self, packet: &mut PacketOut<'_>) {
        let stamp = &mut *packet.stamp;
        let size = Self::stands_for(stamp, f64::from(packet.size), *packet.bits);
        let view = E::read(stamp, size);
        if view.rtt_s <= 0.0 {
            E::refuse_increase(stamp); // deviation 2
            return;
        }
        let x = self.bounded(view.inter_packet_s, size);
        let mut portions = [self.xi_pos * x, self.xi_neg * size]; // eqs. 4 and 7
        let mut allowed = f64::INFINITY;
        if let Some(controller) = &mut self.controller {
            portions = controller.portions(x, size, Self::level(*packet.bits), view.feedback);
            if controller.adds_up() {
                allowed = view.feedback;
            }
        }
        // The smaller of share and rest: deviation 1.
        let give = portions[0].min(self.residue_pos);
        let take = portions[1].min(self.residue_neg);
        let feedback = give.min(allowed) - take; // eq. 3
        if view.feedback >= feedback {
            E::write_feedback(stamp, feedback, view.rtt_s);
            self.residue_pos -= give.min(allowed).max(0.0);
            self.residue_neg -= take;
        } else {
            let (give, take) = E::booked(give, take, view.feedback, self.residue_neg);
            self.residue_pos = (self.residue_pos - give).max(0.0);
            self.residue_neg = (self.residue_neg - take).max(0.0);
        }
        debug_assert!(
            self.residue_pos >= 0.0 && self.residue_neg >= 0.0,
            "more than the pools held: {self:?}"
        );
    }

    /// Calls `report` with the name and value of each variable that all XCP routers have.
    pub fn variables(&self, persistent_queue: f64, report: &mut dyn FnMut(&'static str, f64)) {
        report("avg_rtt_s", self.avg_rtt);
        report("input_rate_bps", self.input_rate * 8.0);
        report("aggregate_feedback_bps", self.aggregate_feedback * 8.0);
        report("persistent_queue_bytes", persistent_queue);
        report("xi_pos", self.xi_pos);
        report("xi_neg", self.xi_neg);
    }
}
