//! The slow path of the sender: loss detection, retransmissions, the window during recovery and timeouts.
//!
//! The header of [`super`] has the states, the sources and the deviations.

use super::scoreboard::Scoreboard;
use super::{AckPacket, DUP_THRESHOLD, News, Outgoing, Phase, Sender};
use crate::sender::{Congestion, Recovery, SenderLaw};
use crate::units::Time;

impl Sender {
    #[cold]
    #[inline(never)]
    pub(super) fn next_packet_noted<L: SenderLaw>(
        &mut self,
        now: Time,
        law: &L,
        packet_bytes: u32,
        available: u32,
    ) -> Option<Outgoing> {
        let flight = self.flight();
        let out = self.next_packet_unusual(now, law, packet_bytes, available);
        if self.rates.is_some() {
            self.note_rates(now, law, packet_bytes, flight, out);
        }
        out
    }

    /// Records the departure, or the reason why nothing leaves, for laws that ask for delivery rates.
    fn note_rates<L: SenderLaw>(
        &mut self,
        now: Time,
        law: &L,
        packet_bytes: u32,
        flight: u32,
        out: Option<Outgoing>,
    ) {
        let delivered = self.delivered();
        let full = match out {
            Some(_) => !self.window_allows(law, packet_bytes, flight + 1),
            None => self.window_limited,
        };
        let Some(rates) = &mut self.rates else { return };
        match out {
            Some(packet) => rates.sent(now, packet.seq, delivered, flight),
            None if !full => rates.limited_by_application(delivered, flight),
            None => {}
        }
        if full {
            rates.limited_by_window(delivered);
        }
    }

    fn next_packet_unusual<L: SenderLaw>(
        &mut self,
        now: Time,
        law: &L,
        packet_bytes: u32,
        available: u32,
    ) -> Option<Outgoing> {
        if self.recovery == Recovery::Count {
            return self.next_counted(now, law, packet_bytes, available);
        }
        if core::mem::take(&mut self.force) && self.una < self.high {
            let seq = match &mut self.scoreboard {
                Some(board) => board.take_lost(),
                None => Some(self.una),
            };
            if let Some(seq) = seq {
                // Go-back-N need not send the packet a second time.
                self.next = self.next.max(seq + 1);
                return Some(self.resend(now, seq));
            }
        }
        if !self.window_allows(law, packet_bytes, self.flight()) {
            self.window_limited = true;
            return None;
        }
        if let Some(seq) = self.scoreboard.as_mut().and_then(|board| board.take_lost()) {
            return Some(self.resend(now, seq)); // NextSeg (1)
        }
        if self.next < self.high {
            let seq = self.next;
            self.next += 1;
            return Some(self.resend(now, seq));
        }
        if let Some(out) = self.next_new(now, available) {
            if self.phase == Phase::Open && self.is_disordered() {
                self.limited_sent = (self.limited_sent + 1).min(DUP_THRESHOLD - 1);
            }
            return Some(out); // NextSeg (2)
        }
        if self.phase == Phase::Recovery && self.una < self.high {
            let high = self.high;
            let seq = self.scoreboard.as_mut().and_then(|b| b.take_hole().or_else(|| b.take_rescue(high)));
            return seq.map(|seq| self.resend(now, seq)); // NextSeg (3), (4)
        }
        None
    }

    fn resend(&mut self, now: Time, seq: u32) -> Outgoing {
        self.retransmissions += 1;
        // Deviation 4 of the transport. A timer restarted by every retransmission would not expire while repair goes
        // on.
        let first = self.recovery == Recovery::Sack && self.phase == Phase::Recovery && seq == self.una;
        if self.deadline == Time::MAX || first {
            self.deadline = now.saturating_add(self.rtt.rto());
        }
        let cwr = self.phase != Phase::Recovery && core::mem::take(&mut self.cwr_due); // deviation 10 of the transport
        Outgoing { seq, retransmission: true, cwr }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn on_ack_unusual<L: SenderLaw>(
        &mut self,
        now: Time,
        law: &mut L,
        packet_bytes: u32,
        ack: &AckPacket<'_>,
    ) -> u32 {
        let _ = packet_bytes;
        if self.recovery == Recovery::Count {
            return self.on_counted(now, law, ack);
        }
        // RFC 5681 section 2: ignore old acks and acks of packets that were never sent.
        if ack.cumulative < self.una || ack.cumulative > self.high {
            return 0;
        }
        let flight = self.flight();
        let outstanding = self.outstanding();
        let was_recovering = self.phase == Phase::Recovery;
        let advanced = ack.cumulative - self.una;
        let lost_edge = self.lost_edge();
        let newly = self.acknowledge(ack);
        if self.rates.is_some() {
            self.tell_losses(now, law, lost_edge);
        }
        if newly > 0 {
            self.sample(now, ack.sent_at);
        }
        // RFC 6582 section 3.2 step 3, impatient: only the first partial ack restarts the timer.
        let partial = was_recovering && self.recovery == Recovery::NewReno && self.una < self.recover;
        if advanced > 0 && !(partial && self.partial_seen) {
            self.restart_timer(now);
        }
        let marked = ack.ecn_echo && self.ecn;
        if newly > 0 {
            let delivered = self.delivered();
            let rate = self.rate_sample(now, delivered);
            // RFC 3168 section 6.1.2: an ack with an echo does not open the window. A purely selective ack does not
            // either.
            let in_recovery = was_recovering || marked && !self.echo_per_packet || advanced == 0;
            let marked = if marked { newly } else { 0 };
            self.tell(now, law, ack, News { newly, marked, delivered, rate, flight, in_recovery });
        }
        let lost = match self.recovery {
            Recovery::Sack => self.sack_finds_loss(advanced),
            _ => self.dup_acks_find_loss(advanced, outstanding),
        };
        if (lost || self.force) && self.scoreboard.is_none() {
            self.lose(now, law, (self.una, self.una + 1), (false, lost));
        }
        if lost {
            self.start_recovery(now, law, outstanding);
        } else if marked && self.phase == Phase::Open {
            self.react_to_mark(now, law, outstanding);
        }
        if self.una == self.high {
            self.deadline = Time::MAX;
        }
        self.note_unusual();
        newly
    }

    /// Every packet below this edge is lost unless it was sacked or retransmitted.
    fn lost_edge(&self) -> u32 {
        self.scoreboard.as_ref().map_or(self.una, |board| board.lost_edge())
    }

    /// Tells a law that asks for delivery rates which losses an ack showed. The scoreboard's edge was at `from`
    /// before it.
    fn tell_losses<L: SenderLaw>(&mut self, now: Time, law: &mut L, from: u32) {
        if self.rates.as_mut().is_some_and(|rates| rates.repair_was_vain()) {
            law.on_congestion(now, Congestion::Spurious { delivered: self.delivered() });
        }
        let to = self.lost_edge();
        if from < to {
            self.lose(now, law, (from, to), (false, self.phase == Phase::Open));
        }
    }

    /// Reports packets as lost: all that have not arrived, or those sent once. `how` is that choice, and whether a
    /// repair begins with them.
    fn lose<L: SenderLaw>(&mut self, now: Time, law: &mut L, packets: (u32, u32), how: (bool, bool)) {
        let known = (self.delivered(), self.recovery == Recovery::Sack);
        if let Some(rates) = &mut self.rates {
            rates.lose(packets, how, known, |packet| law.on_congestion(now, Congestion::Packet(packet)));
        }
    }

    /// Advances the cumulative ack and the scoreboard. Returns the number of newly acknowledged packets.
    fn acknowledge(&mut self, ack: &AckPacket<'_>) -> u32 {
        let (una, high) = (self.una, self.high);
        if self.recovery == Recovery::Sack && !ack.sack.is_empty() && self.scoreboard.is_none() {
            self.scoreboard = Some(Box::new(Scoreboard::new(una)));
        }
        self.una = ack.cumulative;
        self.next = self.next.max(ack.cumulative);
        let rates = &mut self.rates;
        if let Some(rates) = rates {
            rates.arrived(una, ack.cumulative, ack.sent_at);
        }
        match &mut self.scoreboard {
            Some(board) => board.on_ack(una, ack.cumulative, high, ack.sack, |from, to| {
                if let Some(rates) = rates {
                    rates.arrived(from, to, ack.sent_at);
                }
            }),
            None => ack.cumulative - una,
        }
    }

    /// Reno and `NewReno`: counts duplicate acks. Returns whether a recovery begins.
    fn dup_acks_find_loss(&mut self, advanced: u32, outstanding: u32) -> bool {
        if advanced > 0 {
            self.dup_acks = 0;
            self.limited_sent = 0;
            if self.phase == Phase::Recovery && self.recovery == Recovery::NewReno && self.una < self.recover
            {
                // RFC 6582 section 3.2 step 3: a partial ack.
                self.partial_seen = true;
                self.force = true;
                self.inflation = (self.inflation + 1).saturating_sub(advanced);
            } else {
                self.phase = Phase::Open;
                self.force = false;
                self.inflation = 0;
            }
            return false;
        }
        if outstanding == 0 {
            return false;
        }
        self.dup_acks = (self.dup_acks + 1).min(DUP_THRESHOLD);
        if self.phase == Phase::Recovery {
            self.inflation += 1; // RFC 2581 section 3.2 step 4
            return false;
        }
        if self.dup_acks >= DUP_THRESHOLD {
            // RFC 6582 section 3.2 step 1: ignore the loss of a packet sent before the last recovery or timeout.
            return self.recover == 0 || self.una > self.recover;
        }
        if self.limited_transmit && self.next == self.high {
            // RFC 3042, RFC 5681 section 3.2 step 1. Limited transmit also holds after a recovery or a timeout.
            self.inflation = u32::from(self.dup_acks);
        }
        false
    }

    /// Sack: reads the scoreboard. Returns whether a recovery begins.
    fn sack_finds_loss(&mut self, advanced: u32) -> bool {
        if self.phase != Phase::Open && self.una >= self.recover {
            self.phase = Phase::Open;
            self.force = false;
        }
        if advanced > 0 {
            self.limited_sent = 0;
        }
        self.phase == Phase::Open
            && self.una < self.high
            && self.scoreboard.as_ref().is_some_and(|board| board.is_lost(self.una))
    }

    fn start_recovery<L: SenderLaw>(&mut self, now: Time, law: &mut L, outstanding: u32) {
        // RFC 5681 section 3.2 step 2: FlightSize without the packets that limited transmit sent.
        let flight = outstanding.saturating_sub(u32::from(self.limited_sent));
        self.limited_sent = 0;
        // RFC 3168 section 6.1.2: a loss does not reduce a window that a mark has already reduced.
        if !(self.reduced_by_mark && self.una < self.reduced_at) {
            self.note_reduction(false);
            law.on_congestion(now, Congestion::Loss { flight });
        }
        self.phase = Phase::Recovery;
        self.partial_seen = false;
        match &mut self.scoreboard {
            Some(board) => {
                board.start_recovery();
                self.force = !board.is_retransmitted(self.una);
            }
            None => {
                self.force = true;
                self.inflation = u32::from(DUP_THRESHOLD); // RFC 2581 section 3.2 step 3
            }
        }
        self.recover = self.high; // RFC 6582 section 3.2 step 1, for Reno too: deviation 2 of the transport
        self.deadline = now.saturating_add(self.rtt.rto());
    }

    /// Notes a reduction; CWR announces a reduction of any kind (RFC 3168 section 6.1.2).
    pub(super) const fn note_reduction(&mut self, by_mark: bool) {
        self.reduced_at = self.high;
        self.reduced_by_mark = by_mark;
        self.cwr_due = self.ecn;
    }

    fn is_disordered(&self) -> bool {
        self.dup_acks > 0 || self.sacked() > 0
    }

    fn note_unusual(&mut self) {
        self.unusual = self.rates.is_some()
            || self.phase != Phase::Open
            || self.force
            || self.inflation > 0
            || self.next != self.high
            || self.is_disordered();
    }

    /// Handles the expiry of the retransmission timer, if [`Self::deadline`] has passed.
    pub fn on_timeout<L: SenderLaw>(&mut self, now: Time, law: &mut L) {
        if now < self.deadline {
            return;
        }
        if self.recovery == Recovery::Count {
            return self.on_counted_timeout();
        }
        if self.una == self.high {
            self.deadline = Time::MAX;
            return;
        }
        let fresh = self.phase == Phase::Open;
        self.timeouts += 1;
        let flight = self.outstanding().saturating_sub(u32::from(self.limited_sent)).max(1);
        law.on_congestion(now, Congestion::Timeout { flight });
        self.note_reduction(false);
        self.rtt.back_off(); // RFC 6298 (5.5)
        self.deadline = now.saturating_add(self.rtt.rto()); // RFC 6298 (5.6)
        self.recover = self.high; // RFC 6582 section 3.2 step 4, RFC 6675 section 5.1
        self.dup_acks = 0;
        self.inflation = 0;
        self.limited_sent = 0;
        self.force = false;
        if self.recovery == Recovery::Sack {
            self.phase = Phase::Loss;
            let (una, high) = (self.una, self.high);
            self.scoreboard.get_or_insert_with(|| Box::new(Scoreboard::new(una))).lose_all(una, high);
        } else {
            self.phase = Phase::Open;
            self.next = self.una;
        }
        self.unusual = true;
        self.lose(now, law, (self.una, self.high), (true, fresh));
    }
}
