// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the heavy flows of one interface behind its router, and isolates those that do not obey: into a class of the
 * root's queueing discipline if one is given, else to half the rate that they had.
 *
 * A flow's packets nearly always come by one CPU; where two count at once, an update may be lost, and the flow seems
 * lighter than it is.
 */
#include "kernel.h"
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

/* Until then a flow is being tested. Where two begin at once, both are; no harm but more of a dent. */
__u64 testing_until_ns = 0;

struct fs_flow_key {
	__u8 from[16];
	__u8 to[16];
	__be16 from_port;
	__be16 to_port;
	__u32 version;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fs_flow_key);
	__type(value, struct fs_police_flow);
} flows SEC(".maps");

FS_INLINE struct fs_police_flow *find_flow(struct __sk_buff *skb, const struct fs_found *found)
{
	struct fs_police_flow *flow, fresh = {};
	struct fs_flow_key key = {.version = found->version};

	if (bpf_skb_load_bytes(skb, found->tcp, &key.from_port, 4))
		return 0;
	if (found->version == 4) {
		if (bpf_skb_load_bytes(skb, found->network + 12, key.from, 4) ||
		    bpf_skb_load_bytes(skb, found->network + 16, key.to, 4))
			return 0;
	} else if (bpf_skb_load_bytes(skb, found->network + 8, key.from, 32)) {
		return 0;
	}
	flow = bpf_map_lookup_elem(&flows, &key);
	if (flow)
		return flow;
	bpf_map_update_elem(&flows, &key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, &key);
}

SEC("tcx/egress")
int fs_police(struct __sk_buff *skb)
{
	struct fs_police_params params = config.params;
	struct fs_police_view view = {};
	__u64 now, rtt_us, told, phase;
	struct fs_police_flow *flow;
	struct fs_found found = {};
	__u32 bytes, carried, packets;
	__be32 was, stamp;
	__u8 *option;

	if (!fs_find(skb, config.link_bytes, config.exid, &found))
		return TCX_NEXT;
	option = FS_AT(found.option, FS_LONG_LEN);
	if (!option)
		return TCX_NEXT;
	__builtin_memcpy(&was, option + FS_AT_STAMP, sizeof(was));
	rtt_us = (__u16)option[FS_AT_RTT] << 8 | option[FS_AT_RTT + 1];
	rtt_us = rtt_us == FS_RTT_UNKNOWN ? 0 : fs_rtt_unpack(rtt_us);
	flow = find_flow(skb, &found);
	if (!flow)
		return TCX_NEXT;
	now = bpf_ktime_get_ns();
	bytes = skb->wire_len;
	packets = fs_segments(skb);
	carried = bpf_ntohl(was);
	view.now_ns = now;
	view.bytes = bytes;
	view.rtt_us = rtt_us;
	view.told = config.exid == FS_EXID_RCP ? carried * 1000ULL : 0;
	phase = flow->phase;
	view.free = now >= testing_until_ns || phase != FS_WATCH;
	fs_police_packet(&params, flow, &view);
	if (phase == FS_WATCH && flow->phase == FS_HOLD)
		testing_until_ns = now + fs_police_test_ns(flow);
	if (flow->phase == FS_ISOLATE) {
		if (config.class) {
			skb->priority = config.class;
			return TCX_NEXT;
		}
		return fs_police_admit(flow, now, bytes) ? TCX_NEXT : TCX_DROP;
	}
	if (flow->phase == FS_WATCH)
		return TCX_NEXT;
	if (config.exid == FS_EXID_RCP) {
		told = fs_min(fs_max(fs_police_told(flow) / 1000, 1), 0xffffffff);
		if (told >= carried)
			return TCX_NEXT;
		stamp = bpf_htonl((__u32)told);
	} else {
		__s64 change = fs_police_change(flow, now, bytes / packets);

		if (change >= (__s32)carried)
			return TCX_NEXT;
		stamp = bpf_htonl((__u32)(__s32)change);
	}
	fs_write_stamp(skb, &found, was, stamp);
	return TCX_NEXT;
}
