// SPDX-License-Identifier: Apache-2.0 OR MIT
// Constants that the modules share. Positions are bytes from the frame's first byte, nine bits wide.
`ifndef FS_FIELDS_SVH
`define FS_FIELDS_SVH

// Numbers of the laws, as in crates/flowstamp-linux/bpf/option.h.
`define FS_RCP 1
`define FS_XCP 2
`define FS_VCP 3

// No header that is read or written ends behind this byte: 14 + 2 tags of 4 + 60 of IPv4 + 60 of TCP = 142.
`define FS_HEADER_BYTES 144
// The same with IPv6 extension headers, as FS_HEADERS_MAX in crates/flowstamp-linux/bpf/packet.h: a multiple of the widest word.
// Words that begin here or later pass unread.
`define FS_FAR 9'd448

`endif
