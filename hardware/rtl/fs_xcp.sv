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
    output logic         write,        // ten cycles later
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
  localparam PRODUCTS = 4, POOLS = 8, LAST = 9;  // stages whose registers hold the products, and what the pools gave
  wire [23:0] rtt24 = {bytes[71:64], bytes[79:72], bytes[87:80]};
  logic [31:0] x1;
  logic [23:0] rtt1;
  logic [15:0] bytes1;
  always_ff @(posedge clk) begin
    x1 <= rtt24 == 0 ? 32'd0 : word(bytes[63:32]);
    rtt1 <= rtt24 > MAX_RTT ? MAX_RTT : rtt24;
    bytes1 <= frame_bytes;
  end

  // ---- passed along the stages: found, and the feedback that the packet asks for
  logic [LAST:1] found_in;
  logic [31:0] asked[LAST+1];
  assign asked[0] = word(bytes[159:128]);
  always_ff @(posedge clk) begin
    found_in <= rst ? '0 : {found_in[LAST-1:1], found};
    for (int i = 1; i <= LAST; i++) asked[i] <= asked[i-1];
  end

  // ---- 2 to 4: the products
  logic [23:0] give_mantissa, take_mantissa;
  logic [6:0] give_shift, take_shift;
  logic [55:0] x_rtt4, give4, take4;
  fs_multiply by_rtt (.clk(clk), .a(x1), .b(rtt1), .product(x_rtt4));
  fs_multiply by_give (.clk(clk), .a(x1), .b(give_mantissa), .product(give4));
  fs_multiply by_take (.clk(clk), .a({16'd0, bytes1}), .b(take_mantissa), .product(take4));

  localparam ALONG = 62;
  logic [ALONG-1:0] along[PRODUCTS-1];
  always_ff @(posedge clk) begin
    along[0] <= {give_shift, take_shift, x1, bytes1};
    for (int i = 1; i < PRODUCTS - 1; i++) along[i] <= along[i-1];
  end
  wire [6:0] give_shift4 = along[PRODUCTS-2][61:55];
  wire [6:0] take_shift4 = along[PRODUCTS-2][54:48];
  wire [31:0] x4 = along[PRODUCTS-2][47:16];
  wire [15:0] bytes4 = along[PRODUCTS-2][15:0];

  // ---- 5 and 6: to the pools' unit, first by sixteen bits at a time; values over 64 bits saturate
  function automatic logic [63:0] amplified(input logic [71:0] product, input logic [3:0] shift);
    logic [71:0] wide;
    wide = product >> shift;
    amplified = |wide[71:64] ? ~64'd0 : wide[63:0];
  endfunction
  logic [71:0] give5, take5;
  logic [3:0] give_shift5, take_shift5;
  logic [63:0] give6, take6;
  logic with_x5, with_x6, with_x7, with_x8, with_x9;
  always_ff @(posedge clk) begin
    give5 <= {give4, 16'd0} >> {give_shift4[6:4], 4'd0};
    take5 <= {take4, 16'd0} >> {take_shift4[6:4], 4'd0};
    give_shift5 <= give_shift4[3:0];
    take_shift5 <= take_shift4[3:0];
    give6 <= amplified(give5, give_shift5);
    take6 <= amplified(take5, take_shift5);
    {with_x5, with_x6, with_x7, with_x8, with_x9} <= {x4 != 0, with_x5, with_x6, with_x7, with_x8};
  end

  // ---- 7: the terms that do not depend on the pools
  function automatic logic signed [65:0] wide(input logic [63:0] amount);
    wide = $signed({2'b00, amount});
  endfunction
  wire signed [65:0] wish6 = $signed({{18{asked[6][31]}}, asked[6], 16'd0});
  wire signed [65:0] slack6 = wide(take6) + wish6 - wide(give6);
  logic signed [65:0] wish, over, asks;
  logic [63:0] wants_give, wants_take;
  logic allows_whole;
  always_ff @(posedge clk) begin
    wish <= wish6;
    over <= wide(give6) - wish6;
    asks <= wide(take6) + wish6;
    wants_give <= give6;
    wants_take <= take6;
    allows_whole <= !slack6[65];
  end

  // ---- 8: the pools, for a packet per cycle. All differences that may count are taken at once, and their signs choose.
  //   give = min(wants_give, pos)   take = min(wants_take, neg)     allows if wish >= give - take
  // An upstream router allows less: the rest is taken from others' share, and what is given comes from the positive pool.
  //   paid = min(give - wish, neg)  pos -= max(paid + wish, 0)      neg -= paid
  logic [63:0] pool_pos, pool_neg, next_pos, next_neg;
  wire signed [65:0] pos_left = wide(pool_pos) - wide(wants_give);
  wire signed [65:0] neg_left = wide(pool_neg) - wide(wants_take);
  wire signed [65:0] neg_over = wide(pool_neg) - over;               // neg - (wants_give - wish)
  wire signed [65:0] asks_left = asks - wide(pool_pos);
  wire signed [65:0] balance = wide(pool_neg) + wish - wide(pool_pos);
  wire signed [65:0] unpaid = wide(pool_pos) - wide(pool_neg) - wish;
  wire signed [65:0] used = wide(pool_neg) + wish;
  wire give_all = !pos_left[65];
  wire take_all = !neg_left[65];
  wire covers = give_all ? !neg_over[65] : !balance[65];              // paid = give - wish, so pos -= give
  wire allows = take_all ? (give_all ? allows_whole : !asks_left[65]) : covers;

  // Committed values replace the pools before the first packet that has the new gains.
  logic [POOLS-3:0] committed;
  logic [63:0] staged_pos, staged_neg;
  logic [23:0] staged_give_mantissa, staged_take_mantissa;
  logic [6:0] staged_give_shift, staged_take_shift;

  always_comb begin
    next_pos = pool_pos;
    next_neg = pool_neg;
    if (found_in[7] && with_x7) begin
      if (allows || covers) next_pos = give_all ? pos_left[63:0] : 64'd0;
      else if (!used[65]) next_pos = unpaid[63:0];
      if (allows) next_neg = take_all ? neg_left[63:0] : 64'd0;
      else if (covers) next_neg = give_all ? neg_over[63:0] : balance[63:0];
      else next_neg = 0;
    end
    if (committed[POOLS-3]) begin
      next_pos = staged_pos;
      next_neg = staged_neg;
    end
  end

  // ---- 9 and 10: the feedback. Without X a packet may only keep what it loses.
  logic [63:0] give8, take8;
  logic signed [65:0] feedback;
  logic allows8, allows9;
  wire [31:0] granted = feedback[65:47] == '1 || feedback[65:47] == 0 ? feedback[47:16] :
      feedback[65] ? 32'h80000000 : 32'h7fffffff;

  always_ff @(posedge clk) begin
    give8 <= give_all ? wants_give : pool_pos;
    take8 <= take_all ? wants_take : pool_neg;
    allows8 <= allows;
    feedback <= wide(give8) - wide(take8);
    allows9 <= allows8;
    was <= asked[LAST];
    is <= with_x9 ? granted : 32'd0;
    write <= found_in[LAST] & ~rst & (with_x9 ? allows9 && granted != asked[LAST] : !asked[LAST][31] && asked[LAST] != 0);
    committed <= rst ? '0 : {committed[POOLS-4:0], commit};
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
  wire counts = found_in[PRODUCTS] && x4 != 0;
  wire [32:0] more_input = {1'b0, snapshot ? 32'd0 : live_input} + (end_valid ? {17'd0, end_bytes} : 33'd0);
  wire [32:0] more_x_bytes = {1'b0, snapshot ? 32'd0 : live_x_bytes} + (counts ? {17'd0, bytes4} : 33'd0);
  wire [64:0] more_x = {1'b0, snapshot ? 64'd0 : live_x} + (counts ? {33'd0, x4} : 65'd0);
  wire [64:0] more_x_rtt = {1'b0, snapshot ? 64'd0 : live_x_rtt} + (counts ? {9'd0, x_rtt4} : 65'd0);

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
