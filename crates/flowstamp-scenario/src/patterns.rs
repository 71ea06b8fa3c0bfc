//! Traffic patterns: which hosts the flows of a group connect, and the operations that the flows carry out together.

use flowstamp_laws::units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which hosts the flows of a group connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Each flow connects two hosts drawn at random. `count` is the number of pairs, by default the number of
    /// hosts. Web flows take 10,000 pairs in turn by default.
    Random,
    /// Each host sends to one other and receives from one, drawn at random. `count` is by default the number of
    /// hosts; further flows repeat the pairs.
    Permutation,
    /// All flows go to one host, which `to` may name (default: the last), from others drawn at random. `count` is
    /// by default the number of the others; further flows repeat them. With the table `incast`, such bursts repeat.
    Incast,
    /// A collective operation in which each of N hosts sends `size` / N to each other host, to all at once. There is
    /// one flow for each pair of hosts. `count` is the number of hosts, by default all.
    AllToAll,
    /// A collective operation that adds up `size` from each of N hosts, and leaves the sum at all of them. Each host
    /// has one flow, to the next host. In each of 2 (N - 1) steps it sends `size` / N. It begins a step when it has
    /// received the previous one from the host before it. `count` is the number of hosts, by default all.
    RingAllReduce,
}

impl Pattern {
    /// Whether the flows carry out collective operations.
    #[must_use]
    pub const fn is_collective(self) -> bool {
        matches!(self, Self::AllToAll | Self::RingAllReduce)
    }
}

/// Incasts: several hosts send to one at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[cfg_attr(feature = "full", derive(Deserialize), serde(deny_unknown_fields))]
pub struct Incast {
    /// Payload of each incast. Its senders share it equally.
    pub total: Bytes,
    /// Number of senders of each incast, drawn at random each time. Default: all hosts except the receiver.
    pub senders: Option<u32>,
    /// Time from the start of one incast to the start of the next. Default: there is only one.
    pub every: Option<Time>,
    /// Whether the receiver of each incast is drawn at random, in place of `to`.
    #[serde(default)]
    pub random_receiver: bool,
}

/// Repetitions of a collective operation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[cfg_attr(feature = "full", derive(Deserialize), serde(deny_unknown_fields))]
pub struct Collective {
    /// Number of operations. An operation begins after the end of the one before it.
    #[schemars(range(min = 1))]
    pub operations: u32,
    /// Time from the end of an operation to the start of the next, in which the hosts compute.
    #[serde(default)]
    pub gap: Time,
}

/// The browser lab offers no patterns. Without the code that reads them its module is smaller.
#[cfg(not(feature = "full"))]
mod basic {
    use super::{Collective, Incast};
    use serde::{Deserialize, Deserializer, de::Error};

    impl<'de> Deserialize<'de> for Incast {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Err(D::Error::custom("this build has no patterns of flows"))
        }
    }

    impl<'de> Deserialize<'de> for Collective {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Err(D::Error::custom("this build has no patterns of flows"))
        }
    }
}
