//! Statistics of links in large networks, which are not in the processor's cache.
//!
//! Each value belongs into one of a few thousand bins, at another place in memory than the value before. In a large network
//! each addition would wait for the memory. There, values are written down one after the other, and added to the bins when
//! there are many: the processor then fetches several bins at a time. The sums are integers, so the order does not matter.

use std::borrow::Cow;

/// Values that are written down before they are added to the bins.
const MOST: usize = 512;
/// Memory of the values of a link that are written down: delays, and times at queue lengths.
pub const BYTES: f64 = MOST as f64 * 12.0;

/// A sum of values in bins.
pub trait Bins: Clone + Default {
    /// A value as it is written down.
    type Value: Copy;
    /// Adds a value to its bin.
    fn count(&mut self, value: Self::Value);
}

/// Values that were written down, and the bins of the values before. Empty and unused where values go into bins at once.
#[derive(Clone, Debug)]
pub struct Bulk<B: Bins> {
    values: Vec<B::Value>,
    bins: Option<Box<B>>,
}

impl<B: Bins> Default for Bulk<B> {
    fn default() -> Self {
        Self { values: Vec::new(), bins: None }
    }
}

impl<B: Bins> Bulk<B> {
    /// Values are to be written down.
    pub fn begun() -> Self {
        Self { values: Vec::new(), bins: Some(Box::default()) }
    }

    /// As empty as at the beginning.
    pub fn restarted(&self) -> Self {
        if self.is_used() { Self::begun() } else { Self::default() }
    }

    /// Whether values are written down.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.bins.is_some()
    }

    /// Writes a value down.
    #[inline]
    pub fn push(&mut self, value: B::Value) {
        if self.values.len() >= MOST {
            self.add();
        }
        self.values.push(value);
    }

    /// Adds what was written down to the bins, and returns them.
    #[inline(never)]
    pub fn add(&mut self) -> &mut B {
        let bins = self.bins.get_or_insert_default();
        self.values.drain(..).for_each(|value| bins.count(value));
        bins
    }

    /// The bins of all values, which are `direct` where none was written down.
    pub fn all<'a>(&self, direct: &'a B) -> Cow<'a, B> {
        let Some(bins) = &self.bins else { return Cow::Borrowed(direct) };
        let mut all = B::clone(bins);
        self.values.iter().for_each(|value| all.count(*value));
        Cow::Owned(all)
    }
}
