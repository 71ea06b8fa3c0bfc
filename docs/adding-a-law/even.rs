//! Even: a router that gives all flows one rate, which follows from the load of its link, in RCP's header.
//!
//! ```text
//!   z = y / (eta C)                  eq. 1    load factor: input rate over the share of the capacity to be used
//!   R = R (1 + alpha (1 - z))        eq. 2    every T, at most C, at least one packet per T
//!   rate in packet = min(it, R)      eq. 3    so that the slowest router on the path decides
//! ```
//!
//! The load factor is that of ERICA (Jain and others, ATM Forum 96-1172, 1996), which keeps a rate for each flow. One
//! rate for all flows is RCP's idea. Near z = 1, with d intervals from a decision to its effect, the loop is stable for
//! alpha < 2 cos(d pi / (2 d + 1)): 0.618 at d = 2. T should therefore be no shorter than the round-trip times.
//!
//! Deviations (the equations say / we do / because):
//! 1. R follows from any load / an interval without input leaves R / an idle link says nothing about the number of
//!    flows that come next.
//! 2. R may fall by any factor / it falls at most by half in an interval / a burst of first windows is no load.

use crate::rcp::header::Header;
use crate::router::{LinkChange, LinkView, PacketIn, PacketOut, RouterLaw, RouterTraits, RouterView};
use crate::units::{Ratio, Time};
use crate::{Refused, within};

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `T`: time between decisions, no shorter than the flows' RTTs.
        pub interval: Time = Time::from_millis(100),
        /// `eta`: the share of the capacity to be used; the rest drains the queue.
        pub target: Ratio = Ratio::new(0.95), // ERICA, target utilisation
        /// `alpha`: the share of a deviation of the load that one decision corrects.
        pub gain: f64 = 0.4, // two thirds of the bound above
    }
}

/// The law's state on one link. Rates are in bytes/s.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    capacity: f64,
    rate: f64,
    /// Bytes of all packets that have arrived since the last decision.
    input_bytes: f64,
    packet_bytes: f64,
    /// `z` of the last decision, for probes.
    load: f64,
}

impl RouterLaw for Router {
    type Params = Params;

    fn traits(params: &Params) -> RouterTraits {
        RouterTraits { first_timers: [Some(params.interval), None], ..RouterTraits::DEFAULT }
    }

    fn check(params: &Params) -> Result<(), Refused> {
        let interval = params.interval;
        within("interval", interval.as_secs_f64(), 1e-6, 1e6)
            .map_err(|(name, _)| (name, format!("is {interval}; it must be 1us to 1000000s")))?;
        within("target", params.target.get(), 0.01, 1.0)?;
        within("gain", params.gain, 0.0, 2.0)
    }

    fn new(params: &Params, link: &RouterView) -> Self {
        let capacity = link.known_capacity().bytes_per_sec();
        let packet_bytes = f64::from(link.packet_bytes);
        Self { params: *params, capacity, rate: capacity, input_bytes: 0.0, packet_bytes, load: 0.0 }
    }

    fn on_arrival(&mut self, _: LinkView, packet: PacketIn<'_>) {
        self.input_bytes += f64::from(packet.size);
    }

    fn on_departure(&mut self, _: LinkView, packet: PacketOut<'_>, _: impl FnMut() -> f64) {
        let header = Header::from(*packet.stamp);
        *packet.stamp = Header { rate: header.rate.min(self.rate), ..header }.into(); // eq. 3
    }

    fn on_timer(&mut self, _: usize, link: LinkView) -> Time {
        let (interval_s, target) =
            (self.params.interval.as_secs_f64(), self.params.target.get() * self.capacity);
        if self.input_bytes > 0.0 && target > 0.0 {
            self.load = self.input_bytes / interval_s / target; // eq. 1
            let growth = 1.0 + self.params.gain * (1.0 - self.load); // eq. 2
            self.rate *= growth.max(0.5); // deviation 2
            self.rate = self.rate.min(self.capacity).max(self.packet_bytes / interval_s);
        }
        self.input_bytes = 0.0;
        link.now.saturating_add(self.params.interval)
    }

    fn on_change(&mut self, change: LinkChange<'_, Params>) {
        match change {
            LinkChange::Params(params) => self.params = *params,
            LinkChange::Capacity(capacity) => self.capacity = capacity.bytes_per_sec(),
            LinkChange::Part { .. } | LinkChange::Buffer(_) | LinkChange::Acked(_) => {}
        }
    }

    fn variables(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("rate_bps", self.rate * 8.0);
        report("load", self.load);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    /// Eq. 2 with n flows that obey: the load rests at 1, so that each flow has eta C / n.
    #[test]
    fn flows_share_the_target() {
        let capacity = Rate::from_mbps(80.0); // 10^6 bytes in an interval
        let link = LinkView { now: Time::ZERO, queue_bytes: 0, queue_packets: 0 };
        let mut router = Router::new(&Params::default(), &RouterView::of(capacity));
        for _ in 0..60 {
            let flow_bytes = (router.rate * 0.1) as u32;
            for _ in 0..5 {
                router.on_arrival(link, PacketIn::of(flow_bytes, None));
            }
            router.on_timer(0, link);
        }
        assert!((router.rate / (0.95 * 1e7 / 5.0) - 1.0).abs() < 0.01, "{router:?}");
        assert!((router.load - 1.0).abs() < 0.01, "{router:?}");
    }
}
