//! TCP congestion control: the window that all laws share, and each law's growth function.

pub mod bbr;
pub mod bic;
pub mod cubic;
pub mod dctcp;
pub mod fast;
pub mod highspeed;
pub mod htcp;
pub mod reno;
pub mod scalable;
pub mod window;

pub use bbr::{Bbr, Bbr3};
pub use bic::Bic;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use fast::Fast;
pub use highspeed::HighSpeed;
pub use htcp::Htcp;
pub use reno::{NewReno, Params, Reno, Sack};
pub use scalable::Scalable;
pub use window::{Growth, Window};
