//! Distributions of packet delays.

use crate::bulk::{Bins, Bulk};
use crate::results::Distribution;
use flowstamp_laws::units::Time;

/// Delays of packets, in bins of at most 1/128 of the delay. Each bin keeps the sum of its delays, so a percentile is a
/// mean of delays that occurred, not the edge of a bin. Fields that every delay needs come first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Delays {
    /// Number of delays below a nanosecond.
    none: u64,
    bins: DelayBins,
    most: Time,
    bulk: Bulk<DelayBins>,
}

/// Delays of a nanosecond or more.
#[derive(Clone, Debug, Default)]
#[repr(C)]
struct DelayBins {
    /// Number of the first bin in `bins`.
    first: usize,
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    count: u64,
    /// Sum of delays, nanoseconds.
    sum: u64,
}

/// Bins per doubling.
const SUB_BINS: u64 = 128;
const PS_PER_NS: u64 = 1000;
/// Smallest step of a distribution's curve, which is as fine as a plot can show.
pub const STEP: f64 = 1.0 / 512.0;

/// The bin of a value. There are `SUB` bins per doubling (a power of two), and each is at most 1/`SUB` of its values
/// wide.
#[inline]
pub fn bin<const SUB: u64>(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let octave = u64::from(value.ilog2() - SUB.ilog2());
    (octave * SUB + (value >> octave)) as usize
}

impl Bins for DelayBins {
    /// Nanoseconds.
    type Value = u32;

    fn count(&mut self, ns: u32) {
        self.add(u64::from(ns));
    }
}

impl DelayBins {
    fn add(&mut self, ns: u64) {
        let number = bin::<SUB_BINS>(ns);
        self.make(number);
        let bin = &mut self.bins[number - self.first];
        bin.count += 1;
        bin.sum += ns;
    }

    /// Creates the bin of this number if there is none, and all between it and the existing ones.
    fn make(&mut self, number: usize) {
        if self.bins.is_empty() {
            self.first = number;
        }
        if number < self.first {
            let more = self.first - number;
            self.bins.splice(..0, std::iter::repeat_n(Bin::default(), more));
            self.first = number;
        } else if number - self.first >= self.bins.len() {
            self.bins.resize(number - self.first + 1, Bin::default());
        }
    }
}

impl Delays {
    /// Delays of packets of a link in a large network.
    #[must_use]
    pub fn in_bulk() -> Self {
        Self { bulk: Bulk::begun(), ..Self::default() }
    }

    /// Returns empty delays that work in the same way: in bulk or not.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self { bulk: self.bulk.restarted(), ..Self::default() }
    }

    /// Adds one packet's delay.
    #[inline]
    pub fn add(&mut self, delay: Time) {
        let ns = delay.as_ps() / PS_PER_NS;
        if ns == 0 {
            self.none += 1;
            return;
        }
        self.most = self.most.max(delay);
        let number = bin::<SUB_BINS>(ns);
        let at = number.wrapping_sub(self.bins.first);
        let Some(bin) = self.bins.bins.get_mut(at) else { return self.add_apart(ns) };
        bin.count += 1;
        bin.sum += ns;
    }

    /// Adds a delay whose bin does not exist yet. In bulk mode every delay takes this path.
    #[inline(never)] // so that networks with few links pay nothing
    fn add_apart(&mut self, ns: u64) {
        if !self.bulk.take(u32::try_from(ns).ok(), |bins| bins.add(ns)) {
            self.bins.add(ns);
        }
    }

    /// Merges several distributions.
    #[must_use]
    pub fn together<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.none += part.none;
            all.most = all.most.max(part.most);
            let bins = part.bulk.all(&part.bins);
            let full = (bins.first..).zip(&bins.bins).filter(|(_, bin)| bin.count > 0);
            for (number, bin) in full {
                all.bins.make(number);
                let here = &mut all.bins.bins[number - all.bins.first];
                here.count += bin.count;
                here.sum += bin.sum;
            }
        }
        all
    }

    /// The cumulative distribution in steps of at least [`STEP`]: delays in seconds, and the fraction of packets with
    /// at most that delay.
    #[must_use]
    pub fn cdf(&self) -> Vec<(f64, f64)> {
        let bins = self.bins();
        let total = bins.iter().map(|(_, count)| count).sum::<u64>();
        let (mut below, mut last, mut points) = (0, 0.0, Vec::new());
        for (delay, count) in bins {
            let first = below == 0;
            below += count;
            let share = below as f64 / total as f64;
            if first || share - last >= STEP || below == total {
                points.push((delay, share));
                last = share;
            }
        }
        points
    }

    /// Statistics in seconds; `None` if there was no packet.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        let bins = &self.bulk.all(&self.bins).bins;
        let count = self.none + bins.iter().map(|bin| bin.count).sum::<u64>();
        let sum: u128 = bins.iter().map(|bin| u128::from(bin.sum)).sum();
        let rank = |share: f64| {
            let rank = ((share * count as f64).ceil() as u64).max(1);
            let mut below = self.none;
            if below >= rank {
                return 0.0;
            }
            let found = bins.iter().find(|bin| {
                below += bin.count;
                below >= rank
            });
            found.map_or(0.0, |bin| bin.sum as f64 / bin.count as f64 * 1e-9)
        };
        (count > 0).then(|| Distribution {
            count,
            mean: sum as f64 / count as f64 * 1e-9,
            p50: rank(0.50),
            p95: rank(0.95),
            p99: rank(0.99),
            p999: rank(0.999),
            max: self.most.as_secs_f64(),
        })
    }

    /// Mean delay in seconds and number of packets of each bin that is not empty.
    #[must_use]
    pub fn bins(&self) -> Vec<(f64, u64)> {
        let none = (self.none > 0).then_some((0.0, self.none));
        let bins = self.bulk.all(&self.bins);
        let full = bins.bins.iter().filter(|bin| bin.count > 0);
        none.into_iter()
            .chain(full.map(|bin| (bin.sum as f64 / bin.count as f64 * 1e-9, bin.count)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Delays, bin};
    use flowstamp_laws::units::Time;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bin_is_no_wider_than_its_part(value in 128..u64::MAX / 2) {
            prop_assert!(bin::<128>(value - 1) <= bin::<128>(value));
            prop_assert!(bin::<128>(value + value / 128 + 1) > bin::<128>(value));
            prop_assert!(bin::<16>(value + value / 16 + 1) > bin::<16>(value));
            prop_assert!(bin::<16>(value) <= bin::<128>(value));
        }

        #[test]
        fn percentiles_are_those_of_the_sample_but_for_a_bin(mut ns in prop::collection::vec(0u64..10_000_000_000, 1..300)) {
            let mut delays = Delays::default();
            for delay in &ns {
                delays.add(Time::from_nanos(*delay));
            }
            ns.sort_unstable();
            let found = delays.distribution().unwrap();
            prop_assert_eq!(found.count, ns.len() as u64);
            prop_assert_eq!(delays.bins().iter().map(|(_, count)| count).sum::<u64>(), found.count);
            let mean = ns.iter().sum::<u64>() as f64 / ns.len() as f64 * 1e-9;
            prop_assert!((found.mean - mean).abs() <= 1e-9 * mean.max(1e-9));
            prop_assert_eq!(found.max, Time::from_nanos(ns[ns.len() - 1]).as_secs_f64());
            for (share, value) in [(0.5, found.p50), (0.95, found.p95), (0.99, found.p99)] {
                let rank = ((share * ns.len() as f64).ceil() as usize).max(1) - 1;
                let exact = ns[rank] as f64 * 1e-9;
                prop_assert!((value - exact).abs() <= exact / 128.0 + 1e-15, "{value} {exact}");
            }
        }
    }

    proptest! {
        #[test]
        fn bulk_changes_no_result(ns in prop::collection::vec((0u64..10_000, 0u32..20), 1..2000), restarts in any::<bool>()) {
            let (mut direct, mut bulk) = (Delays::default(), Delays::in_bulk());
            for (at, (base, magnitude)) in ns.iter().enumerate() {
                direct.add(Time::from_nanos(base << magnitude));
                bulk.add(Time::from_nanos(base << magnitude));
                if restarts && at == ns.len() / 2 {
                    (direct, bulk) = (direct.restarted(), bulk.restarted());
                }
            }
            prop_assert!(bulk.bins.bins.is_empty());
            prop_assert_eq!(direct.bins(), bulk.bins());
            prop_assert_eq!(format!("{:?}", direct.distribution()), format!("{:?}", bulk.distribution()));
            let both = Delays::together([&direct, &bulk]);
            prop_assert_eq!(both.bins().iter().map(|(_, count)| count).sum::<u64>(), 2 * direct.bins().iter().map(|(_, count)| count).sum::<u64>());
        }

        #[test]
        fn parts_make_a_whole(ns in prop::collection::vec((0u64..10_000_000_000, 0usize..3), 1..300)) {
            let (mut whole, mut parts) = (Delays::default(), vec![Delays::default(); 3]);
            for (delay, part) in &ns {
                whole.add(Time::from_nanos(*delay));
                parts[*part].add(Time::from_nanos(*delay));
            }
            let together = Delays::together(&parts);
            prop_assert!(together.bins().eq(&whole.bins()));
            prop_assert_eq!(format!("{:?}", together.distribution()), format!("{:?}", whole.distribution()));
        }

        #[test]
        fn a_curve_rises_to_one(ns in prop::collection::vec(0u64..10_000_000_000, 1..3000)) {
            let mut delays = Delays::default();
            ns.iter().for_each(|delay| delays.add(Time::from_nanos(*delay)));
            let curve = delays.cdf();
            prop_assert!(curve.len() <= 2 + (1.0 / super::STEP) as usize);
            prop_assert!(curve.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1), "{curve:?}");
            prop_assert_eq!(curve[curve.len() - 1].1, 1.0);
            let found = delays.distribution().unwrap();
            for (share, value) in [(0.5, found.p50), (0.95, found.p95)] {
                let at = curve.iter().position(|(_, below)| *below >= share).unwrap();
                prop_assert!(value <= curve[at].0 && (at == 0 || curve[at - 1].0 < value), "{value} {curve:?}");
            }
        }
    }

    #[test]
    fn one_delay_alone_is_exact() {
        let mut delays = Delays::default();
        (0..3).for_each(|_| delays.add(Time::from_micros(1234)));
        let found = delays.distribution().unwrap();
        assert_eq!([found.mean, found.p50, found.p99, found.max], [1234.0 * 1e3 * 1e-9; 4]);
        assert!(Delays::default().distribution().is_none());
    }
}
