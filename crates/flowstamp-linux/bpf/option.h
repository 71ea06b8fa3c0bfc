/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The stamp as a TCP option: kind 253 (RFC 3692), an identifier of two bytes (RFC 6994) for each law, big endian.
 *
 *   RCP  "RC"                                          XCP  "XC"
 *   0   253 | length 16 or 8                           0   253 | length 16 or 8
 *   2   identifier                                     2   identifier
 *   4   echo   bytes/ms: the rate that came            4   echo   bytes/s, modulo 2^32: the sum of all granted changes
 *   --- end of the short form (8 bytes)                --- end of the short form (8 bytes)
 *   8   rate   bytes/ms: the wish, then the least      8   delta  bytes/s, signed: the wish, then what is granted
 *  12   RTT    16-bit float, us                       12   RTT    16-bit float, us
 *  14   flags  bit 0: this is the handshake           14   packets in flight, at least 1, saturating at 65535
 *
 *   VCP  "VC": its place; nothing writes or reads it yet
 *   0   253 | length 16 or 8
 *   2   identifier
 *   4   echo   four bytes: the code that came last; how many packets have come with code 1, 2 and 3, each modulo 256
 *   --- end of the short form (8 bytes)
 *   8   code   two bits of a byte: 0 no router has answered, 1 low load, 2 high load, 3 overload; routers only raise it, to
 *              what the load factor of their last 200 ms is
 *   9   zero
 *  14   flags  bit 0: this is the handshake
 *
 * An echo is a state, not a change, so that a lost ack costs nothing. The short form is for acks whose option space
 * SACK blocks have taken. A rate or echo of zero is none. An RTT of all ones is unknown.
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

/* Laws, by the numbers of src/law; VCP has its place, and its sender will be a third struct_ops. */
enum fs_law { FS_NONE, FS_RCP, FS_XCP, FS_VCP_RESERVED };

/* Offsets in the option. */
#define FS_AT_EXID 2
#define FS_AT_ECHO 4
#define FS_AT_STAMP 8
#define FS_AT_RTT 12
#define FS_AT_FLAGS 14

/* VCP's codes, which come to lie in the stamp's first byte. */
enum fs_vcp_code { FS_VCP_NONE, FS_VCP_LOW, FS_VCP_HIGH, FS_VCP_OVERLOAD };
struct fs_vcp_option {
	unsigned char kind;
	unsigned char len;
	unsigned char exid[2];
	unsigned char last;
	unsigned char came[3];
	/* Here the short form ends. */
	unsigned char code;
	unsigned char zero[5];
	unsigned char flags[2];
};
_Static_assert(sizeof(struct fs_vcp_option) == FS_LONG_LEN, "16 bytes without padding");
_Static_assert(__builtin_offsetof(struct fs_vcp_option, last) == FS_AT_ECHO, "the echo is where all laws' is");
_Static_assert(__builtin_offsetof(struct fs_vcp_option, code) == FS_AT_STAMP, "what routers write is where all laws' is");
_Static_assert(__builtin_offsetof(struct fs_vcp_option, flags) == FS_AT_FLAGS, "flags are where RCP's are");
_Static_assert(FS_AT_STAMP == FS_SHORT_LEN, "the short form is the long one without what routers write");

/* Microseconds in the option's 16 bits, rounded down; never FS_RTT_UNKNOWN. */
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

/* Back to microseconds. */
static inline __attribute__((always_inline)) unsigned long long fs_rtt_unpack(unsigned short bits)
{
	return (unsigned long long)(bits & 0xfff) << (bits >> 12);
}

#endif
