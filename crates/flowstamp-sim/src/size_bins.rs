//! Bins of flow size. The bounds are powers of ten with exponents in steps of a half, rounded, in packets of full
//! payload.

/// The bounds, in packets.
const BOUNDS: [u64; 14] =
    [0, 3, 10, 32, 100, 316, 1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000, u64::MAX];

/// Number of bins.
pub const BINS: usize = BOUNDS.len() - 1;

/// The bin of a flow of `size` bytes.
#[must_use]
pub fn bin(size: u64, payload: u64) -> usize {
    BOUNDS[1..BINS].partition_point(|bound| bound.saturating_mul(payload) <= size)
}

/// The smallest size in a bin, and the smallest of the next bin, bytes.
#[must_use]
pub fn bounds(bin: usize, payload: u64) -> (u64, u64) {
    (BOUNDS[bin].saturating_mul(payload), BOUNDS[bin + 1].saturating_mul(payload))
}

#[cfg(test)]
mod tests {
    use super::{BINS, bin, bounds};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_flow_is_in_the_bin_that_has_its_size(size in 0..u64::MAX, small in 0u64..2_000_000_000, payload in 1u64..10_000) {
            for size in [size, small, small * payload] {
                let (least, next) = bounds(bin(size, payload), payload);
                prop_assert!(least <= size && size < next, "{least} {size} {next}");
            }
        }
    }

    #[test]
    fn bins_follow_each_other() {
        for at in 1..BINS {
            assert_eq!(bounds(at - 1, 1460).1, bounds(at, 1460).0);
        }
        assert_eq!((bounds(0, 1460).0, bounds(BINS - 1, 1460).1), (0, u64::MAX));
    }
}
