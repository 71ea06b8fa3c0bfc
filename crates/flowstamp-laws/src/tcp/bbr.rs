//! BBR: models the path, paces at the bottleneck's rate and sets the window from the bandwidth-delay product.
//!
//! [`v1`] uses rate and round-trip time alone. [`v3`] also reacts to losses, which set a long-term and a short-term
//! bound. Both estimate the path with the filters of [`model`].

pub mod model;
pub mod v1;
pub mod v3;

pub use v1::Bbr;
pub use v3::Bbr3;
