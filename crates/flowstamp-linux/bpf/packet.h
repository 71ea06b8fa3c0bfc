/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Finds the stamp in a frame: Ethernet with up to two VLAN tags or none, IPv4 or IPv6 with extension headers, and then
 * TCP with the option, the shim (shim.h), or UDP with a stamp packet of QUIC (crates/flowstamp-wire/src/quic_stamp.rs).
 */
#ifndef FLOWSTAMP_PACKET_H
#define FLOWSTAMP_PACKET_H

#include "kernel.h"
#include "option.h"
#include "shim.h"

#define FS_INLINE static inline __attribute__((always_inline))

/* EtherTypes in big endian, as frames carry them. */
#define FS_ETH_IPV4 bpf_htons(0x0800)
#define FS_ETH_IPV6 bpf_htons(0x86dd)
#define FS_ETH_VLAN bpf_htons(0x8100)
#define FS_ETH_QINQ bpf_htons(0x88a8)

#define FS_PROTO_TCP 6
#define FS_PROTO_UDP 17
#define FS_UDP_LEN 8

/* Stamp packets: the first half of their version, the longest connection ID, and the stamp behind the IDs. */
#define FS_QUIC_MARK 0x4653
#define FS_QUIC_MAX_ID 20
#define FS_QUIC_STAMP_LEN 8

/* Upper bound of all headers up to the end of TCP's options: 14 + 8 + 40 + 8 * 40 + 60. */
#define FS_HEADERS_MAX 448

/* Offsets of headers from the frame's first byte. */
struct fs_found {
	__u32 network;
	__u32 tcp;
	__u32 option;
	__u8 version;
	/* The shim follows IP, and `option` is where it starts. */
	__u8 shim;
	/* A segment without data that carries the option's short form: an ack. */
	__u8 ack;
	/* The protocol at `tcp`, whatever it is; zero if the search ended before it. */
	__u8 protocol;
	/* A stamp packet of QUIC. `option` is where the option would start that had this stamp, and `tcp` is UDP's header. */
	__u8 quic;
};

/* Result of a search for headers. */
enum fs_seek { FS_ABSENT, FS_THERE, FS_NOT_LINEAR };

/*
 * Leaves an offset below 512 unchanged, and gives the verifier one bound for it. Without it, the verifier would check
 * the rest once for each path to this point.
 */
#ifdef __bpf__
#define FS_BOUND(offset) asm volatile("%0 &= 511" : "+r"(offset))
#else
#define FS_BOUND(offset) ((offset) &= 511)
#endif

/* A pointer to `bytes` bytes at `at`, or null if they are not linear. */
#define FS_AT(at, bytes) \
	({ \
		void *p_ = (void *)(long)skb->data + (at); \
		p_ + (bytes) > (void *)(long)skb->data_end ? (void *)0 : p_; \
	})

/* Returns if the bytes are missing: FS_NOT_LINEAR if the packet has them beyond its linear part. */
#define FS_NEED(pointer, at, bytes) \
	if (!(pointer)) \
		return (at) + (bytes) <= skb->len ? FS_NOT_LINEAR : FS_ABSENT

/* Finds the network header, behind up to two VLAN tags, and its EtherType. */
FS_INLINE enum fs_seek fs_seek_network(struct __sk_buff *skb, __u32 link_bytes, __u32 *at, __u16 *type)
{
	*at = link_bytes;
	*type = skb->protocol;
	if (link_bytes > 0) {
		__u16 *field = FS_AT(12, 2);

		FS_NEED(field, 12, 2);
		*type = *field;
		for (int i = 0; i < 2; i++) {
			if (*type != FS_ETH_VLAN && *type != FS_ETH_QINQ)
				break;
			field = FS_AT(*at + 2, 2);
			FS_NEED(field, *at + 2, 2);
			*type = *field;
			*at += 4;
		}
	}
	return FS_THERE;
}

/*
 * Finds the IPv4 or IPv6 header and, behind it, the header of TCP or of the protocol `shim`. `*end` is where the packet
 * ends.
 */
FS_INLINE enum fs_seek fs_seek_tcp(struct __sk_buff *skb, __u32 link_bytes, __u8 shim, struct fs_found *found, __u32 *end)
{
	__u32 at;
	__u16 type;
	__u8 next;
	enum fs_seek seek = fs_seek_network(skb, link_bytes, &at, &type);

	if (seek != FS_THERE)
		return seek;
	found->network = at;
	if (type == FS_ETH_IPV4) {
		__u8 *ip = FS_AT(at, 20);
		__u32 header;
		__u16 total;

		FS_NEED(ip, at, 20);
		header = (ip[0] & 0xf) * 4;
		/* A later fragment has no TCP header. */
		if (ip[0] >> 4 != 4 || header < 20 || (ip[6] & 0x1f) || ip[7])
			return FS_ABSENT;
		found->version = 4;
		found->protocol = ip[9];
		found->tcp = at + header;
		if (ip[9] != FS_PROTO_TCP && ip[9] != shim)
			return FS_ABSENT;
		total = (__u16)ip[2] << 8 | ip[3];
		/* Zero in packets that are too long for the field and not segmented yet. */
		*end = total ? at + total : skb->len;
		found->shim = ip[9] != FS_PROTO_TCP;
		return FS_THERE;
	}
	if (type != FS_ETH_IPV6)
		return FS_ABSENT;
	{
		__u8 *ip = FS_AT(at, 40);
		__u16 payload;

		FS_NEED(ip, at, 40);
		if (ip[0] >> 4 != 6)
			return FS_ABSENT;
		payload = (__u16)ip[4] << 8 | ip[5];
		*end = payload ? at + 40 + payload : skb->len;
		next = ip[6];
		found->version = 6;
		at += 40;
	}
	for (int i = 0; i < 6 && next != FS_PROTO_TCP && next != shim; i++) {
		__u8 *header = FS_AT(at, 8);

		FS_NEED(header, at, 8);
		if (next == 44) { /* fragment */
			if (header[2] || header[3] & 0xf8)
				return FS_ABSENT;
			at += 8;
		} else if (next == 0 || next == 43 || next == 60) { /* hop by hop, routing, destination */
			at += (header[1] + 1) * 8;
		} else {
			found->protocol = next;
			found->tcp = at;
			return FS_ABSENT;
		}
		next = header[0];
		/* Longer headers do not occur in practice. */
		if (at > FS_HEADERS_MAX - 80)
			return FS_ABSENT;
		FS_BOUND(at);
	}
	if (next != FS_PROTO_TCP && next != shim)
		return FS_ABSENT;
	found->shim = next != FS_PROTO_TCP;
	found->tcp = at;
	return FS_THERE;
}

/* Finds the long form of the option `exid` in the TCP header. Notes a short form in a segment without data. */
FS_INLINE enum fs_seek fs_seek_option(struct __sk_buff *skb, __u16 exid, struct fs_found *found, __u32 packet_end)
{
	__u32 at = found->tcp, end;
	__u8 *tcp;

	FS_BOUND(at);
	tcp = FS_AT(at, 20);
	FS_NEED(tcp, at, 20);
	end = at + (tcp[12] >> 4) * 4;
	at += 20;
	if (end > packet_end)
		return FS_ABSENT;
	for (int i = 0; i < 25; i++) {
		__u8 *option;

		/* A shorter rest has no room for either form. The check also keeps the offset within FS_BOUND. */
		if (at + FS_SHORT_LEN > end)
			return FS_ABSENT;
		FS_BOUND(at);
		option = FS_AT(at, FS_SHORT_LEN);
		FS_NEED(option, at, FS_SHORT_LEN);
		if (option[0] == 1) {
			at += 1;
			continue;
		}
		if (option[0] == 0 || option[1] < 2)
			return FS_ABSENT;
		if (option[0] == FS_OPTION_KIND && option[2] == exid >> 8 && option[3] == (exid & 0xff)) {
			if (option[1] == FS_SHORT_LEN) {
				found->ack = end == packet_end;
				return FS_ABSENT;
			}
			if (option[1] == FS_LONG_LEN && at + FS_LONG_LEN <= end) {
				option = FS_AT(at, FS_LONG_LEN);
				FS_NEED(option, at, FS_LONG_LEN);
				found->option = at;
				return FS_THERE;
			}
		}
		at += option[1];
	}
	return FS_ABSENT;
}

/* Checks that the whole shim is in the packet. */
FS_INLINE enum fs_seek fs_seek_shim(struct __sk_buff *skb, struct fs_found *found, __u32 packet_end)
{
	__u32 at = found->tcp;

	FS_BOUND(at);
	if (at + FS_SHIM_LEN > packet_end)
		return FS_ABSENT;
	FS_NEED(FS_AT(at, FS_SHIM_LEN), at, FS_SHIM_LEN);
	found->option = at;
	return FS_THERE;
}

/*
 * Finds the option, or the shim of protocol `shim`, in any frame. Makes more of the frame linear if necessary. With
 * FS_PROTO_TCP as `shim`, looks only for the option.
 */
FS_INLINE bool fs_find(struct __sk_buff *skb, __u32 link_bytes, __u16 exid, __u8 shim, struct fs_found *found)
{
	for (int attempt = 0; attempt < 2; attempt++) {
		__u32 end = 0, length = skb->len;
		enum fs_seek seek = fs_seek_tcp(skb, link_bytes, shim, found, &end);

		if (seek == FS_THERE)
			seek = found->shim ? fs_seek_shim(skb, found, end) : fs_seek_option(skb, exid, found, end);
		if (seek != FS_NOT_LINEAR)
			return seek == FS_THERE;
		if (bpf_skb_pull_data(skb, length < FS_HEADERS_MAX ? length : FS_HEADERS_MAX))
			return false;
	}
	return false;
}

/*
 * Finds the stamp packet of the protocol `exid` at the head of a datagram, after a search that has found no TCP and no shim.
 * Connection IDs have at most FS_QUIC_MAX_ID bytes, and another packet follows.
 */
FS_INLINE bool fs_find_quic(struct __sk_buff *skb, __u16 exid, struct fs_found *found)
{
	__u8 head[FS_UDP_LEN + 6], length;
	__u32 at = found->tcp, end;

	if (found->protocol != FS_PROTO_UDP || bpf_skb_load_bytes(skb, at, head, sizeof(head)))
		return false;
	if (!(head[8] & 0x80) || ((__u32)head[9] << 8 | head[10]) != FS_QUIC_MARK ||
	    ((__u32)head[11] << 8 | head[12]) != exid || head[13] > FS_QUIC_MAX_ID)
		return false;
	end = at + ((__u32)head[4] << 8 | head[5]);
	at += sizeof(head) + head[13];
	if (bpf_skb_load_bytes(skb, at, &length, 1) || length > FS_QUIC_MAX_ID)
		return false;
	at += 1 + length;
	if (at + FS_QUIC_STAMP_LEN >= end || end > skb->len)
		return false;
	found->option = at - FS_AT_STAMP;
	found->shim = 0;
	found->quic = 1;
	return true;
}

/* The stamp of the option or of a stamp packet: the word that routers write, and RTT and last field as encoded. */
struct fs_carried {
	__be32 value;
	__u16 rtt;
	__u16 last;
};

/*
 * Reads the stamp. False if it is outside the frame's linear part. The two branches differ in the kind of memory, so the
 * verifier allows no common code for them.
 */
FS_INLINE bool fs_stamp_carried(struct __sk_buff *skb, const struct fs_found *found, struct fs_carried *carried)
{
	__u8 *option;

	if (found->quic) {
		__u8 stamp[FS_QUIC_STAMP_LEN];

		if (bpf_skb_load_bytes(skb, found->option + FS_AT_STAMP, stamp, sizeof(stamp)))
			return false;
		__builtin_memcpy(&carried->value, stamp, sizeof(carried->value));
		carried->rtt = (__u16)stamp[4] << 8 | stamp[5];
		carried->last = (__u16)stamp[6] << 8 | stamp[7];
		return true;
	}
	option = FS_AT(found->option, FS_LONG_LEN);
	if (!option)
		return false;
	__builtin_memcpy(&carried->value, option + FS_AT_STAMP, sizeof(carried->value));
	carried->rtt = (__u16)option[FS_AT_RTT] << 8 | option[FS_AT_RTT + 1];
	carried->last = (__u16)option[FS_AT_FLAGS] << 8 | option[FS_AT_FLAGS + 1];
	return true;
}

/* Reads RCP's rate and the RTT that a packet carries, also in the shim. False if they are outside the frame's linear part. */
FS_INLINE bool fs_rcp_carried(struct __sk_buff *skb, const struct fs_found *found, __be32 *rate, __u64 *rtt_us)
{
	struct fs_carried carried;
	struct fs_shim *shim;

	if (found->shim) {
		shim = FS_AT(found->option, FS_SHIM_LEN);
		if (!shim)
			return false;
		*rate = shim->rate;
		*rtt_us = bpf_ntohs(shim->rtt_ms) * 1000ULL;
		return true;
	}
	if (!fs_stamp_carried(skb, found, &carried))
		return false;
	*rate = carried.value;
	*rtt_us = fs_rtt_unpack(carried.rtt);
	return true;
}

/*
 * Replaces the four bytes `was` at `offset` in the option by `is` and updates the checksum of TCP or UDP. A wrong checksum
 * stays wrong, and a UDP checksum of zero stays zero.
 */
FS_INLINE void fs_write_word(struct __sk_buff *skb, const struct fs_found *found, __u32 offset, __be32 was, __be32 is)
{
	__u32 at = found->option + offset;

	if (bpf_skb_store_bytes(skb, at, &is, sizeof(is), 0))
		return;
	/* At an odd offset from the header's start, each byte is in the other half of its checksum word. */
	if ((at - found->tcp) & 1) {
		was = (was & 0x00ff00ff) << 8 | (was >> 8 & 0x00ff00ff);
		is = (is & 0x00ff00ff) << 8 | (is >> 8 & 0x00ff00ff);
	}
	/* This helper also handles checksums that the device will compute. */
	if (found->quic)
		bpf_l4_csum_replace(skb, found->tcp + 6, was, is, BPF_F_MARK_MANGLED_0 | sizeof(is));
	else
		bpf_l4_csum_replace(skb, found->tcp + 16, was, is, sizeof(is));
}

FS_INLINE void fs_write_stamp(struct __sk_buff *skb, const struct fs_found *found, __be32 was, __be32 stamp)
{
	fs_write_word(skb, found, FS_AT_STAMP, was, stamp);
}

/* Finds the IPv4 or IPv6 header. Makes more of the frame linear if necessary. */
FS_INLINE bool fs_find_ip(struct __sk_buff *skb, __u32 link_bytes, struct fs_found *found)
{
	for (int attempt = 0; attempt < 2; attempt++) {
		__u32 at, length = skb->len;
		__u16 type;
		enum fs_seek seek = fs_seek_network(skb, link_bytes, &at, &type);

		if (seek == FS_THERE) {
			__u8 *first = FS_AT(at, 1);

			if (first) {
				found->network = at;
				found->version = *first >> 4;
				return (type == FS_ETH_IPV4 && found->version == 4) || (type == FS_ETH_IPV6 && found->version == 6);
			}
			if (at + 1 <= length)
				seek = FS_NOT_LINEAR;
		}
		if (seek != FS_NOT_LINEAR || bpf_skb_pull_data(skb, length < FS_HEADERS_MAX ? length : FS_HEADERS_MAX))
			return false;
	}
	return false;
}

/* ECN bits of a packet whose headers have been found. */
FS_INLINE __u32 fs_ecn(struct __sk_buff *skb, const struct fs_found *found)
{
	/* IPv4: version and length, then DSCP and ECN. IPv6: version, traffic class, flow label. */
	__u8 byte;

	if (bpf_skb_load_bytes(skb, found->network + 1, &byte, 1))
		return 0;
	return byte >> (found->version == 4 ? 0 : 4) & 3;
}

/* Sets the ECN bits to `code`. DSCP stays, and the IPv4 checksum is updated. */
FS_INLINE void fs_write_ecn(struct __sk_buff *skb, const struct fs_found *found, __u32 code)
{
	__u32 at = found->network + 1, shift = found->version == 4 ? 0 : 4;
	__u8 was, is;

	if (bpf_skb_load_bytes(skb, at, &was, 1))
		return;
	is = (was & ~(3 << shift)) | code << shift;
	if (bpf_skb_store_bytes(skb, at, &is, 1, 0))
		return;
	if (found->version == 4)
		bpf_l3_csum_replace(skb, found->network + 10, bpf_htons(was), bpf_htons(is), 2);
}

/* Number of packets that this frame becomes on the wire. */
FS_INLINE __u32 fs_segments(struct __sk_buff *skb)
{
	__u32 segments = skb->gso_segs;

	if (segments == 0 && skb->gso_size > 0) /* from a virtual machine, not counted yet */
		segments = (skb->len + skb->gso_size - 1) / skb->gso_size;
	return segments < 1 ? 1 : segments > 0xffff ? 0xffff : segments;
}

#endif
