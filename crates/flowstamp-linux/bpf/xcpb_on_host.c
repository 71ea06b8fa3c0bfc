// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* XCP-b compiled for the host, for tests/xcpb_equality.rs. */
#include "xcpb.h"

void fs_host_xcp_b_decide(const struct fs_xcp_params *x, const struct fs_xcp_b_params *p, struct fs_xcp *s, struct fs_xcp_b *b,
			  const struct fs_xcp_sums *sums, const struct fs_xcp_b_sums *came, __u64 interval_ns,
			  __u64 queue_bytes, __u64 queue_frames);

__attribute__((visibility("default"))) void
fs_host_xcp_b_decide(const struct fs_xcp_params *x, const struct fs_xcp_b_params *p, struct fs_xcp *s, struct fs_xcp_b *b,
		     const struct fs_xcp_sums *sums, const struct fs_xcp_b_sums *came, __u64 interval_ns, __u64 queue_bytes,
		     __u64 queue_frames)
{
	fs_xcp_b_decide(x, p, s, b, sums, came, interval_ns, queue_bytes, queue_frames);
}
