//! Statistics of links in large networks, which are not in the processor's cache.
//!
//! Each value belongs to one of a few thousand bins, at another place in memory than the value before. In a large network
//! each addition would wait for the memory. There, values are written down one after the other, and added to the bins when
//! there are many: the processor then fetches several bins at a time. The sums are integers, so the order does not matter.

use std::borrow::Cow;

/// Number of values that are written down before they are added to the bins.
const MOST: usize = 512;
/// Memory of the values of a link that are written down: delays, and times at queue lengths.
pub const BYTES: f64 = MOST as f64 * 12.0;

/// A sum of values in bins.
pub trait Bins: Clone + Default {
    /// A value as it is written down.
    type Value: Copy + std::fmt::Debug;
    /// Adds a value to its bin.
    #[cfg_attr(not(feature = "full"), expect(dead_code, reason = "values go into bins at once"))]
    fn count(&mut self, value: Self::Value);
}

/// Values that wait to be added to bins, and the bins of earlier values.
///
/// It is empty and unused if values go into bins at once, and without the feature `full`.
#[derive(Clone, Debug)]
pub struct Bulk<B: Bins> {
    #[cfg(feature = "full")]
    written: Option<Written<B>>,
    #[cfg(not(feature = "full"))]
    written: std::marker::PhantomData<B>,
}

#[cfg(feature = "full")]
#[derive(Clone, Debug)]
struct Written<B: Bins> {
    values: Vec<B::Value>,
    bins: Box<B>,
}

impl<B: Bins> Default for Bulk<B> {
    fn default() -> Self {
        Self { written: Default::default() }
    }
}

#[cfg(feature = "full")]
impl<B: Bins> Bulk<B> {
    /// Starts to write values down.
    pub fn begun() -> Self {
        Self { written: Some(Written { values: Vec::new(), bins: Box::default() }) }
    }

    /// Returns an empty one that works in the same way.
    pub fn restarted(&self) -> Self {
        if self.written.is_some() { Self::begun() } else { Self::default() }
    }

    /// Writes `value` down. If it is `None`, `add` puts the value into the bins. Returns false, and does nothing, if values
    /// go into bins at once.
    #[inline]
    pub fn take(&mut self, value: Option<B::Value>, add: impl FnOnce(&mut B)) -> bool {
        let Some(Written { values, bins }) = &mut self.written else { return false };
        match value {
            Some(value) => {
                if values.len() >= MOST {
                    add_all(values, &mut **bins);
                }
                values.push(value);
            }
            None => add(bins),
        }
        true
    }

    /// Returns the bins of all values: `direct` if values go into bins at once.
    pub fn all<'a>(&self, direct: &'a B) -> Cow<'a, B> {
        let Some(Written { values, bins }) = &self.written else { return Cow::Borrowed(direct) };
        let mut all = B::clone(bins);
        values.iter().for_each(|value| all.count(*value));
        Cow::Owned(all)
    }
}

/// Adds what was written down to the bins.
#[cfg(feature = "full")]
#[inline(never)]
fn add_all<B: Bins>(values: &mut Vec<B::Value>, bins: &mut B) {
    values.drain(..).for_each(|value| bins.count(value));
}

#[cfg(not(feature = "full"))]
impl<B: Bins> Bulk<B> {
    pub fn begun() -> Self {
        Self::default()
    }

    pub fn restarted(&self) -> Self {
        Self::default()
    }

    #[inline]
    pub fn take(&mut self, _: Option<B::Value>, _: impl FnOnce(&mut B)) -> bool {
        false
    }

    pub fn all<'a>(&self, direct: &'a B) -> Cow<'a, B> {
        Cow::Borrowed(direct)
    }
}
