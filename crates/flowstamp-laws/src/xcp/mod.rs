//! XCP, the eXplicit Control Protocol (Katabi, Handley, Rohrs 2002), in the paper's form and in the Internet-Draft's, and XCP-b
//! for links of unknown capacity (Abrantes and Ricardo 2006).

pub mod blind;
pub mod edge;
pub mod header;
pub mod router;
pub mod sender;
pub mod shares;

pub use header::{Encoding, Throughput, View, Window};
pub use router::Router;
pub use sender::Sender;
