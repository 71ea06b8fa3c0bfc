/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sets the ECN bits of data from a VCP sender to 01, low load. No socket program can set these bits: applications and
 * congestion controls cannot write them, and the kernel's own ECN would start with 10. A packet that a router on this
 * host has already stamped, as its option shows, keeps its bits.
 */
#ifndef FLOWSTAMP_HOST_CODE_H
#define FLOWSTAMP_HOST_CODE_H

#include "host_squeezed.h"

FS_INLINE void fs_write_code(struct __sk_buff *skb)
{
	__u32 tcp, at = FS_ETH_HLEN + 1, low = FS_VCP_LOW, mask = 3;
	struct bpf_sock *sk = skb->sk;
	__u8 option[FS_LONG_LEN], byte, is;
	struct fs_flow *flow;

	if (!sk)
		return;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!flow || flow->law != FS_VCP || flow->sender != FS_OBEYING)
		return;
	tcp = fs_tcp_at(skb);
	if (!tcp || bpf_skb_load_bytes(skb, tcp + 12, &byte, 1))
		return;
	/* The kernel writes our option after all others. */
	if (bpf_skb_load_bytes(skb, tcp + (byte >> 4) * 4 - FS_LONG_LEN, option, sizeof(option)))
		return;
	if (option[0] != FS_OPTION_KIND || option[1] != FS_LONG_LEN || fs_get16(option + FS_AT_EXID) != FS_EXID_VCP ||
	    fs_get32(option + FS_AT_STAMP))
		return;
	if (skb->protocol != bpf_htons(FS_ETH_IPV4)) {
		/* The traffic class lies between version and flow label. */
		mask <<= 4;
		low <<= 4;
	}
	if (bpf_skb_load_bytes(skb, at, &byte, 1))
		return;
	is = (byte & ~mask) | low;
	if (is == byte || bpf_skb_store_bytes(skb, at, &is, 1, 0))
		return;
	if (mask == 3)
		bpf_l3_csum_replace(skb, FS_ETH_HLEN + 10, bpf_htons(byte), bpf_htons(is), 2);
}

#endif
