//! Control laws of explicit-feedback congestion control, and of the TCPs they are compared with.
//!
//! Every law is a sans-IO state machine: the time is passed in, there is no clock, no I/O and no allocation per
//! packet. The simulator, the analysis and the Linux datapath all use these and write none of their own.

pub mod queue;
pub mod registry;
pub mod router;
pub mod sender;
pub mod stamp;
pub mod transport;
pub mod units;

pub use stamp::Stamp;
pub use units::{Bytes, Rate, Ratio, Time};
