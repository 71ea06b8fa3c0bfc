//! The part that all senders share: sequence numbers, loss detection, retransmission and its timer.
//!
//! Sequence numbers count packets from 0. The law ([`SenderLaw`]) owns the window. The transport asks for it, tells
//! the law of losses and marks, and sends
//!
//! ```text
//! while (flight + 1) * packet <= limit + inflation * packet
//!
//!                    third duplicate ack                 all outstanding packets are acknowledged
//!         +------+ ------------------------> +----------+ -------------------------------------> +------+
//!         | Open |     Congestion::Loss      | Recovery |  (Reno: any new ack)                   | Open |
//!         +------+ <--+                      +----------+                                        +------+
//!            | timer  | all acknowledged       | timer
//!            v        |                        v
//!         +----------------------------------------+   Congestion::Timeout, RTO doubled
//!         | Loss: resend from the cumulative ack   |   Reno, NewReno: all packets; Sack: unsacked ones
//!         +----------------------------------------+
//! ```
//!
//! - **Reno** (RFC 2581 section 3.2): flight is all outstanding packets; each duplicate ack inflates the window by
//!   one packet; the first new ack ends recovery.
//! - **`NewReno`** (RFC 6582): a partial ack resends the next hole and deflates the window by what it acknowledged,
//!   less one. Impatient: only the first partial ack restarts the timer (section 3.2 step 3).
//! - **Sack** (RFC 6675): flight is the scoreboard's pipe; NextSeg rules 1 to 4.
//! - **Count** (Dukkipati's thesis, for RCP): the sender does not detect losses, but makes up for them at the end;
//!   see [`count`].
//! - Limited transmit (RFC 3042): each of the first two duplicate acks releases a new packet. This also holds after a
//!   recovery or a timeout, once go-back-N has resent everything.
//! - ECN (RFC 3168 section 6.1.2): an echo reduces the window once per window of data ([`Congestion::Mark`]); the
//!   next new packet has CWR. Retransmissions are not ECN-capable (section 6.1.5). With an echo per packet (RFC 8257)
//!   each ack tells the law how many packets were marked, and [`Congestion::Mark`] follows as well; the law decides
//!   whether such an ack opens the window.
//!
//! Deviations:
//!
//! 1. RFC 6582 asks for `recover` to be the initial sequence number, which would forbid a fast retransmit of the very
//!    first packet. We allow it, as ns-2's `bugfix_ss_` does.
//! 2. RFC 2581 is silent on further losses in the same window. Our Reno follows RFC 6582 section 3.2 there: no second
//!    fast retransmit until an ack exceeds the highest packet sent when the last recovery or timeout began. A further
//!    loss of that window waits for the timer (ns-2's `bugFix_`). The heuristics of RFC 6582 section 4, which are
//!    optional, are left out.
//! 3. RFC 6582 deflates the law's own window on partial acks, possibly below ssthresh. We deflate the inflation only,
//!    because the window belongs to the law. A full ack leaves the law's window (the RFC's second option).
//! 4. RFC 6582 and 2581 do not restart the timer at a fast retransmit. We do, as ns-2 and Linux do. Sack also
//!    restarts it when the first unacknowledged packet is retransmitted in recovery, as Linux does. RFC 6675 section
//!    6 allows it at every retransmission: the timer would then never expire for a lost retransmission while new
//!    losses keep coming.
//! 5. RFC 6675 marks nothing lost after a timeout. We mark all unsacked packets lost and resend them by NextSeg rule
//!    1. We keep the sacked ones: a receiver here never discards data.
//! 6. RFC 6675 checks for a new recovery on duplicate acks; we do on every ack that reaches the scoreboard, so that
//!    an ack that ends one recovery can begin the next. The new recovery does not resend a packet that was already
//!    retransmitted.
//! 7. RFC 3168 lets a marked sender whose window is one packet wait for the timer. We leave that to the law.
//! 8. RFC 5681 section 4.1 restarts an idle sender from the initial window. We do not, because laws other than TCP's
//!    share this code.
//! 9. Sequence numbers do not wrap: a flow ends at 2^32 - 1 packets.
//! 10. RFC 3168 section 6.1.2 sets CWR on the first new data packet after a reduction. After a timeout we set it on
//!     the first packet of any kind, as ns-2 does. A go-back-N sender sends nothing new for as many round trips as
//!     the window had packets. Until then the receiver's echoes would keep its window at one packet.

pub mod count;
mod params;
pub mod rates;
pub mod receiver;
mod recovery;
pub mod rto;
mod runs;
mod scoreboard;
mod seen;

pub use params::{Agreed, Params};
pub use receiver::{AckInfo, DataPacket, MAX_SACK_BLOCKS, Receiver, SackBlocks};

use crate::sender::{Ack, Congestion, Echo, RateSample, Recovery, SenderLaw};
use crate::stamp::Stamp;
use crate::units::Time;
use rates::Rates;
use rto::RttEstimator;
use scoreboard::Scoreboard;

/// Heap bytes that both ends of a flow may take: out-of-order sets at both ends, delayed acks and delivery-rate
/// state.
pub const HEAP_BYTES: usize =
    size_of::<Scoreboard>() + size_of::<Rates>() + receiver::HEAP_BYTES + 2 * runs::LEAST_BYTES;
/// Additional bytes per packet in flight for these sets, which grow by doubling.
pub const SET_BYTES_PER_PACKET: usize = 4 * runs::BYTES_PER_PACKET;
/// Additional bytes per packet in flight where the law asks for the delivery rate.
pub const RATE_BYTES_PER_PACKET: usize = 2 * rates::BYTES_PER_PACKET;

/// Number of duplicate acks that indicate a loss (RFC 5681 section 3.2).
const DUP_THRESHOLD: u8 = 3;

/// A packet to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its sequence number.
    pub seq: u32,
    /// The packet, or the one that it stands for, was sent before. It must not be ECN-capable (RFC 3168 section
    /// 6.1.5).
    pub retransmission: bool,
    /// The packet carries RFC 3168's CWR flag: the window was reduced.
    pub cwr: bool,
}

/// An ack as the sender sees it.
#[derive(Clone, Copy, Debug)]
pub struct AckPacket<'a> {
    /// The next packet expected: all below have arrived.
    pub cumulative: u32,
    /// Half-open ranges of packets that arrived above `cumulative`.
    pub sack: &'a [(u32, u32)],
    /// Congestion was experienced.
    pub ecn_echo: bool,
    /// Echoed departure time of the packet that triggered the ack. As a timestamp it is unambiguous (Karn's rule).
    pub sent_at: Time,
    /// The echoed stamp.
    pub stamp: &'a Stamp,
    /// The echoed bits.
    pub bits: u16,
}

/// News that an ack brought, for the law.
#[derive(Clone, Copy, Debug)]
struct News {
    newly: u32,
    marked: u32,
    delivered: u32,
    rate: Option<RateSample>,
    flight: u32,
    in_recovery: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Recovery,
    Loss,
}

/// The sending end of a flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// First unacknowledged packet.
    una: u32,
    /// Next packet to send; below `high` while going back N.
    next: u32,
    /// One above the highest packet sent.
    high: u32,
    /// One above the last packet of the flow.
    end: u32,
    /// `high` when the current or last recovery or timeout began; 0 before any.
    recover: u32,
    /// `high` when the window was last reduced; 0 before.
    reduced_at: u32,
    /// Inflation of the window in packets.
    inflation: u32,
    /// The round trip ends when `una` exceeds this.
    round_end: u32,
    /// Numbers below `una` that did not arrive, and packets still to send for them (Count).
    missed: u32,
    due: u32,
    retransmissions: u32,
    timeouts: u32,
    rtt: RttEstimator,
    deadline: Time,
    scoreboard: Option<Box<Scoreboard>>,
    rates: Option<Box<Rates>>,
    recovery: Recovery,
    phase: Phase,
    /// Duplicate acks, counted up to the threshold.
    dup_acks: u8,
    /// New packets sent on the first two duplicate acks; FlightSize leaves them out (RFC 5681 section 3.2).
    limited_sent: u8,
    ecn: bool,
    /// Each echo refers to the packets of its own ack (RFC 8257), and does not persist as RFC 3168's does.
    echo_per_packet: bool,
    limited_transmit: bool,
    /// The slow path is needed: anything except loss-free sending of new data without rate samples.
    unusual: bool,
    /// The first hole is resent now, regardless of the window (fast retransmit).
    force: bool,
    /// The first partial ack of this recovery has arrived.
    partial_seen: bool,
    /// The next new packet carries CWR.
    cwr_due: bool,
    /// The last reduction answered an ECN echo.
    reduced_by_mark: bool,
    /// The window, not the application, last limited the sender.
    window_limited: bool,
}

impl Sender {
    /// Creates a sender of `length` packets; `None` means an endless flow.
    #[must_use]
    pub fn new(params: &Params, agreed: impl Into<Agreed>, length: Option<u32>) -> Self {
        let Agreed { recovery, echo, delivery_rate } = agreed.into();
        Self {
            una: 0,
            next: 0,
            high: 0,
            end: length.unwrap_or(u32::MAX),
            recover: 0,
            reduced_at: 0,
            inflation: 0,
            round_end: 0,
            missed: 0,
            due: 0,
            retransmissions: 0,
            timeouts: 0,
            rtt: RttEstimator::new(params.first_rto(Time::ZERO), params.min_rto, params.last_rto(Time::ZERO))
                .ticking(params.tick),
            deadline: Time::MAX,
            scoreboard: None,
            rates: delivery_rate.then(Box::default),
            recovery,
            phase: Phase::Open,
            dup_acks: 0,
            limited_sent: 0,
            ecn: params.ecn(),
            echo_per_packet: params.ecn() && echo == Echo::PerPacket,
            limited_transmit: params.limited_transmit,
            unusual: recovery == Recovery::Count || delivery_rate,
            force: false,
            partial_seen: false,
            cwr_due: false,
            reduced_by_mark: false,
            window_limited: true,
        }
    }

    /// Returns the packet that the window allows to leave now; call it until it returns `None`. `available` is the
    /// number of packets that the application has produced so far, `u32::MAX` if it always has more. Arms the
    /// retransmission timer.
    #[inline]
    pub fn next_packet<L: SenderLaw>(
        &mut self,
        now: Time,
        law: &L,
        packet_bytes: u32,
        available: u32,
    ) -> Option<Outgoing> {
        if self.unusual {
            return self.next_packet_noted(now, law, packet_bytes, available);
        }
        if !self.window_allows(law, packet_bytes, self.next - self.una) {
            self.window_limited = true;
            return None;
        }
        self.next_new(now, available)
    }

    /// Whether [`next_packet`](Self::next_packet) may return a packet. False is always right. True may be wrong while
    /// losses are repaired.
    pub fn may_send<L: SenderLaw>(&self, law: &L, packet_bytes: u32, available: u32) -> bool {
        if self.recovery == Recovery::Count || self.force {
            return true;
        }
        let something = self.phase != Phase::Open || self.next < self.end.min(available);
        something && self.window_allows(law, packet_bytes, self.flight())
    }

    #[inline]
    fn window_allows<L: SenderLaw>(&self, law: &L, packet_bytes: u32, flight: u32) -> bool {
        let bytes = (f64::from(flight) + 1.0 - f64::from(self.inflation)) * f64::from(packet_bytes);
        bytes <= law.cwnd() || law.pacing().is_some_and(|pace| pace.alone)
    }

    /// Returns the next packet of new data, if there is any.
    #[inline]
    fn next_new(&mut self, now: Time, available: u32) -> Option<Outgoing> {
        let seq = self.next;
        if seq >= self.end.min(available) {
            self.window_limited = false;
            return None;
        }
        self.window_limited = true;
        self.next = seq + 1;
        self.high = seq + 1;
        if self.deadline == Time::MAX {
            self.deadline = now.saturating_add(self.rtt.rto()); // RFC 6298 (5.1)
        }
        let cwr = self.cwr_due;
        self.cwr_due = false;
        Some(Outgoing { seq, retransmission: false, cwr })
    }

    /// Takes an ack. Returns the number of packets that it newly acknowledged, cumulatively or selectively.
    #[inline]
    pub fn on_ack<L: SenderLaw>(
        &mut self,
        now: Time,
        law: &mut L,
        packet_bytes: u32,
        ack: &AckPacket<'_>,
    ) -> u32 {
        let flight = self.next - self.una;
        let newly = ack.cumulative.wrapping_sub(self.una);
        // One comparison tests that `newly` is 1 to `flight`.
        let lasting_echo = ack.ecn_echo && !self.echo_per_packet;
        if self.unusual || lasting_echo || !ack.sack.is_empty() || newly.wrapping_sub(1) >= flight {
            return self.on_ack_unusual(now, law, packet_bytes, ack);
        }
        self.una = ack.cumulative;
        self.sample(now, ack.sent_at);
        self.restart_timer(now);
        let marked = if ack.ecn_echo { newly } else { 0 };
        let news = News { newly, marked, delivered: self.una, rate: None, flight, in_recovery: false };
        self.tell(now, law, ack, news);
        if ack.ecn_echo {
            self.react_to_mark(now, law, flight);
        }
        newly
    }

    /// Tells the law of a mark, once per window of data (RFC 3168 section 6.1.2).
    fn react_to_mark<L: SenderLaw>(&mut self, now: Time, law: &mut L, flight: u32) {
        if self.reduced_at == 0 || self.una > self.reduced_at {
            self.note_reduction(true);
            law.on_congestion(now, Congestion::Mark { flight });
        }
    }

    #[inline(always)] // once per ack
    fn tell<L: SenderLaw>(&self, now: Time, law: &mut L, ack: &AckPacket<'_>, news: News) {
        law.on_ack(&Ack {
            now,
            newly_acked: news.newly,
            marked: news.marked,
            delivered: news.delivered,
            rtt: now.saturating_sub(ack.sent_at),
            min_rtt: self.rtt.min_rtt(),
            srtt: self.rtt.srtt(),
            rate: news.rate,
            stamp: ack.stamp,
            bits: ack.bits,
            flight: news.flight,
            left: self.end.saturating_sub(news.delivered),
            in_recovery: news.in_recovery,
            window_limited: self.window_limited,
        });
    }

    /// The delivery rate at an ack after which `delivered` packets are delivered.
    fn rate_sample(&mut self, now: Time, delivered: u32) -> Option<RateSample> {
        let min_rtt = self.rtt.min_rtt();
        let rates = self.rates.as_mut()?;
        rates.forget(self.una);
        rates.sample(now, delivered, min_rtt)
    }

    #[inline]
    fn sample(&mut self, now: Time, sent_at: Time) {
        let round_over = self.una > self.round_end;
        if round_over {
            self.round_end = self.high;
        }
        self.rtt.sample(self.rtt.measured(sent_at, now), round_over);
    }

    /// RFC 6298 (5.2), (5.3).
    #[inline]
    fn restart_timer(&mut self, now: Time) {
        self.deadline = if self.una == self.high { Time::MAX } else { now.saturating_add(self.rtt.rto()) };
    }

    fn sacked(&self) -> u32 {
        self.scoreboard.as_ref().map_or(0, |board| board.sacked())
    }

    /// Takes the answer to a packet without data that left at `sent_at`, which gives a round-trip sample.
    pub fn on_answer(&mut self, now: Time, sent_at: Time) {
        self.rtt.sample(self.rtt.measured(sent_at, now), true);
    }

    /// When the retransmission timer expires; [`Time::MAX`] if it is not armed.
    #[inline]
    #[must_use]
    pub const fn deadline(&self) -> Time {
        self.deadline
    }

    /// Whether all packets are acknowledged.
    #[inline]
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.received() >= self.end
    }

    /// Whether the flow is sure to be incomplete after an ack of all packets below `cumulative`.
    #[inline]
    #[must_use]
    pub fn lasts_beyond(&self, cumulative: u32) -> bool {
        cumulative < self.end && self.recovery != Recovery::Count
    }

    /// Length of the flow in packets: `u32::MAX` if it is endless, the packets sent so far if it was stopped.
    #[inline]
    #[must_use]
    pub const fn length(&self) -> u32 {
        self.end
    }

    /// Stops the flow: it sends no new data from now on. Losses in flight are still repaired, and the flow is
    /// complete when all is acknowledged.
    pub fn stop(&mut self) {
        self.end = self.end.min(self.high);
    }

    /// Smoothed round-trip time, zero before the first sample.
    #[inline]
    #[must_use]
    pub const fn srtt(&self) -> Time {
        self.rtt.srtt()
    }

    /// Smallest round-trip time seen, zero before the first sample.
    #[must_use]
    pub const fn min_rtt(&self) -> Time {
        self.rtt.min_rtt()
    }

    /// The current retransmission timeout, with its backoff.
    #[must_use]
    pub const fn rto(&self) -> Time {
        self.rtt.rto()
    }

    /// Packets in flight, as the window rule counts them: for Sack the pipe of RFC 6675, else all packets outstanding
    /// since the last timeout.
    #[must_use]
    pub fn flight(&self) -> u32 {
        match &self.scoreboard {
            // Without limited transmit, a selective ack releases no packet before a loss is found.
            Some(board) if self.phase != Phase::Open || self.limited_transmit => {
                board.pipe(self.una, self.high)
            }
            _ => self.outstanding(),
        }
    }

    /// Packets sent but not cumulatively acknowledged.
    const fn outstanding(&self) -> u32 {
        self.next - self.una
    }

    /// The first packet that is not cumulatively acknowledged. With Count, the first that is not yet known to have
    /// arrived or to be lost.
    #[must_use]
    pub const fn unacked(&self) -> u32 {
        self.una
    }

    /// One above the highest packet ever sent, which is the next new packet.
    #[must_use]
    pub const fn next_seq(&self) -> u32 {
        self.high
    }

    /// Packets acknowledged, cumulatively or selectively. With Count, packets that the receiver has.
    #[must_use]
    pub fn delivered(&self) -> u32 {
        self.received() + self.sacked()
    }

    /// Whether fast recovery is under way.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// Retransmissions so far.
    #[must_use]
    pub const fn retransmissions(&self) -> u32 {
        self.retransmissions
    }

    /// Expiries of the retransmission timer so far.
    #[must_use]
    pub const fn timeouts(&self) -> u32 {
        self.timeouts
    }
}
