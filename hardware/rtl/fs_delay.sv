// SPDX-License-Identifier: Apache-2.0 OR MIT
`include "fs_fields.svh"
// Holds words until their frame's edit is known, then sends them with the edit's bytes written in.
//
// A checksum stands before the option that it covers, so a frame waits until its headers have been read: at most
// FS_HEADER_BYTES and the parser's stages, whatever the frame's length. DEPTH words is more than that, so a full buffer
// always has a frame that may leave. Edits come in the order of frames, at most one per word held, so their queue is as deep.
module fs_delay #(
    parameter DATA_WIDTH = 64,
    parameter DEPTH = 64,
    parameter EDIT_BITS = 108,
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
  // A word leaves the buffers for `word`, is written to, and goes on to the output.
  logic read_valid, last;
  logic [DATA_WIDTH+LOG+1:0] word;
  logic [EDIT_BITS-1:0] word_edit;
  wire may = word_in != word_out && edit_in != edit_out;
  wire go = !out_valid || out_ready;
  wire pop = may && (!read_valid || go);
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

  // ---- the edit's parts; a narrow edit has no IP part
  wire [107:0] e = 108'(word_edit);
  wire write_stamp = e[0];
  wire write_tcp = e[1];
  wire [31:0] stamp = e[33:2];
  wire [7:0] stamp_at = e[41:34];
  wire [15:0] tcp_checksum = e[57:42];
  wire [7:0] tcp_at = e[65:58] + 8'd16;
  wire write_head = EDIT_BITS > 66 && e[66];
  wire write_ip = EDIT_BITS > 66 && e[67];
  wire [15:0] head = e[83:68];
  wire [15:0] ip_checksum = e[99:84];
  wire [7:0] head_at = e[107:100];
  wire [7:0] ip_at = head_at + 8'd10;

  // ---- write, and send
  logic [7:0] base;
  logic [DATA_WIDTH-1:0] mended;

  // Whether the byte at this position is byte `lane` of the word that begins at `from`.
  function automatic logic here(input logic [7:0] at, input logic [7:0] from, input int lane);
    here = at[7:LOG] == from[7:LOG] && at[LOG-1:0] == LOG'(lane);
  endfunction

  always_comb begin
    mended = word[DATA_WIDTH-1:0];
    for (int lane = 0; lane < BYTES; lane++) begin
      for (int i = 0; i < 4; i++)
        if (write_stamp && here(stamp_at + 8'(i), base, lane)) mended[8*lane+:8] = stamp[8*(3-i)+:8];
      for (int i = 0; i < 2; i++) begin
        if (write_tcp && here(tcp_at + 8'(i), base, lane)) mended[8*lane+:8] = tcp_checksum[8*(1-i)+:8];
        if (write_head && here(head_at + 8'(i), base, lane)) mended[8*lane+:8] = head[8*(1-i)+:8];
        if (write_ip && here(ip_at + 8'(i), base, lane)) mended[8*lane+:8] = ip_checksum[8*(1-i)+:8];
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      read_valid <= 0;
      out_valid <= 0;
      base <= 0;
    end else begin
      if (!read_valid || go) read_valid <= may;
      if (go) out_valid <= read_valid;
      if (read_valid && go) base <= last ? 8'd0 : base == `FS_FAR ? base : base + 8'(BYTES);
    end
    if (pop) begin
      word <= head_word;
      word_edit <= edits[edit_out[ROW-1:0]];
    end
    if (read_valid && go) begin
      out_data <= mended;
      {out_last, out_count} <= word[DATA_WIDTH+:LOG+2];
    end
  end
  assign last = word[DATA_WIDTH+LOG+1];

`ifdef FORMAL
`include "fs_delay.svh"
`endif
endmodule
