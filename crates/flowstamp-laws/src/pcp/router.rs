//! The PCP router: it measures over one interval and decides for another.
//!
//! Katabi and Handley 2001, section 3.6. Every estimation interval `T_e`, the mean RTT, from the packets that arrived in it:
//!
//! ```text
//!   SBW  = C - y                                                                     spare bandwidth, section 3.6.2
//!   SBW* = 0.7 SBW* + 0.3 SBW                                                        footnote 10
//!   cwnd = sum(mu H_cwnd) / sum(mu),  rtt = sum(mu H_rtt) / sum(mu),  mu = H_rtt / H_cwnd     eq. 4
//!   N    = sum(H_rtt / H_cwnd) / T_e                                                 eq. 5
//!   eta  = T_e / sum (H_rtt / H_cwnd)^2,    N_p = packets T_c / T_e                  eq. 8, section 3.6.5
//! ```
//!
//! Every control interval `T_c`, which is fixed:
//!
//! ```text
//!   BTA = max(0,  k1 SBW T_c - k2 queue)       BTF = max(0, -k1 SBW T_c + k2 queue)  eq. 6; the least queue of the last T_c
//!   BTS = k3 (C - SBW) T_c                                                           section 3.6.5
//!   TPF = BTA + BTS                            TNF = BTF + BTS
//! ```
//!
//! and each data packet that leaves gets
//!
//! ```text
//!   positive   = eta (BTA + BTS) / T_c (H_rtt / H_cwnd)^2                            eq. 8
//!   negative   = (BTF + BTS) / N_p                                                   eq. 9
//!   H_feedback = min(H_feedback, positive - negative)                                eq. 10
//!   H_B1       = 1 where SBW* < C / 10                                               section 3.6.6
//! ```
//!
//! until the positive feedback amounts to TPF, and the negative to TNF. Flows that have met no bottleneck have `H_B2`
//! 0. While there are such flows, BTA is divided among these alone (section 3.6.6).
//!
//! `C` is the capacity and `y` the input rate. Bits in the paper are bytes here, also for windows. In each sum a
//! packet of `s` bytes counts `s` instead of 1 (deviation 1).
//!
//! On a link shared with TCP by windows ([`crate::share::Weights::Windows`], section 4.2), PCP has the part `w_P C`:
//!
//! ```text
//!   SBW = C - y_T - y_P,  PSBW = w_P C - y_P
//!   BTA = max(0, k1 T_c max(SBW, PSBW) - k2 queue)       BTF = max(0, -k1 T_c max(SBW, PSBW) + k2 queue)    deviation 8
//! ```
//!
//! Valid for 1 kb/s to 400 Gb/s and RTTs of 1 us to `max_rtt`; all state stays finite there.
//!
//! Deviations (paper says / we do / because):
//! 1. N, eta and N_p count packets / they count bytes / with packets of one size the result is the same, and small
//!    packets, a last packet or a header alone then weigh by their size. A packet's size is also the least `H_cwnd`.
//! 2. Feedback stops when TPF or TNF has run out / the packet that empties one gets just the rest / feedback then
//!    never exceeds them, not even by one packet's share.
//! 3. "Whenever a feedback is given" TPF and TNF shrink / where an earlier router allows less, this router gives
//!    none, and they do not shrink / we take the sentence literally; TPF and TNF are bounds, and the shares of other
//!    packets do not change.
//! 4. Computations that involve `H_rtt` ignore packets whose `H_rtt` is 0 / such packets count in y and N_p and get
//!    negative feedback only / eq. 8 has `H_rtt` as a factor.
//! 5. The paper sets `T_c` to the mean RTT of a month / it is `control_interval`; unset, the mean RTT of the
//!    scenario's paths, or where that is unknown the first mean RTT seen, before which the router gives nothing.
//! 6. `T_e` is the mean RTT / it is at least `min_interval` and at most `max_rtt`, and stays while no packet arrives.
//! 7. The least queue is the least that arriving packets see / it also counts the queue when `T_c` ends / a link
//!    without arrivals drains, and no packet sees it.
//! 8. Section 4.2 writes `min(SBW, PSBW)` in BTF / we use the maximum, as in BTA / the next sentence says "when SBW
//!    becomes negative PCP frees bandwidth only until it reaches its fair share". That is min(-SBW, -PSBW); the paper
//!    has moved the sign inside. (In figure P16 either gives the same to within 0.12 of the mean throughput.)

use super::header::{B2, Header, passed};
use crate::router::{
    LinkChange, LinkView, MAX_TIMERS, OwnFlows, PacketIn, PacketOut, Room, RouterLaw, RouterTraits,
    RouterView,
};
use crate::units::Time;
use crate::xcp::shares::MAX_RTT;
use crate::{LongestRtt, Open, Refused, check_times, within};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Part of the spare bandwidth that is handed out in each control interval.
        pub k1: f64 = 0.4, // section 3.6.4
        /// Part of the persistent queue that is drained in each control interval.
        pub k2: f64 = 0.5, // section 3.6.4
        /// Part of the traffic that is shuffled in each control interval.
        pub k3: f64 = 0.1, // section 3.6.5
        /// `T_c`: how long a decision holds. Default: the mean propagation RTT of the flows through the link. If that
        /// is unknown, it is the first mean RTT that packets carry.
        pub control_interval: Option<Time> = None,
        /// The shortest estimation interval.
        pub min_interval: Time = Time::from_micros(10), // ours, as XCP's
        /// Largest RTT; longer RTTs count as this one. Default: 4 s, or three times the longest propagation RTT of the
        /// flows through the link if that is longer.
        pub max_rtt: Option<Time> = None,
    }
}

impl Params {
    fn max_rtt(&self) -> Time {
        self.max_rtt.unwrap_or(MAX_RTT)
    }

    /// Length of the first estimation interval, seconds.
    fn first_interval_s(&self) -> f64 {
        let first = self.control_interval.filter(|first| *first > Time::ZERO).unwrap_or(UNKNOWN);
        first.max(self.min_interval).as_secs_f64()
    }
}

/// A link is a bottleneck if its spare bandwidth is below this share of the capacity (section 3.6.6).
const BOTTLENECK: f64 = 0.1;
/// Weight of the newest estimation interval in `SBW*` (footnote 10).
const NEW: f64 = 0.3;
/// Interval at which a law that knows no RTT checks for one (deviation 5).
const UNKNOWN: Time = Time::from_millis(1);

/// Index of the timer that ends `T_e`.
const ESTIMATION: usize = 0;
/// Index of the timer that ends `T_c`.
const CONTROL: usize = 1;

/// Sums over the packets of a set of flows.
#[derive(Clone, Copy, Debug, Default)]
struct Flows {
    /// Sum of `s H_rtt / H_cwnd`, seconds, for eq. 5.
    inter_packet_s: f64,
    /// Sum of `s (H_rtt / H_cwnd)^2`, s^2/byte, for eq. 8.
    weights: f64,
}

/// Counts of the running estimation interval.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Bytes of every packet that arrived.
    input_bytes: f64,
    /// Bytes of data packets with this law's header.
    data_bytes: f64,
    all: Flows,
    /// Sums over flows that have met no bottleneck.
    free: Flows,
    /// Sum of `X H_rtt`, seconds squared, and of `X H_cwnd`, byte seconds, with `X = s H_rtt / H_cwnd`, for eq. 4.
    rtt: f64,
    cwnd: f64,
}

/// Estimates at the end of an estimation interval.
#[derive(Clone, Copy, Debug, Default)]
struct Estimates {
    /// `y`, bytes/s.
    input_rate: f64,
    /// Rate of the packets that get feedback, bytes/s: `N_p s / T_c`.
    data_rate: f64,
    /// `1 / eta`: weights per second, for all flows and for those that have met no bottleneck.
    weights: f64,
    free_weights: f64,
    /// Number of flows, and of those that have met no bottleneck.
    flows: f64,
    free_flows: f64,
    cwnd_bytes: f64,
}

/// Decision at the start of a control interval.
#[derive(Clone, Copy, Debug, Default)]
struct Decision {
    /// BTA, BTF and BTS, bytes.
    allocate: f64,
    free: f64,
    shuffle: f64,
    /// Bytes of window per unit of weight: for all flows, and the extra for those that have met no bottleneck.
    positive: f64,
    free_positive: f64,
    /// Bytes of window taken per byte of packet.
    negative: f64,
    /// The rest of TPF and TNF, bytes.
    left_positive: f64,
    left_negative: f64,
}

/// PCP's part of a link that is shared by windows, bytes/s.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// `w_P C`.
    own: f64,
    /// `C`.
    link: f64,
}

/// State of the law on one link.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    /// Bytes/s: the link's capacity, less other traffic where the link is shared.
    capacity: f64,
    part: Option<Part>,
    counted: Counted,
    estimates: Estimates,
    /// `SBW*`, bytes/s.
    smoothed_spare: f64,
    /// Mean RTT, seconds; zero while unknown (deviation 5).
    avg_rtt: f64,
    /// Length of the running `T_e`, seconds.
    interval: f64,
    /// `T_c` as set by the first mean RTT, seconds.
    found: Option<f64>,
    /// An estimation interval of the right length has ended.
    known: bool,
    decision: Decision,
    /// Least queue since `T_c` began, and that of the previous `T_c`, bytes.
    min_queue: f64,
    persistent_queue: f64,
}

/// A packet's weight in increases, `s (H_rtt / H_cwnd)^2`, its `X = s H_rtt / H_cwnd`, and its bounded RTT; `None`
/// without an RTT.
#[inline]
fn weigh(header: &Header, size: f64, max_rtt: f64) -> Option<(f64, f64, f64)> {
    let rtt = Some(header.rtt_s.min(max_rtt)).filter(|_| header.rtt_s > 0.0)?; // also excludes NaN
    let x = rtt * size / header.cwnd_bytes.max(size);
    Some((x * x / size, x, rtt))
}

impl Router {
    /// `T_c` in seconds, if known.
    fn control_interval(&self) -> Option<f64> {
        self.params.control_interval.map(Time::as_secs_f64).or(self.found)
    }

    /// The rest of TPF and TNF: how much this control interval may still give and take, in bytes.
    #[must_use]
    pub fn pools(&self) -> (f64, f64) {
        (self.decision.left_positive, self.decision.left_negative)
    }

    /// SBW: the spare bandwidth, bytes/s.
    fn spare(&self) -> f64 {
        self.capacity - self.estimates.input_rate
    }

    /// Ends `T_e` (section 3.6.2).
    fn estimate(&mut self) {
        let counted = core::mem::take(&mut self.counted);
        let was_known = self.avg_rtt > 0.0;
        let (least, most) = (self.params.min_interval.as_secs_f64(), self.params.max_rtt().as_secs_f64());
        if counted.all.inter_packet_s > 0.0 {
            self.avg_rtt = (counted.rtt / counted.all.inter_packet_s).min(most); // eq. 4
            self.estimates.cwnd_bytes = counted.cwnd / counted.all.inter_packet_s; // eq. 4
        }
        if was_known {
            self.known = true;
            let seconds = self.interval;
            self.estimates = Estimates {
                input_rate: counted.input_bytes / seconds,
                data_rate: counted.data_bytes / seconds,
                weights: counted.all.weights / seconds,
                free_weights: counted.free.weights / seconds,
                flows: counted.all.inter_packet_s / seconds, // eq. 5
                free_flows: counted.free.inter_packet_s / seconds,
                ..self.estimates
            };
            self.smoothed_spare += NEW * (self.spare() - self.smoothed_spare); // footnote 10
        }
        let unknown = UNKNOWN.max(self.params.min_interval).as_secs_f64();
        self.interval = if self.avg_rtt > 0.0 { self.avg_rtt.max(least) } else { unknown };
    }

    /// Ends `T_c` and decides for the next one, which lasts `seconds`.
    fn decide(&mut self, seconds: f64) {
        let Params { k1, k2, k3, .. } = self.params;
        if !self.known {
            self.decision = Decision::default();
            return;
        }
        let e = &self.estimates;
        let spare = self.spare();
        let spare = self.part.map_or(spare, |part| spare.max(part.own - e.input_rate)); // section 4.2: SBW and PSBW
        let drain = k2 * self.persistent_queue;
        let allocate = (k1 * seconds * spare - drain).max(0.0); // eq. 6
        let free = (-k1 * seconds * spare + drain).max(0.0); // eq. 6
        let shuffle = k3 * e.input_rate * seconds; // section 3.6.5: C - SBW is y
        let (left_positive, left_negative) = (allocate + shuffle, free + shuffle);
        let part = |bytes: f64, of: f64| if of > 0.0 { bytes / (seconds * of) } else { 0.0 };
        // Section 3.6.6: spare bandwidth goes to flows that have met no bottleneck, if there are any.
        let some_free = e.free_weights > 0.0;
        self.decision = Decision {
            allocate,
            free,
            shuffle,
            positive: part(if some_free { shuffle } else { left_positive }, e.weights), // eq. 8
            free_positive: if some_free { part(allocate, e.free_weights) } else { 0.0 },
            negative: part(left_negative, e.data_rate), // eq. 9
            left_positive,
            left_negative,
        };
    }
}

impl RouterLaw for Router {
    type Params = Params;

    fn traits(p: &Params) -> RouterTraits {
        let mut first_timers = [None; MAX_TIMERS];
        first_timers[ESTIMATION] = Some(Time::from_secs_f64(p.first_interval_s()));
        first_timers[CONTROL] = Some(p.control_interval.unwrap_or(UNKNOWN.max(p.min_interval)));
        RouterTraits { first_timers, by_windows: Some(Room::Leftover), ..RouterTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("k1", p.k1, 0.0, 10.0)?;
        within("k2", p.k2, 0.0, 10.0)?;
        within("k3", p.k3, 0.0, 1.0)?;
        check_times([
            ("control_interval", p.control_interval),
            ("min_interval", Some(p.min_interval)),
            ("max_rtt", p.max_rtt),
        ])?;
        Ok(())
    }

    fn open(params: &mut Params) -> Open<'_> {
        Open {
            longest_rtt: Some(LongestRtt { name: "max_rtt", value: &mut params.max_rtt, usual: MAX_RTT }),
            time_constant: Some(("control_interval", &mut params.control_interval)),
            ..Open::default()
        }
    }

    fn new(params: &Params, link: &RouterView) -> Self {
        let capacity = link.known_capacity().bytes_per_sec();
        Self {
            params: *params,
            capacity,
            part: None,
            counted: Counted::default(),
            estimates: Estimates::default(),
            smoothed_spare: capacity,
            avg_rtt: params.control_interval.unwrap_or(Time::ZERO).as_secs_f64(),
            interval: params.first_interval_s(),
            found: None,
            known: false,
            decision: Decision::default(),
            min_queue: 0.0,
            persistent_queue: 0.0,
        }
    }

    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        match change {
            LinkChange::Params(params) => self.params = *params,
            LinkChange::Capacity(capacity) => self.capacity = capacity.bytes_per_sec(),
            LinkChange::Part { own, link } => {
                self.part = Some(Part { own: own.bytes_per_sec(), link: link.bytes_per_sec() });
            }
            LinkChange::Buffer(_) | LinkChange::Acked(_) => {}
        }
    }

    fn own_flows(&self) -> Option<OwnFlows> {
        let seen = self.known && self.estimates.cwnd_bytes > 0.0;
        seen.then(|| OwnFlows {
            window_bytes: self.estimates.cwnd_bytes,
            rtt: Time::from_secs_f64(self.interval),
        })
    }

    #[inline]
    fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>) {
        let size = f64::from(packet.size);
        let counted = &mut self.counted;
        counted.input_bytes += size;
        self.min_queue = self.min_queue.min(link.queue_bytes as f64);
        let Some(stamp) = packet.stamp else { return };
        counted.data_bytes += size;
        let header = Header::from(*stamp);
        let Some((weight, x, rtt)) = weigh(&header, size, self.params.max_rtt().as_secs_f64()) else {
            return;
        };
        counted.rtt += x * rtt;
        counted.cwnd += rtt * size; // X H_cwnd
        counted.all.inter_packet_s += x;
        counted.all.weights += weight;
        if packet.bits & B2 == 0 {
            counted.free.inter_packet_s += x;
            counted.free.weights += weight;
        }
    }

    #[inline]
    fn on_departure(&mut self, _: LinkView, packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        let size = f64::from(packet.size);
        let header = Header::from(*packet.stamp);
        let bottlenecked = *packet.bits & B2 != 0;
        let capacity = self.part.map_or(self.capacity, |part| part.link);
        *packet.bits = passed(*packet.bits, self.smoothed_spare < BOTTLENECK * capacity); // section 3.6.6
        let weight =
            weigh(&header, size, self.params.max_rtt().as_secs_f64()).map_or(0.0, |(weight, ..)| weight);
        let d = &mut self.decision;
        let share = d.positive + if bottlenecked { 0.0 } else { d.free_positive };
        let give = (share * weight).min(d.left_positive); // eq. 8
        let take = (d.negative * size).min(d.left_negative); // eq. 9
        if header.feedback_bytes < give - take {
            return; // deviation 3
        }
        d.left_positive -= give;
        d.left_negative -= take;
        *packet.stamp = Header { feedback_bytes: give - take, ..header }.into(); // eq. 10
        debug_assert!(d.left_positive >= 0.0 && d.left_negative >= 0.0, "more than TPF or TNF: {d:?}");
    }

    fn on_timer(&mut self, which: usize, link: LinkView) -> Time {
        if which == ESTIMATION {
            self.estimate();
            return link.now.saturating_add(Time::from_secs_f64(self.interval));
        }
        if self.avg_rtt > 0.0 && self.found.is_none() {
            self.found = Some(self.interval); // deviation 5
        }
        let queue = link.queue_bytes as f64;
        self.persistent_queue = self.min_queue.min(queue);
        self.min_queue = queue;
        let unknown = UNKNOWN.max(self.params.min_interval).as_secs_f64();
        let seconds = self.control_interval().unwrap_or(unknown);
        self.decide(seconds);
        link.now.saturating_add(Time::from_secs_f64(seconds))
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("avg_rtt_s", self.avg_rtt);
        report("avg_cwnd_bytes", self.estimates.cwnd_bytes);
        report("flows_estimate", self.estimates.flows);
        report("free_flows_estimate", self.estimates.free_flows);
        report("input_rate_bps", self.estimates.input_rate * 8.0);
        report("smoothed_spare_bps", self.smoothed_spare * 8.0);
        report("persistent_queue_bytes", self.persistent_queue);
        report("allocate_bytes", self.decision.allocate);
        report("free_bytes", self.decision.free);
        report("shuffle_bytes", self.decision.shuffle);
    }
}
