// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One half of a NAT for IPv4, for the tests of hosts. It replaces the address FROM by TO at the source (AT
 * 12, which also selects the source port) or the destination (AT 16), and flips the lowest bit of its port.
 * FROM and TO are numbers whose most significant byte is the address's first.
 */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
#define IP 14
#define TCP (IP + 20)
static long (*bpf_store)(struct __sk_buff *, __u32, const void *, __u32, __u64) = (void *)BPF_FUNC_skb_store_bytes;
static long (*bpf_load)(const struct __sk_buff *, __u32, void *, __u32) = (void *)BPF_FUNC_skb_load_bytes;
static long (*bpf_sum)(struct __sk_buff *, __u32, __u64, __u64, __u64) = (void *)BPF_FUNC_l4_csum_replace;
static long (*bpf_ip_sum)(struct __sk_buff *, __u32, __u64, __u64, __u64) = (void *)BPF_FUNC_l3_csum_replace;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int nat(struct __sk_buff *skb)
{
	__be32 from = __builtin_bswap32(FROM), to = __builtin_bswap32(TO), is;
	__u32 port_at = TCP + (AT == 12 ? 0 : 2);
	__be16 was, port;
	__u8 protocol = 0;

	if (bpf_load(skb, IP + 9, &protocol, 1) || protocol != 6 || bpf_load(skb, IP + AT, &is, 4) || is != from)
		return 0;
	if (bpf_load(skb, port_at, &was, 2))
		return 0;
	port = was ^ __builtin_bswap16(1);
	bpf_sum(skb, TCP + 16, from, to, 4 | BPF_F_PSEUDO_HDR);
	bpf_sum(skb, TCP + 16, was, port, 2);
	bpf_ip_sum(skb, IP + 10, from, to, 4);
	bpf_store(skb, IP + AT, &to, 4, 0);
	bpf_store(skb, port_at, &port, 2, 0);
	return 0;
}
