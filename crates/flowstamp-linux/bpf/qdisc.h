/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The kernel's types for a packet's device and its queues. Loading relocates the offsets (CO-RE). */
#ifndef FLOWSTAMP_QDISC_H
#define FLOWSTAMP_QDISC_H

#include "kernel.h"

struct gnet_stats_queue {
	__u32 qlen;
	__u32 backlog;
	__u32 drops;
} __attribute__((preserve_access_index));

struct qdisc_skb_head {
	__u32 qlen;
} __attribute__((preserve_access_index));

struct hlist_node {
	struct hlist_node *next;
} __attribute__((preserve_access_index));

struct hlist_head {
	struct hlist_node *first;
} __attribute__((preserve_access_index));

struct Qdisc {
	__u32 handle;
	struct hlist_node hash;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
} __attribute__((preserve_access_index));

struct net_device {
	int ifindex;
	struct Qdisc *qdisc;
	/* All queueing disciplines but the root, hashed by hash_32() of their handles. */
	struct hlist_head qdisc_hash[16];
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

void *bpf_cast_to_kern_ctx(void *) __ksym;
void *bpf_rdonly_cast(const void *, __u32) __ksym;

/* Limit on a walk through one bucket: more entries than a device with a few classes has there. */
#define FS_BUCKET_MAX 16

/* The device's non-root queueing discipline with this handle; null if there is none. The caller must hold RCU. */
static inline __attribute__((always_inline)) struct Qdisc *fs_qdisc(struct net_device *device, __u32 handle)
{
	struct hlist_node *node = device->qdisc_hash[handle * 0x61c88647U >> 28].first;

	for (int i = 0; i < FS_BUCKET_MAX && node; i++) {
		struct Qdisc *qdisc = bpf_rdonly_cast((void *)node - bpf_core_field_offset(struct Qdisc, hash),
						      bpf_core_type_id_kernel(struct Qdisc));

		if (qdisc->handle == handle)
			return qdisc;
		node = qdisc->hash.next;
	}
	return 0;
}

#endif
