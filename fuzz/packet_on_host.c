/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* packet.h for this machine. Only the first part of a frame is linear until the code pulls more. */
#include <stdbool.h>
#include <linux/types.h>

/* Instead of the kernel's. */
#define FLOWSTAMP_KERNEL_H

struct __sk_buff {
	__u64 data;
	__u64 data_end;
	__u32 len;
	__u16 protocol;
	__u32 gso_segs;
	__u32 gso_size;
};

#define bpf_htons(v) ((__u16)__builtin_bswap16(v))
#define bpf_ntohs(v) ((__u16)__builtin_bswap16(v))
#define BPF_F_MARK_MANGLED_0 (1ULL << 5)

static long bpf_skb_pull_data(struct __sk_buff *skb, __u32 length)
{
	if (length > skb->len)
		return -1;
	if (skb->data_end < skb->data + length)
		skb->data_end = skb->data + length;
	return 0;
}

/* Functions that write are not tested here. */
static long bpf_skb_store_bytes(struct __sk_buff *skb, __u32 at, const void *from, __u32 bytes, __u64 flags)
{
	return -1;
}

static long bpf_skb_load_bytes(struct __sk_buff *skb, __u32 at, void *to, __u32 bytes)
{
	if (at > skb->len || bytes > skb->len - at)
		return -1;
	__builtin_memcpy(to, (const __u8 *)skb->data + at, bytes);
	return 0;
}

static long bpf_l3_csum_replace(struct __sk_buff *skb, __u32 at, __u64 from, __u64 to, __u64 flags)
{
	return -1;
}

static long bpf_l4_csum_replace(struct __sk_buff *skb, __u32 at, __u64 from, __u64 to, __u64 flags)
{
	return -1;
}

#include "packet.h"

bool fs_fuzz_find(const __u8 *frame, __u32 len, __u32 linear, __u32 link_bytes, __u16 protocol, __u16 exid,
		  struct fs_found *found)
{
	struct __sk_buff skb = {
		.data = (__u64)frame,
		.data_end = (__u64)frame + linear,
		.len = len,
		.protocol = protocol,
	};

	return fs_find(&skb, link_bytes, exid, FS_PROTO_TCP, found) || fs_find_quic(&skb, exid, found);
}
