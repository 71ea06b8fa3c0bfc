// SPDX-License-Identifier: Apache-2.0 OR MIT
// AXI4-Lite, and the registers that every law has. docs/hardware.md lists them.
//
// A write of 1 to CONTROL ends the slot: in one cycle the counters are copied to what reads see, and begin again.
module fs_registers #(
    parameter LAW = 1,
    parameter DATA_WIDTH = 64,
    parameter CLOCK_MHZ = 125
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        awvalid,
    output logic        awready,
    input  logic [7:0]  awaddr,
    input  logic        wvalid,
    output logic        wready,
    input  logic [31:0] wdata,
    output logic        bvalid,
    input  logic        bready,
    input  logic        arvalid,
    output logic        arready,
    input  logic [7:0]  araddr,
    output logic        rvalid,
    input  logic        rready,
    output logic [31:0] rdata,
    input  logic [31:0] queue_bytes,
    output logic        slot_over,    // interrupt: SLOT microseconds have passed since the last snapshot
    output logic        snapshot,
    output logic        commit,
    output logic        wr,
    output logic [7:0]  wr_at,
    output logic [31:0] wr_data,
    output logic [7:0]  rd_at,
    input  logic [31:0] rd_data,
    input  logic [31:0] input_bytes,
    input  logic [2:0]  overflow
);
  // ---- the bus: one write and one read at a time
  wire write = awvalid && wvalid && (!bvalid || bready) && !wr;
  assign awready = write;
  assign wready = write;
  wire read = arvalid && (!rvalid || rready);
  assign arready = read;
  assign rd_at = {araddr[7:2], 2'b00};

  // ---- the slot's clock, in microseconds
  logic [15:0] slot, elapsed, elapsed_then;
  logic [31:0] queue_then;
  logic [9:0] cycles;
  wire tick = cycles == 10'(CLOCK_MHZ - 1);
  assign slot_over = slot != 0 && elapsed >= slot;

  logic [31:0] value;
  always_comb
    case (rd_at)
      8'h00: value = {16'h4653, 8'(LAW), 8'(DATA_WIDTH / 8)};  // "FS"
      8'h08: value = {29'd0, overflow};
      8'h0c: value = {16'd0, slot};
      8'h10: value = {16'd0, elapsed_then};
      8'h14: value = queue_then;
      8'h18: value = input_bytes;
      8'h1c: value = queue_bytes;
      default: value = rd_data;
    endcase

  always_ff @(posedge clk) begin
    snapshot <= write && {awaddr[7:2], 2'b00} == 8'h04 && wdata[0] && !rst;
    commit <= write && {awaddr[7:2], 2'b00} == 8'h04 && wdata[1] && !rst;
    wr_at <= {awaddr[7:2], 2'b00};
    wr_data <= wdata;
    if (read) rdata <= value;
    if (rst) begin
      {wr, bvalid, rvalid, slot, elapsed, elapsed_then, queue_then, cycles} <= 0;
    end else begin
      wr <= write;
      bvalid <= write || (bvalid && !bready);
      rvalid <= read || (rvalid && !rready);
      if (wr && wr_at == 8'h0c) slot <= wr_data[15:0];
      cycles <= tick || snapshot ? 10'd0 : cycles + 1'b1;
      if (snapshot) elapsed <= 0;
      else if (tick && elapsed != 16'hffff) elapsed <= elapsed + 1'b1;
      if (snapshot) begin
        elapsed_then <= elapsed;
        queue_then <= queue_bytes;
      end
    end
  end
endmodule
