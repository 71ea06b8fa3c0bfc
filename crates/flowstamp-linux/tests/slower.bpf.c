// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Puts one full packet in 16 into class 1:2 of the queueing discipline that follows, for the tests of hosts.
 */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
static __u32 (*bpf_random)(void) = (void *)BPF_FUNC_get_prandom_u32;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int slower(struct __sk_buff *skb)
{
	if (skb->len > 1000 && bpf_random() % 16 == 0)
		skb->priority = 0x10002;
	return -1;
}
