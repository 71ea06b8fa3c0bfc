// SPDX-License-Identifier: Apache-2.0 OR MIT
// RCP's registers around its work per packet, and the units of its two headers.
module fs_rcp (
    input  logic        clk,
    input  logic        rst,
    input  logic        end_valid,
    input  logic [15:0] end_bytes,
    input  logic        found,
    input  logic        shim,
    input  logic [95:0] bytes,     // the header's, the first in the low bits
    output logic        write,     // two cycles after `found`
    output logic [31:0] was,
    output logic [31:0] is,
    input  logic        snapshot,
    input  logic        wr,
    input  logic [7:0]  wr_at,
    input  logic [31:0] wr_data,
    input  logic [7:0]  rd_at,
    output logic [31:0] rd_data,
    output logic [31:0] input_bytes,
    output logic [2:0]  overflow
);
  wire [31:0] word = {bytes[7:0], bytes[15:8], bytes[23:16], bytes[31:24]};
  // The option's RTT is a 16-bit float of microseconds, the shim's in milliseconds: 1000 = 1024 - 16 - 8.
  wire [15:0] float = {bytes[39:32], bytes[47:40]};
  wire [26:0] float_us = {15'd0, float[11:0]} << float[15:12];
  wire [26:0] ms = {11'd0, bytes[71:64], bytes[79:72]};
  wire [26:0] ms_us = (ms << 10) - (ms << 4) - (ms << 3);
  // In the shim a rate of zero asks for as much as there is (appendix F, line 22: "unspecified").
  wire [31:0] carried = shim && word == 0 ? 32'hffffffff : word;

  // Units first, then the law: a stage each.
  logic found1;
  logic [26:0] rtt_us1;
  logic [31:0] word1, carried1;
  always_ff @(posedge clk) begin
    found1 <= found & ~rst;
    rtt_us1 <= shim ? ms_us : float_us;
    word1 <= word;
    carried1 <= carried;
    was <= word1;
  end

  logic [31:0] rate, live_input, live_sum, live_packets, sum_rtt_us, rtt_packets;
  logic [2:0] live_overflow;

  fs_rcp_packet law (
      .clk(clk), .rst(rst), .clear(snapshot), .end_valid(end_valid), .end_bytes(end_bytes), .found(found1),
      .rtt_us(rtt_us1), .carried(carried1), .rate(rate), .lower(write), .stamp(is),
      .input_bytes(live_input), .sum_rtt_us(live_sum), .rtt_packets(live_packets), .overflow(live_overflow)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      // Above every request until the control path has set a rate.
      rate <= 32'hffffffff;
      {input_bytes, sum_rtt_us, rtt_packets, overflow} <= 0;
    end else begin
      if (wr && wr_at == 8'h20) rate <= wr_data;
      if (snapshot) begin
        input_bytes <= live_input;
        sum_rtt_us <= live_sum;
        rtt_packets <= live_packets;
        overflow <= live_overflow;
      end
    end
  end

  always_comb
    case (rd_at)
      8'h20: rd_data = rate;
      8'h24: rd_data = sum_rtt_us;
      8'h28: rd_data = rtt_packets;
      default: rd_data = 0;
    endcase
endmodule
