// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Drops IPv4 SYN-ACKs until LOSE_UNTIL_NS on the monotonic clock. */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
#define SYN_ACK 0x12
static long (*bpf_load)(const struct __sk_buff *, __u32, void *, __u32) = (void *)BPF_FUNC_skb_load_bytes;
static __u64 (*bpf_now)(void) = (void *)BPF_FUNC_ktime_get_ns;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int synacks(struct __sk_buff *skb)
{
	__u8 flags = 0, protocol = 0;

	if (bpf_load(skb, 23, &protocol, 1) || protocol != 6 || bpf_load(skb, 14 + 20 + 13, &flags, 1))
		return 0;
	return (flags & SYN_ACK) == SYN_ACK && bpf_now() < LOSE_UNTIL_NS ? 2 : 0;
}
