//! A hint to the processor. It changes no result.

/// `value` is needed soon: its last byte's cache line is brought near. What is in the line before, if it begins in one, is
/// left to its neighbour, which is used first. Nothing happens on processors other than `x86_64`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the only way to the instruction")]
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let last = std::ptr::from_ref(value).cast::<i8>().wrapping_add(size_of::<T>().saturating_sub(1));
    // SAFETY: SSE is part of every x86_64, and a prefetch neither faults, whatever the address, nor reads or writes
    // anything that the program could see.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(last) }
}

/// `value` is needed soon.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn prefetch<T>(_: &T) {}
