/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The stamp as a TCP option: kind 253 (RFC 3692), an identifier of two bytes (RFC 6994) for each law, big endian.
 *
 *   RCP  "RC"                                          XCP  "XC"
 *   0   253 | length 16 or 8                           0   253 | length 16 or 8
 *   2   identifier                                     2   identifier
 *   4   echo   bytes/ms: the received rate             4   echo   bytes/s, modulo 2^32: the sum of all granted changes
 *   --- end of the short form (8 bytes)                --- end of the short form (8 bytes)
 *   8   rate   bytes/ms: the request, then the         8   delta  bytes/s, signed: the request, then the granted change
 *              minimum over the routers
 *  12   RTT    16-bit float, us                       12   RTT    16-bit float, us
 *  14   flags  bit 0: this is the handshake           14   packets in flight, at least 1, saturating at 65535
 *
 *   VCP  "VC"; its code is in the two ECN bits of the IP header, and the option tells routers that those bits are VCP's
 *   0   253 | length 16 or 8
 *   2   identifier
 *   4   echo   four bytes: the last received code, then the number of packets received with code 1, 2 and 3, each modulo 256.
 *              Until a packet with a code arrives, the first byte is 0 and the other three are the handshake's t_rho.
 *   --- end of the short form (8 bytes)
 *   8   t_rho  us, up to 2^24 - 1: zero until the packet passes a router; each router raises it to its own if that is larger
 *  12   zero
 *  14   flags  bit 0: this is the handshake
 *
 * An echo is a state, not a change, so a lost ack costs nothing. Acks use the short form when SACK blocks fill the
 * option space. A rate or echo of zero means none. An RTT of all ones means unknown.
 *
 * 16-bit float: exponent e in the upper 4 bits, mantissa m in the lower 12: m 2^e microseconds, up to 134 s.
 */
#ifndef FLOWSTAMP_OPTION_H
#define FLOWSTAMP_OPTION_H

#define FS_OPTION_KIND 253
#define FS_EXID_RCP 0x5243
#define FS_EXID_XCP 0x5843
#define FS_EXID_VCP 0x5643
#define FS_LONG_LEN 16
#define FS_SHORT_LEN 8
#define FS_RTT_UNKNOWN 0xffff
#define FS_FLAG_HANDSHAKE 1

/* Numbers of the laws, as in src/law. */
enum fs_law { FS_NONE, FS_RCP, FS_XCP, FS_VCP, FS_LAWS };

/* Offsets in the option. */
#define FS_AT_EXID 2
#define FS_AT_ECHO 4
#define FS_AT_STAMP 8
#define FS_AT_RTT 12
#define FS_AT_FLAGS 14

/* VCP's codes in the ECN bits. */
enum fs_vcp_code { FS_VCP_NONE, FS_VCP_LOW, FS_VCP_HIGH, FS_VCP_OVERLOAD };
/* The largest t_rho that fits into an echo. */
#define FS_VCP_T_RHO_MAX_US 0xffffffu

/* Encodes microseconds into the option's 16 bits, rounded down; never FS_RTT_UNKNOWN. */
static inline __attribute__((always_inline)) unsigned short fs_rtt_pack(unsigned long long us)
{
	unsigned int exponent = 0;

	for (int i = 0; i < 15 && us > 0xfff; i++) {
		us >>= 1;
		exponent++;
	}
	if (us > 0xfff || (exponent == 15 && us == 0xfff))
		us = 0xffe, exponent = 15;
	return exponent << 12 | us;
}

/* Decodes the option's 16 bits into microseconds. */
static inline __attribute__((always_inline)) unsigned long long fs_rtt_unpack(unsigned short bits)
{
	return (unsigned long long)(bits & 0xfff) << (bits >> 12);
}

#endif
