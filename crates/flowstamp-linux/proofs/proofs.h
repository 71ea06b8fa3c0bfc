/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The vocabulary of the proofs of laws.c, and the laws of arithmetic that stand for products and quotients.
 *
 * A solver of propositional logic knows shifts, sums and comparisons of 64 bits in seconds, but not that a product of 64 bits grows with
 * its factors. Therefore a product or a quotient is any number here, held to what is true of it in the integers; what it is for is shown of every
 * number that is so held. Each law says by SHOW what it needs, and by GIVEN what then holds.
 */
#ifndef FLOWSTAMP_PROOFS_H
#define FLOWSTAMP_PROOFS_H

#include <linux/types.h>

#define SHOW(what) __CPROVER_assert(what, #what)
#define GIVEN(what) __CPROVER_assume(what)

typedef unsigned __int128 u128;
typedef __int128 s128;

__u64 nondet_u64(void);
__u32 nondet_u32(void);
__s64 nondet_s64(void);
__s32 nondet_s32(void);
s128 nondet_s128(void);

/* The last product and the last quotient, and what they are of. */
static struct {
	s128 a, b, ab;
} product;

static struct {
	__u64 n, d, q;
	/* q d */
	u128 qd;
} quotient;

/* a b, of factors that are small enough for it to fit: of a's sign, zero if one of them is, and no larger than the largest ones make it. */
static s128 product_of(s128 a, s128 b)
{
	s128 ab = nondet_s128(), size = a < 0 ? -a : a, most;

	SHOW(b >= 0);
	if (size <= (s128)1 << 31 && b < (s128)1 << 32)
		most = ((s128)1 << 31) * (((s128)1 << 32) - 1);
	else if (size < (s128)1 << 32 && b < (s128)1 << 32)
		most = (((s128)1 << 32) - 1) * (((s128)1 << 32) - 1);
	else if (size < 1 << 24 && b < (s128)1 << 40)
		most = (s128)((1 << 24) - 1) * (((s128)1 << 40) - 1);
	else
		most = (((s128)1 << 47) - 1) * 65535;
	SHOW(size < (s128)1 << 47 && (size < (s128)1 << 32 || b < 1 << 16) && (b < (s128)1 << 32 || size < 1 << 24) &&
	     b < (s128)1 << 40);
	GIVEN(ab >= -most && ab <= most);
	GIVEN(size && b ? (ab < 0) == (a < 0) && ab != 0 : ab == 0);
	product.a = a;
	product.b = b;
	product.ab = ab;
	return ab;
}

/*
 * n / d: q d <= n < q d + d; q is no more than n over what d is at least; and q d is to a product a d as q is to
 * a. */
static __u64 quotient_of(__u64 n, __u64 d)
{
	__u64 q = nondet_u64(), qd = nondet_u64();

	SHOW(d != 0);
	GIVEN(qd <= n && n - qd < d);
	/* As d is no less than the highest of its bits. */
	GIVEN(q <= n >> (63 - __builtin_clzll(d)) && q <= qd && (q == 0) == (qd == 0));
	if (product.b == d) {
		GIVEN((product.a == (s128)q) == (product.ab == (s128)qd));
		GIVEN((product.a == -(s128)q) == (product.ab == -(s128)qd));
		GIVEN((product.a >= (s128)q) == (product.ab >= (s128)qd));
		GIVEN((product.a >= -(s128)q) == (product.ab >= -(s128)qd));
	}
	quotient.n = n;
	quotient.d = d;
	quotient.q = q;
	quotient.qd = qd;
	return q;
}

/* It has the type that C gives it, without loss: all types here have 64 bits. */
#define FS_PRODUCT(a, b) ((__typeof__((a) * (b)))product_of(a, b))
#define FS_QUOTIENT(a, b) quotient_of(a, b)

#endif
