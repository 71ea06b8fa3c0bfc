//! Repair by numbers alone: the sender knows how many packets arrived, not which (Dukkipati 2007, section 6.3.1).
//!
//! ```text
//!   0 ... size-1                        | size ... size+m-1      | ...              numbers of transmissions
//!   all packets, at the law's rate      | m more                 | ...
//!                            2 RTT wait-'             2 RTT wait-'
//!   m = size - packets that the receiver has by then; over when m is 0
//! ```
//!
//! Every transmission has its own number, and the receiver counts them. An ack tells how many arrived and, in a SACK
//! block, which transmission arrived last. Earlier ones that did not arrive count as lost, so that they do not fill
//! the window. The sender still makes up for them only at the end, as the thesis says. Nothing else reacts: there are
//! no duplicate acks and no backoff, and the law hears of no loss.
//!
//! - While no RTT is known, because no ack has arrived, each wait is `initial_rto`.
//! - Later acks make up for lost acks. If the last acks are lost, the sender sends more than is missing. The receiver
//!   takes what it needs, and any ack of the excess ends the flow.
//! - If nothing may leave for a whole wait, because the window is full or the application has no data, the sender
//!   gives up the packets in flight and goes on sending.
//! - Endless flows never repair their losses, because they have no end.
//!
//! Deviations (thesis says / we do / because):
//!
//! 1. It sends the difference, regardless of which packets are missing / so do we, at full size except for a flow of
//!    one packet: any packet replaces a missing one, as if coded / acks tell only the count. The author's ns-2 host
//!    also gives retransmissions new numbers.
//! 2. It waits "for example" 2 RTT / we wait twice the smoothed RTT at the last departure, where the ns-2 host uses
//!    the last sample / the transport keeps no other estimate.
//! 3. The ns-2 host has no window / the law's window applies / it equals the bandwidth-delay product at the given
//!    rate, and bounds the packets lost on a dead path.

use super::{AckPacket, News, Outgoing, Sender};
use crate::sender::SenderLaw;
use crate::units::Time;

impl Sender {
    /// Packets that the receiver has.
    pub(super) const fn received(&self) -> u32 {
        self.una - self.missed
    }

    /// How long to wait for the packets in flight.
    fn patience(&self) -> Time {
        let srtt = self.rtt.srtt();
        if srtt == Time::ZERO { self.rtt.rto() } else { srtt * 2 }
    }

    pub(super) fn next_counted<L: SenderLaw>(
        &mut self,
        now: Time,
        law: &L,
        packet_bytes: u32,
        available: u32,
    ) -> Option<Outgoing> {
        if !self.window_allows(law, packet_bytes, self.outstanding()) {
            self.window_limited = true;
            return None;
        }
        let out = if self.next < self.end { self.next_new(now, available) } else { self.next_repair() };
        // A flow that is stopped after it gave up its last losses starts to wait here.
        let stopped = self.deadline == Time::MAX && self.next >= self.end && !self.is_complete();
        if out.is_some() || stopped {
            self.deadline = now.saturating_add(self.patience());
        }
        out
    }

    fn next_repair(&mut self) -> Option<Outgoing> {
        self.due = self.due.checked_sub(1)?;
        let seq = self.next;
        self.next += 1;
        self.high = self.next;
        self.retransmissions += 1;
        Some(Outgoing { seq, retransmission: true, cwr: core::mem::take(&mut self.cwr_due) })
    }

    pub(super) fn on_counted<L: SenderLaw>(&mut self, now: Time, law: &mut L, ack: &AckPacket<'_>) -> u32 {
        // All transmissions below `top` arrived or are lost.
        let top = ack.sack.first().map_or(ack.cumulative, |block| block.1);
        if top > self.next || ack.cumulative > top {
            return 0; // acknowledges a transmission that was never sent
        }
        let (flight, before) = (self.outstanding(), self.received());
        // Transmissions beyond the flow's length do not count.
        let received = before.max(ack.cumulative.min(self.end));
        self.una = self.una.max(top);
        self.missed = self.una - received;
        self.due = self.due.min(self.end - received);
        let newly = received - before;
        let marked = ack.ecn_echo && self.ecn;
        if newly > 0 {
            self.sample(now, ack.sent_at);
            let delivered = self.received();
            if let Some(rates) = &mut self.rates {
                rates.arrived(top - 1, top, ack.sent_at);
            }
            let rate = self.rate_sample(now, delivered);
            let in_recovery = marked && !self.echo_per_packet;
            let marked = if marked { newly } else { 0 };
            self.tell(now, law, ack, News { newly, marked, delivered, rate, flight, in_recovery });
        }
        if marked {
            self.react_to_mark(now, law, flight);
        }
        if self.is_complete() {
            self.deadline = Time::MAX;
        }
        newly
    }

    /// Ends the wait: the packets in flight are lost. If everything was sent, the missing packets are due.
    pub(super) fn on_counted_timeout(&mut self) {
        self.missed += self.outstanding();
        self.una = self.next;
        self.deadline = Time::MAX;
        if self.next >= self.end && self.due == 0 && !self.is_complete() {
            self.due = self.end - self.received();
            self.timeouts += 1;
        }
    }
}
