//! The XCP router: efficiency controller, fairness controller, and the residues that bound what is handed out.
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
//! and every packet gets, in throughput, `xi_p X - xi_n s` (eqs. 3, 4 and 7 divided by the flow's RTT), at most what
//! the routers before this one wrote. What is given is taken from two pools, `h + max(F, 0)` and `h + max(-F, 0)`;
//! an empty pool gives nothing more (appendix A's residues).
//!
//! On a link that it shares with TCP by windows ([`crate::share::Weights::Windows`], section 8.2) `C` is its part, `w_X c` (eq. 14), so
//! that `C - y` is `S_X`, and `y` and `Q` are of its own queue (eq. 13). The weights go by the mean window of its flows, which
//! their headers tell: each flow's counts once as `X` does, `sum (rtt s) / sum X` (deviation 10).
//!
//! `C` capacity, `y` input rate, `Q` persistent queue: the least seen by an arriving packet in a propagation delay
//! (section 3.5.1), `s` packet size. `X` is the flow's inter-packet time in seconds; the paper calls its sum
//! `sum_rtt_by_cwnd`. In these terms the paper's window form and the Internet-Draft's throughput form are one law
//! with two [encodings](super::header::Encoding): the window form's feedback is the throughput form's times the RTT in the header.
//!
//! A packet that speaks for `n` flows of a macro-flow between edges (section 8.1, [`super::edge`]) stands for their window: `s` is
//! `n H_cwnd` for it, but in `y`.
//!
//! Valid for 1 kb/s to 400 Gb/s and RTTs of 1 us to `max_rtt`; all state stays finite there.
//!
//! Deviations (paper says / we do / because):
//! 1. Feedback is bounded by the residues only after the packet that empties a pool / that packet gets just the rest /
//!    so that what is handed out never exceeds the pools, not even by one packet's share.
//! 2. Nothing on packets whose `H_rtt` is zero / they count as input traffic, in no sum, and are given no increase /
//!    their window over RTT is unknown, but they do fill the link. The draft contradicts itself here.
//! 3. The interval is the average RTT / at least `min_interval` and at most `max_rtt`, and below the floor the interval
//!    stands for `d` in eq. 1 / the interval is then the delay of the loop; an average RTT of 1 us would ask for a
//!    million decisions a second.
//! 4. Nothing on an interval without data packets / `d` stays, nothing is handed out / the sums are empty, and what is
//!    spare shows again in the next interval (section 3.5.3).
//! 5. Appendix A's listing lets `residue_neg -= feedback / H_rtt` follow every packet / only those that a router before
//!    took from / elsewhere it would take twice for one packet. What such packets take from the pools the Internet-Draft's listing says
//!    otherwise, and its encoding does as that says: links behind another bottleneck then carry more ([`Encoding::booked`]).
//! 6. The persistent queue is what arriving packets see / and the queue as the search ends / a link to which nothing
//!    comes any more drains, and no packet is there to see it.
//! 7. Appendix A's listing omits the units and the maximum of `0.1 y - |F|`; equation 2 stands.
//! 8. The paper names no first interval (50 ms in the authors' ns-2 model) / `initial_interval`, the path's RTT where the
//!    scenario knows it; else `d` is unknown, the law looks every millisecond, gives and takes nothing, and the first
//!    interval that brings RTTs sets `d` and no more / what comes in a millisecond is no measure of `y` over `d`.
//! 9. The authors' ns-2 model decides at most every millisecond, the draft seeks the queue for 2 ms at least / `min_interval`
//!    and `min_queue_interval` are 10 us / at RTTs of 30 us a millisecond is a loop 33 times slower than the flows'.
//! 10. Section 8.2 does not say how the router knows the mean window / as it knows `d`, by the headers of an interval / PCP,
//!     its precursor, does so (Katabi and Handley 2001, eq. 4). Where a flow has a price, it is the window that routers are shown.
//! 11. Links are full duplex / what comes in over a medium that both directions share is counted and stamped like what leaves, as
//!     XCP-b does it (Abrantes and Ricardo 2006, section 5) / it takes of the capacity that is told.

use super::header::Encoding;
use super::shares::{Intervals, MAX_RTT, Shares, check_max_weight, check_times};
use crate::negotiation;
use crate::router::{
    Gains, LinkChange, LinkView, MAX_TIMERS, OwnFlows, PacketIn, PacketOut, Room, RouterLaw, RouterTraits,
    RouterView,
};
use crate::units::Time;
use crate::{Open, Refused, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Constants of the control law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Gain on spare bandwidth. Stable for 0 < alpha < pi / (4 sqrt 2) (theorem 1).
    pub alpha: f64,
    /// Gain on the persistent queue; theorem 1 asks for alpha^2 sqrt 2.
    pub beta: f64,
    /// Share of the traffic that is shuffled every average RTT.
    pub gamma: f64,
    /// The first control interval, in which nothing is known and nothing is given. Unset, the mean propagation RTT of the
    /// flows through the link, or where that is not known, until packets carry one.
    pub initial_interval: Option<Time>,
    /// The shortest control interval.
    pub min_interval: Time,
    /// RTTs above this count as this much. Unset, 4 s, or three times the longest propagation RTT of the flows through the link where that is
    /// more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rtt: Option<Time>,
    /// The persistent queue is the least seen in this many propagation delays; above 0. The paper says 1; the authors'
    /// ns-2 model and the Internet-Draft take 0.5, which sees more of a burst as persistent.
    pub queue_window: f64,
    /// The shortest time over which the persistent queue is sought.
    pub min_queue_interval: Time,
    /// A packet's byte weighs at most this many times what the mean byte of the last interval weighed, in all that is averaged and given;
    /// at least 1. Unset, as in the paper, packets weigh what their senders say. On Linux 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_weight: Option<f64>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            alpha: 0.4,  // Katabi 2002, section 3.5.1
            beta: 0.226, // Katabi 2002, section 3.5.1
            gamma: 0.1,  // Katabi 2002, section 3.5.2
            initial_interval: None,
            min_interval: Time::from_micros(10), // ours: deviation 9
            max_rtt: None,
            queue_window: 1.0,                         // Katabi 2002, section 3.5.1
            min_queue_interval: Time::from_micros(10), // ours: deviation 9
            max_weight: None,
        }
    }
}

/// The law's state on one link.
#[derive(Clone, Debug)]
pub struct Router<E> {
    params: Params,
    /// Bytes/s.
    capacity: f64,
    shares: Shares<E>,
    /// `Q`, bytes.
    persistent_queue: f64,
    /// Least queue seen since the queue timer last fired, bytes.
    min_queue: f64,
}

/// `F`, the throughput that an interval `d` is to bring (eq. 1): `spare` is `C - y`.
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
    /// What may still be given and taken in this interval, bytes/s.
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
    fn decide(&mut self) {
        let p = &self.params;
        let closed = self.shares.close(&p.intervals());
        let spare = self.capacity - closed.input_rate;
        let aggregate = aggregate_feedback(p.alpha, p.beta, spare, self.persistent_queue, closed.delay);
        self.shares.hand_out(closed, aggregate, p.gamma);
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
        check_times([
            ("initial_interval", p.initial_interval),
            ("min_interval", Some(p.min_interval)),
            ("max_rtt", p.max_rtt),
            ("min_queue_interval", Some(p.min_queue_interval)),
        ])
    }

    fn open(params: &mut Params) -> Open<'_> {
        super::open(&mut params.max_rtt, &mut params.initial_interval)
    }

    fn new(params: &Params, link: &RouterView) -> Self {
        Self {
            params: *params,
            capacity: link.known_capacity().bytes_per_sec(),
            shares: Shares::new(&params.intervals()),
            persistent_queue: 0.0,
            min_queue: 0.0,
        }
    }

    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        match change {
            LinkChange::Params(params) => self.params = *params,
            LinkChange::Capacity(capacity) => self.capacity = capacity.bytes_per_sec(),
            LinkChange::Part { .. } => {}
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
            self.decide();
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
