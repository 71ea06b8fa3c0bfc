/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tests whether a flow follows its law, Katabi 2002, section 7: share/police.rs in fixed point. That file describes
 * phases, limits and deviations. tests/police_equality.rs compares both for rates of 1 kB/s to 100 Gb/s.
 *
 * A flow's rate is within 2^-29 of itself and 1 byte/s. A decision on a rate that close to a limit may differ from the
 * Rust law's. Times and counts are exact.
 */
#ifndef FLOWSTAMP_POLICE_H
#define FLOWSTAMP_POLICE_H

#include "laws.h"

#define FS_POLICE_MIN_ROUND_NS (10 * 1000 * 1000ULL)
#define FS_POLICE_MAX_ROUND_NS (2000 * 1000 * 1000ULL)
/* The round trip T if packets carry no RTT. */
#define FS_POLICE_UNKNOWN_ROUND_NS FS_NS_PER_S
/* Allowance for delayed acks and queueing on the path. */
#define FS_POLICE_GRACE_NS (50 * 1000 * 1000ULL)
/* A pass needs a rate over at least this time. */
#define FS_POLICE_MEASURE_NS (200 * 1000 * 1000ULL)
/* A flow with less in flight, two packets of 1500 bytes, cannot halve its window. */
#define FS_POLICE_MIN_WINDOW_BYTES 3000
/* Failures on record that isolate a flow. A full credit removes one. */
#define FS_POLICE_FAILURES 2
/*
 * Credit that proves that a flow follows its law. A pass gives all of it if the link dropped no packets during the
 * test, or half to a marked flow. A pass with drops gives 1, as does an RCP watch at the rate that the flow was told. A
 * void test removes FS_POLICE_VOID.
 */
#define FS_POLICE_PROOF 4
#define FS_POLICE_VOID 2
/* The rate limit of an isolated flow starts at no more than this many times `heavy`. */
#define FS_POLICE_MOST_HEAVY 2
/*
 * The link's drops are checked once per period. The link is congested after this many consecutive periods with drops.
 */
#define FS_POLICE_PERIOD_NS FS_NS_PER_S
#define FS_POLICE_TROUBLED 2
/*
 * A flow's packets weigh at most this many quarters of a flow. An RTT counts as at most this many times the longest RTT
 * of proven flows.
 */
#define FS_POLICE_MOST_QUARTERS 5
#define FS_POLICE_MOST_RTT 4
/* RTTs of proven flows are kept for one to two times this many retest times. */
#define FS_POLICE_MEMORY 2

enum fs_police_phase { FS_WATCH, FS_HOLD, FS_REFER, FS_TELL, FS_JUDGE, FS_ISOLATE };

struct fs_police_params {
	/* bytes/s */
	__u64 heavy;
	__u64 retest_ns;
	__u64 isolate_ns;
};

/* A packet at departure. */
struct fs_police_view {
	__u64 now_ns;
	__u64 bytes;
	/* The RTT that its sender reports; zero if unknown. */
	__u64 rtt_us;
	/* RCP: the rate that it carries, in bytes/s. XCP: zero. */
	__u64 told;
	/* Its source has a free test. */
	__u64 free;
	/* Number of packets that the link has dropped so far. */
	__u64 drops;
};

/* State of the link: whether it drops packets persistently, and the RTTs that proven flows have reported. */
struct fs_police_link {
	__u64 since_ns;
	__u64 seen;
	/* Periods with drops: the current consecutive ones, and the total. */
	__u64 row;
	__u64 all;
	__u64 longest_ns;
	__u64 before_ns;
	__u64 until_ns;
};

struct fs_police_flow {
	__u64 phase;
	__u64 since_ns;
	__u64 until_ns;
	__u64 bytes;
	__u64 rest_until_ns;
	/* r_0 */
	__u64 rate;
	/*
	 * The rate before the test, in bytes/s: Refer's, or Watch's if that is lower and T is below 200 ms. After an unclear
	 * verdict it is the rate that was judged.
	 */
	__u64 before;
	__u64 round_ns;
	/* The longest RTT reported since the last watch began, and during the one before; zero if none. */
	__u64 named_ns;
	__u64 named_before_ns;
	/* The rate in the last completed T, in bytes/s; when the running T began, and the bytes that arrived in it. */
	__u64 last_rate;
	__u64 last_ns;
	__u64 last_bytes;
	/* The RTT that it reported when last proven; zero if it was never proven, or has failed since. */
	__u64 passed_ns;
	/*
	 * The flow keeps its rate limit until its next tests: isolation has ended, or the unproven flow sent more than `heavy`
	 * while that was its limit.
	 */
	__u64 probation;
	__u64 credit;
	/* The link's drops when the test began, and this flow's held-back packets when its judgement began. */
	__u64 test_drops;
	__u64 judge_held;
	/*
	 * The flow is limited to `heavy` until it is proven. Since it was last proven, packets of it were held back, void tests
	 * on a link that dropped packets used up its credit, or its window was too small to halve.
	 */
	__u64 marked;
	/* Rate limit while isolated, in bytes/s; zero if there is none yet. */
	__u64 allowed;
	/* Number of link periods with drops for which its limit was reduced. */
	__u64 eased;
	__u64 failures;
	/* bytes/s */
	__u64 told;
	__u64 told_before;
	/* Tokens in bytes with 16 fraction bits, because packets may arrive faster than whole bytes accrue. */
	__u64 tokens_q16;
	__u64 tokens_ns;
	/* The largest packet that has asked for tokens. */
	__u64 largest;
	__u64 tests;
	__u64 isolations;
	/* Number of packets that isolation has held back. */
	__u64 held;
};

FS_LAW void fs_police_enter(struct fs_police_flow *f, __u64 phase, __u64 now, __u64 lasts_ns)
{
	f->phase = phase;
	f->since_ns = now;
	f->until_ns = now + lasts_ns;
	f->bytes = 0;
}

/* Starts a watch and updates T. */
FS_LAW void fs_police_watch(struct fs_police_flow *f, __u64 now)
{
	__u64 named = fs_max(f->named_ns, f->named_before_ns);

	f->round_ns = FS_POLICE_UNKNOWN_ROUND_NS;
	if (named)
		f->round_ns = fs_min(fs_max(named, FS_POLICE_MIN_ROUND_NS), FS_POLICE_MAX_ROUND_NS);
	f->named_before_ns = f->named_ns;
	f->named_ns = 0;
	fs_police_enter(f, FS_WATCH, now,
			f->probation ? FS_POLICE_MAX_ROUND_NS : fs_max(f->round_ns, FS_POLICE_MEASURE_NS));
}

/* Usual duration of a test that starts now, including its aftereffects. Unclear verdicts prolong a test. Exact. */
FS_LAW __u64 fs_police_test_ns(const struct fs_police_flow *f)
{
	return 12 * f->round_ns + 6 * FS_POLICE_GRACE_NS + 2 * FS_POLICE_MEASURE_NS;
}

/* Updates the link's state: it has dropped `drops` packets in total. Exact. */
FS_LAW void fs_police_look(struct fs_police_link *l, __u64 now, __u64 drops)
{
	if (now - l->since_ns < FS_POLICE_PERIOD_NS)
		return;
	if (drops != l->seen) {
		l->row++;
		l->all++;
	} else {
		l->row = 0;
	}
	l->seen = drops;
	l->since_ns = now;
}

/* Records the RTT that a proven flow has reported. Exact. */
FS_LAW void fs_police_witness(const struct fs_police_params *p, struct fs_police_link *l, __u64 now, __u64 rtt_ns)
{
	if (now >= l->until_ns) {
		l->before_ns = l->longest_ns;
		l->longest_ns = 0;
		l->until_ns = now + FS_POLICE_MEMORY * p->retest_ns;
	}
	l->longest_ns = fs_max(l->longest_ns, rtt_ns);
}

FS_LAW bool fs_police_isolated(const struct fs_police_flow *f)
{
	return f->phase == FS_ISOLATE || f->probation;
}

FS_LAW bool fs_police_proven(const struct fs_police_flow *f)
{
	return f->credit >= FS_POLICE_PROOF;
}

/* Adds credit to a flow. Enough credit cancels failures and proves the flow. */
FS_LAW void fs_police_credit(struct fs_police_flow *f, __u64 credit)
{
	f->credit = fs_min(f->credit + credit, FS_POLICE_PROOF);
	if (f->credit < FS_POLICE_PROOF)
		return;
	if (f->failures) {
		f->failures--;
		f->credit = 0;
		return;
	}
	f->probation = 0;
	f->marked = 0;
	f->allowed = 0;
	f->passed_ns = fs_min(fs_max(f->named_ns, f->named_before_ns), FS_POLICE_MAX_ROUND_NS);
}

/* Starts a test: the flow is told to halve `rate`. */
FS_LAW void fs_police_tell(struct fs_police_flow *f, __u64 now, __u64 rate)
{
	f->rate = rate;
	f->tests++;
	fs_police_enter(f, FS_TELL, now, 2 * f->round_ns + FS_POLICE_GRACE_NS);
}

FS_LAW void fs_police_isolate(const struct fs_police_params *p, struct fs_police_flow *f, __u64 now)
{
	f->isolations++;
	f->failures = FS_POLICE_FAILURES;
	f->allowed = (f->allowed ? fs_min(f->allowed, f->rate) : f->rate) / 2;
	f->allowed = fs_min(fs_max(f->allowed, fs_max(p->heavy / 8, 1)), FS_POLICE_MOST_HEAVY * p->heavy);
	f->tokens_q16 = 0;
	f->tokens_ns = now;
	fs_police_enter(f, FS_ISOLATE, now, p->isolate_ns);
}

/* Ends a test. A flow that is not proven is tested again soon. */
FS_LAW void fs_police_rest(const struct fs_police_params *p, struct fs_police_flow *f, __u64 now)
{
	f->rest_until_ns = now + (fs_police_proven(f) ? p->retest_ns : p->retest_ns / 4);
	fs_police_watch(f, now);
}

/* Records that the flow did not halve its rate. */
FS_LAW void fs_police_fail(const struct fs_police_params *p, struct fs_police_flow *f, const struct fs_police_view *v,
			   __u64 rate)
{
	__u64 named = fs_max(f->named_ns, f->named_before_ns);

	if (named && fs_mul_div(rate, named, FS_NS_PER_S) < FS_POLICE_MIN_WINDOW_BYTES) {
		f->credit -= fs_min(f->credit, FS_POLICE_VOID);
		f->marked = 1;
		fs_police_rest(p, f, v->now_ns);
		return;
	}
	f->credit = 0;
	f->passed_ns = 0;
	if (++f->failures >= FS_POLICE_FAILURES) {
		fs_police_isolate(p, f, v->now_ns);
	} else {
		f->test_drops = v->drops;
		fs_police_tell(f, v->now_ns, rate);
	}
}

/*
 * Judges the test. The flow counts as heavy from `least` bytes/s. A flow that is now below 3/4 of that is not tested
 * further, even if its verdict is unclear.
 */
FS_LAW void fs_police_judge(const struct fs_police_params *p, struct fs_police_flow *f, const struct fs_police_view *v,
			    __u64 rate, __u64 least)
{
	if (rate > f->rate - f->rate / 4) {
		fs_police_fail(p, f, v, rate);
		return;
	}
	if (v->now_ns - f->since_ns < FS_POLICE_MEASURE_NS) {
		f->until_ns = f->since_ns + FS_POLICE_MEASURE_NS;
		return;
	}
	if (rate > f->before - f->before / 4 && rate >= least - least / 4) {
		f->test_drops = v->drops;
		f->before = rate;
		fs_police_tell(f, v->now_ns, rate);
		return;
	}
	if (rate >= f->rate / 4 && f->held == f->judge_held) {
		__u64 clean = f->marked ? FS_POLICE_PROOF / 2 : FS_POLICE_PROOF;

		fs_police_credit(f, v->drops == f->test_drops ? clean : 1);
	} else {
		f->credit -= fs_min(f->credit, FS_POLICE_VOID);
		f->marked |= f->credit == 0 && v->drops != f->test_drops;
	}
	fs_police_rest(p, f, v->now_ns);
}

/* Ends the phase. `told` is the highest rate that the flow was told, in bytes/s. */
FS_LAW void fs_police_advance(const struct fs_police_params *p, struct fs_police_flow *f,
			      const struct fs_police_view *v, __u64 rate, __u64 told)
{
	__u64 now = v->now_ns;
	/* A marked flow is told to stay below `heavy`, so its threshold is half of that. */
	__u64 least = p->heavy >> (f->marked ? 1 : 0);

	if (f->phase == FS_WATCH) {
		bool heavy = rate >= least, suspect = heavy && (f->probation || rate > told + told / 4);

		if (suspect && v->free && (f->probation || (__s64)(now - f->rest_until_ns) >= 0)) {
			f->test_drops = v->drops;
			f->before = f->round_ns < FS_POLICE_MEASURE_NS ? rate : ~0ULL;
			fs_police_enter(f, FS_HOLD, now, f->round_ns + FS_POLICE_GRACE_NS);
			return;
		}
		if (heavy && told > 0 && !suspect && !f->probation)
			fs_police_credit(f, 1);
		if (f->probation && !suspect) {
			f->probation = 0;
			f->failures = fs_min(f->failures, FS_POLICE_FAILURES - 1);
		}
		fs_police_watch(f, now);
	} else if (f->phase == FS_HOLD) {
		f->rate = rate;
		fs_police_enter(f, FS_REFER, now, f->round_ns + FS_POLICE_GRACE_NS);
	} else if (f->phase == FS_REFER) {
		f->before = fs_min(f->before, rate);
		rate = fs_max(rate, f->rate);
		if (rate >= least)
			fs_police_tell(f, now, rate);
		else
			fs_police_watch(f, now);
	} else if (f->phase == FS_TELL) {
		f->judge_held = f->held;
		fs_police_enter(f, FS_JUDGE, now, f->round_ns + FS_POLICE_GRACE_NS);
	} else if (f->phase == FS_JUDGE) {
		fs_police_judge(p, f, v, rate, least);
	} else {
		f->probation = 1;
		fs_police_watch(f, now);
	}
}

/* Adds a packet to the flow's rates in this phase and over T. */
FS_LAW void fs_police_count(struct fs_police_flow *f, __u64 now, __u64 bytes)
{
	__u64 passed = now - f->last_ns;

	if (passed >= f->round_ns) {
		f->last_rate = fs_mul_div(f->last_bytes, FS_NS_PER_S, passed);
		f->last_ns = now;
		f->last_bytes = 0;
	}
	f->bytes += bytes;
	f->last_bytes += bytes;
}

FS_LAW void fs_police_packet(const struct fs_police_params *p, struct fs_police_flow *f, const struct fs_police_view *v)
{
	__u64 now = v->now_ns, rate, told, named = v->rtt_us * 1000;
	/* Also starts a watch when an unknown flow first reports an RTT. */
	bool begins = f->until_ns == 0 ||
		      (named > 0 && f->phase == FS_WATCH && (f->named_ns | f->named_before_ns) == 0);

	f->named_ns = fs_max(f->named_ns, named);
	f->told = fs_max(f->told, v->told);
	if (begins)
		fs_police_watch(f, now);
	if ((__s64)(now - f->until_ns) >= 0) {
		rate = fs_mul_div(f->bytes, FS_NS_PER_S, fs_max(now - f->since_ns, 1));
		told = fs_max(f->told, f->told_before);
		f->told_before = f->told;
		f->told = v->told;
		fs_police_advance(p, f, v, rate, told);
	}
	fs_police_count(f, now, v->bytes);
}

/*
 * Depth of the token bucket for a rate limit of `allowed` bytes/s: 100 ms, or 20 ms for a flow with two failures on
 * record. It is at least two of the flow's largest packets.
 */
FS_LAW __u64 fs_police_depth(const struct fs_police_flow *f, __u64 allowed)
{
	return fs_max(allowed / (f->failures < FS_POLICE_FAILURES ? 10 : 50), 2 * f->largest);
}

/* Whether the flow must stay within `heavy`. */
FS_LAW bool fs_police_bound(const struct fs_police_flow *f)
{
	return f->marked && !fs_police_isolated(f);
}

/*
 * Upper limit on the rate that the flow is told, in bytes/s; all ones if it is not being tested. Off by the rate's
 * error and 1.
 */
FS_LAW __u64 fs_police_told(const struct fs_police_params *p, const struct fs_police_flow *f)
{
	__u64 most = f->phase == FS_TELL || f->phase == FS_JUDGE ? f->rate / 2 : ~0ULL;

	return fs_police_bound(f) ? fs_min(most, p->heavy) : most;
}

/*
 * Upper limit on the change that one of its packets, of `bytes`, may carry, in bytes/s; the largest value if it is not
 * being tested. Within 2^-29 of itself and 1, rounded down.
 */
FS_LAW __s64 fs_police_change(const struct fs_police_params *p, const struct fs_police_flow *f, __u64 now, __u64 bytes)
{
	/* This packet's share of half of the rate, down or up. */
	__u64 half = fs_min(fs_mul_div(bytes, FS_NS_PER_S / 2, f->round_ns), 0x7ffffffe);

	if (f->phase == FS_WATCH && !f->probation) {
		if (!fs_police_bound(f))
			return 0x7fffffff;
		return f->tokens_q16 < fs_police_depth(f, p->heavy) << 15 ? 0 : (__s64)half;
	}
	if (f->phase == FS_TELL && now - f->since_ns < f->round_ns)
		return -(__s64)(half + 1);
	return 0;
}

/* Takes a packet's tokens from the bucket of `allowed` bytes/s; false if there are too few. */
FS_LAW bool fs_police_takes(struct fs_police_flow *f, __u64 now, __u64 bytes, __u64 allowed)
{
	__u64 depth;

	f->largest = fs_max(f->largest, bytes);
	depth = fs_police_depth(f, allowed);
	f->tokens_q16 += fs_mul_div(fs_min(now - f->tokens_ns, FS_NS_PER_S), allowed << 16, FS_NS_PER_S);
	f->tokens_q16 = fs_min(f->tokens_q16, depth << 16);
	f->tokens_ns = now;
	if (f->tokens_q16 < bytes << 16)
		return false;
	f->tokens_q16 -= bytes << 16;
	return true;
}

/*
 * Whether a flow's packet may pass, by a token bucket. An isolated flow has its own rate limit. A flow that
 * is not proven is limited to `heavy` while the link is congested, or if it has exceeded that before. Each packet adds
 * an error of 2^-16 bytes, plus the rate's error over the time since the previous packet.
 */
FS_LAW bool fs_police_admit(const struct fs_police_params *p, struct fs_police_flow *f, __u64 now, __u64 bytes,
			    const struct fs_police_link *l)
{
	bool isolated = fs_police_isolated(f);

	if (!isolated) {
		f->eased = l->all;
		if (fs_police_proven(f) || (l->row < FS_POLICE_TROUBLED && !f->marked))
			return true;
	}
	if (f->eased != l->all) {
		if (f->allowed)
			f->allowed = fs_min(f->allowed, fs_max(f->allowed / 2, fs_max(p->heavy / (f->failures ? 8 : 2), 1)));
		f->eased = l->all;
	}
	if (fs_police_takes(f, now, bytes, isolated ? f->allowed : p->heavy))
		return true;
	f->held++;
	f->marked = 1;
	if (!isolated) {
		f->probation = 1;
		f->allowed = f->allowed ? fs_min(f->allowed, p->heavy) : p->heavy;
	}
	return false;
}

/* Upper limit on a flow's RTT, in us, rounded down but at least 1; all ones if unlimited. Exact to 1 us. */
FS_LAW __u64 fs_police_most_rtt_us(const struct fs_police_flow *f, const struct fs_police_link *l)
{
	__u64 longest = fs_max(l->longest_ns, l->before_ns);

	return longest ? fs_max(FS_POLICE_MOST_RTT * fs_max(longest, f->passed_ns) / 1000, 1) : ~0ULL;
}

/*
 * Lower limit on the packets of `bytes` in flight for a flow with this RTT: those of 0.8 of its rate. Within 2^-29 of
 * itself and of the rate's error, and 1.
 */
FS_LAW __u64 fs_police_least_flight(const struct fs_police_flow *f, __u64 rtt_us, __u64 bytes)
{
	return fs_mul_div(f->last_rate, rtt_us, FS_POLICE_MOST_QUARTERS * 250000ULL * fs_max(bytes, 1));
}

#endif
