// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The network element of SCONE (draft-ietf-scone-protocol): lowers the rate signal of QUIC datagrams that an interface sends,
 * and monitors whether their flows follow it. scone.h has the deviations.
 *
 * Advice is the lowest of the interface's rate, the rate of the longest matching prefix of the destination, and the mean of
 * RCP's rate over the last 67 s, but at least a rate that the user may set. A timer samples RCP's rate from the state of the
 * interface's router, once RCP knows an RTT.
 *
 * A flow is an address tuple from which a SCONE packet has come. The table keeps a hash of its addresses and ports under a
 * random key, never the addresses. Each bucket has two places. A flow that finds no free place gets no advice, because the
 * number of its changed datagrams could not be limited.
 *
 * Frames of segmentation offload may have a SCONE packet at the head of each datagram that they become.
 */
#include "packet.h"
#include "scone.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TCX_NEXT -1
#define TCX_DROP 2
#define CLOCK_MONOTONIC 1
#define FS_BUCKETS 32768
#define FS_PLACES 2
/* Datagrams in one frame of segmentation offload: UDP_MAX_SEGMENTS of linux/udp.h. */
#define FS_UDP_SEGMENTS 128
/* SKB_GSO_FRAGLIST of linux/skbuff.h: each datagram keeps its own headers. */
#define FS_GSO_FRAGLIST (1 << 18)
#define FS_SAMPLE_NS (1000000000ULL / FS_SCONE_SAMPLES)

struct fs_scone_config {
	__u64 link_bytes;
	/* Key of the hash of addresses and ports. */
	__u64 key[2];
	/* Offsets of RCP's rate and of its average RTT in the router's state; zero without a law. */
	__u64 offer_at;
	__u64 rtt_at;
	/* The interface's signal; FS_SCONE_UNKNOWN if it has none. */
	__u32 signal;
	/* Whether the map of prefixes has any. */
	__u32 prefixes;
	/* Whether flows that exceed their advice are limited to it. */
	__u32 enforce;
	/* Datagrams of a flow that may be changed at once: FS_SCONE_FIRST, except in tests. */
	__u32 first;
	/* The law's lowest advice: greedy flows can drive its rate to nothing. */
	__u32 least;
	__u32 reserved;
};

const volatile struct fs_scone_config config = {};

struct fs_scone_state {
	struct bpf_timer timer;
	/* The law's advice; FS_SCONE_UNKNOWN without a law. */
	__u32 law_signal;
	__u32 reserved;
	/* The mean that it comes from, in bits/s. */
	__u64 law_rate;
	struct fs_scone_mean mean;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_scone_state);
} state SEC(".maps");

/* The state of the interface's router, if its law gives advice. The loader puts that map here, whose name this must have. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 16);
} link_state SEC(".maps");

/* The subscriber's prefix: address family 4 or 6, then the address. */
struct fs_scone_prefix {
	__u32 bits;
	__u8 version;
	__u8 address[16];
	__u8 zero[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct fs_scone_prefix);
	__type(value, __u32);
} prefixes SEC(".maps");

struct fs_scone_bucket {
	struct bpf_spin_lock lock;
	__u32 reserved;
	struct fs_scone_flow flows[FS_PLACES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FS_BUCKETS);
	__type(key, __u32);
	__type(value, struct fs_scone_bucket);
} buckets SEC(".maps");

/* Counters of one CPU. */
struct fs_scone_counts {
	/* Datagrams with a SCONE packet, and their fates. */
	__u64 packets;
	__u64 lowered;
	/* The signal was as low already. */
	__u64 kept;
	/* Changed in this period often enough. */
	__u64 spared;
	/* No advice applies. */
	__u64 unadvised;
	/* No place for the flow. */
	__u64 untracked;
	/* Flows with SCONE packets, and those found over their advice. */
	__u64 flows;
	__u64 flows_over;
	/* Periods of flows that were judged, and those over their advice. */
	__u64 periods;
	__u64 periods_over;
	/* Frames that enforcement has dropped. */
	__u64 dropped;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_scone_counts);
} counts SEC(".maps");

struct sk_buff {
	unsigned char *head;
	unsigned int end;
} __attribute__((preserve_access_index));

struct skb_shared_info {
	unsigned int gso_type;
} __attribute__((preserve_access_index));

void *bpf_cast_to_kern_ctx(void *) __ksym;
void *bpf_rdonly_cast(const void *, __u32) __ksym;

/* SCONE packets in a frame. */
struct fs_scone_seen {
	__u32 packets;
	/* The highest signal. */
	__u32 signal;
	/* Where the first payload is and where the last one ends, and bytes of each datagram's payload. */
	__u32 at;
	__u32 end;
	__u32 each;
};

/* The signal of the SCONE packet at `at` of a datagram that ends at `end`; -1 if there is none. */
static __noinline int signal_at(struct __sk_buff *skb, __u32 at, __u32 end)
{
	__u8 head[FS_SCONE_MIN_LEN], length;
	__u32 scid;

	if (at + FS_SCONE_MIN_LEN >= end || bpf_skb_load_bytes(skb, at, head, sizeof(head)))
		return -1;
	if (!(head[0] & 0x80) || (head[1] & 0x7f) != FS_SCONE_VERSION >> 24 ||
	    ((__u32)head[2] << 16 | (__u32)head[3] << 8 | head[4]) != (FS_SCONE_VERSION & 0xffffff))
		return -1;
	/* The connection IDs fit, and another packet follows. */
	scid = at + 6 + head[5];
	if (scid >= end || bpf_skb_load_bytes(skb, scid, &length, 1) || scid + 1 + length >= end)
		return -1;
	return (head[0] & 0x3f) << 1 | head[1] >> 7;
}

/* Whether the payload at `at` begins like a SCONE packet. This is all that other datagrams cost. */
FS_INLINE bool may_be_scone(struct __sk_buff *skb, __u32 at)
{
	__u8 *head, bytes[5];

	FS_BOUND(at);
	head = FS_AT(at, 5);
	if (!head) {
		if (bpf_skb_load_bytes(skb, at, bytes, sizeof(bytes)))
			return false;
		return bytes[0] & 0x80 && (bytes[1] & 0x7f) == FS_SCONE_VERSION >> 24;
	}
	return head[0] & 0x80 && (head[1] & 0x7f) == FS_SCONE_VERSION >> 24;
}

/* Finds UDP's header. The whole header is then linear. */
FS_INLINE bool find_udp(struct __sk_buff *skb, struct fs_found *found, __u32 *end)
{
	for (int attempt = 0; attempt < 2; attempt++) {
		__u32 length = skb->len;
		enum fs_seek seek = fs_seek_tcp(skb, config.link_bytes, FS_PROTO_UDP, found, end);

		if (seek == FS_THERE) {
			__u32 at = found->tcp;

			if (!found->shim)
				return false;
			FS_BOUND(at);
			if (FS_AT(at, FS_UDP_LEN))
				return at + FS_UDP_LEN <= *end;
			if (at + FS_UDP_LEN > skb->len)
				return false;
			seek = FS_NOT_LINEAR;
		}
		if (seek != FS_NOT_LINEAR || bpf_skb_pull_data(skb, length < FS_HEADERS_MAX ? length : FS_HEADERS_MAX))
			return false;
	}
	return false;
}

FS_INLINE __u64 mixed(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* A hash of the address tuple, never zero. */
FS_INLINE __u64 tag_of(struct __sk_buff *skb, const struct fs_found *found)
{
	__u32 at = found->network, udp = found->tcp, *ports, *v4;
	__u64 hash = config.key[0], *v6;

	FS_BOUND(udp);
	FS_BOUND(at);
	ports = FS_AT(udp, 4);
	if (!ports)
		return 0;
	if (found->version == 4) {
		v4 = FS_AT(at + 12, 8);
		if (!v4)
			return 0;
		hash = mixed(hash, (__u64)v4[0] << 32 | v4[1]);
	} else {
		v6 = FS_AT(at + 8, 32);
		if (!v6)
			return 0;
		for (int i = 0; i < 4; i++)
			hash = mixed(hash, v6[i]);
	}
	return mixed(mixed(hash, config.key[1]), *ports) | 1;
}

/* Whether the datagrams of a segmentation-offload frame keep headers of their own. */
FS_INLINE bool is_list(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	struct skb_shared_info *info =
		bpf_rdonly_cast((void *)kernel->head + kernel->end, bpf_core_type_id_kernel(struct skb_shared_info));

	return info->gso_type & FS_GSO_FRAGLIST;
}

FS_INLINE __u32 min32(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

FS_INLINE __u32 max32(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

/* Looks for SCONE packets at the head of each datagram of the frame. */
static __noinline void look(struct __sk_buff *skb, struct fs_scone_seen *seen)
{
	__u32 at;

	if (!seen)
		return;
	at = seen->at;
	for (__u32 i = 0; i < FS_UDP_SEGMENTS && at < seen->end; i++) {
		int signal = signal_at(skb, at, min32(at + seen->each, seen->end));

		if (signal >= 0) {
			seen->packets++;
			if (signal > seen->signal)
				seen->signal = signal;
		}
		at += seen->each;
	}
}

/* Lowers the signals of the frame to `advice`. The kernel computes the checksums of later datagrams of the frame. */
static __noinline __u32 lower(struct __sk_buff *skb, const struct fs_scone_seen *seen, __u32 advice)
{
	__u32 lowered = 0, at = seen->at, checksum = seen->at - FS_UDP_LEN + 6;

	for (__u32 i = 0; i < FS_UDP_SEGMENTS && at < seen->end; i++) {
		int signal = signal_at(skb, at, min32(at + seen->each, seen->end));

		if (signal > (int)advice) {
			union {
				__u8 bytes[2];
				__be16 word;
			} was, is;

			if (bpf_skb_load_bytes(skb, at, was.bytes, 2))
				return lowered;
			is.bytes[0] = (was.bytes[0] & 0xc0) | advice >> 1;
			is.bytes[1] = (was.bytes[1] & 0x7f) | (advice & 1) << 7;
			if (bpf_skb_store_bytes(skb, at, is.bytes, 2, 0))
				return lowered;
			/* Does nothing without a checksum. Both bytes are in one word, as the payload's offset is even. */
			if (i == 0)
				bpf_l4_csum_replace(skb, checksum, was.word, is.word, 2 | BPF_F_MARK_MANGLED_0);
			lowered++;
		}
		at += seen->each;
	}
	return lowered;
}

/* Advice of the policy for the datagram's destination. */
static __noinline __u32 policy_of(struct __sk_buff *skb, const struct fs_found *found)
{
	struct fs_scone_prefix key = {};
	__u32 signal = config.signal, *prefix;

	if (!found || !config.prefixes)
		return signal;
	key.version = found->version;
	if (found->version == 4) {
		key.bits = 8 + 32;
		if (bpf_skb_load_bytes(skb, found->network + 16, key.address, 4))
			return signal;
	} else {
		key.bits = 8 + 128;
		if (bpf_skb_load_bytes(skb, found->network + 24, key.address, 16))
			return signal;
	}
	prefix = bpf_map_lookup_elem(&prefixes, &key);
	return prefix ? min32(*prefix, signal) : signal;
}

/* The flow's place in the bucket, or one for it if `create`; null if there is none. */
FS_INLINE struct fs_scone_flow *place_of(struct fs_scone_bucket *bucket, __u64 tag, __u64 now, bool create)
{
	if (bucket->flows[0].tag == tag)
		return &bucket->flows[0];
	if (bucket->flows[1].tag == tag)
		return &bucket->flows[1];
	if (!create)
		return 0;
	for (int i = 0; i < FS_PLACES; i++) {
		struct fs_scone_flow *flow = &bucket->flows[i];

		if (!flow->tag || (__s64)(now - flow->last_ns) > (__s64)FS_SCONE_PERIOD_NS)
			return flow;
	}
	return 0;
}

struct fs_scone_packet {
	struct fs_found found;
	struct fs_scone_seen seen;
	__u64 tag;
};

/* Counts what a packet told about its flow. */
FS_INLINE void count_judgement(struct fs_scone_counts *count, __u32 result, bool is_new)
{
	if (result & FS_SCONE_JUDGED)
		count->periods++;
	if (result & FS_SCONE_OVER)
		count->periods_over++;
	if (result & FS_SCONE_FIRST_OVER)
		count->flows_over++;
	if (is_new)
		count->flows++;
}

/* Advises, counts and polices a packet of a flow, or one that begins a flow. */
static __noinline int flow_packet(struct __sk_buff *skb, struct fs_scone_packet *packet)
{
	/* A tick late at most, and much cheaper than the exact time. */
	__u64 now = bpf_ktime_get_coarse_ns(), bytes;
	__u32 zero = 0, index = packet->tag >> 8 & (FS_BUCKETS - 1), policy = FS_SCONE_UNKNOWN;
	__u32 advice = FS_SCONE_UNKNOWN, result = 0, lowered = 0, packets = packet->seen.packets;
	struct fs_scone_bucket *bucket = bpf_map_lookup_elem(&buckets, &index);
	struct fs_scone_counts *count = bpf_map_lookup_elem(&counts, &zero);
	struct fs_scone_state *law = bpf_map_lookup_elem(&state, &zero);
	bool is_new = false, tracked = false, may_write = false, admitted = true;
	struct fs_scone_flow *flow;

	if (!bucket || !count || !law)
		return TCX_NEXT;
	bytes = skb->len > packet->seen.at ? skb->len - packet->seen.at : 0;
	if (packets)
		policy = policy_of(skb, &packet->found);
	bpf_spin_lock(&bucket->lock);
	flow = place_of(bucket, packet->tag, now, packets > 0);
	if (flow) {
		tracked = true;
		is_new = flow->tag != packet->tag;
		if (is_new)
			fs_scone_begin(flow, packet->tag, now, policy);
		else if (packets)
			flow->policy = policy;
		advice = min32(flow->policy, law->law_signal);
		result = fs_scone_count(flow, now, bytes, advice);
		if (config.enforce && flow->over)
			admitted = fs_scone_admit(flow, now, bytes, fs_scone_limit(flow));
		if (admitted && advice < packet->seen.signal)
			may_write = fs_scone_may_write(flow, now, advice, config.first);
	}
	bpf_spin_unlock(&bucket->lock);
	count_judgement(count, result, is_new);
	if (!admitted) {
		count->dropped++;
		return TCX_DROP;
	}
	if (!packets)
		return TCX_NEXT;
	count->packets += packets;
	if (may_write)
		lowered = lower(skb, &packet->seen, advice);
	if (!tracked)
		count->untracked += packets;
	else if (advice >= FS_SCONE_UNKNOWN)
		count->unadvised += packets;
	else if (may_write || advice >= packet->seen.signal)
		count->kept += packets - lowered;
	else
		count->spared += packets;
	count->lowered += lowered;
	return TCX_NEXT;
}

/*
 * Counts a packet without SCONE packet of a flow in the middle of its period, without the lock. A packet that another CPU
 * counts under the lock at the same time may be lost, so that the flow seems lighter than it is.
 */
FS_INLINE bool count_fast(struct __sk_buff *skb, struct fs_scone_flow *flow, __u32 at)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	__u32 zero = 0;
	struct fs_scone_state *law = bpf_map_lookup_elem(&state, &zero);

	if (!law || (config.enforce && flow->over) || (__s64)(now - flow->since_ns) >= (__s64)FS_SCONE_PERIOD_NS ||
	    min32(flow->policy, law->law_signal) > flow->most)
		return false;
	__sync_fetch_and_add(&flow->bytes, skb->len > at ? skb->len - at : 0);
	flow->last_ns = now;
	return true;
}

SEC("tcx/egress")
int fs_scone(struct __sk_buff *skb)
{
	struct fs_scone_packet packet = {};
	struct fs_scone_bucket *bucket;
	struct fs_scone_flow *flow = 0;
	__u32 end = 0, at, index;
	__u16 *length;

	if (!find_udp(skb, &packet.found, &end))
		return TCX_NEXT;
	packet.tag = tag_of(skb, &packet.found);
	at = packet.found.tcp;
	FS_BOUND(at);
	if (may_be_scone(skb, at + FS_UDP_LEN) || skb->gso_size) {
		length = FS_AT(at + 4, 2);
		if (!length)
			return TCX_NEXT;
		packet.seen.at = at + FS_UDP_LEN;
		packet.seen.end = min32(min32(end, skb->len), at + bpf_ntohs(*length));
		packet.seen.each = skb->gso_size && !is_list(skb) ? skb->gso_size : 0x10000;
		look(skb, &packet.seen);
	}
	index = packet.tag >> 8 & (FS_BUCKETS - 1);
	bucket = bpf_map_lookup_elem(&buckets, &index);
	if (!bucket || !packet.tag)
		return TCX_NEXT;
	if (!packet.seen.packets) {
		if (bucket->flows[0].tag == packet.tag)
			flow = &bucket->flows[0];
		else if (bucket->flows[1].tag == packet.tag)
			flow = &bucket->flows[1];
		if (!flow || count_fast(skb, flow, at + FS_UDP_LEN))
			return TCX_NEXT;
	}
	packet.seen.at = at + FS_UDP_LEN;
	return flow_packet(skb, &packet);
}

/* Adds the router's rate now to the mean. */
FS_INLINE void sample(struct fs_scone_state *law)
{
	__u32 zero = 0;
	void *link = bpf_map_lookup_elem(&link_state, &zero);

	/* RCP's rate says nothing before it knows an RTT. */
	if (!link || !*(volatile __u64 *)(link + config.rtt_at))
		return;
	/* bytes/ms */
	law->law_rate = fs_scone_mean_of(&law->mean, *(volatile __u32 *)(link + config.offer_at) * 8000ULL);
	law->law_signal = max32(fs_scone_at_most(law->law_rate), config.least);
}

static int on_timer(void *map, int *key, struct fs_scone_state *law)
{
	sample(law);
	bpf_timer_start(&law->timer, FS_SAMPLE_NS, 0);
	return 0;
}

/* Runs once, through BPF_PROG_RUN, if a law gives advice. */
SEC("tc")
int fs_start(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct fs_scone_state *law = bpf_map_lookup_elem(&state, &zero);

	if (!law)
		return 1;
	sample(law);
	if (bpf_timer_init(&law->timer, &state, CLOCK_MONOTONIC))
		return 2;
	if (bpf_timer_set_callback(&law->timer, on_timer))
		return 3;
	return bpf_timer_start(&law->timer, FS_SAMPLE_NS, 0) ? 4 : 0;
}
