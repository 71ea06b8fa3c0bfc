//! Data Center TCP: a window that shrinks in proportion to the share of marked packets (RFC 8257; Alizadeh et al.
//! 2010).
//!
//! ```text
//! switch:    mark a packet that finds more than K packets queued               2010 section 3.1: `red` with `step`
//! receiver:  ECE in the acks of marked packets                         RFC 8257 section 3.2: [`Echo::PerPacket`]
//! window:    all that is sent until the first packet of the next is acknowledged
//!   M     = packets marked / packets acknowledged                      RFC 8257 section 3.3 step 5
//!   alpha = (1 - g) alpha + g M              once per window           RFC 8257 section 3.3 step 6, 2010 eq. 1
//! mark:      cwnd = cwnd (1 - alpha/2)       once per window           RFC 8257 section 3.3 step 9, 2010 eq. 2
//! else:      as TCP: slow start, a packet per round trip, half of the window after a loss       RFC 8257 sections 3.4, 3.5
//! ```
//!
//! Valid where K is above (C RTT)/7 (2010 section 3.4) and g below 1.386 / sqrt(2 (C RTT + K)) (2010 eq. 15).
//!
//! Deviations (RFC says / we do / because):
//! 1. Section 3.3 counts bytes / we count packets / all packets of a flow have one size, except the last.
//! 2. Section 3.3 ends a window when the cumulative ack passes the `SND.NXT` of its start / it ends when as many
//!    packets are delivered as had been sent at its start / without a loss that is the same; with a loss and
//!    selective acks the window need not wait for the repair.
//! 3. Section 3.3 recommends g = 1/16 and section 4.2 the first alpha 1 / so do we, and the least window is TCP's two
//!    packets / the paper's incast experiment needs nothing else.

use super::window::{Growth, Window, window_params};
use crate::sender::{Ack, Echo, FlowView, SenderTraits};
use crate::units::{Rate, Ratio, Time};
use crate::{Refused, within};

window_params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `g`: the weight of a window's marks in the estimate, above 0.
        pub g: Ratio = Ratio::new(1.0 / 16.0), // RFC 8257 section 4.2
        /// `alpha` until the first window has ended.
        pub initial_alpha: Ratio = Ratio::new(1.0), // RFC 8257 section 4.2
        /// Whether packets carry the L4S identifier ECT(1) (RFC 9331), for switches with a queue for L4S.
        pub l4s: bool = false, // RFC 8257 section 3: ECT, as RFC 3168 has it
    }
}

/// Returns the least `K` in bytes that keeps a link of this rate used: a seventh of the bandwidth-delay product
/// (2010 eq. 13).
#[must_use]
pub fn least_threshold(rate: Rate, rtt: Time) -> f64 {
    rate.bytes_per_sec() * rtt.as_secs_f64() / 7.0
}

/// Data Center TCP: TCP's growth with a decrease by the share of marks.
pub type Dctcp = Window<Marked>;

/// Estimate of the share of marked packets.
#[derive(Clone, Copy, Debug)]
pub struct Marked {
    g: f64,
    alpha: f64,
    /// Packets acknowledged in the running window.
    acked: u32,
    marked: u32,
    /// The running window ends when more packets than this are delivered.
    window_end: u32,
    /// Packet size squared, bytes^2: TCP's increase per ack times the window.
    increase: f64,
}

impl Marked {
    /// `alpha`: the estimated share of marked packets, 0 to 1.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl Growth for Marked {
    type Params = Params;

    fn traits(p: &Params) -> SenderTraits {
        SenderTraits { echo: Echo::PerPacket, l4s: p.l4s, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("g", p.g.get(), 1e-6, 1.0)?;
        within("initial_alpha", p.initial_alpha.get(), 0.0, 1.0)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let packet = f64::from(flow.packet_bytes);
        let (g, alpha) = (params.g.get(), params.initial_alpha.get());
        Self { g, alpha, acked: 0, marked: 0, window_end: 0, increase: packet * packet }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.acked += ack.newly_acked;
        self.marked += ack.marked;
        if ack.delivered > self.window_end {
            let share = f64::from(self.marked) / f64::from(self.acked); // step 5
            self.alpha += self.g * (share - self.alpha); // step 6
            self.window_end = ack.delivered - ack.newly_acked + ack.flight; // step 7
            (self.acked, self.marked) = (0, 0); // step 8
        }
    }

    #[inline]
    fn step(&mut self, cwnd: f64, _: &Ack<'_>) -> f64 {
        self.increase / cwnd // RFC 5681 eq. 3
    }

    fn after_mark(&mut self, _: Time, cwnd: f64, _: f64) -> f64 {
        cwnd * (1.0 - 0.5 * self.alpha) // step 9
    }

    fn after_loss(&mut self, _: Time, used: f64) -> f64 {
        0.5 * used // RFC 5681 eq. 4
    }
}
