// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A middlebox that does not know TCP option 253, for the tests of hosts. It acts on IPv4 SYNs, data and acks
 * with the option, as selected by bits 0 to 2 of KINDS. It drops them (HOW 0), replaces the option by padding
 * (1), or by noise except for kind and length (2).
 */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
#define KIND 253
#define SYN 0x02
static long (*bpf_store)(struct __sk_buff *, __u32, const void *, __u32, __u64) = (void *)BPF_FUNC_skb_store_bytes;
static long (*bpf_load)(const struct __sk_buff *, __u32, void *, __u32) = (void *)BPF_FUNC_skb_load_bytes;
static long (*bpf_sum)(struct __sk_buff *, __u32, __u64, __u64, __u64) = (void *)BPF_FUNC_l4_csum_replace;
static __s64 (*bpf_diff)(__be32 *, __u32, __be32 *, __u32, __u32) = (void *)BPF_FUNC_csum_diff;
static __u32 (*bpf_random)(void) = (void *)BPF_FUNC_get_prandom_u32;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Eight bytes of the option, which begins where TCP's header has a whole word. */
static __attribute__((always_inline)) void rewrite(struct __sk_buff *skb, __u32 tcp, __u32 at, int is_head)
{
	__be32 was[2], now[2] = {0x01010101, 0x01010101};
	__s64 sum;

	if (bpf_load(skb, at, was, sizeof(was)))
		return;
	if (HOW == 2) {
		now[0] = bpf_random();
		now[1] = bpf_random();
		if (is_head)
			__builtin_memcpy(now, was, 2);
	}
	sum = bpf_diff(was, sizeof(was), now, sizeof(now), 0);
	if (sum >= 0 && !bpf_store(skb, at, now, sizeof(now), 0))
		bpf_sum(skb, tcp + 16, 0, sum, 0);
}

SEC("tc")
int middlebox(struct __sk_buff *skb)
{
	__u32 tcp = 14 + 20, at = tcp + 20, end, kind;
	__u8 byte = 0, flags = 0, length[2];

	if (bpf_load(skb, 23, &byte, 1) || byte != 6 || bpf_load(skb, tcp + 12, &byte, 1) || bpf_load(skb, tcp + 13, &flags, 1) ||
	    bpf_load(skb, 14 + 2, length, 2))
		return 0;
	end = tcp + (byte >> 4) * 4;
	kind = flags & SYN ? 0 : 14 + (length[0] << 8 | length[1]) > end ? 1 : 2;
	if (!(KINDS >> kind & 1))
		return 0;
	for (int i = 0; i < 40 && at + 2 <= end; i++) {
		__u8 head[2];

		if (bpf_load(skb, at, head, 2))
			return 0;
		if (head[0] == KIND) {
			if (HOW == 0)
				return 2;
			rewrite(skb, tcp, at, 1);
			if (head[1] == 16)
				rewrite(skb, tcp, at + 8, 0);
			return 0;
		}
		if (head[0] != 1 && head[1] < 2)
			return 0;
		at += head[0] == 1 ? 1 : head[1];
	}
	return 0;
}
