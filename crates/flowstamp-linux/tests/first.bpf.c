// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Drops one in LOSE_ONE_IN of the first FIRST packets of each IPv4 connection: SYNs, SYN-ACKs, the first data
 * and acks.
 */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
#define CONNECTIONS 8192
#define FIRST 8
static long (*bpf_load)(const struct __sk_buff *, __u32, void *, __u32) = (void *)BPF_FUNC_skb_load_bytes;
static void *(*bpf_lookup)(void *, const void *) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_update)(void *, const void *, const void *, __u64) = (void *)BPF_FUNC_map_update_elem;
static __u32 (*bpf_random)(void) = (void *)BPF_FUNC_get_prandom_u32;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	int (*type)[BPF_MAP_TYPE_LRU_HASH];
	int (*max_entries)[CONNECTIONS];
	__u32 *key;
	__u32 *value;
} packets SEC(".maps");

SEC("tc")
int first(struct __sk_buff *skb)
{
	__u32 ports, one = 1, *count;
	__u8 protocol = 0;

	if (bpf_load(skb, 23, &protocol, 1) || protocol != 6 || bpf_load(skb, 14 + 20, &ports, sizeof(ports)))
		return 0;
	count = bpf_lookup(&packets, &ports);
	if (!count)
		bpf_update(&packets, &ports, &one, BPF_ANY);
	else if (*count >= FIRST)
		return 0;
	else
		__sync_fetch_and_add(count, 1);
	return bpf_random() % LOSE_ONE_IN == 0 ? 2 : 0;
}
