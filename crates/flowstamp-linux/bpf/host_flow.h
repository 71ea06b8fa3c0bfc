/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What both kinds of host program know of a connection, and what is set and counted for all. */
#ifndef FLOWSTAMP_HOST_FLOW_H
#define FLOWSTAMP_HOST_FLOW_H

#include "host_kernel.h"
#include "option.h"
#include "sender.h"
#include "vcp.h"

/* What a socket must be told to call the option's program for. */
#define FS_CALLBACKS \
	(BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_RTO_CB_FLAG)

/* How far the sender's side of a connection has come. */
enum fs_sender {
	FS_ASKED,    /* the handshake has carried a wish, or will */
	FS_ANSWERED, /* a router on the path has answered it */
	FS_OBEYING,  /* a congestion control of ours is in charge */
	FS_LEFT,     /* the kernel's own is, for good */
};

struct fs_flow {
	__u32 law;
	__u32 sender;
	/* As receiver: what the next packet echoes; zero is none. VCP: fs_vcp_echo. */
	__u32 echo;
	/* As sender: the last echo that came. RCP: the rate given, bytes/ms. */
	__u32 heard;
	/* XCP, VCP: the echo up to which changes have been made. */
	__u32 applied;
	/* VCP: what the routers have told; zero until then. */
	__u32 t_rho_us;
	/* XCP: the window, 1/256 byte. */
	__u64 window;
	struct fs_vcp_sender vcp;
	/* Echoes since the running round trip began, and round trips without one. */
	__u32 echoes;
	__u32 silent_rounds;
	/* Whether they told anything, round trips in which none did, and when the last one that did had ended. */
	__u32 told;
	__u32 untold_rounds;
	__u64 told_us;
	/* As last told by the kernel: TCP_CA_*. */
	__u32 state;
	/* The loss that made it so has not been answered yet; RCP: since when. */
	__u32 lost;
	__u64 lost_us;
	/* XCP, VCP: the window before the last loss. */
	__u64 undo;
	/* The least difference of the peer's timestamp and ours, ms, once one is known. */
	__u32 least_way;
	__u32 way_known;
	/* When the last ack came. */
	__u64 acked_us;
	/* The handshake was sent again: the RTT without it, zero until data were acked, and when the newest of those were sent. */
	__u32 repeated;
	__u32 rtt_us;
	__u64 sampled_us;
	/* As receiver: how often in a row an ack has said that the sequence from `answered` has come, when all up to `received` had. */
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
	/* Round trips of data without an echo after which a flow leaves: the path or the peer has stopped. */
	__u32 silent_rounds_max;
	char names[FS_LAWS][16];
	char fallback[16];
	/* Flows are never faster, bytes/ms of whole packets. */
	__u32 rate_max;
	/* A doubled RTT is no reason to leave: the queue may be one whose router cannot say in time that its link has become slower. */
	__u32 any_rtt;
	__u64 cgroup_id;
	struct fs_vcp_sender_params vcp;
	/* For `host status` alone. */
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
	FS_COUNT_DEPARTURES, /* all that have left */
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

/* A connection that left: an instant of the monotonic clock, the cause as its counter, and its ports. */
struct fs_departure {
	__u64 at_us;
	__u32 why;
	__u16 local_port;
	__u16 remote_port;
};

#define FS_DEPARTURES 8192

/* The last ones, each in the place of its number's remainder. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FS_DEPARTURES);
	__type(key, __u32);
	__type(value, struct fs_departure);
} departures SEC(".maps");

/* Namespaces whose default congestion control `host enable --default` has set, by inode, and what it was. */
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

/* Counts and remembers it. */
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
 * The smoothed RTT, us. The kernel's begins with the handshake's, which is a second and more where a SYN or SYN-ACK was sent again (TCP's
 * timestamps count from the first); until its average has come down to that of the data this is theirs. A router of XCP weighs RTTs by
 * the time between packets: of one such flow's it would take a second for its interval, in which it tells none of its flows anything.
 */
FS_INLINE __u32 fs_srtt_us(const struct tcp_sock *tp, const struct fs_flow *flow)
{
	__u32 srtt_us = tp->srtt_us >> 3;

	return flow->repeated && flow->rtt_us && flow->rtt_us < srtt_us ? flow->rtt_us : srtt_us;
}

/* What packets name; zero is unknown. */
FS_INLINE __u32 fs_named_rtt_us(const struct tcp_sock *tp, const struct fs_flow *flow)
{
	return flow->repeated && !flow->rtt_us ? 0 : fs_srtt_us(tp, flow);
}

/* At each ack; averaged as RFC 6298 does. */
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

/* The rate that the application and the host want, bytes/s; all ones is as much as there is. */
FS_INLINE __u64 fs_desired(const struct tcp_sock *tp)
{
	__u64 desired = ((const struct sock *)tp)->sk_max_pacing_rate;
	struct fs_settings *set = fs_set();

	if (set && set->rate_max != FS_RCP_UNBOUNDED && set->rate_max * 1000ull < desired)
		desired = set->rate_max * 1000ull;
	return desired;
}

/* The window, as XCP's packets state it. */
FS_INLINE __u32 fs_in_flight(const struct tcp_sock *tp)
{
	return tp->snd_cwnd ? tp->snd_cwnd : 1;
}

/* A socket that listens keeps its SYNs, for SYN-ACKs that are sent again; for contexts and sockets alike, so a macro. */
#define FS_KEEP_SYN(socket) \
	({ \
		int kept_ = 0, keep_ = 1; \
		if (!bpf_getsockopt(socket, SOL_TCP, TCP_SAVE_SYN, &kept_, sizeof(kept_)) && !kept_) \
			bpf_setsockopt(socket, SOL_TCP, TCP_SAVE_SYN, &keep_, sizeof(keep_)); \
	})

/* Big endian, at any offset. */
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
