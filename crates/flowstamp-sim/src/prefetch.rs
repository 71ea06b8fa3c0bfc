//! A hint to the processor. It changes no result.

/// `value` is needed soon: all its cache lines are brought near. Nothing happens on processors other than `x86_64`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the only way to the instruction")]
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    const LINE: usize = 64;
    let start = std::ptr::from_ref(value).cast::<i8>();
    let last = size_of::<T>().saturating_sub(1);
    for offset in (0..last).step_by(LINE).chain([last]) {
        // SAFETY: SSE is part of every x86_64, and a prefetch neither faults, whatever the address, nor reads or writes
        // anything that the program could see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) }
    }
}

/// `value` is needed soon.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn prefetch<T>(_: &T) {}
