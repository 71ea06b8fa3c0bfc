//! RCP, the Rate Control Protocol (Dukkipati 2007).

pub mod header;
pub mod router;
pub mod sender;
pub mod stream;
pub mod switch;

pub use header::Header;
pub use router::Router;
pub use sender::Sender;
