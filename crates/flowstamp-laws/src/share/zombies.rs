//! Estimates the number of flows from a list of recently seen ones.
//!
//! Dukkipati 2007, section 6.2.1 step C.1, after SRED (Ott, Lakshman and Wong 1999). Each arriving packet is compared
//! with a random entry of a short list of flow identifiers. A packet of one of `N` equal flows finds its own with
//! probability `1/N`, so
//!
//! ```text
//!   N = packets compared / packets that found their flow
//! ```
//!
//! For flows with unequal shares `p_i` the estimate is `1 / sum(p_i^2)`: a flow counts by its share of the packets.
//!
//! Deviations (thesis says / we do / because):
//! 1. A packet overwrites an entry with probability p / only a packet that did not find its flow does so / SRED does
//!    the same, and the long-run contents of the list are equal.
//! 2. The probability is that of a flow being in the list / it is that of being a random entry of the list /
//!    otherwise it would be one as soon as the list has room for all flows; SRED means this too.
//! 3. Only the counts of an interval are used / half of the earlier counts is added / one interval of a slow link
//!    sees too few hits.

/// Zombie list of one class.
#[derive(Clone, Debug)]
pub struct Zombies {
    list: Vec<u64>,
    length: usize,
    overwrite: f64,
    compared: u64,
    found: u64,
}

impl Zombies {
    /// Creates an empty list for `length` entries.
    #[must_use]
    pub fn new(length: u32, overwrite: f64) -> Self {
        let length = length.max(1) as usize;
        Self { list: Vec::with_capacity(length), length, overwrite, compared: 0, found: 0 }
    }

    /// Takes an arriving packet of `flow`. `uniform` draws from `[0, 1)`.
    #[inline]
    pub fn on_arrival(&mut self, flow: u64, mut uniform: impl FnMut() -> f64) {
        if !self.list.is_empty() {
            self.compared += 1;
            let at = (uniform() * self.list.len() as f64) as usize;
            if self.list[at] == flow {
                self.found += 1;
            } else if self.list.len() == self.length && uniform() < self.overwrite {
                self.list[at] = flow;
            }
        }
        if self.list.len() < self.length {
            self.list.push(flow);
        }
    }

    /// Adds the numbers of packets that were compared with a list elsewhere, and that found their flow in it.
    pub fn on_counts(&mut self, compared: u64, found: u64) {
        self.compared += compared;
        self.found += found;
    }

    /// The estimated number of flows, at least one if packets were compared, else zero. Begins a new interval.
    pub fn estimate(&mut self) -> f64 {
        // Without a hit, the estimate is the number of packets, because nothing more is known.
        let flows = self.compared as f64 / self.found.max(1) as f64;
        self.compared /= 2;
        self.found /= 2;
        flows
    }
}
