// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* VCP compiled for the host, for tests/vcp_equality.rs. */
#include "vcp.h"

#define FS_HOST __attribute__((visibility("default")))

void fs_host_vcp_sample(const struct fs_vcp_params *p, struct fs_vcp *s, __u64 queue_bytes);
void fs_host_vcp_measure(const struct fs_vcp_params *p, struct fs_vcp *s, const struct fs_vcp_sums *sums, __u64 interval_ns);
__u32 fs_host_vcp_raised(__u32 carried, __u32 own);
__u32 fs_host_vcp_echo(__u32 echo, __u32 code, __u32 packets, __u32 t_rho_us);
__u32 fs_host_vcp_came(__u32 before, __u32 after, __u32 code);
bool fs_host_vcp_is_newer(__u32 before, __u32 after);
__u64 fs_host_vcp_growth(const struct fs_vcp_sender_params *p, __u64 srtt_us, __u64 t_rho_us);
__u64 fs_host_vcp_addition(const struct fs_vcp_sender_params *p, __u64 window, __u64 srtt_us, __u64 t_rho_us, __u32 packet_bytes);
void fs_host_vcp_obey(const struct fs_vcp_sender_params *p, struct fs_vcp_sender *s, __u64 now_us, __u32 srtt_us, __u32 t_rho_us,
		      __u32 code, __u32 packets, __u32 packet_bytes, bool grows);
__u64 fs_host_vcp_lost(__u64 window, bool timeout, __u32 packet_bytes);

FS_HOST void fs_host_vcp_sample(const struct fs_vcp_params *p, struct fs_vcp *s, __u64 queue_bytes)
{
	fs_vcp_sample(p, s, queue_bytes);
}

FS_HOST void fs_host_vcp_measure(const struct fs_vcp_params *p, struct fs_vcp *s, const struct fs_vcp_sums *sums, __u64 interval_ns)
{
	fs_vcp_measure(p, s, sums, interval_ns);
}

FS_HOST __u32 fs_host_vcp_raised(__u32 carried, __u32 own)
{
	return fs_vcp_raised(carried, own);
}

FS_HOST __u32 fs_host_vcp_echo(__u32 echo, __u32 code, __u32 packets, __u32 t_rho_us)
{
	return fs_vcp_echo(echo, code, packets, t_rho_us);
}

FS_HOST __u32 fs_host_vcp_came(__u32 before, __u32 after, __u32 code)
{
	return fs_vcp_came(before, after, code);
}

FS_HOST bool fs_host_vcp_is_newer(__u32 before, __u32 after)
{
	return fs_vcp_is_newer(before, after);
}

FS_HOST __u64 fs_host_vcp_growth(const struct fs_vcp_sender_params *p, __u64 srtt_us, __u64 t_rho_us)
{
	return fs_vcp_growth_q40(p, srtt_us, t_rho_us);
}

FS_HOST __u64 fs_host_vcp_addition(const struct fs_vcp_sender_params *p, __u64 window, __u64 srtt_us, __u64 t_rho_us, __u32 packet_bytes)
{
	return fs_vcp_addition_q44(p, window, srtt_us, t_rho_us, packet_bytes);
}

FS_HOST void fs_host_vcp_obey(const struct fs_vcp_sender_params *p, struct fs_vcp_sender *s, __u64 now_us, __u32 srtt_us, __u32 t_rho_us,
			      __u32 code, __u32 packets, __u32 packet_bytes, bool grows)
{
	fs_vcp_obey(p, s, now_us, srtt_us, t_rho_us, code, packets, packet_bytes, grows);
}

FS_HOST __u64 fs_host_vcp_lost(__u64 window, bool timeout, __u32 packet_bytes)
{
	return fs_vcp_lost(window, timeout, packet_bytes);
}
