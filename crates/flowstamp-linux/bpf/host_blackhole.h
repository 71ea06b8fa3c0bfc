/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Paths that drop what carries the option. Who finds one reserves no room for it on that connection any more, is the kernel's own, and
 * opens no connection with the option to that peer for a while.
 *
 *   SYN        the third goes without (host_option.h); a SYN-ACK without the option answers it
 *   SYN-ACK    the fourth goes without: with a client that sends its SYN again each second the first three take two seconds
 *   data, FIN  two time-outs in a row, with no ack between them
 *   acks       who sends them has no time-outs. But the other end sends again what has been answered: the same data for the third
 *              time, which shows in the D-SACK (RFC 2883) that answers them, or a SYN-ACK, which an ack answers when nothing else has come
 *
 * Two time-outs, not three as for TCP Fast Open in the kernel: those are of SYNs, which take seconds; two of data take 0.6 s, or 3 RTTs.
 */
#ifndef FLOWSTAMP_HOST_BLACKHOLE_H
#define FLOWSTAMP_HOST_BLACKHOLE_H

#include "host_flow.h"
#include "shun.h"

#define FS_SYN_RETRIES_WITH_OPTION 2
#define FS_SYNACK_RETRIES_WITH_OPTION 3
#define FS_TIMEOUTS_MAX 2
#define FS_ANSWERS_MAX 3
/* Some 400 kB; the peer unheard of for longest goes first. */
#define FS_SHUNNED_MAX 4096

struct fs_peer {
	/* Addresses are a namespace's own. */
	__u64 netns;
	/* IPv6's, or as IPv6 maps those of IPv4. */
	__u32 address[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FS_SHUNNED_MAX);
	__type(key, struct fs_peer);
	__type(value, struct fs_shunned);
} shunned SEC(".maps");

/* All are read in any case: a context's field has to be read at an offset that the compiler knows. */
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

/* Whether the option is not for this peer now; of requests for connections too. */
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

/* What has been counted of answers to the same thing. */
FS_INLINE int fs_is_one_too_many(struct fs_flow *flow, __u32 received, __u32 start, __u32 answers)
{
	if (flow->answers && flow->answered == start && flow->received == received)
		answers = flow->answers + 1;
	flow->answers = answers;
	flow->answered = start;
	flow->received = received;
	return answers >= FS_ANSWERS_MAX;
}

/* An ack without data is about to be built: whether those before it that said the same did not arrive. `awaited`: fs_is_awaited. */
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
	/* The first answer of data was no D-SACK. */
	if (BPF_CORE_READ_BITFIELD_PROBED(tp, rx_opt.dsack))
		return fs_is_one_too_many(flow, ops->rcv_nxt, tp->duplicate_sack[0].start_seq, 2);
	/* Data, in whatever order, are from an end that has heard of this one. */
	if (!awaited || ops->data_segs_in)
		return 0;
	kernel = bpf_cast_to_kern_ctx(ops);
	skb = kernel->skb;
	if (!skb)
		return 0;
	skb = bpf_rdonly_cast(skb, bpf_core_type_id_kernel(struct sk_buff));
	/* TCP's sequence number comes first in there. A keep-alive's is the one before, and answers nothing. */
	if (bpf_probe_read_kernel(&seq, sizeof(seq), skb->cb) || seq != ops->snd_nxt)
		return 0;
	return fs_is_one_too_many(flow, ops->rcv_nxt, ops->rcv_nxt, 1);
}

/* How often a SYN-ACK was sent already: its request is no socket yet. */
FS_INLINE __u32 fs_synack_retries(struct bpf_sock_ops *ops)
{
	struct bpf_sock_ops_kern *kernel = bpf_cast_to_kern_ctx(ops);
	struct request_sock *request = bpf_rdonly_cast(kernel->sk, bpf_core_type_id_kernel(struct request_sock));

	return request->num_retrans;
}

#endif
