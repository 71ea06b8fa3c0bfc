// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RCP under UDP at an end host (Dukkipati 2007, section 6.1.1). Datagrams from or to a listed port carry the shim
 * between IP and UDP, leave at the rate R of their path's routers, and arrive without it.
 *
 *            sender's egress                       receiver's ingress
 *   question    IP | shim | UDP, no payload  ---->  turned around: the rate goes into `reverse`
 *   datagram    IP | shim | UDP | payload    ---->  the shim goes; the rate is kept for the opposite direction
 *
 * A sender asks once per RTT, at most with a tenth of R, just before a datagram. The answer brings R and the RTT. If R
 * changes by an eighth in between, or no question comes because the sender's datagrams wait for their departure times, the
 * receiver returns R unasked. Such a return is an answer in which "no next header" follows the shim. Until the first
 * answer, and after four questions in a row without one, datagrams leave unchanged and are not paced, because a host
 * without these programs would drop protocol 254.
 *
 * Deviations (crates/flowstamp-laws/src/rcp/stream.rs says / we do / because):
 * 1. The first question goes ahead of all data / beside the first data / the kernel cannot hold a datagram here.
 * 2. Every datagram has the header / not segmentation-offload frames, fragments, those that would exceed the MTU, and
 *    those without payload / the kernel splits a frame of protocol 254 into nothing, and a shim without payload is a
 *    question. All except fragments are paced, at the rate of the answers.
 * 3. RTTs are real numbers / whole milliseconds, at least 1 / the field has whole milliseconds, and routers ignore zero.
 */
#include "udp_packet.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Whether it is time for a question. Notes a question without an answer. */
FS_INLINE bool is_due(struct fs_udp_flow *flow, __u64 now, __u32 question_bytes)
{
	__u64 wait_ns = flow->srtt_us * 1000ULL, tenth_ns = 0;
	__u32 backoff;

	if (!flow->asked_ns)
		return true;
	if (flow->waits) {
		backoff = flow->misses > FS_BACKOFF_MAX ? FS_BACKOFF_MAX : flow->misses;
		wait_ns = (FS_PATIENCE_NS + 2 * wait_ns) << (flow->state == FS_UDP_OBEYS ? 0 : backoff);
		if (now - flow->asked_ns < wait_ns)
			return false;
		flow->misses++;
		if (flow->state == FS_UDP_OBEYS && flow->misses >= FS_MISSES_MAX) {
			flow->state = FS_UDP_ASKS;
			flow->rate = 0;
			count(FS_UDP_LEFT);
		}
		return true;
	}
	if (flow->rate)
		tenth_ns = 10 * question_bytes * FS_NS_PER_MS / flow->rate;
	return now - flow->asked_ns >= (wait_ns > tenth_ns ? wait_ns : tenth_ns);
}

/* Sends a copy of the datagram, which fs_udp_out() changes as it passes. */
FS_INLINE void send_copy(struct __sk_buff *skb, __u32 kind)
{
	__u32 zero = 0, *copy = bpf_map_lookup_elem(&copying, &zero);

	if (!copy)
		return;
	*copy = kind;
	bpf_clone_redirect(skb, skb->ifindex, 0);
	*copy = FS_UDP_DATAGRAM;
}

FS_INLINE void ask(struct __sk_buff *skb, struct fs_udp_flow *flow, __u64 now)
{
	flow->asked_ns = now;
	flow->waits = 1;
	send_copy(skb, FS_UDP_QUESTION);
	count(FS_UDP_ASKED);
}

/* Plans the datagram's departure: for fq by its time, elsewhere by the flow's class. */
FS_INLINE void pace(struct __sk_buff *skb, const struct fs_udp_key *key, struct fs_udp_flow *flow, __u64 now)
{
	__u64 at = flow->next_ns > now ? flow->next_ns : now;
	__u32 *class = bpf_map_lookup_elem(&classes, key);

	if (class)
		skb->priority = *class;
	if (!flow->rate || flow->rate == FS_UNBOUNDED)
		return;
	flow->next_ns = at + skb->wire_len * FS_NS_PER_MS / flow->rate;
	if (flow->next_ns > now + FS_AHEAD_MAX_NS)
		flow->next_ns = now + FS_AHEAD_MAX_NS;
	bpf_skb_set_tstamp(skb, at, BPF_SKB_TSTAMP_DELIVERY_MONO);
}

SEC("tcx/egress")
int fs_udp_out(struct __sk_buff *skb)
{
	struct fs_datagram d = {};
	struct fs_udp_key key = {};
	struct fs_udp_settings *set;
	struct fs_udp_flow *flow;
	struct fs_shim shim;
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0, *copy = bpf_map_lookup_elem(&copying, &zero), kind;
	__be16 udp[3];

	if (copy && *copy) {
		kind = *copy;
		*copy = FS_UDP_DATAGRAM;
		return kind == FS_UDP_QUESTION ? make_question(skb) : make_return(skb);
	}
	set = bpf_map_lookup_elem(&settings, &zero);
	/* Packets that this host forwards have no socket. Their own hosts may take part. */
	if (!set || !skb->sk || !read_ip(skb, &d) || d.protocol != FS_PROTO_UDP)
		return TCX_NEXT;
	if (bpf_skb_load_bytes(skb, d.next_at, udp, sizeof(udp)) || (!is_listed(set, udp[0]) && !is_listed(set, udp[1])))
		return TCX_NEXT;
	name_flow(skb, &d, udp, true, &key);
	flow = flow_of(&key);
	if (!flow)
		return TCX_NEXT;
	flow->seen_ns = now;
	flow->ifindex = skb->ifindex;
	if (is_due(flow, now, d.next_at + FS_SHIM_LEN + UDP_HLEN))
		ask(skb, flow, now);
	if (flow->state != FS_UDP_OBEYS)
		return TCX_NEXT;
	pace(skb, &key, flow, now);
	fill(&shim, set, flow);
	shim.reverse = bpf_htonl(flow->received);
	if (udp[2] == bpf_htons(UDP_HLEN) || !add_shim(skb, &d, &shim))
		count(FS_UDP_PLAIN);
	return TCX_NEXT;
}

FS_INLINE void note_return(struct fs_udp_flow *flow, __u64 now)
{
	flow->returned = flow->received;
	flow->returned_ns = now;
}

/*
 * Whether a datagram's rate must go back unasked. It goes back at most four times per RTT if it has changed by an eighth. It
 * also goes back if nothing has gone back for so long that the sender must be waiting.
 */
FS_INLINE bool must_return(const struct fs_udp_flow *flow, __u64 now, __u32 rtt_ms)
{
	__u64 since_ns = now - flow->returned_ns, rate = flow->received, returned = flow->returned;
	__u64 rtt_ns = rtt_ms == FS_SHIM_RTT_UNKNOWN ? 0 : rtt_ms * FS_NS_PER_MS;

	if (since_ns >= FS_PATIENCE_NS + 2 * rtt_ns)
		return true;
	return since_ns >= rtt_ns / 4 && (8 * rate < 7 * returned || 8 * rate > 9 * returned);
}

/* Whether the packet is for this host, which then does not forward it. */
FS_INLINE bool is_local(struct __sk_buff *skb, const struct fs_datagram *d)
{
	struct bpf_fib_lookup to = {.l4_protocol = FS_PROTO_UDP, .tot_len = 0, .ifindex = skb->ifindex};
	long way;

	if (skb->pkt_type != PACKET_HOST)
		return false;
	if (d->version == 4) {
		to.family = AF_INET;
		__builtin_memcpy(&to.ipv4_src, d->source, 4);
		__builtin_memcpy(&to.ipv4_dst, d->destination, 4);
	} else {
		to.family = AF_INET6;
		__builtin_memcpy(to.ipv6_src, d->source, 16);
		__builtin_memcpy(to.ipv6_dst, d->destination, 16);
	}
	way = bpf_fib_lookup(skb, &to, sizeof(to), 0);
	return way == BPF_FIB_LKUP_RET_NOT_FWDED || way == BPF_FIB_LKUP_RET_FWD_DISABLED;
}

FS_INLINE void take_rate(const struct fs_udp_settings *set, struct fs_udp_flow *flow, __u32 rate)
{
	flow->rate = rate < set->rate_max ? rate : set->rate_max;
}

/* Handles the answer to the last question. */
FS_INLINE void take_answer(const struct fs_udp_settings *set, struct fs_udp_flow *flow, __u32 rate, __u64 now)
{
	__u64 rtt_us = (now - flow->asked_ns) / 1000;

	if (!flow->waits)
		return;
	/* After a miss, the answer may be to either question: its RTT is not known. */
	if (!flow->srtt_us)
		flow->srtt_us = rtt_us ? rtt_us : 1;
	else if (!flow->misses)
		flow->srtt_us = (7ULL * flow->srtt_us + rtt_us + 4) / 8;
	flow->waits = 0;
	flow->misses = 0;
	flow->state = FS_UDP_OBEYS;
	take_rate(set, flow, rate);
	count(FS_UDP_ANSWERED);
}

SEC("tcx/ingress")
int fs_udp_in(struct __sk_buff *skb)
{
	struct fs_datagram d = {};
	struct fs_udp_key key = {};
	struct fs_udp_settings *set;
	struct fs_udp_flow *flow;
	struct fs_shim shim, back;
	__u32 zero = 0, rate, headers;
	__u64 now = bpf_ktime_get_ns();
	__be16 udp[3];

	set = bpf_map_lookup_elem(&settings, &zero);
	if (!set || !read_ip(skb, &d) || d.protocol != FS_PROTO_RCP)
		return TCX_NEXT;
	headers = d.next_at - ETH_HLEN + FS_SHIM_LEN + UDP_HLEN;
	if (d.length < headers || bpf_skb_load_bytes(skb, d.next_at, &shim, sizeof(shim)))
		return TCX_NEXT;
	if (shim.protocol != FS_PROTO_UDP && (shim.protocol != FS_PROTO_NONE || !shim.reverse || d.length != headers))
		return TCX_NEXT;
	if (bpf_skb_load_bytes(skb, d.next_at + FS_SHIM_LEN, udp, sizeof(udp)))
		return TCX_NEXT;
	if ((!is_listed(set, udp[0]) && !is_listed(set, udp[1])) || !is_local(skb, &d))
		return TCX_NEXT;
	name_flow(skb, &d, udp, false, &key);
	flow = flow_of(&key);
	if (!flow)
		return TCX_NEXT;
	flow->seen_ns = now;
	rate = bpf_ntohl(shim.reverse);
	if (d.length == headers && rate && shim.protocol == FS_PROTO_UDP) {
		take_answer(set, flow, rate, now);
		return TCX_DROP;
	}
	if (rate && flow->state == FS_UDP_OBEYS)
		take_rate(set, flow, rate);
	if (shim.protocol == FS_PROTO_NONE)
		return TCX_DROP;
	rate = bpf_ntohl(shim.rate);
	flow->received = rate ? rate : FS_UNBOUNDED;
	if (d.length == headers) {
		note_return(flow, now);
		fill_answer(&back, flow->received, FS_PROTO_UDP);
		return turn_around(skb, &d, udp, &back) ? bpf_redirect(skb->ifindex, 0) : TCX_DROP;
	}
	if (must_return(flow, now, bpf_ntohs(shim.rtt_ms))) {
		note_return(flow, now);
		send_copy(skb, FS_UDP_RETURN);
	}
	if (bpf_skb_adjust_room(skb, -FS_SHIM_LEN, BPF_ADJ_ROOM_NET, 0))
		return TCX_NEXT;
	write_ip(skb, &d, d.length - FS_SHIM_LEN, FS_PROTO_UDP, BPF_F_RECOMPUTE_CSUM);
	return TCX_NEXT;
}

/* SO_MAX_PACING_RATE of a connected UDP socket is R, in bytes/s, while its flow obeys. */
SEC("cgroup/getsockopt")
int fs_udp_rate(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct fs_udp_key key = {};
	struct fs_udp_flow *flow;
	__u32 address[4];
	__u64 rate;

	if (ctx->level != SOL_SOCKET || ctx->optname != SO_MAX_PACING_RATE || !sk || sk->protocol != FS_PROTO_UDP)
		return 1;
	key.netns = bpf_get_netns_cookie(ctx);
	key.local_port = bpf_htons(sk->src_port);
	key.remote_port = sk->dst_port;
	key.version = sk->family == AF_INET ? 4 : 6;
	if (key.version == 6) {
		address[0] = sk->dst_ip6[0], address[1] = sk->dst_ip6[1];
		address[2] = sk->dst_ip6[2], address[3] = sk->dst_ip6[3];
		/* A socket of both families with an IPv4 peer. */
		if (!address[0] && !address[1] && address[2] == bpf_htonl(0xffff))
			key.version = 4;
		__builtin_memcpy(key.remote, address, 16);
		address[0] = sk->src_ip6[0], address[1] = sk->src_ip6[1];
		address[2] = sk->src_ip6[2], address[3] = sk->src_ip6[3];
		__builtin_memcpy(key.local, address, 16);
	}
	if (key.version == 4) {
		__builtin_memset(key.local, 0, 32);
		address[0] = sk->src_ip4;
		__builtin_memcpy(key.local, address, 4);
		address[0] = sk->dst_ip4;
		__builtin_memcpy(key.remote, address, 4);
	}
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow || flow->state != FS_UDP_OBEYS || !flow->rate || flow->rate == FS_UNBOUNDED)
		return 1;
	rate = flow->rate * 1000ULL;
	if (ctx->optval + sizeof(rate) <= ctx->optval_end && ctx->optlen >= (int)sizeof(rate)) {
		*(__u64 *)ctx->optval = rate;
	} else if (ctx->optval + sizeof(__u32) <= ctx->optval_end) {
		*(__u32 *)ctx->optval = rate > 0xffffffff ? 0xffffffff : rate;
	}
	return 1;
}
