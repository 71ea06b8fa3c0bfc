//! How a sender sets its congestion window or rate.
//!
//! A [`SenderLaw`] owns the congestion window and nothing else. [`crate::transport`] has the part that all senders
//! share: sequence numbers, loss detection, retransmissions and their timer. It asks the law for its window and tells
//! it of acks and losses.

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
    /// The receiver counts packets. Two RTT after the last packet, the sender sends as many packets again as the
    /// receiver lacks. For laws whose rate follows routers only (Dukkipati 2007, section 6.3.1).
    Count,
}

/// How a receiver echoes marks to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Echo {
    /// In every ack from a mark on until the sender says that it has reduced its window (RFC 3168 section 6.1.3).
    Classic,
    /// In the acks of marked packets and in no others (RFC 8257 section 3.2).
    PerPacket,
}

/// Desired rate of a flow without an application rate, bytes/s. It exceeds any link of the valid range (400 Gb/s),
/// and windows computed from it stay finite.
pub const AS_MUCH_AS_THERE_IS: f64 = 1e15;

/// The flow as a sender law sees it at its start.
#[derive(Clone, Copy, Debug)]
pub struct FlowView {
    /// Size of a full data packet on the wire, bytes.
    pub packet_bytes: u32,
    /// Initial congestion window in packets.
    pub initial_window: f64,
    /// The application's rate; `None` for as fast as the network allows.
    pub app_rate: Option<Rate>,
}

/// The path of a flow as a sender law sees it ([`FlowChange::Path`]).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathView {
    /// Number of routers of any kind on the data path, which the time to live of returned packets shows.
    pub hops: u8,
    /// RTT of a full packet and its ack on the idle path; `None` if a delay varies.
    pub rtt: Option<Time>,
    /// The rate of the slowest link of the data path; `None` if a rate varies.
    pub rate: Option<Rate>,
}

/// An ack of new data, as the law sees it.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// Now.
    pub now: Time,
    /// Newly acknowledged packets, at least one. Zero where feedback comes without an ack, as XCP's does over QUIC.
    pub newly_acked: u32,
    /// Those of them whose ack has an ECN echo. With [`Echo::PerPacket`] these are the marked packets.
    pub marked: u32,
    /// Packets acknowledged so far, cumulatively or selectively, including these.
    pub delivered: u32,
    /// This ack's sample of the round-trip time. It comes from a timestamp, so that retransmissions also give
    /// samples.
    pub rtt: Time,
    /// The least sample so far.
    pub min_rtt: Time,
    /// Smoothed round-trip time (RFC 6298), after this ack's sample.
    pub srtt: Time,
    /// The delivery rate, for laws that ask for it ([`SenderTraits::delivery_rate`]).
    pub rate: Option<RateSample>,
    /// The stamp that the receiver echoed.
    pub stamp: &'a Stamp,
    /// The bits that the receiver echoed ([`SenderLaw::bits`]).
    pub bits: u16,
    /// Packets in flight before this ack.
    pub flight: u32,
    /// Packets of the flow that are not acknowledged, sent or not; in an endless flow more than any window has.
    pub left: u32,
    /// Fast recovery is under way: the window must not grow by TCP's rules.
    pub in_recovery: bool,
    /// The window, not the application, limited the sender.
    pub window_limited: bool,
}

impl<'a> Ack<'a> {
    /// An ack of the only packet in flight, unmarked, in a flow whose round-trip time has always been `srtt`.
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
            left: u32::MAX,
            in_recovery: false,
            window_limited: true,
        }
    }
}

/// The delivery rate over the flight of the newest acknowledged packet
/// (draft-cheng-iccrg-delivery-rate-estimation-02), and the losses in that time (draft-ietf-ccwg-bbr section 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Packets delivered since that packet left.
    pub delivered: u32,
    /// Packets that were delivered when it left.
    pub prior_delivered: u32,
    /// The longer of the times over which these packets were sent and acknowledged; above zero.
    pub interval: Time,
    /// Packets in flight when that packet had left, including it.
    pub tx_in_flight: u32,
    /// Packets found lost since it left.
    pub lost: u32,
    /// The application, not the window, limited the sender: the path may be faster.
    pub app_limited: bool,
    /// The window was full at some time after that packet left.
    pub window_full: bool,
    /// A packet has left after an application-limited idle time since the last sample.
    pub restarted: bool,
}

impl RateSample {
    /// A sample of a flight of `delivered` packets without losses.
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

    /// The rate, for packets of `packet_bytes`.
    #[must_use]
    pub fn rate(&self, packet_bytes: u32) -> Rate {
        let bytes = f64::from(self.delivered) * f64::from(packet_bytes);
        Rate::from_bytes_per_sec(bytes / self.interval.as_secs_f64())
    }
}

/// Counts since a flow began, for external control ([`Report::tally`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Acks of new data; each gave one sample of the round-trip time.
    pub acks: u64,
    /// Acknowledged packets that were marked.
    pub marked: u64,
    /// Sum of the round-trip samples in picoseconds, modulo 2^64. A difference of two sums is exact up to 213 days.
    pub rtt_sum_ps: u64,
}

/// A lost packet, for laws that ask for delivery rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its sequence number.
    pub seq: u32,
    /// Packets in flight when it had left, including it.
    pub tx_in_flight: u32,
    /// Packets found lost since it left, including it.
    pub lost: u32,
    /// Packets delivered so far.
    pub delivered: u32,
    /// The application limited the sender when it left.
    pub app_limited: bool,
    /// Acks are selective, so that several losses can be found within one round trip.
    pub selective: bool,
}

/// Static properties of a law with its parameters. A law sets those that differ from the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub struct SenderTraits {
    /// Default loss recovery.
    pub recovery: Recovery,
    /// Default echo of marks.
    pub echo: Echo,
    /// Flows are ECN-capable by default. False for a law that does not react to marks.
    pub ecn: bool,
    /// Packets of ECN-capable flows carry the L4S codepoint ECT(1) (RFC 9331).
    pub l4s: bool,
    /// Acks carry a [`RateSample`], and the law hears of each lost packet. The transport then keeps a record of each
    /// packet in flight.
    pub delivery_rate: bool,
    /// By default a flow opens with a packet without data, whose answer the law needs before the first data leave,
    /// and also ends with one.
    pub handshake: bool,
    /// A flow turns into a TCP if a router on its path does not support the law's protocol.
    pub falls_back: bool,
    /// The law also works on a path without a router that writes its header.
    pub works_without_routers: bool,
    /// The law is told its path at the start of a flow ([`FlowChange::Path`]).
    pub knows_path: bool,
    /// Flows ask whether their receiver supports the law's header, and work without it if not.
    pub asks_receiver: bool,
    /// Flows send a window in a burst, although their routers expect its packets spread over a round trip.
    pub sends_at_once: bool,
    /// Packets leave at the pace regardless of feedback. They are neither acknowledged nor retransmitted.
    pub datagrams: bool,
    /// The law has no data to send and governs a link. One control packet per round trip asks for feedback, and the
    /// link's queue leaves at the law's pace.
    pub governs: bool,
    /// With `governs`: a flow of the link counts as present for so long after its last packet
    /// ([`FlowChange::Ingress`]).
    pub counts_flows: Option<Time>,
    /// With `governs`: packets without a header carry the law's stamp from the link to where its flow ends.
    pub stamps_link: bool,
    /// Parameters may change during a flow ([`FlowChange::Params`]).
    pub told: bool,
    /// Bytes by which an acknowledged byte raises the window at most, where no feedback or loss holds it back.
    pub per_acked: u32,
    /// Heap bytes that the law allocates per flow.
    pub heap_bytes: usize,
}

impl SenderTraits {
    /// A window law with selective acks that reacts to marks as to losses.
    pub const DEFAULT: Self = Self {
        recovery: Recovery::Sack,
        echo: Echo::Classic,
        ecn: true,
        l4s: false,
        delivery_rate: false,
        handshake: false,
        falls_back: false,
        works_without_routers: false,
        knows_path: false,
        asks_receiver: false,
        sends_at_once: false,
        datagrams: false,
        governs: false,
        counts_flows: None,
        stamps_link: false,
        told: false,
        per_acked: 1,
        heap_bytes: 0,
    };

    /// Whether a flow of this law transfers data by a window or a rate that the law itself sets. This excludes
    /// datagrams, laws that govern a link, and laws that are told.
    #[must_use]
    pub const fn stands_alone(&self) -> bool {
        !(self.datagrams || self.governs || self.told)
    }
}

/// Limits of the probes that a flow sends while it waits for its pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probes {
    /// Largest share of the rate that probes may take.
    pub share: f64,
    /// Largest number of round trips between two probes, whatever share they take.
    pub longest_gap: u64,
}

impl Probes {
    /// No probes: the law learns of a better rate from the packets that its pace allows.
    pub const NONE: Self = Self { share: 0.0, longest_gap: u64::MAX };
}

/// The pace of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// The rate of departures.
    pub rate: Rate,
    /// Only the pace limits the flow; the window has no effect.
    pub alone: bool,
    /// Limits of probes; `None` allows one per round trip. See [`Probes::NONE`].
    pub probes: Option<Probes>,
}

impl Pacing {
    /// Time until a waiting flow may send the next probe, a packet of `probe_bytes`.
    #[must_use]
    pub fn probe_after(&self, srtt: Time, probe_bytes: u32) -> Time {
        let Some(probes) = self.probes else { return srtt };
        let held = Time::from_secs_f64(f64::from(probe_bytes) / (probes.share * self.rate.bytes_per_sec()));
        held.clamp(srtt, srtt * probes.longest_gap)
    }
}

/// A pace in addition to the window, with one probe per round trip.
impl From<Rate> for Pacing {
    #[inline]
    fn from(rate: Rate) -> Self {
        Self { rate, alone: false, probes: None }
    }
}

/// Control packets per round trip of a law with [`SenderTraits::stamps_link`]. They bring back the feedback of the link's
/// packets, which is then hardly older than feedback in a packet's own ack.
pub const CONTROLS: u32 = 8;

/// The answer to a packet without data: a handshake, a probe, or the control packet of a law that governs a link.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'a> {
    /// Now.
    pub now: Time,
    /// Smoothed round-trip time, after this answer's sample.
    pub srtt: Time,
    /// The stamp that the receiver echoed. With [`SenderTraits::stamps_link`] its last word includes the sum of the
    /// last words of the link's packets.
    pub stamp: &'a Stamp,
    /// The bits that the receiver echoed.
    pub bits: u16,
    /// Bytes that the governed link carried since the last answer.
    pub carried: f64,
}

/// A sign of congestion, or a correction of an earlier one. `flight` is in packets.
#[derive(Clone, Copy, Debug)]
pub enum Congestion<'a> {
    /// Duplicate acks or selective acks showed a loss. At most once per window of data (Reno: per fast retransmit).
    Loss {
        /// Packets in flight.
        flight: u32,
    },
    /// An ECN echo arrived. This call follows the ack that carried the echo. Losses and marks together cause at most one
    /// reduction per window of data.
    Mark {
        /// Packets in flight.
        flight: u32,
    },
    /// The retransmission timer expired.
    Timeout {
        /// Packets in flight.
        flight: u32,
    },
    /// A packet was found lost, only with [`SenderTraits::delivery_rate`]. If an ack showed the loss, this call comes
    /// before it. If a timeout did, it comes after.
    Packet(&'a LostPacket),
    /// The losses since the last repair began were spurious: all these packets have arrived. This call precedes the
    /// ack that showed it, and occurs only with [`SenderTraits::delivery_rate`].
    Spurious {
        /// Packets delivered after that ack.
        delivered: u32,
    },
}

impl Congestion<'_> {
    /// Returns the window that TCP's reaction leaves of `cwnd` bytes: half of the bytes in flight after a loss or a
    /// mark, and one packet after a timeout.
    pub(crate) fn halve(self, cwnd: f64, packet_bytes: f64) -> f64 {
        match self {
            Self::Loss { flight } | Self::Mark { flight } => {
                let flight = f64::from(flight) * packet_bytes;
                (flight.min(cwnd) / 2.0).max(packet_bytes)
            }
            Self::Timeout { .. } => packet_bytes,
            _ => cwnd,
        }
    }
}

/// Refuses a `desired_rate` of zero.
pub(crate) fn check_desired(rate: Option<Rate>) -> Result<(), Refused> {
    match rate {
        Some(rate) if rate <= Rate::ZERO => Err((
            "desired_rate",
            format!("is {rate}; it must be above 0, or left out for as much as there is"),
        )),
        _ => Ok(()),
    }
}

/// An external change during a flow.
#[derive(Clone, Copy, Debug)]
pub enum FlowChange<'a, P> {
    /// New parameters; only with [`SenderTraits::told`].
    Params(&'a P),
    /// The flow's path: at the start with [`SenderTraits::knows_path`], and after a change of route.
    Path(PathView),
    /// Measurements of the ingress, before each answer; only with [`SenderTraits::governs`].
    Ingress {
        /// Flows present on the governed link; only with [`SenderTraits::counts_flows`].
        micro_flows: Option<u32>,
        /// Shortest round trip of control packets so far.
        min_rtt: Time,
    },
}

/// Observable state of a flow's law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// When the flow stopped using its routers. Its packets carry no header since then.
    pub fallen_back: Option<Time>,
    /// Counts for external control; only with [`SenderTraits::told`].
    pub tally: Option<Tally>,
}

/// A window or rate law. It hears of acks and losses, and sets the window. It has no clock and does no I/O.
pub trait SenderLaw: Sized {
    /// Parameters that a scenario may set.
    type Params: Default;

    /// Static properties of the law with these parameters.
    fn traits(params: &Self::Params) -> SenderTraits {
        let _ = params;
        SenderTraits::DEFAULT
    }

    /// Checks the parameters.
    ///
    /// # Errors The first invalid parameter, and a value that would be right.
    fn check(params: &Self::Params) -> Result<(), Refused> {
        let _ = params;
        Ok(())
    }

    /// The parameters that follow from the network if the scenario does not set them.
    fn open(params: &mut Self::Params) -> Open<'_> {
        let _ = params;
        Open::default()
    }

    /// Creates the law at the start of a flow.
    fn new(params: &Self::Params, flow: &FlowView) -> Self;

    /// The congestion window in bytes, at least one packet. A law with a smaller window returns one packet, and a
    /// [pace](Self::pacing) below one packet per round trip.
    fn cwnd(&self) -> f64;

    /// The pace of departures; with `None` packets leave as soon as the window allows.
    fn pacing(&self) -> Option<Pacing> {
        None
    }

    /// The stamp for a data packet that leaves now. `srtt` is zero before the first sample.
    fn stamp(&self, now: Time, srtt: Time) -> Stamp;

    /// Sixteen bits beside the stamp, for headers that need only bits. Routers may change them
    /// ([`crate::router::PacketOut::bits`]), and an ack echoes those of the newest packet that it answers.
    fn bits(&self) -> u16 {
        0
    }

    /// Handles an ack of new data.
    fn on_ack(&mut self, ack: &Ack<'_>);

    /// Handles the answer to a packet without data.
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let _ = feedback;
    }

    /// Handles a loss, a mark or a timeout.
    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>);

    /// Handles an external change.
    fn on_change(&mut self, change: FlowChange<'_, Self::Params>) {
        let _ = change;
    }

    /// Observable state of the law.
    fn report(&self) -> Report {
        Report::default()
    }
}

/// A law with much state can be boxed, so that flows of other laws do not take its size.
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
