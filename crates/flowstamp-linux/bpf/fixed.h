/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fixed-point arithmetic for all laws in the kernel: no floats, no 128-bit integers, only unsigned divisions.
 * tests/equality.rs checks its error bounds.
 */
#ifndef FLOWSTAMP_FIXED_H
#define FLOWSTAMP_FIXED_H

#include <linux/types.h>
#include <stdbool.h>

#define FS_LAW static inline __attribute__((always_inline))

#define FS_NS_PER_S 1000000000ULL

/* Products and quotients are macros so that the proofs in ../proofs/ can replace them with the laws of arithmetic. */
#ifndef FS_PRODUCT
#define FS_PRODUCT(a, b) ((a) * (b))
#define FS_QUOTIENT(a, b) ((a) / (b))
#endif

/* Number of significant bits of v. It has no branches, because the verifier follows each branch. */
FS_LAW __u32 fs_bits(__u64 v)
{
	v |= v >> 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v |= v >> 16;
	v |= v >> 32;
	v -= v >> 1 & 0x5555555555555555ULL;
	v = (v & 0x3333333333333333ULL) + (v >> 2 & 0x3333333333333333ULL);
	v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return v * 0x0101010101010101ULL >> 56;
}

/* The right shift that reduces v to `bits` bits. */
FS_LAW __u32 fs_excess(__u64 v, __u32 bits)
{
	__s32 excess = (__s32)fs_bits(v) - (__s32)bits;

	return excess & ~(excess >> 31);
}

/*
 * a b / c, rounded down; all ones if the result does not fit or c is zero.
 * Exact where a, b and c fit into 32 bits; otherwise the error is at most 2^-29 of the result, plus 1.
 * (a, b, c and the quotient each lose at most 2^-31 of their value.)
 */
FS_LAW __u64 fs_mul_div(__u64 a, __u64 b, __u64 c)
{
	__u32 a_shift = fs_excess(a, 32), b_shift = fs_excess(b, 32), c_shift = fs_excess(c, 32);
	__u64 product = FS_PRODUCT(a >> a_shift, b >> b_shift);
	__u32 lift = (64 - fs_bits(product)) & 63;
	__s32 exponent = (__s32)(a_shift + b_shift) - (__s32)(c_shift + lift);
	__u64 quotient;

	c >>= c_shift;
	if (c == 0)
		return ~0ULL;
	quotient = FS_QUOTIENT(product << lift, c);
	if (exponent >= 0) {
		if (fs_bits(quotient) + exponent > 64)
			return ~0ULL;
		return quotient << (exponent & 63);
	}
	exponent = -exponent;
	return exponent > 63 ? 0 : quotient >> (exponent & 63);
}

FS_LAW __u64 fs_min(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

FS_LAW __u64 fs_max(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* factor_q32 v, for factors up to 16. The error is at most 2^-29 of the result, plus 1. */
FS_LAW __u64 fs_times(__u64 v, __u64 factor_q32)
{
	return fs_mul_div(v, factor_q32, 1ULL << 32);
}

/*
 * The rate of `bytes` in `ns`, in bytes/s with 16 fraction bits. The error is at most 2^-29 of the result, plus 2^-16
 * bytes/s.
 */
FS_LAW __u64 fs_rate_q16(__u64 bytes, __u64 ns)
{
	return fs_mul_div(bytes, FS_NS_PER_S << 16, ns);
}

#endif
