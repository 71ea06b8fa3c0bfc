//! BBR, a law of the path's model: a pace by the bottleneck's rate, a window by what its pipe holds.
//!
//! [`v1`] goes by rate and round-trip time alone; both versions know their path by the filters of [`model`].

pub mod model;
pub mod v1;

pub use v1::Bbr;
