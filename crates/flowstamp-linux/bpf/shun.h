/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long packets to a peer omit the option after its path has dropped it (host_blackhole.h). No kernel types here, so
 * the tests compile the same text on the host.
 *
 * The kernel does the same for TCP Fast Open in tcp_fastopen_active_disable() in net/ipv4/tcp_fastopen.c. It starts
 * with an hour (tcp_fastopen_blackhole_timeout_sec, before the default became off) and doubles with each detection, up
 * to 2^6 times. Differences here (kernel / here / because):
 * 1. Disables a whole namespace / one peer address / a path leads to one peer.
 * 2. Starts at an hour / at a minute, so that the maximum of 2^6 times is about an hour / any outage of 0.6 s causes
 *    two timeouts in a row.
 * 3. Doubles on any detection until Fast Open has worked / on a detection within the previous duration after its end /
 *    nothing tells that the option has worked.
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

/* Extends the ban after a path was found to drop the option. All zeros means a peer without history. */
static inline __attribute__((always_inline)) void fs_shun_until(struct fs_shunned *s, __u64 now_ns)
{
	__u32 most = FS_SHUN_DOUBLINGS_MAX, was = s->doublings < most ? s->doublings : most;

	/* Found by a connection that was open before the ban. */
	if (now_ns < s->until_ns)
		return;
	if (!s->until_ns || now_ns - s->until_ns >= FS_SHUN_NS << was)
		s->doublings = 0;
	else
		s->doublings = was < most ? was + 1 : most;
	s->until_ns = now_ns + (FS_SHUN_NS << s->doublings);
}

#endif
