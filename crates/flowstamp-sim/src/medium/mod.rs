//! When a packet's transmission may begin and how long it takes: what a link carries ([`Service`], [`Capacity`]), and who may begin where
//! several links share a medium.

pub mod dcf;
mod shared;

pub use flowstamp_laws::medium::{Capacity, Service, Trace};
pub use shared::{Grant, Turns};
