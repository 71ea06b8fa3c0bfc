//! BBR, a law of the path's model: a pace by the bottleneck's rate, a window by what its pipe holds.
//!
//! [`v1`] goes by rate and round-trip time alone; [`v3`] hears of losses, too, and keeps bounds by them on a longer and a shorter
//! scale. Both know their path by the filters of [`model`].

pub mod model;
pub mod v1;
pub mod v3;

pub use v1::Bbr;
pub use v3::Bbr3;
