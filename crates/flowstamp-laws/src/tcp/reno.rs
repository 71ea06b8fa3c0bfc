//! The window of TCP: slow start, additive increase, multiplicative decrease (RFC 5681).
//!
//! ```text
//! cwnd < ssthresh:   cwnd += packet per ack                  slow start, section 3.1 eq. 2
//! else               cwnd += packet^2 / cwnd per ack         congestion avoidance, section 3.1 eq. 3
//! loss or ECN mark:  ssthresh = max(flight / 2, 2 packets), cwnd = ssthresh      section 3.1 eq. 4, section 3.2
//! timeout:           the same ssthresh, cwnd = 1 packet                          section 3.1
//! ```
//!
//! [`Reno`], [`NewReno`] and [`Sack`] are this one law; they differ in how the transport repairs losses.
//! [`super::window`] holds the part that all growth laws share, and its deviations.

use super::window::{Growth, Window, window_params};
use crate::sender::{Ack, FlowView, Recovery, SenderTraits};
use crate::units::{Ratio, Time};
use crate::{Refused, within};
use core::marker::PhantomData;

window_params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Packets by which the window grows in each round trip of congestion avoidance.
        pub increase: f64 = 1.0, // RFC 5681 eq. 3
        /// Share of the window that a loss leaves, from 0 to 1.
        pub decrease: Ratio = Ratio::new(0.5), // RFC 5681 eq. 4
    }
}

/// The loss recovery that a variant asks the transport for.
pub trait Variant {
    /// The transport's loss recovery.
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
pub type Reno = Window<Additive<RenoRepair>>;
/// TCP with fast recovery through partial acks.
pub type NewReno = Window<Additive<NewRenoRepair>>;
/// TCP with selective acks.
pub type Sack = Window<Additive<SackRepair>>;

/// TCP's own growth: by default one packet per round trip, and half of the window after a loss.
#[derive(Clone, Copy, Debug)]
pub struct Additive<V> {
    /// `increase * packet^2`, in bytes squared.
    increase: f64,
    decrease: f64,
    variant: PhantomData<V>,
}

impl<V: Variant> Growth for Additive<V> {
    type Params = Params;

    fn traits(_: &Params) -> SenderTraits {
        SenderTraits { recovery: V::RECOVERY, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        within("increase", p.increase, 0.0, 1e6)?;
        within("decrease", p.decrease.get(), 0.0, 1.0)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        let packet = f64::from(flow.packet_bytes);
        Self {
            increase: params.increase * packet * packet,
            decrease: params.decrease.get(),
            variant: PhantomData,
        }
    }

    #[inline]
    fn step(&mut self, cwnd: f64, _: &Ack<'_>) -> f64 {
        self.increase / cwnd // eq. 3
    }

    fn after_loss(&mut self, _: Time, used: f64) -> f64 {
        used * self.decrease // eq. 4
    }
}
