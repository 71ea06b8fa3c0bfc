//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation-02) and lost packets (draft-ietf-ccwg-bbr), for
//! laws that ask for them.
//!
//! ```text
//! a packet P leaves:   P.delivered = C.delivered, P.delivered_time = C.delivered_time,              section 3.2
//!                      P.first_sent = C.first_sent, P.app_limited = (C.app_limited > 0)
//!                      with nothing in flight first C.first_sent = C.delivered_time = now
//! an ack:              P = the newest packet that it acknowledges                                   section 3.3
//!                      delivered = C.delivered - P.delivered
//!                      interval  = max(P.sent - P.first_sent, now - P.delivered_time)
//!                      C.first_sent = P.sent, C.delivered_time = now
//!                      no sample from an interval below the least RTT
//! nothing to send:     C.app_limited = C.delivered + in flight, until this many are delivered         section 3.4
//!
//! a packet P leaves:   P.tx_in_flight = in flight with it, P.lost = C.lost                           draft-ietf-ccwg-bbr 4.1.2.2
//! P is found lost:     C.lost += 1; the law is told P.tx_in_flight and C.lost - P.lost                                   5.5.10.2
//! an ack:              tx_in_flight = P.tx_in_flight, lost = C.lost - P.lost                                             2.3
//! a repair is spurious: all packets found lost have arrived, as first sent                                            5.5.11
//! ```
//!
//! The echoed timestamp shows whether the original packet arrived rather than its retransmission (RFC 3522). A packet
//! that was never retransmitted proves it by arriving at all.
//!
//! Deviations:
//!
//! 1. Section 3.3 takes the packet with the largest `P.delivered`. We take the one that left last (a later one of a burst, too), as
//!    the draft's successor does (draft-ietf-ccwg-bbr, `IsNewestPacket`).
//! 2. The draft counts bytes. We count packets: all packets of a flow have one size, except the last.
//! 3. With repair by count an ack names only the last transmission to arrive, and the sample is that one's. The law
//!    hears of no loss.
//! 4. draft-ietf-ccwg-bbr hears of each loss when it is found. A packet may be resent before it is found lost (RFC
//!    6675's NextSeg rules 3 and 4, go-back-N). We then count the loss at the retransmission, and the law sees it in
//!    the next sample.

use crate::sender::{LostPacket, RateSample};
use crate::units::Time;
use std::collections::VecDeque;

/// Size of the record of each packet in flight.
pub(super) const BYTES_PER_PACKET: usize = size_of::<Sent>();

/// Record of a packet in flight, from which its sample will follow.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    first_sent: Time,
    delivered_at: Time,
    delivered: u32,
    tx_in_flight: u32,
    /// Packets found lost before it left.
    lost_before: u32,
    app_limited: bool,
    /// It was retransmitted.
    again: bool,
    /// It was found lost after it was last sent.
    lost: bool,
    arrived: bool,
}

/// Records of all packets in flight.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// Sequence number of the first record.
    first: u32,
    records: VecDeque<Sent>,
    first_sent: Time,
    delivered_at: Time,
    /// Samples are application-limited until this many packets are delivered; 0 if they are not.
    app_limited: u32,
    /// The packet that left last, among those that the current ack acknowledges.
    newest: Option<Sent>,
    /// Packets found lost so far.
    lost: u32,
    /// Those that the current repair is about, and how many of these arrived after all.
    doubted: u32,
    refuted: u32,
    /// Number of packets delivered when the window was last full.
    full_at: Option<u32>,
    /// A packet has left after an idle time since the last sample.
    restarted: bool,
}

impl Rates {
    /// Records that packet `seq` leaves while `delivered` packets are delivered and `flight` are in flight.
    pub fn sent(&mut self, now: Time, seq: u32, delivered: u32, flight: u32) {
        if flight == 0 {
            self.first_sent = now;
            self.delivered_at = now;
            self.restarted |= self.app_limited > 0;
        }
        let record = Sent {
            at: now,
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            delivered,
            tx_in_flight: flight + 1,
            lost_before: self.lost,
            app_limited: self.app_limited > 0,
            again: false,
            lost: false,
            arrived: false,
        };
        if self.records.is_empty() {
            self.first = seq;
        }
        match self.records.get_mut((seq - self.first) as usize) {
            Some(before) => {
                let found = u32::from(!before.lost); // deviation 4
                self.lost += found;
                self.doubted += found;
                *before = Sent { again: true, lost_before: self.lost, ..record };
            }
            None => self.records.push_back(record),
        }
    }

    /// Notes that the window, not the pace or the application, limits the sender.
    pub const fn limited_by_window(&mut self, delivered: u32) {
        self.full_at = Some(delivered);
    }

    /// Notes that the application has nothing to send although the window is open.
    pub fn limited_by_application(&mut self, delivered: u32, flight: u32) {
        self.app_limited = (delivered + flight).max(1);
    }

    /// Marks packets from `from` up to `to` lost: all of them, or those sent once. With `fresh` a repair begins.
    pub fn lose(
        &mut self,
        (from, to): (u32, u32),
        (all, mut fresh): (bool, bool),
        (delivered, selective): (u32, bool),
        mut tell: impl FnMut(&LostPacket),
    ) {
        for seq in from.max(self.first)..to {
            let Some(record) = self.records.get_mut((seq - self.first) as usize) else { break };
            if record.arrived || record.lost || record.again && !all {
                continue;
            }
            if core::mem::take(&mut fresh) {
                (self.doubted, self.refuted) = (0, 0);
            }
            record.lost = true;
            self.lost += 1;
            self.doubted += 1;
            let (tx_in_flight, app_limited) = (record.tx_in_flight, record.app_limited);
            let lost = self.lost - record.lost_before;
            tell(&LostPacket { seq, tx_in_flight, lost, delivered, app_limited, selective });
        }
    }

    /// Whether the current repair was spurious: all the original packets have now arrived.
    pub fn repair_was_vain(&mut self) -> bool {
        let vain = self.doubted > 0 && self.refuted >= self.doubted;
        if vain {
            (self.doubted, self.refuted) = (0, 0);
        }
        vain
    }

    /// Marks packets from `from` up to `to` as arrived. `echoed` is the departure time that the ack echoes.
    pub fn arrived(&mut self, from: u32, to: u32, echoed: Time) {
        for seq in from.max(self.first)..to {
            let Some(record) = self.records.get_mut((seq - self.first) as usize) else { break };
            if !record.arrived {
                record.arrived = true;
                self.refuted += u32::from(record.lost || record.again && echoed < record.at);
                if self.newest.is_none_or(|newest| record.at >= newest.at) {
                    self.newest = Some(*record);
                }
            }
        }
    }

    /// Drops the records below `una`.
    pub fn forget(&mut self, una: u32) {
        let gone = (una.saturating_sub(self.first) as usize).min(self.records.len());
        self.records.drain(..gone);
        self.first += gone as u32;
    }

    /// Returns the sample of the current ack, after which `delivered` packets are delivered.
    pub fn sample(&mut self, now: Time, delivered: u32, min_rtt: Time) -> Option<RateSample> {
        let newest = self.newest.take()?;
        if delivered > self.app_limited {
            self.app_limited = 0;
        }
        self.first_sent = newest.at;
        self.delivered_at = now;
        let interval = (newest.at - newest.first_sent).max(now - newest.delivered_at);
        if interval < min_rtt || interval == Time::ZERO {
            return None;
        }
        Some(RateSample {
            delivered: delivered - newest.delivered,
            prior_delivered: newest.delivered,
            interval,
            tx_in_flight: newest.tx_in_flight,
            lost: self.lost - newest.lost_before,
            app_limited: newest.app_limited,
            window_full: self.full_at.is_some_and(|at| at >= newest.delivered),
            restarted: core::mem::take(&mut self.restarted),
        })
    }
}
