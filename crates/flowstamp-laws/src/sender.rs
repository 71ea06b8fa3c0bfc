//! How a sender sets its congestion window or rate.
//!
//! A [`SenderLaw`] owns the congestion window and nothing else. What all senders share (sequence numbers, loss
//! detection, retransmission, the retransmission timer) is in [`crate::transport`], which asks the law for its
//! window and tells it of acks and losses.

use crate::Refused;
use crate::stamp::Stamp;
use crate::units::{Rate, Time};

/// How lost packets are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// Fast retransmit and fast recovery that ends at the first new ack (RFC 2581 section 3.2).
    Reno,
    /// Fast recovery through partial acks (RFC 6582).
    NewReno,
    /// Selective acks, a pipe estimate and a scoreboard (RFC 6675).
    Sack,
    /// As many packets again as are missing, 2 RTT after the last; for laws that obey routers (Dukkipati 2007, section
    /// 6.3.1).
    Count,
}

/// What a flow without a rate of its own wishes for, bytes/s: more than any link of the valid range (400 Gb/s) has, and
/// small enough that windows computed from it stay finite.
pub const AS_MUCH_AS_THERE_IS: f64 = 1e15;

/// What every sender law is told when its flow starts.
#[derive(Clone, Copy, Debug)]
pub struct FlowView {
    /// Size of a full data packet in bytes, as it is on the wire.
    pub packet_bytes: u32,
    /// Initial congestion window in packets.
    pub initial_window: f64,
    /// The application's rate, or `None` for as fast as the network allows.
    pub app_rate: Option<Rate>,
}

/// An ack that acknowledged new data, as the law sees it.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// Now.
    pub now: Time,
    /// Packets newly acknowledged, at least one.
    pub newly_acked: u32,
    /// Smoothed round-trip time (RFC 6298), after this ack's sample.
    pub srtt: Time,
    /// The stamp that the receiver echoed.
    pub stamp: &'a Stamp,
    /// Packets in flight before this ack.
    pub flight: u32,
    /// Fast recovery is under way: the window must not grow by TCP's rules.
    pub in_recovery: bool,
    /// The window, not the application, was what held the sender back.
    pub window_limited: bool,
}

/// A window or rate law: told of acks and losses, asked for its window. It has no clock and does no I/O.
pub trait SenderLaw: Sized {
    /// What the scenario may set.
    type Params: Default;

    /// Whether the parameters make sense; else the parameter, and what would be right.
    ///
    /// # Errors
    /// The first parameter that does not.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// A law at the start of a flow.
    fn new(params: &Self::Params, flow: &FlowView) -> Self;

    /// How this law's losses are repaired unless the scenario says otherwise.
    fn recovery(&self) -> Recovery;

    /// Whether a flow opens with a packet that carries no data, whose answer the law needs before the first data leave, and
    /// ends with one, unless the scenario says otherwise.
    fn handshake(&self) -> bool {
        false
    }

    /// Whether flows with these parameters do without routers that write into their header.
    fn falls_back(params: &Self::Params) -> bool {
        let _ = params;
        false
    }

    /// The law gave up its routers then: since that time its packets are plain ones.
    fn fallen_back(&self) -> Option<Time> {
        None
    }

    /// The congestion window in bytes, at least one packet.
    fn cwnd(&self) -> f64;

    /// The pace of departures; `None` sends whatever the window allows at once.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// New data was acknowledged.
    fn on_ack(&mut self, ack: &Ack<'_>);

    /// A packet that carried no data came back: the answer to the handshake or to a probe.
    fn on_feedback(&mut self, now: Time, srtt: Time, stamp: &Stamp) {
        let _ = (now, srtt, stamp);
    }

    /// A loss was found by duplicate acks, or an ECN echo came: at most once per window of data (Reno: per
    /// fast retransmit).
    fn on_congestion(&mut self, now: Time, flight: u32);

    /// The retransmission timer expired.
    fn on_timeout(&mut self, now: Time, flight: u32);

    /// The stamp for a data packet that leaves now. `srtt` is zero before the first sample.
    fn stamp(&self, now: Time, srtt: Time) -> Stamp;
}
