// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the heavy flows of one interface after its router (fs_police), and isolates flows that do not follow the law
 * before the router (fs_gate). Isolated flows go to a class of the root queueing discipline if one is configured.
 * Otherwise, they are limited to a rate.
 *
 * One CPU handles nearly all packets of a flow. If two CPUs count at once, an update may be lost, and the flow seems
 * lighter than it is.
 *
 * Spoofed packets count as a flow's only if they arrive on the same interface and their sequence numbers are in the
 * same 64 MiB region of the 4 GiB space. A guess hits that region once in 64 times. A flow that moves into the next
 * region keeps its state. An attacker who sees the flow's packets can still spoof them (docs/security.md).
 */
#include "qdisc.h"
#include "packet.h"
#include "police.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TCX_NEXT -1
#define TCX_DROP 2

struct fs_police_config {
	__u64 exid;
	__u64 link_bytes;
	/* skb->priority of isolated flows, major << 16 | minor; zero for the rate limit. */
	__u64 class;
	struct fs_police_params params;
};

const volatile struct fs_police_config config = {};

/* Maximum number of concurrent tests per source. */
#define FS_TESTS 2
/* Region of a sequence number. */
#define FS_REGION(seq) ((seq) >> 26)
#define FS_REGIONS 64

struct fs_flow_key {
	__u8 from[16];
	__u8 to[16];
	__be16 from_port;
	__be16 to_port;
	__u32 version;
	__u32 came_by;
	__u32 region;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fs_flow_key);
	__type(value, struct fs_police_flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_police_link);
} link_state SEC(".maps");

/* Number of packets that the interface's root queueing discipline has dropped. */
FS_INLINE __u64 link_drops(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	struct Qdisc *root = bpf_rdonly_cast(kernel->dev->qdisc, bpf_core_type_id_kernel(struct Qdisc));

	return root->qstats.drops;
}

/* The RTT that an option carries, in us; zero if none. */
FS_INLINE __u64 named_rtt(const __u8 *option)
{
	__u16 rtt = (__u16)option[FS_AT_RTT] << 8 | option[FS_AT_RTT + 1];

	return rtt == FS_RTT_UNKNOWN ? 0 : fs_rtt_unpack(rtt);
}

/*
 * End times of the current tests of a source's flows. If two CPUs start a test at once, both run, which costs only some
 * extra throughput.
 */
struct fs_source {
	__u64 until_ns[FS_TESTS];
};

struct fs_source_key {
	__u8 from[16];
	__u32 version;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fs_source_key);
	__type(value, struct fs_source);
} sources SEC(".maps");

FS_INLINE bool read_key(struct __sk_buff *skb, const struct fs_found *found, struct fs_flow_key *key)
{
	__be32 seq;

	key->version = found->version;
	key->came_by = skb->ingress_ifindex;
	if (bpf_skb_load_bytes(skb, found->tcp, &key->from_port, 4) ||
	    bpf_skb_load_bytes(skb, found->tcp + 4, &seq, sizeof(seq)))
		return false;
	if (found->version == 4) {
		if (bpf_skb_load_bytes(skb, found->network + 12, key->from, 4) ||
		    bpf_skb_load_bytes(skb, found->network + 16, key->to, 4))
			return false;
	} else if (bpf_skb_load_bytes(skb, found->network + 8, key->from, 32)) {
		return false;
	}
	key->region = FS_REGION(bpf_ntohl(seq));
	return true;
}

FS_INLINE struct fs_police_flow *find_flow(struct __sk_buff *skb, const struct fs_found *found, struct fs_flow_key *key)
{
	struct fs_police_flow *flow, *before, fresh = {};

	if (!read_key(skb, found, key))
		return 0;
	flow = bpf_map_lookup_elem(&flows, key);
	if (flow)
		return flow;
	key->region = (key->region - 1) % FS_REGIONS;
	before = bpf_map_lookup_elem(&flows, key);
	key->region = (key->region + 1) % FS_REGIONS;
	if (before)
		fresh = *before;
	bpf_map_update_elem(&flows, key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, key);
}

/* A free slot for a test that starts now; null if the source has too many tests. */
FS_INLINE __u64 *free_test(const struct fs_flow_key *flow, __u64 now)
{
	struct fs_source_key key = {.version = flow->version};
	struct fs_source *source, fresh = {};

	__builtin_memcpy(key.from, flow->from, sizeof(key.from));
	source = bpf_map_lookup_elem(&sources, &key);
	if (!source) {
		bpf_map_update_elem(&sources, &key, &fresh, BPF_NOEXIST);
		source = bpf_map_lookup_elem(&sources, &key);
	}
	if (!source)
		return 0;
	for (__u32 i = 0; i < FS_TESTS; i++)
		if (now >= source->until_ns[i])
			return &source->until_ns[i];
	return 0;
}

/*
 * Returns the value that replaces `word`, the RTT and the packets in flight, before the router reads it. An isolated
 * flow carries no RTT, so its packets only count as input. Values of other flows are bounded to what is plausible.
 */
FS_INLINE __u32 believed(const struct fs_police_flow *flow, const struct fs_police_link *link, __u64 rtt_us, __u64 bytes, __u32 word)
{
	__u64 most, least;

	if (fs_police_isolated(flow))
		return word | (__u32)FS_RTT_UNKNOWN << 16;
	if (rtt_us == 0)
		return word;
	most = fs_police_most_rtt_us(flow, link);
	if (rtt_us > most) {
		rtt_us = most;
		word = (word & 0xffff) | (__u32)fs_rtt_pack(most) << 16;
	}
	if (config.exid != FS_EXID_XCP)
		return word;
	least = fs_min(fs_police_least_flight(flow, rtt_us, bytes), 0xffff);
	return (word & 0xffff) < least ? (word & 0xffff0000) | (__u32)least : word;
}

/*
 * Runs before the router. It moves an isolated flow's packets to their class, or drops those above the flow's rate
 * limit. It also bounds what the other packets claim.
 */
SEC("tcx/egress")
int fs_gate(struct __sk_buff *skb)
{
	struct fs_police_params params = config.params;
	__u64 now = bpf_ktime_get_ns(), rtt_us;
	struct fs_police_flow *flow;
	struct fs_police_link *link;
	struct fs_found found = {};
	struct fs_flow_key key = {};
	__u32 zero = 0, packets;
	bool isolated;
	__be32 was, is;
	__u8 *option;

	if (!fs_find(skb, config.link_bytes, config.exid, FS_PROTO_TCP, &found) || !read_key(skb, &found, &key))
		return TCX_NEXT;
	flow = bpf_map_lookup_elem(&flows, &key);
	link = bpf_map_lookup_elem(&link_state, &zero);
	if (!flow || !link)
		return TCX_NEXT;
	option = FS_AT(found.option, FS_LONG_LEN);
	if (!option)
		return TCX_NEXT;
	__builtin_memcpy(&was, option + FS_AT_RTT, sizeof(was));
	rtt_us = named_rtt(option);
	packets = fs_segments(skb);
	fs_police_look(link, now, link_drops(skb));
	isolated = fs_police_isolated(flow);
	if (!(isolated && config.class) && !fs_police_admit(&params, flow, now, skb->wire_len, link)) {
		if (!config.class) {
			/* Programs after this one do not see the packet, so it is counted here. */
			flow->held += packets - 1;
			fs_police_count(flow, now, skb->wire_len);
			flow->named_ns = fs_max(flow->named_ns, rtt_us * 1000);
			return TCX_DROP;
		}
		isolated = true;
	}
	if (isolated && config.class)
		skb->priority = config.class;
	is = bpf_htonl(believed(flow, link, rtt_us, skb->wire_len / fs_max(packets, 1), bpf_ntohl(was)));
	if (is != was) {
		flow->named_ns = fs_max(flow->named_ns, rtt_us * 1000);
		fs_write_word(skb, &found, FS_AT_RTT, was, is);
	}
	return TCX_NEXT;
}

SEC("tcx/egress")
int fs_police(struct __sk_buff *skb)
{
	struct fs_police_params params = config.params;
	struct fs_police_view view = {};
	__u64 now, rtt_us, told, phase;
	struct fs_police_flow *flow;
	struct fs_flow_key key = {};
	struct fs_found found = {};
	struct fs_police_link *link;
	__u64 *test = 0;
	__u32 bytes, carried, packets, zero = 0;
	__be32 was, stamp;
	__u8 *option;

	if (!fs_find(skb, config.link_bytes, config.exid, FS_PROTO_TCP, &found))
		return TCX_NEXT;
	option = FS_AT(found.option, FS_LONG_LEN);
	if (!option)
		return TCX_NEXT;
	__builtin_memcpy(&was, option + FS_AT_STAMP, sizeof(was));
	rtt_us = named_rtt(option);
	flow = find_flow(skb, &found, &key);
	link = bpf_map_lookup_elem(&link_state, &zero);
	if (!flow || !link)
		return TCX_NEXT;
	now = bpf_ktime_get_ns();
	bytes = skb->wire_len;
	packets = fs_segments(skb);
	carried = bpf_ntohl(was);
	view.now_ns = now;
	view.bytes = bytes;
	view.rtt_us = rtt_us;
	view.told = config.exid == FS_EXID_RCP ? carried * 1000ULL : 0;
	view.drops = link_drops(skb);
	phase = flow->phase;
	/* Looks for a free test only when a watch ends, not for each packet. */
	if (phase == FS_WATCH && now >= flow->until_ns)
		test = free_test(&key, now);
	view.free = test != 0;
	fs_police_packet(&params, flow, &view);
	if (test && phase == FS_WATCH && flow->phase == FS_HOLD)
		*test = now + fs_police_test_ns(flow);
	if (flow->since_ns == now && fs_police_proven(flow))
		fs_police_witness(&params, link, now, flow->passed_ns);
	if (flow->phase == FS_WATCH && !fs_police_bound(flow) && !fs_police_isolated(flow))
		return TCX_NEXT;
	if (config.exid == FS_EXID_RCP) {
		told = fs_min(fs_max(fs_police_told(&params, flow) / 1000, 1), 0xffffffff);
		if (told >= carried)
			return TCX_NEXT;
		stamp = bpf_htonl((__u32)told);
	} else {
		__s64 change = fs_police_change(&params, flow, now, bytes / packets);

		/*
		 * Never exactly zero: a sender without feedback for seconds would conclude that the router is gone and leave its law
		 * (FS_UNTOLD_ROUNDS_MAX).
		 */
		if (change == 0 && (fs_police_isolated(flow) || fs_police_bound(flow)))
			change = -1;
		if (change >= (__s32)carried)
			return TCX_NEXT;
		stamp = bpf_htonl((__u32)(__s32)change);
	}
	fs_write_stamp(skb, &found, was, stamp);
	return TCX_NEXT;
}
