//! The HPCC sender: it scales its window so that the busiest link of its path is used to the share `eta`.
//!
//! Li et al. 2019, algorithm 1. `U` is the largest of the path ([`super::router`]), `W` the window and `W^c` its
//! reference. Once per round trip, the ack of a packet sent after the last update replaces `W^c`:
//!
//! ```text
//!   U >= eta or incStage >= maxStage:   W = W^c / (U / eta) + W_AI;   once per RTT: W^c = W, incStage = 0
//!   else:                               W = W^c + W_AI;               once per RTT: W^c = W, incStage += 1
//!   pace                                R = W / T                                               line 27
//!   start                               W = B T                                          section 3.2
//!   W_AI                                = B T (1 - eta) / N                               section 3.3
//! ```
//!
//! `W^c` is the window of the round trip in which the acknowledged packets left. The law divides `W^c`, not the window
//! that earlier acks have changed. Each ack can therefore react, and the sender does not react twice to one queue.
//!
//! Routers know of congestion by their queues, and the sender repairs losses with selective acks without reducing its
//! window. The paper's fabric is lossless (section 4).
//!
//! Valid for 1 kb/s to 400 Gb/s and `T` from 1 us to 20 s. Flows whose RTT is above `T` get less than others.
//!
//! Deviations (paper says / we do / because):
//! 1. The sender computes `U` of each link (lines 1 to 10) / it reads the largest, as in HPCC-PINT / a stamp has a
//!    fixed size.
//! 2. `W_init` is that of the NIC's rate, which also bounds all rates / it is that of the slowest link of the path /
//!    access links here may be faster than routers, and a window of `B_NIC T` would then fill any buffer.
//! 3. `T` is a constant of the network / the default is 1.1 times the flows' mean RTT / the paper's 13 us suit its
//!    network only.
//! 4. `W_AI` is 80 B in section 5.1 / it follows from section 3.3 with N = 100, unless the scenario sets it / that
//!    formula gives 81 B at the paper's 100 Gb/s and 13 us, and suits other links as well.
//! 5. Line 22 updates at the first ack / the first ack begins the first round trip, as in the authors' ns-3 model /
//!    it answers a packet that left before any window was set by feedback.
//! 6. Nothing on a window above the path's / it is at most `B` times the longer of `T` and the least RTT / `W^c / U`
//!    has no bound on an idle path.
//! 7. A NIC sends while fewer bytes than `W` are in flight / the window is the next whole packet / packets are whole.

use super::{BASE_RTT, Header};
use crate::sender::{Ack, Congestion, FlowChange, FlowView, Pacing, Probes, SenderLaw, SenderTraits};
use crate::stamp::Stamp;
use crate::units::{Bytes, Rate, Ratio, Time};
use crate::{Open, Refused, check_times, within};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `eta`: target utilisation, above 0.
        pub eta: Ratio = Ratio::new(0.95), // section 5.1
        /// `maxStage`: round trips of additive increase before a multiplicative one.
        pub max_stage: u32 = 5, // section 5.1
        /// `T`: the base RTT, the same for all routers and senders of a network. Default: 1.1 times the flows' mean RTT; the
        /// paper has 9 us and 13 us.
        pub base_rtt: Option<Time> = None,
        /// `W_AI`: additive increase. Default: `B T (1 - eta) / N`; the paper has 80 B.
        pub w_ai: Option<Bytes> = None, // section 3.3
        /// `N`: number of flows for which the default of `w_ai` leaves no queue; at least 1.
        pub flows: f64 = 100.0, // deviation 4
    }
}

/// Returns `W`, and whether `U` scaled it (alg. 1 lines 11 to 20).
#[inline]
#[must_use]
pub fn window(reference: f64, utilization: f64, eta: f64, scales: bool, w_ai: f64) -> (f64, bool) {
    if utilization >= eta || scales {
        (reference / (utilization / eta) + w_ai, true) // line 13
    } else {
        (reference + w_ai, false) // line 17
    }
}

/// State of one flow. Windows are in bytes.
#[derive(Clone, Debug)]
pub struct Sender {
    packet: f64,
    eta: f64,
    max_stage: u32,
    /// `T`, seconds.
    base_rtt: f64,
    /// `W_AI`, if the scenario sets it, and `(1 - eta) / N`.
    w_ai: Option<f64>,
    ai_share: f64,
    /// `B` of the slowest link, bytes/s; zero while unknown.
    capacity: f64,
    /// `W`.
    window: f64,
    /// `W^c`.
    reference: f64,
    stage: u32,
    /// Delivered packets above which the reference is replaced; `None` before the first ack.
    round_end: Option<u32>,
}

impl Sender {
    /// `W`: the window in bytes, which may be less than a packet.
    #[must_use]
    pub const fn window(&self) -> f64 {
        self.window
    }

    fn begin(&mut self, window: f64) {
        (self.window, self.reference) = (window, window);
    }
}

impl SenderLaw for Sender {
    type Params = Params;

    fn traits(_: &Params) -> SenderTraits {
        // Utilisation says more than a mark.
        SenderTraits { ecn: false, knows_path: true, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("eta", p.eta.get(), 0.01, 1.0)?;
        check_times([("base_rtt", p.base_rtt)])?;
        within("flows", p.flows, 1.0, 1e9)
    }

    fn open(p: &mut Params) -> Open<'_> {
        super::open(&mut p.base_rtt)
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        let packet = f64::from(flow.packet_bytes);
        let window = (flow.initial_window * packet).max(packet);
        Self {
            packet,
            eta: p.eta.get(),
            max_stage: p.max_stage,
            base_rtt: p.base_rtt.unwrap_or(BASE_RTT).as_secs_f64(),
            w_ai: p.w_ai.map(Bytes::as_f64),
            ai_share: (1.0 - p.eta.get()) / p.flows,
            capacity: 0.0,
            window,
            reference: window,
            stage: 0,
            round_end: None,
        }
    }

    fn on_change(&mut self, change: FlowChange<'_, Params>) {
        if let FlowChange::Path(path) = change
            && let (Some(rate), None) = (path.rate, self.round_end)
        {
            self.capacity = rate.bytes_per_sec();
            self.begin((self.capacity * self.base_rtt).max(self.packet)); // deviation 2
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        libm::ceil(self.window / self.packet).max(1.0) * self.packet // deviation 7
    }

    #[inline]
    fn pacing(&self) -> Option<Pacing> {
        let rate = self.window / self.base_rtt; // line 27
        let rate = if self.capacity > 0.0 { rate.min(self.capacity) } else { rate };
        Some(Pacing { rate: Rate::from_bytes_per_sec(rate), alone: false, probes: Some(Probes::NONE) })
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let Header { utilization, capacity } = (*ack.stamp).into();
        if capacity <= 0.0 {
            return; // no router spoke
        }
        self.capacity = capacity;
        let sent = (ack.delivered - ack.newly_acked.min(ack.delivered)).saturating_add(ack.flight);
        let Some(round_end) = self.round_end else {
            self.round_end = Some(sent); // deviation 5
            return;
        };
        let round_over = ack.delivered > round_end; // line 22
        let longest = ack.min_rtt.as_secs_f64().max(self.base_rtt);
        let w_ai = self.w_ai.unwrap_or(capacity * self.base_rtt * self.ai_share);
        let scales = self.stage >= self.max_stage;
        let (next, scaled) = window(self.reference, utilization, self.eta, scales, w_ai);
        self.window = next.min(capacity * longest); // deviation 6
        if round_over {
            self.reference = self.window;
            self.stage = if scaled { 0 } else { self.stage + 1 };
            self.round_end = Some(sent); // line 24
        }
    }

    fn on_congestion(&mut self, _: Time, _: Congestion<'_>) {}

    #[inline]
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Header { utilization: 0.0, capacity: 0.0 }.into()
    }
}
