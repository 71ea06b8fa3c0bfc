/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long a peer goes without the option whose path drops it (host_blackhole.h): no kernel types here, so that the same text is
 * compiled for tests on the host.
 *
 * The kernel treats TCP Fast Open so, tcp_fastopen_active_disable() in net/ipv4/tcp_fastopen.c: an hour
 * (tcp_fastopen_blackhole_timeout_sec, before it was off by default), twice as long each time that it is found again, 2^6 times
 * at most. Here (that / this / because):
 * 1. A whole namespace / a peer's address / a path is one to a peer.
 * 2. From an hour on / from a minute on, so that 2^6 times are an hour / two time-outs in a row are what any outage of 0.6 s does.
 * 3. Found again at any time until Fast Open has worked / within as long again as the last time / nothing tells that it has worked.
 */
#ifndef FLOWSTAMP_SHUN_H
#define FLOWSTAMP_SHUN_H

#include <linux/types.h>

#define FS_SHUN_NS (60 * 1000000000ull)
#define FS_SHUN_DOUBLINGS_MAX 6

struct fs_shunned {
	__u64 until_ns;
	__u32 doublings;
	__u32 reserved;
};

/* The path was found to drop the option. All zeros is a peer that nothing is known of. */
static inline __attribute__((always_inline)) void fs_shun_until(struct fs_shunned *s, __u64 now_ns)
{
	__u32 most = FS_SHUN_DOUBLINGS_MAX, was = s->doublings < most ? s->doublings : most;

	/* By a connection that was there before. */
	if (now_ns < s->until_ns)
		return;
	if (!s->until_ns || now_ns - s->until_ns >= FS_SHUN_NS << was)
		s->doublings = 0;
	else
		s->doublings = was < most ? was + 1 : most;
	s->until_ns = now_ns + (FS_SHUN_NS << s->doublings);
}

#endif
