/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Does a flow obey? Katabi 2002, section 7: send it a test feedback, and see what it does within a round trip.
 *
 *   WATCH   its rate over a round trip; a suspect that has not been tested for a while is tested: a heavy flow, and with
 *           RCP one that sends above what it was told by a quarter in this round trip or the one before
 *   HOLD    a round trip in which XCP gives it nothing more, so that what it was given before has come
 *   REFER   its rate over another, with nothing given: what it is then told to halve
 *   TELL    two round trips: one for the feedback to be everywhere in the path, one for what it had already sent, and the
 *           time that acks may be held back
 *   JUDGE   its rate over another; above 3/4 of what it was, it has failed, and is tested again at once
 *   ISOLATE from the second failure on, for a time; then it is watched again
 *
 * A flow that obeys sends at half its rate when judged; what separates it from 3/4 is for a shaper's and the acks' bursts.
 * One flow is tested at a time: many that halve at once would look like spare capacity to the router, and what it then gave
 * would be too much when the tests are over.
 *
 * A flow names its own round trip, and one that lies brings judgement on itself, early or late but in 2 s at most.
 */
#ifndef FLOWSTAMP_POLICE_H
#define FLOWSTAMP_POLICE_H

#include "laws.h"

#define FS_POLICE_MIN_ROUND_NS (10 * 1000 * 1000ULL)
#define FS_POLICE_MAX_ROUND_NS (2000 * 1000 * 1000ULL)
/* An ack may be held back this long, and packets queue on the way. */
#define FS_POLICE_GRACE_NS (50 * 1000 * 1000ULL)
#define FS_POLICE_FAILURES 2

enum fs_police_phase { FS_WATCH, FS_HOLD, FS_REFER, FS_TELL, FS_JUDGE, FS_ISOLATE };

struct fs_police_params {
	/* Flows below it are not tested, bytes/s. */
	__u64 heavy;
	/* From one test passed to the next, and how long a flow is isolated. */
	__u64 retest_ns;
	__u64 isolate_ns;
};

/* A packet, as it leaves. */
struct fs_police_view {
	__u64 now_ns;
	__u64 bytes;
	/* The round trip that its sender names; zero: it does not know. */
	__u64 rtt_us;
	/* RCP: the rate that it carries, bytes/s; XCP: zero. */
	__u64 told;
	/* No other flow is being tested. */
	__u64 free;
};

struct fs_police_flow {
	__u64 phase;
	__u64 since_ns;
	__u64 until_ns;
	__u64 bytes;
	/* Not tested before. */
	__u64 rest_until_ns;
	/* Its rate when it was told to halve, bytes/s; what it may have while isolated is half of it. */
	__u64 rate;
	__u64 round_ns;
	__u64 failures;
	/* RCP: the most that it was told in this round trip and the one before. */
	__u64 told;
	__u64 told_before;
	/* While it is isolated: what it may send at once, and when that was so. */
	__u64 tokens;
	__u64 tokens_ns;
	__u64 tests;
	__u64 isolations;
};

FS_LAW void fs_police_enter(struct fs_police_flow *f, __u64 phase, __u64 now, __u64 lasts_ns)
{
	f->phase = phase;
	f->since_ns = now;
	f->until_ns = now + lasts_ns;
	f->bytes = 0;
}

/* How long a test may take from its start to its judgement, and what it has left behind to its end. */
FS_LAW __u64 fs_police_test_ns(const struct fs_police_flow *f)
{
	return 12 * f->round_ns + 3 * FS_POLICE_GRACE_NS;
}

FS_LAW void fs_police_packet(const struct fs_police_params *p, struct fs_police_flow *f, const struct fs_police_view *v)
{
	__u64 now = v->now_ns, rate, told;

	if (v->rtt_us > 0)
		f->round_ns = fs_min(fs_max(v->rtt_us * 1000, FS_POLICE_MIN_ROUND_NS), FS_POLICE_MAX_ROUND_NS);
	if (f->round_ns == 0)
		return;
	f->told = fs_max(f->told, v->told);
	if (f->until_ns == 0)
		fs_police_enter(f, FS_WATCH, now, f->round_ns);
	if ((__s64)(now - f->until_ns) < 0) {
		f->bytes += v->bytes;
		return;
	}
	rate = fs_mul_div(f->bytes, FS_NS_PER_S, fs_max(now - f->since_ns, 1));
	told = fs_max(f->told, f->told_before);
	f->told_before = f->told;
	f->told = v->told;
	if (f->phase == FS_WATCH) {
		if (v->free && rate >= p->heavy && rate > told + told / 4 &&
		    (__s64)(now - f->rest_until_ns) >= 0) {
			fs_police_enter(f, FS_HOLD, now, f->round_ns + FS_POLICE_GRACE_NS);
		} else {
			fs_police_enter(f, FS_WATCH, now, f->round_ns);
		}
	} else if (f->phase == FS_HOLD) {
		fs_police_enter(f, FS_REFER, now, f->round_ns);
	} else if (f->phase == FS_REFER && rate >= p->heavy) {
		f->rate = rate;
		f->tests++;
		fs_police_enter(f, FS_TELL, now, 2 * f->round_ns + FS_POLICE_GRACE_NS);
	} else if (f->phase == FS_REFER) {
		fs_police_enter(f, FS_WATCH, now, f->round_ns);
	} else if (f->phase == FS_TELL) {
		fs_police_enter(f, FS_JUDGE, now, f->round_ns + FS_POLICE_GRACE_NS);
	} else if (f->phase == FS_JUDGE) {
		if (rate <= f->rate - f->rate / 4) {
			f->failures = 0;
			f->rest_until_ns = now + p->retest_ns;
			fs_police_enter(f, FS_WATCH, now, f->round_ns);
		} else if (++f->failures >= FS_POLICE_FAILURES) {
			f->isolations++;
			f->tokens = 0;
			f->tokens_ns = now;
			fs_police_enter(f, FS_ISOLATE, now, p->isolate_ns);
		} else {
			/* The rate that it now has counts, which may be above the one before. */
			fs_police_enter(f, FS_WATCH, now, f->round_ns);
		}
	} else {
		f->failures = 0;
		f->rest_until_ns = now;
		fs_police_enter(f, FS_WATCH, now, f->round_ns);
	}
	f->bytes += v->bytes;
}

/* The most that the flow is to be told, bytes/s; all ones when it is not being tested. */
FS_LAW __u64 fs_police_told(const struct fs_police_flow *f)
{
	return f->phase == FS_TELL || f->phase == FS_JUDGE ? f->rate / 2 : ~0ULL;
}

/*
 * The change that one of its packets, of `bytes`, is to carry at most, bytes/s: over a round trip, what it sends at `rate`
 * in one, the changes add up to half of it; else nothing is given while it is tested.
 */
FS_LAW __s64 fs_police_change(const struct fs_police_flow *f, __u64 now, __u64 bytes)
{
	if (f->phase == FS_TELL && now - f->since_ns < f->round_ns)
		return -(__s64)fs_min(fs_mul_div(bytes, FS_NS_PER_S / 2, f->round_ns) + 1, 0x7fffffff);
	return f->phase == FS_WATCH || f->phase == FS_ISOLATE ? 0x7fffffff : 0;
}

/* Whether an isolated flow's packet is within the rate that it was told to have; a token bucket of 100 ms. */
FS_LAW bool fs_police_admit(struct fs_police_flow *f, __u64 now, __u64 bytes)
{
	__u64 allowed = f->rate / 2, depth = fs_max(allowed / 10, 4 * 65536);

	f->tokens += fs_mul_div(fs_min(now - f->tokens_ns, FS_NS_PER_S), allowed, FS_NS_PER_S);
	f->tokens = fs_min(f->tokens, depth);
	f->tokens_ns = now;
	if (f->tokens < bytes)
		return false;
	f->tokens -= bytes;
	return true;
}

#endif
