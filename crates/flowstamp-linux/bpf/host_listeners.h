/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Enables the option on servers that were listening before `host enable`, without a restart. */
#ifndef FLOWSTAMP_HOST_LISTENERS_H
#define FLOWSTAMP_HOST_LISTENERS_H

#include "host_flow.h"

#define FS_TCP_LISTEN 10
#define FS_CGROUP_DEPTH_MAX 64
/* Exists since kernel 6.13. On older kernels the call fails, and only servers that start listening later take part. */
#define FS_TCP_BPF_SOCK_OPS_CB_FLAGS 1008

/* Whether a socket is in the configured cgroup or below it. */
FS_INLINE int fs_is_inside(const struct sock *sk, __u64 id)
{
	struct cgroup *cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);

	for (int i = 0; i < FS_CGROUP_DEPTH_MAX && cgroup; i++) {
		if (BPF_CORE_READ(cgroup, kn, id) == id)
			return 1;
		/* A cgroup's first member is its own state, whose parent pointer is the parent cgroup's state. */
		cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent);
	}
	return 0;
}

FS_INLINE void fs_tell_listener(struct sock_common *common)
{
	struct fs_settings *set = fs_set();
	struct tcp_sock *tp;
	int flags = 0;

	if (!set || !common || common->skc_state != FS_TCP_LISTEN)
		return;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp || !fs_is_inside((struct sock *)tp, set->cgroup_id))
		return;
	if (bpf_getsockopt(tp, SOL_TCP, FS_TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return;
	flags |= FS_CALLBACKS;
	bpf_setsockopt(tp, SOL_TCP, FS_TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
	FS_KEEP_SYN(tp);
}

#endif
