/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Proofs about ../bpf/fixed.h and ../bpf/laws.h, for CBMC: each function is one, of all values that its GIVENs allow. `make prove`.
 * They also show that no shift is out of range, nothing divides by zero, and no sum, difference or conversion loses
 * bits (except the one product of `fs_bits` that may).
 *
 * Products and quotients are any numbers that the laws of arithmetic in proofs.h allow, so that what is shown is shown of all values of 64
 * bits. That the machine's `*` and `/` keep these laws is taken for granted. Steps that follow by arithmetic from a
 * shown property to the bound in a comment are written at their place; ../tests/equality.rs tries it.
 */
#include "proofs.h"
#include "../bpf/laws.h"

/* Significant bits, another way. */
static __u32 length(__u64 v)
{
	return v ? 64 - __builtin_clzll(v) : 0;
}

void bits(void)
{
	__u64 v = nondet_u64();

	SHOW(fs_bits(v) == length(v));
}

/* The bits cut off for `bits` bits: none, or the rest has that many. */
void excess(void)
{
	__u64 v = nondet_u64();
	__u32 bits = nondet_u32(), n;

	GIVEN(bits >= 1 && bits <= 64);
	n = fs_excess(v, bits);
	SHOW(n < 64);
	SHOW(length(v >> n) <= bits);
	SHOW(n == 0 || length(v >> n) == bits);
}

/*
 * A and its like are what is left of a: a (1 - e), 0 <= e < 2^-31, and e = 0 below 2^32. N is A B with all its bits, at least 2^63 unless
 * zero, and Q its quotient by C, at least 2^31 then, so that Q C = N (1 - e). The result is Q 2^e, rounded down, or all ones where that
 * does not fit. Therefore it is a b / c times something from (1 - 2^-31)^3 to 1 / (1 - 2^-31), which is within 2^-29 of 1, rounded down
 * (prove.py has the numbers); and where all fit into 32 bits it is [[A B 2^lift / C] / 2^lift] = [A B / C].
 */
static __u64 cut(__u64 v, __u32 *shift)
{
	__u64 rest;

	*shift = length(v) > 32 ? length(v) - 32 : 0;
	rest = v >> *shift;
	SHOW(v - (rest << *shift) < 1ULL << *shift);
	SHOW(rest < 1ULL << 32 && (*shift == 0 || rest >= 1ULL << 31));
	return rest;
}

void mul_div(void)
{
	__u64 a = nondet_u64(), b = nondet_u64(), c = nondet_u64(), result;
	__u32 a_shift, b_shift, c_shift, lift;
	__s32 exponent;

	result = fs_mul_div(a, b, c);
	if (c == 0) {
		SHOW(result == ~0ULL);
		return;
	}
	SHOW(product.a == cut(a, &a_shift));
	SHOW(product.b == cut(b, &b_shift));
	SHOW(quotient.d == cut(c, &c_shift));
	SHOW(quotient.n == 0 ? product.ab == 0 : quotient.n >= 1ULL << 63);
	lift = quotient.n ? 64 - length(product.ab) : 0;
	SHOW(quotient.n >> lift == product.ab);
	exponent = (__s32)(a_shift + b_shift) - (__s32)(c_shift + lift);
	if (quotient.q == 0)
		SHOW(result == 0);
	else if (exponent <= -64)
		SHOW(result == 0);
	else if (exponent < 0)
		SHOW(result == quotient.q >> -exponent);
	else if (exponent >= 64 || (u128)quotient.q << exponent >> 64)
		SHOW(result == ~0ULL);
	else
		SHOW(result == (u128)quotient.q << exponent);
}

/* The form of gains: their mantissas and shifts. */
void ratio(void)
{
	struct fs_gain gain = fs_ratio(nondet_u64(), nondet_u64());

	SHOW(gain.mantissa < 1 << 24);
	SHOW(gain.shift >= -40 && gain.shift <= 95);
}

/* Exact, rounded down; all ones where that does not fit; v counts as 2^40 - 1 from there on. For all gains that `ratio` shows, and more. */
void amplify(void)
{
	struct fs_gain gain = {nondet_u64(), nondet_s64()};
	__u64 v = nondet_u64(), result;
	u128 exact;

	GIVEN(gain.mantissa < 1 << 24);
	GIVEN(gain.shift >= -64);
	result = fs_amplify(&gain, v);
	SHOW(product.a == gain.mantissa);
	SHOW(product.b == (v < 1ULL << 40 ? v : (1ULL << 40) - 1));
	exact = product.ab;
	if (gain.shift >= 0)
		SHOW(result == (gain.shift > 127 ? 0 : exact >> gain.shift));
	else if (exact == 0)
		SHOW(result == 0);
	else if (gain.shift <= -64 || exact << -gain.shift >> 64)
		SHOW(result == ~0ULL);
	else
		SHOW(result == exact << -gain.shift);
}

/*
 * For any state that `fs_xcp_hand_out` leaves (gains as `ratio` shows them, pools below 2^63) and any packet: its
 * feedback is never raised; pools never grow;
 *   what it is told above zero, the positive pool has paid;
 *   where it is told something else than it carries, that is what the pools have paid for it, give less take, rounded down by less than
 *   1 byte/s for each of its packets; but no less than the field holds.
 */
void departure(void)
{
	struct fs_xcp s = {}, before;
	__u32 packets = nondet_u32();
	__u64 bytes = nondet_u64(), rtt_us = nondet_u64(), x_q4 = nondet_u64();
	__s32 carried = nondet_s32(), told;
	s128 unit, sum, given, taken;

	s.give.mantissa = nondet_u64();
	s.give.shift = nondet_s64();
	s.take.mantissa = nondet_u64();
	s.take.shift = nondet_s64();
	s.residue_pos_q16 = nondet_u64();
	s.residue_neg_q16 = nondet_u64();
	GIVEN(s.give.mantissa < 1 << 24 && s.take.mantissa < 1 << 24);
	GIVEN(s.give.shift >= -40 && s.give.shift <= 95 && s.take.shift >= -40 && s.take.shift <= 95);
	GIVEN(s.residue_pos_q16 < 1ULL << 63 && s.residue_neg_q16 < 1ULL << 63);
	GIVEN(packets >= 1 && packets <= 65535);
	before = s;
	told = fs_xcp_departure(&s, bytes, packets, rtt_us, x_q4, carried);
	SHOW(told <= carried);
	SHOW(s.residue_pos_q16 <= before.residue_pos_q16);
	SHOW(s.residue_neg_q16 <= before.residue_neg_q16);
	given = before.residue_pos_q16 - s.residue_pos_q16;
	taken = before.residue_neg_q16 - s.residue_neg_q16;
	if (rtt_us == 0 || x_q4 == 0) {
		SHOW(given == 0 && taken == 0 && told <= 0);
		return;
	}
	unit = (__u64)packets << 16;
	SHOW(product.a == carried && product.b == unit);
	/* The sum of its packets' feedback, with 16 fraction bits. */
	if (told == carried)
		sum = product.ab;
	else if (told >= 0)
		sum = quotient.qd;
	else
		sum = -(s128)quotient.qd;
	if (told == carried) {
		SHOW(told <= 0 || sum <= given);
		return;
	}
	SHOW(quotient.d == unit);
	SHOW(told == (__s64)quotient.q || told == -(__s64)quotient.q || told == -0x7fffffff - 1);
	if (told == -0x7fffffff - 1)
		return;
	SHOW(sum <= given - taken);
	SHOW(sum > given - taken - unit);
}
