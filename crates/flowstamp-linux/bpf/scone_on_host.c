// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* SCONE's scale, mean and monitoring compiled for the host, for tests/scone_equality.rs. */
#include "scone.h"

#define FS_HOST __attribute__((visibility("default")))

__u64 fs_host_scone_rate(__u32 signal);
__u32 fs_host_scone_at_most(__u64 rate);
__u64 fs_host_scone_mean(struct fs_scone_mean *m, __u64 sample);
void fs_host_scone_begin(struct fs_scone_flow *flow, __u64 now, __u32 policy);
__u32 fs_host_scone_count(struct fs_scone_flow *flow, __u64 now, __u64 bytes, __u32 advice);
bool fs_host_scone_may_write(struct fs_scone_flow *flow, __u64 now, __u32 advice);
bool fs_host_scone_admit(struct fs_scone_flow *flow, __u64 now, __u64 bytes, __u64 rate);

FS_HOST __u64 fs_host_scone_rate(__u32 signal)
{
	return fs_scone_rate(signal);
}

FS_HOST __u32 fs_host_scone_at_most(__u64 rate)
{
	return fs_scone_at_most(rate);
}

FS_HOST __u64 fs_host_scone_mean(struct fs_scone_mean *m, __u64 sample)
{
	return fs_scone_mean_of(m, sample);
}

FS_HOST void fs_host_scone_begin(struct fs_scone_flow *flow, __u64 now, __u32 policy)
{
	fs_scone_begin(flow, 1, now, policy);
}

FS_HOST __u32 fs_host_scone_count(struct fs_scone_flow *flow, __u64 now, __u64 bytes, __u32 advice)
{
	return fs_scone_count(flow, now, bytes, advice);
}

FS_HOST bool fs_host_scone_may_write(struct fs_scone_flow *flow, __u64 now, __u32 advice)
{
	return fs_scone_may_write(flow, now, advice, FS_SCONE_FIRST);
}

FS_HOST bool fs_host_scone_admit(struct fs_scone_flow *flow, __u64 now, __u64 bytes, __u64 rate)
{
	return fs_scone_admit(flow, now, bytes, rate);
}
