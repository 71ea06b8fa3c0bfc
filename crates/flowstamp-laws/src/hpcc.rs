//! HPCC, High Precision Congestion Control (Li et al., SIGCOMM 2019): routers tell how much of each link is in use,
//! and senders set their windows so that the busiest link of their path is nearly full.
//!
//! The paper's packets collect four values at each hop (in-band network telemetry), and the sender computes the
//! utilisation `U` of each link. A stamp has a fixed size. Here routers compute `U` and packets carry the largest, as
//! in HPCC-PINT (Ben Basat et al., SIGCOMM 2020).

pub mod router;
pub mod sender;

pub use router::Router;
pub use sender::Sender;

use crate::stamp::{Stamp, StampLaw};
use crate::units::Time;
use crate::{AgreedTime, Open};

/// Default of `T` if the paths are unknown: the value of the paper's simulations (section 5.1).
pub const BASE_RTT: Time = Time::from_micros(13);

/// Default of `T` over the flows' mean RTT, if the paths are known: "slightly greater" than the RTT (section 3.2).
pub const BASE_RTT_PER_RTT: f64 = 1.1;

/// HPCC's header: utilisation of the busiest link so far, and capacity of the slowest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// `U` of the busiest link; zero before the first router.
    pub utilization: f64,
    /// `B` of the slowest link in bytes/s; zero before the first router.
    pub capacity: f64,
}

/// Both fields are states: an ack for several packets carries the newest.
impl StampLaw for Header {}

impl From<Stamp> for Header {
    #[inline]
    fn from(Stamp([utilization, capacity, _]): Stamp) -> Self {
        Self { utilization, capacity }
    }
}

impl From<Header> for Stamp {
    #[inline]
    fn from(h: Header) -> Self {
        Self([h.utilization, h.capacity, 0.0])
    }
}

/// All routers and senders of a network use the same `T`.
fn open(base_rtt: &mut Option<Time>) -> Open<'_> {
    let agreed = AgreedTime { name: "base_rtt", value: base_rtt, per_rtt: BASE_RTT_PER_RTT };
    Open { agreed_time: Some(agreed), ..Open::default() }
}
