// SPDX-License-Identifier: Apache-2.0 OR MIT
// Finds where a walk through TCP's options leads from each byte of a word, before it is known where the options begin.
//
// A TCP option may begin at any byte, and each option's length says where the next one begins. A walk byte by byte is too
// slow for a word per cycle. Instead each byte is a node that says where a walk continues from there:
//
//   gone      the walk has ended: end of options, a malformed length, or the option's short form
//   hit       the stamp's option begins `value` bytes behind the group's start
//   neither   the walk leaves the group, to `value` bytes behind its start
//
// One look-up per node joins two neighbouring groups, so log2(BYTES) levels lead through a whole word.
// Each level has a register. No level depends on the word before, so the chain of options does not limit the clock.
module fs_option_scan #(
    parameter DATA_WIDTH = 64,
    parameter STAGES = 5,    // at least one more than there are levels
    parameter [15:0] IDENTIFIER = 16'h5243,
    localparam BYTES = DATA_WIDTH / 8,
    localparam LOG = $clog2(BYTES),
    localparam NODE = 16  // gone, hit, value in the low nine bits; a power of two makes look-ups plain multiplexers
) (
    input  logic                  clk,
    input  logic [DATA_WIDTH-1:0] data,
    input  logic [23:0]           after,  // the three bytes that follow the word, the first in the low bits
    output logic [NODE*BYTES-1:0] nodes   // STAGES cycles later
);
  localparam [6:0] MOST = 40;  // bytes of options: a longer option leads out of them

  // ---- level 0: what begins at each byte
  function automatic logic [NODE-1:0] leaf(input logic [31:0] at);
    logic [7:0] kind, length;
    logic ours;
    kind = at[7:0];
    length = at[15:8];
    ours = kind == 253 && {at[23:16], at[31:24]} == IDENTIFIER;
    if (kind == 1) leaf = {9'b0, 7'd1};  // no-operation
    else if (kind == 0 || length < 2 || length > {1'b0, MOST} || (ours && length == 8)) leaf = {9'b10, 7'd0};
    else if (ours && length == 16) leaf = {9'b01, 7'd0};
    else leaf = {9'b0, length[6:0]};
  endfunction

  wire [DATA_WIDTH+23:0] long = {after, data};
  wire [NODE*BYTES-1:0] level[LOG+1]  /*verilator split_var*/;
  genvar i, k;
  generate
    for (i = 0; i < BYTES; i++) begin : g_leaf
      logic [NODE-1:0] held;
      always_ff @(posedge clk) held <= leaf(long[8*i+:32]);
      assign level[0][NODE*i+:NODE] = held;
    end
    // ---- level k to k + 1: groups of SIZE become groups of 2 SIZE
    for (k = 0; k < LOG; k++) begin : g_level
      localparam SIZE = 1 << k;
      wire [NODE*BYTES-1:0] joined;
      for (i = 0; i < BYTES; i++) begin : g_node
        localparam LEFT = i / (2 * SIZE) * (2 * SIZE);
        if (i - LEFT < SIZE) begin : g_left
          wire [NODE-1:0] node = level[k][NODE*i+:NODE];
          wire [6:0] past = node[6:0] - 7'(SIZE);
          wire [NODE*SIZE-1:0] right = level[k][NODE*(LEFT+SIZE)+:NODE*SIZE];
          wire [NODE-1:0] next;
          if (SIZE == 1) begin : g_one
            assign next = right;
          end else begin : g_more
            assign next = right[NODE*past[k-1:0]+:NODE];
          end
          assign joined[NODE*i+:NODE] = node[8:7] == 0 && past < 7'(SIZE) ? {next[15:7], next[6:0] + 7'(SIZE)} : node;
        end else begin : g_right
          wire [NODE-1:0] node = level[k][NODE*i+:NODE];
          assign joined[NODE*i+:NODE] = {node[15:7], node[6:0] + 7'(SIZE)};
        end
      end
      logic [NODE*BYTES-1:0] held;
      always_ff @(posedge clk) held <= joined;
      assign level[k+1] = held;
    end
    // ---- registers that are left over
    localparam USED = LOG + 1;
    wire [NODE*BYTES-1:0] delayed[STAGES-USED+1];
    assign delayed[0] = level[LOG];
    for (i = USED; i < STAGES; i++) begin : g_delay
      logic [NODE*BYTES-1:0] held;
      always_ff @(posedge clk) held <= delayed[i-USED];
      assign delayed[i-USED+1] = held;
    end
    assign nodes = delayed[STAGES-USED];
  endgenerate
endmodule
