/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decisions of ABC's router. Their arithmetic is in abc.h. */
#ifndef FS_ABC_ROUTER_H
#define FS_ABC_ROUTER_H

/* It has a stack frame of its own, because with newer clang the frame of decide() would be too large for XCP-b. */
static __noinline void decide_abc(struct fs_link *link, __u64 input_bytes, __u64 interval_ns, __u64 *next_ns)
{
	struct fs_abc_params params = config.abc;
	struct fs_abc_sums sum = {input_bytes};
	struct fs_abc state = link->abc;

	fs_abc_measure(&params, &state, &sum, interval_ns, link->queue_bytes);
	*next_ns = params.interval_ns;
	bpf_spin_lock(&link->lock);
	state.tokens_q16 = link->abc.tokens_q16;
	link->abc = state;
	bpf_spin_unlock(&link->lock);
}

#endif
