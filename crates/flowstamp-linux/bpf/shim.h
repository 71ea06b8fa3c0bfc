/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RCP's header between IP and UDP, big endian (Dukkipati 2007, section 6.1.1). crates/flowstamp-wire/src/rcp.rs defines it.
 *
 *   0   rate      bytes/ms: the request, zero for as much as there is; then the minimum over the routers
 *   4   reverse   bytes/ms: the rate of the opposite direction; zero: nothing to return
 *   8   RTT       ms; all ones: unknown
 *  10   protocol  of what follows IP without this header
 *  11   weight    zero is the weight 1
 */
#ifndef FLOWSTAMP_SHIM_H
#define FLOWSTAMP_SHIM_H

#define FS_PROTO_RCP 254
#define FS_SHIM_LEN 12
#define FS_SHIM_RTT_UNKNOWN 0xffff

struct fs_shim {
	__be32 rate;
	__be32 reverse;
	__be16 rtt_ms;
	__u8 protocol;
	__u8 weight;
};

#endif
