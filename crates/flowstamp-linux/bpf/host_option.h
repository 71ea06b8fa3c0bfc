/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The option, written into and read from the packets of the sockets in a cgroup.
 *
 *   SYN       the wish                           of every connect(): its peer may be the one that sends
 *   SYN-ACK   echo of the SYN's stamp, a wish    only if the SYN had one
 *   data, FIN echo, and the stamp of a sender that obeys
 *   ack       echo, in the short form
 *
 * Zero is not echoed, but for the end that has connected: the ack of a SYN-ACK with the option has it too, or else the
 * other end would take this one for no peer where only the way there has a router. What follows has it as well until
 * the other end is known to have got some of it, since that ack may be lost.
 *
 * An end obeys once the handshake has brought back a stamp that some router has lowered. RCP echoes what came. XCP echoes
 * a running sum of granted changes that starts at 1, and zero until a router has written a grant: a stamp that still is
 * the wish for as much as there is was seen by no router and grants nothing. VCP echoes t_rho, and how many packets have come with
 * each of the codes that IP's ECN bits hold; what has no t_rho was seen by no router and counts for nothing.
 *
 * A SYN sent for the third time goes without: some middlebox may drop what it does not know (host_blackhole.h). For a SYN-ACK that is
 * sent again, those who listen keep the SYN.
 */
#ifndef FLOWSTAMP_HOST_OPTION_H
#define FLOWSTAMP_HOST_OPTION_H

#include "host_blackhole.h"

struct fs_option {
	__u8 bytes[FS_LONG_LEN];
};

FS_INLINE int fs_find(struct bpf_sock_ops *ops, __u32 law, struct fs_option *found, __u64 flags)
{
	__builtin_memset(found, 0, sizeof(*found));
	found->bytes[0] = FS_OPTION_KIND;
	found->bytes[1] = 4;
	fs_put16(found->bytes + FS_AT_EXID, fs_exid(law));
	return bpf_load_hdr_opt(ops, found, sizeof(*found), flags);
}

/* The law of the option that is there, or FS_NONE. */
FS_INLINE __u32 fs_find_any(struct bpf_sock_ops *ops, struct fs_option *found, int *len, __u64 flags)
{
	*len = fs_find(ops, FS_RCP, found, flags);
	if (*len == FS_LONG_LEN || *len == FS_SHORT_LEN)
		return FS_RCP;
	*len = fs_find(ops, FS_XCP, found, flags);
	if (*len == FS_LONG_LEN || *len == FS_SHORT_LEN)
		return FS_XCP;
	*len = fs_find(ops, FS_VCP, found, flags);
	if (*len == FS_LONG_LEN || *len == FS_SHORT_LEN)
		return FS_VCP;
	return FS_NONE;
}

/* Segments of the packet being read. */
FS_INLINE __u32 fs_segments(struct bpf_sock_ops *ops)
{
	struct bpf_sock_ops_kern *kernel = bpf_cast_to_kern_ctx(ops);
	struct sk_buff *skb = kernel->skb;
	struct skb_shared_info *shared;

	if (!skb)
		return 1;
	skb = bpf_rdonly_cast(skb, bpf_core_type_id_kernel(struct sk_buff));
	shared = bpf_rdonly_cast(skb->head + skb->end, bpf_core_type_id_kernel(struct skb_shared_info));
	return shared->gso_segs ? shared->gso_segs : 1;
}

/* ECN's bits of the packet being read. The kernel joins none that differ in them. */
FS_INLINE __u32 fs_code(struct bpf_sock_ops *ops)
{
	struct bpf_sock_ops_kern *kernel = bpf_cast_to_kern_ctx(ops);
	struct sk_buff *skb = kernel->skb;
	__u8 start[2];

	if (!skb)
		return FS_VCP_NONE;
	skb = bpf_rdonly_cast(skb, bpf_core_type_id_kernel(struct sk_buff));
	if (bpf_probe_read_kernel(start, sizeof(start), skb->head + skb->network_header))
		return FS_VCP_NONE;
	return (start[0] >> 4 == 4 ? start[1] : start[1] >> 4) & 3;
}

/* The peer's stamp came: what to echo from now on. */
FS_INLINE void fs_receive_stamp(struct bpf_sock_ops *ops, struct fs_flow *flow, const struct fs_option *option)
{
	__u32 stamp = fs_get32(option->bytes + FS_AT_STAMP), segments = fs_segments(ops);

	if (flow->law == FS_VCP) {
		flow->echo = fs_vcp_echo(flow->echo, fs_code(ops), segments, stamp);
		return;
	}

	if (flow->law == FS_RCP) {
		if (stamp)
			flow->echo = stamp;
		return;
	}
	if (stamp == FS_XCP_UNBOUNDED)
		return;
	flow->echo = (flow->echo ? flow->echo : 1) + stamp * segments;
	if (!flow->echo)
		flow->echo = 1;
}

/* The peer's echo came: whether a router has answered, and what it gave. */
FS_INLINE void fs_receive_echo(struct fs_flow *flow, const struct fs_option *option)
{
	__u32 echo = fs_get32(option->bytes + FS_AT_ECHO);

	if (!echo || (flow->law == FS_RCP && echo == FS_RCP_UNBOUNDED))
		return;
	if (flow->law == FS_VCP) {
		if (!(echo >> 24))
			flow->t_rho_us = echo;
		/* The same count again: nothing has come by a router since. And who does not know t_rho can do nothing with a code. */
		if (!fs_vcp_is_newer(flow->heard, echo) || !flow->t_rho_us)
			return;
	}
	flow->heard = echo;
	flow->echoes++;
	if (flow->sender == FS_ASKED) {
		flow->sender = FS_ANSWERED;
		flow->applied = echo;
		fs_count(FS_COUNT_ANSWERED);
	}
}

FS_INLINE void fs_receive(struct bpf_sock_ops *ops, struct fs_flow *flow, const struct fs_option *option, int len)
{
	if (len == FS_LONG_LEN)
		fs_receive_stamp(ops, flow, option);
	fs_receive_echo(flow, option);
}

/* The option of a handshake's packet. */
FS_INLINE void fs_fill_wish(struct fs_option *option, __u32 law, __u32 echo)
{
	__builtin_memset(option, 0, sizeof(*option));
	option->bytes[0] = FS_OPTION_KIND;
	option->bytes[1] = FS_LONG_LEN;
	fs_put16(option->bytes + FS_AT_EXID, fs_exid(law));
	fs_put32(option->bytes + FS_AT_ECHO, echo);
	fs_put16(option->bytes + FS_AT_FLAGS, law == FS_XCP ? 1 : FS_FLAG_HANDSHAKE);
	if (law == FS_VCP)
		return;
	fs_put32(option->bytes + FS_AT_STAMP, law == FS_RCP ? FS_RCP_UNBOUNDED : FS_XCP_UNBOUNDED);
	fs_put16(option->bytes + FS_AT_RTT, FS_RTT_UNKNOWN);
}

/* The stamp of a sender that obeys. */
FS_INLINE void fs_fill_stamp(struct fs_option *option, const struct fs_flow *flow, const struct tcp_sock *tp)
{
	__u32 srtt_us = fs_named_rtt_us(tp, flow), packets;
	__u64 desired;

	/* Its stamp is for routers alone to fill. */
	if (flow->law == FS_VCP)
		return;
	desired = fs_desired(tp);
	fs_put16(option->bytes + FS_AT_RTT, srtt_us ? fs_rtt_pack(srtt_us) : FS_RTT_UNKNOWN);
	if (flow->law == FS_RCP) {
		desired /= 1000;
		fs_put32(option->bytes + FS_AT_STAMP, desired < FS_RCP_UNBOUNDED ? desired + 1 : FS_RCP_UNBOUNDED);
		return;
	}
	packets = fs_in_flight(tp);
	fs_put32(option->bytes + FS_AT_STAMP, fs_xcp_wish(desired, flow->window, srtt_us, packets));
	fs_put16(option->bytes + FS_AT_FLAGS, packets < 65535 ? packets : 65535);
}

FS_INLINE int fs_is_synack(const struct bpf_sock_ops *ops)
{
	return (ops->skb_tcp_flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK);
}

/* Whether this packet carries the stamp; otherwise the short form does. */
FS_INLINE int fs_stamped(const struct bpf_sock_ops *ops, const struct fs_flow *flow, int payload)
{
	return flow->sender == FS_OBEYING && (payload || ops->skb_tcp_flags & TCP_FIN);
}

/* Whether the other end may still wait for the handshake's end: it has sent no data, and acked nothing but the SYN. */
FS_INLINE int fs_is_awaited(const struct bpf_sock_ops *ops)
{
	return !ops->bytes_received && ops->bytes_acked <= 1;
}

FS_INLINE void fs_listen_in(struct bpf_sock_ops *ops)
{
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | FS_CALLBACKS);
}

FS_INLINE void fs_stay_out(struct bpf_sock_ops *ops)
{
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~FS_CALLBACKS);
}

/* Whether packets have the option, so that losing them may be its fault. */
FS_INLINE int fs_carries(const struct bpf_sock_ops *ops, const struct fs_flow *flow)
{
	return flow->sender == FS_OBEYING || flow->echo || fs_is_awaited(ops);
}

/* The path drops the option: no packet has it from now on. A congestion control of ours goes at the next ack. */
FS_INLINE void fs_leave_blackhole(struct bpf_sock_ops *ops, struct fs_flow *flow)
{
	flow->sender = FS_LEFT;
	flow->echo = 0;
	fs_stay_out(ops);
	fs_shun(ops);
	fs_departs(FS_COUNT_BLACKHOLE, bpf_ktime_get_ns() / 1000, ops->local_port, bpf_ntohl(ops->remote_port));
}

/* The retransmission timer has run out, for the first time since an ack if the argument is 0. SYNs are counted where they are built. */
FS_INLINE void fs_timeout(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct fs_flow *flow;

	if (!sk || ops->state == BPF_TCP_SYN_SENT || ops->state == BPF_TCP_SYN_RECV || ops->args[0] + 1 < FS_TIMEOUTS_MAX)
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (flow && fs_carries(ops, flow))
		fs_leave_blackhole(ops, flow);
}

/* Before a packet is built: how much room the option needs. */
FS_INLINE void fs_reserve(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	int mss = ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS, len;
	struct fs_option option;
	struct fs_flow *flow;

	if (!mss && fs_is_synack(ops)) {
		if (fs_synack_retries(ops) < FS_SYNACK_RETRIES_WITH_OPTION && !fs_is_shunned(ops) &&
		    fs_find_any(ops, &option, &len, BPF_LOAD_HDR_OPT_TCP_SYN))
			bpf_reserve_hdr_opt(ops, FS_LONG_LEN, 0);
		return;
	}
	if (!sk)
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!flow)
		return;
	if (!mss && ops->skb_tcp_flags & TCP_SYN) {
		if (ops->total_retrans < FS_SYN_RETRIES_WITH_OPTION)
			bpf_reserve_hdr_opt(ops, FS_LONG_LEN, 0);
		return;
	}
	if (!mss && !ops->skb_len && !(ops->skb_tcp_flags & TCP_FIN) && fs_carries(ops, flow) &&
	    fs_is_unheard(ops, flow, fs_is_awaited(ops))) {
		fs_leave_blackhole(ops, flow);
		return;
	}
	if (fs_stamped(ops, flow, mss || ops->skb_len) && !bpf_reserve_hdr_opt(ops, FS_LONG_LEN, 0))
		return;
	if (flow->echo || fs_is_awaited(ops))
		bpf_reserve_hdr_opt(ops, FS_SHORT_LEN, 0);
}

/* A packet is built: the option goes into the room that was reserved. */
FS_INLINE void fs_write(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct fs_option option;
	struct fs_flow *flow;
	struct tcp_sock *tp;
	__u32 law;
	int len;

	if (fs_is_synack(ops)) {
		__u32 stamp;

		law = fs_find_any(ops, &option, &len, BPF_LOAD_HDR_OPT_TCP_SYN);
		if (!law || len != FS_LONG_LEN)
			return;
		stamp = fs_get32(option.bytes + FS_AT_STAMP);
		if (law == FS_XCP)
			stamp = stamp == FS_XCP_UNBOUNDED ? 0 : 1;
		if (law == FS_VCP)
			stamp = fs_vcp_echo(0, FS_VCP_NONE, 1, stamp);
		fs_fill_wish(&option, law, stamp);
		bpf_store_hdr_opt(ops, &option, FS_LONG_LEN, 0);
		return;
	}
	if (!sk)
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!flow)
		return;
	fs_fill_wish(&option, flow->law, flow->echo);
	if (ops->skb_tcp_flags & TCP_SYN) {
		bpf_store_hdr_opt(ops, &option, FS_LONG_LEN, 0);
		return;
	}
	/* skb_len counts the header by now: a plain ack is told by the room that is left instead. */
	fs_put16(option.bytes + FS_AT_FLAGS, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp && flow->sender == FS_OBEYING) {
		fs_fill_stamp(&option, flow, tp);
		if (!bpf_store_hdr_opt(ops, &option, FS_LONG_LEN, 0))
			return;
	}
	option.bytes[1] = FS_SHORT_LEN;
	bpf_store_hdr_opt(ops, &option, FS_SHORT_LEN, 0);
}

/* Names as the kernel keeps them: padded with zeros. */
FS_INLINE int fs_same_name(const char *a, const char *b)
{
	for (int i = 0; i < 16; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

/* connect(): the law that the socket's congestion control names, or else the host's. */
FS_INLINE void fs_connect(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct fs_settings *set = fs_set();
	struct fs_flow *flow;
	char name[16] = {};
	__u32 law;

	if (!set || !sk || fs_is_shunned(ops))
		return;
	law = set->law;
	if (!bpf_getsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name))) {
		if (fs_same_name(name, set->names[FS_RCP]))
			law = FS_RCP;
		else if (fs_same_name(name, set->names[FS_XCP]))
			law = FS_XCP;
		else if (fs_same_name(name, set->names[FS_VCP]))
			law = FS_VCP;
	}
	flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return;
	__builtin_memset(flow, 0, sizeof(*flow));
	flow->law = law;
	fs_listen_in(ops);
}

/* Whether the handshake has succeeded only after our part of it went without the option. `flow` is there if we have connected. */
FS_INLINE int fs_shook_without(struct bpf_sock_ops *ops, const struct fs_flow *flow)
{
	struct fs_option option;
	int len;

	if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return flow && ops->total_retrans >= FS_SYN_RETRIES_WITH_OPTION;
	return ops->total_retrans >= FS_SYNACK_RETRIES_WITH_OPTION && fs_find_any(ops, &option, &len, BPF_LOAD_HDR_OPT_TCP_SYN);
}

/* The SYN-ACK came, or the ack that ends the handshake (or the first data, if that ack was lost). */
FS_INLINE void fs_established(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct fs_option option;
	__u32 law, why = FS_COUNT_NO_PEER;
	struct fs_flow *flow;
	int len;

	if (!sk)
		return;
	law = fs_find_any(ops, &option, &len, 0);
	flow = bpf_sk_storage_get(&flows, sk, 0, law ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!flow || !law || (flow->law && flow->law != law)) {
		if (flow)
			flow->sender = FS_LEFT;
		fs_stay_out(ops);
		if (!law && fs_shook_without(ops, flow))
			fs_shun(ops);
		if (!law && fs_is_shunned(ops))
			why = FS_COUNT_BLACKHOLE;
		fs_departs(why, bpf_ktime_get_ns() / 1000, ops->local_port, bpf_ntohl(ops->remote_port));
		return;
	}
	flow->law = law;
	flow->repeated = ops->total_retrans > 0;
	fs_listen_in(ops);
	fs_receive(ops, flow, &option, len);
}

FS_INLINE void fs_parse(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct fs_option option;
	struct fs_flow *flow;
	int len;

	if (!sk)
		return;
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!flow || !flow->law)
		return;
	len = fs_find(ops, flow->law, &option, 0);
	if (len == FS_LONG_LEN || len == FS_SHORT_LEN)
		fs_receive(ops, flow, &option, len);
}

#endif
