//! Control laws of explicit-feedback congestion control, and of the TCPs they are compared with.
//!
//! Every law is a sans-IO state machine: the time is passed in, there is no clock, no I/O and no allocation per
//! packet. The simulator, the analysis and the Linux datapath all use these and write none of their own.

pub mod liar;
pub mod link;
pub mod medium;
pub mod negotiation;
pub mod pcp;
pub mod queue;
pub mod random;
pub mod rcp;
pub mod registry;
pub mod router;
pub mod sender;
pub mod share;
pub mod stamp;
pub mod tcp;
pub mod told;
pub mod transport;
pub mod tree;
pub mod udp;
pub mod units;
pub mod vcp;
pub mod xcp;

pub use stamp::Stamp;
pub use units::{Bytes, Rate, Ratio, Time};

/// A parameter that was refused: its name, and its value and what would be right.
pub type Refused = (&'static str, String);

/// Parameters that follow from the network: whoever lays it out fills in what the scenario leaves open.
#[derive(Debug, Default)]
pub struct Open<'a> {
    /// A time that must be the same on all routers and senders of the law's header.
    pub agreed_time: Option<AgreedTime<'a>>,
    /// A router's stand-in for the flows' RTT until packets carry one, and its name. A law that is told nothing takes the first RTT that it sees.
    pub time_constant: Option<(&'static str, &'a mut Option<Time>)>,
    /// The longest RTT that a router believes, which is to be beyond those of its flows.
    pub longest_rtt: Option<LongestRtt<'a>>,
    /// How many flows take the link that a sender governs.
    pub micro_flows: Option<&'a mut Option<u32>>,
}

/// A time that all routers and senders of one header must have in common.
#[derive(Debug)]
pub struct AgreedTime<'a> {
    /// The parameter's name.
    pub name: &'static str,
    /// What the scenario says; whoever lays out the network fills in what it leaves open.
    pub value: &'a mut Option<Time>,
    /// How many of the flows' mean RTTs it is where nobody says.
    pub per_rtt: f64,
}

/// A router's parameter that says which RTTs are too long to be true.
#[derive(Debug)]
pub struct LongestRtt<'a> {
    /// The parameter's name.
    pub name: &'static str,
    /// What the scenario says; whoever lays out the network fills in what it leaves open, where paths are long.
    pub value: &'a mut Option<Time>,
    /// What it is unless it is set.
    pub usual: Time,
}

impl LongestRtt<'_> {
    /// What it must be where paths have this RTT without queues: as XCP's 4 s to the 1.4 s of its paper, three times that.
    #[must_use]
    pub fn on(&self, rtt: Time) -> Time {
        self.usual.max(rtt * 3)
    }
}

/// Refuses a parameter unless it is within `least` and `most`.
pub(crate) fn within(name: &'static str, value: f64, least: f64, most: f64) -> Result<(), Refused> {
    if value >= least && value <= most {
        Ok(())
    } else {
        Err((name, format!("is {value}; it must be {least} to {most}")))
    }
}
