//! The data that applications produce at a rate or at given times.

use super::Record;
use crate::plan::GroupPlan;
use crate::release::Release;
use flowstamp_laws::units::{Rate, Time};
use std::sync::Arc;

/// Without `full` no scenario has curves, and the compiler leaves out what follows from them.
const FULL: bool = cfg!(feature = "full");

/// The data that the applications of a group's flows produce, if not messages.
#[derive(Clone, Debug)]
pub enum Supply {
    /// All data are available at the start.
    All,
    /// A constant rate of payload.
    Rate(Rate),
    /// By number within the group, when the packets of each flow become available.
    Curves(Arc<Vec<Release>>),
}

impl Supply {
    pub fn of(plan: &GroupPlan) -> Self {
        match (&plan.rate, &plan.release) {
            (_, Some(release)) => Self::Curves(release.clone()),
            (Some(rate), None) => Self::Rate(*rate),
            (None, None) => Self::All,
        }
    }

    /// The rate, if it is constant.
    pub fn rate(&self) -> Option<Rate> {
        if let Self::Rate(rate) = self { Some(*rate) } else { None }
    }

    /// Whether senders may have to wait for data.
    pub fn is_limited(&self) -> bool {
        !matches!(self, Self::All)
    }

    /// Number of packets with this payload that are available at `now`.
    pub fn available(&self, record: &Record, packets: u32, payload: u16, now: Time) -> u32 {
        let since = now.saturating_sub(record.start);
        match self {
            Self::Curves(curves) if FULL => curves[record.index as usize].available(packets, since),
            Self::All | Self::Curves(_) => u32::MAX,
            Self::Rate(rate) => {
                // The first packet is available at the start, and another one each packet time. A count beyond `u32`
                // saturates and is always enough.
                let further = rate.bytes_in(since) / f64::from(payload);
                ((further + 1e-9) as u32).saturating_add(1)
            }
        }
    }

    /// When a packet of this payload is available.
    pub fn time_of(&self, record: &Record, packets: u32, payload: u16, packet: u32) -> Time {
        match self {
            Self::Curves(curves) if FULL => {
                record.start + curves[record.index as usize].time_of(packets, packet)
            }
            Self::All | Self::Curves(_) => record.start,
            Self::Rate(rate) => {
                let bytes = f64::from(packet) * f64::from(payload);
                record.start + Time::from_secs_f64(bytes / rate.bytes_per_sec())
            }
        }
    }
}
