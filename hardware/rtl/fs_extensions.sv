// SPDX-License-Identifier: Apache-2.0 OR MIT
`include "fs_fields.svh"
// Walks through IPv6's extension headers to the transport: hop by hop, routing, destination options, and first fragments.
//
// An extension header's length is a multiple of eight bytes, so each begins in one of the word's slots of eight bytes, at the
// same place within its slot. As in fs_option_scan, each slot is a node: it says where a walk continues from there. One look-up
// per node joins two neighbouring groups. The walk then takes one look-up per word. A slot has two nodes, because a fragment
// header has another format than the rest.
//
// At most six extension headers are followed, and none behind byte 368, as in crates/flowstamp-linux/bpf/packet.h.
module fs_extensions #(
    parameter DATA_WIDTH = 64,
    parameter [7:0] SHIM_PROTOCOL = 254,
    localparam SLOTS = DATA_WIDTH / 64,
    localparam LOG = $clog2(DATA_WIDTH / 8),
    localparam LEVELS = $clog2(SLOTS)
) (
    input  logic                  clk,
    // A word, and the bytes behind it.
    input  logic [DATA_WIDTH-1:0] data,
    input  logic [15:0]           after,
    input  logic                  late,         // headers begin at byte 6 of a slot, else at byte 2
    // The same word later, by one cycle and one more per two levels, with its IP fields.
    input  logic                  walk_valid,
    input  logic                  walk_first,
    input  logic [8:0]            walk_base,
    input  logic                  walk_ip,
    input  logic                  walk_v6,
    input  logic [7:0]            walk_protocol,
    input  logic [8:0]            walk_l4_at,   // IP's payload
    // One cycle after that.
    output logic                  is_tcp,
    output logic                  is_shim,
    output logic                  extended,     // there is an extension header
    output logic [8:0]            l4_at         // of the transport
);
  localparam NODE = 16;  // meaning of the next header, headers so far, slots from the group's start
  localparam [3:0] MOST_HEADERS = 6;
  localparam FARTHEST = 368;

  // The meaning of a next-header number. Bit 2: the walk continues; bit 0: a fragment header.
  localparam [2:0] OTHER = 0, TCP = 1, SHIM = 2, HEADER = 4, FRAGMENT = 5;
  function automatic logic [2:0] meaning(input logic [7:0] number);
    case (number)
      8'd0, 8'd43, 8'd60: meaning = HEADER;
      8'd44: meaning = FRAGMENT;
      8'd6: meaning = TCP;
      default: meaning = SHIM_PROTOCOL != 0 && number == SHIM_PROTOCOL ? SHIM : OTHER;
    endcase
  endfunction

  function automatic logic [NODE-1:0] leaf(input logic [31:0] header, input logic fragment);
    logic fits;
    // A later fragment has no transport header; a longer header leads too far.
    fits = fragment ? header[23:16] == 0 && header[31:27] == 0 : header[15:8] < 8'(FARTHEST / 8);
    leaf = {3'd0, fits ? meaning(header[7:0]) : OTHER, 4'd1, fragment ? 6'd1 : header[13:8] + 6'd1};
  endfunction

  // ---- the nodes, two per slot
  wire [2*NODE*SLOTS-1:0] level[LEVELS+1]  /*verilator split_var*/;
  wire [DATA_WIDTH+15:0] long = {after, data};
  logic [2*NODE*SLOTS-1:0] leaves;
  always_ff @(posedge clk)
    for (int i = 0; i < SLOTS; i++)
      for (int fragment = 0; fragment < 2; fragment++)
        leaves[NODE*(2*i+fragment)+:NODE] <= leaf(late ? long[64*i+48+:32] : long[64*i+16+:32], fragment == 1);
  assign level[0] = leaves;

  genvar i, k;
  generate
    for (k = 0; k < LEVELS; k++) begin : g_level
      localparam SIZE = 1 << k;
      wire [2*NODE*SLOTS-1:0] joined;
      for (i = 0; i < 2 * SLOTS; i++) begin : g_node
        localparam LEFT = i / (4 * SIZE) * (2 * SIZE);  // slot
        wire [NODE-1:0] node = level[k][NODE*i+:NODE];
        if (i / 2 - LEFT < SIZE) begin : g_left
          wire [5:0] past = node[5:0] - 6'(SIZE);
          wire [2*NODE*SIZE-1:0] right = level[k][2*NODE*(LEFT+SIZE)+:2*NODE*SIZE];
          wire [NODE-1:0] next;
          if (SIZE == 1) begin : g_one
            assign next = right[NODE*node[10]+:NODE];
          end else begin : g_more
            assign next = right[NODE*{past[k-1:0], node[10]}+:NODE];
          end
          assign joined[NODE*i+:NODE] = node[12] && past < 6'(SIZE) ?
              {next[15:10], node[9:6] + next[9:6], next[5:0] + 6'(SIZE)} : node;
        end else begin : g_right
          assign joined[NODE*i+:NODE] = {node[15:6], node[5:0] + 6'(SIZE)};
        end
      end
      if (k % 2 == 1 || k == LEVELS - 1) begin : g_register
        logic [2*NODE*SLOTS-1:0] held;
        always_ff @(posedge clk) held <= joined;
        assign level[k+1] = held;
      end else begin : g_wire
        assign level[k+1] = joined;
      end
    end
  endgenerate
  wire [2*NODE*SLOTS-1:0] nodes = level[LEVELS];

  // ---- the walk: `rest` is how many slots the next header is from this word
  logic [2:0] comes, comes_now;
  logic [5:0] rest, rest_now;
  logic [3:0] headers, headers_now;
  logic [8:0] at_now;
  logic extended_now;
  logic [NODE-1:0] node;
  logic [6:0] slot;
  wire [5:0] begins_in = walk_l4_at[8:3] & 6'(SLOTS - 1);

  always_comb begin
    comes_now = walk_first ? OTHER : comes;
    rest_now = rest;
    headers_now = headers;
    at_now = l4_at;
    extended_now = !walk_first && extended;
    if (!walk_v6) begin
      comes_now = walk_ip ? meaning(walk_protocol) : OTHER;
      if (comes_now[2]) comes_now = OTHER;  // IPv4 has no extension headers
      at_now = walk_l4_at;
    end else if (walk_ip && walk_l4_at[8:LOG] == walk_base[8:LOG]) begin
      comes_now = meaning(walk_protocol);
      rest_now = begins_in;
      headers_now = 0;
      at_now = walk_l4_at;
      extended_now = comes_now[2];
    end
    node = nodes[NODE*{rest_now&6'(SLOTS-1), comes_now[0]}+:NODE];
    slot = {1'b0, walk_base[8:3]} + {1'b0, node[5:0]};
    if (comes_now[2]) begin
      if (rest_now < 6'(SLOTS)) begin
        headers_now = headers_now + node[9:6];
        comes_now = headers_now > MOST_HEADERS || slot >= 7'(FARTHEST / 8) ? OTHER : node[12:10];
        at_now = {slot[5:0], walk_l4_at[2:0]};
        rest_now = node[5:0];
      end
      rest_now = rest_now - 6'(SLOTS);
    end
  end

  always_ff @(posedge clk)
    if (walk_valid) begin
      comes <= comes_now;
      rest <= rest_now;
      headers <= headers_now;
      l4_at <= at_now;
      extended <= extended_now;
    end
  assign is_tcp = comes == TCP;
  assign is_shim = comes == SHIM;
endmodule
