//! How a sender sets its congestion window or rate.
//!
//! A [`SenderLaw`] owns the congestion window and nothing else. What all senders share (sequence numbers, loss
//! detection, retransmission, the retransmission timer) is in [`crate::transport`], which asks the law for its
//! window and tells it of acks and losses.

use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::{AgreedTime, Refused};

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
    /// How fast packets were delivered, for laws that ask for it ([`SenderLaw::wants_delivery_rate`]).
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

/// Counts since a flow began, for whoever decides in place of a law ([`SenderLaw::tally`]).
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

    /// The parameter that must be the same on all routers and senders of the law's header.
    fn agreed_time(params: &mut Self::Params) -> Option<AgreedTime<'_>> {
        let _ = params;
        None
    }

    /// Whether packets leave at the pace whatever comes back: they are not acknowledged and not sent again. Such a law has a pace.
    const DATAGRAMS: bool = false;

    /// Whether the law has no data to send, but governs a link: one control packet each round trip asks for it, and what waits for
    /// the link leaves at the pace.
    const GOVERNS: bool = false;

    /// Whether the law's parameters may change while its flows are there ([`SenderLaw::set_params`]).
    const TOLD: bool = false;

    /// Bytes of one flow's law that are in a place of their own, beyond its size.
    const HEAP_BYTES: usize = 0;

    /// Of a law that governs: how many flows take the link, which whoever knows the network fills in where it is open.
    fn micro_flows(params: &mut Self::Params) -> Option<&mut Option<u32>> {
        let _ = params;
        None
    }

    /// The governed link has carried so many bytes since the last answer; told before [`on_feedback`](Self::on_feedback).
    fn carried(&mut self, bytes: f64) {
        let _ = bytes;
    }

    /// A law at the start of a flow.
    fn new(params: &Self::Params, flow: &FlowView) -> Self;

    /// The parameters are these from now on; asked only of laws that are [told](Self::TOLD).
    fn set_params(&mut self, params: &Self::Params) {
        let _ = params;
    }

    /// How this law's losses are repaired unless the scenario says otherwise.
    fn recovery(&self) -> Recovery;

    /// Counts for whoever decides in place of the law; only laws that are [told](Self::TOLD) keep any.
    fn tally(&self) -> Option<Tally> {
        None
    }

    /// How marks are echoed to this law unless the scenario says otherwise.
    fn echo(&self) -> Echo {
        Echo::Classic
    }

    /// Whether its flows are ECN-capable where the scenario does not say: a law that does not answer marks is not.
    fn ecn() -> bool {
        true
    }

    /// Whether packets of flows with these parameters say that they are L4S ones, ECT(1) (RFC 9331); only if the flow does ECN.
    fn l4s(params: &Self::Params) -> bool {
        let _ = params;
        false
    }

    /// Whether acks shall bring a [`RateSample`], and each loss be told: the transport then keeps a record of each packet in flight.
    fn wants_delivery_rate(&self) -> bool {
        false
    }

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

    /// Whether flows with these parameters send a window as soon as they may, to routers that take packets to be spread over a round trip.
    fn sends_at_once(params: &Self::Params) -> bool {
        let _ = params;
        false
    }

    /// Whether flows with these parameters find out if their receivers know the law's header, and do without if not.
    fn asks_receiver(params: &Self::Params) -> bool {
        let _ = params;
        false
    }

    /// The law gave up its routers then: since that time its packets are plain ones.
    fn fallen_back(&self) -> Option<Time> {
        None
    }

    /// The flow's data pass so many routers of any kind, as the time to live of what has come back tells.
    fn passes(&mut self, hops: u8) {
        let _ = hops;
    }

    /// The congestion window in bytes, at least one packet.
    fn cwnd(&self) -> f64;

    /// What may be in flight, bytes: the congestion window, but for a law that holds flows by their pace alone.
    fn limit(&self) -> f64 {
        self.cwnd()
    }

    /// The pace of departures; `None` sends whatever the window allows at once.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// How long a flow that waits for its pace does so before it asks the path again, with a packet of `probe_bytes`.
    fn probe_after(&self, srtt: Time, probe_bytes: u32) -> Time {
        let _ = probe_bytes;
        srtt
    }

    /// New data was acknowledged.
    fn on_ack(&mut self, ack: &Ack<'_>);

    /// A packet that carried no data came back: the answer to the handshake or to a probe.
    fn on_feedback(&mut self, now: Time, srtt: Time, stamp: &Stamp, bits: u16) {
        let _ = (now, srtt, stamp, bits);
    }

    /// A loss was found by duplicate acks: at most once per window of data (Reno: per fast retransmit).
    fn on_loss(&mut self, now: Time, flight: u32);

    /// An ECN echo came: at most once per window of data, losses among them. It is told after the ack that brought it.
    fn on_mark(&mut self, now: Time, flight: u32) {
        self.on_loss(now, flight);
    }

    /// The retransmission timer expired.
    fn on_timeout(&mut self, now: Time, flight: u32);

    /// A packet was found lost: told before the ack that showed it, but after the timeout that did, and only to laws that ask for
    /// delivery rates.
    fn on_packet_lost(&mut self, now: Time, packet: &LostPacket) {
        let _ = (now, packet);
    }

    /// All that was found lost since the last repair began has arrived all the same: nothing was lost. Told before the ack that
    /// showed it, after which `delivered` packets have been delivered, and only to laws that ask for delivery rates.
    fn on_spurious_loss(&mut self, delivered: u32) {
        let _ = delivered;
    }

    /// The stamp for a data packet that leaves now. `srtt` is zero before the first sample.
    fn stamp(&self, now: Time, srtt: Time) -> Stamp;

    /// Sixteen bits beside the stamp, for laws whose header has no more; routers may change them
    /// ([`crate::router::RouterLaw::bits`]), and an ack echoes those of the newest packet that it answers.
    fn bits(&self) -> u16 {
        0
    }
}

/// A law of which much is to be remembered, in a place of its own: a flow of any other law is then no larger for it.
impl<L: SenderLaw> SenderLaw for Box<L> {
    type Params = L::Params;
    const DATAGRAMS: bool = L::DATAGRAMS;
    const GOVERNS: bool = L::GOVERNS;
    const TOLD: bool = L::TOLD;
    const HEAP_BYTES: usize = size_of::<L>() + L::HEAP_BYTES;
    fn micro_flows(params: &mut Self::Params) -> Option<&mut Option<u32>> {
        L::micro_flows(params)
    }
    fn carried(&mut self, bytes: f64) {
        (**self).carried(bytes);
    }
    fn check(params: &Self::Params) -> Result<(), Refused> {
        L::check(params)
    }
    fn agreed_time(params: &mut Self::Params) -> Option<AgreedTime<'_>> {
        L::agreed_time(params)
    }
    fn new(params: &Self::Params, flow: &FlowView) -> Self {
        Self::new(L::new(params, flow))
    }
    fn set_params(&mut self, params: &Self::Params) {
        (**self).set_params(params);
    }
    fn recovery(&self) -> Recovery {
        (**self).recovery()
    }
    fn tally(&self) -> Option<Tally> {
        (**self).tally()
    }
    fn echo(&self) -> Echo {
        (**self).echo()
    }
    fn ecn() -> bool {
        L::ecn()
    }
    fn l4s(params: &Self::Params) -> bool {
        L::l4s(params)
    }
    fn wants_delivery_rate(&self) -> bool {
        (**self).wants_delivery_rate()
    }
    fn handshake(&self) -> bool {
        (**self).handshake()
    }
    fn falls_back(params: &Self::Params) -> bool {
        L::falls_back(params)
    }
    fn sends_at_once(params: &Self::Params) -> bool {
        L::sends_at_once(params)
    }
    fn asks_receiver(params: &Self::Params) -> bool {
        L::asks_receiver(params)
    }
    fn fallen_back(&self) -> Option<Time> {
        (**self).fallen_back()
    }
    fn cwnd(&self) -> f64 {
        (**self).cwnd()
    }
    fn limit(&self) -> f64 {
        (**self).limit()
    }
    fn pacing_rate(&self) -> Option<Rate> {
        (**self).pacing_rate()
    }
    fn probe_after(&self, srtt: Time, probe_bytes: u32) -> Time {
        (**self).probe_after(srtt, probe_bytes)
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        (**self).on_ack(ack);
    }
    fn passes(&mut self, hops: u8) {
        (**self).passes(hops);
    }
    fn on_feedback(&mut self, now: Time, srtt: Time, stamp: &Stamp, bits: u16) {
        (**self).on_feedback(now, srtt, stamp, bits);
    }
    fn on_loss(&mut self, now: Time, flight: u32) {
        (**self).on_loss(now, flight);
    }
    fn on_mark(&mut self, now: Time, flight: u32) {
        (**self).on_mark(now, flight);
    }
    fn on_timeout(&mut self, now: Time, flight: u32) {
        (**self).on_timeout(now, flight);
    }
    fn on_packet_lost(&mut self, now: Time, packet: &LostPacket) {
        (**self).on_packet_lost(now, packet);
    }
    fn on_spurious_loss(&mut self, delivered: u32) {
        (**self).on_spurious_loss(delivered);
    }
    fn stamp(&self, now: Time, srtt: Time) -> Stamp {
        (**self).stamp(now, srtt)
    }
    fn bits(&self) -> u16 {
        (**self).bits()
    }
}
