//! Converts between numbers and the float64 bytes in memory that other languages pass. This crate does it, because bindings are
//! not compiled for speed.

/// Reads native float64 bytes; `None` if the last number is cut off.
#[must_use]
pub fn numbers(bytes: &[u8]) -> Option<Vec<f64>> {
    let number = |chunk: &[u8]| Some(f64::from_ne_bytes(chunk.try_into().ok()?));
    if bytes.len().is_multiple_of(8) { bytes.chunks_exact(8).map(number).collect() } else { None }
}

/// Writes numbers as native float64 bytes.
#[must_use]
pub fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(bits in prop::collection::vec(any::<u64>(), 0..9), cut in 1usize..8) {
            let values: Vec<f64> = bits.iter().map(|bits| f64::from_bits(*bits)).collect();
            let mut memory = bytes(&values);
            let back = numbers(&memory).map(|all| all.into_iter().map(f64::to_bits).collect::<Vec<_>>());
            prop_assert_eq!(back, Some(bits));
            memory.extend(vec![0; cut]);
            prop_assert_eq!(numbers(&memory), None);
        }
    }
}
