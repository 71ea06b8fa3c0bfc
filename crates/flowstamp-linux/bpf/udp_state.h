/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Types, limits and maps of the programs for datagrams (udp.bpf.c). */
#ifndef FLOWSTAMP_UDP_STATE_H
#define FLOWSTAMP_UDP_STATE_H

#include "kernel.h"
#include "shim.h"

#define FS_INLINE static inline __attribute__((always_inline))
#define TCX_NEXT -1
#define TCX_DROP 2
#define ETH_HLEN 14
#define UDP_HLEN 8
#define FS_PROTO_UDP 17
/* No next header, RFC 8200. The ports still follow. */
#define FS_PROTO_NONE 59
#define FS_NS_PER_MS 1000000ULL
/* The rate of a path without routers, and the largest rate. */
#define FS_UNBOUNDED 0xffffffffU
/* Longest wait for an answer, in addition to two RTTs. */
#define FS_PATIENCE_NS (100 * FS_NS_PER_MS)
/* Questions in a row without an answer, after which a flow stops obeying. */
#define FS_MISSES_MAX 4
/* A sender that got no answer waits up to 2^9 times as long, about a minute. */
#define FS_BACKOFF_MAX 9
/* Longest time that a departure is planned ahead; fq drops packets that are due in more than 10 s. */
#define FS_AHEAD_MAX_NS (9000 * FS_NS_PER_MS)
#define FS_HOPS 64
#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
#define CHECKSUM_PARTIAL 3
#define AF_INET 2
#define AF_INET6 10
#define PACKET_HOST 0

#define FS_RELOCATED __attribute__((preserve_access_index))

struct net {
	__u64 net_cookie;
} FS_RELOCATED;

typedef struct {
	struct net *net;
} FS_RELOCATED possible_net_t;

struct net_device {
	possible_net_t nd_net;
} FS_RELOCATED;

struct sk_buff {
	struct net_device *dev;
	__u8 ip_summed : 2;
} FS_RELOCATED;

extern void *bpf_cast_to_kern_ctx(void *obj) __ksym;

/* The configuration from `host enable --udp`. */
struct fs_udp_settings {
	/* A bit for each listed port. */
	__u64 ports[1024];
	/* Maximum rate of a flow, bytes/ms. */
	__u32 rate_max;
	__u32 unused;
};

/* A flow, as its end on this host sees it. An IPv4 address is in the first four bytes. */
struct fs_udp_key {
	__u64 netns;
	__u8 local[16];
	__u8 remote[16];
	__be16 local_port;
	__be16 remote_port;
	__u32 version;
};

enum fs_udp_state { FS_UDP_ASKS, FS_UDP_OBEYS };

struct fs_udp_flow {
	__u64 asked_ns;
	/* The earliest departure of the next datagram. */
	__u64 next_ns;
	/* The last datagram in either direction. */
	__u64 seen_ns;
	/* When the rate of the opposite direction was last returned. */
	__u64 returned_ns;
	/* R of the routers on the way to the remote end, bytes/ms; zero: not known. */
	__u32 rate;
	/* R of the routers on the way here, to be returned (zero: none), and the R that was returned last. */
	__u32 received;
	__u32 returned;
	__u32 srtt_us;
	/* Questions in a row without an answer, and whether the last one may still get it. */
	__u32 misses;
	__u32 waits;
	__u32 state;
	/* The interface that datagrams leave by; zero before the first. */
	__u32 ifindex;
};

enum fs_udp_counter { FS_UDP_ASKED, FS_UDP_ANSWERED, FS_UDP_LEFT, FS_UDP_PLAIN, FS_UDP_COUNTERS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_udp_settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fs_udp_key);
	__type(value, struct fs_udp_flow);
} flows SEC(".maps");

/* The htb class of a flow, from the daemon that paces where there is no fq. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fs_udp_key);
	__type(value, __u32);
} classes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FS_UDP_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* The kind of packet that this CPU makes of a datagram's copy. */
enum fs_udp_copy { FS_UDP_DATAGRAM, FS_UDP_QUESTION, FS_UDP_RETURN };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} copying SEC(".maps");

#endif
