// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The router of an interface. A tc egress program counts and stamps packets, and a timer runs the law.
 *
 * Deviations (laws say / we do / because):
 * 1. Arrival at the queue and start of transmission are two events / one event, before the queue / tc has no hook after
 *    the queue.
 * 2. Packets are counted one by one / a segmentation-offload frame counts as the packets and bytes that it becomes, and
 *    its option is copied into each / the wire will carry those packets.
 * 3. The queue of the law's own link / the backlog of the device's root queueing discipline, or of the own class's leaf
 *    on a shared link / that is the real queue. Therefore the rate must be limited there (tbf, htb), or by the device under a
 *    qdisc that reports its backlog at the root (fifo, fq_codel).
 * 4. VCP marks ECN-capable packets of other protocols at overload / only with `mark_others` / by default, the marks
 *    of these packets belong to their own hosts and queues. A packet is VCP's if it carries VCP's option. The router keeps
 *    no state per flow.
 * 5. VCP sends acks first / the program gives acks of VCP the priority of interactive traffic, if they have none, and
 *    the queueing discipline decides the order / the program runs before the queue, so it cannot reorder. `prio` and
 *    `pfifo_fast` have a band for this priority.
 * 6. Each datagram of a segmentation-offload frame may have a stamp packet of QUIC. The router stamps only the first one,
 *    because a sender that paces sends datagrams one by one. For RCP the client echoes the newest rate, so one stamp is
 *    enough. For XCP the requests in the other datagrams get no feedback.
 * 7. Stamp packets of QUIC are part of XCP / on a shared link (--share) they are other traffic / the verifier's limit.
 *
 * On a shared link, other traffic is counted and put into its class; the law does not see it.
 *
 * Counters are per CPU and only grow. This avoids atomic operations and shared cache lines, and loses no packet between
 * reading and clearing. The timer sums them and subtracts the previous sums. XCP's pools are shared by all CPUs under a
 * lock, because the total handed out must not exceed them.
 *
 * A bpf_timer runs the law instead of a daemon, so no process has to stay alive. Measured idle and under load, it was
 * as punctual as a real-time thread, while an ordinary thread was milliseconds late.
 */
#include "qdisc.h"
#include "packet.h"
#include "laws.h"
#include "share.h"
#include "vcp.h"
#include "xcpb.h"
#include "abc.h"
#include "router_state.h"
#include "abc_router.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TCX_NEXT -1
#define CLOCK_MONOTONIC 1
/* Hosts know neither XCP-b, a law on XCP's packets, nor ABC: their numbers follow those of laws with an option. */
#define FS_XCP_B FS_LAWS
#define FS_ABC (FS_LAWS + 1)
/* Frames of more packets than this (longer than 64 KiB) count as this many packets in the flow estimate. */
#define FS_MAX_COUNTED 64
/* Handles of the classes and leaves that `router attach --share htb` creates: src/router/htb.rs. */
#define FS_CLASS(class) (0x46530001U + (class))
#define FS_LEAF(class) (0x46540000U + ((class) << 16))
/* TC_PRIO_INTERACTIVE of linux/pkt_sched.h */
#define FS_PRIO_INTERACTIVE 6
/* Upper limit on the time between two timer events of a law. */
#define FS_MAX_WAIT_NS (20 * FS_NS_PER_S)

/* Bytes of other traffic, summed over all CPUs. */
FS_INLINE __u64 other_bytes(void)
{
	__u32 other = FS_OTHER;
	__u64 bytes = 0;

	for (__u32 cpu = 0; cpu < config.cpus && cpu < 1024; cpu++) {
		struct fs_class *class = bpf_map_lookup_percpu_elem(&classes, &other, cpu);

		if (!class)
			break;
		bytes += class->bytes;
	}
	return bytes;
}

/*
 * Updates the law's capacity after an interval of `interval_ns`. When `router share` ends, its weight stays valid, but
 * its measurement of other traffic soon expires.
 */
FS_INLINE void divide(struct fs_link *link, __u64 now, __u64 interval_ns)
{
	__u32 zero = 0;
	struct fs_share *split = bpf_map_lookup_elem(&share, &zero);
	__u64 bytes = other_bytes(), of_period;

	if (!split)
		return;
	of_period = (__s64)(now - split->until_ns) < 0 ? split->other_q16 : 0;
	link->own_capacity_q16 = fs_share_capacity(config.link_rate_q16, split->own_least_q16, of_period,
						   fs_rate_q16(bytes - link->seen_other_bytes, interval_ns));
	link->seen_other_bytes = bytes;
}

/* The queue that the law controls: the own class's, or the root's if there are no classes. */
FS_INLINE struct Qdisc *own_queue(struct net_device *device)
{
	struct Qdisc *leaf = config.share ? fs_qdisc(device, FS_LEAF(FS_OWN)) : 0;

	return leaf ? leaf : bpf_rdonly_cast(device->qdisc, bpf_core_type_id_kernel(struct Qdisc));
}

/*
 * Assigns a frame to its class and counts it. The own class has packets with a stamp, and acks with only an echo. Data
 * with only an echo is other traffic: its sender has left the law or never followed it. One exception: if both ends of
 * a flow send, SACK blocks can displace the stamp of a law-abiding sender in the round trips after a loss.
 */
FS_INLINE void share_packet(struct __sk_buff *skb, bool own)
{
	__u32 class = own ? FS_OWN : FS_OTHER, flow, packets = fs_segments(skb);
	struct fs_class *count = bpf_map_lookup_elem(&classes, &class);
	struct fs_zombies *list = bpf_map_lookup_elem(&zombies, &class);

	skb->priority = FS_CLASS(class);
	if (!count || !list)
		return;
	count->bytes += skb->wire_len;
	flow = bpf_get_hash_recalc(skb);
	for (__u32 i = 0; i < FS_MAX_COUNTED && i < packets; i++)
		fs_zombies_arrival(list, count, flow, bpf_get_prandom_u32());
}

FS_INLINE void rcp_packet(struct __sk_buff *skb, struct fs_link *link, struct fs_sums *sum)
{
	struct fs_found found = {};
	__u32 carried, offer;
	__be32 was, stamp;
	__u64 rtt_us;
	bool stamped = fs_find(skb, config.link_bytes, FS_EXID_RCP, FS_PROTO_RCP, &found) ||
		       fs_find_quic(skb, FS_EXID_RCP, &found);

	if (config.share)
		share_packet(skb, stamped || found.ack);
	if (!config.share || stamped || found.ack)
		fs_rcp_input(&sum->rcp, skb->wire_len);
	if (!stamped || !fs_rcp_carried(skb, &found, &was, &rtt_us))
		return;
	rtt_us = fs_rcp_counts_as(config.rcp.max_rtt_us, link->rcp.most_rtt_us, rtt_us);
	fs_rcp_rtt(&sum->rcp, config.rcp.max_rtt_us, rtt_us,
		   config.rcp.max_rtt_factor_q16 ? skb->wire_len : fs_segments(skb));
	carried = bpf_ntohl(was);
	/* In the shim, a rate of zero asks for as much as there is (appendix F, line 22). In the option it means none. */
	if (found.shim && carried == 0)
		carried = ~0U;
	offer = fs_rcp_stamp(link->offer, carried);
	if (offer == carried)
		return;
	stamp = bpf_htonl(offer);
	if (found.shim)
		/* No checksum includes the shim. */
		bpf_skb_store_bytes(skb, found.option, &stamp, sizeof(stamp), 0);
	else
		fs_write_stamp(skb, &found, was, stamp);
}

/* The law's input and output for one packet whose option is already parsed. */
struct fs_work {
	struct fs_rcp_sums sums;
	__u64 bytes;
	__u64 max_rtt_us;
	__u64 rtt_us;
	__u64 packets;
	__u32 offer;
	__u32 carried;
	__u32 stamp;
};

/*
 * The law of rcp_packet() as in the thesis, without packet access and without the cap on RTTs. Never loaded: `router
 * bench` counts its instructions.
 */
SEC("?syscall")
int fs_rcp_work(struct fs_work *work)
{
	__u32 carried = work->carried, offer;

	fs_rcp_input(&work->sums, work->bytes);
	fs_rcp_rtt(&work->sums, work->max_rtt_us, work->rtt_us, work->packets);
	offer = fs_rcp_stamp(work->offer, carried);
	if (offer != carried)
		work->stamp = offer;
	return 0;
}

/* The law's state, and its input and output for one interval. */
struct fs_interval_work {
	struct fs_rcp_params params;
	struct fs_rcp law;
	struct fs_rcp_sums sums;
	__u64 interval_ns;
	__u64 queue_bytes;
	__u64 next_ns;
	__u32 offer;
};

/*
 * Does the law's work at the end of an interval, as in the thesis, without the cap on RTTs. Never loaded, like
 * fs_rcp_work().
 */
SEC("?syscall")
int fs_rcp_interval_work(struct fs_interval_work *work)
{
	struct fs_rcp_params params = work->params;

	params.max_rtt_factor_q16 = 0;
	fs_rcp_update(&params, &work->law, &work->sums, work->interval_ns, work->queue_bytes);
	work->next_ns = fs_rcp_interval_ns(&params, &work->law);
	work->offer = fs_rcp_offer(&params, &work->law);
	return 0;
}

FS_INLINE void xcp_packet(struct __sk_buff *skb, struct fs_link *link, struct fs_sums *sum)
{
	struct fs_xcp_params params;
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	__u32 packets = fs_segments(skb), bytes = skb->wire_len;
	struct fs_found found = {};
	struct fs_carried carried;
	__u64 rtt_us, x_q4;
	__be32 stamp;
	__s32 change, feedback;
	/* On a shared link, the search for both would be more than the verifier follows. */
	bool stamped = fs_find(skb, config.link_bytes, FS_EXID_XCP, FS_PROTO_TCP, &found) ||
		       (!config.share && fs_find_quic(skb, FS_EXID_XCP, &found));
	struct Qdisc *queue;
	__u32 waiting;

	if (config.share) {
		share_packet(skb, stamped || found.ack);
		if (!stamped && !found.ack)
			return;
	}
	queue = own_queue(kernel->dev);
	waiting = queue->qstats.backlog;
	/* Losing an update of the minimum queue loses only one packet's observation. */
	if (waiting < link->xcp.min_queue_bytes)
		link->xcp.min_queue_bytes = waiting;
	if (config.law == FS_XCP_B) {
		waiting = queue->q.qlen;
		if (waiting < link->xcp_b.min_frames)
			link->xcp_b.min_frames = waiting;
		sum->xcp_b.frames++;
		sum->xcp_b.packets += packets;
	}
	if (!stamped || !fs_stamp_carried(skb, &found, &carried)) {
		sum->xcp.input_bytes += bytes;
		return;
	}
	rtt_us = carried.rtt == FS_RTT_UNKNOWN ? 0 : fs_rtt_unpack(carried.rtt);
	x_q4 = fs_xcp_x_q4(rtt_us, carried.last);
	params.max_rtt_us = config.xcp.max_rtt_us;
	change = bpf_ntohl(carried.value);
	bpf_spin_lock(&link->lock);
	x_q4 = fs_xcp_bounded(&link->xcp, bytes / packets, x_q4);
	feedback = fs_xcp_departure(&link->xcp, bytes, packets, rtt_us, x_q4, change);
	bpf_spin_unlock(&link->lock);
	fs_xcp_arrival(&params, &sum->xcp, bytes, packets, rtt_us, x_q4);
	if (feedback < change) {
		stamp = bpf_htonl(feedback);
		fs_write_stamp(skb, &found, carried.value, stamp);
	}
}

FS_INLINE void vcp_packet(struct __sk_buff *skb, struct fs_link *link, struct fs_sums *sum)
{
	struct fs_found found = {};
	__u32 t_rho_us = config.vcp.t_rho_us, code = link->vcp.code, carried, raised;
	__be32 was;
	__u8 *option;
	bool stamped = fs_find(skb, config.link_bytes, FS_EXID_VCP, FS_PROTO_TCP, &found);

	if (config.share)
		share_packet(skb, stamped || found.ack);
	if (!config.share || stamped || found.ack)
		sum->vcp.input_bytes += skb->wire_len;
	if (!stamped) {
		if (found.ack && !skb->priority)
			skb->priority = FS_PRIO_INTERACTIVE;
		else if (!found.ack && config.mark_others && code == FS_VCP_OVERLOAD)
			bpf_skb_ecn_set_ce(skb); /* section VI-C */
		return;
	}
	option = FS_AT(found.option, FS_LONG_LEN);
	if (!option)
		return;
	__builtin_memcpy(&was, option + FS_AT_STAMP, sizeof(was));
	if (bpf_ntohl(was) < t_rho_us)
		fs_write_stamp(skb, &found, was, bpf_htonl(t_rho_us));
	carried = fs_ecn(skb, &found);
	raised = fs_vcp_raised(carried, code);
	if (raised != carried)
		fs_write_ecn(skb, &found, raised);
}

/* ABC's packets are those with ECT(1), of any protocol. */
FS_INLINE void abc_packet(struct __sk_buff *skb, struct fs_link *link, struct fs_sums *sum)
{
	__u32 packets = fs_min(fs_segments(skb), FS_MAX_COUNTED);
	__u64 limit_q16 = config.abc.token_limit_q16;
	struct fs_found found = {};
	bool stays;

	sum->abc.input_bytes += skb->wire_len;
	if (!fs_find_ip(skb, config.link_bytes, &found) || fs_ecn(skb, &found) != FS_ABC_ACCELERATE)
		return;
	bpf_spin_lock(&link->lock);
	stays = fs_abc_stays(&link->abc.tokens_q16, limit_q16, link->abc.share_q16, packets);
	bpf_spin_unlock(&link->lock);
	if (!stays)
		fs_write_ecn(skb, &found, FS_ABC_BRAKE);
}

SEC("tcx/egress")
int fs_router(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct fs_link *link = bpf_map_lookup_elem(&link_state, &zero);
	struct fs_sums *sum = bpf_map_lookup_elem(&sums, &zero);

	if (!link || !sum)
		return TCX_NEXT;
	if (config.law == FS_RCP)
		rcp_packet(skb, link, sum);
	else if (config.law == FS_VCP)
		vcp_packet(skb, link, sum);
	else if (config.law == FS_ABC)
		abc_packet(skb, link, sum);
	else
		xcp_packet(skb, link, sum);
	return TCX_NEXT;
}

/*
 * Counts and stamps received packets like sent ones, if both directions share a medium. Acks for them wait in this
 * queue (xcp/blind.rs: section 5 of the paper).
 */
SEC("tcx/ingress")
int fs_router_in(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct fs_link *link = bpf_map_lookup_elem(&link_state, &zero);
	struct fs_sums *sum = bpf_map_lookup_elem(&sums, &zero);

	if (link && sum && config.law == FS_XCP_B)
		xcp_packet(skb, link, sum);
	return TCX_NEXT;
}

/* An empty program on the same hook, as the baseline of the cost. */
SEC("tc")
int fs_nothing(struct __sk_buff *skb)
{
	return TCX_NEXT;
}

/*
 * Writes one stamp at its offset in the frame of `router bench`, to measure that cost. The router itself writes only
 * lower rates.
 */
SEC("tc")
int fs_rewrite(struct __sk_buff *skb)
{
	struct fs_found found = {.network = 14, .tcp = 34, .option = 66};
	__u8 *option = FS_AT(found.option, FS_LONG_LEN);
	__be32 was;

	if (!option)
		return TCX_NEXT;
	__builtin_memcpy(&was, option + FS_AT_STAMP, sizeof(was));
	fs_write_stamp(skb, &found, was, was ^ 1);
	return TCX_NEXT;
}

FS_INLINE void add_up(struct fs_sums *total)
{
	__u32 zero = 0;

	for (__u32 cpu = 0; cpu < config.cpus && cpu < 1024; cpu++) {
		struct fs_sums *sum = bpf_map_lookup_percpu_elem(&sums, &zero, cpu);

		if (!sum)
			return;
		total->rcp.input_bytes += sum->rcp.input_bytes;
		total->rcp.sum_rtt_us += sum->rcp.sum_rtt_us;
		total->rcp.sum_weight += sum->rcp.sum_weight;
		total->xcp.input_bytes += sum->xcp.input_bytes;
		total->xcp.sum_x_q4 += sum->xcp.sum_x_q4;
		total->xcp.sum_x_rtt_low += sum->xcp.sum_x_rtt_low;
		total->xcp.sum_x_rtt_high += sum->xcp.sum_x_rtt_high;
		total->xcp.x_bytes += sum->xcp.x_bytes;
		total->vcp.input_bytes += sum->vcp.input_bytes;
		total->abc.input_bytes += sum->abc.input_bytes;
		total->xcp_b.frames += sum->xcp_b.frames;
		total->xcp_b.packets += sum->xcp_b.packets;
	}
}

/* Reads the law's queue; false if the device is gone. */
FS_INLINE bool read_queue(struct fs_link *link)
{
	struct net_device *device =
		bpf_rdonly_cast((void *)link->device, bpf_core_type_id_kernel(struct net_device));
	struct Qdisc *queue;

	/* The memory of a removed device may have been reused. */
	if (device->ifindex != config.ifindex)
		return false;
	queue = own_queue(device);
	link->queue_bytes = queue->qstats.backlog;
	link->queue_packets = queue->q.qlen;
	link->dropped_packets = queue->qstats.drops;
	if (config.share) {
		queue = fs_qdisc(device, FS_LEAF(FS_OTHER));
		link->other_queue_bytes = queue ? queue->qstats.backlog : 0;
		link->without_classes = !queue || !fs_qdisc(device, FS_LEAF(FS_OWN));
	}
	return true;
}

/*
 * This function and look() have their own stack frames. Inlined into on_timer(), they exceed the 512 bytes of one frame
 * with newer clang.
 */
static __noinline void decide(struct fs_link *link, __u64 now, __u64 *next_ns)
{
	__u64 interval_ns = now - link->decided_ns, late = now - link->decide_at_ns;
	/* In the map because a program's stack is small; only this function uses them. */
	struct fs_sums *total = &link->total;
	struct fs_xcp *state = &link->next_xcp;

	__builtin_memset(total, 0, sizeof(*total));
	add_up(total);
	if (config.share)
		divide(link, now, interval_ns);
	if (config.law == FS_RCP) {
		struct fs_rcp_params params = config.rcp;
		struct fs_rcp_sums sum = {
			total->rcp.input_bytes - link->seen.rcp.input_bytes,
			total->rcp.sum_rtt_us - link->seen.rcp.sum_rtt_us,
			total->rcp.sum_weight - link->seen.rcp.sum_weight,
		};
		struct fs_rcp state = link->rcp;

		if (config.share) {
			params.link_rate_q16 = link->own_capacity_q16;
			params.target_rate_q16 = fs_times(params.link_rate_q16, config.eta_q32);
		}
		fs_rcp_update(&params, &state, &sum, interval_ns, link->queue_bytes);
		*next_ns = fs_rcp_interval_ns(&params, &state);
		bpf_spin_lock(&link->lock);
		link->rcp = state;
		link->offer = fs_rcp_offer(&params, &state);
		bpf_spin_unlock(&link->lock);
	} else if (config.law == FS_VCP) {
		struct fs_vcp_params params = config.vcp;
		struct fs_vcp_sums sum = {total->vcp.input_bytes - link->seen.vcp.input_bytes};
		struct fs_vcp state = link->vcp;

		if (config.share)
			params.target_rate_q16 = fs_times(link->own_capacity_q16, config.eta_q32);
		fs_vcp_measure(&params, &state, &sum, interval_ns);
		*next_ns = params.t_rho_ns;
		bpf_spin_lock(&link->lock);
		link->vcp = state;
		bpf_spin_unlock(&link->lock);
	} else if (config.law == FS_ABC) {
		decide_abc(link, total->abc.input_bytes - link->seen.abc.input_bytes, interval_ns, next_ns);
	} else {
		struct fs_xcp_params params = config.xcp;
		struct fs_xcp_sums sum = {
			total->xcp.input_bytes - link->seen.xcp.input_bytes,
			total->xcp.sum_x_q4 - link->seen.xcp.sum_x_q4,
			total->xcp.sum_x_rtt_low - link->seen.xcp.sum_x_rtt_low,
			total->xcp.sum_x_rtt_high - link->seen.xcp.sum_x_rtt_high,
			total->xcp.x_bytes - link->seen.xcp.x_bytes,
		};
		struct fs_xcp_b blind = link->xcp_b;

		*state = link->xcp;
		if (config.share)
			params.capacity_q16 = fs_times(link->own_capacity_q16, config.eta_q32);
		if (config.law == FS_XCP_B) {
			struct fs_xcp_b_params own = config.xcp_b;
			struct fs_xcp_b_sums came = {
				total->xcp_b.frames - link->seen.xcp_b.frames,
				total->xcp_b.packets - link->seen.xcp_b.packets,
			};

			fs_xcp_b_decide(&params, &own, state, &blind, &sum, &came, interval_ns, link->queue_bytes,
					link->queue_packets);
		} else {
			fs_xcp_decide(&params, state, &sum, interval_ns);
		}
		*next_ns = fs_xcp_interval_ns(&params, state);
		bpf_spin_lock(&link->lock);
		if (config.law != FS_XCP_B)
			state->min_queue_bytes = link->xcp.min_queue_bytes;
		link->xcp = *state;
		link->xcp_b = blind;
		bpf_spin_unlock(&link->lock);
	}
	link->seen = *total;
	link->decided_ns = now;
	link->interval_ns = interval_ns;
	link->decisions++;
	if ((__s64)late > 0) {
		link->late_sum_ns += late;
		if (late > link->late_max_ns)
			link->late_max_ns = late;
	}
}

/* Samples the queue between decisions and returns the time until the next sample. */
static __noinline __u64 look(struct fs_link *link)
{
	struct fs_xcp_params params = config.xcp;

	if (config.law == FS_VCP) {
		struct fs_vcp_params vcp = config.vcp;
		struct fs_vcp state = link->vcp;

		fs_vcp_sample(&vcp, &state, link->queue_bytes);
		link->vcp.queue_q16 = state.queue_q16;
		return vcp.t_q_ns;
	}
	if (config.share)
		params.capacity_q16 = fs_times(link->own_capacity_q16, config.eta_q32);
	return fs_xcp_queue_ns(&params, &link->xcp, link->queue_bytes);
}

static int on_timer(void *map, int *key, struct fs_link *link)
{
	__u64 now = bpf_ktime_get_ns(), wait_ns = 0;

	if (!read_queue(link))
		return 0;
	if (config.queue_interval_ns && (__s64)(now - link->queue_at_ns) >= 0)
		link->queue_at_ns = now + fs_min(look(link), FS_MAX_WAIT_NS);
	if ((__s64)(now - link->decide_at_ns) >= 0) {
		decide(link, now, &wait_ns);
		link->decide_at_ns = now + fs_min(wait_ns, FS_MAX_WAIT_NS);
	}
	wait_ns = link->decide_at_ns - now;
	if (config.queue_interval_ns && link->queue_at_ns - now < wait_ns)
		wait_ns = link->queue_at_ns - now;
	bpf_timer_start(&link->timer, wait_ns, 0);
	return 0;
}

/* Runs once, through BPF_PROG_RUN with the interface as the packet's device, which is how it finds the device. */
SEC("tc")
int fs_start(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	__u32 zero = 0;
	struct fs_link *link = bpf_map_lookup_elem(&link_state, &zero);
	__u64 now = bpf_ktime_get_ns(), wait_ns;

	if (!link || skb->ifindex != config.ifindex)
		return 1;
	link->device = (__u64)kernel->dev;
	link->decided_ns = now;
	wait_ns = link->interval_ns;
	link->decide_at_ns = now + wait_ns;
	link->queue_at_ns = now + config.queue_interval_ns;
	if (config.queue_interval_ns && config.queue_interval_ns < wait_ns)
		wait_ns = config.queue_interval_ns;
	if (bpf_timer_init(&link->timer, &link_state, CLOCK_MONOTONIC))
		return 2;
	if (bpf_timer_set_callback(&link->timer, on_timer))
		return 3;
	return bpf_timer_start(&link->timer, wait_ns, 0) ? 4 : 0;
}
