/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The senders' arithmetic in integers. It uses no kernel types, so the tests compile the same text on the host.
 *
 *   RCP   window = R (srtt + 2 ms) / s + 1 packet, pace = R  Dukkipati 2007, sections 3.1 and 6.1.1
 *   XCP   window = window + change srtt, pace = window/srtt  Katabi 2002, section 3.3, in throughput as in the draft
 *
 *   permanent switch to the kernel's TCP                     Dukkipati 2007, section 6.2.2
 *     smoothed RTT at least twice the minimum for a round trip, and the router's rate has not fallen
 *     a loss (RCP), and the router's rate has not fallen
 *
 * `s` is the packet size that routers count: it includes headers. Rates R are in bytes/ms, times in us, XCP's windows
 * in 1/256 byte. Valid for srtt below 2^27 us (134 s); XCP uses at most FS_XCP_SRTT_MAX_US, the router's own bound.
 *
 * Deviations from flowstamp-laws (the law says / here / because):
 * 1. The window is at least one packet / two packets / a receiver acks every second packet at once, but a single one
 *    only after 40 ms. RCP's window is R rtt / 2 ms more / the kernel sends bursts of up to 1 ms, and a receiver acks
 *    bursts. A window without room for two bursts stops the pacing and even looks like a loss. The pacing alone holds
 *    the flow to R.
 * 2. The received rate is used as it is / it never exceeds the socket's own limits / another host's option must not
 *    lift a host's own limits.
 * 3. The RTT has doubled for a round trip / also by at least 5 ms, and for 100 ms / below that, the RTT measures the
 *    hosts' own scheduling: two busy CPUs held back all acks of a 10 ms path for up to 54 ms.
 * 4. The RTT has doubled / at least half of the excess is also on the data's direction / delayed acks are queued in the
 *    other direction.
 * 5. XCP has no switch / it has the switch on RTT, with its window as the rate / a queue that no router reacts to
 *    belongs to other traffic.
 * 6. XCP does not pace / 1.2 windows per RTT, the kernel's own ratio in congestion avoidance / otherwise whole windows
 *    leave in bursts.
 * 7. A loss is judged at the end of the round trip after it / a round trip and 5 ms after it / by then the kernel may
 *    have found that nothing was lost.
 * 8. The RTT has doubled for a round trip / also for packets sent after that, and in each packet's own RTT / a host
 *    that paused receives the acks of a whole flight at one instant, and the smoothed RTT stays high until the next
 *    flight's acks.
 * 9. XCP halves the window, or the data in flight if that is less / it halves the window / the window grows only while
 *    it is used.
 * 10. The smoothed RTT is the kernel's / after a retransmitted handshake it is the smoothed RTT of the data alone,
 *     until the kernel's is as short / the kernel's then starts at 1 s or more. Such a long RTT would make an XCP
 *     router send no feedback to any flow for most of that time.
 * 11. XCP keeps its window while the feedback is zero / after 20 round trips and 200 ms without feedback it switches to
 *     the kernel's TCP, if it would send faster / a router that has gone or stopped looks like that, because the
 *     receiver still echoes its unchanged sum. A router's interval is the mean RTT of its flows, so it can span many
 *     round trips of a short flow.
 */
#ifndef FLOWSTAMP_SENDER_H
#define FLOWSTAMP_SENDER_H

#include <linux/types.h>

#define FS_INLINE static inline __attribute__((always_inline))

/* Requests an unlimited rate. No link is that fast, so a router on the path always writes a lower value. */
#define FS_RCP_UNBOUNDED 0xffffffffu
#define FS_XCP_UNBOUNDED 0x7fffffff

#define FS_XCP_FRACTION_BITS 8
#define FS_XCP_SRTT_MAX_US 4000000u
/* 64 GB: far above any window, and far below the point where products overflow. */
#define FS_XCP_WINDOW_MAX (1ull << 36 << FS_XCP_FRACTION_BITS)

#define FS_WINDOW_MIN 2
/* The full-sized packets in 1 GB, TCP's maximum in flight. The kernel's own sums stay within their types. */
#define FS_WINDOW_MAX (1 << 19)
#define FS_BURST_US 2000
#define FS_ROUNDS 4
#define FS_RTT_EXCESS_US 5000
#define FS_DOUBLED_US 100000

/* RCP's window in packets at `rate` bytes/ms. */
FS_INLINE __u32 fs_rcp_window(__u32 rate, __u32 srtt_us, __u32 packet_bytes)
{
	__u64 packets = (__u64)rate * (srtt_us + FS_BURST_US) / ((__u64)packet_bytes * 1000) + 1;

	if (packets < FS_WINDOW_MIN)
		return FS_WINDOW_MIN;
	return packets > FS_WINDOW_MAX ? FS_WINDOW_MAX : packets;
}

/*
 * The pacing rate in bytes/s of payload (the kernel paces payload) when packets of `mss + header` leave at `rate`
 * bytes/ms.
 */
FS_INLINE __u64 fs_rcp_pace(__u32 rate, __u32 mss, __u32 header_bytes)
{
	return (__u64)rate * 1000 * mss / (mss + header_bytes);
}

/* One over the price of Katabi 2002, section 6, at which this host's flows buy throughput. */
struct fs_xcp_sender_params {
	__u64 inverse_price_q16;
};

/* The packets in flight over the price, which routers divide by: at least 1, saturating at 65535. */
FS_INLINE __u16 fs_xcp_stated(__u32 packets, __u64 inverse_price_q16)
{
	__u64 stated = (packets * inverse_price_q16 + (1 << 15)) >> 16;

	return stated < 1 ? 1 : stated > 65535 ? 65535 : stated;
}

/* Applies a granted change of throughput, in bytes/s, to an XCP window. */
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

/* XCP's window after a loss or a retransmission timeout, as in TCP. */
FS_INLINE __u64 fs_xcp_lost(__u64 window, int timeout, __u32 packet_bytes)
{
	__u64 half = timeout ? 0 : window / 2, least = (__u64)packet_bytes << FS_XCP_FRACTION_BITS;

	return half > least ? half : least;
}

/* A window in whole packets, at least `least`. */
FS_INLINE __u32 fs_xcp_packets(__u64 window, __u32 packet_bytes, __u32 least)
{
	__u64 packets = (window >> FS_XCP_FRACTION_BITS) / packet_bytes;

	return packets < least ? least : packets > FS_WINDOW_MAX ? FS_WINDOW_MAX : packets;
}

/* The pacing rate: 1.2 windows per RTT, in bytes/s of payload (deviation 6). */
FS_INLINE __u64 fs_xcp_pace(__u64 window, __u32 srtt_us, __u32 mss, __u32 header_bytes)
{
	__u64 rate = (window >> FS_XCP_FRACTION_BITS) * 1200000 / (srtt_us ? srtt_us : 1);

	/* Capped at 4 TB/s, so that the product stays within its type. */
	return (rate < 1ull << 42 ? rate : 1ull << 42) * mss / (mss + header_bytes);
}

/*
 * One packet's requested change, in bytes/s. The `packets` requests of a round trip bring the flow to `desired`
 * bytes/s.
 */
FS_INLINE __s32 fs_xcp_wish(__u64 desired, __u64 window, __u32 srtt_us, __u32 packets)
{
	__u64 throughput;
	__s64 wish;

	if (!srtt_us)
		return 0;
	if (desired > 1ull << 50)
		return FS_XCP_UNBOUNDED;
	throughput = (window >> FS_XCP_FRACTION_BITS) * 1000000 / srtt_us;
	/* Divides unsigned numbers, because this version of BPF has no signed division. */
	wish = throughput > desired ? -(__s64)((throughput - desired) / packets) : (__s64)((desired - throughput) / packets);
	if (wish >= FS_XCP_UNBOUNDED)
		return FS_XCP_UNBOUNDED - 1;
	return wish < -FS_XCP_UNBOUNDED ? -FS_XCP_UNBOUNDED : wish;
}

/* State of the decision to switch to the kernel's TCP. */
struct fs_switch {
	__u64 round_end_us;
	__u32 least_srtt_us;
	/* Rates at the start of the last round trips, newest first. */
	__u32 round_rates[FS_ROUNDS];
	/* Start of the round trip since which the RTT has been at least twice the minimum; zero if it is not. */
	__u64 doubled_us;
};

/* Whether the rate has fallen: `rate` is below 0.9 of the highest of the last round trips. */
FS_INLINE int fs_switch_fell_to(const struct fs_switch *s, __u32 rate)
{
	__u32 highest = 0;

	for (int i = 0; i < FS_ROUNDS; i++)
		if (s->round_rates[i] > highest)
			highest = s->round_rates[i];
	return (__u64)rate * 10 < (__u64)highest * 9;
}

/* Whether an RTT is at least twice the minimum and exceeds it by more than the hosts' scheduling delay. */
FS_INLINE int fs_switch_doubled(const struct fs_switch *s, __u32 rtt_us)
{
	return rtt_us >= 2 * (__u64)s->least_srtt_us && rtt_us >= s->least_srtt_us + FS_RTT_EXCESS_US;
}

/*
 * Handles an ack at `now_us` of data sent at `sent_us`. `idle` says that the smoothed RTT does not show this flow's
 * queueing: the application limits the flow, only acks are queued, or this packet's own RTT has not doubled. In the
 * result, bit 0 says that a round trip has ended and bit 1 that the flow should switch.
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
 * Returns whether RCP should switch after a loss; called at each ack. `*lost` is set until the loss is judged
 * (deviation 7). `*lost_us` is the time of the first ack after it, zero before that ack.
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
