/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XCP-b (Abrantes and Ricardo 2006) in fixed point for the kernel: xcp/blind.rs of crates/flowstamp-laws. Packets
 * receive their share of the aggregate feedback F as in XCP (laws.h). tests/xcpb_equality.rs compares it with the Rust
 * law, within the error bounds stated here.
 *
 *   F = -(alpha dq + beta (q - kappa)) s / d, at most chi Qmax / d            eqs. 6, 9, 13      the link is busy
 *   F = chi Qmax / d                                                         eq. 7              it is under-used:
 *       lambda < tau kappa,   lambda = w q + (1 - w) lambda                  eqs. 10 to 12
 *       or n intervals in a row without a queue                              eq. 9
 *   S = gamma y                                                              eq. 2              shuffled traffic
 *
 * Names carry the unit: _q16 and _q24 have that many fraction bits. "units" are packets or bytes, the unit of kappa.
 * Valid for queues below 4 GiB.
 *
 * Deviations (blind.rs says / here / because):
 * 1. d since the last decision / the time that has passed / timers are late.
 * 2. The queue in packets / in frames, times the packets per frame in the last interval with arrivals / a
 *    segmentation-offload frame of 64 KiB counts as one, and a queue with a target of 3 such frames would be long.
 * 3. The queue length is read when a packet arrives at the queue / just before the queueing discipline receives the
 *    packet / tc has no other hook.
 */
#ifndef FLOWSTAMP_XCPB_H
#define FLOWSTAMP_XCPB_H

#include "laws.h"

struct fs_xcp_b_params {
	/* kappa, units */
	__u64 kappa_q16;
	/* The law counts in packets, otherwise in bytes. */
	__u64 in_packets;
	/* chi Qmax, bytes */
	__u64 most_q16;
	/* n of the counter. Zero: the average decides, with w, 1 - w and tau kappa. */
	__u64 n;
	__u64 weight_q32;
	__u64 rest_q32;
	__u64 border_q24;
	/* Shuffles max(0, gamma y - |F|), as XCP. */
	__u64 shuffle_rest;
};

/* Sums over one interval, in addition to XCP's. */
struct fs_xcp_b_sums {
	__u64 frames;
	__u64 packets;
};

struct fs_xcp_b {
	/* q of the last decision, and the minimum since, in frames. XCP's state has them in bytes. */
	__u64 persistent_frames;
	__u64 min_frames;
	/* Packets per frame, and the mean packet size in bytes. */
	__u64 each_q16;
	__u64 mean_packet_q16;
	/* lambda, units */
	__u64 average_q24;
	/* Consecutive intervals without a queue. */
	__u64 empty;
	__u64 under_used;
};

/* `frames` as packets. Exact for frames of one packet, below 2^32 of them. */
FS_LAW __u64 fs_xcp_b_packets_q16(const struct fs_xcp_b *b, __u64 frames)
{
	return fs_mul_div(frames << 16, b->each_q16, 1 << 16);
}

/*
 * Decides `interval_ns` after the last decision, with `queue_bytes` queued in `queue_frames`.
 *
 * Error against blind.rs, u = 2^-29, sums equal, frames of one packet each, A = alpha |dq| and B = beta |q - kappa| in units, s = 1
 * where these are bytes, e the relative error of d:
 *   lambda: (1 - w) of what it was before, 2 u of itself and 2^-23 units; always below, so that the border is met as in blind.rs
 *   F: (A + B) s / d (6 u + e), (2^-14 s + 2^-15 (A + B) + 2^-14) / d and 2^-15 bytes/s; chi Qmax / d (2 u + e), (2^-16 bytes) / d
 *      and 2^-15 bytes/s; what is above 2^45 bytes/s saturates
 * and where lambda is within its error of the border, the other of the two may have been taken.
 */
FS_LAW void fs_xcp_b_decide(const struct fs_xcp_params *x, const struct fs_xcp_b_params *p, struct fs_xcp *s,
			    struct fs_xcp_b *b, const struct fs_xcp_sums *sums, const struct fs_xcp_b_sums *came,
			    __u64 interval_ns, __u64 queue_bytes, __u64 queue_frames)
{
	struct fs_xcp_closed closed = fs_xcp_close(x, s, sums, interval_ns);
	__u64 bytes = fs_min(s->min_queue_bytes, queue_bytes), frames = fs_min(b->min_frames, queue_frames);
	__u64 queue, before, by_speed, by_length, most, rise = 0, fall = 0, net;

	if (came->frames > 0)
		b->each_q16 = fs_mul_div(came->packets << 16, 1, came->frames);
	if (queue_frames > 0)
		b->mean_packet_q16 = fs_mul_div(queue_bytes << 16, 1 << 16, fs_xcp_b_packets_q16(b, queue_frames));
	else if (came->packets > 0)
		b->mean_packet_q16 = fs_mul_div(sums->input_bytes, 1 << 16, came->packets); /* blind.rs, deviation 2 */
	if (p->in_packets) {
		queue = fs_xcp_b_packets_q16(b, frames);
		before = fs_xcp_b_packets_q16(b, b->persistent_frames);
	} else {
		queue = bytes << 16;
		before = s->persistent_queue_bytes << 16;
	}
	queue = fs_min(queue, 1ULL << 48);
	before = fs_min(before, 1ULL << 48);
	if (p->n > 0) {
		b->empty = queue > 0 ? 0 : fs_min(b->empty + 1, p->n);
		b->under_used = b->empty >= p->n; /* eq. 9 */
	}
	b->average_q24 = fs_times(queue << 8, p->weight_q32) + fs_times(b->average_q24, p->rest_q32); /* eq. 10 */
	if (p->n == 0)
		b->under_used = b->average_q24 < p->border_q24; /* eq. 11 */
	/* eqs. 9 and 13 */
	by_speed = fs_times(queue > before ? queue - before : before - queue, x->alpha_q32);
	by_length = fs_times(queue > p->kappa_q16 ? queue - p->kappa_q16 : p->kappa_q16 - queue, x->beta_q32);
	rise = (queue < before ? by_speed : 0) + (queue < p->kappa_q16 ? by_length : 0);
	fall = by_speed + by_length - rise;
	net = rise > fall ? rise - fall : fall - rise;
	if (p->in_packets)
		net = fs_mul_div(net, b->mean_packet_q16, 1 << 16);
	net = fs_min(fs_mul_div(net, FS_NS_PER_S << 8, closed.delay_q8), 1ULL << 61);
	most = fs_mul_div(p->most_q16, FS_NS_PER_S << 8, closed.delay_q8); /* eq. 7 */
	most = fs_min(most, 1ULL << 61);
	if (b->under_used) {
		rise = most;
		fall = 0;
	} else if (rise > fall) {
		rise = fs_min(net, most); /* blind.rs, deviation 1 */
		fall = 0;
	} else {
		rise = 0;
		fall = net;
	}
	s->persistent_queue_bytes = bytes;
	b->persistent_frames = frames;
	s->min_queue_bytes = queue_bytes;
	b->min_frames = queue_frames;
	fs_xcp_hand_out(x, s, sums, &closed, p->shuffle_rest, rise, fall);
}

#endif
