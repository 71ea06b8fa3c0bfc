// SPDX-License-Identifier: Apache-2.0 OR MIT
`include "fs_fields.svh"
// Turns a law's answer into bytes to write, checksums included: two stages.
//
// Checksums are updated by the difference (RFC 1624, equation 3): HC' = ~(~HC + ~m + m'). A wrong one stays wrong. At an odd
// offset from TCP's header, each byte is in the other half of its 16-bit word.
module fs_mend (
    input  logic        clk,
    input  logic        rst,
    input  logic        in_valid,
    input  logic        write_stamp,
    input  logic        in_tcp,        // the stamp enters TCP's checksum; a shim enters none
    input  logic        write_head,    // of IP: its bytes 0 and 1, where the ECN bits are
    input  logic        v6,            // which has no checksum
    input  logic [8:0]  stamp_at,
    input  logic [31:0] stamp_was,
    input  logic [31:0] stamp_is,
    input  logic [8:0]  l4_at,
    input  logic [15:0] l4_checksum,
    input  logic [8:0]  ip_at,
    input  logic [15:0] head_was,
    input  logic [15:0] head_is,
    input  logic [15:0] ip_checksum,
    output logic        out_valid,
    output logic [110:0] out_edit
);
  wire odd = stamp_at[0] ^ l4_at[0];
  function automatic logic [31:0] halves(input logic [31:0] word, input logic swap);
    halves = swap ? {word[23:16], word[31:24], word[7:0], word[15:8]} : word;
  endfunction
  function automatic logic [15:0] fold(input logic [18:0] sum);
    logic [16:0] once;
    once = {1'b0, sum[15:0]} + {14'd0, sum[18:16]};
    fold = once[15:0] + {15'd0, once[16]};
  endfunction

  wire [31:0] was = halves(stamp_was, odd);
  wire [31:0] is = halves(stamp_is, odd);
  logic valid1, stamp1, tcp1, head1, v6_1;
  logic [8:0] stamp_at1, tcp_at1, ip_at1;
  logic [31:0] stamp_is1;
  logic [15:0] head_is1;
  logic [18:0] tcp_sum, ip_sum;

  always_ff @(posedge clk) begin
    valid1 <= in_valid & ~rst;
    stamp1 <= write_stamp;
    tcp1 <= in_tcp;
    head1 <= write_head;
    v6_1 <= v6;
    stamp_at1 <= stamp_at;
    tcp_at1 <= l4_at + 9'd16;
    ip_at1 <= ip_at;
    stamp_is1 <= stamp_is;
    head_is1 <= head_is;
    tcp_sum <= {3'd0, ~l4_checksum} + {3'd0, ~was[31:16]} + {3'd0, ~was[15:0]} + {3'd0, is[31:16]} + {3'd0, is[15:0]};
    ip_sum <= {3'd0, ~ip_checksum} + {3'd0, ~head_was} + {3'd0, head_is};
    out_valid <= valid1 & ~rst;
    out_edit <= {
      ip_at1, ~fold(ip_sum), head_is1, head1 & ~v6_1, head1, tcp_at1, ~fold(tcp_sum), stamp_at1, stamp_is1,
      stamp1 & tcp1, stamp1
    };
  end
endmodule
