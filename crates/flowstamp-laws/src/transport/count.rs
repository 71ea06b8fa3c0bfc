//! Repair by numbers alone: the sender knows how many packets arrived, not which (Dukkipati 2007, section 6.3.1).
//!
//! ```text
//!   0 ... size-1                        | size ... size+m-1      | ...              numbers of transmissions
//!   all packets, at the law's rate      | m more                 | ...
//!                            2 RTT wait-'             2 RTT wait-'
//!   m = size - packets that the receiver has by then; over when m is 0
//! ```
//!
//! Every transmission has a number of its own and the receiver counts: an ack says how many arrived, and in a SACK block
//! which transmission came last. Those before it that did not arrive are lost, so that the window is not held by
//! them; they are made up for at the end all the same, as the thesis says. Nothing else reacts: no duplicate acks, no
//! backoff, and the law hears of no loss.
//!
//! - No RTT is known, because no ack has come yet: the wait is `initial_rto`, each time.
//! - Acks are lost: later ones make up for them. If the last ones are, more is sent than is missing, the receiver
//!   takes what it needs, and any ack of what is too much ends the flow.
//! - Nothing may leave for the whole wait, as the window is full or the application has no more: what is under way is
//!   given up, and sending goes on.
//! - Endless flows have no end at which to repair, and leave their losses.
//!
//! Deviations (thesis says / we do / because):
//!
//! 1. It sends the difference, and abstracts from which packets these are / so do we, at full size but for a flow of one
//!    packet: any packet stands for a missing one, as if coded / the count is all that is told. The author's ns-2 host,
//!    too, numbers what it sends again anew.
//! 2. It waits "for example" 2 RTT / twice the smoothed RTT at the last departure, where the ns-2 host takes the last
//!    sample / the transport keeps no other.
//! 3. The ns-2 host has no window / the law's holds / it is the pipe at the rate given, and bounds what a dead path costs.

use super::{AckPacket, News, Outgoing, Sender};
use crate::sender::SenderLaw;
use crate::units::Time;

impl Sender {
    /// Packets that the receiver has.
    pub(super) const fn received(&self) -> u32 {
        self.una - self.missed
    }

    /// How long to wait for what is under way.
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
        // A flow that was stopped after its last losses were given up waits from here.
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
        // All numbers below arrived or are lost.
        let top = ack.sack.first().map_or(ack.cumulative, |block| block.1);
        if top > self.next || ack.cumulative > top {
            return 0; // of what was never sent
        }
        let (flight, before) = (self.outstanding(), self.received());
        // What is beyond the flow's length came in vain.
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

    /// The wait is over: what is under way is lost, and if all was sent, what is missing is due.
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
