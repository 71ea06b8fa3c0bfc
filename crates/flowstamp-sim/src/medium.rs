//! The media of links: what a link carries ([`Service`], [`Capacity`]), which station may begin where several share a
//! medium, and propagation delays that vary.

pub mod dcf;
mod shared;
mod varying_delay;

pub use flowstamp_laws::medium::{Capacity, Service, Trace};
pub use shared::{Grant, Turns};
pub use varying_delay::VaryingDelay;
