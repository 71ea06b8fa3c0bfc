// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A router of one thought for the tests of hosts: RCP's rate is at most RATE_BYTES_PER_MS, XCP's change at most
 * CHANGE_BYTES_PER_S, and none for a packet without an RTT. IPv4 in Ethernet; the option anywhere. One packet in DROP_ONE_IN is lost, if not 0.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "option.h"

#ifndef DROP_ONE_IN
#define DROP_ONE_IN 0
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int stamper(struct __sk_buff *skb)
{
	__u8 byte = 0, option[16];
	__u32 at, end, tcp = 14 + 20;

	if (DROP_ONE_IN && skb->len > 1000 && bpf_get_prandom_u32() % DROP_ONE_IN == 0)
		return 2;
	if (bpf_skb_load_bytes(skb, 14, &byte, 1) || byte != 0x45 || bpf_skb_load_bytes(skb, 23, &byte, 1) || byte != 6)
		return 0;
	if (bpf_skb_load_bytes(skb, tcp + 12, &byte, 1))
		return 0;
	end = tcp + (byte >> 4) * 4;
	at = tcp + 20;
	for (int i = 0; i < 40 && at + 16 <= end; i++) {
		__u8 head[2];
		__be32 now, then;
		__u16 exid;

		if (bpf_skb_load_bytes(skb, at, head, 2))
			return 0;
		if (head[0] == 1) {
			at++;
			continue;
		}
		if (head[1] < 2)
			return 0;
		if (head[0] != FS_OPTION_KIND || head[1] != FS_LONG_LEN) {
			at += head[1];
			continue;
		}
		if (bpf_skb_load_bytes(skb, at, option, 16))
			return 0;
		exid = option[2] << 8 | option[3];
		__builtin_memcpy(&then, option + FS_AT_STAMP, 4);
		now = then;
		if (exid == FS_EXID_RCP && then && bpf_ntohl(then) > RATE_BYTES_PER_MS)
			now = bpf_htonl(RATE_BYTES_PER_MS);
		if (exid == FS_EXID_XCP) {
			__s32 most = option[FS_AT_RTT] == 0xff && option[FS_AT_RTT + 1] == 0xff ? 0 : CHANGE_BYTES_PER_S;

			if ((__s32)bpf_ntohl(then) > most)
				now = bpf_htonl(most);
		}
		if (now != then) {
			bpf_l4_csum_replace(skb, tcp + 16, then, now, 4);
			bpf_skb_store_bytes(skb, at + FS_AT_STAMP, &now, 4, 0);
		}
		return 0;
	}
	return 0;
}
