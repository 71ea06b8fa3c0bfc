//! A set of sequence numbers above a moving base, kept as runs.
//!
//! The set is a ring of bits, one per packet, and a ring of boundary tags. The first packet of a run holds the run's
//! end, the last one its start, and a single packet its own number. Joining a packet to its neighbours and jumping
//! over a run therefore cost O(1), however long the runs are. Finding the next gap costs one step per 64 packets.

/// Bytes per packet: a tag and a bit, rounded up.
pub(super) const BYTES_PER_PACKET: usize = 5;
/// Initial capacity of a set in packets.
const LEAST: usize = 128;
/// Initial size of a set in bytes.
pub(super) const LEAST_BYTES: usize = LEAST * BYTES_PER_PACKET;

/// A set of packets from `[base, ...)`. Numbers outside the ring's span are absent.
#[derive(Clone, Debug)]
pub(super) struct RunSet {
    base: u32,
    len: u32,
    runs: u32,
    /// A power of two of words; bit `s % 64` of word `(s / 64) % len`.
    words: Vec<u64>,
    /// 64 tags per word.
    tags: Vec<u32>,
}

/// Bits `from..to` of a word, `to` at most 64 and above `from`.
const fn mask(from: u32, to: u32) -> u64 {
    (u64::MAX >> (64 - (to - from))) << from
}

impl RunSet {
    pub(super) fn new(base: u32) -> Self {
        Self { base, len: 0, runs: 0, words: vec![0; LEAST / 64], tags: vec![0; LEAST] }
    }

    /// Packets in the set.
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// Runs in the set.
    pub(super) const fn runs(&self) -> u32 {
        self.runs
    }

    #[inline]
    fn word_at(&self, seq: u32) -> usize {
        (seq >> 6) as usize & (self.words.len() - 1)
    }

    #[inline]
    fn tag_at(&self, seq: u32) -> usize {
        seq as usize & (self.tags.len() - 1)
    }

    /// Whether `seq` is at or above the base and within the ring.
    #[inline]
    fn spans(&self, seq: u32) -> bool {
        seq >= self.base && ((seq >> 6) - (self.base >> 6)) < self.words.len() as u32
    }

    #[inline]
    pub(super) fn contains(&self, seq: u32) -> bool {
        self.spans(seq) && self.words[self.word_at(seq)] >> (seq & 63) & 1 == 1
    }

    /// Makes room for `seq`, at or above the base.
    fn reserve(&mut self, seq: u32) {
        let first = self.base >> 6;
        let need = (seq >> 6) - first + 1;
        let old = self.words.len();
        if need as usize <= old {
            return;
        }
        let new = (need as usize).next_power_of_two();
        let (mut words, mut tags) = (vec![0; new], vec![0; new * 64]);
        for w in first..first + old as u32 {
            let (from, to) = (w as usize & (old - 1), w as usize & (new - 1));
            words[to] = self.words[from];
            if self.words[from] != 0 {
                tags[to * 64..to * 64 + 64].copy_from_slice(&self.tags[from * 64..from * 64 + 64]);
            }
        }
        self.words = words;
        self.tags = tags;
    }

    /// Calls `f` with each word that `[from, to)` touches and the mask of the bits in it.
    #[inline]
    fn each_word(from: u32, to: u32, mut f: impl FnMut(u32, u64)) {
        let mut s = from;
        while s < to {
            let stop = (s | 63).saturating_add(1).min(to);
            f(s, mask(s & 63, ((stop - 1) & 63) + 1));
            s = stop;
        }
    }

    /// Adds `[from, to)`, none of which is in the set; returns the run that now holds it.
    pub(super) fn fill(&mut self, from: u32, to: u32) -> (u32, u32) {
        debug_assert!(from < to && from >= self.base);
        self.reserve(to - 1);
        let len = self.words.len() - 1;
        let words = &mut self.words;
        Self::each_word(from, to, |s, m| words[(s >> 6) as usize & len] |= m);
        self.len += to - from;
        self.runs += 1;
        let (mut start, mut end) = (from, to);
        if from > self.base && self.contains(from - 1) {
            start = self.tags[self.tag_at(from - 1)];
            self.runs -= 1;
        }
        if self.contains(to) {
            end = self.end_of(to);
            self.runs -= 1;
        }
        self.set_tags(start, end);
        (start, end)
    }

    /// Writes the tags of a run. A run of one packet has one tag for both ends: its own number.
    fn set_tags(&mut self, start: u32, end: u32) {
        let (first, last) = (self.tag_at(start), self.tag_at(end - 1));
        self.tags[first] = end;
        self.tags[last] = start;
    }

    /// The end of the run that starts at `seq`.
    fn end_of(&self, seq: u32) -> u32 {
        self.tags[self.tag_at(seq)].max(seq + 1)
    }

    /// The end of the run that holds `seq`, which must be in the set. O(1) if `seq` is its first packet.
    pub(super) fn run_end(&self, seq: u32) -> u32 {
        if seq == self.base || !self.contains(seq - 1) { self.end_of(seq) } else { self.next_absent(seq) }
    }

    /// The run that holds `seq`, which must be in the set. The cost is linear in the run's length: only copies, which
    /// are rare, need it.
    pub(super) fn run_around(&self, seq: u32) -> (u32, u32) {
        let mut start = seq;
        while start > self.base && self.contains(start - 1) {
            start -= 1;
        }
        (start, self.next_absent(seq))
    }

    /// The first number at or above `seq` that is not in the set.
    pub(super) fn next_absent(&self, seq: u32) -> u32 {
        let mut s = seq;
        while self.spans(s) {
            let gaps = !self.words[self.word_at(s)] >> (s & 63);
            if gaps != 0 && gaps.trailing_zeros() + (s & 63) < 64 {
                return s + gaps.trailing_zeros();
            }
            s = (s | 63) + 1;
        }
        s
    }

    /// The first number in `[seq, limit)` that is in the set, or `limit`.
    pub(super) fn next_present(&self, seq: u32, limit: u32) -> u32 {
        let mut s = seq.max(self.base);
        while s < limit && self.spans(s) {
            let present = self.words[self.word_at(s)] >> (s & 63);
            if present != 0 {
                return (s + present.trailing_zeros()).min(limit);
            }
            s = (s | 63) + 1;
        }
        limit
    }

    /// Number of packets of `[from, to)` in the set.
    pub(super) fn count(&self, from: u32, to: u32) -> u32 {
        let mut n = 0;
        Self::each_word(from.max(self.base), to, |s, m| {
            if self.spans(s) {
                n += (self.words[self.word_at(s)] & m).count_ones();
            }
        });
        n
    }

    /// Advances the base to `base` and removes all packets below it.
    pub(super) fn advance(&mut self, base: u32) {
        if base <= self.base {
            return;
        }
        if self.len > 0 {
            self.forget(base);
        }
        self.base = base;
    }

    fn forget(&mut self, base: u32) {
        // Runs that end at or below the new base; a peer that contradicts itself may make the base cut one.
        let mut s = self.next_present(self.base, base);
        while s < base {
            let end = self.end_of(s);
            self.runs -= 1;
            if end > base {
                self.runs += 1;
                self.set_tags(base, end);
            }
            s = self.next_present(end.min(base), base);
        }
        let span = (self.words.len() as u32) << 6;
        let top = base.min((self.base & !63).saturating_add(span));
        let len = self.words.len() - 1;
        let (words, mut gone) = (&mut self.words, 0);
        Self::each_word(self.base, top, |s, m| {
            let word = &mut words[(s >> 6) as usize & len];
            gone += (*word & m).count_ones();
            *word &= !m;
        });
        self.len -= gone;
    }

    /// The run that holds or follows `seq`, where `seq` does not lie within a run.
    pub(super) fn run_from(&self, seq: u32, limit: u32) -> Option<(u32, u32)> {
        let start = self.next_present(seq, limit);
        (start < limit).then(|| (start, self.end_of(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn runs_of(set: &BTreeSet<u32>) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = vec![];
        for &s in set {
            match runs.last_mut() {
                Some(run) if run.1 == s => run.1 += 1,
                _ => runs.push((s, s + 1)),
            }
        }
        runs
    }

    proptest! {
        /// Compares with an ordered set: fills of absent ranges and moves of the base, near word and ring borders.
        #[test]
        fn agrees_with_a_plain_set(
            start in 0u32..200,
            steps in prop::collection::vec((0u32..700, 1u32..90, prop::bool::weighted(0.2)), 1..80),
        ) {
            let (mut runs, mut plain, mut base) = (RunSet::new(start), BTreeSet::new(), start);
            for (offset, length, advance) in steps {
                if advance {
                    base += offset / 2;
                    runs.advance(base);
                    plain = plain.split_off(&base);
                } else {
                    let from = base + offset;
                    let to = (from..from + length).find(|s| plain.contains(s)).unwrap_or(from + length);
                    if to > from {
                        let run = runs.fill(from, to);
                        plain.extend(from..to);
                        prop_assert!(runs_of(&plain).contains(&run), "{:?}", run);
                    }
                }
                let expected = runs_of(&plain);
                prop_assert_eq!((runs.len() as usize, runs.runs() as usize), (plain.len(), expected.len()));
                for &(a, b) in &expected {
                    prop_assert_eq!(runs.run_end(a), b);
                    prop_assert_eq!(runs.run_end(b - 1), b);
                    prop_assert_eq!(runs.run_around(a + (b - a) / 2), (a, b));
                }
                let limit = base + 1000;
                let mut found = vec![];
                let mut at = base;
                while let Some(run) = runs.run_from(at, limit) {
                    found.push(run);
                    at = run.1;
                }
                prop_assert_eq!(found, expected);
                for s in (base.saturating_sub(70)..limit).step_by(7) {
                    prop_assert_eq!(runs.contains(s), plain.contains(&s));
                    prop_assert_eq!(runs.count(s, s + 333) as usize, plain.range(s.max(base)..s + 333).count());
                    if s >= base {
                        prop_assert_eq!(runs.next_absent(s), (s..).find(|x| !plain.contains(x)).unwrap_or(s));
                        let next = plain.range(s..limit).next().copied().unwrap_or(limit);
                        prop_assert_eq!(runs.next_present(s, limit), next);
                    }
                }
            }
        }
    }

    #[test]
    fn grows_to_large_windows() {
        let mut runs = RunSet::new(1_000_003);
        runs.fill(1_000_010, 1_040_000);
        runs.fill(1_100_000, 1_100_001);
        assert_eq!((runs.len(), runs.runs()), (39_991, 2));
        assert_eq!(runs.run_end(1_000_010), 1_040_000);
        runs.advance(1_100_001);
        assert_eq!((runs.len(), runs.runs()), (0, 0));
        assert_eq!(runs.next_present(1_100_001, u32::MAX - 100), u32::MAX - 100);
    }
}
