// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A middlebox that clears the ECN bits of IPv4 packets, for the tests of hosts. */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
static long (*bpf_store)(struct __sk_buff *, __u32, const void *, __u32, __u64) = (void *)BPF_FUNC_skb_store_bytes;
static long (*bpf_load)(const struct __sk_buff *, __u32, void *, __u32) = (void *)BPF_FUNC_skb_load_bytes;
static long (*bpf_sum)(struct __sk_buff *, __u32, __u64, __u64, __u64) = (void *)BPF_FUNC_l3_csum_replace;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int bleach(struct __sk_buff *skb)
{
	__u8 was, is;

	if (skb->protocol != __builtin_bswap16(0x0800) || bpf_load(skb, 15, &was, 1))
		return 0;
	is = was & ~3;
	if (is != was && !bpf_store(skb, 15, &is, 1, 0))
		bpf_sum(skb, 14 + 10, __builtin_bswap16(was), __builtin_bswap16(is), 2);
	return 0;
}
