//! The sending end of a QUIC connection, between quinn and a law of the simulator.
//!
//! quinn detects losses and measures nothing for laws. This module turns its calls into those of
//! [`SenderLaw`], with the rules of the simulator's transport (`flowstamp_laws::transport`): the same estimator of the
//! round-trip time, the same delivery rates, one reduction per window of data, and the same order of news. A lost
//! packet comes before the ack that showed it, and the reduction after that ack. quinn reports acks first, so an ack
//! waits until quinn's next question shows that the report is complete.
//!
//! Deviations (the simulator does / we do / because):
//! 1. A retransmission has its packet's number, and recovery ends when it has arrived / it ends when all packets that had
//!    left before the loss have arrived or are lost / QUIC has no cumulative ack, and RFC 9002 has no retransmission of
//!    a packet.
//! 2. A timeout reduces the window / persistent congestion does / RFC 9002 section 7.6.
//! 3. Marks are counted / all packets of an ack with a mark count as marked / quinn reports only that there was one.
//! 4. A spurious loss is undone / it is not / quinn forgets lost packets.
//! 5. The law knows how much of the flow is left / it is told that the flow is endless / quinn does not say.
//! 6. Packets of a law without a pace leave as soon as the window allows / quinn spreads them at 5/4 of a window per
//!    round trip / its pacer cannot be switched off.
//! 7. Swift and FAST are told their path / they are not / hosts do not know it. Swift then has no hops to allow for, and takes
//!    the least round trip for the path's.
//! 8. A delivery rate uses the time at which a packet left / it uses the time at which quinn made the packet, before the
//!    pace held it back / quinn names packets by that time. Round trips start when the packet leaves.
//! 9. A change of XCP's window comes with an ack / it comes with an echo, and applies without an ack / there are fewer echoes than
//!    acks ([`crate::headers`]).
//! 10. XCP's flow asks whether its routers know XCP, or a scenario says so / it becomes a TCP with selective acks if its first
//!     request comes back as no router has seen it / nothing else would limit it.
//! 11. Samples count as application-limited when nothing is left to send / they do at the next ack / quinn tells it with
//!     acks only.

use crate::headers;
use crate::records::Records;
use flowstamp_laws::registry::{AnySender, Header, SenderSpec};
use flowstamp_laws::sender::{Ack, Congestion, Echo, FlowView, SenderLaw, SenderTraits};
use flowstamp_laws::stamp::Stamp;
use flowstamp_laws::tcp;
use flowstamp_laws::transport::Params;
use flowstamp_laws::transport::rates::Rates;
use flowstamp_laws::transport::rto::RttEstimator;
use flowstamp_laws::units::{Rate, Time};
use flowstamp_wire::option::Protocol;
use flowstamp_wire::quic_stamp::Echo as Echoed;
use std::time::{Duration, Instant};

/// Packets of the initial window (RFC 9002 section 7.2).
pub const INITIAL_WINDOW: f64 = 10.0;
/// Headers below QUIC that a law's packet includes, as on a wire: IPv4 and UDP, bytes.
pub const BELOW_QUIC: u32 = 28;
/// A pace that fell behind may catch up by bursts of this length. On a busy machine threads run late by milliseconds, and a
/// rate that never caught up would be too low.
const CATCH_UP: Duration = Duration::from_millis(5);
/// A window that limits nothing.
const UNLIMITED: u64 = u64::MAX / 4;

/// An ack whose report by quinn may not be complete.
#[derive(Clone, Copy, Debug)]
struct Pending {
    now: Time,
    newly: u32,
    marked: bool,
    /// The oldest packet in flight has arrived.
    advanced: bool,
    /// When the newest of the acknowledged packets left.
    left_at: Time,
    /// Packets in flight before the ack.
    flight: u32,
    app_limited: bool,
}

/// The repair under way. Until all packets that had left before are settled, no loss reduces the window again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing.
    Open,
    /// A loss: the law holds its window.
    Recovery,
    /// Persistent congestion: the law starts again, and acks open its window (RFC 9002 section 7.6.2).
    Timeout,
}

fn fresh_rtt() -> RttEstimator {
    let params = Params::default();
    RttEstimator::new(params.first_rto(Time::ZERO), params.min_rto, params.last_rto(Time::ZERO))
}

/// A law, and the state that its transport keeps for it.
#[derive(Clone, Debug)]
pub struct Sender {
    spec: SenderSpec,
    law: AnySender,
    traits: SenderTraits,
    mtu: u16,
    /// Bytes below and beside QUIC in each datagram.
    overhead: u32,
    epoch: Instant,
    rtt: RttEstimator,
    rates: Option<Rates>,
    records: Records,
    delivered: u32,
    phase: Phase,
    /// Number of the next packet when the phase began.
    recover: u32,
    /// Number of the next packet when the window was last reduced; 0 before.
    reduced_at: u32,
    reduced_by_mark: bool,
    round_end: u32,
    app_limited: bool,
    pending: Option<Pending>,
    /// RCP: the newest rate. XCP has none here.
    echo: Stamp,
    /// XCP: the last sum that the receiver echoed; zero before the first.
    granted: u32,
    /// The flow found no router of its law at the bottleneck, and `law` is a TCP instead of that of `spec`.
    left: bool,
    /// When the pace lets the next datagram leave.
    next_departure: Option<Instant>,
}

impl Sender {
    /// Creates the sender of a connection at `now`, whose datagrams have at most `mtu` bytes above UDP.
    #[must_use]
    pub fn new(spec: &SenderSpec, now: Instant, mtu: u16) -> Self {
        let mut sender = Self {
            spec: spec.clone(),
            law: spec.build(&FlowView { packet_bytes: 1, initial_window: 1.0, app_rate: None }),
            traits: spec.traits(),
            mtu,
            overhead: BELOW_QUIC,
            epoch: now,
            rtt: fresh_rtt(),
            rates: None,
            records: Records::default(),
            delivered: 0,
            phase: Phase::Open,
            recover: 0,
            reduced_at: 0,
            reduced_by_mark: false,
            round_end: 0,
            app_limited: false,
            pending: None,
            echo: Stamp::default(),
            granted: 0,
            left: false,
            next_departure: None,
        };
        sender.restart(spec, 0);
        sender
    }

    /// Starts `spec` afresh, as at the start of a flow. Each datagram has `beside` bytes more than quinn knows of.
    pub fn restart(&mut self, spec: &SenderSpec, beside: u32) {
        self.settle();
        self.overhead = BELOW_QUIC + beside;
        let packet_bytes = u32::from(self.mtu) + self.overhead;
        self.law = spec.build(&FlowView { packet_bytes, initial_window: INITIAL_WINDOW, app_rate: None });
        self.traits = spec.traits();
        self.spec = spec.clone();
        self.rates = self.traits.delivery_rate.then(Rates::default);
        // Round trips of the handshake include the time of its cryptography.
        self.rtt = fresh_rtt();
        self.round_end = self.records.next();
        (self.phase, self.recover) = (Phase::Open, 0);
        (self.reduced_at, self.reduced_by_mark) = (0, false);
        self.next_departure = None;
        // The receiver's sum goes on.
        (self.echo, self.left) = (Stamp::default(), false);
    }

    /// The law and its parameters.
    #[must_use]
    pub const fn spec(&self) -> &SenderSpec {
        &self.spec
    }

    /// The law.
    #[must_use]
    pub const fn law(&self) -> &AnySender {
        &self.law
    }

    /// Static properties of the law.
    #[must_use]
    pub const fn traits(&self) -> &SenderTraits {
        &self.traits
    }

    /// The header that routers may write for this law.
    #[must_use]
    pub const fn header(&self) -> Header {
        if self.left { Header::Plain } else { self.spec.header() }
    }

    /// Whether the flow has found no router of its law at the bottleneck, and has become a TCP.
    #[must_use]
    pub const fn has_left(&self) -> bool {
        self.left
    }

    /// Smoothed round-trip time without the receiver's delays subtracted, zero before the first sample.
    #[must_use]
    pub const fn srtt(&self) -> Time {
        self.rtt.srtt()
    }

    /// The shortest round-trip time, zero before the first sample.
    #[must_use]
    pub const fn min_rtt(&self) -> Time {
        self.rtt.min_rtt()
    }

    /// Size of a full packet with all headers, bytes.
    #[must_use]
    pub fn packet_bytes(&self) -> u32 {
        u32::from(self.mtu) + self.overhead
    }

    /// Takes a change of the path's maximum datagram size. Laws count packets, so only their size in bytes changes.
    pub const fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
    }

    fn time(&self, now: Instant) -> Time {
        Time::from_nanos(now.saturating_duration_since(self.epoch).as_nanos() as u64)
    }

    /// Notes that quinn made a datagram of `bytes`, whose last packet has this number.
    pub fn on_sent(&mut self, now: Instant, bytes: u64, number: u64) {
        self.settle();
        let at = self.time(now);
        let flight = self.records.flight();
        let seq = self.records.push(now, at, bytes, number);
        let Some(rates) = &mut self.rates else { return };
        rates.sent(at, seq, self.delivered, flight);
        if f64::from(flight + 2) * f64::from(u32::from(self.mtu) + self.overhead) > self.law.cwnd() {
            rates.limited_by_window(self.delivered);
        }
    }

    /// Notes that a datagram of `bytes` leaves the host now. Round trips start here if the pace held it back.
    pub fn on_departure(&mut self, now: Instant, bytes: u64) {
        let at = self.time(now);
        self.records.depart(at, bytes);
    }

    /// Takes one acknowledged packet. [`on_end_acks`](Self::on_end_acks) ends the list.
    pub fn on_ack(&mut self, sent: Instant, bytes: u64, app_limited: bool) {
        self.app_limited = app_limited;
        self.records.acked(sent, bytes);
    }

    /// Ends the list of packets that one ack acknowledges. `in_flight` bytes are left in flight.
    pub fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.settle();
        let now = self.time(now);
        let flight = self.records.flight();
        if app_limited {
            if let Some(rates) = &mut self.rates {
                rates.limited_by_application(self.delivered, flight);
            }
        }
        let before = self.records.first();
        let rates = &mut self.rates;
        let Some(arrived) = self.records.resolve(largest, |seq, at| {
            if let Some(rates) = rates {
                rates.arrived(seq, seq + 1, at);
            }
        }) else {
            return;
        };
        self.records.reconcile(in_flight);
        self.records.drop_settled();
        self.delivered += arrived.packets;
        self.app_limited = app_limited;
        self.pending = Some(Pending {
            now,
            newly: arrived.packets,
            marked: false,
            advanced: self.records.first() > before,
            left_at: arrived.newest_left,
            flight,
            app_limited,
        });
    }

    /// Takes the loss of `lost_bytes`, the newest of which left at `sent`; zero bytes are a mark.
    pub fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        let now = self.time(now);
        if lost_bytes == 0 {
            match &mut self.pending {
                Some(pending) => pending.marked = true,
                None => self.react_to_mark(now, self.records.flight()),
            }
            return;
        }
        let flight = self.pending.map_or_else(|| self.records.flight(), |pending| pending.flight);
        let mut fresh = self.phase == Phase::Open;
        let (law, rates, delivered) = (&mut self.law, &mut self.rates, self.delivered);
        self.records.lose(sent, lost_bytes, |seq| {
            if let Some(rates) = rates {
                let how = (false, core::mem::take(&mut fresh));
                rates.lose((seq, seq + 1), how, (delivered, true), |packet| {
                    law.on_congestion(now, Congestion::Packet(packet));
                });
            }
        });
        self.settle();
        self.records.drop_settled();
        if persistent {
            self.note_reduction(false);
            self.law.on_congestion(now, Congestion::Timeout { flight: flight.max(1) });
            self.follow();
            (self.phase, self.recover) = (Phase::Timeout, self.records.next());
            return;
        } else if self.phase != Phase::Open {
            return;
        } else if !(self.reduced_by_mark && self.records.first() < self.reduced_at) {
            // RFC 3168 section 6.1.2: a loss does not reduce a window that a mark has already reduced.
            self.note_reduction(false);
            self.law.on_congestion(now, Congestion::Loss { flight });
        }
        // Losses during a recovery do not prolong it: those of packets sent since then begin another.
        (self.phase, self.recover) = (Phase::Recovery, self.records.next());
    }

    fn note_reduction(&mut self, by_mark: bool) {
        self.reduced_at = self.records.next();
        self.reduced_by_mark = by_mark;
    }

    fn react_to_mark(&mut self, now: Time, flight: u32) {
        let due = self.reduced_at == 0 || self.records.first() > self.reduced_at;
        if self.traits.ecn && self.phase == Phase::Open && due {
            self.note_reduction(true);
            self.law.on_congestion(now, Congestion::Mark { flight });
        }
    }

    /// Tells the law of the ack that waits.
    fn settle(&mut self) {
        let Some(ack) = self.pending.take() else { return };
        let una = self.records.first();
        let round_over = una > self.round_end;
        if round_over {
            self.round_end = self.records.next();
        }
        let measured = self.rtt.measured(ack.left_at, ack.now);
        self.rtt.sample(measured, round_over);
        let min_rtt = self.rtt.min_rtt();
        let rate = self.rates.as_mut().and_then(|rates| {
            rates.forget(una);
            rates.sample(ack.now, self.delivered, min_rtt)
        });
        let was_recovering = self.phase == Phase::Recovery;
        let classic = self.traits.echo == Echo::Classic;
        let marked = ack.marked && self.traits.ecn;
        self.law.on_ack(&Ack {
            now: ack.now,
            newly_acked: ack.newly,
            marked: if marked { ack.newly } else { 0 },
            delivered: self.delivered,
            rtt: measured,
            min_rtt,
            srtt: self.rtt.srtt(),
            rate,
            stamp: &self.echo,
            bits: 0,
            flight: ack.flight,
            left: u32::MAX,
            in_recovery: was_recovering || marked && classic || !ack.advanced,
            window_limited: !ack.app_limited,
        });
        self.follow();
        if self.phase != Phase::Open && una >= self.recover {
            self.phase = Phase::Open;
        }
        if marked {
            self.react_to_mark(ack.now, ack.flight);
        }
    }

    /// The window in bytes of QUIC packets. quinn sends while a packet more stays *below* its window, hence the byte.
    pub fn window(&mut self) -> u64 {
        self.settle();
        if self.law.pacing().is_some_and(|pace| pace.alone) {
            return UNLIMITED;
        }
        let packets = self.law.cwnd() / f64::from(self.packet_bytes());
        ((packets * f64::from(self.mtu)) as u64).min(UNLIMITED) + 1
    }

    /// The law's pace.
    pub fn pace(&mut self) -> Option<Rate> {
        self.settle();
        self.law.pacing().map(|pace| pace.rate)
    }

    /// When the pace lets a datagram leave; `None` if it may leave now.
    pub fn held(&mut self, now: Instant) -> Option<Instant> {
        self.pace()?;
        self.next_departure.filter(|next| *next > now)
    }

    /// Notes that a datagram of `bytes`, which was not [`held`](Self::held), left at `now`: it uses the pace up.
    pub fn use_pace(&mut self, now: Instant, bytes: usize) {
        let Some(rate) = self.pace() else { return };
        let size = bytes as f64 + f64::from(self.overhead);
        let took = Duration::from_secs_f64((size / rate.bytes_per_sec().max(1.0)).min(60.0));
        let earliest = now.checked_sub(CATCH_UP).unwrap_or(now);
        self.next_departure = Some(self.next_departure.map_or(now, |next| next.max(earliest)) + took);
    }

    /// The stamp for a datagram that leaves now.
    pub fn stamp(&mut self, now: Instant) -> Stamp {
        self.settle();
        self.law.stamp(self.time(now), self.rtt.srtt())
    }

    /// Takes what the receiver echoes. RCP hears of a rate at the next ack, and XCP of a change at once.
    pub fn hear(&mut self, now: Instant, echo: Echoed) {
        if headers::protocol_of(self.header()) != Some(echo.protocol) {
            return;
        }
        if echo.protocol != Protocol::Xcp {
            self.echo = headers::rate_of(echo.value).into();
            return;
        }
        self.settle();
        if echo.value == 0 {
            if self.granted == 0 {
                // The same window in packets, which are shorter.
                let initial_window = self.law.cwnd() / f64::from(self.packet_bytes());
                let packet_bytes = self.plain_packet_bytes();
                let flow = FlowView { packet_bytes, initial_window, app_rate: None };
                self.leave(SenderSpec::default().build(&flow));
            }
            return;
        }
        let change = echo.value.wrapping_sub(self.granted.max(1)) as i32;
        self.granted = echo.value;
        let (now, srtt) = (self.time(now), self.rtt.srtt());
        let stamp = headers::change_of(f64::from(change), srtt.as_secs_f64());
        self.law.on_ack(&Ack {
            newly_acked: 0,
            delivered: self.delivered,
            min_rtt: self.rtt.min_rtt(),
            flight: self.records.flight(),
            left: u32::MAX,
            in_recovery: self.phase == Phase::Recovery,
            ..Ack::of_one(now, srtt, &stamp)
        });
    }

    /// Continues as the TCP that RCP's law has become, if it has.
    fn follow(&mut self) {
        let AnySender::Rcp(rcp) = &self.law else { return };
        if let Some(tcp) = rcp.tcp() {
            let packet_bytes = self.plain_packet_bytes();
            self.leave(AnySender::Sack(tcp.resized(&tcp::Params::default(), packet_bytes)));
        }
    }

    /// Size of a full packet without a stamp, bytes.
    fn plain_packet_bytes(&self) -> u32 {
        u32::from(self.mtu) + BELOW_QUIC
    }

    /// Continues under `tcp`, a TCP with selective acks whose packets carry no stamp.
    fn leave(&mut self, tcp: AnySender) {
        self.overhead = BELOW_QUIC;
        self.law = tcp;
        self.traits = SenderSpec::default().traits();
        self.rates = self.traits.delivery_rate.then(Rates::default);
        self.left = true;
    }
}
