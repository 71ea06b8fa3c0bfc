//! The window of Scalable TCP (Kelly 2003): it grows and shrinks by fixed shares of itself.
//!
//! ```text
//! cwnd > lwnd:    ack: cwnd += a packets, a = 0.01      loss: cwnd -= b cwnd, b = 0.125
//! cwnd <= lwnd:   TCP's: a packet per round trip, half of the window       the legacy window
//! ```
//!
//! After a loss the window needs ln(1 - b) / -ln(1 + a) = 13.4 round trips to recover, at any rate: 2.7 s at 200 ms.
//! One loss in 1/p packets gives a mean window of about (a/b) / p. This equals TCP's sqrt(1.5 / p) slightly above 16
//! packets, which is why `lwnd` is 16.
//!
//! Valid for windows of 1 to 10^9 packets.
//!
//! Deviations (paper says / we do / because):
//! 1. The decrease is ceil(b cwnd) packets / it is b cwnd / windows here are not whole packets.
//! 2. b applies to the window / it applies to the lesser of the window and the packets in flight; the threshold after
//!    a timeout too / as in `window.rs`, deviation 1.
//! 3. The window may grow even when it is not used / it does not grow while the application limits the sender / as in
//!    `window.rs`, deviation 2.

use super::window::{Growth, Window, window_params};
use crate::sender::{Ack, FlowView};
use crate::units::{Ratio, Time};
use crate::{Refused, within};

window_params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// `a`: packets by which an ack opens the window.
        pub increase: f64 = 0.01, // Kelly 2003
        /// `b`: the share of the window that a loss takes.
        pub decrease: Ratio = Ratio::new(0.125), // Kelly 2003
        /// `lwnd` in packets. Up to this window the law is TCP's.
        pub legacy_window: f64 = 16.0, // Kelly 2003
    }
}

/// Scalable TCP: a window that changes by shares of itself.
pub type Scalable = Window<Shares>;

/// State of Scalable TCP's growth.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    packet: f64,
    /// Bytes per ack.
    increase: f64,
    decrease: f64,
    /// Bytes.
    legacy_window: f64,
}

impl Growth for Shares {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        within("increase", p.increase, 0.0, 1.0)?; // no faster than slow start
        within("decrease", p.decrease.get(), 0.0, 1.0)?;
        within("legacy_window", p.legacy_window, 0.0, 1e9)
    }

    fn new(p: &Params, flow: &FlowView) -> Self {
        let packet = f64::from(flow.packet_bytes);
        Self {
            packet,
            increase: p.increase * packet,
            decrease: p.decrease.get(),
            legacy_window: p.legacy_window * packet,
        }
    }

    #[inline]
    fn step(&mut self, cwnd: f64, _: &Ack<'_>) -> f64 {
        if cwnd > self.legacy_window { self.increase } else { self.packet * self.packet / cwnd }
    }

    fn after_loss(&mut self, _: Time, used: f64) -> f64 {
        if used > self.legacy_window { used * (1.0 - self.decrease) } else { 0.5 * used }
    }
}
