//! When a packet's transmission may begin and how long it takes: what a link carries ([`Service`], [`Capacity`]), and who may begin where
//! several links share a medium; and how long it is on its way then, where that varies.

pub mod dcf;
mod shared;
mod varying_delay;

pub use flowstamp_laws::medium::{Capacity, Service, Trace};
pub use shared::{Grant, Turns};
pub use varying_delay::VaryingDelay;
