// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ABC compiled for the host, for tests/abc_equality.rs. */
#include "abc.h"

#define FS_HOST __attribute__((visibility("default")))

__u64 fs_host_abc_left(const struct fs_abc_params *p, const struct fs_abc *s, __u64 input_bytes, __u64 interval_ns, __u64 queue_bytes);
__u64 fs_host_abc_dequeue(const struct fs_abc_params *p, __u64 dequeue_q16, __u64 bytes, __u64 interval_ns);
__u64 fs_host_abc_share(const struct fs_abc_params *p, __u64 dequeue_q16, __u64 queue_bytes);
void fs_host_abc_measure(const struct fs_abc_params *p, struct fs_abc *s, const struct fs_abc_sums *sums, __u64 interval_ns,
			 __u64 queue_bytes);
bool fs_host_abc_stays(__s64 *tokens_q16, __u64 token_limit_q16, __u64 share_q16, __u32 packets);

FS_HOST __u64 fs_host_abc_left(const struct fs_abc_params *p, const struct fs_abc *s, __u64 input_bytes, __u64 interval_ns, __u64 queue_bytes)
{
	return fs_abc_left(p, s, input_bytes, interval_ns, queue_bytes);
}

FS_HOST __u64 fs_host_abc_dequeue(const struct fs_abc_params *p, __u64 dequeue_q16, __u64 bytes, __u64 interval_ns)
{
	return fs_abc_dequeue_q16(p, dequeue_q16, bytes, interval_ns);
}

FS_HOST __u64 fs_host_abc_share(const struct fs_abc_params *p, __u64 dequeue_q16, __u64 queue_bytes)
{
	return fs_abc_share_q16(p, dequeue_q16, queue_bytes);
}

FS_HOST void fs_host_abc_measure(const struct fs_abc_params *p, struct fs_abc *s, const struct fs_abc_sums *sums, __u64 interval_ns,
				 __u64 queue_bytes)
{
	fs_abc_measure(p, s, sums, interval_ns, queue_bytes);
}

FS_HOST bool fs_host_abc_stays(__s64 *tokens_q16, __u64 token_limit_q16, __u64 share_q16, __u32 packets)
{
	return fs_abc_stays(tokens_q16, token_limit_q16, share_q16, packets);
}
