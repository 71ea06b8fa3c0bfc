// SPDX-License-Identifier: Apache-2.0 OR MIT
// Proves two properties of RCP's work per packet, for any input: a stamp only falls, and no counter wraps unseen.
module prove_rcp (
    input logic clk,
    input logic rst,
    input logic clear,
    input logic end_valid,
    input logic [15:0] end_bytes,
    input logic found,
    input logic [26:0] rtt_us,
    input logic [31:0] carried,
    input logic [31:0] rate
);
  logic lower;
  logic [31:0] stamp, input_bytes, sum_rtt_us, rtt_packets;
  logic [2:0] overflow;
  fs_rcp_packet law (.*);

  // What came one cycle ago.
  logic then, clear1, counted1, timed1;
  logic [31:0] carried1, input1, sum1, packets1;
  logic [2:0] overflow1;
  initial then = 0;
  always_ff @(posedge clk) begin
    then <= !rst;
    clear1 <= clear;
    counted1 <= end_valid && end_bytes != 0;
    timed1 <= found && rtt_us != 0 && rtt_us < 27'd20_000_000;
    carried1 <= carried;
    input1 <= input_bytes;
    sum1 <= sum_rtt_us;
    packets1 <= rtt_packets;
    overflow1 <= overflow;
  end

  always_comb
    if (then) begin
      // Lines 22 and 23.
      if (lower) assert (stamp < carried1);
      // A counter grows with its input, or sets its overflow bit.
      if (!clear1) begin
        assert (input_bytes >= input1 && sum_rtt_us >= sum1 && rtt_packets >= packets1);
        assert ((overflow & overflow1) == overflow1);
        if (counted1) assert (input_bytes > input1 || overflow[0]);
        if (timed1) assert (sum_rtt_us > sum1 || overflow[1]);
        if (timed1) assert (rtt_packets == packets1 + 1 || overflow[2]);
      end
      // Input that comes while a slot ends belongs to the next slot.
      if (clear1) assert (input_bytes <= 32'hffff && rtt_packets == {31'd0, timed1} && overflow == 0);
    end
endmodule
