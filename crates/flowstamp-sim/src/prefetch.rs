//! Prefetch hints to the processor. They change no result.

use std::ops::Range;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches the cache line of the last byte of `value`. The line before, if `value` begins in it, also belongs to a
/// neighbour that is used first. It does nothing on processors other than `x86_64`.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    line_of(value, size_of::<T>().saturating_sub(1));
}

/// Prefetches the array element `ahead` positions after this one. An address beyond the array's end is harmless, and
/// checking for the end would cost more.
#[inline(always)]
pub fn prefetch_ahead<T>(element: &T, ahead: usize) {
    line_of(element, (ahead + 1) * size_of::<T>() - 1);
}

/// Prefetches these bytes of `value`, which must begin at a cache line.
#[inline(always)]
pub fn prefetch_part<T>(value: &T, bytes: Range<usize>) {
    for at in bytes.step_by(LINE) {
        line_of(value, at);
    }
}

/// Prefetches the cache line of byte `at` of `value`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the only way to the instruction")]
#[inline(always)]
fn line_of<T>(value: &T, at: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let byte = std::ptr::from_ref(value).cast::<i8>().wrapping_add(at);
    // SAFETY: SSE is part of every x86_64, and a prefetch neither faults, whatever the address, nor reads or writes
    // anything that the program could see.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(byte) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn line_of<T>(_: &T, _: usize) {}
