/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* State of a connection, settings and counters that the host's programs share. */
#ifndef FLOWSTAMP_HOST_FLOW_H
#define FLOWSTAMP_HOST_FLOW_H

#include "host_kernel.h"
#include "option.h"
#include "sender.h"
#include "vcp.h"

/* Callback flags that make a socket call the option's program. */
#define FS_CALLBACKS \
	(BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_RTO_CB_FLAG)

/* State of a connection's sending side. */
enum fs_sender {
	FS_ASKED,    /* the handshake carries the request, or will */
	FS_ANSWERED, /* a router on the path has answered the request */
	FS_OBEYING,  /* one of our congestion controls is in control */
	FS_LEFT,     /* the kernel's own congestion control took over permanently */
};

struct fs_flow {
	__u32 law;
	__u32 sender;
	/* As receiver: the echo of the next packet; zero is none. VCP: see fs_vcp_echo(). */
	__u32 echo;
	/* As sender: the last echo received. RCP: the rate from the routers, in bytes/ms. */
	__u32 heard;
	/* XCP, VCP: the last echo whose changes the window includes. */
	__u32 applied;
	/* VCP: t_rho from the routers; zero while unknown. */
	__u32 t_rho_us;
	/* XCP: the window, in 1/256 byte. */
	__u64 window;
	struct fs_vcp_sender vcp;
	/* Echoes in the current round trip, and consecutive round trips without an echo. */
	__u32 echoes;
	__u32 silent_rounds;
	/*
	 * Whether this round trip brought feedback, the number of consecutive round trips without any, and when the last one
	 * with feedback ended.
	 */
	__u32 told;
	__u32 untold_rounds;
	__u64 told_us;
	/* The kernel's congestion state as last reported: TCP_CA_*. */
	__u32 state;
	/* A loss has not been answered yet; for RCP, the time of the first ack after it. */
	__u32 lost;
	__u64 lost_us;
	/* XCP, VCP: the window before the last loss. */
	__u64 undo;
	/* The smallest difference between the peer's timestamp and ours, in ms, valid once `way_known` is set. */
	__u32 least_way;
	__u32 way_known;
	/* Time of the last ack. */
	__u64 acked_us;
	/*
	 * `repeated`: the handshake was retransmitted. `rtt_us`: the smoothed RTT without it, zero until data is acked.
	 * `sampled_us`: when the newest acked data was sent.
	 */
	__u32 repeated;
	__u32 rtt_us;
	__u64 sampled_us;
	/*
	 * As receiver: `answers` acks in a row have reported data from sequence number `answered` on, while everything up to
	 * `received` had arrived.
	 */
	__u32 answers;
	__u32 answered;
	__u32 received;
	struct fs_switch watch;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fs_flow);
} flows SEC(".maps");

/* Set by `host enable`. */
struct fs_settings {
	__u32 law;
	/*
	 * Number of round trips without an echo after which a flow leaves, because the path or the peer no longer supports the
	 * law.
	 */
	__u32 silent_rounds_max;
	char names[FS_LAWS][16];
	char fallback[16];
	/* Upper limit on each flow's rate, in bytes/ms including headers. */
	__u32 rate_max;
	/*
	 * Flows do not leave when the RTT doubles: the queue may belong to a router whose link became slower faster than it
	 * can report.
	 */
	__u32 any_rtt;
	__u64 cgroup_id;
	struct fs_vcp_sender_params vcp;
	struct fs_xcp_sender_params xcp;
	/* Read only by `host status`. */
	char cgroup[256];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_settings);
} settings SEC(".maps");

enum fs_counter {
	FS_COUNT_ANSWERED,
	FS_COUNT_NO_PEER,
	FS_COUNT_NO_ROUTER,
	FS_COUNT_RTT_DOUBLED,
	FS_COUNT_LOSS_ELSEWHERE,
	FS_COUNT_SILENT,
	FS_COUNT_FIXED_UP,
	FS_COUNT_OTHER_LAW,
	FS_COUNT_DEPARTURES, /* all flows that have left */
	FS_COUNT_BLACKHOLE,
	FS_COUNT_UNTOLD,
	FS_COUNTERS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FS_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* A connection that left: monotonic time, the cause as its counter, and its ports. */
struct fs_departure {
	__u64 at_us;
	__u32 why;
	__u16 local_port;
	__u16 remote_port;
};

#define FS_DEPARTURES 8192

/* The latest departures; departure n is at index n modulo FS_DEPARTURES. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FS_DEPARTURES);
	__type(key, __u32);
	__type(value, struct fs_departure);
} departures SEC(".maps");

/*
 * The previous default congestion control of each network namespace, by inode, that `host enable --default` has
 * changed.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, char[16]);
} defaults SEC(".maps");

FS_INLINE void fs_count(__u32 which)
{
	__u64 *count = bpf_map_lookup_elem(&counters, &which);

	if (count)
		__sync_fetch_and_add(count, 1);
}

/* Counts a departure and records it. */
FS_INLINE void fs_departs(__u32 why, __u64 at_us, __u16 local_port, __u16 remote_port)
{
	__u32 all = FS_COUNT_DEPARTURES, place;
	__u64 *count = bpf_map_lookup_elem(&counters, &all);
	struct fs_departure *departure;

	fs_count(why);
	if (!count)
		return;
	place = __sync_fetch_and_add(count, 1) % FS_DEPARTURES;
	departure = bpf_map_lookup_elem(&departures, &place);
	if (!departure)
		return;
	departure->at_us = at_us;
	departure->why = why;
	departure->local_port = local_port;
	departure->remote_port = remote_port;
}

FS_INLINE struct fs_settings *fs_set(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&settings, &zero);
}

/*
 * The smoothed RTT in us. The kernel's starts with the handshake's RTT. After a retransmitted SYN or SYN-ACK that RTT
 * is a second or more, because TCP's timestamps count from the first one. In that case this returns the smoothed RTT of
 * the data until the kernel's is as short. An XCP router weighs RTTs by the time between packets. One such flow would
 * set its interval to about a second, in which none of its flows receives feedback.
 */
FS_INLINE __u32 fs_srtt_us(const struct tcp_sock *tp, const struct fs_flow *flow)
{
	__u32 srtt_us = tp->srtt_us >> 3;

	return flow->repeated && flow->rtt_us && flow->rtt_us < srtt_us ? flow->rtt_us : srtt_us;
}

/* The RTT that packets carry; zero if unknown. */
FS_INLINE __u32 fs_named_rtt_us(const struct tcp_sock *tp, const struct fs_flow *flow)
{
	return flow->repeated && !flow->rtt_us ? 0 : fs_srtt_us(tp, flow);
}

/* Updates the smoothed RTT of the data at each ack, averaged as in RFC 6298. */
FS_INLINE void fs_sample_rtt(const struct tcp_sock *tp, struct fs_flow *flow)
{
	/* When the newest of the data that have come was sent. */
	__u64 sent_us = tp->first_tx_mstamp, rtt_us = tp->tcp_mstamp - sent_us;

	if (!flow->repeated || sent_us == flow->sampled_us || rtt_us > 0xffffffff)
		return;
	flow->sampled_us = sent_us;
	flow->rtt_us = flow->rtt_us ? (7ull * flow->rtt_us + rtt_us) / 8 : rtt_us;
	if (flow->rtt_us >= tp->srtt_us >> 3)
		flow->repeated = 0;
}

/* The rate that the application and the host allow, in bytes/s; all ones means unlimited. */
FS_INLINE __u64 fs_desired(const struct tcp_sock *tp)
{
	__u64 desired = ((const struct sock *)tp)->sk_max_pacing_rate;
	struct fs_settings *set = fs_set();

	if (set && set->rate_max != FS_RCP_UNBOUNDED && set->rate_max * 1000ull < desired)
		desired = set->rate_max * 1000ull;
	return desired;
}

/* The window in packets, as XCP's packets carry it. */
FS_INLINE __u32 fs_in_flight(const struct tcp_sock *tp)
{
	return tp->snd_cwnd ? tp->snd_cwnd : 1;
}

/*
 * Makes a listening socket save SYNs, so that retransmitted SYN-ACKs can read them. A macro, because it takes contexts
 * and sockets alike.
 */
#define FS_KEEP_SYN(socket) \
	({ \
		int kept_ = 0, keep_ = 1; \
		if (!bpf_getsockopt(socket, SOL_TCP, TCP_SAVE_SYN, &kept_, sizeof(kept_)) && !kept_) \
			bpf_setsockopt(socket, SOL_TCP, TCP_SAVE_SYN, &keep_, sizeof(keep_)); \
	})

/* Reads a big-endian number at any alignment. */
FS_INLINE __u32 fs_get32(const __u8 *at)
{
	return (__u32)at[0] << 24 | (__u32)at[1] << 16 | (__u32)at[2] << 8 | at[3];
}

FS_INLINE __u32 fs_get16(const __u8 *at)
{
	return (__u32)at[0] << 8 | at[1];
}

FS_INLINE void fs_put32(__u8 *at, __u32 value)
{
	at[0] = value >> 24, at[1] = value >> 16, at[2] = value >> 8, at[3] = value;
}

FS_INLINE void fs_put16(__u8 *at, __u16 value)
{
	at[0] = value >> 8, at[1] = value;
}

FS_INLINE __u16 fs_exid(__u32 law)
{
	return law == FS_RCP ? FS_EXID_RCP : law == FS_XCP ? FS_EXID_XCP : FS_EXID_VCP;
}

#endif
