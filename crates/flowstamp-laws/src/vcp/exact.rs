//! VCP as section V models it: headers carry the load factor instead of its code, and one law covers all loads.
//!
//! Xia and others 2008, section V, the MIAIMD model.
//!
//! ```text
//!   dw/dt  = (xi(rho) w + alpha) / T                                        eq. 9, w in packets
//!   xi(rho) = kappa (1 - rho) / rho                                         eq. 10
//!   rho    = the largest on the path of lambda / (gamma C t_rho)            eqs. 11 and 15
//!   gamma  = gamma + step sgn(U* - U)      rarely                           eq. 14, U the utilisation
//! ```
//!
//! Stable for `kappa <= 1/2` (theorem 1). In equilibrium `rho = 1 + alpha / (kappa gamma P)`, where `P` is the flow's
//! share of the bandwidth-delay product in packets. The utilisation then exceeds `gamma` by `alpha / (kappa P)`,
//! which equation 14 corrects.
//!
//! Deviations (paper says / we do / because):
//! 1. A fluid whose RTTs are all `T` / the window changes per ack, scaled with `x = min(rtt / t_rho, 2.5)` as
//!    equation 6 scales VCP, and `alpha` with `x^2` as in equation 8; the multiplicative part of a packet's ack adds
//!    at most a packet and removes at most half of one / a load factor is `t_rho` old, so `T` here is `t_rho`; where
//!    another link than the router's limits the flow, the RTT grows with the window.
//! 2. Nothing on `rho` of zero / `xi` is at most 1 per `t_rho` / equation 10 has no bound there.
//! 3. Equation 11 has no queue term / the queue counts as in equation 1, by `k_q` / a queue built while the load was
//!    above 1 would otherwise stay; in equilibrium there is none.
//! 4. `gamma` changes on a time scale much larger than an RTT / it changes every 10 `t_rho` by the mean utilisation
//!    since the last change, between half and twice its first value / on an idle link it would grow without bound.

use super::router::Meter;
use super::{T_RHO, growth};
use crate::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterTraits, RouterView};
use crate::sender::{Ack, Congestion, FlowView, SenderLaw};
use crate::stamp::{Stamp, StampLaw};
use crate::units::{Ratio, Time};
use crate::{Open, Refused, check_times, within};

/// The header: the load factor of the busiest link so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// `rho`; zero before the first router.
    pub load: f64,
}

/// A load is a state: an ack for several packets carries the newest.
impl StampLaw for Header {}

impl Header {
    /// Reads the header from a stamp.
    #[must_use]
    pub const fn read(stamp: &Stamp) -> Self {
        Self { load: stamp.0[0] }
    }

    /// Writes the header to a stamp.
    #[must_use]
    pub const fn write(self) -> Stamp {
        Stamp([self.load, 0.0, 0.0])
    }
}

crate::params! {
    /// Parameters of the router that a scenario may set.
    pub struct RouterParams {
        /// `t_rho`: time over which a load factor is measured, the same for all routers and senders of a network. Default: 2.5 times
        /// the flows' mean RTT.
        pub t_rho: Option<Time> = None,
        /// `k_q`: share of the queue that counts as load.
        pub k_q: f64 = 0.5, // section III-B
        /// `gamma`: target utilisation, which `step` then changes.
        pub gamma: Ratio = Ratio::new(0.98), // section III-B
        /// `U*`: target utilisation of equation 14.
        pub target: Ratio = Ratio::new(0.98), // `gamma` as VCP has it
        /// Step by which `gamma` changes; 0 keeps it constant.
        pub step: Ratio = Ratio::new(0.01), // section V, eq. 14
    }
}

impl RouterParams {
    fn t_rho(&self) -> Time {
        self.t_rho.unwrap_or(T_RHO)
    }
}

/// Packets that a round trip of `x` times `t_rho` adds to a window (eqs. 8 and 9).
#[inline]
#[must_use]
pub fn addition(alpha: f64, x: f64) -> f64 {
    alpha * x * x
}

/// The next `gamma` (eq. 14) after `used` bytes of traffic, where the target is `wanted` bytes. `first` is its first
/// value (deviation 4).
#[inline]
#[must_use]
pub fn adjusted(gamma: f64, used: f64, wanted: f64, step: f64, first: f64) -> f64 {
    let step = if used < wanted { step } else { -step };
    (gamma + step).clamp(0.5 * first, 2.0 * first)
}

/// Number of load factors between changes of `gamma` (deviation 4).
const INTERVALS_PER_STEP: u32 = 10;

/// State of the law on one link.
#[derive(Clone, Debug)]
pub struct Router {
    params: RouterParams,
    meter: Meter,
    /// `gamma`.
    gamma: f64,
    /// Bytes that arrived since `gamma` last changed, and the intervals since then.
    arrived: f64,
    intervals: u32,
}

impl RouterLaw for Router {
    type Params = RouterParams;

    fn traits(p: &RouterParams) -> RouterTraits {
        RouterTraits {
            first_timers: [Some(p.t_rho()), None],
            acks_first: true,
            begins_with: &["t_rho"],
            ..RouterTraits::DEFAULT
        }
    }

    fn check(p: &RouterParams) -> Result<(), Refused> {
        check_times([("t_rho", p.t_rho)])?;
        within("k_q", p.k_q, 0.0, 100.0)?;
        within("gamma", p.gamma.get(), 0.01, 1.0)?;
        within("target", p.target.get(), 0.01, 1.0)?;
        within("step", p.step.get(), 0.0, 0.1)
    }

    fn open(p: &mut RouterParams) -> Open<'_> {
        super::open(&mut p.t_rho)
    }

    fn new(params: &RouterParams, link: &RouterView) -> Self {
        let gamma = params.gamma.get();
        Self { params: *params, meter: Meter::new(link), gamma, arrived: 0.0, intervals: 0 }
    }

    fn on_change(&mut self, change: LinkChange<'_, RouterParams>) {
        match change {
            LinkChange::Params(params) => {
                self.params = *params;
                self.gamma = params.gamma.get();
            }
            LinkChange::Capacity(capacity) => self.meter.capacity = capacity.bytes_per_sec(),
            LinkChange::Part { .. } | LinkChange::Buffer(_) | LinkChange::Acked(_) => {}
        }
    }

    #[inline]
    fn on_arrival(&mut self, _: LinkView, packet: PacketIn<'_>) {
        self.meter.input += f64::from(packet.size);
    }

    #[inline]
    fn on_departure(&mut self, _: LinkView, packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        let load = Header::read(packet.stamp).load.max(self.meter.load); // eq. 15
        *packet.stamp = Header { load }.write();
    }

    fn on_timer(&mut self, _: usize, link: LinkView) -> Time {
        let p = &self.params;
        let t_rho = p.t_rho();
        self.arrived += self.meter.input;
        self.intervals += 1;
        self.meter.sample(1.0, link.queue_bytes);
        self.meter.measure(p.k_q, self.gamma, t_rho);
        if self.intervals == INTERVALS_PER_STEP {
            let could = self.meter.capacity * t_rho.as_secs_f64() * f64::from(INTERVALS_PER_STEP);
            let wanted = p.target.get() * could;
            self.gamma = adjusted(self.gamma, self.arrived, wanted, p.step.get(), p.gamma.get());
            (self.arrived, self.intervals) = (0.0, 0);
        }
        link.now.saturating_add(t_rho)
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("load_factor", self.meter.load);
        report("target_utilization", self.gamma);
    }
}

crate::params! {
    /// Parameters of the sender that a scenario may set.
    pub struct Params {
        /// `t_rho`, the same for all routers and senders of a network. Default: 2.5 times the flows' mean RTT.
        pub t_rho: Option<Time> = None,
        /// `kappa`: gain of the multiplicative increase and decrease; stable up to a half.
        pub kappa: f64 = 0.25, // section III-C
        /// `alpha`: packets that a round trip of `t_rho` adds.
        pub alpha: f64 = 1.0, // section III-C
    }
}

/// State of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Bytes.
    cwnd: f64,
    packet: f64,
    /// Seconds.
    t_rho: f64,
    kappa: f64,
    alpha: f64,
}

impl SenderLaw for Sender {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        check_times([("t_rho", p.t_rho)])?;
        within("kappa", p.kappa, 1e-6, 100.0)?;
        within("alpha", p.alpha, 0.0, 1e6)
    }

    fn open(p: &mut Params) -> Open<'_> {
        super::open(&mut p.t_rho)
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        let packet = f64::from(flow.packet_bytes);
        Self {
            cwnd: (flow.initial_window * packet).max(packet),
            packet,
            t_rho: p.t_rho.unwrap_or(T_RHO).as_secs_f64(),
            kappa: p.kappa,
            alpha: p.alpha,
        }
    }

    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let load = Header::read(ack.stamp).load;
        let xi = if load > 0.0 { growth(self.kappa, load).min(1.0) } else { 1.0 }; // eq. 10, deviation 2
        let x = (ack.srtt.as_secs_f64() / self.t_rho).min(2.5);
        let window = self.cwnd / self.packet;
        let added = (xi * x).clamp(-0.5, 1.0) + addition(self.alpha, x) / window; // eq. 9, deviation 1
        if added > 0.0 && (ack.in_recovery || !ack.window_limited) {
            return;
        }
        self.cwnd = (self.cwnd + f64::from(ack.newly_acked) * added * self.packet).max(self.packet);
    }

    fn on_congestion(&mut self, _: Time, sign: Congestion<'_>) {
        self.cwnd = sign.halve(self.cwnd, self.packet);
    }

    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Header { load: 0.0 }.write()
    }
}
