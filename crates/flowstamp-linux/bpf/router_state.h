/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a router is told, what it counts, and what its law knows: constants and maps of router.bpf.c. */
#ifndef FS_ROUTER_STATE_H
#define FS_ROUTER_STATE_H

/* What was asked for on attaching. */
struct fs_config {
	__u64 law;
	__u64 ifindex;
	/* Of the header before IP's. */
	__u64 link_bytes;
	__u64 cpus;
	/* What the link carries. */
	__u64 link_rate_q16;
	/* Whether htb has a class for the law's own traffic and one for the rest; else the next two are zero. */
	__u64 share;
	/* Whether what comes in takes of the same medium; the program only needs to be there. */
	__u64 half_duplex;
	/* Of both classes' queues together. */
	__u64 buffer_bytes;
	/* The first weight of the own class. */
	__u64 own_weight_q32;
	/* What the law aims at, of its part of the capacity. */
	__u64 eta_q32;
	/* When the law first looks at its queue between decisions; zero: it never does. */
	__u64 queue_interval_ns;
	struct fs_rcp_params rcp;
	struct fs_xcp_params xcp;
	struct fs_vcp_params vcp;
	struct fs_xcp_b_params xcp_b;
};

const volatile struct fs_config config = {};

/* What packets have brought, on one CPU. */
struct fs_sums {
	struct fs_rcp_sums rcp;
	struct fs_xcp_sums xcp;
	struct fs_vcp_sums vcp;
	struct fs_xcp_b_sums xcp_b;
};

struct fs_link {
	struct bpf_timer timer;
	struct bpf_spin_lock lock;
	/* What RCP's packets are stamped with, bytes/ms. */
	__u32 offer;
	/* The device, for its queue. */
	__u64 device;
	__u64 queue_bytes;
	__u64 queue_packets;
	__u64 dropped_packets;
	/* Of a link that is shared: the queue of other traffic, C_R, and the others' counter at the last decision. */
	__u64 other_queue_bytes;
	/* Whether a class has gone, as another root takes both away. */
	__u64 without_classes;
	__u64 own_capacity_q16;
	__u64 seen_other_bytes;
	/* The last decision's time, and when the next timers are due. */
	__u64 decided_ns;
	__u64 decide_at_ns;
	__u64 queue_at_ns;
	/* Length of the last interval, decisions so far, and by how much they came too late. */
	__u64 interval_ns;
	__u64 decisions;
	__u64 late_sum_ns;
	__u64 late_max_ns;
	struct fs_rcp rcp;
	struct fs_xcp xcp;
	struct fs_vcp vcp;
	/* Beside XCP's state. */
	struct fs_xcp_b xcp_b;
	/* Counters at the last decision. */
	struct fs_sums seen;
	/* Where a decision works. */
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

/* The split, written by `router share` and never here; rates in bytes/s. What the program does not read is for `router status`. */
struct fs_share {
	/* C w_R, and y_T of the last period, until that is out of date. */
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
