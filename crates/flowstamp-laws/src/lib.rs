//! Control laws of explicit-feedback congestion control, and of the TCPs with which they are compared.
//!
//! Every law is a sans-IO state machine: the caller passes the time, and the law has no clock, no I/O and no
//! allocation per packet. The simulator, the analysis and the Linux datapath all use these laws and have none of
//! their own.

/// Defines the parameters of a law that a scenario may set, with each default beside it. A comment says where the
/// default is from.
macro_rules! params {
    (
        $(#[$about:meta])*
        pub struct $name:ident { $( $(#[$doc:meta])* pub $parameter:ident: $type:ty = $default:expr, )* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $( $(#[$doc])* pub $parameter: $type, )* }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $parameter: $default, )* }
            }
        }
    };
}
use params;

pub mod abc;
pub mod hpcc;
pub mod liar;
pub mod link;
pub mod medium;
pub mod negotiation;
pub mod pcp;
pub mod pfc;
pub mod queue;
pub mod random;
pub mod rcp;
pub mod registry;
pub mod router;
pub mod scone;
pub mod sender;
pub mod share;
pub mod stamp;
pub mod swift;
pub mod tcp;
pub mod told;
pub mod transport;
pub mod tree;
pub mod udp;
pub mod units;
pub mod vcp;
pub mod video;
pub mod xcp;

pub use stamp::Stamp;
pub use units::{Bytes, Rate, Ratio, Time};

/// A refused parameter: its name, and a message with its value and what would be right.
pub type Refused = (&'static str, String);

/// Parameters that follow from the network. The network layout fills in those that the scenario does not set.
#[derive(Debug, Default)]
pub struct Open<'a> {
    /// A time on which all routers and senders of the law's header must agree.
    pub agreed_time: Option<AgreedTime<'a>>,
    /// Name and value of the parameter that a router uses as RTT until packets carry one. If it stays unset, the law
    /// takes the first RTT that it sees.
    pub time_constant: Option<(&'static str, &'a mut Option<Time>)>,
    /// The longest RTT that a router accepts, which must exceed those of its flows.
    pub longest_rtt: Option<LongestRtt<'a>>,
    /// Number of flows on the link that a sender governs.
    pub micro_flows: Option<&'a mut Option<u32>>,
}

/// A time on which all routers and senders of one header must agree.
#[derive(Debug)]
pub struct AgreedTime<'a> {
    /// The parameter's name.
    pub name: &'static str,
    /// Value from the scenario; the network layout fills it in if unset.
    pub value: &'a mut Option<Time>,
    /// Default in units of the flows' mean RTT.
    pub per_rtt: f64,
}

/// A router's parameter that bounds plausible RTTs.
#[derive(Debug)]
pub struct LongestRtt<'a> {
    /// The parameter's name.
    pub name: &'static str,
    /// Value from the scenario; if unset, the network layout fills it in where paths are long.
    pub value: &'a mut Option<Time>,
    /// Default value.
    pub usual: Time,
}

impl LongestRtt<'_> {
    /// The bound for paths of this propagation RTT: three times the RTT, but at least the default. XCP's default of 4
    /// s is about three times the 1.4 s of its paper.
    #[must_use]
    pub fn on(&self, rtt: Time) -> Time {
        self.usual.max(rtt * 3)
    }
}

/// Refuses any time below 1 ns among those that are set.
pub(crate) fn check_times<const N: usize>(times: [(&'static str, Option<Time>); N]) -> Result<(), Refused> {
    for (name, time) in times {
        let Some(time) = time else { continue };
        within(name, time.as_secs_f64(), 1e-9, 1e6)
            .map_err(|_| (name, format!("is {time}; it must be 1ns or longer")))?;
    }
    Ok(())
}

/// Refuses a parameter unless it is within `least` and `most`.
pub(crate) fn within(name: &'static str, value: f64, least: f64, most: f64) -> Result<(), Refused> {
    if value >= least && value <= most {
        Ok(())
    } else {
        Err((name, format!("is {value}; it must be {least} to {most}")))
    }
}
