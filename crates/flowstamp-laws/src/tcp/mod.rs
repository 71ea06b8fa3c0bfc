//! TCP's congestion control: what all windows share, and each law's growth.

pub mod dctcp;
pub mod highspeed;
pub mod reno;
pub mod window;

pub use dctcp::Dctcp;
pub use highspeed::HighSpeed;
pub use reno::{NewReno, Params, Reno, Sack};
pub use window::{Growth, Window};
