//! The window of TCP: slow start, additive increase, multiplicative decrease (RFC 5681).
//!
//! ```text
//! cwnd < ssthresh:   cwnd += packet per ack                  slow start, section 3.1 eq. 2
//! else               cwnd += packet^2 / cwnd per ack         congestion avoidance, section 3.1 eq. 3
//! loss or ECN mark:  ssthresh = max(flight / 2, 2 packets), cwnd = ssthresh      section 3.1 eq. 4, section 3.2
//! timeout:           the same ssthresh, cwnd = 1 packet                          section 3.1
//! ```
//!
//! [`Reno`], [`NewReno`] and [`Sack`] are this one window; they differ in how the transport repairs losses.
//!
//! Deviations:
//!
//! 1. RFC 5681 eq. 4 takes half of what is in flight. We take half of the lesser of that and the window: just after a
//!    reduction more is in flight than the window allows, and a second loss must not raise it.
//! 2. RFC 5681 lets the window grow whatever is sent. We hold it while the application, not the window, limits the
//!    sender (RFC 7661's reason; Linux does the same).

use super::{Ack, FlowView, Recovery, SenderLaw};
use crate::stamp::Stamp;
use crate::units::{Ratio, Time};
use crate::{Refused, within};
use core::marker::PhantomData;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a scenario may set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// First slow-start threshold in packets; without one, slow start goes on until the first loss.
    pub initial_ssthresh: Option<f64>,
    /// The least slow-start threshold in packets.
    pub min_ssthresh: f64,
    /// The most that the window may grow to, in packets (ns-2's `window_`; the receiver's window).
    pub max_window: Option<f64>,
    /// Packets by which the window grows in each round trip of congestion avoidance.
    pub increase: f64,
    /// What a loss leaves of the window, from 0 to 1.
    pub decrease: Ratio,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            initial_ssthresh: None, // RFC 5681 section 3.1: arbitrarily high
            min_ssthresh: 2.0,      // RFC 5681 eq. 4
            max_window: None,
            increase: 1.0,             // RFC 5681 eq. 3
            decrease: Ratio::new(0.5), // RFC 5681 eq. 4
        }
    }
}

/// The range of windows in packets that every TCP is valid for.
pub(super) fn check_window(
    initial_ssthresh: Option<f64>,
    min_ssthresh: f64,
    max_window: Option<f64>,
) -> Result<(), Refused> {
    let given = [("initial_ssthresh", initial_ssthresh), ("max_window", max_window)];
    for (name, packets) in given.into_iter().chain([("min_ssthresh", Some(min_ssthresh))]) {
        within(name, packets.unwrap_or(1.0), 1.0, 1e9)?;
    }
    Ok(())
}

/// Which repair a [`Window`] asks the transport for.
pub trait Variant {
    /// It.
    const RECOVERY: Recovery;
}
/// Marks [`Reno`].
#[derive(Clone, Copy, Debug)]
pub enum RenoRepair {}
/// Marks [`NewReno`].
#[derive(Clone, Copy, Debug)]
pub enum NewRenoRepair {}
/// Marks [`Sack`].
#[derive(Clone, Copy, Debug)]
pub enum SackRepair {}
impl Variant for RenoRepair {
    const RECOVERY: Recovery = Recovery::Reno;
}
impl Variant for NewRenoRepair {
    const RECOVERY: Recovery = Recovery::NewReno;
}
impl Variant for SackRepair {
    const RECOVERY: Recovery = Recovery::Sack;
}

/// TCP with fast recovery that ends at the first new ack.
pub type Reno = Window<RenoRepair>;
/// TCP with fast recovery through partial acks.
pub type NewReno = Window<NewRenoRepair>;
/// TCP with selective acks.
pub type Sack = Window<SackRepair>;

/// TCP's congestion window, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Window<V> {
    cwnd: f64,
    ssthresh: f64,
    packet: f64,
    min_ssthresh: f64,
    max_window: f64,
    /// `increase * packet^2`, in bytes squared.
    increase: f64,
    decrease: f64,
    /// The timer expired and no ack has come since.
    timed_out: bool,
    variant: PhantomData<V>,
}

impl<V> Window<V> {
    /// The slow-start threshold in bytes.
    #[must_use]
    pub const fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    fn reduced(&self, flight: u32) -> f64 {
        let used = self.cwnd.min(f64::from(flight) * self.packet);
        (used * self.decrease).max(self.min_ssthresh) // eq. 4
    }
}

impl<V: Variant> SenderLaw for Window<V> {
    type Params = Params;

    fn check(p: &Params) -> Result<(), Refused> {
        check_window(p.initial_ssthresh, p.min_ssthresh, p.max_window)?;
        within("increase", p.increase, 0.0, 1e6)?;
        within("decrease", p.decrease.get(), 0.0, 1.0)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let packet = f64::from(flow.packet_bytes);
        let max_window = params.max_window.map_or(f64::MAX, |w| (w * packet).max(packet));
        Self {
            cwnd: (flow.initial_window * packet).max(packet).min(max_window),
            ssthresh: params.initial_ssthresh.map_or(f64::MAX, |s| s * packet),
            packet,
            min_ssthresh: params.min_ssthresh.max(1.0) * packet,
            max_window,
            increase: params.increase * packet * packet,
            decrease: params.decrease.get(),
            timed_out: false,
            variant: PhantomData,
        }
    }

    fn recovery(&self) -> Recovery {
        V::RECOVERY
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.timed_out = false;
        if ack.in_recovery || !ack.window_limited {
            return;
        }
        let step = if self.cwnd < self.ssthresh { self.packet } else { self.increase / self.cwnd };
        self.cwnd = (self.cwnd + step).min(self.max_window);
    }

    fn on_congestion(&mut self, _: Time, flight: u32) {
        self.ssthresh = self.reduced(flight);
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, _: Time, flight: u32) {
        // Section 3.1: a packet that times out again leaves ssthresh as it is.
        if !self.timed_out {
            self.ssthresh = self.reduced(flight);
        }
        self.timed_out = true;
        self.cwnd = self.packet;
    }

    #[inline]
    fn stamp(&self, _: Time, _: Time) -> Stamp {
        Stamp::default()
    }
}
