//! Transport parameters of a flow, and the settings on which both of its ends agree.

use crate::sender::{Echo, Recovery, SenderTraits};
use crate::units::Time;

crate::params! {
    /// Transport settings of both ends of a flow.
    pub struct Params {
        /// How losses are repaired. Default: the law's own choice.
        pub recovery: Option<Recovery> = None,
        /// Initial congestion window in packets, at least 1.
        pub initial_window: f64 = 2.0, // RFC 2581 section 3.1; RCP 2007 section 4.1
        /// Whether packets may be marked instead of dropped, and marks are echoed (RFC 3168). Default: the law's own
        /// choice.
        pub ecn: Option<bool> = None,
        /// How marks are echoed. Default: the law's own choice.
        pub echo: Option<Echo> = None,
        /// Whether only every second packet is acknowledged (RFC 5681 section 4.2).
        pub delayed_acks: bool = false,
        /// Longest delay of an ack. RFC 5681 section 4.2 says at most 500 ms.
        pub delayed_ack_timeout: Time = Time::from_millis(100), // ns-2 interval_
        /// Smallest retransmission timeout: ns-2's 200 ms. RFC 6298 (2.4) says 1 s.
        pub min_rto: Time = Time::from_millis(200), // ns-2 minrto_
        /// Largest retransmission timeout. Default: 60 s (RFC 6298, 2.5), or twice `initial_rto` or `min_rto` if that
        /// is longer.
        pub max_rto: Option<Time> = None,
        /// Retransmission timeout before the first sample. Default: 1 s (RFC 6298, 2.1), or 3 R if that is longer. R is
        /// the path's propagation RTT, if it is known; a first sample of R would give 3 R by (2.2).
        pub initial_rto: Option<Time> = None,
        /// Period of the clock with which the sender measures RTTs and sets its timeout, 1 us to 1 s: the granularity G
        /// of RFC 6298 (2.3). ns-2's `tcpTick_` is 10 ms, and was 100 ms until March 2002. Default: the clock is exact,
        /// and G is zero.
        pub tick: Option<Time> = None,
        /// Whether the flow opens with a packet that carries no data, waits for its answer, and ends with such a pair
        /// too. Default: the law's own choice.
        pub handshake: Option<bool> = None,
        /// Whether the first two duplicate acks each let a new packet leave (RFC 3042; ns-2's `singledup_`).
        pub limited_transmit: bool = true, // ns-2 singledup_
        /// Longest random delay before a host sends, drawn uniformly from 0. The host then sends all that may leave, so
        /// packets keep their order. This is ns-2's `overhead_`, against phase effects (Floyd, Jacobson 1992). At most
        /// 1 s.
        pub send_jitter: Time = Time::ZERO, // ns-2 overhead_
    }
}

impl Params {
    /// Whether the flow uses ECN. Where the parameter is unset, the law's choice is taken to be that it does.
    #[must_use]
    pub fn ecn(&self) -> bool {
        self.ecn.unwrap_or(true)
    }

    /// The retransmission timeout before the first sample, on a path with propagation RTT `rtt`, which is zero if
    /// unknown.
    #[must_use]
    pub fn first_rto(&self, rtt: Time) -> Time {
        self.initial_rto.unwrap_or((rtt * 3).max(Time::from_secs(1)))
    }

    /// The largest retransmission timeout, on a path with propagation RTT `rtt`, which is zero if unknown. Unless a
    /// parameter sets it, the first timeout can double at least once.
    #[must_use]
    pub fn last_rto(&self, rtt: Time) -> Time {
        let longest = self.first_rto(rtt).max(self.min_rto);
        self.max_rto.unwrap_or((longest * 2).max(Time::from_secs(60))) // RFC 6298 (2.5)
    }
}

/// Settings on which both ends of a flow agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// How losses are repaired.
    pub recovery: Recovery,
    /// How marks are echoed.
    pub echo: Echo,
    /// Each ack brings a [`RateSample`](crate::sender::RateSample).
    pub delivery_rate: bool,
}

impl Agreed {
    /// Takes each setting from the parameters, or from the law where they leave it open.
    #[must_use]
    pub fn between(params: &Params, law: &SenderTraits) -> Self {
        Self {
            recovery: params.recovery.unwrap_or(law.recovery),
            echo: params.echo.unwrap_or(law.echo),
            delivery_rate: law.delivery_rate,
        }
    }
}

/// Combines a loss recovery with RFC 3168's echo and no rate samples.
impl From<Recovery> for Agreed {
    fn from(recovery: Recovery) -> Self {
        Self { recovery, echo: Echo::Classic, delivery_rate: false }
    }
}
