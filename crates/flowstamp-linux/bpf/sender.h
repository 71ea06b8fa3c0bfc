/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What senders compute, in whole numbers: no kernel types here, so that the same text is compiled for tests on the host.
 *
 *   RCP   window = R (srtt + 2 ms) / s + 1 packet, pace = R  Dukkipati 2007, sections 3.1 and 6.1.1
 *   XCP   window = window + change srtt, pace = window/srtt  Katabi 2002, section 3.3, in throughput as in the draft
 *
 *   switch to the kernel's TCP, for good                     Dukkipati 2007, section 6.2.2
 *     smoothed RTT at least twice the least for a round trip, and the rate given has not fallen
 *     a loss (RCP), and the rate given has not fallen
 *
 * `s` is a packet as routers count it: with its headers. Rates R are bytes/ms, times us, windows of XCP 1/256 byte.
 * Valid for srtt below 2^27 us (134 s); XCP takes at most FS_XCP_SRTT_MAX_US, the router's own bound.
 *
 * Deviations from flowstamp-laws (the law says / here / because):
 * 1. A window of at least a packet / of two / a receiver answers every second packet at once and one only after 40 ms.
 *    RCP's window of R rtt / and 2 ms more / the kernel sends bursts of up to 1 ms, and a receiver acks bursts, so that a
 *    window without room for two stops the pace and even looks like loss; the pace alone holds the flow to R.
 * 2. Rate as it comes / never above what the socket may send / a stranger's option must not lift a host's own limits.
 * 3. RTT doubled for a round trip / by 5 ms at least, and for 100 ms / below that it is the hosts' own scheduling that is
 *    measured: on two busy processors it held back all acks of a path of 10 ms for up to 54 ms.
 * 4. RTT doubled / and half of the excess on the data's way / acks that wait are the other direction's queue.
 * 5. XCP has no switch / it has the RTT's, on its window / a queue that no router answers is another kind's.
 * 6. XCP sets no pace / 1.2 windows an RTT, the kernel's own ratio in congestion avoidance / whole windows leave in bursts.
 * 7. A loss is judged at the end of the round trip after it / a round trip and 5 ms after it / by then the kernel may have
 *    found that it was none.
 * 8. RTT doubled for a round trip / in what was sent after that too, and in each packet's / a host that stood still gets the
 *    acks of a whole flight at one instant, and the smoothed RTT stays high until the next flight's.
 * 9. XCP halves the window, or what is in flight if that is less / the window / it grows only while it is used.
 * 10. The smoothed RTT / that of the data alone, until the kernel's is as short, where the handshake was sent again / the kernel's begins
 *    with a second then, and so long an RTT makes a router of XCP tell all its flows nothing for most of that time.
 * 11. XCP keeps its window as long as it is told nothing / the kernel's TCP after 20 round trips and 200 ms of that, if it would be faster /
 *    a router that has gone or stopped looks so: the receiver's sum of no changes is an echo as any other. A router's interval is the mean
 *    RTT of its flows, many round trips of a short one.
 */
#ifndef FLOWSTAMP_SENDER_H
#define FLOWSTAMP_SENDER_H

#include <linux/types.h>

#define FS_INLINE static inline __attribute__((always_inline))

/* A wish for as much as there is: more than any link has, so a router on the path always writes less. */
#define FS_RCP_UNBOUNDED 0xffffffffu
#define FS_XCP_UNBOUNDED 0x7fffffff

#define FS_XCP_FRACTION_BITS 8
#define FS_XCP_SRTT_MAX_US 4000000u
/* 64 GB: far above any window, far below where products overflow. */
#define FS_XCP_WINDOW_MAX (1ull << 36 << FS_XCP_FRACTION_BITS)

#define FS_WINDOW_MIN 2
/* Full packets of 1 GB, the most that TCP can have in flight: the kernel's own sums stay in their types. */
#define FS_WINDOW_MAX (1 << 19)
#define FS_BURST_US 2000
#define FS_ROUNDS 4
#define FS_RTT_EXCESS_US 5000
#define FS_DOUBLED_US 100000

/* Packets in flight at `rate` bytes/ms. */
FS_INLINE __u32 fs_rcp_window(__u32 rate, __u32 srtt_us, __u32 packet_bytes)
{
	__u64 packets = (__u64)rate * (srtt_us + FS_BURST_US) / ((__u64)packet_bytes * 1000) + 1;

	if (packets < FS_WINDOW_MIN)
		return FS_WINDOW_MIN;
	return packets > FS_WINDOW_MAX ? FS_WINDOW_MAX : packets;
}

/* The kernel paces payload: bytes/s of it when packets of `mss + header` leave at `rate` bytes/ms. */
FS_INLINE __u64 fs_rcp_pace(__u32 rate, __u32 mss, __u32 header_bytes)
{
	return (__u64)rate * 1000 * mss / (mss + header_bytes);
}

/* What a granted change of throughput, bytes/s, does to an XCP window. */
FS_INLINE __u64 fs_xcp_window(__u64 window, __s64 change, __u32 srtt_us, __u32 packet_bytes)
{
	__u64 size = change < 0 ? -change : change, step, least = (__u64)packet_bytes << FS_XCP_FRACTION_BITS;

	if (srtt_us > FS_XCP_SRTT_MAX_US)
		srtt_us = FS_XCP_SRTT_MAX_US;
	if (size > 0x7fffffff)
		size = 0x7fffffff;
	step = (size * srtt_us << FS_XCP_FRACTION_BITS) / 1000000;
	if (change < 0)
		return window > step + least ? window - step : least;
	return window + step < FS_XCP_WINDOW_MAX ? window + step : FS_XCP_WINDOW_MAX;
}

/* XCP's window after a loss, or a timeout: as TCP does. */
FS_INLINE __u64 fs_xcp_lost(__u64 window, int timeout, __u32 packet_bytes)
{
	__u64 half = timeout ? 0 : window / 2, least = (__u64)packet_bytes << FS_XCP_FRACTION_BITS;

	return half > least ? half : least;
}

/* Whole packets of a window, at least `least`. */
FS_INLINE __u32 fs_xcp_packets(__u64 window, __u32 packet_bytes, __u32 least)
{
	__u64 packets = (window >> FS_XCP_FRACTION_BITS) / packet_bytes;

	return packets < least ? least : packets > FS_WINDOW_MAX ? FS_WINDOW_MAX : packets;
}

/* Payload bytes/s of a window, times 1.2 (deviation 6). */
FS_INLINE __u64 fs_xcp_pace(__u64 window, __u32 srtt_us, __u32 mss, __u32 header_bytes)
{
	__u64 rate = (window >> FS_XCP_FRACTION_BITS) * 1200000 / (srtt_us ? srtt_us : 1);

	/* 4 TB/s, so that the product stays within its type. */
	return (rate < 1ull << 42 ? rate : 1ull << 42) * mss / (mss + header_bytes);
}

/* The wish of one packet, bytes/s: what brings the flow to `desired` bytes/s in a round trip of `packets`. */
FS_INLINE __s32 fs_xcp_wish(__u64 desired, __u64 window, __u32 srtt_us, __u32 packets)
{
	__u64 throughput;
	__s64 wish;

	if (!srtt_us)
		return 0;
	if (desired > 1ull << 50)
		return FS_XCP_UNBOUNDED;
	throughput = (window >> FS_XCP_FRACTION_BITS) * 1000000 / srtt_us;
	/* A quotient of unsigned numbers: BPF of this version has no signed one. */
	wish = throughput > desired ? -(__s64)((throughput - desired) / packets) : (__s64)((desired - throughput) / packets);
	if (wish >= FS_XCP_UNBOUNDED)
		return FS_XCP_UNBOUNDED - 1;
	return wish < -FS_XCP_UNBOUNDED ? -FS_XCP_UNBOUNDED : wish;
}

/* What decides on the switch. */
struct fs_switch {
	__u64 round_end_us;
	__u32 least_srtt_us;
	/* Rates at the start of the last round trips, the newest first. */
	__u32 round_rates[FS_ROUNDS];
	/* The RTT has been at least twice the least since this round trip's beginning; zero: it has not. */
	__u64 doubled_us;
};

/* Whether `rate` is a corresponding decrease: below 0.9 of the highest of the last round trips. */
FS_INLINE int fs_switch_fell_to(const struct fs_switch *s, __u32 rate)
{
	__u32 highest = 0;

	for (int i = 0; i < FS_ROUNDS; i++)
		if (s->round_rates[i] > highest)
			highest = s->round_rates[i];
	return (__u64)rate * 10 < (__u64)highest * 9;
}

/* Whether an RTT is twice the least, and more than hosts' scheduling. */
FS_INLINE int fs_switch_doubled(const struct fs_switch *s, __u32 rtt_us)
{
	return rtt_us >= 2 * (__u64)s->least_srtt_us && rtt_us >= s->least_srtt_us + FS_RTT_EXCESS_US;
}

/*
 * An ack at `now_us` of data sent at `sent_us`; `idle` if it is not this flow's path that the smoothed RTT tells of: the
 * application limits it, or only acks wait, or this packet had no such RTT.
 * Bit 0: a round trip has ended; bit 1: switch.
 */
FS_INLINE int fs_switch_watch(struct fs_switch *s, __u64 now_us, __u64 sent_us, __u32 srtt_us, __u32 rate, int idle)
{
	int elsewhere;

	if (!srtt_us)
		return 0;
	if (!s->least_srtt_us || srtt_us < s->least_srtt_us)
		s->least_srtt_us = srtt_us;
	if (idle || !fs_switch_doubled(s, srtt_us))
		s->doubled_us = 0;
	if (now_us < s->round_end_us)
		return 0;
	elsewhere = s->doubled_us && sent_us >= s->doubled_us && now_us - s->doubled_us >= FS_DOUBLED_US &&
		    !fs_switch_fell_to(s, rate);
	for (int i = FS_ROUNDS - 1; i > 0; i--)
		s->round_rates[i] = s->round_rates[i - 1];
	s->round_rates[0] = rate;
	s->round_end_us = now_us + srtt_us;
	if (!s->doubled_us)
		s->doubled_us = now_us;
	return 1 | elsewhere << 1;
}

/*
 * RCP after a loss, at each ack: `*lost` until it is judged (deviation 7), `*lost_us` when the first ack after it came, zero
 * before. Whether to switch.
 */
FS_INLINE int fs_rcp_lost(const struct fs_switch *s, __u32 *lost, __u64 *lost_us, __u64 now_us, __u32 srtt_us, __u32 rate)
{
	if (!*lost)
		return 0;
	if (!*lost_us) {
		*lost_us = now_us;
		return 0;
	}
	if (now_us - *lost_us <= (__u64)srtt_us + FS_RTT_EXCESS_US)
		return 0;
	*lost = 0;
	*lost_us = 0;
	return !fs_switch_fell_to(s, rate);
}

#endif
