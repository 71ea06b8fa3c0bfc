/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fields of the kernel's TCP types that the host's programs read or write. Loading relocates the offsets to the
 * running kernel (CO-RE).
 */
#ifndef FLOWSTAMP_HOST_KERNEL_H
#define FLOWSTAMP_HOST_KERNEL_H

#include "kernel.h"

#define FS_RELOCATED __attribute__((preserve_access_index))

struct sock_common {
	unsigned short skc_family;
	volatile unsigned char skc_state;
	__be16 skc_dport;
	__u16 skc_num;
} FS_RELOCATED;

struct kernfs_node {
	__u64 id;
} FS_RELOCATED;

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
} FS_RELOCATED;

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
} FS_RELOCATED;

struct sock_cgroup_data {
	struct cgroup *cgroup;
} FS_RELOCATED;

struct sock {
	struct sock_common __sk_common;
	struct sock_cgroup_data sk_cgrp_data;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
} FS_RELOCATED;

struct inet_sock {
	struct sock sk;
} FS_RELOCATED;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
} FS_RELOCATED;

struct tcp_options_received {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
	__u16 dsack : 1;
} FS_RELOCATED;

struct tcp_sack_block {
	__u32 start_seq;
} FS_RELOCATED;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u16 tcp_header_len;
	__u64 tcp_mstamp;
	__u64 first_tx_mstamp;
	struct tcp_options_received rx_opt;
	__u32 srtt_us;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 mss_cache;
	__u32 app_limited;
	struct tcp_sack_block duplicate_sack[1];
} FS_RELOCATED;

struct request_sock {
	__u8 num_retrans;
} FS_RELOCATED;

struct rate_sample;
struct ack_sample;

/* Members are matched by name; members missing here stay null in the kernel. */
struct tcp_congestion_ops {
	__u32 flags;
	__u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
};

/* Holds the number of segments in a GRO or TSO skb. */
struct skb_shared_info {
	unsigned short gso_segs;
} FS_RELOCATED;

struct sk_buff {
	unsigned int len;
	unsigned int end;
	unsigned char *head;
	__u16 network_header;
	char cb[48];
} FS_RELOCATED;

struct bpf_iter__tcp {
	struct sock_common *sk_common;
} FS_RELOCATED;

struct bpf_sock_ops_kern {
	struct sock *sk;
	struct sk_buff *skb;
} FS_RELOCATED;

extern void *bpf_cast_to_kern_ctx(void *obj) __ksym;
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;

enum { TCP_CA_OPEN, TCP_CA_DISORDER, TCP_CA_CWR, TCP_CA_RECOVERY, TCP_CA_LOSS };
enum { CA_EVENT_TX_START = 0 };
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };

#define TCP_CONG_NON_RESTRICTED 1
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_SAVE_SYN 27
#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_ACK 0x10
#define AF_INET6 10

#endif
