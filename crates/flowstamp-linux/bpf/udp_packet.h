/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads and changes packets with RCP's shim: inserts it, and makes questions, answers and returns from datagrams. */
#ifndef FLOWSTAMP_UDP_PACKET_H
#define FLOWSTAMP_UDP_PACKET_H

#include "udp_state.h"

/* A packet's headers up to IP's end. */
struct fs_datagram {
	/* Length of the IP packet, and the offset of what follows IP's header. */
	__u32 length;
	__u32 next_at;
	__u8 protocol;
	__u8 source[16];
	__u8 destination[16];
	__u8 version;
};

FS_INLINE void count(__u32 which)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &which);

	if (counter)
		__sync_fetch_and_add(counter, 1);
}

/* Reads Ethernet's and IP's headers. False for fragments, and for packets with IPv4 options. */
FS_INLINE bool read_ip(struct __sk_buff *skb, struct fs_datagram *d)
{
	__u8 ip[40];
	__be16 type;

	if (bpf_skb_load_bytes(skb, ETH_HLEN - 2, &type, sizeof(type)))
		return false;
	if (type == bpf_htons(0x0800)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, ip, 20) || ip[0] != 0x45 || (ip[6] & 0x3f) || ip[7])
			return false;
		d->length = (__u16)ip[2] << 8 | ip[3];
		d->next_at = ETH_HLEN + 20;
		d->protocol = ip[9];
		d->version = 4;
		__builtin_memcpy(d->source, ip + 12, 4);
		__builtin_memcpy(d->destination, ip + 16, 4);
	} else if (type == bpf_htons(0x86dd)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, ip, 40) || ip[0] >> 4 != 6)
			return false;
		d->length = 40 + ((__u16)ip[4] << 8 | ip[5]);
		d->next_at = ETH_HLEN + 40;
		d->protocol = ip[6];
		d->version = 6;
		__builtin_memcpy(d->source, ip + 8, 16);
		__builtin_memcpy(d->destination, ip + 24, 16);
	} else {
		return false;
	}
	return ETH_HLEN + d->length <= skb->len;
}

/* Writes IP's length and protocol. `flags` as for bpf_skb_store_bytes: IPv4's header sums to zero before and after. */
FS_INLINE void write_ip(struct __sk_buff *skb, const struct fs_datagram *d, __u32 length, __u8 protocol, __u64 flags)
{
	__be16 was, is = bpf_htons(length);

	if (d->version == 6) {
		is = bpf_htons(length - 40);
		bpf_skb_store_bytes(skb, ETH_HLEN + 4, &is, 2, flags);
		bpf_skb_store_bytes(skb, ETH_HLEN + 6, &protocol, 1, flags);
		return;
	}
	was = bpf_htons(d->length);
	bpf_skb_store_bytes(skb, ETH_HLEN + 2, &is, 2, 0);
	bpf_l3_csum_replace(skb, ETH_HLEN + 10, was, is, 2);
	bpf_skb_store_bytes(skb, ETH_HLEN + 9, &protocol, 1, 0);
	bpf_l3_csum_replace(skb, ETH_HLEN + 10, bpf_htons(d->protocol), bpf_htons(protocol), 2);
}

FS_INLINE bool is_listed(const struct fs_udp_settings *set, __be16 port)
{
	__u32 number = bpf_ntohs(port);

	return set->ports[number >> 6 & 1023] >> (number & 63) & 1;
}

/* Names the flow of a packet that this host sends, or receives. `ports` are UDP's source and destination. */
FS_INLINE void name_flow(struct __sk_buff *skb, const struct fs_datagram *d, const __be16 *ports, bool sends,
			 struct fs_udp_key *key)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	key->netns = kernel->dev->nd_net.net->net_cookie;
	__builtin_memcpy(key->local, sends ? d->source : d->destination, 16);
	__builtin_memcpy(key->remote, sends ? d->destination : d->source, 16);
	key->local_port = ports[sends ? 0 : 1];
	key->remote_port = ports[sends ? 1 : 0];
	key->version = d->version;
}

/* The flow's state, new if necessary. */
FS_INLINE struct fs_udp_flow *flow_of(const struct fs_udp_key *key)
{
	struct fs_udp_flow *flow = bpf_map_lookup_elem(&flows, key), fresh = {};

	if (flow)
		return flow;
	bpf_map_update_elem(&flows, key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, key);
}

/* Inserts the shim between IP and UDP. False if the packet must leave as it is. */
FS_INLINE bool add_shim(struct __sk_buff *skb, const struct fs_datagram *d, const struct fs_shim *shim)
{
	__u32 mtu = 0;

	if (skb->gso_size || bpf_check_mtu(skb, 0, &mtu, FS_SHIM_LEN, 0))
		return false;
	if (bpf_skb_adjust_room(skb, FS_SHIM_LEN, BPF_ADJ_ROOM_NET, 0))
		return false;
	bpf_skb_store_bytes(skb, d->next_at, shim, sizeof(*shim), 0);
	write_ip(skb, d, d->length + FS_SHIM_LEN, FS_PROTO_RCP, 0);
	return true;
}

/* Fills in the shim of a sender. */
FS_INLINE void fill(struct fs_shim *shim, const struct fs_udp_settings *set, const struct fs_udp_flow *flow)
{
	__u32 ms = (flow->srtt_us + 500) / 1000;

	__builtin_memset(shim, 0, sizeof(*shim));
	if (set->rate_max != FS_UNBOUNDED)
		shim->rate = bpf_htonl(set->rate_max);
	shim->rtt_ms = bpf_htons(!flow->srtt_us ? FS_SHIM_RTT_UNKNOWN : ms < 1 ? 1 : ms > 0xfffe ? 0xfffe : ms);
	shim->protocol = FS_PROTO_UDP;
}

/* The UDP checksum of a header without payload: complete, or what the device or kernel will complete. */
FS_INLINE __u16 header_sum(const struct fs_datagram *d, const __u8 *udp, bool complete)
{
	__u8 bytes[16 + 16 + 4 + 4] = {};
	__s64 sum;

	__builtin_memcpy(bytes, d->source, 16);
	__builtin_memcpy(bytes + 16, d->destination, 16);
	bytes[33] = FS_PROTO_UDP;
	bytes[35] = UDP_HLEN;
	if (complete) {
		/* Ports, and the length a second time. */
		__builtin_memcpy(bytes + 36, udp, 4);
		bytes[35] = 2 * UDP_HLEN;
	}
	sum = bpf_csum_diff(0, 0, (__be32 *)bytes, sizeof(bytes), 0);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	if (!complete)
		return sum;
	sum = ~sum & 0xffff;
	return sum ? sum : 0xffff;
}

/*
 * Turns a packet around and writes its shim. Ethernet's and IP's addresses and UDP's ports change places, which changes
 * no checksum.
 */
FS_INLINE bool turn_around(struct __sk_buff *skb, const struct fs_datagram *d, const __be16 *udp, const struct fs_shim *shim)
{
	__be16 was, is, ports[2] = {udp[1], udp[0]};
	__u8 ethernet[12], turned[32], hops[2];

	if (bpf_skb_load_bytes(skb, 0, ethernet, 12))
		return false;
	__builtin_memcpy(turned, ethernet + 6, 6);
	__builtin_memcpy(turned + 6, ethernet, 6);
	bpf_skb_store_bytes(skb, 0, turned, 12, 0);
	if (d->version == 4) {
		__builtin_memcpy(turned, d->destination, 4);
		__builtin_memcpy(turned + 4, d->source, 4);
		bpf_skb_store_bytes(skb, ETH_HLEN + 12, turned, 8, 0);
		if (bpf_skb_load_bytes(skb, ETH_HLEN + 8, hops, 2))
			return false;
		__builtin_memcpy(&was, hops, 2);
		hops[0] = FS_HOPS;
		__builtin_memcpy(&is, hops, 2);
		bpf_skb_store_bytes(skb, ETH_HLEN + 8, hops, 1, 0);
		bpf_l3_csum_replace(skb, ETH_HLEN + 10, was, is, 2);
	} else {
		__builtin_memcpy(turned, d->destination, 16);
		__builtin_memcpy(turned + 16, d->source, 16);
		bpf_skb_store_bytes(skb, ETH_HLEN + 8, turned, 32, 0);
		hops[0] = FS_HOPS;
		bpf_skb_store_bytes(skb, ETH_HLEN + 7, hops, 1, 0);
	}
	bpf_skb_store_bytes(skb, d->next_at, shim, sizeof(*shim), 0);
	bpf_skb_store_bytes(skb, d->next_at + FS_SHIM_LEN, ports, 4, 0);
	return true;
}

/* Fills in the shim of an answer or of a return. */
FS_INLINE void fill_answer(struct fs_shim *shim, __u32 rate, __u8 protocol)
{
	__builtin_memset(shim, 0, sizeof(*shim));
	shim->reverse = bpf_htonl(rate);
	shim->rtt_ms = bpf_htons(FS_SHIM_RTT_UNKNOWN);
	shim->protocol = protocol;
}

/* Cuts the payload, and mends UDP's header, which is at `at`. */
FS_INLINE bool cut_payload(struct __sk_buff *skb, const struct fs_datagram *d, __u32 at, __u8 *udp)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	__u16 sum, length = bpf_htons(UDP_HLEN);

	if (bpf_skb_change_tail(skb, at + UDP_HLEN, 0) || bpf_skb_load_bytes(skb, at, udp, UDP_HLEN))
		return false;
	sum = header_sum(d, udp, BPF_CORE_READ_BITFIELD(kernel, ip_summed) != CHECKSUM_PARTIAL);
	bpf_skb_store_bytes(skb, at + 4, &length, 2, 0);
	bpf_skb_store_bytes(skb, at + 6, &sum, 2, 0);
	return true;
}

/* Makes a question from a copied datagram: the same headers, the shim, and no payload. */
static __noinline int make_question(struct __sk_buff *skb)
{
	struct fs_datagram d = {};
	struct fs_udp_key key = {};
	struct fs_udp_settings *set;
	struct fs_udp_flow *flow;
	struct fs_shim shim;
	__u32 zero = 0, length;
	__be16 udp[UDP_HLEN / 2];

	set = bpf_map_lookup_elem(&settings, &zero);
	if (!set || !read_ip(skb, &d) || !cut_payload(skb, &d, d.next_at, (__u8 *)udp))
		return TCX_DROP;
	length = d.next_at - ETH_HLEN + UDP_HLEN;
	write_ip(skb, &d, length, FS_PROTO_UDP, 0);
	d.length = length;
	name_flow(skb, &d, udp, true, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return TCX_DROP;
	fill(&shim, set, flow);
	/* Waiting behind the flow's datagrams would lengthen the RTT. */
	skb->priority = 0;
	return add_shim(skb, &d, &shim) ? TCX_NEXT : TCX_DROP;
}

/* Makes a return from a copied datagram that has arrived. */
static __noinline int make_return(struct __sk_buff *skb)
{
	struct fs_datagram d = {};
	struct fs_udp_key key = {};
	struct fs_udp_flow *flow;
	struct fs_shim shim;
	__be16 udp[UDP_HLEN / 2];

	if (!read_ip(skb, &d) || !cut_payload(skb, &d, d.next_at + FS_SHIM_LEN, (__u8 *)udp))
		return TCX_DROP;
	write_ip(skb, &d, d.next_at - ETH_HLEN + FS_SHIM_LEN + UDP_HLEN, FS_PROTO_RCP, 0);
	name_flow(skb, &d, udp, false, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return TCX_DROP;
	fill_answer(&shim, flow->received, FS_PROTO_NONE);
	return turn_around(skb, &d, udp, &shim) ? TCX_NEXT : TCX_DROP;
}

#endif
