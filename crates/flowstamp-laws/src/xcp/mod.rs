//! XCP, the eXplicit Control Protocol (Katabi, Handley, Rohrs 2002), in the paper's form and in the Internet-Draft's.

pub mod edge;
pub mod header;
pub mod router;
pub mod sender;

pub use header::{Encoding, Throughput, View, Window};
pub use router::Router;
pub use sender::Sender;
