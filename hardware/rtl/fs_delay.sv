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
  wire may = word_in != word_out && edit_in != edit_out;
  wire pop = may && (!out_valid || out_ready);
  wire [DATA_WIDTH+LOG+1:0] word = words[word_out[ROW-1:0]];
  wire last = word[DATA_WIDTH+LOG+1];

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
      if (pop && last) edit_out <= edit_out + 1'b1;
    end
  end

  // ---- the edit's parts; a narrow edit has no IP part
  wire [107:0] e = 108'(edits[edit_out[ROW-1:0]]);
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

  // One byte into the word that begins at `base`, if it lies there.
  function automatic logic [DATA_WIDTH-1:0] put(input logic [DATA_WIDTH-1:0] to, input logic write, input logic [7:0] at,
                                                input logic [7:0] from, input logic [7:0] value);
    put = to;
    if (write && at[7:LOG] == from[7:LOG]) put[8*at[LOG-1:0]+:8] = value;
  endfunction

  always_comb begin
    mended = word[DATA_WIDTH-1:0];
    for (int i = 0; i < 4; i++) mended = put(mended, write_stamp, stamp_at + 8'(i), base, stamp[8*(3-i)+:8]);
    for (int i = 0; i < 2; i++) begin
      mended = put(mended, write_tcp, tcp_at + 8'(i), base, tcp_checksum[8*(1-i)+:8]);
      mended = put(mended, write_head, head_at + 8'(i), base, head[8*(1-i)+:8]);
      mended = put(mended, write_ip, ip_at + 8'(i), base, ip_checksum[8*(1-i)+:8]);
    end
  end

  always_ff @(posedge clk) begin
    if (rst) out_valid <= 0;
    else if (!out_valid || out_ready) out_valid <= may;
    if (rst) base <= 0;
    else if (pop) base <= last ? 8'd0 : base == `FS_FAR ? base : base + 8'(BYTES);
    if (pop) begin
      out_data <= mended;
      {out_last, out_count} <= word[DATA_WIDTH+:LOG+2];
    end
  end
endmodule
