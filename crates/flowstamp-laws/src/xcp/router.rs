//! The XCP router: efficiency controller, fairness controller, and the residues that bound the feedback.
//!
//! Katabi, Handley, Rohrs 2002, section 3.5 and appendix A. Every control interval of `d` seconds, the average RTT:
//!
//! ```text
//!   F   = alpha (C - y) - beta Q / d                      eq. 1, divided by d: bytes/s
//!   h   = max(0, gamma y - |F|)                           eq. 2, shuffled traffic
//!   xi_p = (h + max( F, 0)) / sum X                       eq. 6    with X = rtt s / cwnd
//!   xi_n = (h + max(-F, 0)) / sum s                       eq. 9
//! ```
//!
//! Every packet gets, in throughput, `xi_p X - xi_n s` (eqs. 3, 4 and 7 divided by the flow's RTT), at most what
//! earlier routers wrote. Feedback is booked from two pools, `h + max(F, 0)` and `h + max(-F, 0)`. An empty pool
//! gives nothing more (appendix A's residues).
//!
//! On a link shared with TCP by windows ([`crate::share::Weights::Windows`], section 8.2), `C` is XCP's part `w_X c`
//! (eq. 14), so that `C - y` is `S_X`. `y` and `Q` are then those of XCP's own queue (eq. 13). The weights follow the
//! mean window of its flows, taken from their headers. Weighting by `X` counts each flow once: `sum (rtt s) / sum X`
//! (deviation 10).
//!
//! `C` is the capacity, `y` the input rate and `s` the packet size. `Q` is the persistent queue: the least that an
//! arriving packet sees within a propagation delay (section 3.5.1). `X` is the flow's inter-packet time in seconds;
//! the paper calls its sum `sum_rtt_by_cwnd`. In these terms the paper's window form and the Internet-Draft's
//! throughput form are one law with two [encodings](super::header::Encoding): the window form's feedback is the
//! throughput form's times the RTT in the header.
//!
//! A control packet of a macro-flow with `n` micro-flows (section 8.1, [`super::edge`]) stands for their window: its
//! `s` is `n H_cwnd`, except in `y`.
//!
//! Valid for 1 kb/s to 400 Gb/s and RTTs of 1 us to `max_rtt`; all state stays finite there.
//!
//! Deviations (paper says / we do / because):
//! 1. The residues bound feedback only after the packet that empties a pool / that packet gets just the rest /
//!    feedback then never exceeds the pools, not even by one packet's share.
//! 2. Nothing on packets whose `H_rtt` is zero / they count as input traffic, enter no sum, and get no increase /
//!    their window over RTT is unknown, but they do fill the link. The draft contradicts itself here.
//! 3. The interval is the average RTT / at least `min_interval` and at most `max_rtt`, and below the floor the
//!    interval stands for `d` in eq. 1 / the interval is then the delay of the loop; an average RTT of 1 us would
//!    need a million decisions per second.
//! 4. Nothing on an interval without data packets / `d` stays and nothing is handed out / the sums are empty, and
//!    spare bandwidth shows again in the next interval (section 3.5.3).
//! 5. Appendix A's listing lets `residue_neg -= feedback / H_rtt` follow every packet / it follows only packets from
//!    which an earlier router took / for others it would take twice for one packet. The Internet-Draft's listing
//!    books such packets differently, and its encoding follows that: links behind another bottleneck then carry more
//!    ([`Encoding::booked`]).
//! 6. The persistent queue is the least that arriving packets see / it also counts the queue when the search ends / a
//!    link without arrivals drains, and no packet sees it.
//! 7. Appendix A's listing omits the units and the maximum of `0.1 y - |F|`; equation 2 stands.
//! 8. The paper names no first interval (50 ms in the authors' ns-2 model) / it is `initial_interval`, the path's RTT
//!    where the scenario knows it. Else `d` is unknown: the law checks every millisecond and gives and takes nothing,
//!    and the first interval with RTTs only sets `d` / the arrivals of a millisecond do not measure `y` over `d`.
//! 9. The authors' ns-2 model decides at most every millisecond, the draft searches for the queue for at least 2 ms /
//!    `min_interval` and `min_queue_interval` are 10 us / at RTTs of 30 us, a millisecond makes the loop 33 times
//!    slower than the flows'.
//! 10. Section 8.2 does not say how the router knows the mean window / from the headers of an interval, as it knows
//!     `d` / PCP, its precursor, does so (Katabi and Handley 2001, eq. 4). For a flow with a price, this is the
//!     window that its headers show.
//! 11. Links are full duplex / packets that arrive over a medium shared by both directions are counted and stamped
//!     like those that leave, as in XCP-b (Abrantes and Ricardo 2006, section 5) / they use part of the stated
//!     capacity.
//! 12. Nothing on a bound of an interval's increases / `max_fill`, unset by default, bounds them to the room that this
//!     share of the buffer has beside the queue, as the authors' code of January 2002 does / it keeps flows that start
//!     together from overflowing a small buffer.
//! 13. The queue is drained; section 5.2 mentions a variant "around a target value" without a formula / with
//!     `target_queue` equation 1 counts the queue's distance from the target, `Q - C target` / the feedback is then zero
//!     at full use and at the target, and shuffling disturbs the queue instead of the utilisation.
//! 14. Section 6 names proportional fairness without a rule / the rule of [`super::fairness`] is ours / a flow's rate
//!     then rests at Kelly's allocation, whatever the links. A flow that starts on a full link grows by a tenth of its
//!     rate in an RTT, since increases follow rates.
//! 15. Section 6 names priority without a rule / levels share spare bandwidth alike, and shuffled traffic moves to the
//!     highest that wishes for more / spare bandwidth for a high level that another link holds back would stay unused.

use super::fairness::Fairness;
use super::header::Encoding;
use super::shares::{Intervals, MAX_RTT, Shares, Shuffle, check_max_weight};
use crate::negotiation;
use crate::queue::Limit;
use crate::router::{
    Gains, LinkChange, LinkView, MAX_TIMERS, OwnFlows, PacketIn, PacketOut, Room, RouterLaw, RouterTraits,
    RouterView,
};
use crate::units::Time;
use crate::{Open, Refused, check_times, within};

crate::params! {
    /// Constants of the control law.
    pub struct Params {
        /// Gain on spare bandwidth. Stable for 0 < alpha < pi / (4 sqrt 2) (theorem 1).
        pub alpha: f64 = 0.4, // Katabi 2002, section 3.5.1
        /// Gain on the persistent queue. Theorem 1 asks for alpha^2 sqrt 2.
        pub beta: f64 = 0.226, // Katabi 2002, section 3.5.1
        /// Share of the traffic that is shuffled every average RTT.
        pub gamma: f64 = 0.1, // Katabi 2002, section 3.5.2
        /// The fairness controller: `"min-max"`, `"proportional"`, or `"priority"` (section 6).
        pub fairness: Fairness = Fairness::MinMax, // Katabi 2002, section 3.5.2
        /// The first control interval, in which the router has no estimates and gives no feedback. Default: the mean
        /// propagation RTT of the flows through the link. If that is unknown, the interval lasts until packets carry an
        /// RTT.
        pub initial_interval: Option<Time> = None,
        /// The shortest control interval.
        pub min_interval: Time = Time::from_micros(10), // ours: deviation 9
        /// Largest RTT; longer RTTs count as this one. Default: 4 s, or three times the longest propagation RTT of the
        /// flows through the link if that is longer.
        pub max_rtt: Option<Time> = None,
        /// Time over which the least queue counts as persistent, in propagation delays; above 0. The paper has 1. The
        /// authors' ns-2 model and the Internet-Draft have 0.5, which counts more of a burst as persistent.
        pub queue_window: f64 = 1.0, // Katabi 2002, section 3.5.1
        /// Shortest time over which the persistent queue is measured.
        pub min_queue_interval: Time = Time::from_micros(10), // ours: deviation 9
        /// Limit of a packet's weight per byte, as a multiple of the last interval's mean; at least 1. It applies to
        /// all averages and to the feedback. Default: none, as in the paper, so packets weigh what their senders say.
        /// On Linux 16.
        pub max_weight: Option<f64> = None,
        /// The queueing delay around which the router holds the persistent queue, instead of draining it (section 5.2):
        /// full use of several congested links, at the price of this delay on each. Default: none, as
        /// in section 3.5.1.
        pub target_queue: Option<Time> = None,
        /// Limit of an interval's increases: the room that this share of the buffer has beside the queue; 0.001 to 1.
        /// Default: none, as in the paper. The authors' ns-2 code of January 2002 takes 0.6.
        pub max_fill: Option<f64> = None,
    }
}

/// State of the law on one link.
#[derive(Clone, Debug)]
pub struct Router<E> {
    params: Params,
    /// Bytes/s.
    capacity: f64,
    limit: Limit,
    packet_bytes: f64,
    shares: Shares<E>,
    /// `Q`, bytes.
    persistent_queue: f64,
    /// Least queue seen since the queue timer last fired, bytes.
    min_queue: f64,
}

/// `F`, the wanted change of throughput over an interval `d`, in bytes/s (eq. 1). `spare` is `C - y`, and `queue` is
/// `Q`, less the target if there is one.
#[inline]
#[must_use]
pub fn aggregate_feedback(alpha: f64, beta: f64, spare: f64, queue: f64, d: f64) -> f64 {
    alpha * spare - beta * queue / d
}

/// Index of the control-interval timer.
const CONTROL: usize = 0;
/// Index of the timer that ends a search for the persistent queue.
const QUEUE: usize = 1;

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
}

impl<E: Encoding> Router<E> {
    /// The residues: how much this interval may still give and take, in bytes/s.
    #[must_use]
    pub fn residues(&self) -> (f64, f64) {
        self.shares.residues()
    }

    /// The average RTT over flows, `d`, in seconds; zero while unknown.
    #[must_use]
    pub fn avg_rtt_s(&self) -> f64 {
        self.shares.avg_rtt_s()
    }

    /// Appendix A, second block.
    fn decide(&mut self, link: LinkView) {
        let p = &self.params;
        let closed = self.shares.close(&p.intervals());
        let spare = self.capacity - closed.input_rate;
        let target = p.target_queue.map_or(0.0, |delay| self.capacity * delay.as_secs_f64());
        let excess = self.persistent_queue - target; // deviation 13
        let aggregate = aggregate_feedback(p.alpha, p.beta, spare, excess, closed.delay);
        self.shares.hand_out(closed, aggregate, p.gamma, Shuffle::Rest);
        if let Some(share) = p.max_fill {
            self.shares.give_at_most(self.room(share, link) / self.shares.interval_s());
        }
    }

    /// Returns the room that this share of the buffer has beside the queue, in bytes.
    fn room(&self, share: f64, link: LinkView) -> f64 {
        let free = match self.limit {
            Limit::Bytes(bytes) => share * bytes as f64 - link.queue_bytes as f64,
            Limit::Packets(packets) => {
                (share * f64::from(packets) - f64::from(link.queue_packets)) * self.packet_bytes
            }
        };
        free.max(0.0)
    }
}

impl<E: Encoding> RouterLaw for Router<E> {
    type Params = Params;

    fn traits(p: &Params) -> RouterTraits {
        let mut first_timers = [None; MAX_TIMERS];
        first_timers[CONTROL] = Some(p.intervals().first());
        first_timers[QUEUE] = Some(p.min_queue_interval);
        RouterTraits {
            first_timers,
            gains: Some(Gains { alpha: p.alpha, beta: p.beta, shuffle: p.gamma }),
            over_medium: true, // deviation 11
            by_windows: Some(Room::Part),
            begins_with: &["initial_interval"],
            ..RouterTraits::DEFAULT
        }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("alpha", p.alpha, 0.0, 10.0)?;
        within("beta", p.beta, 0.0, 10.0)?;
        within("gamma", p.gamma, 0.0, 1.0)?;
        within("queue_window", p.queue_window, 0.001, 1000.0)?;
        check_max_weight(p.max_weight)?;
        p.max_fill.map_or(Ok(()), |share| within("max_fill", share, 0.001, 1.0))?;
        check_times([
            ("initial_interval", p.initial_interval),
            ("min_interval", Some(p.min_interval)),
            ("max_rtt", p.max_rtt),
            ("min_queue_interval", Some(p.min_queue_interval)),
            ("target_queue", p.target_queue),
        ])
    }

    fn open(params: &mut Params) -> Open<'_> {
        super::open(&mut params.max_rtt, &mut params.initial_interval)
    }

    fn new(params: &Params, link: &RouterView) -> Self {
        Self {
            params: *params,
            capacity: link.known_capacity().bytes_per_sec(),
            limit: link.limit,
            packet_bytes: f64::from(link.packet_bytes),
            shares: Shares::new(&params.intervals()).fair(params.fairness),
            persistent_queue: 0.0,
            min_queue: 0.0,
        }
    }

    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        match change {
            LinkChange::Params(params) => {
                if params.fairness != self.params.fairness {
                    self.shares = self.shares.clone().fair(params.fairness);
                }
                self.params = *params;
            }
            LinkChange::Capacity(capacity) => self.capacity = capacity.bytes_per_sec(),
            LinkChange::Part { .. } | LinkChange::Acked(_) => {}
            LinkChange::Buffer(limit) => self.limit = limit,
        }
    }

    fn own_flows(&self) -> Option<OwnFlows> {
        self.shares.own_flows()
    }

    #[inline]
    fn on_arrival(&mut self, link: LinkView, packet: PacketIn<'_>) {
        self.min_queue = self.min_queue.min(link.queue_bytes as f64);
        self.shares.count(packet, self.params.max_rtt());
    }

    /// Appendix A, third block, in throughput.
    #[inline]
    fn on_departure(&mut self, _: LinkView, mut packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        self.shares.stamp(&mut packet);
        *packet.bits = negotiation::passed(*packet.bits); // section 8.2
    }

    fn on_timer(&mut self, which: usize, link: LinkView) -> Time {
        let queue = link.queue_bytes as f64;
        if which == CONTROL {
            self.decide(link);
            return link.now.saturating_add(Time::from_secs_f64(self.shares.interval_s()));
        }
        self.persistent_queue = self.min_queue.min(queue);
        self.min_queue = queue;
        // The propagation delay: the average RTT without the local queueing delay (section 3.5.1).
        let avg_rtt = self.shares.avg_rtt_s();
        let rtt = if avg_rtt > 0.0 { avg_rtt } else { self.shares.interval_s() };
        let propagation = if self.capacity > 0.0 { rtt - queue / self.capacity } else { rtt };
        let wait = (propagation * self.params.queue_window).max(self.params.min_queue_interval.as_secs_f64());
        link.now.saturating_add(Time::from_secs_f64(wait))
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        self.shares.variables(self.persistent_queue, report);
    }
}
