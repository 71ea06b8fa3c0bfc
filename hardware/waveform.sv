// SPDX-License-Identifier: Apache-2.0 OR MIT
// Passes a TCP segment with RCP's option through the router, which lowers the option's rate. `tools/hardware.py waveform`
// draws the signals.
module waveform;
  logic clk = 0, rst = 1;
  logic s_axis_tvalid = 0, s_axis_tready, s_axis_tlast = 0, m_axis_tvalid, m_axis_tready = 1, m_axis_tlast;
  logic [63:0] s_axis_tdata = 0, m_axis_tdata;
  logic [7:0] s_axis_tkeep = 0, m_axis_tkeep, s_axil_awaddr = 8'h20, s_axil_araddr = 0;
  logic s_axil_awvalid = 0, s_axil_awready, s_axil_wvalid = 0, s_axil_wready, s_axil_bvalid, s_axil_bready = 1;
  logic s_axil_arvalid = 0, s_axil_arready, s_axil_rvalid, s_axil_rready = 1, slot_over;
  logic [31:0] s_axil_wdata = 125_000, s_axil_rdata, queue_bytes = 0;  // bytes/ms: 1 Gb/s
  logic [1:0] s_axil_bresp, s_axil_rresp;
  flowstamp_router dut (.*);
  always #5 clk = !clk;

  // Ethernet, IPv4, TCP, and the option that asks for 500,000 bytes/ms with an RTT of 50 ms.
  localparam BYTES = 70;
  localparam [8*BYTES-1:0] FRAME = {
    96'h020000000001_020000000002, 16'h0800, 160'h45000038_00070000_4006_66b7_0a000001_0a000002,
    160'h13880050_00000001_00000002_9010_ffff_1234_0000, 128'hfd105243_00000000_0007a120_4c35_0000
  };
  initial begin
    $dumpfile("waveform.vcd");
    $dumpvars(1, waveform, dut);
    repeat (3) @(negedge clk);
    rst = 0;
    {s_axil_awvalid, s_axil_wvalid} = 2'b11;
    @(negedge clk) {s_axil_awvalid, s_axil_wvalid} = 0;
    repeat (3) @(negedge clk);
    for (int word = 0; word * 8 < BYTES; word++) begin
      s_axis_tvalid = 1;
      s_axis_tlast = word * 8 + 8 >= BYTES;
      s_axis_tkeep = word * 8 + 8 <= BYTES ? 8'hff : 8'hff >> (word * 8 + 8 - BYTES);
      for (int i = 0; i < 8; i++)
        if (word * 8 + i < BYTES) s_axis_tdata[8*i+:8] = FRAME[8*(BYTES-1-word*8-i)+:8];
      @(negedge clk);
    end
    s_axis_tvalid = 0;
    // The far end waits for two cycles in the middle of the frame.
    wait (m_axis_tvalid);
    repeat (3) @(negedge clk);
    m_axis_tready = 0;
    repeat (2) @(negedge clk);
    m_axis_tready = 1;
    repeat (10) @(negedge clk);
    $finish;
  end
endmodule
