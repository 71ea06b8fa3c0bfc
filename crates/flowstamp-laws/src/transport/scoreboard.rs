//! The sender's record of selective acks (RFC 6675).
//!
//! ```text
//! una        hi_rxt     lost_edge        highest sacked   high
//!  |--retransmitted--|--lost, waits--|--not yet lost-------|--new--|        (all minus the sacked)
//!
//! IsLost(s)  three packets above s are sacked, so s < lost_edge = third-highest sacked packet     section 4
//! pipe       = outstanding - sacked - unsacked in [hi_rxt, lost_edge)                              section 4
//!                                   + unsacked in [lost_edge, hi_rxt)
//! NextSeg(1) the first unsacked packet in [hi_rxt, lost_edge); (3) in [hi_rxt, highest sacked);    section 4
//!       (4)  once per recovery, the highest unsacked packet
//! ```
//!
//! All packets have one size, so "more than two full packets sacked above" equals "three packets sacked above", and
//! one edge separates lost packets. `balance` is the sum of the last two terms of pipe, updated with each ack. A
//! scoreboard therefore costs O(1) per newly sacked packet, and one step per 64 packets that an edge moves over.

use super::runs::RunSet;

/// Selective acks of a flow, and the loss and retransmission state derived from them.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    sacked: RunSet,
    /// Unsacked packets below `lost_edge` are lost.
    lost_edge: u32,
    /// Unsacked packets below `hi_rxt` were retransmitted (HighRxt + 1).
    hi_rxt: u32,
    /// One above each of the three highest sacked packets, highest first; 0 if there are fewer.
    highest: [u32; 3],
    /// Unsacked below `hi_rxt` minus unsacked below `lost_edge`.
    balance: i64,
    /// The rescue retransmission of this recovery is spent.
    rescued: bool,
}

impl Scoreboard {
    pub(super) fn new(una: u32) -> Self {
        Self {
            sacked: RunSet::new(una),
            lost_edge: una,
            hi_rxt: una,
            highest: [0; 3],
            balance: 0,
            rescued: false,
        }
    }

    /// Packets sacked above the cumulative ack.
    pub(super) const fn sacked(&self) -> u32 {
        self.sacked.len()
    }

    /// Takes an ack: the cumulative ack advances from `una` to `cumulative`, both at most `high`, and `blocks`
    /// arrived above. Returns the number of newly acknowledged packets. Calls `sacked` for those above `cumulative`.
    pub(super) fn on_ack(
        &mut self,
        una: u32,
        cumulative: u32,
        high: u32,
        blocks: &[(u32, u32)],
        mut sacked: impl FnMut(u32, u32),
    ) -> u32 {
        let mut newly = 0;
        self.sacked.advance(una);
        if cumulative > una {
            let unsacked = |to: u32| {
                let to = to.min(cumulative);
                if to > una { to - una - self.sacked.count(una, to) } else { 0 }
            };
            newly = unsacked(cumulative);
            self.balance -= i64::from(unsacked(self.hi_rxt)) - i64::from(unsacked(self.lost_edge));
            self.sacked.advance(cumulative);
        }
        self.hi_rxt = self.hi_rxt.max(cumulative);
        self.lost_edge = self.lost_edge.max(cumulative);
        for &(from, to) in blocks {
            newly += self.sack(from.max(cumulative), to.min(high), &mut sacked);
        }
        if self.highest[2] > self.lost_edge + 1 {
            self.lose_below(self.highest[2] - 1);
        }
        newly
    }

    fn sack(&mut self, from: u32, to: u32, sacked: &mut impl FnMut(u32, u32)) -> u32 {
        let mut newly = 0;
        let mut s = from;
        while s < to {
            if self.sacked.contains(s) {
                s = self.sacked.run_end(s);
                continue;
            }
            let end = self.sacked.next_present(s, to);
            self.sacked.fill(s, end);
            newly += end - s;
            sacked(s, end);
            let below = |edge: u32| i64::from(edge.clamp(s, end) - s);
            self.balance -= below(self.hi_rxt) - below(self.lost_edge);
            for seq in s.max(end.saturating_sub(3))..end {
                self.raise(seq + 1);
            }
            s = end;
        }
        newly
    }

    /// Inserts into `highest`, which stays sorted. A packet is sacked only once, so there are no duplicates.
    fn raise(&mut self, above: u32) {
        let [a, b, c] = self.highest;
        self.highest = if above > a {
            [above, a, b]
        } else if above > b {
            [a, above, b]
        } else {
            [a, b, c.max(above)]
        };
    }

    fn unsacked(&self, from: u32, to: u32) -> u32 {
        to - from - self.sacked.count(from, to)
    }

    fn lose_below(&mut self, edge: u32) {
        self.balance -= i64::from(self.unsacked(self.lost_edge, edge));
        self.lost_edge = edge;
    }

    fn retransmitted_below(&mut self, edge: u32) {
        self.balance += i64::from(self.unsacked(self.hi_rxt, edge));
        self.hi_rxt = edge;
    }

    /// Marks all unsacked packets lost and not yet retransmitted, after a timeout.
    pub(super) fn lose_all(&mut self, una: u32, high: u32) {
        self.sacked.advance(una);
        self.hi_rxt = una;
        self.lost_edge = high;
        self.balance = -i64::from(self.unsacked(una, high));
    }

    /// The edge below which unsacked packets are lost.
    pub(super) const fn lost_edge(&self) -> u32 {
        self.lost_edge
    }

    /// Whether the first outstanding packet is lost.
    pub(super) const fn is_lost(&self, una: u32) -> bool {
        self.lost_edge > una
    }

    /// Whether the first outstanding packet was retransmitted since it was last found lost.
    pub(super) const fn is_retransmitted(&self, una: u32) -> bool {
        self.hi_rxt > una
    }

    /// Begins a recovery.
    pub(super) const fn start_recovery(&mut self) {
        self.rescued = false;
    }

    /// The estimated number of packets in flight.
    pub(super) fn pipe(&self, una: u32, high: u32) -> u32 {
        (i64::from(high - una) - i64::from(self.sacked.len()) + self.balance).max(0) as u32
    }

    /// NextSeg rule 1: takes the first lost packet that was not retransmitted.
    pub(super) fn take_lost(&mut self) -> Option<u32> {
        self.take_below(self.lost_edge)
    }

    /// NextSeg rule 3: takes the first packet below the highest sacked one that was not retransmitted.
    pub(super) fn take_hole(&mut self) -> Option<u32> {
        self.take_below(self.highest[0])
    }

    fn take_below(&mut self, limit: u32) -> Option<u32> {
        if self.hi_rxt >= limit {
            return None;
        }
        let seq = self.sacked.next_absent(self.hi_rxt);
        if seq >= limit {
            self.retransmitted_below(limit);
            return None;
        }
        self.retransmitted_below(seq + 1);
        Some(seq)
    }

    /// NextSeg rule 4: takes the highest outstanding packet, once per recovery, if it was not retransmitted.
    pub(super) fn take_rescue(&mut self, high: u32) -> Option<u32> {
        let seq = high - 1;
        if self.rescued || self.sacked.contains(seq) || seq < self.hi_rxt {
            return None;
        }
        self.rescued = true;
        Some(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reference: RFC 6675 packet by packet, without derived state.
    struct Naive {
        una: u32,
        high: u32,
        sacked: Vec<bool>,
        /// HighRxt + 1.
        hi_rxt: u32,
        /// All packets below it are lost, after a timeout.
        all_lost_below: u32,
    }

    impl Naive {
        fn is_lost(&self, seq: u32) -> bool {
            let above = (seq + 1..self.high).filter(|s| self.sacked[*s as usize]).count();
            above >= 3 || seq < self.all_lost_below
        }
        /// Section 4, SetPipe.
        fn pipe(&self) -> u32 {
            (self.una..self.high)
                .filter(|s| !self.sacked[*s as usize])
                .map(|s| u32::from(!self.is_lost(s)) + u32::from(s < self.hi_rxt))
                .sum()
        }
        /// Section 4, NextSeg rules 1 and 3.
        fn next(&self, rule_3: bool) -> Option<u32> {
            let highest = (self.una..self.high).rev().find(|s| self.sacked[*s as usize]);
            (self.una.max(self.hi_rxt)..self.high).find(|s| {
                !self.sacked[*s as usize]
                    && (self.is_lost(*s) || rule_3 && highest.is_some_and(|highest| *s < highest))
            })
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Send(u32),
        Ack(u32, Vec<(u32, u32)>),
        Resend(bool),
        Timeout,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (1u32..80).prop_map(Step::Send),
            6 => (prop_oneof![3 => Just(0u32), 1 => 0u32..60], prop::collection::vec((0u32..150, 1u32..40), 0..4))
                .prop_map(|(advance, blocks)| Step::Ack(advance, blocks)),
            5 => prop::bool::weighted(0.2).prop_map(Step::Resend),
            1 => Just(Step::Timeout),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn agrees_with_rfc_6675_packet_by_packet(steps in prop::collection::vec(step(), 1..60)) {
            let mut board = Scoreboard::new(0);
            let mut naive = Naive { una: 0, high: 1, sacked: vec![false; 8000], hi_rxt: 0, all_lost_below: 0 };
            for step in steps {
                match step {
                    Step::Send(n) => naive.high += n,
                    Step::Ack(advance, blocks) => {
                        let una = naive.una;
                        // A receiver's cumulative ack covers the runs that it reported.
                        let mut cumulative = (una + advance).min(naive.high);
                        let blocks: Vec<_> = blocks
                            .into_iter()
                            .map(|(from, n)| (cumulative + 1 + from, cumulative + 1 + from + n))
                            .collect();
                        while cumulative < naive.high && naive.sacked[cumulative as usize] {
                            cumulative += 1;
                        }
                        let mut newly = (una..cumulative).filter(|s| !naive.sacked[*s as usize]).count();
                        let below = newly;
                        let mut told = 0;
                        for &(from, to) in &blocks {
                            for s in from.max(cumulative)..to.min(naive.high) {
                                newly += usize::from(!naive.sacked[s as usize]);
                                naive.sacked[s as usize] = true;
                            }
                        }
                        let got = board.on_ack(una, cumulative, naive.high, &blocks, |from, to| {
                            told += (to - from) as usize;
                        });
                        naive.una = cumulative;
                        naive.hi_rxt = naive.hi_rxt.max(cumulative);
                        prop_assert_eq!(got as usize, newly);
                        prop_assert_eq!(told, newly - below);
                    }
                    Step::Resend(rule_3) => {
                        let got = if rule_3 { board.take_hole() } else { board.take_lost() };
                        // After a timeout, rule 3 looks no higher than the highest sacked packet.
                        let expected = naive.next(rule_3);
                        if rule_3 && expected.is_some_and(|s| s < naive.all_lost_below) {
                            naive.hi_rxt = got.map_or(naive.hi_rxt, |s| s + 1);
                        } else {
                            prop_assert_eq!(got, expected);
                            naive.hi_rxt = got.map_or(naive.hi_rxt, |s| s + 1);
                        }
                    }
                    Step::Timeout => {
                        board.lose_all(naive.una, naive.high);
                        naive.hi_rxt = naive.una;
                        naive.all_lost_below = naive.high;
                    }
                }
                prop_assert_eq!(board.pipe(naive.una, naive.high), naive.pipe());
                let first_lost = naive.una < naive.high && !naive.sacked[naive.una as usize] && naive.is_lost(naive.una);
                if naive.una < naive.high && !naive.sacked[naive.una as usize] {
                    prop_assert_eq!(board.is_lost(naive.una), first_lost);
                }
            }
        }
    }

    #[test]
    fn three_packets_above_make_a_loss() {
        let mut board = Scoreboard::new(0);
        assert_eq!(board.on_ack(0, 0, 10, &[(1, 3)], |_, _| {}), 2);
        assert!(!board.is_lost(0));
        assert_eq!(board.pipe(0, 10), 8);
        assert_eq!(board.on_ack(0, 0, 10, &[(5, 6), (1, 3)], |from, to| assert_eq!((from, to), (5, 6))), 1);
        assert!(board.is_lost(0));
        assert_eq!(board.pipe(0, 10), 6); // 10 - 3 sacked - 1 lost
        assert_eq!(board.take_lost(), Some(0));
        assert_eq!(board.take_lost(), None);
        assert_eq!(board.pipe(0, 10), 7);
        assert_eq!(board.take_hole(), Some(3));
        assert_eq!(board.pipe(0, 10), 8); // 3 is counted twice: it may yet arrive
        assert_eq!(board.take_rescue(10), Some(9));
        assert_eq!(board.take_rescue(10), None);
    }
}
