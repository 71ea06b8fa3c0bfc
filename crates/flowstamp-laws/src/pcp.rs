//! PCP, the Precise-feedback Congestion-control Protocol (Katabi and Handley, MIT/LCS/TR-820, 2001), the precursor of
//! XCP.
//!
//! XCP (2002) kept some parts of PCP and changed others:
//!
//! | | PCP | XCP |
//! |---|---|---|
//! | header | window, RTT, feedback; and three bits, two of which tell whether the flow has passed a bottleneck | window, RTT, feedback |
//! | efficiency | eq. 6: `k1 SBW T_c - k2 queue` bits in each `T_c` | eq. 1: the same, with `alpha`, `beta` and the mean RTT for `T_c` |
//! | interval | `T_e`, the mean RTT, for estimates; `T_c`, fixed, for decisions | one interval, the mean RTT |
//! | queue | the least in the last `T_c` | the least in the last propagation delay |
//! | increases | proportional to `(rtt/cwnd)^2` in each packet: a flow's throughput grows in inverse proportion to itself | proportional to `rtt^2/cwnd` in each packet: all flows' throughputs grow by the same amount |
//! | decreases | the same for each packet: a flow's window shrinks in proportion to itself | the same |
//! | shuffling | a tenth of the traffic, in addition to other feedback | a tenth of the traffic, less the feedback given or taken anyway |
//! | recipients | spare bandwidth goes only to flows that have met no bottleneck, if there are any | all flows |
//!
//! The code of both shares the merging of feedback from several packets in one ack ([`crate::xcp::header`]).
//! Everything else differs.

pub mod header;
pub mod router;
pub mod sender;

pub use header::Header;
pub use router::Router;
pub use sender::Sender;
