// SPDX-License-Identifier: Apache-2.0 OR MIT
// XCP in the Internet-Draft's form, which needs two multiplications for a packet's feedback and none of its divisions: the
// packet carries X, the time between its flow's packets (Katabi 2002, appendix A; draft-falk-xcp-spec-03, 4.3).
//
//   arrival     input += s     sum_x += X     sum_x_rtt += X rtt     bytes with an X += s
//   departure   give = min(xi_p X, pool_p)   take = min(xi_n s, pool_n)   feedback = give - take         eqs. 3, 4, 7
//               what the packet asks for at most: it gets that, and the pools pay for it
//
// Units: X in 2^-28 s, RTTs in 2^-20 s (at most 4 s), pools and feedback in bytes/s with 16 fraction bits. A gain is
// mantissa 2^(16 - shift) per unit of X or per byte. The arithmetic is that of crates/flowstamp-linux/bpf/laws.h.
//
// The option of TCP is not read: it carries packets in flight, and X = rtt / packets is a division.
module fs_xcp (
    input  logic         clk,
    input  logic         rst,
    input  logic         end_valid,
    input  logic [15:0]  end_bytes,
    input  logic         found,
    input  logic [159:0] bytes,
    input  logic [15:0]  frame_bytes,
    output logic         write,        // four cycles later
    output logic [31:0]  was,
    output logic [31:0]  is,
    input  logic [31:0]  queue_bytes,
    input  logic         snapshot,
    input  logic         commit,       // what was written to gains and pools counts from now on
    input  logic         wr,
    input  logic [7:0]   wr_at,
    input  logic [31:0]  wr_data,
    input  logic [7:0]   rd_at,
    output logic [31:0]  rd_data,
    output logic [31:0]  input_bytes,
    output logic [2:0]   overflow
);
  localparam [23:0] MAX_RTT = 24'd4 << 20;

  function automatic logic [31:0] word(input logic [31:0] b);
    word = {b[7:0], b[15:8], b[23:16], b[31:24]};
  endfunction

  // ---- 1: the fields. An RTT below 2^-20 s is none.
  wire [23:0] rtt24 = {bytes[71:64], bytes[79:72], bytes[87:80]};
  logic found1, found2, found3;
  logic [31:0] x1;
  logic [23:0] rtt1;
  logic [31:0] asked1, asked2, asked3;
  logic [15:0] bytes1;
  always_ff @(posedge clk) begin
    found1 <= found & ~rst;
    x1 <= rtt24 == 0 ? 32'd0 : word(bytes[63:32]);
    rtt1 <= rtt24 > MAX_RTT ? MAX_RTT : rtt24;
    asked1 <= word(bytes[159:128]);
    bytes1 <= frame_bytes;
  end

  // ---- 2: the products
  logic [23:0] give_mantissa, take_mantissa;
  logic [6:0] give_shift, take_shift;
  logic [55:0] x_rtt2, give2;
  logic [39:0] take2;
  logic [31:0] x2;
  logic [15:0] bytes2;
  logic [6:0] give_shift2, take_shift2;
  always_ff @(posedge clk) begin
    found2 <= found1 & ~rst;
    x_rtt2 <= x1 * rtt1;
    give2 <= x1 * give_mantissa;
    take2 <= bytes1 * take_mantissa;
    give_shift2 <= give_shift;
    take_shift2 <= take_shift;
    x2 <= x1;
    bytes2 <= bytes1;
    asked2 <= asked1;
  end

  // ---- 3: to the pools' unit; more than 64 bits hold saturates
  function automatic logic [63:0] amplified(input logic [55:0] product, input logic [6:0] shift);
    logic [71:0] wide;
    wide = {product, 16'd0} >> shift;
    amplified = |wide[71:64] ? ~64'd0 : wide[63:0];
  endfunction
  logic [63:0] give3, take3;
  logic with_x3;
  always_ff @(posedge clk) begin
    found3 <= found2 & ~rst;
    give3 <= amplified(give2, give_shift2);
    take3 <= amplified({16'd0, take2}, take_shift2);
    with_x3 <= x2 != 0;
    asked3 <= asked2;
  end

  // ---- 4: the pools
  logic [63:0] pool_pos, pool_neg, next_pos, next_neg;
  wire [63:0] give = give3 < pool_pos ? give3 : pool_pos;
  wire [63:0] take = take3 < pool_neg ? take3 : pool_neg;
  wire [63:0] feedback = give - take;
  wire [63:0] wish = {{16{asked3[31]}}, asked3, 16'd0};
  wire allows = $signed(wish) >= $signed(feedback);
  // An upstream router allows less: the rest is taken from others' share, and what is given comes from the positive pool.
  wire [63:0] missing = give - wish;
  wire [63:0] paid = missing < pool_neg ? missing : pool_neg;
  wire [63:0] used = paid + wish;  // below zero if the packet loses more than the pool pays
  wire [63:0] spent = used[63] ? 64'd0 : used < pool_pos ? used : pool_pos;
  wire [31:0] granted = feedback[63:47] == 17'h1ffff || feedback[63:47] == 0 ? feedback[47:16] :
      feedback[63] ? 32'h80000000 : 32'h7fffffff;

  logic staged_valid;
  logic [63:0] staged_pos, staged_neg;
  logic [23:0] staged_give_mantissa, staged_take_mantissa;
  logic [6:0] staged_give_shift, staged_take_shift;

  always_comb begin
    next_pos = pool_pos;
    next_neg = pool_neg;
    if (found3 && with_x3) begin
      next_pos = pool_pos - (allows ? give : spent);
      next_neg = pool_neg - (allows ? take : paid);
    end
    if (staged_valid) begin
      next_pos = staged_pos;
      next_neg = staged_neg;
    end
  end

  always_ff @(posedge clk) begin
    was <= asked3;
    is <= with_x3 ? granted : 32'd0;
    // Without X a packet may only keep what it loses.
    write <= found3 & ~rst & (with_x3 ? allows && granted != asked3 : !asked3[31] && asked3 != 0);
    staged_valid <= commit & ~rst;
    if (rst) begin
      {pool_pos, pool_neg, give_mantissa, take_mantissa, give_shift, take_shift} <= 0;
    end else begin
      pool_pos <= next_pos;
      pool_neg <= next_neg;
      if (commit) begin
        {give_mantissa, give_shift} <= {staged_give_mantissa, staged_give_shift};
        {take_mantissa, take_shift} <= {staged_take_mantissa, staged_take_shift};
      end
      if (wr)
        case (wr_at)
          8'h40: {staged_give_shift, staged_give_mantissa} <= wr_data[30:0];
          8'h44: {staged_take_shift, staged_take_mantissa} <= wr_data[30:0];
          8'h48: staged_pos[31:0] <= wr_data;
          8'h4c: staged_pos[63:32] <= wr_data;
          8'h50: staged_neg[31:0] <= wr_data;
          8'h54: staged_neg[63:32] <= wr_data;
          default: ;
        endcase
    end
  end

  // ---- the sums of a slot
  logic [31:0] live_input, live_x_bytes, x_bytes, live_queue, least_queue;
  logic [63:0] live_x, live_x_rtt, sum_x, sum_x_rtt;
  logic [2:0] live_overflow;
  wire counts = found2 && x2 != 0;
  wire [32:0] more_input = {1'b0, snapshot ? 32'd0 : live_input} + (end_valid ? {17'd0, end_bytes} : 33'd0);
  wire [32:0] more_x_bytes = {1'b0, snapshot ? 32'd0 : live_x_bytes} + (counts ? {17'd0, bytes2} : 33'd0);
  wire [64:0] more_x = {1'b0, snapshot ? 64'd0 : live_x} + (counts ? {33'd0, x2} : 65'd0);
  wire [64:0] more_x_rtt = {1'b0, snapshot ? 64'd0 : live_x_rtt} + (counts ? {9'd0, x_rtt2} : 65'd0);

  always_ff @(posedge clk) begin
    if (rst) begin
      {live_input, live_x_bytes, live_x, live_x_rtt, live_overflow} <= 0;
      {input_bytes, x_bytes, sum_x, sum_x_rtt, overflow} <= 0;
      live_queue <= 32'hffffffff;
      least_queue <= 0;
    end else begin
      live_input <= more_input[32] ? 32'hffffffff : more_input[31:0];
      live_x_bytes <= more_x_bytes[32] ? 32'hffffffff : more_x_bytes[31:0];
      live_x <= more_x[64] ? ~64'd0 : more_x[63:0];
      live_x_rtt <= more_x_rtt[64] ? ~64'd0 : more_x_rtt[63:0];
      live_overflow <= (snapshot ? 3'd0 : live_overflow) |
          {more_x_rtt[64], more_x[64], more_input[32] | more_x_bytes[32]};
      // The persistent queue is the least one that packets saw (section 3.2).
      if (snapshot) live_queue <= queue_bytes;
      else if (end_valid && queue_bytes < live_queue) live_queue <= queue_bytes;
      if (snapshot) begin
        {input_bytes, x_bytes, sum_x, sum_x_rtt} <= {live_input, live_x_bytes, live_x, live_x_rtt};
        overflow <= live_overflow;
        least_queue <= live_queue;
      end
    end
  end

  always_comb
    case (rd_at)
      8'h20: rd_data = x_bytes;
      8'h24: rd_data = sum_x[31:0];
      8'h28: rd_data = sum_x[63:32];
      8'h2c: rd_data = sum_x_rtt[31:0];
      8'h30: rd_data = sum_x_rtt[63:32];
      8'h34: rd_data = least_queue;
      8'h48: rd_data = pool_pos[31:0];
      8'h4c: rd_data = pool_pos[63:32];
      8'h50: rd_data = pool_neg[31:0];
      8'h54: rd_data = pool_neg[63:32];
      default: rd_data = 0;
    endcase
endmodule
