// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The laws compiled for the host, for tests/equality.rs and tests/police_equality.rs. */
#include "laws.h"
#include "option.h"

#define FS_HOST __attribute__((visibility("default")))

__u32 fs_host_bits(__u64 v);
__u64 fs_host_mul_div(__u64 a, __u64 b, __u64 c);
void fs_host_rcp_update(const struct fs_rcp_params *p, struct fs_rcp *s, const struct fs_rcp_sums *sums,
			__u64 interval_ns, __u64 queue_bytes);
__u64 fs_host_rcp_interval_ns(const struct fs_rcp_params *p, const struct fs_rcp *s);
__u32 fs_host_rcp_offer(const struct fs_rcp_params *p, const struct fs_rcp *s);
__u32 fs_host_rcp_stamp(__u32 offer, __u32 carried);
void fs_host_rcp_input(struct fs_rcp_sums *sums, __u64 bytes);
void fs_host_rcp_rtt(struct fs_rcp_sums *sums, __u64 max_rtt_us, __u64 most_rtt_us, __u64 rtt_us, __u64 weight);
__u64 fs_host_xcp_x_q4(__u64 rtt_us, __u64 in_flight);
__u64 fs_host_xcp_bounded(const struct fs_xcp *s, __u64 bytes, __u64 x_q4);
void fs_host_xcp_arrival(const struct fs_xcp_params *p, struct fs_xcp_sums *sums, __u64 bytes, __u64 packets,
			 __u64 rtt_us, __u64 x_q4);
void fs_host_xcp_decide(const struct fs_xcp_params *p, struct fs_xcp *s, const struct fs_xcp_sums *sums,
			__u64 interval_ns);
__u64 fs_host_xcp_interval_ns(const struct fs_xcp_params *p, const struct fs_xcp *s);
__u64 fs_host_xcp_queue_ns(const struct fs_xcp_params *p, struct fs_xcp *s, __u64 queue_bytes);
__s32 fs_host_xcp_departure(struct fs_xcp *s, __u64 bytes, __u32 packets, __u64 rtt_us, __u64 x_q4, __s32 carried);
__u32 fs_host_rtt_pack(__u64 us);
__u64 fs_host_rtt_unpack(__u32 bits);

FS_HOST __u32 fs_host_bits(__u64 v)
{
	return fs_bits(v);
}

FS_HOST __u64 fs_host_mul_div(__u64 a, __u64 b, __u64 c)
{
	return fs_mul_div(a, b, c);
}

FS_HOST void fs_host_rcp_update(const struct fs_rcp_params *p, struct fs_rcp *s, const struct fs_rcp_sums *sums,
				__u64 interval_ns, __u64 queue_bytes)
{
	fs_rcp_update(p, s, sums, interval_ns, queue_bytes);
}

FS_HOST __u64 fs_host_rcp_interval_ns(const struct fs_rcp_params *p, const struct fs_rcp *s)
{
	return fs_rcp_interval_ns(p, s);
}

FS_HOST __u32 fs_host_rcp_offer(const struct fs_rcp_params *p, const struct fs_rcp *s)
{
	return fs_rcp_offer(p, s);
}

FS_HOST __u32 fs_host_rcp_stamp(__u32 offer, __u32 carried)
{
	return fs_rcp_stamp(offer, carried);
}

FS_HOST void fs_host_rcp_input(struct fs_rcp_sums *sums, __u64 bytes)
{
	fs_rcp_input(sums, bytes);
}

FS_HOST void fs_host_rcp_rtt(struct fs_rcp_sums *sums, __u64 max_rtt_us, __u64 most_rtt_us, __u64 rtt_us, __u64 weight)
{
	fs_rcp_rtt(sums, max_rtt_us, fs_rcp_counts_as(max_rtt_us, most_rtt_us, rtt_us), weight);
}

FS_HOST __u64 fs_host_xcp_x_q4(__u64 rtt_us, __u64 in_flight)
{
	return fs_xcp_x_q4(rtt_us, in_flight);
}

FS_HOST __u64 fs_host_xcp_bounded(const struct fs_xcp *s, __u64 bytes, __u64 x_q4)
{
	return fs_xcp_bounded(s, bytes, x_q4);
}

FS_HOST void fs_host_xcp_arrival(const struct fs_xcp_params *p, struct fs_xcp_sums *sums, __u64 bytes, __u64 packets,
				 __u64 rtt_us, __u64 x_q4)
{
	fs_xcp_arrival(p, sums, bytes, packets, rtt_us, x_q4);
}

FS_HOST void fs_host_xcp_decide(const struct fs_xcp_params *p, struct fs_xcp *s, const struct fs_xcp_sums *sums,
				__u64 interval_ns)
{
	fs_xcp_decide(p, s, sums, interval_ns);
}

FS_HOST __u64 fs_host_xcp_interval_ns(const struct fs_xcp_params *p, const struct fs_xcp *s)
{
	return fs_xcp_interval_ns(p, s);
}

FS_HOST __u64 fs_host_xcp_queue_ns(const struct fs_xcp_params *p, struct fs_xcp *s, __u64 queue_bytes)
{
	return fs_xcp_queue_ns(p, s, queue_bytes);
}

FS_HOST __s32 fs_host_xcp_departure(struct fs_xcp *s, __u64 bytes, __u32 packets, __u64 rtt_us, __u64 x_q4, __s32 carried)
{
	return fs_xcp_departure(s, bytes, packets, rtt_us, x_q4, carried);
}

FS_HOST __u32 fs_host_rtt_pack(__u64 us)
{
	return fs_rtt_pack(us);
}

FS_HOST __u64 fs_host_rtt_unpack(__u32 bits)
{
	return fs_rtt_unpack(bits);
}

#include "police.h"

void fs_host_police_packet(const struct fs_police_params *p, struct fs_police_flow *f, const struct fs_police_view *v);
__u64 fs_host_police_told(const struct fs_police_params *p, const struct fs_police_flow *f);
__s64 fs_host_police_change(const struct fs_police_params *p, const struct fs_police_flow *f, __u64 now, __u64 bytes);
bool fs_host_police_admit(const struct fs_police_params *p, struct fs_police_flow *f, __u64 now, __u64 bytes,
			  const struct fs_police_link *l);
void fs_host_police_look(struct fs_police_link *l, __u64 now, __u64 drops);
void fs_host_police_witness(const struct fs_police_params *p, struct fs_police_link *l, __u64 now, __u64 rtt_ns);
bool fs_host_police_isolated(const struct fs_police_flow *f);
bool fs_host_police_proven(const struct fs_police_flow *f);
__u64 fs_host_police_most_rtt_us(const struct fs_police_flow *f, const struct fs_police_link *l);
__u64 fs_host_police_least_flight(const struct fs_police_flow *f, __u64 rtt_us, __u64 bytes);
__u64 fs_host_police_test_ns(const struct fs_police_flow *f);

FS_HOST void fs_host_police_packet(const struct fs_police_params *p, struct fs_police_flow *f,
				   const struct fs_police_view *v)
{
	fs_police_packet(p, f, v);
}

FS_HOST __u64 fs_host_police_told(const struct fs_police_params *p, const struct fs_police_flow *f)
{
	return fs_police_told(p, f);
}

FS_HOST __s64 fs_host_police_change(const struct fs_police_params *p, const struct fs_police_flow *f, __u64 now, __u64 bytes)
{
	return fs_police_change(p, f, now, bytes);
}

FS_HOST bool fs_host_police_admit(const struct fs_police_params *p, struct fs_police_flow *f, __u64 now, __u64 bytes,
				  const struct fs_police_link *l)
{
	return fs_police_admit(p, f, now, bytes, l);
}

FS_HOST void fs_host_police_look(struct fs_police_link *l, __u64 now, __u64 drops)
{
	fs_police_look(l, now, drops);
}

FS_HOST void fs_host_police_witness(const struct fs_police_params *p, struct fs_police_link *l, __u64 now, __u64 rtt_ns)
{
	fs_police_witness(p, l, now, rtt_ns);
}

FS_HOST bool fs_host_police_isolated(const struct fs_police_flow *f)
{
	return fs_police_isolated(f);
}

FS_HOST bool fs_host_police_proven(const struct fs_police_flow *f)
{
	return fs_police_proven(f);
}

FS_HOST __u64 fs_host_police_most_rtt_us(const struct fs_police_flow *f, const struct fs_police_link *l)
{
	return fs_police_most_rtt_us(f, l);
}

FS_HOST __u64 fs_host_police_least_flight(const struct fs_police_flow *f, __u64 rtt_us, __u64 bytes)
{
	return fs_police_least_flight(f, rtt_us, bytes);
}

#include "share.h"

void fs_host_zombies_arrival(struct fs_zombies *z, struct fs_class *class, __u32 flow, __u32 random);
__u64 fs_host_share_capacity(__u64 capacity, __u64 own_least, __u64 other_of_period, __u64 other_now);

FS_HOST void fs_host_zombies_arrival(struct fs_zombies *z, struct fs_class *class, __u32 flow, __u32 random)
{
	fs_zombies_arrival(z, class, flow, random);
}

FS_HOST __u64 fs_host_share_capacity(__u64 capacity, __u64 own_least, __u64 other_of_period, __u64 other_now)
{
	return fs_share_capacity(capacity, own_least, other_of_period, other_now);
}

FS_HOST __u64 fs_host_police_test_ns(const struct fs_police_flow *f)
{
	return fs_police_test_ns(f);
}
