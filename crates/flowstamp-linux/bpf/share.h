/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sharing a link, without its weights: the estimated number of flows in a class
 * (crates/flowstamp-laws/src/share/zombies.rs) and the law's capacity (step C.3 of split.rs).
 *
 * Each packet is compared with a random entry of a list of recently seen flows. N is the number of comparisons divided
 * by the number of matches. The Rust law, run by `router share`, computes everything else from the counts, above all
 * the weights.
 *
 * Deviations (zombies.rs says / we do / because):
 * 1. A flow is identified by addresses and ports / by the kernel's 32-bit hash of them / the hash already exists. Two
 *    flows with the same hash count as one: among 1,000 flows, one such pair in 8,600 runs.
 * 2. Two random draws / one draw of 32 bits: the upper bits choose the entry, the lower 16 decide whether to overwrite
 *    it / a draw costs as much as all the rest.
 *
 * All CPUs share the list without a lock. If two packets arrive simultaneously, one entry is lost, as if overwritten.
 */
#ifndef FLOWSTAMP_SHARE_H
#define FLOWSTAMP_SHARE_H

#include "laws.h"

#define FS_OWN 0
#define FS_OTHER 1
#define FS_CLASSES 2

#define FS_ZOMBIES 1000
/* Share::Params::overwrite, of 65536. */
#define FS_OVERWRITE_Q16 16384

/* Arrivals of one class on one CPU. */
struct fs_class {
	__u64 bytes;
	__u64 compared;
	__u64 found;
};

struct fs_zombies {
	__u32 length;
	__u32 list[FS_ZOMBIES];
};

/* Handles the arrival of a packet of `flow`; `random` is uniform. Exact. */
FS_LAW void fs_zombies_arrival(struct fs_zombies *z, struct fs_class *class, __u32 flow, __u32 random)
{
	__u32 length = z->length, at;

	if (length > 0) {
		class->compared++;
		at = (__u64)random * length >> 32;
		/* Keeps this shift apart from that of the index: the verifier does not follow both in one. */
		asm volatile("" : "+r"(at));
		if (at >= FS_ZOMBIES)
			return;
		if (z->list[at] == flow)
			class->found++;
		else if (length == FS_ZOMBIES && (random & 0xffff) < FS_OVERWRITE_Q16)
			z->list[at] = flow;
	}
	if (length < FS_ZOMBIES) {
		z->list[length] = flow;
		z->length = length + 1;
	}
}

/*
 * C_R = max(C - y_T, C w_R), rates in any one unit. Exact.
 *
 * Deviation (split.rs says / we do / because): y_T of the last period / the larger of that and the law's last interval
 * / periods last up to seconds. In that time, hosts that see a full queue and an unchanged rate would leave the law
 * permanently.
 */
FS_LAW __u64 fs_share_capacity(__u64 capacity, __u64 own_least, __u64 other_of_period, __u64 other_now)
{
	__u64 other = fs_max(other_of_period, other_now);

	return fs_max(capacity - fs_min(other, capacity), own_least);
}

#endif
