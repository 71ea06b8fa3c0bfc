/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whether a flow obeys, Katabi 2002, section 7: share/police.rs in fixed point, where phases, limits and deviations are told.
 * tests/police_equality.rs holds it against that law, for rates of 1 kB/s to 100 Gb/s.
 *
 * A flow's rate is within 2^-29 of itself and 1 byte/s; what is decided by rates that close to a limit may be decided the
 * other way. Times and counts are exact.
 */
#ifndef FLOWSTAMP_POLICE_H
#define FLOWSTAMP_POLICE_H

#include "laws.h"

#define FS_POLICE_MIN_ROUND_NS (10 * 1000 * 1000ULL)
#define FS_POLICE_MAX_ROUND_NS (2000 * 1000 * 1000ULL)
/* T where none was named. */
#define FS_POLICE_UNKNOWN_ROUND_NS FS_NS_PER_S
/* An ack may be held back this long, and packets queue on the way. */
#define FS_POLICE_GRACE_NS (50 * 1000 * 1000ULL)
#define FS_POLICE_FAILURES 2

enum fs_police_phase { FS_WATCH, FS_HOLD, FS_REFER, FS_TELL, FS_JUDGE, FS_ISOLATE };

struct fs_police_params {
	/* bytes/s */
	__u64 heavy;
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
	/* Not too many flows of its source are being tested. */
	__u64 free;
};

struct fs_police_flow {
	__u64 phase;
	__u64 since_ns;
	__u64 until_ns;
	__u64 bytes;
	__u64 rest_until_ns;
	/* r_0, bytes/s */
	__u64 rate;
	__u64 round_ns;
	/* The longest round trip that was named since the last watch began, and in the one before; zero: none. */
	__u64 named_ns;
	__u64 named_before_ns;
	__u64 failures;
	/* bytes/s */
	__u64 told;
	__u64 told_before;
	/* bytes, 16 fraction bits: packets may come more often than bytes are due */
	__u64 tokens_q16;
	__u64 tokens_ns;
	__u64 tests;
	__u64 isolations;
	/* Packets that isolation held back. */
	__u64 held;
};

FS_LAW void fs_police_enter(struct fs_police_flow *f, __u64 phase, __u64 now, __u64 lasts_ns)
{
	f->phase = phase;
	f->since_ns = now;
	f->until_ns = now + lasts_ns;
	f->bytes = 0;
}

/* A watch begins, and with it another T. */
FS_LAW void fs_police_watch(struct fs_police_flow *f, __u64 now)
{
	__u64 named = fs_max(f->named_ns, f->named_before_ns);

	f->round_ns = named ? named : FS_POLICE_UNKNOWN_ROUND_NS;
	f->named_before_ns = f->named_ns;
	f->named_ns = 0;
	fs_police_enter(f, FS_WATCH, now, f->round_ns);
}

/* How long a test that now begins may take, and what it leaves behind. Exact. */
FS_LAW __u64 fs_police_test_ns(const struct fs_police_flow *f)
{
	return 12 * f->round_ns + 3 * FS_POLICE_GRACE_NS;
}

FS_LAW void fs_police_packet(const struct fs_police_params *p, struct fs_police_flow *f, const struct fs_police_view *v)
{
	__u64 now = v->now_ns, rate, told, named = v->rtt_us * 1000;
	/* What a watch of an unknown flow would wait for has come. */
	bool begins = f->until_ns == 0 ||
		      (named > 0 && f->phase == FS_WATCH && (f->named_ns | f->named_before_ns) == 0);

	if (named > 0) {
		named = fs_min(fs_max(named, FS_POLICE_MIN_ROUND_NS), FS_POLICE_MAX_ROUND_NS);
		f->named_ns = fs_max(f->named_ns, named);
	}
	f->told = fs_max(f->told, v->told);
	if (begins)
		fs_police_watch(f, now);
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
			fs_police_watch(f, now);
		}
	} else if (f->phase == FS_HOLD) {
		fs_police_enter(f, FS_REFER, now, f->round_ns);
	} else if (f->phase == FS_REFER && rate >= p->heavy) {
		f->rate = rate;
		f->tests++;
		fs_police_enter(f, FS_TELL, now, 2 * f->round_ns + FS_POLICE_GRACE_NS);
	} else if (f->phase == FS_REFER) {
		fs_police_watch(f, now);
	} else if (f->phase == FS_TELL) {
		fs_police_enter(f, FS_JUDGE, now, f->round_ns + FS_POLICE_GRACE_NS);
	} else if (f->phase == FS_JUDGE) {
		if (rate <= f->rate - f->rate / 4) {
			f->failures = 0;
			f->rest_until_ns = now + p->retest_ns;
			fs_police_watch(f, now);
		} else if (++f->failures >= FS_POLICE_FAILURES) {
			f->isolations++;
			f->tokens_q16 = 0;
			f->tokens_ns = now;
			fs_police_enter(f, FS_ISOLATE, now, p->isolate_ns);
		} else {
			fs_police_watch(f, now);
		}
	} else {
		f->failures = 0;
		f->rest_until_ns = now;
		fs_police_watch(f, now);
	}
	f->bytes += v->bytes;
}

/* The most that the flow is to be told, bytes/s; all ones when it is not being tested. Off by the rate's error and 1. */
FS_LAW __u64 fs_police_told(const struct fs_police_flow *f)
{
	return f->phase == FS_TELL || f->phase == FS_JUDGE ? f->rate / 2 : ~0ULL;
}

/*
 * The change that one of its packets, of `bytes`, is to carry at most, bytes/s; the largest when it is not being tested.
 * Within 2^-29 of itself and 1, towards less.
 */
FS_LAW __s64 fs_police_change(const struct fs_police_flow *f, __u64 now, __u64 bytes)
{
	if (f->phase == FS_WATCH || f->phase == FS_ISOLATE)
		return 0x7fffffff;
	if (f->phase == FS_TELL && now - f->since_ns < f->round_ns)
		return -(__s64)fs_min(fs_mul_div(bytes, FS_NS_PER_S / 2, f->round_ns) + 1, 0x7fffffff);
	return 0;
}

/*
 * Whether an isolated flow's packet is within half of r_0; a token bucket of 100 ms.
 * A packet adds an error of 2^-16 bytes, and that of the rate in the time since the one before.
 */
FS_LAW bool fs_police_admit(struct fs_police_flow *f, __u64 now, __u64 bytes)
{
	__u64 allowed = f->rate / 2, depth = fs_max(allowed / 10, 4 * 65536);

	f->tokens_q16 += fs_mul_div(fs_min(now - f->tokens_ns, FS_NS_PER_S), allowed << 16, FS_NS_PER_S);
	f->tokens_q16 = fs_min(f->tokens_q16, depth << 16);
	f->tokens_ns = now;
	if (f->tokens_q16 < bytes << 16)
		return false;
	f->tokens_q16 -= bytes << 16;
	return true;
}

#endif
