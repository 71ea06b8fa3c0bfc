//! How fast packets are delivered (draft-cheng-iccrg-delivery-rate-estimation-02), for laws that ask for it.
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
//! nothing to send:     C.app_limited = C.delivered + in flight, until so many are delivered          section 3.4
//! ```
//!
//! Deviations:
//!
//! 1. Section 3.3 takes the packet with the largest `P.delivered`. We take the one that left last (a later one of a burst, too), as
//!    the draft's successor does (draft-ietf-ccwg-bbr, `IsNewestPacket`).
//! 2. The draft counts bytes. We count packets: all are of one size but a flow's last.
//! 3. With repair by count an ack names one transmission, the last to arrive: the sample is that one's.

use crate::sender::RateSample;
use crate::units::Time;
use std::collections::VecDeque;

/// What a packet in flight will be measured by.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    first_sent: Time,
    delivered_at: Time,
    delivered: u32,
    app_limited: bool,
    arrived: bool,
}

/// A record of each packet in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// Sequence number of the first record.
    first: u32,
    records: VecDeque<Sent>,
    first_sent: Time,
    delivered_at: Time,
    /// Until so many packets are delivered, samples are the application's; 0 if they are the path's.
    app_limited: u32,
    /// The last to leave of the packets that the present ack acknowledges.
    newest: Option<Sent>,
}

impl Rates {
    /// Packet `seq` leaves, when `delivered` have been delivered, and nothing or something is in flight.
    pub(super) fn sent(&mut self, now: Time, seq: u32, delivered: u32, idle: bool) {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        let record = Sent {
            at: now,
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            delivered,
            app_limited: self.app_limited > 0,
            arrived: false,
        };
        if self.records.is_empty() {
            self.first = seq;
        }
        match self.records.get_mut((seq - self.first) as usize) {
            Some(again) => *again = record,
            None => self.records.push_back(record),
        }
    }

    /// The application has nothing to send while the window would allow it.
    pub(super) fn limited_by_application(&mut self, delivered: u32, flight: u32) {
        self.app_limited = (delivered + flight).max(1);
    }

    /// Packets from `from` up to `to` have arrived.
    pub(super) fn arrived(&mut self, from: u32, to: u32) {
        for seq in from.max(self.first)..to {
            let Some(record) = self.records.get_mut((seq - self.first) as usize) else { break };
            if !record.arrived {
                record.arrived = true;
                if self.newest.is_none_or(|newest| record.at >= newest.at) {
                    self.newest = Some(*record);
                }
            }
        }
    }

    /// Nothing more is to be heard of packets below `una`.
    pub(super) fn forget(&mut self, una: u32) {
        let gone = (una.saturating_sub(self.first) as usize).min(self.records.len());
        self.records.drain(..gone);
        self.first += gone as u32;
    }

    /// The sample of the present ack, after which `delivered` packets have been delivered.
    pub(super) fn sample(&mut self, now: Time, delivered: u32, min_rtt: Time) -> Option<RateSample> {
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
            app_limited: newest.app_limited,
        })
    }
}
