/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The congestion controls. A flow that no router answers, or that leaves the law, switches to the kernel's CUBIC
 * through TCP_CONGESTION, which `ss -i` then shows. It never switches back.
 */
#ifndef FLOWSTAMP_HOST_SENDER_H
#define FLOWSTAMP_HOST_SENDER_H

#include "host_flow.h"

/*
 * Idle time after which a flow restarts from the initial window, because its rate is stale: the kernel's minimum RTO.
 */
#define FS_IDLE_US 200000
#define FS_IDLE_WINDOW 10

/* A flow that could send faster leaves XCP after this long without feedback: sender.h, deviation 11. */
#define FS_UNTOLD_ROUNDS_MAX 20
#define FS_UNTOLD_US 200000

#define FS_ETHERNET_BYTES 14

/* Header bytes of a full packet, as an Ethernet interface counts them. */
FS_INLINE __u32 fs_header_bytes(const struct tcp_sock *tp)
{
	__u32 ip = ((const struct sock *)tp)->__sk_common.skc_family == AF_INET6 ? 40 : 20;

	return tp->tcp_header_len + FS_LONG_LEN + ip + FS_ETHERNET_BYTES;
}

/* Payload of a full packet. The kernel's value does not account for the option. */
FS_INLINE __u32 fs_mss(const struct tcp_sock *tp)
{
	return tp->mss_cache > FS_LONG_LEN + 1 ? tp->mss_cache - FS_LONG_LEN : 1;
}

/*
 * Switches permanently to the kernel's congestion control. `window` is in packets if congestion is the reason,
 * otherwise 0.
 */
FS_INLINE void fs_leave(struct sock *sk, struct fs_flow *flow, __u32 window)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct fs_settings *set = fs_set();
	char name[16];

	if (!set)
		return;
	if (flow)
		flow->sender = FS_LEFT;
	/* An application's own rate limit still needs pacing. */
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0ul)
		sk->sk_pacing_status = SK_PACING_NONE;
	if (window) {
		/* CUBIC's answer to a loss: RFC 9438, section 4.6. */
		__u32 less = window * 7ull / 10;

		tp->snd_ssthresh = less > 2 ? less : 2;
		if (tp->snd_cwnd > tp->snd_ssthresh)
			tp->snd_cwnd = tp->snd_ssthresh;
	}
	__builtin_memcpy(name, set->fallback, sizeof(name));
	bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
}

/* Records that a flow is about to leave, and why. */
FS_INLINE void fs_leaves(const struct sock *sk, __u32 why)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;

	fs_departs(why, tp->tcp_mstamp, sk->__sk_common.skc_num, bpf_ntohs(sk->__sk_common.skc_dport));
}

/* The rate from the routers, within the host's own limit. */
FS_INLINE __u32 fs_rate(const struct fs_flow *flow)
{
	struct fs_settings *set = fs_set();

	return set && set->rate_max < flow->heard ? set->rate_max : flow->heard;
}

/* Sets the window and the pacing rate, within the socket's own limits. */
FS_INLINE void fs_obey(struct sock *sk, __u32 window, __u64 pace)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
	sk->sk_pacing_rate = pace < sk->sk_max_pacing_rate ? pace : sk->sk_max_pacing_rate;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

FS_INLINE void fs_rcp_obey(struct sock *sk, struct fs_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 mss = fs_mss(tp), header = fs_header_bytes(tp), srtt_us = fs_srtt_us(tp, flow), rate = fs_rate(flow);

	/* Without an RTT there is no window: the kernel's initial one stays. */
	fs_obey(sk, srtt_us ? fs_rcp_window(rate, srtt_us, mss + header) : tp->snd_cwnd,
		fs_rcp_pace(rate, mss, header));
}

FS_INLINE void fs_xcp_obey(struct sock *sk, struct fs_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 mss = fs_mss(tp), header = fs_header_bytes(tp);
	__u64 pace = fs_xcp_pace(flow->window, fs_srtt_us(tp, flow), mss, header), most = ~0ull;
	struct fs_settings *set = fs_set();

	if (set)
		most = fs_rcp_pace(set->rate_max, mss, header);
	fs_obey(sk, fs_xcp_packets(flow->window, mss + header, FS_WINDOW_MIN), pace < most ? pace : most);
}

/*
 * Whether the RTT's excess over its minimum may be a queue on the data's path. The peer's timestamp minus the echoed
 * one of ours is the data's one-way delay plus a constant. If its growth is less than half of the excess, the acks are
 * queued, and a lower data rate would not help them. Linux timestamps are in ms; without timestamps, only the RTT is
 * known.
 */
FS_INLINE int fs_data_wait(const struct tcp_sock *tp, struct fs_flow *flow)
{
	__u32 way = tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr, srtt_us = fs_srtt_us(tp, flow);

	if (!tp->rx_opt.rcv_tsecr)
		return 1;
	if (!flow->way_known || (__s32)(way - flow->least_way) < 0) {
		flow->least_way = way;
		flow->way_known = 1;
	}
	if (srtt_us <= flow->watch.least_srtt_us)
		return 0;
	return (way - flow->least_way) * 2000ull >= srtt_us - flow->watch.least_srtt_us;
}

/*
 * Called at the end of a round trip, with `told` set if it brought feedback. Returns whether the flow has gone too long
 * without feedback.
 */
FS_INLINE int fs_is_untold(struct fs_flow *flow, __u64 now_us)
{
	if (flow->told)
		flow->told_us = now_us;
	flow->untold_rounds = flow->told ? 0 : flow->untold_rounds + 1;
	flow->told = 0;
	return flow->untold_rounds > FS_UNTOLD_ROUNDS_MAX && now_us - flow->told_us > FS_UNTOLD_US;
}

/* Handles each ack under every law. Returns the counter of the reason to leave, or FS_COUNTERS to stay. */
FS_INLINE __u32 fs_watch(struct tcp_sock *tp, struct fs_flow *flow, __u32 rate, int told)
{
	struct fs_settings *set = fs_set();
	/* When the newest acked data was sent, according to the kernel. */
	__u64 sent_us = tp->first_tx_mstamp;
	/* Called on every ack, also while the application limits the flow, to keep the minimum up to date. */
	int waits = fs_data_wait(tp, flow);
	int idle = tp->app_limited != 0 || !waits || !fs_switch_doubled(&flow->watch, tp->tcp_mstamp - sent_us);
	int seen = fs_switch_watch(&flow->watch, tp->tcp_mstamp, sent_us, fs_srtt_us(tp, flow), rate, idle);

	flow->acked_us = tp->tcp_mstamp;
	flow->told |= told;
	if (seen & 2 && !(set && set->any_rtt))
		return FS_COUNT_RTT_DOUBLED;
	if (seen & 1) {
		flow->silent_rounds = flow->echoes ? 0 : flow->silent_rounds + 1;
		flow->echoes = 0;
		if (set && flow->silent_rounds > set->silent_rounds_max)
			return FS_COUNT_SILENT;
		if (fs_is_untold(flow, tp->tcp_mstamp))
			return FS_COUNT_UNTOLD;
	}
	return FS_COUNTERS;
}

FS_INLINE struct fs_flow *fs_flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

/* Shift from VCP's window unit to XCP's, for functions that both laws use. */
#define FS_VCP_TO_XCP (FS_VCP_FRACTION_BITS - FS_XCP_FRACTION_BITS)

FS_INLINE void fs_vcp_kernel(struct sock *sk, struct fs_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 mss = fs_mss(tp), header = fs_header_bytes(tp);
	__u64 window = flow->vcp.window >> FS_VCP_TO_XCP, pace = fs_xcp_pace(window, fs_srtt_us(tp, flow), mss, header), most = ~0ull;
	struct fs_settings *set = fs_set();

	if (set)
		most = fs_rcp_pace(set->rate_max, mss, header);
	fs_obey(sk, fs_xcp_packets(window, mss + header, FS_WINDOW_MIN), pace < most ? pace : most);
}

/* Starts a law after the handshake, or when the application selects our congestion control. */
FS_INLINE struct fs_flow *fs_start(struct sock *sk, __u32 law)
{
	struct fs_flow *flow = fs_flow_of(sk);

	/*
	 * The application selected us while the SYN was in flight. Its result is unknown, and the kernel does not call again
	 * when it arrives (fs_is_late).
	 */
	if (flow && flow->law == law && flow->sender == FS_ASKED && sk->__sk_common.skc_state == BPF_TCP_SYN_SENT)
		return 0;
	if (!flow || flow->law != law || (flow->sender != FS_ANSWERED && flow->sender != FS_OBEYING)) {
		/* The SYN determines the law, so a congestion control selected later cannot ask for another one. */
		if (flow && flow->law != law)
			fs_leaves(sk, FS_COUNT_OTHER_LAW);
		else if (flow && flow->sender == FS_ASKED)
			fs_leaves(sk, FS_COUNT_NO_ROUTER);
		fs_leave(sk, flow, 0);
		return 0;
	}
	flow->sender = FS_OBEYING;
	flow->applied = flow->heard;
	flow->told = 1;
	/* Earlier losses, in the handshake or under another congestion control, were not caused by our rate. */
	flow->state = TCP_CA_OPEN;
	flow->lost = 0;
	flow->lost_us = 0;
	flow->undo = 0;
	/* Earlier RTTs do not reflect our rate either. */
	flow->watch.doubled_us = 0;
	return flow;
}

FS_INLINE void fs_rcp_begin(struct sock *sk)
{
	struct fs_flow *flow = fs_start(sk, FS_RCP);

	if (flow)
		fs_rcp_obey(sk, flow);
}

FS_INLINE void fs_xcp_begin(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct fs_flow *flow = fs_start(sk, FS_XCP);

	if (!flow)
		return;
	/* The kernel's initial window (RFC 6928). */
	flow->window = (__u64)tp->snd_cwnd * (fs_mss(tp) + fs_header_bytes(tp)) << FS_XCP_FRACTION_BITS;
	fs_xcp_obey(sk, flow);
}

FS_INLINE void fs_vcp_begin(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct fs_flow *flow = fs_start(sk, FS_VCP);

	if (!flow)
		return;
	/* The kernel's initial window (RFC 6928). */
	flow->vcp.window = (__u64)tp->snd_cwnd * (fs_mss(tp) + fs_header_bytes(tp)) << FS_VCP_FRACTION_BITS;
	flow->vcp.frozen_until_us = 0;
	flow->vcp.adds_until_us = 0;
	fs_vcp_kernel(sk, flow);
}

/*
 * Whether this ack follows the handshake of a socket whose law has not started, because the application selected it
 * during the handshake.
 */
FS_INLINE int fs_is_late(const struct sock *sk, const struct fs_flow *flow)
{
	__u8 state = sk->__sk_common.skc_state;

	return flow && (flow->sender == FS_ASKED || flow->sender == FS_ANSWERED) && state != BPF_TCP_SYN_SENT && state != BPF_TCP_SYN_RECV;
}

/* Whether the flow already sends at the rate that the application and the host allow. */
FS_INLINE int fs_xcp_is_content(const struct tcp_sock *tp, const struct fs_flow *flow)
{
	return fs_xcp_wish(fs_desired(tp), flow->window, fs_named_rtt_us(tp, flow), fs_in_flight(tp)) <= 0;
}

/* Whether to ignore this ack. The kernel also calls cong_control for the SYN-ACK, before init. */
FS_INLINE int fs_not_ours(struct sock *sk, struct fs_flow *flow)
{
	if (flow && flow->sender == FS_OBEYING)
		return 0;
	if (!flow || flow->sender == FS_LEFT)
		fs_leave(sk, flow, 0);
	return 1;
}

FS_INLINE void fs_rcp_control(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct fs_flow *flow = fs_flow_of(sk);
	__u32 why, window, srtt_us;

	if (fs_is_late(sk, flow)) {
		fs_rcp_begin(sk);
		return;
	}
	if (fs_not_ours(sk, flow))
		return;
	fs_sample_rtt(tp, flow);
	srtt_us = fs_srtt_us(tp, flow);
	window = fs_rcp_window(fs_rate(flow), srtt_us, fs_mss(tp) + fs_header_bytes(tp));
	/* Each RCP echo is a rate, so feedback is never missing. */
	why = fs_watch(tp, flow, flow->heard, 1);
	if (fs_rcp_lost(&flow->watch, &flow->lost, &flow->lost_us, tp->tcp_mstamp, srtt_us, flow->heard))
		why = FS_COUNT_LOSS_ELSEWHERE;
	if (why < FS_COUNTERS) {
		fs_leaves(sk, why);
		fs_leave(sk, flow, window);
		return;
	}
	fs_rcp_obey(sk, flow);
}

FS_INLINE void fs_xcp_control(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct fs_flow *flow = fs_flow_of(sk);
	struct fs_settings *set = fs_set();
	__u32 packet, why, most, srtt_us;
	__s64 change;
	__u64 bytes;
	int told;

	if (fs_is_late(sk, flow)) {
		fs_xcp_begin(sk);
		return;
	}
	if (fs_not_ours(sk, flow))
		return;
	fs_sample_rtt(tp, flow);
	srtt_us = fs_srtt_us(tp, flow);
	packet = fs_mss(tp) + fs_header_bytes(tp);
	if (flow->lost) {
		flow->lost = 0;
		flow->undo = flow->window;
		flow->window = fs_xcp_lost(flow->window, flow->state == TCP_CA_LOSS, packet);
	}
	change = (__s32)(flow->heard - flow->applied);
	flow->applied = flow->heard;
	/* A change that is not applied still counts as feedback: the router is there. */
	told = change != 0;
	/* The window grows only while it is used, and not during loss recovery. */
	if (change > 0 && (flow->state >= TCP_CA_RECOVERY || tp->app_limited))
		change = 0;
	flow->window = fs_xcp_window(flow->window, change, srtt_us, packet);
	/* The window also stays within the limits of the socket and the host. */
	most = set ? fs_rcp_window(set->rate_max, srtt_us, packet) : FS_WINDOW_MAX;
	if (tp->snd_cwnd_clamp < most)
		most = tp->snd_cwnd_clamp;
	if (fs_xcp_packets(flow->window, packet, 1) > most)
		flow->window = (__u64)most * packet << FS_XCP_FRACTION_BITS;
	bytes = flow->window >> FS_XCP_FRACTION_BITS;
	why = fs_watch(tp, flow, bytes > 0xffffffff ? 0xffffffff : bytes, told || tp->app_limited || fs_xcp_is_content(tp, flow));
	if (why < FS_COUNTERS) {
		fs_leaves(sk, why);
		fs_leave(sk, flow, fs_xcp_packets(flow->window, packet, FS_WINDOW_MIN));
		return;
	}
	fs_xcp_obey(sk, flow);
}

FS_INLINE void fs_vcp_control(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct fs_flow *flow = fs_flow_of(sk);
	struct fs_settings *set = fs_set();
	__u32 packet, why, most, before, grows, srtt_us;
	__u64 bytes;

	if (fs_is_late(sk, flow)) {
		fs_vcp_begin(sk);
		return;
	}
	if (fs_not_ours(sk, flow) || !set)
		return;
	fs_sample_rtt(tp, flow);
	srtt_us = fs_srtt_us(tp, flow);
	packet = fs_mss(tp) + fs_header_bytes(tp);
	if (flow->lost) {
		flow->lost = 0;
		flow->undo = flow->vcp.window;
		flow->vcp.window = fs_vcp_lost(flow->vcp.window, flow->state == TCP_CA_LOSS, packet);
	}
	before = flow->applied;
	flow->applied = flow->heard;
	/* The window grows only while it is used, and not during loss recovery. */
	grows = flow->state < TCP_CA_RECOVERY && !tp->app_limited;
	for (__u32 code = FS_VCP_OVERLOAD; code > FS_VCP_NONE; code--)
		fs_vcp_obey(&set->vcp, &flow->vcp, tp->tcp_mstamp, srtt_us, flow->t_rho_us, code,
			    fs_vcp_came(before, flow->heard, code), packet, grows);
	/* The window also stays within the limits of the socket and the host. */
	most = fs_rcp_window(set->rate_max, srtt_us, packet);
	if (tp->snd_cwnd_clamp < most)
		most = tp->snd_cwnd_clamp;
	if (fs_xcp_packets(flow->vcp.window >> FS_VCP_TO_XCP, packet, 1) > most)
		flow->vcp.window = (__u64)most * packet << FS_VCP_FRACTION_BITS;
	bytes = flow->vcp.window >> FS_VCP_FRACTION_BITS;
	/* Repeated counts do not count as echoes, so fs_watch() detects missing feedback as silence. */
	why = fs_watch(tp, flow, bytes > 0xffffffff ? 0xffffffff : bytes, 1);
	if (why < FS_COUNTERS) {
		fs_leaves(sk, why);
		fs_leave(sk, flow, fs_xcp_packets(flow->vcp.window >> FS_VCP_TO_XCP, packet, FS_WINDOW_MIN));
		return;
	}
	fs_vcp_kernel(sk, flow);
}

/* The application has selected another congestion control, or the socket closes. */
FS_INLINE void fs_end(struct sock *sk)
{
	struct fs_flow *flow = fs_flow_of(sk);

	if (flow && flow->sender == FS_OBEYING)
		flow->sender = FS_ANSWERED;
}

FS_INLINE void fs_state(struct sock *sk, __u8 state)
{
	struct fs_flow *flow = fs_flow_of(sk);

	if (!flow)
		return;
	if ((state >= TCP_CA_RECOVERY && flow->state < TCP_CA_RECOVERY) || (state == TCP_CA_LOSS && flow->state != TCP_CA_LOSS))
		flow->lost = 1;
	flow->state = state;
}

/* Undoes the answer to a loss: the kernel has found that packets were only late or reordered. */
FS_INLINE void fs_undo(struct sock *sk)
{
	struct fs_flow *flow = fs_flow_of(sk);

	if (!flow)
		return;
	flow->lost = 0;
	flow->lost_us = 0;
	if (flow->law == FS_VCP) {
		if (flow->undo > flow->vcp.window)
			flow->vcp.window = flow->undo;
	} else if (flow->undo > flow->window) {
		flow->window = flow->undo;
	}
	flow->undo = 0;
}

FS_INLINE void fs_event(struct sock *sk, int event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct fs_flow *flow;
	__u64 window;

	if (event != CA_EVENT_TX_START)
		return;
	flow = fs_flow_of(sk);
	if (!flow || !flow->acked_us || tp->tcp_mstamp <= flow->acked_us + FS_IDLE_US + (tp->srtt_us >> 3))
		return;
	if (tp->snd_cwnd > FS_IDLE_WINDOW)
		tp->snd_cwnd = FS_IDLE_WINDOW;
	/* RCP computes its window from the rate in the first ack. XCP and VCP restart from this one. */
	window = (__u64)FS_IDLE_WINDOW * (fs_mss(tp) + fs_header_bytes(tp)) << FS_XCP_FRACTION_BITS;
	if (flow->window > window)
		flow->window = window;
	if (flow->vcp.window > window << FS_VCP_TO_XCP)
		flow->vcp.window = window << FS_VCP_TO_XCP;
	flow->undo = 0;
}

#endif
