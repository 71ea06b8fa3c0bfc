//! PCP, the Precise-feedback Congestion-control Protocol (Katabi and Handley, MIT/LCS/TR-820, 2001), the precursor of
//! XCP.
//!
//! XCP (2002) kept some parts of PCP and changed others:
//!
//! | | PCP | XCP |
//! |---|---|---|
//! | header | window, RTT, feedback; and three bits, of which two say whether the flow has passed a bottleneck | window, RTT, feedback |
//! | efficiency | eq. 6: `k1 SBW T_c - k2 queue` bits in each `T_c` | eq. 1: the same, with `alpha`, `beta` and the mean RTT for `T_c` |
//! | interval | `T_e` to estimate in, the mean RTT; `T_c` to decide for, fixed | one, the mean RTT |
//! | queue | the least in the last `T_c` | the least in the last propagation delay |
//! | increases | in proportion to `(rtt/cwnd)^2` in each packet: a flow's throughput grows by its inverse | to `rtt^2/cwnd`: each flow's throughput grows by the same |
//! | decreases | the same for each packet: a flow's window shrinks by what is in proportion to it | the same |
//! | shuffling | a tenth of the traffic, beside all else | a tenth of the traffic less what is given or taken anyway |
//! | to whom | spare bandwidth only to those that have met no bottleneck, if there are any | all |
//!
//! The code of both shares the merging of feedback from several packets in one ack ([`crate::xcp::header`]).
//! Everything else differs.

pub mod header;
pub mod router;
pub mod sender;

pub use header::Header;
pub use router::Router;
pub use sender::Sender;
