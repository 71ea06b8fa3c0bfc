// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The senders' arithmetic compiled for the host: tests/sender_equality.rs compares it with the Rust laws. */
#include "sender.h"
#include "shun.h"

#define FS_HOST __attribute__((visibility("default")))

void fs_host_shun_until(struct fs_shunned *s, __u64 now_ns);
__u32 fs_host_rcp_window(__u32 rate, __u32 srtt_us, __u32 packet_bytes);
__u64 fs_host_rcp_pace(__u32 rate, __u32 mss, __u32 header_bytes);
__u64 fs_host_xcp_window(__u64 window, __s64 change, __u32 srtt_us, __u32 packet_bytes);
__u32 fs_host_xcp_packets(__u64 window, __u32 packet_bytes, __u32 least);
__u64 fs_host_xcp_pace(__u64 window, __u32 srtt_us, __u32 mss, __u32 header_bytes);
__u16 fs_host_xcp_stated(__u32 packets, __u64 inverse_price_q16);
__s32 fs_host_xcp_wish(__u64 desired, __u64 window, __u32 srtt_us, __u32 packets);
int fs_host_switch_watch(struct fs_switch *s, __u64 now_us, __u64 sent_us, __u32 srtt_us, __u32 rate, int idle);
int fs_host_switch_doubled(const struct fs_switch *s, __u32 rtt_us);
__u64 fs_host_xcp_lost(__u64 window, int timeout, __u32 packet_bytes);
int fs_host_rcp_lost(const struct fs_switch *s, __u32 *lost, __u64 *lost_us, __u64 now_us, __u32 srtt_us, __u32 rate);

FS_HOST __u32 fs_host_rcp_window(__u32 rate, __u32 srtt_us, __u32 packet_bytes)
{
	return fs_rcp_window(rate, srtt_us, packet_bytes);
}

FS_HOST __u64 fs_host_rcp_pace(__u32 rate, __u32 mss, __u32 header_bytes)
{
	return fs_rcp_pace(rate, mss, header_bytes);
}

FS_HOST __u64 fs_host_xcp_window(__u64 window, __s64 change, __u32 srtt_us, __u32 packet_bytes)
{
	return fs_xcp_window(window, change, srtt_us, packet_bytes);
}

FS_HOST __u32 fs_host_xcp_packets(__u64 window, __u32 packet_bytes, __u32 least)
{
	return fs_xcp_packets(window, packet_bytes, least);
}

FS_HOST __u64 fs_host_xcp_pace(__u64 window, __u32 srtt_us, __u32 mss, __u32 header_bytes)
{
	return fs_xcp_pace(window, srtt_us, mss, header_bytes);
}

FS_HOST __u16 fs_host_xcp_stated(__u32 packets, __u64 inverse_price_q16)
{
	return fs_xcp_stated(packets, inverse_price_q16);
}

FS_HOST __s32 fs_host_xcp_wish(__u64 desired, __u64 window, __u32 srtt_us, __u32 packets)
{
	return fs_xcp_wish(desired, window, srtt_us, packets);
}

FS_HOST int fs_host_switch_watch(struct fs_switch *s, __u64 now_us, __u64 sent_us, __u32 srtt_us, __u32 rate, int idle)
{
	return fs_switch_watch(s, now_us, sent_us, srtt_us, rate, idle);
}

FS_HOST int fs_host_switch_doubled(const struct fs_switch *s, __u32 rtt_us)
{
	return fs_switch_doubled(s, rtt_us);
}

FS_HOST __u64 fs_host_xcp_lost(__u64 window, int timeout, __u32 packet_bytes)
{
	return fs_xcp_lost(window, timeout, packet_bytes);
}

FS_HOST int fs_host_rcp_lost(const struct fs_switch *s, __u32 *lost, __u64 *lost_us, __u64 now_us, __u32 srtt_us, __u32 rate)
{
	return fs_rcp_lost(s, lost, lost_us, now_us, srtt_us, rate);
}

FS_HOST void fs_host_shun_until(struct fs_shunned *s, __u64 now_ns)
{
	fs_shun_until(s, now_ns);
}
