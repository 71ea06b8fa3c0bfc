/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Passes each frame of an interface to the lab's path, with its arrival time as metadata in front. */
#include "kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

SEC("xdp")
int fs_path(struct xdp_md *ctx)
{
	__u64 *came_ns;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*came_ns)))
		return XDP_ABORTED;
	came_ns = (void *)(unsigned long)ctx->data_meta;
	if ((void *)(came_ns + 1) > (void *)(unsigned long)ctx->data)
		return XDP_ABORTED;
	*came_ns = bpf_ktime_get_ns();
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_DROP);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
