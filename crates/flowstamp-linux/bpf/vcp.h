/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * VCP (Xia and others 2008) in fixed point for the kernel: vcp/router.rs and vcp/sender.rs of crates/flowstamp-laws,
 * and the receiver's counts. tests/vcp_equality.rs compares each function with the Rust laws, within the error bound
 * stated at it.
 *
 *   router   rho = (lambda + k_q q~) / (gamma C T)             eq. 1, every t_rho;  q~ = (1 - a) q~ + a q   every t_q
 *            code in packet = max(it, code(rho)), never from 00                     R.4
 *   sender   01: w += xi_s           xi_s = (1 + xi)^min(rtt / t_rho, 2.5) - 1      eqs. 2, 5, 6, for each packet that came
 *            10: w += alpha_s / w    alpha_s = alpha (rtt / t_rho)^2, at most w/10  eqs. 3, 8
 *            11: w *= beta           once; nothing for t_rho; then an RTT as for 10 eq. 4
 *
 * Names carry the unit: _q16 has 16 fraction bits, times are in ns or us. Windows are in 2^-20 byte, so that a packet's
 * addition at an RTT of a hundredth of t_rho is not truncated to nothing. Valid for links of 100 kb/s to 100 Gb/s,
 * t_rho from 100 us to 16.7 s, and srtt below 2^27 us.
 *
 * Deviations (the Rust law says / here / because):
 * 1. T is t_rho / the time that has passed / timers are late, and input is counted for that time.
 * 2. Counts the packets that an ack newly acknowledges, all with its code / counts received packets per code, as the
 *    receiver reports them / one ack covers several packets, and a lost ack costs nothing. Among an ack's codes,
 *    overload is handled first.
 * 3. Code 00 counts as 10 / as no code, and a flow that receives only 00 leaves / something on the path clears the ECN
 *    bits, so routers cannot signal the flow.
 * 4. A loss halves the data in flight / halves the window / the window grows only while it is used.
 */
#ifndef FLOWSTAMP_VCP_H
#define FLOWSTAMP_VCP_H

#include "fixed.h"
#include "option.h"

/* Load factor where high load begins (section III-B). */
#define FS_VCP_TRANSITION_Q32 ((4ULL << 32) / 5)
/* Largest share of the window that AI adds per round trip: limiter "tenth". */
#define FS_VCP_TENTH_Q44 ((1ULL << 44) / 10)
#define FS_VCP_FRACTION_BITS 20
/* 64 GB: far above any window, and far below the point where sums overflow. */
#define FS_VCP_WINDOW_MAX (1ULL << 36 << FS_VCP_FRACTION_BITS)
/* Terms of the series of e^z - 1, for z up to 0.558 and xi up to 1/4. The omitted terms are below 2^-33 of the sum. */
#define FS_VCP_TERMS 11

struct fs_vcp_params {
	/* gamma C */
	__u64 target_rate_q16;
	__u64 k_q_q32;
	/* a */
	__u64 queue_weight_q32;
	__u64 t_rho_ns;
	__u64 t_q_ns;
	/* t_rho in us, as packets carry it. */
	__u64 t_rho_us;
};

/* Sums over the packets of one interval. */
struct fs_vcp_sums {
	__u64 input_bytes;
};

struct fs_vcp {
	/* q~, bytes */
	__u64 queue_q16;
	/* rho; saturates at 2^32 */
	__u64 load_q32;
	__u64 code;
};

/* R.2: within 2^-29 of the difference, and 2^-16 byte. */
FS_LAW void fs_vcp_sample(const struct fs_vcp_params *p, struct fs_vcp *s, __u64 queue_bytes)
{
	__u64 now = fs_min(queue_bytes, ~0U) << 16;

	if (now >= s->queue_q16)
		s->queue_q16 += fs_times(now - s->queue_q16, p->queue_weight_q32);
	else
		s->queue_q16 -= fs_min(fs_times(s->queue_q16 - now, p->queue_weight_q32), s->queue_q16);
}

/*
 * Eq. 1 and R.3, after `interval_ns` (deviation 1). The error of rho is 4 2^-29 of rho, plus 2^-32, plus (1 + rho)
 * times the ratio of 2^-15 bytes and k_q times q~'s error to the target, if the target is more than a byte. Input must
 * be below 2^47 bytes; 11 s of 100 Gb/s are 2^37.
 */
FS_LAW void fs_vcp_measure(const struct fs_vcp_params *p, struct fs_vcp *s, const struct fs_vcp_sums *sums, __u64 interval_ns)
{
	__u64 target_q16 = fs_mul_div(p->target_rate_q16, fs_max(interval_ns, 1), FS_NS_PER_S);
	__u64 demand_q16 = (fs_min(sums->input_bytes, (1ULL << 47) - 1) << 16) + fs_min(fs_times(s->queue_q16, p->k_q_q32), 1ULL << 62);

	s->load_q32 = demand_q16 ? fs_mul_div(demand_q16, 1ULL << 32, target_q16) : 0;
	s->code = s->load_q32 >= 1ULL << 32 ? FS_VCP_OVERLOAD : s->load_q32 >= FS_VCP_TRANSITION_Q32 ? FS_VCP_HIGH : FS_VCP_LOW;
}

/* R.4: exact. */
FS_LAW __u32 fs_vcp_raised(__u32 carried, __u32 own)
{
	return carried == FS_VCP_NONE || carried > own ? carried : own;
}

/* ------------------------------------------------------------------ the receiver */

/*
 * The echo after `echo` once `packets` more have arrived with this code (deviation 2). `t_rho_us` is the value in their
 * option, zero if they have passed no router. Exact.
 */
FS_LAW __u32 fs_vcp_echo(__u32 echo, __u32 code, __u32 packets, __u32 t_rho_us)
{
	__u32 shift = 8 * (FS_VCP_OVERLOAD - code), counts;

	if (t_rho_us == 0)
		return echo;
	if (code == FS_VCP_NONE || code > FS_VCP_OVERLOAD)
		/* A handshake packet sets only t_rho, and only while there are no counts. */
		return echo >> 24 ? echo : t_rho_us < FS_VCP_T_RHO_MAX_US ? t_rho_us : FS_VCP_T_RHO_MAX_US;
	counts = echo >> 24 ? echo & 0xffffff : 0;
	shift &= 31;
	counts = (counts & ~(0xffU << shift)) | (((counts >> shift) + packets) & 0xff) << shift;
	return code << 24 | counts;
}

/* Number of packets with this code between two echoes, modulo 256. */
FS_LAW __u32 fs_vcp_came(__u32 before, __u32 after, __u32 code)
{
	__u32 shift = 8 * (FS_VCP_OVERLOAD - code) & 31, was = before >> 24 ? before : 0, is = after >> 24 ? after : 0;

	return ((is >> shift) - (was >> shift)) & 0xff;
}

/*
 * Whether the echo `after` is newer than `before`, although acks may be reordered. Assumes that fewer than 128 packets
 * per code arrive between two echoes.
 */
FS_LAW bool fs_vcp_is_newer(__u32 before, __u32 after)
{
	if (after == before || !(after >> 24))
		return !before;
	return !((fs_vcp_came(before, after, FS_VCP_LOW) | fs_vcp_came(before, after, FS_VCP_HIGH) |
		  fs_vcp_came(before, after, FS_VCP_OVERLOAD)) & 0x80);
}

/* ------------------------------------------------------------------ the sender */

struct fs_vcp_sender_params {
	/* ln(1 + xi) */
	__u64 ln_growth_q40;
	/* weight alpha; at most 2^10 */
	__u64 alpha_q44;
	__u64 beta_q32;
};

struct fs_vcp_sender {
	__u64 window;
	/*
	 * The window stays constant until `frozen_until_us`. After that, every code counts as high load until `adds_until_us`.
	 */
	__u64 frozen_until_us;
	__u64 adds_until_us;
};

/* xi_s. Within 8 2^-29 of itself, and 2^-37. */
FS_LAW __u64 fs_vcp_growth_q40(const struct fs_vcp_sender_params *p, __u64 srtt_us, __u64 t_rho_us)
{
	__u64 z_q40 = fs_mul_div(p->ln_growth_q40, fs_min(2 * srtt_us, 5 * t_rho_us), 2 * t_rho_us), factor_q30 = 1 << 30;

	/* (e^z - 1) / z = 1 + z/2 (1 + z/3 (1 + ...)) */
	for (int n = FS_VCP_TERMS; n > 1; n--)
		factor_q30 = (1 << 30) + ((z_q40 >> 10) * factor_q30 >> 30) / (__u32)n;
	return fs_mul_div(z_q40, factor_q30, 1 << 30);
}

/* alpha_s / w, x = rtt / t_rho. Within 4 2^-29 of itself, and 2^-44 (1 + (1 + x) / w); alpha_s of 2^20 packets or more saturates. */
FS_LAW __u64 fs_vcp_addition_q44(const struct fs_vcp_sender_params *p, __u64 window, __u64 srtt_us, __u64 t_rho_us, __u32 packet_bytes)
{
	__u64 alpha = fs_mul_div(fs_mul_div(p->alpha_q44, srtt_us, t_rho_us), srtt_us, t_rho_us);

	return fs_min(fs_mul_div(alpha, (__u64)packet_bytes << FS_VCP_FRACTION_BITS, window), FS_VCP_TENTH_Q44);
}

/*
 * Updates the window for `packets` acked with `code`. `grows` is false while the application limits the flow or a loss
 * is being repaired. The error is the packets' bytes times the errors above, 2^-29 of the change, and 2^-20 byte.
 */
FS_LAW void fs_vcp_obey(const struct fs_vcp_sender_params *p, struct fs_vcp_sender *s, __u64 now_us, __u32 srtt_us, __u32 t_rho_us,
			__u32 code, __u32 packets, __u32 packet_bytes, bool grows)
{
	__u64 least = (__u64)packet_bytes << FS_VCP_FRACTION_BITS, step;

	if (packets == 0 || t_rho_us == 0 || now_us < s->frozen_until_us)
		return;
	if (now_us < s->adds_until_us)
		code = FS_VCP_HIGH;
	if (code == FS_VCP_OVERLOAD) {
		s->window = fs_max(fs_times(s->window, p->beta_q32), least);
		s->frozen_until_us = now_us + t_rho_us;
		s->adds_until_us = s->frozen_until_us + srtt_us;
		return;
	}
	if (!grows)
		return;
	if (code == FS_VCP_LOW)
		step = fs_mul_div(least * packets, fs_vcp_growth_q40(p, srtt_us, t_rho_us), 1ULL << 40);
	else
		step = fs_mul_div(least * packets, fs_vcp_addition_q44(p, s->window, srtt_us, t_rho_us, packet_bytes), 1ULL << 44);
	s->window = fs_min(s->window + fs_min(step, FS_VCP_WINDOW_MAX), FS_VCP_WINDOW_MAX);
}

/* The window after a loss or a retransmission timeout, as in TCP. Within 2^-20 byte. */
FS_LAW __u64 fs_vcp_lost(__u64 window, bool timeout, __u32 packet_bytes)
{
	return fs_max(timeout ? 0 : window / 2, (__u64)packet_bytes << FS_VCP_FRACTION_BITS);
}

#endif
