// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A minimal router for the tests of hosts. It lowers RCP's rate to at most RATE_BYTES_PER_MS. It lowers XCP's
 * change to at most CHANGE_BYTES_PER_S, and to zero for a packet without an RTT. VCP's load is always low and
 * its t_rho 20 ms. It drops one full packet in DROP_ONE_IN; none if that is 0. It includes no
 * headers but the kernel's and option.h, so that clang alone can compile it where the tests run.
 */
#include <linux/bpf.h>
#include "option.h"

#define T_RHO_US 20000
#define SEC(name) __attribute__((section(name), used))
static long (*bpf_store)(struct __sk_buff *, __u32, const void *, __u32, __u64) = (void *)BPF_FUNC_skb_store_bytes;
static long (*bpf_load)(const struct __sk_buff *, __u32, void *, __u32) = (void *)BPF_FUNC_skb_load_bytes;
static long (*bpf_sum)(struct __sk_buff *, __u32, __u64, __u64, __u64) = (void *)BPF_FUNC_l4_csum_replace;
static __u32 (*bpf_random)(void) = (void *)BPF_FUNC_get_prandom_u32;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int stamper(struct __sk_buff *skb)
{
	__u8 byte = 0, option[FS_LONG_LEN];
	__u32 at, end, tcp;

	if (DROP_ONE_IN && skb->len > 1000 && bpf_random() % DROP_ONE_IN == 0)
		return 2;
	if (skb->protocol == __builtin_bswap16(0x0800)) {
		if (bpf_load(skb, 23, &byte, 1) || byte != 6)
			return 0;
		tcp = 14 + 20;
	} else {
		if (skb->protocol != __builtin_bswap16(0x86dd) || bpf_load(skb, 20, &byte, 1) || byte != 6)
			return 0;
		tcp = 14 + 40;
	}
	if (bpf_load(skb, tcp + 12, &byte, 1))
		return 0;
	end = tcp + (byte >> 4) * 4;
	at = tcp + 20;
	for (int i = 0; i < 40 && at + FS_LONG_LEN <= end; i++) {
		__u32 then, now, most;
		__u8 head[2];

		if (bpf_load(skb, at, head, 2))
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
		if (bpf_load(skb, at, option, sizeof(option)))
			return 0;
		__builtin_memcpy(&then, option + FS_AT_STAMP, 4);
		now = __builtin_bswap32(then);
		if (option[FS_AT_EXID] == FS_EXID_VCP >> 8) {
			if (now < T_RHO_US)
				now = T_RHO_US;
		} else if (option[FS_AT_EXID] == FS_EXID_RCP >> 8) {
			if (now > RATE_BYTES_PER_MS)
				now = RATE_BYTES_PER_MS;
		} else {
			most = option[FS_AT_RTT] == 0xff && option[FS_AT_RTT + 1] == 0xff ? 0 : CHANGE_BYTES_PER_S;
			if ((__s32)now > (__s32)most)
				now = most;
		}
		now = __builtin_bswap32(now);
		if (now != then) {
			bpf_sum(skb, tcp + 16, then, now, 4);
			bpf_store(skb, at + FS_AT_STAMP, &now, 4, 0);
		}
		return 0;
	}
	return 0;
}
