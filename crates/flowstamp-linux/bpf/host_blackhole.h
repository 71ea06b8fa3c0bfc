/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Detects paths that drop packets with the option. A host that finds one stops reserving room for the option on that
 * connection, which falls back to the kernel's congestion control. The host also opens no connection with the option to
 * that peer for a while.
 *
 *   SYN        The third SYN omits the option (host_option.h). A SYN-ACK without the option then confirms the blackhole.
 *   SYN-ACK    The fourth SYN-ACK omits the option. If the client resends its SYN each second, the first three take 2 s.
 *   data, FIN  Two retransmission timeouts in a row, with no ack between them.
 *   acks       Acks have no retransmission timer, but the peer retransmits what was acked. Either the same data arrives for
 *              the third time, which shows in the D-SACK (RFC 2883) of its ack. Or a SYN-ACK does, which shows in an ack sent
 *              although no data has arrived.
 *
 * The kernel waits for three timeouts before it disables TCP Fast Open. Those are timeouts of SYNs, which take seconds. Two
 * timeouts of data take 0.6 s, or 3 RTTs, so two are enough here.
 */
#ifndef FLOWSTAMP_HOST_BLACKHOLE_H
#define FLOWSTAMP_HOST_BLACKHOLE_H

#include "host_flow.h"
#include "shun.h"

#define FS_SYN_RETRIES_WITH_OPTION 2
#define FS_SYNACK_RETRIES_WITH_OPTION 3
#define FS_TIMEOUTS_MAX 2
#define FS_ANSWERS_MAX 3
/* About 400 kB. The least recently used peer is evicted first. */
#define FS_SHUNNED_MAX 4096

struct fs_peer {
	/* An address identifies a peer only within its network namespace. */
	__u64 netns;
	/* An IPv6 address, or an IPv4 address in IPv4-mapped form. */
	__u32 address[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FS_SHUNNED_MAX);
	__type(key, struct fs_peer);
	__type(value, struct fs_shunned);
} shunned SEC(".maps");

/* Always reads all fields, because a context field must be read at an offset known at compile time. */
FS_INLINE void fs_peer_of(struct bpf_sock_ops *ops, struct fs_peer *peer)
{
	const volatile struct bpf_sock_ops *now = ops;
	__u32 address = now->remote_ip4;

	peer->netns = bpf_get_netns_cookie(ops);
	peer->address[0] = now->remote_ip6[0];
	peer->address[1] = now->remote_ip6[1];
	peer->address[2] = now->remote_ip6[2];
	peer->address[3] = now->remote_ip6[3];
	if (now->family != AF_INET6) {
		peer->address[0] = peer->address[1] = 0;
		peer->address[2] = bpf_htonl(0xffff);
		peer->address[3] = address;
	}
}

/* Whether packets to this peer must omit the option now. Also works for connection requests. */
FS_INLINE int fs_is_shunned(struct bpf_sock_ops *ops)
{
	struct fs_shunned *known;
	struct fs_peer peer;

	fs_peer_of(ops, &peer);
	known = bpf_map_lookup_elem(&shunned, &peer);
	return known && bpf_ktime_get_ns() < known->until_ns;
}

FS_INLINE void fs_shun(struct bpf_sock_ops *ops)
{
	struct fs_shunned *known, is = {};
	struct fs_peer peer;

	fs_peer_of(ops, &peer);
	known = bpf_map_lookup_elem(&shunned, &peer);
	if (known)
		is = *known;
	fs_shun_until(&is, bpf_ktime_get_ns());
	bpf_map_update_elem(&shunned, &peer, &is, BPF_ANY);
}

/*
 * Counts repeated answers for the same sequence number, starting at `answers`; returns whether they have reached the
 * limit.
 */
FS_INLINE int fs_is_one_too_many(struct fs_flow *flow, __u32 received, __u32 start, __u32 answers)
{
	if (flow->answers && flow->answered == start && flow->received == received)
		answers = flow->answers + 1;
	flow->answers = answers;
	flow->answered = start;
	flow->received = received;
	return answers >= FS_ANSWERS_MAX;
}

/*
 * Called before an ack without data is built. Returns whether earlier acks with the same content seem to be lost.
 * `awaited` is fs_is_awaited().
 */
FS_INLINE int fs_is_unheard(struct bpf_sock_ops *ops, struct fs_flow *flow, int awaited)
{
	struct bpf_sock *sk = ops->sk;
	struct bpf_sock_ops_kern *kernel;
	struct tcp_sock *tp;
	struct sk_buff *skb;
	__u32 seq;

	if (!sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	/* Starts at 2: the first ack of this data was not a D-SACK. */
	if (BPF_CORE_READ_BITFIELD_PROBED(tp, rx_opt.dsack))
		return fs_is_one_too_many(flow, ops->rcv_nxt, tp->duplicate_sack[0].start_seq, 2);
	/* A peer that has sent data, in order or not, has received our ack. */
	if (!awaited || ops->data_segs_in)
		return 0;
	kernel = bpf_cast_to_kern_ctx(ops);
	skb = kernel->skb;
	if (!skb)
		return 0;
	skb = bpf_rdonly_cast(skb, bpf_core_type_id_kernel(struct sk_buff));
	/*
	 * The control block starts with TCP's sequence number. A keep-alive uses the previous number and answers nothing.
	 */
	if (bpf_probe_read_kernel(&seq, sizeof(seq), skb->cb) || seq != ops->snd_nxt)
		return 0;
	return fs_is_one_too_many(flow, ops->rcv_nxt, ops->rcv_nxt, 1);
}

/* Number of times the SYN-ACK was resent. It is read from the request, which is not a full socket yet. */
FS_INLINE __u32 fs_synack_retries(struct bpf_sock_ops *ops)
{
	struct bpf_sock_ops_kern *kernel = bpf_cast_to_kern_ctx(ops);
	struct request_sock *request = bpf_rdonly_cast(kernel->sk, bpf_core_type_id_kernel(struct request_sock));

	return request->num_retrans;
}

#endif
