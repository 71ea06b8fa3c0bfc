/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The kernel's own view of a packet's device and of the queue before it. Offsets are relocated on loading (CO-RE). */
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

struct Qdisc {
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
} __attribute__((preserve_access_index));

struct net_device {
	int ifindex;
	struct Qdisc *qdisc;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

void *bpf_cast_to_kern_ctx(void *) __ksym;
void *bpf_rdonly_cast(const void *, __u32) __ksym;

#endif
