/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RCP and XCP of crates/flowstamp-laws in fixed point for the kernel. tests/equality.rs compares each function with the
 * Rust law, within the error bound stated at the function.
 *
 * Names carry the unit: _q16 has 16 fraction bits. Rates are in bytes/s, times in ns or us. Valid for links of 100 kb/s
 * to 100 Gb/s and RTTs of 10 us to 20 s. Nothing overflows within that range; values outside it saturate.
 */
#ifndef FLOWSTAMP_LAWS_H
#define FLOWSTAMP_LAWS_H

#include "fixed.h"

/* The laws ignore RTTs of this length or more (MAX_ALLOWABLE_RTT, app. F.2.1). */
#define FS_MAX_ALLOWABLE_RTT_US 20000000ULL
/* Lower bound of an average RTT, so that quotients by it stay in range. */
#define FS_MIN_RTT_Q8 (1000ULL << 8)

/* ------------------------------------------------------------------ RCP, Dukkipati 2007, appendix F: rcp/router.rs */

struct fs_rcp_params {
	__u64 link_rate_q16;
	/* eta C */
	__u64 target_rate_q16;
	__u64 alpha_q32;
	__u64 beta_q32;
	__u64 mtu_bytes;
	/* MAX_RATE_ESTIMATION_INTERVAL */
	__u64 max_interval_ns;
	/* A kernel timer cannot fire more often, even if RTTs are shorter (deviation 1). */
	__u64 min_interval_ns;
	/* MAX_ALLOWABLE_RTT: RTTs of this length or more are ignored; at most FS_MAX_ALLOWABLE_RTT_US. */
	__u64 max_rtt_us;
	/*
	 * RTTs are weighted by bytes, and each is capped at this many times their mean; at most 1000. Zero: RTTs are weighted
	 * by packets and not capped.
	 */
	__u64 max_rtt_factor_q16;
};

/* Sums over the packets of one interval. */
struct fs_rcp_sums {
	__u64 input_bytes;
	/* Sum of RTTs times weights, and sum of weights. A weight is the packets that carry an RTT, or their bytes. */
	__u64 sum_rtt_us;
	__u64 sum_weight;
};

struct fs_rcp {
	/* R */
	__u64 rate_q16;
	/* d, ns with 8 fraction bits; zero while unknown (rcp.rs, deviation 5) */
	__u64 avg_rtt_q8;
	/* y of the last interval, for probes only. */
	__u64 input_rate_q16;
	/* m, the decayed byte count behind it, and the cap c m on RTTs; zero: no cap. */
	__u64 mean_rtt_q8;
	__u64 mean_bytes_q16;
	__u64 most_rtt_us;
};

/* m averages over this many d. */
#define FS_RCP_MEMORY 16

/*
 * Updates m, d and the cap on the next interval's RTTs from the interval's mean RTT (rcp.rs, `bound_rtt`).
 *
 * Error against rcp.rs after one step from equal states, u = 2^-29: m: 2/256 ns, 4 u (|d_T - m| + m) and the error of
 * d_T; c m: c times that, and 2 u of itself; the cap on RTTs is c m in whole us, at least 1.
 */
FS_LAW void fs_rcp_bound(const struct fs_rcp_params *p, struct fs_rcp *s, __u64 weight, __u64 interval_q8, __u64 sample_q8)
{
	__u64 memory_q8 = FS_RCP_MEMORY * s->avg_rtt_q8, kept = 0, most_q8;

	weight <<= 16;
	if (interval_q8 < memory_q8)
		kept = fs_mul_div(s->mean_bytes_q16, memory_q8 - interval_q8, memory_q8);
	s->mean_bytes_q16 = kept + weight;
	if (sample_q8 >= s->mean_rtt_q8)
		s->mean_rtt_q8 += fs_mul_div(sample_q8 - s->mean_rtt_q8, weight, s->mean_bytes_q16);
	else
		s->mean_rtt_q8 -= fs_mul_div(s->mean_rtt_q8 - sample_q8, weight, s->mean_bytes_q16);
	most_q8 = fs_mul_div(s->mean_rtt_q8, p->max_rtt_factor_q16, 1 << 16);
	s->most_rtt_us = fs_max(most_q8 / (1000 << 8), 1);
	s->avg_rtt_q8 = fs_max(fs_min(s->avg_rtt_q8, most_q8), FS_MIN_RTT_Q8);
}

/*
 * Appendix F lines 1 to 12, with a queue of `queue_bytes`, `interval_ns` after the last update.
 *
 * Deviations (rcp.rs says / we do / because):
 * 1. T is at most d / where T is longer, line 8 uses T instead of d / timers have a minimum period, and the interval is
 *    then the delay of the control loop.
 * 2. T is the planned interval / the time that has passed / timers are late.
 *
 * Error against rcp.rs after one step from equal states, for R up to eta C, g the largest of the gains and 1, u = 2^-29:
 *   d: 4/256 ns of truncations (three products, the sample), and 4 u (|d_T - d| + d + d_T)
 *   R: g 2^-13 bytes/s of truncations (six: no factor that follows one is above g), 2^-16 bytes/s and MIN_RATE (u + e),
 *      and R (T/d) (alpha (target + y) + beta q / d) / target (8 u + 4 e),   e the relative error of d
 */
FS_LAW void fs_rcp_update(const struct fs_rcp_params *p, struct fs_rcp *s, const struct fs_rcp_sums *sums,
			  __u64 interval_ns, __u64 queue_bytes)
{
	__u64 interval_q8 = fs_max(interval_ns, 1) << 8;
	__u64 input = fs_rate_q16(sums->input_bytes, interval_ns); /* line 1 */
	__u64 delay_q8, spare, drain, rise, fall, min_rate, rate = s->rate_q16;

	s->input_rate_q16 = input;
	if (sums->sum_weight > 0) {
		__u64 sample_q8 = fs_mul_div(sums->sum_rtt_us, 1000 << 8, sums->sum_weight); /* line 2 */

		if (s->avg_rtt_q8 == 0) { /* rcp.rs, deviation 5 */
			s->avg_rtt_q8 = fs_max(sample_q8, FS_MIN_RTT_Q8);
			if (p->max_rtt_factor_q16)
				fs_rcp_bound(p, s, sums->sum_weight, interval_q8, sample_q8);
			return;
		}
		if (sample_q8 >= s->avg_rtt_q8) {
			__u64 above = sample_q8 - s->avg_rtt_q8;

			/* lines 4 and 7 */
			s->avg_rtt_q8 += fs_min(fs_mul_div(above, interval_q8, s->avg_rtt_q8), above);
		} else {
			__u64 below = s->avg_rtt_q8 - sample_q8;
			__u64 part = fs_mul_div(below, rate, p->link_rate_q16);

			/* lines 6 and 7 */
			part = fs_mul_div(part, sample_q8, s->avg_rtt_q8);
			part = fs_mul_div(part, interval_q8, s->avg_rtt_q8);
			s->avg_rtt_q8 -= fs_min(part, below);
		}
		s->avg_rtt_q8 = fs_max(s->avg_rtt_q8, FS_MIN_RTT_Q8);
		if (p->max_rtt_factor_q16)
			fs_rcp_bound(p, s, sums->sum_weight, interval_q8, sample_q8);
	}
	if (s->avg_rtt_q8 == 0)
		return;
	delay_q8 = fs_max(s->avg_rtt_q8, interval_q8); /* deviation 1 */
	spare = fs_times(input < p->target_rate_q16 ? p->target_rate_q16 - input : input - p->target_rate_q16,
			 p->alpha_q32);
	drain = fs_times(fs_mul_div(queue_bytes, FS_NS_PER_S << 24, delay_q8), p->beta_q32);
	rise = input < p->target_rate_q16 ? spare : 0;
	fall = drain + (input < p->target_rate_q16 ? 0 : spare);
	if (fall < drain)
		fall = ~0ULL;
	/* line 8 */
	if (rise >= fall) {
		rise = fs_mul_div(fs_mul_div(rate, rise - fall, p->target_rate_q16), interval_q8, delay_q8);
		rate += fs_min(rise, ~0ULL - rate);
	} else {
		fall = fs_mul_div(fs_mul_div(rate, fall - rise, p->target_rate_q16), interval_q8, delay_q8);
		rate -= fs_min(fall, rate);
	}
	/* lines 9 to 12; a hundredth of an MTU in d */
	min_rate = fs_mul_div(p->mtu_bytes, (FS_NS_PER_S / 100) << 24, s->avg_rtt_q8);
	s->rate_q16 = fs_max(fs_min(rate, p->target_rate_q16), fs_min(min_rate, p->target_rate_q16));
}

/*
 * Line 13: T = min(d, 10 ms), exact to 1 ns, but at least the minimum interval; the maximum interval while d is
 * unknown.
 */
FS_LAW __u64 fs_rcp_interval_ns(const struct fs_rcp_params *p, const struct fs_rcp *s)
{
	__u64 delay_ns = s->avg_rtt_q8 ? s->avg_rtt_q8 >> 8 : p->max_interval_ns;

	return fs_max(fs_min(delay_ns, p->max_interval_ns), p->min_interval_ns);
}

/* R in the option's unit, bytes/ms, rounded down but at least 1, because zero means no rate. */
FS_LAW __u32 fs_rcp_offer(const struct fs_rcp_params *p, const struct fs_rcp *s)
{
	__u64 offer = (fs_min(s->rate_q16, p->link_rate_q16) >> 16) / 1000;

	return fs_max(fs_min(offer, 0xffffffff), 1);
}

/* Line 18: exact. */
FS_LAW void fs_rcp_input(struct fs_rcp_sums *sums, __u64 bytes)
{
	sums->input_bytes += bytes;
}

/* An RTT, capped at `most_rtt_us`; all ones for an RTT of zero or one that is too long. Exact. */
FS_LAW __u64 fs_rcp_counts_as(__u64 max_rtt_us, __u64 most_rtt_us, __u64 rtt_us)
{
	if (rtt_us == 0 || rtt_us >= max_rtt_us)
		return ~0ULL;
	return most_rtt_us ? fs_min(rtt_us, most_rtt_us) : rtt_us;
}

/*
 * Lines 19 to 21, for a frame of weight `weight`: exact. The option's code for an unknown RTT decodes to more than
 * `max_rtt_us`.
 */
FS_LAW void fs_rcp_rtt(struct fs_rcp_sums *sums, __u64 max_rtt_us, __u64 rtt_us, __u64 weight)
{
	if (rtt_us < max_rtt_us) {
		sums->sum_rtt_us += rtt_us * weight;
		sums->sum_weight += weight;
	}
}

/* Lines 22 and 23: exact. */
FS_LAW __u32 fs_rcp_stamp(__u32 offer, __u32 carried)
{
	return carried > offer ? offer : carried;
}

/* ---------------------------------- XCP, Katabi 2002, appendix A, in the Internet-Draft's throughput form: xcp/router.rs */

struct fs_xcp_params {
	__u64 capacity_q16;
	__u64 alpha_q32;
	__u64 beta_q32;
	__u64 gamma_q32;
	__u64 min_interval_ns;
	__u64 max_rtt_us;
	/* The persistent queue is the minimum over this many propagation delays. */
	__u64 queue_window_q32;
	__u64 min_queue_interval_ns;
	/*
	 * Each byte's weight is capped at this many times the last interval's mean weight of a byte; at most 1000. Zero: no
	 * cap.
	 */
	__u64 max_weight_q16;
};

/*
 * Sums over the packets of one interval. X is the inter-packet time in 1/16 ns. Two 32-bit words hold the sum of X RTT,
 * with RTT in us; each has room above for 2^32 packets.
 */
struct fs_xcp_sums {
	__u64 input_bytes;
	__u64 sum_x_q4;
	__u64 sum_x_rtt_low;
	__u64 sum_x_rtt_high;
	/* Bytes of the packets with an X. */
	__u64 x_bytes;
};

/* mantissa 2^-shift, mantissa of at most 24 bits. */
struct fs_gain {
	__u64 mantissa;
	__s64 shift;
};

struct fs_xcp {
	/* xi_p: bytes/s (q16) for a unit of X; xi_n: bytes/s (q16) for a byte. */
	struct fs_gain give;
	struct fs_gain take;
	/* The cap on X per byte; a mantissa of zero means no cap. */
	struct fs_gain most_x;
	__u64 residue_pos_q16;
	__u64 residue_neg_q16;
	/* d, ns with 8 fraction bits; zero while unknown (xcp.rs, deviation 8) */
	__u64 avg_rtt_q8;
	/* Q, and the minimum queue since the current search for it began. */
	__u64 persistent_queue_bytes;
	__u64 min_queue_bytes;
	/* For probes: F and y of the last decision. */
	__s64 aggregate_q16;
	__u64 input_rate_q16;
};

/* a / b, within 2^-22 of itself. */
FS_LAW struct fs_gain fs_ratio(__u64 a, __u64 b)
{
	__u32 a_lift = (64 - fs_bits(a)) & 63, b_shift = fs_excess(b, 32), excess;
	struct fs_gain gain = {};
	__u64 quotient;

	b >>= b_shift;
	if (a == 0 || b == 0)
		return gain;
	quotient = FS_QUOTIENT(a << a_lift, b);
	excess = fs_excess(quotient, 24);
	gain.mantissa = quotient >> excess;
	gain.shift = (__s64)(a_lift + b_shift) - excess;
	return gain;
}

/* gain v for v below 2^40, rounded down; saturates. Otherwise exact. */
FS_LAW __u64 fs_amplify(const struct fs_gain *gain, __u64 v)
{
	__u64 product = FS_PRODUCT(gain->mantissa, fs_min(v, (1ULL << 40) - 1));

	if (gain->shift >= 0)
		return gain->shift > 63 ? 0 : product >> (gain->shift & 63);
	if (fs_bits(product) - gain->shift > 64)
		return ~0ULL;
	return product << (-gain->shift & 63);
}

/*
 * X, the time between a flow's packets, from the option's fields; zero if unknown.
 * Within 1/16 ns: 2^-11 of itself for packets of 1500 bytes at 100 Gb/s.
 */
FS_LAW __u64 fs_xcp_x_q4(__u64 rtt_us, __u64 packets_in_flight)
{
	if (packets_in_flight == 0)
		return 0;
	return fs_min(rtt_us, FS_MAX_ALLOWABLE_RTT_US) * 16000 / packets_in_flight;
}

/* X, capped for a packet of `bytes` (shares.rs, `bounded`). Within 2^-22 of itself and 1/16 ns; at least 1/16 ns. */
FS_LAW __u64 fs_xcp_bounded(const struct fs_xcp *s, __u64 bytes, __u64 x_q4)
{
	return s->most_x.mantissa ? fs_min(x_q4, fs_max(fs_amplify(&s->most_x, bytes), 1)) : x_q4;
}

/* First block of appendix A, for `packets` packets with equal fields and `bytes` bytes in total. Exact. */
FS_LAW void fs_xcp_arrival(const struct fs_xcp_params *p, struct fs_xcp_sums *sums, __u64 bytes, __u64 packets,
			   __u64 rtt_us, __u64 x_q4)
{
	__u64 x_rtt = x_q4 * fs_min(rtt_us, fs_min(p->max_rtt_us, FS_MAX_ALLOWABLE_RTT_US));

	sums->input_bytes += bytes;
	sums->sum_x_q4 += x_q4 * packets;
	sums->sum_x_rtt_low += (x_rtt & 0xffffffff) * packets;
	sums->sum_x_rtt_high += (x_rtt >> 32) * packets;
	if (x_q4 > 0)
		sums->x_bytes += bytes;
}

/* Control interval while no RTT is known: xcp.rs, deviation 8. */
#define FS_UNKNOWN_NS 1000000ULL

/* d, or its substitute while d is unknown, in ns with 8 fraction bits. */
FS_LAW __u64 fs_xcp_rtt_q8(const struct fs_xcp_params *p, const struct fs_xcp *s)
{
	return s->avg_rtt_q8 ? s->avg_rtt_q8 : fs_max(FS_UNKNOWN_NS, p->min_interval_ns) << 8;
}

/* The result of an interval: y, d or its substitute, and whether d was known before (shares.rs, `close`). */
struct fs_xcp_closed {
	__u64 input_q16;
	__u64 delay_q8;
	bool known;
};

/*
 * The averages of an interval of `interval_ns`.
 *
 * Deviation: the interval is the time that has passed, not the planned one, because timers are late.
 *
 * Error against shares.rs, u = 2^-29, sums equal:
 *   d: 2/256 ns and 2 u d
 *   y: 2^-16 bytes/s and u y
 */
FS_LAW struct fs_xcp_closed fs_xcp_close(const struct fs_xcp_params *p, struct fs_xcp *s, const struct fs_xcp_sums *sums,
					 __u64 interval_ns)
{
	struct fs_xcp_closed closed = {fs_rate_q16(sums->input_bytes, interval_ns), 0, s->avg_rtt_q8 > 0};

	if (sums->sum_x_q4 > 0) {
		__u64 low = sums->sum_x_rtt_low, high = sums->sum_x_rtt_high + (low >> 32);
		__u32 excess = fs_excess(high, 32) & 31;
		__u64 sum_x_rtt = high << (32 - excess) | (low & 0xffffffff) >> excess;

		s->avg_rtt_q8 = fs_min(fs_mul_div(sum_x_rtt, 1000 << 8, sums->sum_x_q4 >> excess),
				       (p->max_rtt_us * 1000) << 8);
		s->avg_rtt_q8 = fs_max(s->avg_rtt_q8, FS_MIN_RTT_Q8);
		if (p->max_weight_q16) {
			struct fs_gain mean = fs_ratio(sums->sum_x_q4, sums->x_bytes);
			__u32 more = fs_excess(mean.mantissa * p->max_weight_q16, 24);

			s->most_x.mantissa = mean.mantissa * p->max_weight_q16 >> more;
			s->most_x.shift = mean.shift + 16 - more;
		}
	}
	closed.delay_q8 = fs_max(fs_xcp_rtt_q8(p, s), p->min_interval_ns << 8);
	return closed;
}

/*
 * Hands out to the next interval's packets: F = rise - fall, both below 2^62, and the shuffled traffic. With
 * `shuffle_rest` it shuffles only what F leaves of gamma y.
 *
 * Error against shares.rs, u = 2^-29:
 *   pools: twice that of F, and 2^-15 bytes/s and 3 u gamma y
 *   gains: 2^-22 of themselves, and the pools' relative errors
 */
FS_LAW void fs_xcp_hand_out(const struct fs_xcp_params *p, struct fs_xcp *s, const struct fs_xcp_sums *sums,
			    const struct fs_xcp_closed *closed, bool shuffle_rest, __u64 rise,
			    __u64 fall)
{
	/*
	 * shares.rs: with the cap, eqs. 2 and 9 count only packets with an X, because nothing can be taken from others.
	 */
	__u64 taken_from = p->max_weight_q16 ? fs_min(sums->x_bytes, sums->input_bytes) : sums->input_bytes;
	__u64 shuffled_of = taken_from < sums->input_bytes
				    ? fs_mul_div(closed->input_q16, taken_from, sums->input_bytes)
				    : closed->input_q16;
	__u64 shuffled = fs_times(shuffled_of, p->gamma_q32), give, take; /* eq. 2 */

	if (shuffle_rest)
		shuffled -= fs_min(shuffled, rise >= fall ? rise - fall : fall - rise);
	if (rise >= fall) {
		rise -= fall;
		give = shuffled + rise;
		take = shuffled;
		s->aggregate_q16 = rise;
	} else {
		fall -= rise;
		give = shuffled;
		take = shuffled + fall;
		s->aggregate_q16 = -(__s64)fall;
	}
	if (sums->sum_x_q4 == 0 || !closed->known)
		give = take = 0; /* xcp.rs, deviations 4 and 8 */
	s->give = fs_ratio(give, sums->sum_x_q4); /* eq. 6 */
	s->take = fs_ratio(take, taken_from); /* eq. 9 */
	s->residue_pos_q16 = give;
	s->residue_neg_q16 = take;
	s->input_rate_q16 = closed->input_q16;
}

/*
 * Second block of appendix A, `interval_ns` after the last.
 *
 * Error of F against xcp.rs, g the largest of alpha, beta and 1, u = 2^-29, sums equal, beta Q / d below 2^45 bytes/s (281 Tb/s;
 * more saturates): g 2^-13 bytes/s and 4 u (alpha (C + y) + beta Q / d), and beta Q / d times the relative error of d.
 */
FS_LAW void fs_xcp_decide(const struct fs_xcp_params *p, struct fs_xcp *s, const struct fs_xcp_sums *sums,
			  __u64 interval_ns)
{
	struct fs_xcp_closed closed = fs_xcp_close(p, s, sums, interval_ns);
	__u64 input = closed.input_q16, spare, drain, rise, fall;

	/* eq. 1 */
	spare = fs_times(input < p->capacity_q16 ? p->capacity_q16 - input : input - p->capacity_q16, p->alpha_q32);
	drain = fs_times(fs_mul_div(s->persistent_queue_bytes, FS_NS_PER_S << 24, closed.delay_q8), p->beta_q32);
	rise = input < p->capacity_q16 ? spare : 0;
	/* Half of the unsigned range, because the following values are signed. */
	fall = fs_min(drain, 1ULL << 61) + fs_min(input < p->capacity_q16 ? 0 : spare, 1ULL << 61);
	fs_xcp_hand_out(p, s, sums, &closed, true, rise, fall);
}

/* The control interval that follows. Exact to a ns. */
FS_LAW __u64 fs_xcp_interval_ns(const struct fs_xcp_params *p, const struct fs_xcp *s)
{
	return fs_max(fs_xcp_rtt_q8(p, s) >> 8, p->min_interval_ns);
}

/*
 * Ends the search for the persistent queue and returns the length of the next search. Within 2^-28 of itself and of the
 * window w times the local delay, and 2 + 2 w ns.
 */
FS_LAW __u64 fs_xcp_queue_ns(const struct fs_xcp_params *p, struct fs_xcp *s, __u64 queue_bytes)
{
	__u64 local_ns = fs_mul_div(queue_bytes, FS_NS_PER_S << 16, p->capacity_q16), delay_ns = fs_xcp_rtt_q8(p, s) >> 8;

	s->persistent_queue_bytes = fs_min(s->min_queue_bytes, queue_bytes);
	s->min_queue_bytes = queue_bytes;
	delay_ns -= fs_min(local_ns, delay_ns);
	return fs_max(fs_times(delay_ns, p->queue_window_q32), p->min_queue_interval_ns);
}

/*
 * Third block of appendix A, for `packets` packets (1 to 65535) with equal fields and `bytes` bytes in total. Returns
 * the feedback that they carry from here on. An interval never gives or takes more than the pools hold.
 *
 * Error against xcp.rs for one packet and equal states: 1 byte/s, and 2^-22 of what is given and taken. If the carried
 * feedback is within that error of this router's feedback, the other branch may be taken.
 */
FS_LAW __s32 fs_xcp_departure(struct fs_xcp *s, __u64 bytes, __u32 packets, __u64 rtt_us, __u64 x_q4, __s32 carried)
{
	__u64 give, take, unit = (__u64)packets << 16;
	__s64 feedback, wish, each;

	if (rtt_us == 0 || x_q4 == 0)
		return carried < 0 ? carried : 0; /* xcp.rs, deviation 2 */
	give = fs_min(fs_amplify(&s->give, x_q4), s->residue_pos_q16); /* eq. 4 */
	/* The field holds at most 2^31 bytes/s per packet. */
	if (packets > 1)
		give = fs_min(FS_PRODUCT(fs_min(give, (1ULL << 47) - 1), packets), s->residue_pos_q16);
	take = fs_min(fs_amplify(&s->take, bytes), s->residue_neg_q16); /* eq. 7 */
	feedback = (__s64)give - (__s64)take; /* eq. 3 */
	wish = FS_PRODUCT((__s64)carried, (__s64)unit);
	if (wish >= feedback) {
		s->residue_pos_q16 -= give;
		s->residue_neg_q16 -= take;
		/* Rounds down, so that the sum stays within the pools. */
		each = feedback >= 0 ? (__s64)FS_QUOTIENT((__u64)feedback, unit)
				     : -(__s64)FS_QUOTIENT((__u64)-feedback + unit - 1, unit);
		return each < -0x7fffffffLL - 1 ? -0x7fffffff - 1 : (__s32)each;
	}
	/*
	 * An upstream router allows less: Throughput::booked of header.rs. Only an unsigned number has room for give - wish.
	 */
	take = fs_min(wish < 0 ? give + (__u64)-wish : give - (__u64)wish, s->residue_neg_q16);
	s->residue_neg_q16 -= take;
	if (wish >= 0)
		take += (__u64)wish;
	else
		take -= fs_min((__u64)-wish, take);
	s->residue_pos_q16 -= fs_min(take, s->residue_pos_q16);
	return carried;
}

#endif
