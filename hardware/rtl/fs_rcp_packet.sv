// SPDX-License-Identifier: Apache-2.0 OR MIT
// All that RCP does for a packet: three additions, two comparisons, one write (Dukkipati 2007, 6.1.3).
//
//   input_traffic_Bytes += packet_size_Bytes                 at a frame's end
//   if (this_packet_RTT < MAX_ALLOWABLE_RTT)                 at its header; an RTT of zero is unknown
//     sum_rtt_Tr += this_packet_RTT
//     num_pkts_with_rtt += 1
//   if (packet_BW_Request > rcp_rate)
//     packet_BW_Request = rcp_rate
//
// A counter that would pass its end stays there and says so, so that none wraps unseen.
module fs_rcp_packet #(
    parameter [26:0] MAX_ALLOWABLE_RTT_US = 20_000_000  // appendix F.2.1
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        clear,         // a slot ends: what comes in this cycle belongs to the next one
    input  logic        end_valid,
    input  logic [15:0] end_bytes,
    input  logic        found,
    input  logic [26:0] rtt_us,
    input  logic [31:0] carried,       // bytes/ms
    input  logic [31:0] rate,          // bytes/ms
    output logic        lower,         // one cycle later
    output logic [31:0] stamp,
    output logic [31:0] input_bytes,
    output logic [31:0] sum_rtt_us,
    output logic [31:0] rtt_packets,
    output logic [2:0]  overflow
);
  wire with_rtt = found && |rtt_us && rtt_us < MAX_ALLOWABLE_RTT_US;
  wire [32:0] more_input = {1'b0, clear ? 32'd0 : input_bytes} + (end_valid ? {17'd0, end_bytes} : 33'd0);
  wire [32:0] more_rtt = {1'b0, clear ? 32'd0 : sum_rtt_us} + (with_rtt ? {6'd0, rtt_us} : 33'd0);
  wire [32:0] more_packets = {1'b0, clear ? 32'd0 : rtt_packets} + {32'd0, with_rtt};

  always_ff @(posedge clk) begin
    lower <= found && carried > rate;
    stamp <= rate;
    if (rst) begin
      input_bytes <= 0;
      sum_rtt_us <= 0;
      rtt_packets <= 0;
      overflow <= 0;
    end else begin
      input_bytes <= more_input[32] ? 32'hffffffff : more_input[31:0];
      sum_rtt_us <= more_rtt[32] ? 32'hffffffff : more_rtt[31:0];
      rtt_packets <= more_packets[32] ? 32'hffffffff : more_packets[31:0];
      overflow <= (clear ? 3'd0 : overflow) | {more_packets[32], more_rtt[32], more_input[32]};
    end
  end
endmodule
