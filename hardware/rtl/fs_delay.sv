// SPDX-License-Identifier: Apache-2.0 OR MIT
`include "fs_fields.svh"
// Holds words until their frame's edit is known, then sends them with the edit's bytes written in.
//
// A checksum comes before the option that it covers, so a frame waits until its headers have been read. That takes at most FS_FAR
// bytes and the parser's stages, however long the frame is. DEPTH words are more than that, so a full buffer
// always has a frame that may leave. Edits come in the order of frames, at most one per word held, so their queue is as deep.
module fs_delay #(
    parameter DATA_WIDTH = 64,
    parameter DEPTH = 128,
    parameter EDIT_BITS = 111,
    localparam BYTES = DATA_WIDTH / 8,
    localparam LOG = $clog2(BYTES),
    localparam ROW = $clog2(DEPTH)
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic                  in_valid,
    output logic                  in_ready,
    input  logic [DATA_WIDTH-1:0] in_data,
    input  logic [LOG:0]          in_count,
    input  logic                  in_last,
    input  logic                  edit_valid,
    input  logic [EDIT_BITS-1:0]  edit,
    output logic                  out_valid,
    input  logic                  out_ready,
    output logic [DATA_WIDTH-1:0] out_data,
    output logic [LOG:0]          out_count,
    output logic                  out_last
);
  // ---- words, and edits: two ring buffers
  logic [DATA_WIDTH+LOG+1:0] words[DEPTH];
  logic [EDIT_BITS-1:0] edits[DEPTH];
  logic [ROW:0] word_in, word_out, edit_in, edit_out;
  wire push = in_valid && in_ready;
  assign in_ready = word_in - word_out != (ROW + 1)'(DEPTH);
  // A word leaves the buffers for `word`, and goes through two more stages to the output. They move together.
  logic read_valid;
  logic [DATA_WIDTH+LOG+1:0] word;
  logic [EDIT_BITS-1:0] word_edit;
  wire go = !out_valid || out_ready;
  wire may = word_in != word_out && edit_in != edit_out;
  wire pop = may && go;
  wire [DATA_WIDTH+LOG+1:0] head_word = words[word_out[ROW-1:0]];
  wire head_last = head_word[DATA_WIDTH+LOG+1];

  always_ff @(posedge clk) begin
    if (push) words[word_in[ROW-1:0]] <= {in_last, in_count, in_data};
    if (edit_valid) edits[edit_in[ROW-1:0]] <= edit;
    if (rst) begin
      word_in <= 0;
      word_out <= 0;
      edit_in <= 0;
      edit_out <= 0;
    end else begin
      if (push) word_in <= word_in + 1'b1;
      if (edit_valid) edit_in <= edit_in + 1'b1;
      if (pop) word_out <= word_out + 1'b1;
      if (pop && head_last) edit_out <= edit_out + 1'b1;
    end
  end

  // ---- read: the position of the word in its frame
  logic [8:0] base, base1;
  logic valid1, valid2;
  logic [DATA_WIDTH+LOG+1:0] word1, word2;
  logic [EDIT_BITS-1:0] edit1;

  function automatic logic [8:0] following(input logic is_last, input logic [8:0] at);
    following = is_last ? 9'd0 : at == `FS_FAR ? at : at + 9'(BYTES);
  endfunction

  always_ff @(posedge clk) begin
    if (pop) begin
      word <= head_word;
      word_edit <= edits[edit_out[ROW-1:0]];
    end
    if (rst) begin
      {read_valid, valid1, valid2, out_valid} <= 0;
      base <= 0;
    end else if (go) begin
      {read_valid, valid1, valid2, out_valid} <= {may, read_valid, valid1, valid2};
      if (read_valid) base <= following(word[DATA_WIDTH+LOG+1], base);
    end
    if (go) begin
      word1 <= word;
      edit1 <= word_edit;
      base1 <= base;
    end
  end

  // ---- 1: the edit's parts, and the bytes of this word that they change. A narrow edit has no IP part.
  wire [110:0] e = 111'(edit1);
  wire [31:0] stamp = e[33:2];
  wire [8:0] stamp_at = e[42:34];
  wire [8:0] head_at = e[110:102];
  logic [BYTES-1:0] stamp_on, tcp_on, head_on, ip_on;
  logic [31:0] stamp_is;  // turned so that each byte is in the place of its lane
  logic [15:0] tcp_is, head_is, ip_is;

  function automatic logic [BYTES-1:0] covered(
      input logic write, input logic [8:0] at, input logic [8:0] from, input logic [2:0] size
  );
    logic first, second;
    logic [LOG+1:0] low, high;
    first = write && at[8:LOG] == from[8:LOG];
    second = write && at[8:LOG] + 1'b1 == from[8:LOG];
    low = {2'b0, at[LOG-1:0]};
    high = low + (LOG + 2)'(size);
    for (int lane = 0; lane < BYTES; lane++)
      covered[lane] = (first && low <= (LOG + 2)'(lane) && high > (LOG + 2)'(lane)) ||
          (second && high > (LOG + 2)'(lane + BYTES));
  endfunction

  // IP and TCP begin at even positions, so a field of two bytes lies in one word.
  function automatic logic [8:0] even(input logic [8:0] at);
    even = {at[8:1], 1'b0};
  endfunction

  function automatic logic [31:0] turned(input logic [31:0] value, input logic [1:0] lane);
    logic [31:0] network;
    logic [63:0] twice;
    network = {value[7:0], value[15:8], value[23:16], value[31:24]};
    twice = {network, network} << {lane, 3'd0};
    turned = twice[63:32];
  endfunction

  always_ff @(posedge clk)
    if (go) begin
      word2 <= word1;
      stamp_on <= covered(e[0], stamp_at, base1, 3'd4);
      tcp_on <= covered(e[1], even(e[67:59]), base1, 3'd2);
      head_on <= EDIT_BITS > 68 ? covered(e[68], even(head_at), base1, 3'd2) : '0;
      ip_on <= EDIT_BITS > 68 ? covered(e[69], even(head_at + 9'd10), base1, 3'd2) : '0;
      stamp_is <= turned(stamp, stamp_at[1:0]);
      tcp_is <= {e[50:43], e[58:51]};
      head_is <= {e[77:70], e[85:78]};
      ip_is <= {e[93:86], e[101:94]};
    end

  // ---- 2: write
  logic [DATA_WIDTH-1:0] mended;
  always_comb begin
    mended = word2[DATA_WIDTH-1:0];
    for (int lane = 0; lane < BYTES; lane++) begin
      if (stamp_on[lane]) mended[8*lane+:8] = stamp_is[8*(lane%4)+:8];
      if (tcp_on[lane]) mended[8*lane+:8] = tcp_is[8*(lane%2)+:8];
      if (head_on[lane]) mended[8*lane+:8] = head_is[8*(lane%2)+:8];
      if (ip_on[lane]) mended[8*lane+:8] = ip_is[8*(lane%2)+:8];
    end
  end
  always_ff @(posedge clk) if (go) {out_last, out_count, out_data} <= {word2[DATA_WIDTH+:LOG+2], mended};

`ifdef FORMAL
`include "fs_delay.svh"
`endif
endmodule
