//! XCP, the eXplicit Control Protocol (Katabi, Handley, Rohrs 2002), in the paper's form and in the Internet-Draft's, XCP-b
//! for links of unknown capacity (Abrantes and Ricardo 2006), and XCPw, which computes feedback for each packet (Goyal et al.
//! 2020).

use crate::units::Time;
use crate::{LongestRtt, Open};

pub mod blind;
pub mod edge;
pub mod fairness;
pub mod header;
pub mod router;
pub mod sender;
pub mod shares;
pub mod wireless;

pub use header::{Encoding, Throughput, View, Window};
pub use router::Router;
pub use sender::Sender;

/// The parameters of RTTs that the network layout fills in for any XCP router.
fn open<'a>(max_rtt: &'a mut Option<Time>, initial_interval: &'a mut Option<Time>) -> Open<'a> {
    Open {
        longest_rtt: Some(LongestRtt { name: "max_rtt", value: max_rtt, usual: shares::MAX_RTT }),
        time_constant: Some(("initial_interval", initial_interval)),
        ..Open::default()
    }
}
