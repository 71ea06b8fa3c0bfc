/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What both kinds of host program know of a connection, and what is set and counted for all. */
#ifndef FLOWSTAMP_HOST_FLOW_H
#define FLOWSTAMP_HOST_FLOW_H

#include "host_kernel.h"
#include "option.h"
#include "sender.h"
#include "vcp.h"

/* What a socket must be told to call the option's program for. */
#define FS_CALLBACKS (BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG)

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
