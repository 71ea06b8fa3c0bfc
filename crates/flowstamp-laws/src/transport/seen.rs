//! Detects duplicate transmissions by their numbers, over the most recent ones.
//!
//! It works as the anti-replay window of RFC 4303 section 3.4.3, in a ring of bits. A transmission more than
//! `REMEMBERED` numbers below the newest counts as a copy: its sender has given it up.

/// Length of the window in transmissions.
const REMEMBERED: u32 = 4096;
const WORDS: usize = (REMEMBERED / 64) as usize;

/// Window of the last numbers below `top`, which may wrap.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    top: u32,
    words: [u64; WORDS],
}

impl Seen {
    /// Creates a window in which all numbers below `top` have arrived.
    pub(super) const fn all_below(top: u32) -> Self {
        Self { top, words: [u64::MAX; WORDS] }
    }

    /// One above the highest number that has arrived.
    pub(super) const fn top(&self) -> u32 {
        self.top
    }

    /// Notes an arrival. Returns false if the number arrived before, or is too old to tell.
    pub(super) fn note(&mut self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.top);
        let bit = |number: u32| ((number % REMEMBERED / 64) as usize, 1u64 << (number % 64));
        if ahead < 1 << 31 {
            for skipped in 0..ahead.min(REMEMBERED) {
                let (word, mask) = bit(self.top.wrapping_add(skipped));
                self.words[word] &= !mask;
            }
            self.top = number.wrapping_add(1);
        } else if self.top.wrapping_sub(number) > REMEMBERED {
            return false;
        }
        let (word, mask) = bit(number);
        let new = ahead < 1 << 31 || self.words[word] & mask == 0;
        self.words[word] |= mask;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compares with a set of all numbers across a wrap, with gaps from zero to more than the window.
        #[test]
        fn a_number_is_new_once(
            start in prop::sample::select(vec![0u32, 1, 70, u32::MAX - 300]),
            steps in prop::collection::vec((-200i64..200, prop::sample::select(vec![0i64, 0, 0, 3000, -3000, 9000])), 1..300),
        ) {
            let mut seen = Seen::all_below(start);
            let mut all = BTreeSet::new();
            let mut top = 0i64; // as `start`, without wrapping
            for (near, far) in steps {
                let number = top + near + far;
                let wrapped = (i64::from(start) + number) as u32;
                let known = number >= top - i64::from(REMEMBERED);
                let new = known && number >= 0 && all.insert(number);
                prop_assert_eq!(seen.note(wrapped), new, "{} of {}", number, top);
                top = top.max(number + 1);
                prop_assert_eq!(seen.top(), (i64::from(start) + top) as u32);
            }
        }
    }
}
