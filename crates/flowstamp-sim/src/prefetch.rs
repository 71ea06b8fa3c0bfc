//! A hint to the processor. It changes no result.

use std::ops::Range;

/// Bytes of a cache line.
const LINE: usize = 64;

/// `value` is needed soon: its last byte's cache line is brought near. What is in the line before, if it begins in one, is
/// left to its neighbour, which is used first. Nothing happens on processors other than `x86_64`.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    line_of(value, size_of::<T>().saturating_sub(1));
}

/// The element of an array that is `ahead` after this one is needed soon. Beyond the array's end is nothing to be had, which
/// costs less than to look for the end.
#[inline(always)]
pub fn prefetch_ahead<T>(element: &T, ahead: usize) {
    line_of(element, (ahead + 1) * size_of::<T>() - 1);
}

/// These bytes of `value`, which begins with a cache line, are needed soon.
#[inline(always)]
pub fn prefetch_part<T>(value: &T, bytes: Range<usize>) {
    for at in bytes.step_by(LINE) {
        line_of(value, at);
    }
}

/// Brings near the cache line of the byte `at` of `value`.
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
