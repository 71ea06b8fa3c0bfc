// SPDX-License-Identifier: Apache-2.0 OR MIT
`include "fs_fields.svh"
// Reads Ethernet with up to two VLAN tags, then IPv4 or IPv6, from the words that pass: two stages of the parser.
//
// Every field lies at an even offset, because IP begins at byte 14, 18 or 22. A field is therefore one of the word's
// 16-bit halves. The frame is IP's if `ip_ok` is set with the word that holds the transport protocol's number; then
// `l4_at` is where IP's payload begins. The outputs leave with the word that `out_*` names and stay until the frame ends.
//
// Later fragments have no transport header, so they are not IP's here.
module fs_parse_ip #(
    parameter DATA_WIDTH = 64,
    localparam BYTES = DATA_WIDTH / 8,
    localparam LOG = $clog2(BYTES)
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic                  in_valid,
    input  logic                  in_first,
    input  logic                  in_last,
    input  logic [8:0]            in_base,
    input  logic [LOG:0]          in_count,
    input  logic [DATA_WIDTH-1:0] in_data,
    input  logic [15:0]           in_after,
    output logic                  out_valid,
    output logic                  out_first,
    output logic                  out_last,
    output logic [8:0]            out_base,
    output logic [LOG:0]          out_count,
    output logic [DATA_WIDTH-1:0] out_data,
    output logic [15:0]           out_after,
    output logic                  ip_ok,
    output logic                  ip_whole,    // the fixed header has all its bytes, whatever follows
    output logic                  ip_v6,
    output logic [8:0]            ip_at,
    output logic [15:0]           ip_head,     // the two bytes that hold the ECN bits
    output logic [15:0]           ip_checksum, // of IPv4
    output logic [7:0]            ip_protocol,
    output logic [15:0]           ip_bytes,    // header and payload; zero if the header does not say
    output logic [8:0]            l4_at       // IPv6: the first extension header, if there is one
);
  // The 16-bit halves of a word, each in network order.
  function automatic logic [15:0] half(input logic [DATA_WIDTH-1:0] data, input logic [8:0] at);
    logic [15:0] swapped;
    swapped = data[16*at[LOG-1:1]+:16];
    half = {swapped[7:0], swapped[15:8]};
  endfunction

  // Whether a word holds the half at this position.
  function automatic logic holds(input logic [8:0] base, input logic [LOG:0] count, input logic [8:0] at);
    holds = at[8:LOG] == base[8:LOG] && {1'b0, at[LOG-1:0]} + 1'b1 < count;
  endfunction

  // ---- stage 1: the EtherType, at byte 12 or behind each tag
  localparam [2:0] TAGS = 0, IPV4 = 3, IPV6 = 4, OTHER = 5;  // 0 to 2: behind so many tags
  logic [2:0] ether, ether_next;
  logic [8:0] at, at_next;
  logic [15:0] kind;

  always_comb begin
    ether_next = in_first ? TAGS : ether;
    at_next = in_first ? 9'd14 : at;
    kind = 0;
    for (int tag = 0; tag < 3; tag++) begin
      if (ether_next == 3'(tag) && holds(in_base, in_count, 9'(12 + 4 * tag))) begin
        kind = half(in_data, 9'(12 + 4 * tag));
        at_next = 9'(14 + 4 * tag);
        if (kind == 16'h0800) ether_next = IPV4;
        else if (kind == 16'h86dd) ether_next = IPV6;
        else if ((kind == 16'h8100 || kind == 16'h88a8) && tag < 2) ether_next = 3'(tag + 1);
        else ether_next = OTHER;
      end
    end
  end

  logic s1_valid, s1_first, s1_last;
  logic [8:0] s1_base;
  logic [LOG:0] s1_count;
  logic [DATA_WIDTH-1:0] s1_data;
  logic [15:0] s1_after;

  always_ff @(posedge clk) begin
    s1_valid <= in_valid & ~rst;
    if (in_valid) begin
      s1_first <= in_first;
      s1_last <= in_last;
      s1_base <= in_base;
      s1_count <= in_count;
      s1_data <= in_data;
      s1_after <= in_after;
      ether <= ether_next;
      at <= at_next;
    end
  end

  // ---- stage 2: IP's fields
  wire v4 = ether == IPV4;
  wire v6 = ether == IPV6;
  logic [7:0] first_byte, first_byte_next;
  logic [15:0] head_next, checksum_next, bytes_next;
  logic [7:0] protocol_next;
  logic [8:0] l4_next;
  logic got, got_next, whole, whole_next, fixed, fixed_next;
  wire [15:0] half2 = half(s1_data, at + 9'd2);
  wire [15:0] half4 = half(s1_data, at + 9'd4);
  wire [15:0] half6 = half(s1_data, at + 9'd6);
  wire [15:0] half8 = half(s1_data, at + 9'd8);

  always_comb begin
    first_byte_next = s1_first ? 8'd0 : first_byte;
    head_next = s1_first ? 16'd0 : ip_head;
    checksum_next = s1_first ? 16'd0 : ip_checksum;
    bytes_next = s1_first ? 16'd0 : ip_bytes;
    protocol_next = s1_first ? 8'd0 : ip_protocol;
    got_next = s1_first ? 1'b0 : got;
    whole_next = s1_first ? 1'b1 : whole;
    fixed_next = (!s1_first && fixed) || ((v4 || v6) && holds(s1_base, s1_count, at + (v6 ? 9'd38 : 9'd18)));
    if (holds(s1_base, s1_count, at)) begin
      head_next = half(s1_data, at);
      first_byte_next = head_next[15:8];
    end
    if (v4 && holds(s1_base, s1_count, at + 9'd2)) bytes_next = half2;
    // A length of zero stands for one that the field cannot hold.
    if (v6 && holds(s1_base, s1_count, at + 9'd4)) bytes_next = half4 == 0 ? 16'd0 : half4 + 16'd40;
    if (holds(s1_base, s1_count, at + 9'd6)) begin
      if (v4) whole_next = half6[12:0] == 0;
      if (v6) begin
        protocol_next = half6[15:8];
        got_next = first_byte_next[7:4] == 6;
      end
    end
    if (v4 && holds(s1_base, s1_count, at + 9'd8)) begin
      protocol_next = half8[7:0];
      got_next = first_byte_next[7:4] == 4 && first_byte_next[3:0] >= 5;
    end
    if (v4 && holds(s1_base, s1_count, at + 9'd10)) checksum_next = half(s1_data, at + 9'd10);
    l4_next = at + (v6 ? 9'd40 : {3'b0, first_byte_next[3:0], 2'b0});
  end

  always_ff @(posedge clk) begin
    out_valid <= s1_valid & ~rst;
    if (s1_valid) begin
      out_first <= s1_first;
      out_last <= s1_last;
      out_base <= s1_base;
      out_count <= s1_count;
      out_data <= s1_data;
      out_after <= s1_after;
      first_byte <= first_byte_next;
      ip_head <= head_next;
      ip_checksum <= checksum_next;
      ip_bytes <= bytes_next;
      ip_protocol <= protocol_next;
      got <= got_next;
      whole <= whole_next;
      fixed <= fixed_next;
      ip_at <= at;
      ip_v6 <= v6;
      l4_at <= l4_next;
    end
  end
  assign ip_ok = got & whole;
  assign ip_whole = ip_ok & fixed;
endmodule
