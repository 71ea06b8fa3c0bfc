//! DualPI2: two queues with coupled marks, so that L4S packets wait about a millisecond and L4S and classic flows get
//! equal rates (De Schepper, Briscoe & White, RFC 9332, appendix A).
//!
//! ```text
//! L4S queue: ECT(1) and CE (RFC 9331); classic queue: all others
//! every T:     p' as in PI2, from the delay of the classic queue
//! leaves the classic queue:  marked, or dropped if not ECN-capable, with p_C = p'^2
//! leaves the L4S queue:      marked with p_L = max(p'_L, k p')
//!   p'_L = 0 below a ramp about the threshold, 1 above it, of the time that the packet has waited
//! overload, k p' > 1:        classic packets are dropped, ECN-capable or not, and L4S ones as well with p_C
//! ```
//! The link serves the two queues by weighted fair queueing, which guarantees the classic queue a small share. The
//! rest of its share comes from the coupling, not from the scheduler. With k = 2 a classic and an L4S flow have about
//! the same rate: their windows are 1.22/sqrt(p_C) and 2/p_L packets.
//!
//! Valid for the same round trips as PI2.
//!
//! Deviations (RFC says / we do / because):
//! 1. A.1 leaves the scheduler open, from a time-shifted FIFO to weighted round robin / weighted fair queueing with
//!    Linux's weights of 1/10 and 9/10 / we have this scheduler, and it gives each backlogged queue the same share as
//!    round robin.
//! 2. `recur` counts probabilities up to one / we draw at random / as Linux does.
//! 3. The classic queue's delay is the waiting time of its head / it is the waiting time of the last packet to leave,
//!    zero for an empty queue; we use the longer of both queues, as Linux does / a law does not see the head, and
//!    unresponsive L4S flows then also count as an overload.
//! 4. A step at 1 ms (Linux) / the RFC's ramp from 0.8 to 1.2 ms / parameters can set both. An L4S packet with none
//!    behind it is not marked by its own queue (`Th_len`).
//! 5. p' always applies / p' drops or marks nothing while fewer than two packets wait / Linux has this rule.
//! 6. The RFC's text is not available to us / its pseudocode is from memory, compared with Linux's `sch_dualpi2` /
//!    see `pi2`.

use super::pi2::{Gains, Pi, USUAL_RTTS};
use super::{Arrival, Departure, Hears, Limit, QueueLaw, QueueView, TimeConstant, Verdict};
use crate::link::LinkView;
use crate::units::{Ratio, Time};
use crate::{Refused, within};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// The longest round trip for which the controller must be stable. `target`, `interval`, `alpha`, `beta` and
        /// `threshold` follow from it. Default: 100 ms, or the longest propagation RTT of the flows through the link if
        /// that is below 10 ms or above 100 ms.
        pub max_rtt: Option<Time> = None,
        /// Target delay of the classic queue. Default: 0.15 of `max_rtt`, 15 ms for 100 ms.
        pub target: Option<Time> = None,
        /// `T`: time between two updates. Default: 0.16 of `max_rtt`, 16 ms for 100 ms.
        pub interval: Option<Time> = None,
        /// `alpha`: what an update adds to p' for each second of delay above the target. Default: 0.016 s / `max_rtt`,
        /// 0.16 for 100 ms.
        pub alpha: Option<f64> = None,
        /// `beta`: what an update adds to p' for each second by which the delay grew. Default: 0.32 s / `max_rtt`, 3.2
        /// for 100 ms.
        pub beta: Option<f64> = None,
        /// Middle of the ramp: the delay at which the L4S queue marks a packet with probability 1/2. Default: 0.01 of
        /// `max_rtt`, 1 ms for 100 ms.
        pub threshold: Option<Time> = None,
        /// The ramp's length as a share of `threshold`; at 0 it is a step.
        pub ramp: Ratio = Ratio::new(0.4), // RFC 9332, appendix A.1: 0.8 to 1.2 ms
        /// `k`: coupling factor. L4S packets are marked with probability k p', classic packets with p'^2.
        pub coupling: f64 = 2.0, // RFC 9332, section 2.1
        /// Share of the link that the classic queue always gets.
        pub classic_share: Ratio = Ratio::new(0.1), // Linux
        /// Whether classic ECN-capable packets are marked instead of dropped.
        pub ecn: bool = true,
    }
}

impl Params {
    const fn gains(&self) -> Gains {
        let Self { max_rtt, target, interval, alpha, beta, .. } = *self;
        Gains { max_rtt, target, interval, alpha, beta }
    }
}

/// State of one of the queues.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    packets: u32,
    /// Waiting time of the packet that left last.
    sojourn: Time,
}

impl Queue {
    fn delay(self) -> Time {
        if self.packets > 0 { self.sojourn } else { Time::ZERO }
    }
}

/// State of the law.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    limit: Limit,
    pi: Pi,
    coupling: f64,
    ecn: bool,
    /// The ramp's ends, seconds.
    ramp: (f64, f64),
    l4s: Queue,
    classic: Queue,
}

impl DualPi2 {
    /// The controller.
    #[must_use]
    pub const fn controller(&self) -> &Pi {
        &self.pi
    }

    /// `p'_L`: the marking probability of the L4S queue itself, for a packet that waited `sojourn`.
    #[must_use]
    pub fn native(&self, sojourn: Time) -> f64 {
        let (from, to) = self.ramp;
        let waited = sojourn.as_secs_f64();
        if waited <= from {
            0.0
        } else if waited >= to {
            1.0
        } else {
            (waited - from) / (to - from)
        }
    }
}

impl QueueLaw for DualPi2 {
    type Params = Params;
    const HEARS: Hears = Hears { departures: true, ..Hears::ARRIVALS };

    fn check(p: &Params) -> Result<(), Refused> {
        p.gains().check()?;
        within("ramp", p.ramp.get(), 0.0, 2.0)?;
        within("coupling", p.coupling, 0.1, 100.0)?;
        within("classic_share", p.classic_share.get(), 0.001, 0.999)?;
        match p.threshold.filter(|t| !(Time::from_nanos(1)..=Time::from_secs(1000)).contains(t)) {
            Some(t) => Err(("threshold", format!("is {t}; it must be 1ns to 1000s"))),
            None => Ok(()),
        }
    }

    fn time_constant(params: &mut Params) -> Option<TimeConstant<'_>> {
        Some(TimeConstant { name: "max_rtt", value: &mut params.max_rtt, usual_for: Some(USUAL_RTTS) })
    }

    fn two_queues(params: &Params) -> Option<[f64; 2]> {
        let classic = params.classic_share.get();
        Some([1.0 - classic, classic])
    }

    fn new(params: &Params, view: &QueueView) -> Self {
        let max_rtt = params.max_rtt.unwrap_or(*USUAL_RTTS.end());
        let threshold = params.threshold.unwrap_or(max_rtt / 100).as_secs_f64();
        let half = 0.5 * params.ramp.get();
        Self {
            limit: view.limit,
            pi: Pi::new(&params.gains()),
            coupling: params.coupling,
            ecn: params.ecn,
            ramp: (threshold * (1.0 - half), threshold * (1.0 + half)),
            l4s: Queue::default(),
            classic: Queue::default(),
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn on_arrival(&mut self, packet: &Arrival, _: impl FnMut() -> f64) -> Verdict {
        if !packet.fits(self.limit) {
            return Verdict::Drop;
        }
        let queue = if packet.l4s { &mut self.l4s } else { &mut self.classic };
        queue.packets += 1;
        Verdict::Enqueue
    }

    fn on_departure(&mut self, packet: &Departure, mut uniform: impl FnMut() -> f64) -> Verdict {
        let queue = if packet.l4s { &mut self.l4s } else { &mut self.classic };
        queue.packets = queue.packets.saturating_sub(1);
        queue.sojourn = packet.sojourn;
        let alone = queue.packets == 0;
        // With this packet, at least two wait.
        let coupled = packet.queue_packets >= 1;
        if packet.l4s {
            let native = if alone { 0.0 } else { self.native(packet.sojourn) };
            let coupling = if coupled { self.coupling } else { 0.0 };
            self.pi.scalable(coupling, native, uniform)
        } else if coupled {
            self.pi.classic(self.coupling, self.ecn && packet.ecn_capable, uniform())
        } else {
            Verdict::Enqueue
        }
    }

    fn first_timer(&self) -> Option<Time> {
        Some(self.pi.interval())
    }

    fn on_timer(&mut self, link: LinkView) -> Time {
        self.pi.update(self.classic.delay().max(self.l4s.delay()).as_secs_f64());
        link.now.saturating_add(self.pi.interval())
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("base_probability", self.pi.probability());
        report("classic_delay_s", self.classic.delay().as_secs_f64());
        report("l4s_delay_s", self.l4s.delay().as_secs_f64());
    }
}
