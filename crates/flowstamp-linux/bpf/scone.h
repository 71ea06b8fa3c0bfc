/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SCONE's signal, the mean of a law's rate, and monitoring of flows (draft-ietf-scone-protocol). No kernel types here, so the
 * tests compile the same text on the host: tests/scone_equality.rs.
 *
 * Deviations (the draft says / we do / because):
 * 1. A network element updates the datagrams of an address tuple only a few times in a period / the first FS_SCONE_FIRST of
 *    each period, and then one per FS_SCONE_APART_NS; lower advice starts again / the draft gives no number.
 * 2. Throughput / bytes of UDP payload / the draft does not say which bytes count, and these are the fewest.
 * 3. A period ends after 67 s / with the flow's first packet after 67 s, and its rate is over the time that has passed / no
 *    timer per flow is needed, and a longer period is never stricter.
 * 4. Monitoring uses the highest advice of two periods / and judges no flow in its first period / applications need time to
 *    adapt.
 */
#ifndef FLOWSTAMP_SCONE_H
#define FLOWSTAMP_SCONE_H

#include <stdbool.h>
#include <linux/types.h>

#define FS_SCONE_INLINE static inline __attribute__((always_inline))

#define FS_SCONE_VERSION 0x6f7dc0fdU
#define FS_SCONE_UNKNOWN 127
#define FS_SCONE_SIGNALS 127
/* Bytes of a packet with empty connection IDs. */
#define FS_SCONE_MIN_LEN 7
#define FS_SCONE_PERIOD_S 67
#define FS_SCONE_PERIOD_NS (FS_SCONE_PERIOD_S * 1000000000ULL)
#define FS_SCONE_FIRST 4
/* A little less than 15 s, for senders that send a SCONE packet every 5 s. */
#define FS_SCONE_APART_NS (14 * 1000000000ULL)
/* Samples of the law's rate per second. */
#define FS_SCONE_SAMPLES 10
/* Burst of a policed flow: this time at its rate, and at least the bytes of two large frames of segmentation offload. */
#define FS_SCONE_BURST_US 1000000ULL
#define FS_SCONE_LEAST_BURST 131072ULL

/* Rates of the signals in bits/s, rounded down: 10^(5 + n/20). That of FS_SCONE_UNKNOWN is the largest number. */
static const __u64 fs_scone_rates[FS_SCONE_SIGNALS + 1] = {
	100000ULL, 112201ULL, 125892ULL, 141253ULL, 158489ULL, 177827ULL, 199526ULL, 223872ULL, 251188ULL, 281838ULL,
	316227ULL, 354813ULL, 398107ULL, 446683ULL, 501187ULL, 562341ULL, 630957ULL, 707945ULL, 794328ULL, 891250ULL,
	1000000ULL, 1122018ULL, 1258925ULL, 1412537ULL, 1584893ULL, 1778279ULL, 1995262ULL, 2238721ULL, 2511886ULL,
	2818382ULL, 3162277ULL, 3548133ULL, 3981071ULL, 4466835ULL, 5011872ULL, 5623413ULL, 6309573ULL, 7079457ULL,
	7943282ULL, 8912509ULL, 10000000ULL, 11220184ULL, 12589254ULL, 14125375ULL, 15848931ULL, 17782794ULL, 19952623ULL,
	22387211ULL, 25118864ULL, 28183829ULL, 31622776ULL, 35481338ULL, 39810717ULL, 44668359ULL, 50118723ULL, 56234132ULL,
	63095734ULL, 70794578ULL, 79432823ULL, 89125093ULL, 100000000ULL, 112201845ULL, 125892541ULL, 141253754ULL,
	158489319ULL, 177827941ULL, 199526231ULL, 223872113ULL, 251188643ULL, 281838293ULL, 316227766ULL, 354813389ULL,
	398107170ULL, 446683592ULL, 501187233ULL, 562341325ULL, 630957344ULL, 707945784ULL, 794328234ULL, 891250938ULL,
	1000000000ULL, 1122018454ULL, 1258925411ULL, 1412537544ULL, 1584893192ULL, 1778279410ULL, 1995262314ULL,
	2238721138ULL, 2511886431ULL, 2818382931ULL, 3162277660ULL, 3548133892ULL, 3981071705ULL, 4466835921ULL,
	5011872336ULL, 5623413251ULL, 6309573444ULL, 7079457843ULL, 7943282347ULL, 8912509381ULL, 10000000000ULL,
	11220184543ULL, 12589254117ULL, 14125375446ULL, 15848931924ULL, 17782794100ULL, 19952623149ULL, 22387211385ULL,
	25118864315ULL, 28183829312ULL, 31622776601ULL, 35481338923ULL, 39810717055ULL, 44668359215ULL, 50118723362ULL,
	56234132519ULL, 63095734448ULL, 70794578438ULL, 79432823472ULL, 89125093813ULL, 100000000000ULL, 112201845430ULL,
	125892541179ULL, 141253754462ULL, 158489319246ULL, 177827941003ULL, 199526231496ULL, ~0ULL
};

/* The signal's rate in bits/s; the largest number if it is unknown. The mask gives the verifier a bound. */
FS_SCONE_INLINE __u64 fs_scone_rate(__u32 signal)
{
	return fs_scone_rates[signal & FS_SCONE_UNKNOWN];
}

/* The highest signal whose rate is at most `rate` bits/s. Below the scale it is the lowest signal. */
FS_SCONE_INLINE __u32 fs_scone_at_most(__u64 rate)
{
	__u32 low = 0;

	for (__u32 step = 64; step > 0; step /= 2)
		if (low + step < FS_SCONE_SIGNALS && fs_scone_rates[low + step] <= rate)
			low += step;
	return low;
}

/* Mean of a law's rate over the last period: sums of the samples of each second. */
struct fs_scone_mean {
	__u64 total;
	__u64 count;
	__u32 at;
	__u32 samples;
	__u64 sums[FS_SCONE_PERIOD_S];
	__u64 counts[FS_SCONE_PERIOD_S];
};

/* Adds a sample, and returns the mean. Before a period has passed, it is the mean of all samples. */
FS_SCONE_INLINE __u64 fs_scone_mean_of(struct fs_scone_mean *m, __u64 sample)
{
	__u32 at = m->at;

	if (m->samples >= FS_SCONE_SAMPLES) {
		at++;
		if (at >= FS_SCONE_PERIOD_S)
			at = 0;
		m->total -= m->sums[at];
		m->count -= m->counts[at];
		m->sums[at] = 0;
		m->counts[at] = 0;
		m->samples = 0;
		m->at = at;
	}
	if (at >= FS_SCONE_PERIOD_S)
		return sample;
	m->sums[at] += sample;
	m->counts[at]++;
	m->samples++;
	m->total += sample;
	m->count++;
	return m->total / m->count;
}

/* A flow, an address tuple with SCONE packets. Signals above 126 are no advice. */
struct fs_scone_flow {
	/* Hash of the tuple under a random key; zero if the place is free. */
	__u64 tag;
	/* Start of the current period, and the last packet. */
	__u64 since_ns;
	__u64 last_ns;
	/* Bytes of UDP payload in the current period. */
	__u64 bytes;
	/* When advice was last written, and the tokens of a policed flow. */
	__u64 written_ns;
	__u64 tokens;
	__u64 tokens_ns;
	/* Advice of the policy for this flow's addresses. */
	__u8 policy;
	/* The highest advice that applied in this period and in the one before. */
	__u8 most;
	__u8 most_before;
	/* The lowest advice written in this period, and the number of datagrams changed since it became that low. */
	__u8 written;
	__u8 writes;
	/* Whether a period has passed, and whether the flow was over its advice in the last one. */
	__u8 seasoned;
	__u8 over;
	__u8 reserved;
};

/* Results of fs_scone_count(). */
#define FS_SCONE_JUDGED 1
#define FS_SCONE_OVER 2
#define FS_SCONE_FIRST_OVER 4

FS_SCONE_INLINE void fs_scone_begin(struct fs_scone_flow *flow, __u64 tag, __u64 now, __u32 policy)
{
	struct fs_scone_flow fresh = {
		.tag = tag,
		.since_ns = now,
		.last_ns = now,
		.policy = policy,
		.written = FS_SCONE_UNKNOWN,
	};

	*flow = fresh;
}

/* The rate that a flow is held to, in bits/s: that of the highest advice of the last two periods. */
FS_SCONE_INLINE __u64 fs_scone_limit(const struct fs_scone_flow *flow)
{
	return fs_scone_rate(flow->most > flow->most_before ? flow->most : flow->most_before);
}

/* Whether `bytes` in `ns`, at least a period, are more than `rate` bits/s. */
FS_SCONE_INLINE bool fs_scone_exceeds(__u64 bytes, __u64 ns, __u64 rate)
{
	__u64 ms = ns / 1000000 + 1;

	/* A flow that was idle for hours; its product could overflow. */
	if (rate > 1000000000000ULL || ms > 10000000 || bytes > (1ULL << 50))
		return false;
	return bytes * 8000 > rate * ms;
}

/* Counts a packet of the flow, while `advice` applies. Ends the period if it is over. */
FS_SCONE_INLINE __u32 fs_scone_count(struct fs_scone_flow *flow, __u64 now, __u64 bytes, __u32 advice)
{
	__u64 passed = now - flow->since_ns;
	__u32 result = 0;

	if ((__s64)passed >= (__s64)FS_SCONE_PERIOD_NS) {
		bool over = false;

		if (flow->seasoned && fs_scone_limit(flow) != ~0ULL) {
			over = fs_scone_exceeds(flow->bytes, passed, fs_scone_limit(flow));
			result = FS_SCONE_JUDGED | (over ? FS_SCONE_OVER : 0) | (over && !flow->over ? FS_SCONE_FIRST_OVER : 0);
		}
		flow->over = over;
		flow->seasoned = 1;
		flow->most_before = flow->most;
		flow->most = advice;
		flow->since_ns = now;
		flow->bytes = 0;
		flow->written = FS_SCONE_UNKNOWN;
	}
	if (advice > flow->most)
		flow->most = advice;
	flow->bytes += bytes;
	flow->last_ns = now;
	return result;
}

/* Whether a datagram of the flow may be changed now to carry `advice`, which this notes. */
FS_SCONE_INLINE bool fs_scone_may_write(struct fs_scone_flow *flow, __u64 now, __u32 advice, __u32 first)
{
	if (advice < flow->written) {
		flow->written = advice;
		flow->writes = 0;
	}
	if (flow->writes >= first && now - flow->written_ns < FS_SCONE_APART_NS)
		return false;
	flow->written_ns = now;
	if (flow->writes < 255)
		flow->writes++;
	return true;
}

/* Whether a packet of a flow that ignores its advice may pass: a token bucket at `rate` bits/s. Tokens are millionths of a bit. */
FS_SCONE_INLINE bool fs_scone_admit(struct fs_scone_flow *flow, __u64 now, __u64 bytes, __u64 rate)
{
	__u64 passed_us = (now - flow->tokens_ns) / 1000, most = FS_SCONE_BURST_US * rate, cost = bytes * 8000000;

	if (most < FS_SCONE_LEAST_BURST * 8000000)
		most = FS_SCONE_LEAST_BURST * 8000000;
	/* After 11 s the bucket is full at any rate: a second's tokens, or the least burst at 100 kb/s. */
	if (!flow->tokens_ns || passed_us > 11 * FS_SCONE_BURST_US) {
		flow->tokens = most;
		flow->tokens_ns = now;
	} else {
		/* 2 * 10^11 bits/s times 1.1 * 10^7 us are below 2^61. */
		flow->tokens += rate * passed_us;
		if (flow->tokens > most)
			flow->tokens = most;
		/* Parts of a us stay for the next packet. */
		flow->tokens_ns += passed_us * 1000;
	}
	if (flow->tokens < cost)
		return false;
	flow->tokens -= cost;
	return true;
}

#endif
