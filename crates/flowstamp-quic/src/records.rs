//! Records of the datagrams that quinn has sent, in their order.
//!
//! quinn's interface for congestion controllers names packets by the time at which it made them, and several share a
//! time. It tells of acknowledged packets in the order of their numbers, and of the largest number. Losses are the
//! oldest packets in flight (RFC 9002 section 6.1), up to the time that quinn names. This identifies packets, except
//! that packets of equal time may be mistaken for each other if an ack has holes among them.

use flowstamp_laws::units::Time;
use std::collections::VecDeque;
use std::time::Instant;

/// Datagrams below this size may be acks alone, which nobody acknowledges and no pace holds back, bytes.
pub const SMALL: u64 = 200;
/// Records of small datagrams that are kept.
const MOST_SMALL: usize = 256;

/// State of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Sent, and nothing heard of it.
    Flying,
    /// Acknowledged, lost, or never in flight.
    Settled,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    /// When quinn made it.
    made: Instant,
    /// When it left.
    left: Time,
    departed: bool,
    bytes: u64,
    number: u64,
    state: State,
}

/// The news of one ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Packets.
    pub packets: u32,
    /// When the newest of them left.
    pub newest_left: Time,
}

/// Records of all datagrams in flight, and of settled ones between them.
#[derive(Clone, Debug, Default)]
pub struct Records {
    first: u32,
    records: VecDeque<Record>,
    flight: u32,
    bytes: u64,
    /// First record that may not have departed.
    undeparted: u32,
    acked: Vec<(Instant, u64)>,
}

impl Records {
    /// Number of the oldest datagram that is not settled.
    #[must_use]
    pub const fn first(&self) -> u32 {
        self.first
    }

    /// Number of the next datagram.
    #[must_use]
    pub fn next(&self) -> u32 {
        self.first + self.records.len() as u32
    }

    /// Datagrams in flight.
    #[must_use]
    pub const fn flight(&self) -> u32 {
        self.flight
    }

    /// Adds a datagram and returns its number.
    pub fn push(&mut self, made: Instant, left: Time, bytes: u64, number: u64) -> u32 {
        // A host that only acknowledges would keep a record of each ack.
        if self.records.len() > MOST_SMALL && self.records.front().is_some_and(|r| r.bytes < SMALL) {
            self.settle(0);
            self.drop_settled();
        }
        self.records.push_back(Record { made, left, departed: false, bytes, number, state: State::Flying });
        self.flight += 1;
        self.bytes += bytes;
        self.next() - 1
    }

    /// Notes that a datagram leaves at `now`.
    pub fn depart(&mut self, now: Time, bytes: u64) {
        let from = self.undeparted.saturating_sub(self.first) as usize;
        let found = self.records.iter().skip(from).position(|r| !r.departed && r.bytes == bytes);
        if let Some(at) = found {
            let record = &mut self.records[from + at];
            (record.left, record.departed) = (now, true);
            self.undeparted = self.first + (from + at) as u32 + 1;
        }
    }

    /// Takes an acknowledged packet.
    pub fn acked(&mut self, made: Instant, bytes: u64) {
        self.acked.push((made, bytes));
    }

    /// Finds the records of the acknowledged packets. `largest` is the largest packet number acknowledged so far. Calls
    /// `arrived` with each record's number and departure.
    pub fn resolve(&mut self, largest: Option<u64>, mut arrived: impl FnMut(u32, Time)) -> Option<Arrived> {
        let acked = core::mem::take(&mut self.acked);
        let top = acked.last().and_then(|&(made, bytes)| {
            let newest = |r: &Record| r.is(made, bytes) && Some(r.number) == largest;
            self.oldest(made, newest)
        });
        let (mut newest_left, mut packets) = (Time::ZERO, 0);
        // From the newest down: packets of one time are matched from the largest number that arrived.
        let mut below = top.map_or(self.records.len(), |top| top + 1);
        let mut before: Option<Instant> = None;
        for &(made, bytes) in acked.iter().rev() {
            let exact = |r: &Record| r.is(made, bytes);
            let found = if top.is_some() && before.is_none_or(|time| time == made) {
                before = Some(made);
                let alike = self.records.range(..below).rev().take_while(|r| r.made == made);
                alike.enumerate().find(|(_, r)| exact(r)).map(|(back, _)| below - 1 - back)
            } else {
                None
            };
            if let Some(at) = found.or_else(|| self.oldest(made, exact)) {
                below = at;
                let left = self.records[at].left;
                arrived(self.first + at as u32, left);
                self.settle(at);
                newest_left = newest_left.max(left);
                packets += 1;
            } else if let Some(at) =
                self.oldest(made, |r| r.made == made && r.bytes > bytes && r.state == State::Flying)
            {
                // Packets of several kinds share a datagram during the handshake.
                self.records[at].bytes -= bytes;
                self.bytes -= bytes;
                newest_left = newest_left.max(self.records[at].left);
                packets += 1;
            }
        }
        self.acked = acked;
        self.acked.clear();
        (packets > 0).then_some(Arrived { packets, newest_left })
    }

    /// The oldest record that quinn made at `made` and that `suits`.
    fn oldest(&self, made: Instant, suits: impl Fn(&Record) -> bool) -> Option<usize> {
        let from = self.records.partition_point(|r| r.made < made);
        self.records.iter().skip(from).take_while(|r| r.made == made).position(suits).map(|at| from + at)
    }

    /// Settles records that quinn does not count among the `in_flight` bytes: acks alone, and those of the handshake.
    pub fn reconcile(&mut self, in_flight: u64) {
        for most in [SMALL, u64::MAX] {
            let mut surplus = self.bytes.saturating_sub(in_flight);
            for at in 0..self.records.len() {
                if surplus == 0 {
                    return;
                }
                let Record { bytes, state, .. } = self.records[at];
                if state == State::Flying && bytes < most && bytes <= surplus {
                    surplus -= bytes;
                    self.settle(at);
                }
            }
        }
    }

    /// Finds the records of `bytes` lost, the oldest in flight up to the time `sent`. Calls `lost` with each number.
    pub fn lose(&mut self, sent: Instant, bytes: u64, mut lost: impl FnMut(u32)) {
        let mut left = bytes;
        for at in 0..self.records.len() {
            let Record { made, bytes, state, .. } = self.records[at];
            if left == 0 || made > sent {
                break;
            }
            if state == State::Flying && bytes <= left {
                left -= bytes;
                lost(self.first + at as u32);
                self.settle(at);
            }
        }
    }

    fn settle(&mut self, at: usize) {
        let record = &mut self.records[at];
        if record.state == State::Flying {
            record.state = State::Settled;
            self.flight -= 1;
            self.bytes -= record.bytes;
        }
    }

    /// Drops settled records at the front.
    pub fn drop_settled(&mut self) {
        while self.records.front().is_some_and(|r| r.state == State::Settled) {
            self.records.pop_front();
            self.first += 1;
        }
    }
}

impl Record {
    fn is(&self, made: Instant, bytes: u64) -> bool {
        self.state == State::Flying && self.made == made && self.bytes == bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// Records of packets of 1200 bytes, which quinn made in groups at the same times.
    fn records(groups: &[u8]) -> (Records, Vec<Instant>) {
        #[expect(clippy::disallowed_methods, reason = "quinn's instants start at one that the clock gives")]
        let start = Instant::now();
        let (mut records, mut made) = (Records::default(), Vec::new());
        for (group, &size) in groups.iter().enumerate() {
            for _ in 0..size {
                let at = start + Duration::from_millis(group as u64);
                records.push(at, Time::from_millis(group as u64), 1200, made.len() as u64);
                made.push(at);
            }
        }
        (records, made)
    }

    proptest! {
        /// An ack without holes finds exactly its packets, whatever times they share.
        #[test]
        fn an_ack_of_a_range_finds_its_packets(groups in proptest::collection::vec(1_u8..6, 1..12), from: prop::sample::Index, len in 1_usize..8) {
            let (mut records, made) = records(&groups);
            let from = from.index(made.len());
            let to = (from + len).min(made.len());
            (from..to).for_each(|n| records.acked(made[n], 1200));
            let mut found = Vec::new();
            let arrived = records.resolve(Some(to as u64 - 1), |seq, _| found.push(seq as usize)).expect("packets");
            found.sort_unstable();
            // Any packets of the oldest group may be taken for each other, unless it is also the newest group.
            let certain = |n: &usize| made[*n] == made[to - 1] || made[*n] != made[from];
            let found_certain: Vec<_> = found.iter().copied().filter(certain).collect();
            prop_assert_eq!(found_certain, (from..to).filter(certain).collect::<Vec<_>>());
            prop_assert_eq!((arrived.packets as usize, found.len()), (to - from, to - from));
            prop_assert_eq!(records.flight() as usize, made.len() - (to - from));
        }

        /// All packets settle once, as acknowledged, lost or unknown to quinn, and the counts end at zero.
        #[test]
        fn everything_settles_once(groups in proptest::collection::vec(1_u8..6, 1..12), acked in proptest::collection::vec(any::<bool>(), 60), lost: u8) {
            let (mut records, made) = records(&groups);
            let acked: Vec<_> = (0..made.len()).filter(|n| acked[*n % 60]).collect();
            acked.iter().for_each(|n| records.acked(made[*n], 1200));
            records.resolve(acked.last().map(|n| *n as u64), |_, _| {});
            let left = made.len() - acked.len();
            prop_assert_eq!(records.flight() as usize, left);
            let lost = usize::from(lost).min(left);
            let mut told = 0;
            records.lose(made[made.len() - 1], lost as u64 * 1200, |_| told += 1);
            prop_assert_eq!((told, records.flight() as usize), (lost, left - lost));
            records.reconcile(0);
            records.drop_settled();
            prop_assert_eq!((records.flight(), records.first(), records.next()), (0, made.len() as u32, made.len() as u32));
        }
    }
}
