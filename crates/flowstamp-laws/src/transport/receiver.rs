//! The receiver: reassembly, acks, SACK blocks, the ECN echo and delayed acks.
//!
//! ```text
//! packet next in order             -> next += 1; ack, or with delayed acks every second packet or at the deadline
//! packet above a gap, or a copy    -> ack at once                                     RFC 5681 section 4.2
//! packet that fills a gap          -> next jumps over the run behind it; ack at once  RFC 5681 section 4.2
//! SACK blocks                      -> first the run of the packet that triggered the ack, then the runs most
//!                                     recently reported, at most three                RFC 2018 section 4
//! CE mark                          -> ECE in every ack until a packet with CWR comes  RFC 3168 section 6.1.3
//!            or, per packet        -> ECE in the acks of marked packets; a delayed ack goes out before a packet whose mark
//!                                     differs, so that ECE holds for all that an ack newly acknowledges
//!                                                                       RFC 8257 section 3.2, Alizadeh 2010, figure 10
//! echoed departure time            -> of the earliest packet this ack answers         RFC 7323 section 4.3
//! repair by count                  -> next = transmissions received, each once; above it one block, of the last one that
//!                                     arrived, if any before it did not               Dukkipati 2007, section 6.3.1
//! ```
//!
//! Deviations:
//!
//! 1. RFC 7323 echoes, in a duplicate ack, the timestamp of the last packet in order. We echo that of the packet
//!    which triggered the ack, so that selective acks give a round-trip sample too.
//! 2. RFC 2883 (a SACK block for a copy) is left out: the senders of the published figures do not use it.
//! 3. RFC 8257 section 3.2 sends one ack, with the new state, when the mark changes, and allows two. We send an ack
//!    for the earlier packets with the old state, and may delay the ack of the new packet, as in figure 10 of the
//!    paper. No mark is then counted for an unmarked packet.
//! 4. RFC 3168 clears the echo on CWR at once. If an ack is being delayed, we still send the echo that it owes.

use super::seen::Seen;
use super::{Agreed, Params, runs::RunSet};
use crate::sender::{Echo, Recovery};
use crate::stamp::Stamp;
use crate::units::Time;

/// Maximum number of SACK blocks in an ack: as many as fit beside a timestamp option (RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// A data packet as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct DataPacket<'a> {
    /// Sequence number in packets.
    pub seq: u32,
    /// A router set congestion experienced.
    pub ce: bool,
    /// The sender has reduced its window (RFC 3168's CWR flag).
    pub cwr: bool,
    /// When the packet left the sender.
    pub sent_at: Time,
    /// The stamp, as the routers have written it.
    pub stamp: &'a Stamp,
    /// The bits, as the routers have written them.
    pub bits: u16,
}

/// Up to three half-open ranges of packets that arrived above the cumulative ack, most recent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    count: u8,
}

impl SackBlocks {
    /// The blocks.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    fn push(&mut self, block: (u32, u32)) {
        if usize::from(self.count) < MAX_SACK_BLOCKS {
            self.blocks[usize::from(self.count)] = block;
            self.count += 1;
        }
    }
}

impl core::ops::Deref for SackBlocks {
    type Target = [(u32, u32)];
    fn deref(&self) -> &Self::Target {
        self.as_slice()
    }
}

/// The contents of an ack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckInfo {
    /// The next packet expected: all below have arrived. With [`Recovery::Count`], the number of packets that
    /// arrived.
    pub cumulative: u32,
    /// Packets that arrived above `cumulative`.
    pub sack: SackBlocks,
    /// Congestion was experienced, and the sender has not confirmed it.
    pub ecn_echo: bool,
    /// Departure time of the earliest packet that this ack answers.
    pub sent_at: Time,
    /// Merged stamp of all packets that this ack answers.
    pub stamp: Stamp,
    /// The bits of the newest packet that this ack answers.
    pub bits: u16,
}

/// Packets that wait above a gap.
#[derive(Clone, Debug)]
struct OutOfOrder {
    set: RunSet,
    /// One above the highest packet that arrived.
    top: u32,
    /// Runs as last reported, most recent first.
    recent: SackBlocks,
    /// Packets that arrived more than once.
    copies: u32,
}

/// Record of arrivals above a gap.
#[derive(Clone, Debug)]
enum Above {
    Runs(OutOfOrder),
    /// Numbers of counted transmissions.
    Numbers(Box<Seen>),
}

/// Heap bytes of a receiver, without those of its sets.
pub(super) const HEAP_BYTES: usize = size_of::<Above>() + size_of::<Delay>();

/// Delayed-ack state.
#[derive(Clone, Debug)]
struct Delay {
    timeout: Time,
    /// Deadline of the delayed ack; [`Time::MAX`] if there is none.
    deadline: Time,
    /// Departure time of the earliest packet that the delayed ack answers, and the merged stamp.
    waiting: Option<(Time, Stamp)>,
}

/// The receiving end of a flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    next: u32,
    /// One above the highest transmission that arrived, set once an earlier one is missing (Count).
    top: u32,
    counts: bool,
    /// How marks are echoed; `None` if they are not.
    echo: Option<Echo>,
    /// Congestion was experienced and CWR has not arrived yet.
    congestion: bool,
    /// The next ack owes an echo.
    echo_owed: bool,
    /// Bits of the newest packet.
    bits: u16,
    /// A packet arrived above a gap. `above` has the details, so that most packets need not read it.
    gap: bool,
    above: Option<Box<Above>>,
    /// Set if only every second packet is acknowledged.
    delay: Option<Box<Delay>>,
}

impl Receiver {
    /// Creates a receiver that has seen no packet.
    #[must_use]
    pub fn new(params: &Params, agreed: impl Into<Agreed>) -> Self {
        let Agreed { recovery, echo, .. } = agreed.into();
        Self {
            next: 0,
            top: 0,
            counts: recovery == Recovery::Count,
            echo: params.ecn().then_some(echo),
            congestion: false,
            echo_owed: false,
            bits: 0,
            gap: false,
            above: None,
            delay: params.delayed_acks.then(|| {
                Box::new(Delay { timeout: params.delayed_ack_timeout, deadline: Time::MAX, waiting: None })
            }),
        }
    }

    /// Returns the delayed ack that must leave before the next packet, which is marked if `ce`. There is one if marks
    /// are echoed per packet and the two marks differ. Call it before [`Self::on_data`].
    #[inline]
    pub fn before_data(&mut self, ce: bool) -> Option<AckInfo> {
        let differs = self.echo == Some(Echo::PerPacket) && self.echo_owed != ce;
        if differs { self.delayed_ack() } else { None }
    }

    /// Takes a data packet. Returns the ack to send now, if any. `merge` is [`crate::stamp::StampLaw::merge`] of the
    /// flow's header: it folds a newer stamp into one that is not yet acknowledged.
    #[inline]
    pub fn on_data(
        &mut self,
        now: Time,
        packet: &DataPacket<'_>,
        merge: impl FnOnce(&mut Stamp, &Stamp),
    ) -> Option<AckInfo> {
        match self.echo {
            Some(Echo::Classic) => {
                if packet.cwr {
                    self.congestion = false;
                }
                self.congestion |= packet.ce;
                self.echo_owed |= self.congestion;
            }
            Some(Echo::PerPacket) => self.echo_owed |= packet.ce,
            None => {}
        }
        self.bits = packet.bits;
        let in_line = packet.seq == self.next && !self.gap;
        if in_line {
            self.next += 1;
        } else {
            self.rearrange(packet.seq);
        }
        if let Some(delay) = &mut self.delay {
            if let Some((_, stamp)) = &mut delay.waiting {
                merge(stamp, packet.stamp);
                return self.delayed_ack();
            }
            if in_line {
                delay.waiting = Some((packet.sent_at, *packet.stamp));
                delay.deadline = now.saturating_add(delay.timeout);
                return None;
            }
        }
        Some(self.ack(packet.sent_at, packet.stamp))
    }

    /// Takes a packet that arrives while there is a gap, that opens one, or that is a copy.
    #[cold]
    fn rearrange(&mut self, seq: u32) {
        if self.counts {
            if self.count(seq) {
                self.top = self.top.max(seq + 1);
            }
            return;
        }
        let next = self.next;
        let above = self.above.get_or_insert_with(|| {
            let recent = SackBlocks::default();
            Box::new(Above::Runs(OutOfOrder { set: RunSet::new(next), top: next, recent, copies: 0 }))
        });
        let Above::Runs(o) = &mut **above else { return };
        if seq < next {
            o.copies += 1;
            return;
        }
        o.set.advance(next);
        if seq == next {
            // RFC 5681 section 4.2: the packet fills a gap.
            self.next = if o.set.contains(seq + 1) { o.set.run_end(seq + 1) } else { seq + 1 };
            o.set.advance(self.next);
            self.gap = o.set.len() > 0;
            o.report(None, self.next);
            return;
        }
        o.top = o.top.max(seq + 1);
        let run = if o.set.contains(seq) {
            o.copies += 1;
            o.set.run_around(seq)
        } else {
            o.set.fill(seq, seq + 1)
        };
        self.gap = true;
        o.report(Some(run), next);
    }

    /// Counts a transmission by its number. Returns false for a copy that the network made. Datagrams, which are
    /// neither acknowledged nor repaired, need only this; their numbers may wrap.
    pub fn count(&mut self, number: u32) -> bool {
        let next = self.next;
        if number == next && !self.gap {
            self.next = next.wrapping_add(1);
            return true;
        }
        let above =
            self.above.get_or_insert_with(|| Box::new(Above::Numbers(Box::new(Seen::all_below(next)))));
        let Above::Numbers(seen) = &mut **above else { return false };
        if !self.gap {
            **seen = Seen::all_below(next); // all numbers that arrived in order since
        }
        let new = seen.note(number);
        self.next = next.wrapping_add(u32::from(new));
        self.gap = seen.top() != self.next;
        new
    }

    /// The packets above a gap, if there is one.
    #[inline]
    fn above_gap(&self) -> Option<&OutOfOrder> {
        if !self.gap {
            return None; // most packets need not look at `above`
        }
        match self.above.as_deref() {
            Some(Above::Runs(o)) => Some(o),
            _ => None,
        }
    }

    /// Ends the delay of the delayed ack and returns it, if there is one.
    fn delayed_ack(&mut self) -> Option<AckInfo> {
        let delay = self.delay.as_mut()?;
        let (sent_at, stamp) = delay.waiting.take()?;
        delay.deadline = Time::MAX;
        Some(self.ack(sent_at, &stamp))
    }

    /// Builds the ack for all packets that arrived.
    #[inline]
    fn ack(&mut self, sent_at: Time, stamp: &Stamp) -> AckInfo {
        let ecn_echo = self.echo_owed | self.congestion;
        self.echo_owed = false;
        let mut sack = self.above_gap().map_or_else(SackBlocks::default, |o| o.recent);
        if self.top > self.next {
            sack.push((self.top - 1, self.top));
        }
        AckInfo { cumulative: self.next, sack, ecn_echo, sent_at, stamp: *stamp, bits: self.bits }
    }

    /// When the delayed ack is due; [`Time::MAX`] if there is none.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.delay.as_ref().map_or(Time::MAX, |delay| delay.deadline)
    }

    /// Returns the delayed ack if it is due at `now`.
    pub fn on_timer(&mut self, now: Time) -> Option<AckInfo> {
        if now >= self.deadline() { self.delayed_ack() } else { None }
    }

    /// Distinct packets received. With [`Recovery::Count`], transmissions, some of which may exceed the flow's
    /// length.
    #[must_use]
    #[inline]
    pub fn delivered(&self) -> u32 {
        self.next + self.above_gap().map_or(0, |o| o.set.len())
    }

    /// Packets that arrived more than once. D-SACK (RFC 2883) reports these, so that a sender detects unnecessary
    /// retransmissions.
    #[must_use]
    pub fn copies(&self) -> u32 {
        match self.above.as_deref() {
            Some(Above::Runs(o)) => o.copies,
            _ => 0,
        }
    }

    /// Whether the receiver counts transmissions ([`Recovery::Count`]).
    #[must_use]
    #[inline]
    pub const fn counts(&self) -> bool {
        self.counts
    }

    /// The next packet expected in order.
    #[must_use]
    pub const fn next_expected(&self) -> u32 {
        self.next
    }
}

impl OutOfOrder {
    /// Updates `recent` after `newest`, the run that grew, if any, and the cumulative ack `next`.
    fn report(&mut self, newest: Option<(u32, u32)>, next: u32) {
        let mut blocks = SackBlocks::default();
        if let Some(run) = newest {
            blocks.push(run);
        }
        for old in self.recent.iter() {
            // A run that was filled, or joined to the newest run, no longer exists.
            if old.0 > next && newest.is_none_or(|run| old.1 <= run.0 || old.0 >= run.1) {
                blocks.push(*old);
            }
        }
        // Runs that were pushed out of the list return when there is room, lowest first.
        let mut seq = next;
        while u32::from(blocks.count) < self.set.runs().min(MAX_SACK_BLOCKS as u32) {
            let Some(run) = self.set.run_from(seq, self.top) else { break };
            if !blocks.contains(&run) {
                blocks.push(run);
            }
            seq = run.1;
        }
        self.recent = blocks;
    }
}
