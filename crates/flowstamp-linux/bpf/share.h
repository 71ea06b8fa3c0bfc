/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The per-packet part of sharing a link: how many flows a class has, crates/flowstamp-laws/src/share/zombies.rs.
 *
 * Each packet is compared with a random entry of a list of recently seen flows; N is packets compared by packets that
 * found their flow. Only this is restated here: what is made of the counts is the Rust law's, run by `router share`.
 *
 * Deviations (zombies.rs says / we do / because):
 * 1. A flow is its addresses and ports / the 32 bits of the kernel's hash of them / that is there already. Two flows of
 *    one hash count as one: of 1,000 flows, one pair in 8,600 runs.
 * 2. Two draws / 32 bits: the upper choose the entry, the lower 16 whether it is overwritten / one draw costs as much as all
 *    the rest.
 *
 * The list is one for all CPUs, without a lock: of two packets at once, one's entry is lost, as if it had been overwritten.
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

/* What has come of one class, on one CPU. */
struct fs_class {
	__u64 bytes;
	__u64 compared;
	__u64 found;
};

struct fs_zombies {
	__u32 length;
	__u32 list[FS_ZOMBIES];
};

/* A packet of `flow` has come; `random` is uniform. Exact. */
FS_LAW void fs_zombies_arrival(struct fs_zombies *z, struct fs_class *class, __u32 flow, __u32 random)
{
	__u32 length = z->length, at;

	if (length > 0) {
		class->compared++;
		at = (__u64)random * length >> 32;
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

#endif
