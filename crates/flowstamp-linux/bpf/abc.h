/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ABC's router (Goyal and others 2020) in fixed point for the kernel: abc/router.rs of crates/flowstamp-laws.
 * tests/abc_equality.rs compares each function with the Rust law, within the error bound stated at it.
 *
 *   cr    = cr + min(1, t / (T/2)) (bytes that left in t / t - cr)    every interval t
 *   tr    = eta mu - max(0, queue - mu d_t) / delta                   eq. 1
 *   f     = min(1, tr / (2 cr))                                       eq. 2
 *   token = min(token + f, token_limit) for each accelerate; above 1 it stays one and takes a token     alg. 1
 *
 * Names carry the unit: _q16 has 16 fraction bits, rates are in bytes/s, times in ns. Valid for links of 100 kb/s to
 * 100 Gb/s, and times from 1 us to 20 s.
 *
 * Deviations (the Rust law says / here / because):
 * 1. f is that of each departure / of the last interval / a timer reads the queue, and the program runs before it.
 * 2. The marks are those of packets that leave / of packets that enter the queue / tc has no hook behind it. A mark is
 *    therefore older by the queueing delay.
 * 3. Bytes that left follow from departures / from bytes that came and the queue's change, at most what the capacity
 *    allows / bytes of dropped packets are not known.
 * 4. Each packet of an ABC flow adds f / each accelerate does / brakes cannot be told from packets of ECN's other users.
 * 5. A packet takes a token / a segmentation-offload frame takes one for each packet that it becomes, all with its mark,
 *    and may leave a debt / its bits are copied into each.
 */
#ifndef FLOWSTAMP_ABC_H
#define FLOWSTAMP_ABC_H

#include "fixed.h"

/* ABC's marks in the ECN bits: ECT(1) and ECT(0). */
#define FS_ABC_ACCELERATE 1
#define FS_ABC_BRAKE 2
/* A token. */
#define FS_ABC_TOKEN (1LL << 16)

struct fs_abc_params {
	/* mu, and eta mu */
	__u64 capacity_q16;
	__u64 target_q16;
	/* mu d_t */
	__u64 tolerated_bytes;
	__u64 delta_ns;
	/* T / 2 */
	__u64 mean_age_ns;
	__u64 interval_ns;
	__u64 token_limit_q16;
};

/* Sums over the packets of one interval. */
struct fs_abc_sums {
	__u64 input_bytes;
};

struct fs_abc {
	/* cr */
	__u64 dequeue_q16;
	/* f */
	__u64 share_q16;
	/* The queue at the end of the last interval. */
	__u64 queue_bytes;
	__s64 tokens_q16;
};

/*
 * The bytes that left in an interval (deviation 3). Within 2^-29 of the capacity's bytes, and a byte. Input and queue must
 * be below 2^47 bytes.
 */
FS_LAW __u64 fs_abc_left(const struct fs_abc_params *p, const struct fs_abc *s, __u64 input_bytes, __u64 interval_ns, __u64 queue_bytes)
{
	__u64 there = s->queue_bytes + input_bytes, most = fs_mul_div(p->capacity_q16, interval_ns, FS_NS_PER_S) >> 16;

	return fs_min(there > queue_bytes ? there - queue_bytes : 0, most);
}

/* cr after `bytes` left in an interval. Within 4 2^-29 of the larger of both rates, and 2^-15 bytes/s. */
FS_LAW __u64 fs_abc_dequeue_q16(const struct fs_abc_params *p, __u64 dequeue_q16, __u64 bytes, __u64 interval_ns)
{
	__u64 rate_q16 = fs_rate_q16(bytes, interval_ns);
	__u64 weight_q32 = interval_ns >= p->mean_age_ns ? 1ULL << 32 : fs_mul_div(interval_ns, 1ULL << 32, p->mean_age_ns);

	if (rate_q16 >= dequeue_q16)
		return dequeue_q16 + fs_times(rate_q16 - dequeue_q16, weight_q32);
	return dequeue_q16 - fs_min(fs_times(dequeue_q16 - rate_q16, weight_q32), dequeue_q16);
}

/* f, from eq. 1 and 2. Within 2^-15, and 4 2^-29 of eta mu and of what the queue takes from it, over 2 cr. */
FS_LAW __u64 fs_abc_share_q16(const struct fs_abc_params *p, __u64 dequeue_q16, __u64 queue_bytes)
{
	__u64 excess = queue_bytes > p->tolerated_bytes ? fs_min(queue_bytes - p->tolerated_bytes, (1ULL << 47) - 1) : 0;
	__u64 drain_q16 = fs_mul_div(excess << 16, FS_NS_PER_S, p->delta_ns);

	if (drain_q16 >= p->target_q16)
		return 0;
	return dequeue_q16 ? fs_min(fs_mul_div(p->target_q16 - drain_q16, 1 << 15, dequeue_q16), 1 << 16) : 1 << 16;
}

/* Ends an interval. */
FS_LAW void fs_abc_measure(const struct fs_abc_params *p, struct fs_abc *s, const struct fs_abc_sums *sums, __u64 interval_ns,
			   __u64 queue_bytes)
{
	__u64 interval = fs_max(interval_ns, 1), left = fs_abc_left(p, s, sums->input_bytes, interval, queue_bytes);

	s->dequeue_q16 = fs_abc_dequeue_q16(p, s->dequeue_q16, left, interval);
	s->share_q16 = fs_abc_share_q16(p, s->dequeue_q16, queue_bytes);
	s->queue_bytes = queue_bytes;
}

/* Whether an accelerate stays one; `packets` is what the frame becomes (alg. 1). Exact. */
FS_LAW bool fs_abc_stays(__s64 *tokens_q16, __u64 token_limit_q16, __u64 share_q16, __u32 packets)
{
	__s64 tokens = *tokens_q16 + (__s64)(share_q16 * packets);
	bool stays;

	if (tokens > (__s64)token_limit_q16)
		tokens = token_limit_q16;
	stays = tokens > FS_ABC_TOKEN;
	if (stays)
		tokens -= FS_ABC_TOKEN * packets;
	*tokens_q16 = tokens;
	return stays;
}

#endif
