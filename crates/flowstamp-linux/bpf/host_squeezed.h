/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Acks with three SACK blocks and timestamps fill all 40 bytes of options, so the kernel cannot reserve room for ours.
 * The option's short form replaces the last SACK block. The next ack repeats that block to the sender, but a flow
 * without echoes for a whole recovery would stall.
 *
 *   01 01 08 0a t t t t t t t t | 01 01 05 len block block [block -> fd 08 exid echo]
 */
#ifndef FLOWSTAMP_HOST_SQUEEZED_H
#define FLOWSTAMP_HOST_SQUEEZED_H

#include "host_flow.h"

#define FS_ETH_HLEN 14
#define FS_ETH_IPV4 0x0800
#define FS_ETH_IPV6 0x86dd
#define FS_SACK_KIND 5
/* Header length with more than 32 of 40 option bytes: four SACK blocks, or three and timestamps. */
#define FS_SQUEEZED_HLEN (20 + 36)
#define FS_SACK_BLOCK 8

/*
 * Loads the four bytes before the SACK blocks from `at`. The kernel writes SACK last, after the timestamps if there are
 * any.
 */
FS_INLINE int fs_sack_at(struct __sk_buff *skb, __u32 at, __u8 *words)
{
	return !bpf_skb_load_bytes(skb, at, words, 4) && words[0] == 1 && words[1] == 1 && words[2] == FS_SACK_KIND;
}

/*
 * Offset of the TCP header, zero if there is none. Packets built by this host have no IPv6 extension headers, and IP
 * options only on request.
 */
FS_INLINE __u32 fs_tcp_at(struct __sk_buff *skb)
{
	__u8 byte;

	if (skb->protocol == bpf_htons(FS_ETH_IPV4)) {
		if (bpf_skb_load_bytes(skb, FS_ETH_HLEN, &byte, 1) || byte != 0x45)
			return 0;
		if (bpf_skb_load_bytes(skb, FS_ETH_HLEN + 9, &byte, 1) || byte != 6)
			return 0;
		return FS_ETH_HLEN + 20;
	}
	if (skb->protocol != bpf_htons(FS_ETH_IPV6) || bpf_skb_load_bytes(skb, FS_ETH_HLEN + 6, &byte, 1) || byte != 6)
		return 0;
	return FS_ETH_HLEN + 40;
}

FS_INLINE void fs_unsqueeze(struct __sk_buff *skb)
{
	__u32 tcp, sack, last, doff;
	struct bpf_sock *sk = skb->sk;
	__u8 words[4], old[12], new[12];
	struct fs_flow *flow;
	__s64 sum;

	if (!sk)
		return;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!flow || !flow->echo)
		return;
	tcp = fs_tcp_at(skb);
	if (!tcp)
		return;
	if (bpf_skb_load_bytes(skb, tcp + 12, words, 1))
		return;
	/*
	 * A shorter header had room for our option. A full header has none, and the kernel then does not ask for the option.
	 */
	doff = (words[0] >> 4) * 4;
	if (doff < FS_SQUEEZED_HLEN)
		return;
	sack = tcp + 20;
	if (!fs_sack_at(skb, sack, words)) {
		sack += 12;
		if (!fs_sack_at(skb, sack, words))
			return;
	}
	/* At least one block must stay, and the blocks must end the header. */
	if (words[3] < 2 + 2 * FS_SACK_BLOCK || sack + 2 + words[3] != tcp + doff)
		return;
	last = tcp + doff - FS_SACK_BLOCK;
	__builtin_memcpy(old, words, 4);
	if (bpf_skb_load_bytes(skb, last, old + 4, 8))
		return;
	__builtin_memcpy(new, words, 4);
	new[3] -= FS_SACK_BLOCK;
	new[4] = FS_OPTION_KIND;
	new[5] = FS_SHORT_LEN;
	fs_put16(new + 4 + FS_AT_EXID, fs_exid(flow->law));
	fs_put32(new + 4 + FS_AT_ECHO, flow->echo);
	sum = bpf_csum_diff((__be32 *)old, 12, (__be32 *)new, 12, 0);
	if (sum < 0 || bpf_skb_store_bytes(skb, sack, new, 4, 0) || bpf_skb_store_bytes(skb, last, new + 4, 8, 0))
		return;
	/* The kernel skips this if the device computes the checksum or the packet needs none. */
	bpf_l4_csum_replace(skb, tcp + 16, 0, sum, 0);
	fs_count(FS_COUNT_FIXED_UP);
}

#endif
