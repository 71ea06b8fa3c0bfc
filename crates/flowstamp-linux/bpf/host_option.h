/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Writes the option into, and reads it from, the packets of the sockets in a cgroup.
 *
 *   SYN       the request                         after every connect(), because the peer may be the one that sends
 *   SYN-ACK   echo of the SYN's stamp, a request  only if the SYN had the option
 *   data, FIN echo, and the stamp of a sender that follows the law
 *   ack       echo, in the short form
 *
 * A host does not echo zero, with one exception: the client echoes zero in its ack of a SYN-ACK with the option.
 * Otherwise, if only the path to the client has a router, the server would conclude that the client does not support
 * the option. The client repeats this echo until it knows that the server has received a packet, because that ack may
 * be lost.
 *
 * A sender follows the law once the handshake has echoed a stamp that a router has lowered. RCP echoes the received
 * rate. XCP echoes a running sum of granted changes, which starts at 1; before a router has written a grant, the echo
 * is zero. An XCP stamp that still requests an unlimited rate has passed no router and grants nothing. VCP echoes
 * t_rho, and the number of packets received with each ECN code. A packet without t_rho has passed no router and does
 * not count.
 *
 * The third SYN omits the option, because a middlebox may drop unknown options (host_blackhole.h). Listening sockets
 * save the SYN, so that a retransmitted SYN-ACK can read it.
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

/* The law of the option in the packet, or FS_NONE. */
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

/* Number of TCP segments in the received packet. */
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

/* ECN bits of the received packet. The kernel does not merge segments with different bits. */
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

/* Updates the echo from the peer's stamp. */
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

/* Updates what the routers have granted from the peer's echo. */
FS_INLINE void fs_receive_echo(struct fs_flow *flow, const struct fs_option *option)
{
	__u32 echo = fs_get32(option->bytes + FS_AT_ECHO);

	if (!echo || (flow->law == FS_RCP && echo == FS_RCP_UNBOUNDED))
		return;
	if (flow->law == FS_VCP) {
		if (!(echo >> 24))
			flow->t_rho_us = echo;
		/*
		 * An unchanged count says that no packet has passed a router since. A sender without t_rho cannot use a code.
		 */
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

/* Fills in the option of a handshake packet. */
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

/* Fills in the stamp of a sender that follows the law. */
FS_INLINE void fs_fill_stamp(struct fs_option *option, const struct fs_flow *flow, const struct tcp_sock *tp)
{
	__u32 srtt_us = fs_named_rtt_us(tp, flow), packets;
	struct fs_settings *set = fs_set();
	__u64 desired;

	/* Only routers write VCP's stamp. */
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
	fs_put16(option->bytes + FS_AT_FLAGS, fs_xcp_stated(packets, set ? set->xcp.inverse_price_q16 : 1 << 16));
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

/* Whether the peer may still wait for the end of the handshake: it has sent no data, and has acked only the SYN. */
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

/* Whether packets carry the option, so that the option may be the cause of a loss. */
FS_INLINE int fs_carries(const struct bpf_sock_ops *ops, const struct fs_flow *flow)
{
	return flow->sender == FS_OBEYING || flow->echo || fs_is_awaited(ops);
}

/*
 * Handles a path that drops the option: no packet carries it from now on. Our congestion control hands over at the next
 * ack.
 */
FS_INLINE void fs_leave_blackhole(struct bpf_sock_ops *ops, struct fs_flow *flow)
{
	flow->sender = FS_LEFT;
	flow->echo = 0;
	fs_stay_out(ops);
	fs_shun(ops);
	fs_departs(FS_COUNT_BLACKHOLE, bpf_ktime_get_ns() / 1000, ops->local_port, bpf_ntohl(ops->remote_port));
}

/*
 * Handles a retransmission timeout; the argument is 0 for the first one since an ack. SYNs are counted where they are
 * built.
 */
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

/* Reserves room for the option before a packet is built. */
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

/* Writes the option into the reserved room of a packet. */
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
	/*
	 * skb_len includes the header at this point. The long form does not fit into a plain ack's reserved room, so the short
	 * form follows.
	 */
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

/* Compares two names that are padded with zeros, as the kernel stores them. */
FS_INLINE int fs_same_name(const char *a, const char *b)
{
	for (int i = 0; i < 16; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

/* Handles connect(): the socket's congestion control selects the law, or else the host's setting does. */
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

/*
 * Whether the handshake succeeded only after our part of it omitted the option. `flow` is set if this host is the
 * client.
 */
FS_INLINE int fs_shook_without(struct bpf_sock_ops *ops, const struct fs_flow *flow)
{
	struct fs_option option;
	int len;

	if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return flow && ops->total_retrans >= FS_SYN_RETRIES_WITH_OPTION;
	return ops->total_retrans >= FS_SYNACK_RETRIES_WITH_OPTION && fs_find_any(ops, &option, &len, BPF_LOAD_HDR_OPT_TCP_SYN);
}

/* Handles the SYN-ACK, or the ack that ends the handshake (or the first data if that ack was lost). */
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
