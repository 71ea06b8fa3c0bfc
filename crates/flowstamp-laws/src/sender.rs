//! How a sender sets its congestion window or rate.
//!
//! A [`SenderLaw`] owns the congestion window and nothing else. What all senders share (sequence numbers, loss
//! detection, retransmission, the retransmission timer) is in [`crate::transport`], which asks the law for its
//! window and tells it of acks and losses.

use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{Open, Refused};

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

/// How a receiver tells its sender of the marks that it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Echo {
    /// In every ack from a mark on until the sender says that it has reduced its window (RFC 3168 section 6.1.3).
    Classic,
    /// In the acks of marked packets and in no others (RFC 8257 section 3.2).
    PerPacket,
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
    /// Those among them whose ack has an ECN echo: with [`Echo::PerPacket`] the packets that were marked.
    pub marked: u32,
    /// Packets acknowledged so far, cumulatively or selectively, these among them.
    pub delivered: u32,
    /// This ack's sample of the round-trip time. It comes from a timestamp, so that a retransmission gives one too.
    pub rtt: Time,
    /// The least sample so far.
    pub min_rtt: Time,
    /// Smoothed round-trip time (RFC 6298), after this ack's sample.
    pub srtt: Time,
    /// How fast packets were delivered, for laws that ask for it ([`SenderTraits::delivery_rate`]).
    pub rate: Option<RateSample>,
    /// The stamp that the receiver echoed.
    pub stamp: &'a Stamp,
    /// The bits that the receiver echoed ([`SenderLaw::bits`]).
    pub bits: u16,
    /// Packets in flight before this ack.
    pub flight: u32,
    /// Fast recovery is under way: the window must not grow by TCP's rules.
    pub in_recovery: bool,
    /// The window, not the application, was what held the sender back.
    pub window_limited: bool,
}

impl<'a> Ack<'a> {
    /// The ack of the only packet in flight, which took `srtt`, as the packets before it did, and was not marked.
    #[must_use]
    pub const fn of_one(now: Time, srtt: Time, stamp: &'a Stamp) -> Self {
        Self {
            now,
            newly_acked: 1,
            marked: 0,
            delivered: 1,
            rtt: srtt,
            min_rtt: srtt,
            srtt,
            rate: None,
            stamp,
            bits: 0,
            flight: 1,
            in_recovery: false,
            window_limited: true,
        }
    }
}

/// How fast packets were delivered over the flight of the last of them (draft-cheng-iccrg-delivery-rate-estimation-02), and what
/// was lost in it (draft-ietf-ccwg-bbr section 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Packets delivered from when that packet left until now.
    pub delivered: u32,
    /// Packets that had been delivered when it left.
    pub prior_delivered: u32,
    /// The longer of the times in which these packets were sent and in which they were acknowledged; above zero.
    pub interval: Time,
    /// Packets in flight when that packet had left, it among them.
    pub tx_in_flight: u32,
    /// Packets found lost from when it left until now.
    pub lost: u32,
    /// The application, not the window, held the sender back: the path may be faster.
    pub app_limited: bool,
    /// The window was full at some time since that packet left.
    pub window_full: bool,
    /// The first packet in flight since the last sample had waited for the application with nothing in flight.
    pub restarted: bool,
}

impl RateSample {
    /// The sample of a flight in which nothing was lost, whose packets left when those before them had arrived.
    #[must_use]
    pub const fn of_flight(delivered: u32, prior_delivered: u32, interval: Time) -> Self {
        Self {
            delivered,
            prior_delivered,
            interval,
            tx_in_flight: delivered,
            lost: 0,
            app_limited: false,
            window_full: false,
            restarted: false,
        }
    }

    /// The rate, for packets of so many bytes.
    #[must_use]
    pub fn rate(&self, packet_bytes: u32) -> Rate {
        let bytes = f64::from(self.delivered) * f64::from(packet_bytes);
        Rate::from_bytes_per_sec(bytes / self.interval.as_secs_f64())
    }
}

/// Counts since a flow began, for whoever decides in place of a law ([`Report::tally`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Acks that acknowledged something new; each gave one sample of the round-trip time.
    pub acks: u64,
    /// Acknowledged packets that had been marked.
    pub marked: u64,
    /// Sum of the samples of the round-trip time in picoseconds, modulo 2^64: the difference of two is exact for up to 213 days.
    pub rtt_sum_ps: u64,
}

/// A packet that was found lost, for laws that ask for delivery rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its sequence number.
    pub seq: u32,
    /// Packets in flight when it had left, it among them.
    pub tx_in_flight: u32,
    /// Packets found lost since it left, it among them.
    pub lost: u32,
    /// Packets delivered so far.
    pub delivered: u32,
    /// The application held the sender back when it left.
    pub app_limited: bool,
    /// Acks are selective: more than one loss of a round trip can be found in it.
    pub selective: bool,
}

/// What is known of a law and its parameters before any flow begins. A law names what differs from the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub struct SenderTraits {
    /// How losses are repaired unless the scenario says otherwise.
    pub recovery: Recovery,
    /// How marks are echoed unless the scenario says otherwise.
    pub echo: Echo,
    /// Flows are ECN-capable unless the scenario says otherwise. A law that does not answer marks is not.
    pub ecn: bool,
    /// Packets of ECN-capable flows say that they are L4S ones, ECT(1) (RFC 9331).
    pub l4s: bool,
    /// Acks bring a [`RateSample`], and the law hears of each lost packet. The transport then keeps a record of each packet in flight.
    pub delivery_rate: bool,
    /// A flow opens with a packet without data, whose answer the law needs before the first data leave, and ends with one, unless
    /// the scenario says otherwise.
    pub handshake: bool,
    /// Flows do without routers that write into their header where there are none.
    pub falls_back: bool,
    /// Flows find out whether their receivers know the law's header, and do without where these do not.
    pub asks_receiver: bool,
    /// Flows send a window as soon as they may, to routers that expect its packets to be spread over a round trip.
    pub sends_at_once: bool,
    /// Packets leave at the pace whatever comes back. They are not acknowledged and not sent again.
    pub datagrams: bool,
    /// The law has no data to send and governs a link. One control packet each round trip asks for it, and what waits for the link
    /// leaves at the pace.
    pub governs: bool,
    /// Parameters may change while flows are there ([`FlowChange::Params`]).
    pub told: bool,
    /// Bytes that one flow's law allocates beside its own size.
    pub heap_bytes: usize,
}

impl SenderTraits {
    /// A window law with selective acks that answers marks as losses.
    pub const DEFAULT: Self = Self {
        recovery: Recovery::Sack,
        echo: Echo::Classic,
        ecn: true,
        l4s: false,
        delivery_rate: false,
        handshake: false,
        falls_back: false,
        asks_receiver: false,
        sends_at_once: false,
        datagrams: false,
        governs: false,
        told: false,
        heap_bytes: 0,
    };
}

/// How often a flow that waits for its pace asks the path again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probes {
    /// The most of the rate that probes may take.
    pub share: f64,
    /// Round trips between two probes at the most, whatever they take.
    pub longest_gap: u64,
}

/// How fast packets leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// The rate of departures.
    pub rate: Rate,
    /// The pace alone holds the flow, and the window bounds nothing.
    pub alone: bool,
    /// How probes are limited; `None` allows one each round trip.
    pub probes: Option<Probes>,
}

impl Pacing {
    /// How long a waiting flow waits before it asks the path again, with a packet of `probe_bytes`.
    #[must_use]
    pub fn probe_after(&self, srtt: Time, probe_bytes: u32) -> Time {
        let Some(probes) = self.probes else { return srtt };
        let held = Time::from_secs_f64(f64::from(probe_bytes) / (probes.share * self.rate.bytes_per_sec()));
        held.clamp(srtt, srtt * probes.longest_gap)
    }
}

/// A pace beside the window, with a probe each round trip.
impl From<Rate> for Pacing {
    #[inline]
    fn from(rate: Rate) -> Self {
        Self { rate, alone: false, probes: None }
    }
}

/// The answer to a packet without data: to the handshake, to a probe, or to the question of a law that governs a link.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'a> {
    /// Now.
    pub now: Time,
    /// Smoothed round-trip time, after this answer's sample.
    pub srtt: Time,
    /// The stamp that the receiver echoed.
    pub stamp: &'a Stamp,
    /// The bits that the receiver echoed.
    pub bits: u16,
    /// Bytes that the governed link has carried since the last answer.
    pub carried: f64,
}

/// A sign of congestion, or that an earlier one was wrong. `flight` counts packets.
#[derive(Clone, Copy, Debug)]
pub enum Congestion<'a> {
    /// Duplicate acks showed a loss: at most once per window of data (Reno: per fast retransmit).
    Loss {
        /// In flight.
        flight: u32,
    },
    /// An ECN echo came: at most once per window of data, losses among them. It follows the ack that brought it.
    Mark {
        /// In flight.
        flight: u32,
    },
    /// The retransmission timer expired.
    Timeout {
        /// In flight.
        flight: u32,
    },
    /// A packet was found lost. This comes before the ack that showed it but after the timeout that did, and only with
    /// [`SenderTraits::delivery_rate`].
    Packet(&'a LostPacket),
    /// All that was found lost since the last repair began has arrived all the same. This comes before the ack that showed it, and only
    /// with [`SenderTraits::delivery_rate`].
    Spurious {
        /// Packets delivered after that ack.
        delivered: u32,
    },
}

/// A change from outside in the middle of a flow.
#[derive(Clone, Copy, Debug)]
pub enum FlowChange<'a, P> {
    /// The parameters are these from now on; only with [`SenderTraits::told`].
    Params(&'a P),
    /// The flow's data pass so many routers of any kind, as the time to live of what has come back tells; only with
    /// [`SenderTraits::falls_back`].
    Hops(u8),
}

/// What others may know of a flow's law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// When the law gave up its routers: its packets are plain ones since then.
    pub fallen_back: Option<Time>,
    /// Counts for whoever decides in place of the law; only with [`SenderTraits::told`].
    pub tally: Option<Tally>,
}

/// A window or rate law: told of acks and losses, asked for its window. It has no clock and does no I/O.
pub trait SenderLaw: Sized {
    /// What the scenario may set.
    type Params: Default;

    /// What is known of the law with these parameters.
    fn traits(params: &Self::Params) -> SenderTraits {
        let _ = params;
        SenderTraits::DEFAULT
    }

    /// Whether the parameters make sense; else the parameter, and what would be right.
    ///
    /// # Errors
    /// The first parameter that does not.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// The parameters that follow from the network where the scenario leaves them open.
    fn open(params: &mut Self::Params) -> Open<'_> {
        let _ = params;
        Open::default()
    }

    /// A law at the start of a flow.
    fn new(params: &Self::Params, flow: &FlowView) -> Self;

    /// The congestion window in bytes, at least one packet.
    fn cwnd(&self) -> f64;

    /// The pace of departures; `None` sends whatever the window allows at once.
    fn pacing(&self) -> Option<Pacing> {
        None
    }

    /// The stamp for a data packet that leaves now. `srtt` is zero before the first sample.
    fn stamp(&self, now: Time, srtt: Time) -> Stamp;

    /// Sixteen bits beside the stamp, for laws whose header has no more. Routers may change them
    /// ([`crate::router::PacketOut::bits`]), and an ack echoes those of the newest packet that it answers.
    fn bits(&self) -> u16 {
        0
    }

    /// New data was acknowledged.
    fn on_ack(&mut self, ack: &Ack<'_>);

    /// A packet without data was answered.
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let _ = feedback;
    }

    /// A loss, a mark or a timeout.
    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>);

    /// Something outside of the law has changed.
    fn on_change(&mut self, change: FlowChange<'_, Self::Params>) {
        let _ = change;
    }

    /// What others may know of it.
    fn report(&self) -> Report {
        Report::default()
    }
}

/// A law of which much is to be remembered, in a place of its own: a flow of any other law is then no larger for it.
impl<L: SenderLaw> SenderLaw for Box<L> {
    type Params = L::Params;
    fn traits(params: &Self::Params) -> SenderTraits {
        let traits = L::traits(params);
        SenderTraits { heap_bytes: size_of::<L>() + traits.heap_bytes, ..traits }
    }
    fn check(params: &Self::Params) -> Result<(), Refused> {
        L::check(params)
    }
    fn open(params: &mut Self::Params) -> Open<'_> {
        L::open(params)
    }
    fn new(params: &Self::Params, flow: &FlowView) -> Self {
        Self::new(L::new(params, flow))
    }
    fn cwnd(&self) -> f64 {
        (**self).cwnd()
    }
    fn pacing(&self) -> Option<Pacing> {
        (**self).pacing()
    }
    fn stamp(&self, now: Time, srtt: Time) -> Stamp {
        (**self).stamp(now, srtt)
    }
    fn bits(&self) -> u16 {
        (**self).bits()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        (**self).on_ack(ack);
    }
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        (**self).on_feedback(feedback);
    }
    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        (**self).on_congestion(now, sign);
    }
    fn on_change(&mut self, change: FlowChange<'_, Self::Params>) {
        (**self).on_change(change);
    }
    fn report(&self) -> Report {
        (**self).report()
    }
}
