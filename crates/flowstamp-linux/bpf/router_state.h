/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Configuration, counters and state of a router: constants and maps of router.bpf.c. */
#ifndef FS_ROUTER_STATE_H
#define FS_ROUTER_STATE_H

/* The configuration from `router attach`. */
struct fs_config {
	__u64 law;
	__u64 ifindex;
	/* Length of the link-layer header. */
	__u64 link_bytes;
	__u64 cpus;
	/* Capacity of the link. */
	__u64 link_rate_q16;
	/* Whether htb has one class for the law's own traffic and one for the rest. */
	__u64 share;
	/*
	 * Whether received packets share the medium. The program ignores it; `fs_router_in` is attached if it is set.
	 */
	__u64 half_duplex;
	/* Buffer of both classes together. */
	__u64 buffer_bytes;
	/* Initial weight of the own class. */
	__u64 own_weight_q32;
	/* Target utilisation, as a share of the law's part of the capacity. */
	__u64 eta_q32;
	/* Time until the first queue sample between decisions; zero if the law takes none. */
	__u64 queue_interval_ns;
	/* VCP: whether overload marks ECN-capable packets of other protocols. */
	__u64 mark_others;
	/* A hash of the initial state, so that `attach` with other initial values replaces the router. */
	__u64 first_hash;
	struct fs_rcp_params rcp;
	struct fs_xcp_params xcp;
	struct fs_vcp_params vcp;
	struct fs_xcp_b_params xcp_b;
	struct fs_abc_params abc;
};

const volatile struct fs_config config = {};

/* Sums over packets, on one CPU. */
struct fs_sums {
	struct fs_rcp_sums rcp;
	struct fs_xcp_sums xcp;
	struct fs_vcp_sums vcp;
	struct fs_xcp_b_sums xcp_b;
	struct fs_abc_sums abc;
};

struct fs_link {
	struct bpf_timer timer;
	struct bpf_spin_lock lock;
	/* The rate that RCP packets are stamped with, in bytes/ms. */
	__u32 offer;
	/* Address of the device, to find its queue. */
	__u64 device;
	__u64 queue_bytes;
	__u64 queue_packets;
	__u64 dropped_packets;
	/* On a shared link: the queue of other traffic, C_R, and the others' counter at the last decision. */
	__u64 other_queue_bytes;
	/* Whether a class is missing; a new root queueing discipline removes both. */
	__u64 without_classes;
	__u64 own_capacity_q16;
	__u64 seen_other_bytes;
	/* The last decision's time, and when the next timers are due. */
	__u64 decided_ns;
	__u64 decide_at_ns;
	__u64 queue_at_ns;
	/* Length of the last interval, number of decisions, and their total and maximum lateness. */
	__u64 interval_ns;
	__u64 decisions;
	__u64 late_sum_ns;
	__u64 late_max_ns;
	struct fs_rcp rcp;
	struct fs_xcp xcp;
	struct fs_vcp vcp;
	/* State of XCP-b in addition to XCP's. */
	struct fs_xcp_b xcp_b;
	struct fs_abc abc;
	/* Counters at the last decision. */
	struct fs_sums seen;
	/* Scratch space of a decision. */
	struct fs_sums total;
	struct fs_xcp next_xcp;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_link);
} link_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_sums);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FS_CLASSES);
	__type(key, __u32);
	__type(value, struct fs_class);
} classes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FS_CLASSES);
	__type(key, __u32);
	__type(value, struct fs_zombies);
} zombies SEC(".maps");

/*
 * The split of the link. `router share` writes it; this program only reads it. Rates are in bytes/s. Fields that the
 * program does not read are for `router status`.
 */
struct fs_share {
	/* C w_R, and y_T of the last period with its expiry time. */
	__u64 own_least_q16;
	__u64 other_q16;
	__u64 until_ns;
	__u64 own_weight_q32;
	__u64 flows_q16[FS_CLASSES];
	__u64 input_q16[FS_CLASSES];
	__u64 interval_ns;
	__u64 updates;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fs_share);
} share SEC(".maps");

#endif
