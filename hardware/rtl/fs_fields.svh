// SPDX-License-Identifier: Apache-2.0 OR MIT
// Constants that the modules share. Positions are bytes from the frame's first byte, eight bits wide.
`ifndef FS_FIELDS_SVH
`define FS_FIELDS_SVH

// Numbers of the laws, as in crates/flowstamp-linux/bpf/option.h.
`define FS_RCP 1
`define FS_XCP 2
`define FS_VCP 3

// No header that is read or written ends behind this byte: 14 + 2 tags of 4 + 60 of IPv4 + 60 of TCP = 142.
`define FS_HEADER_BYTES 144
// A word that begins here or later only passes. A multiple of the widest word.
`define FS_FAR 8'd192


`endif
