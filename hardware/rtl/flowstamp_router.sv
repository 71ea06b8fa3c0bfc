// SPDX-License-Identifier: Apache-2.0 OR MIT
`include "fs_fields.svh"
// One port of a router: stamps the frames that pass, for the law LAW (Dukkipati 2007, 6.1.3).
//
//   s_axis ─┬─> fs_delay: words wait for their frame's edit ───────────────────> m_axis
//           └─> fs_parse ──> fs_rcp, fs_xcp or fs_vcp ──> fs_mend ──edit──┘
//                                   │ counters, rate
//   s_axil ───────────────> fs_registers
//
// Frames leave in order, whole and with their length; a frame that is not the law's leaves bit for bit as it came. A word
// per cycle passes whatever the frames. Frames come without preamble and check sequence, in words full but for the last.
module flowstamp_router #(
    parameter LAW = 1,           // 1 RCP, 2 XCP, 3 VCP
    parameter DATA_WIDTH = 64,   // 64, 256 or 512
    parameter CLOCK_MHZ = 125,
    parameter DEPTH = 128        // words held; more than the headers and the parser's stages
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic                    s_axis_tvalid,
    output logic                    s_axis_tready,
    input  logic [DATA_WIDTH-1:0]   s_axis_tdata,
    input  logic [DATA_WIDTH/8-1:0] s_axis_tkeep,
    input  logic                    s_axis_tlast,
    output logic                    m_axis_tvalid,
    input  logic                    m_axis_tready,
    output logic [DATA_WIDTH-1:0]   m_axis_tdata,
    output logic [DATA_WIDTH/8-1:0] m_axis_tkeep,
    output logic                    m_axis_tlast,
    input  logic                    s_axil_awvalid,
    output logic                    s_axil_awready,
    input  logic [7:0]              s_axil_awaddr,
    input  logic                    s_axil_wvalid,
    output logic                    s_axil_wready,
    input  logic [31:0]             s_axil_wdata,
    output logic                    s_axil_bvalid,
    input  logic                    s_axil_bready,
    output logic [1:0]              s_axil_bresp,
    input  logic                    s_axil_arvalid,
    output logic                    s_axil_arready,
    input  logic [7:0]              s_axil_araddr,
    output logic                    s_axil_rvalid,
    input  logic                    s_axil_rready,
    output logic [31:0]             s_axil_rdata,
    output logic [1:0]              s_axil_rresp,
    input  logic [31:0]             queue_bytes,   // of the port's queue behind m_axis
    output logic                    slot_over
);
  localparam BYTES = DATA_WIDTH / 8;
  localparam LOG = $clog2(BYTES);
  localparam [7:0] SHIM = LAW == `FS_RCP ? 8'd254 : LAW == `FS_XCP ? 8'd253 : 8'd0;
  localparam SHIM_BYTES = LAW == `FS_RCP ? 12 : LAW == `FS_XCP ? 20 : 8;
  localparam [15:0] IDENTIFIER = LAW == `FS_RCP ? "RC" : LAW == `FS_VCP ? "VC" : 16'd0;
  localparam EDIT_BITS = LAW == `FS_VCP ? 111 : 68;

  // ---- bytes of a word, from the enables of a run that begins at the first byte
  logic [LOG:0] s_count, m_count;
  always_comb begin
    s_count = 0;
    for (int i = 0; i < BYTES; i++) if (s_axis_tkeep[i]) s_count = (LOG + 1)'(i + 1);
    for (int i = 0; i < BYTES; i++) m_axis_tkeep[i] = (LOG + 1)'(i) < m_count;
  end

  // ---- parse
  logic found_valid, found_ours, found_shim, found_ip, found_v6, end_valid;
  logic [8*SHIM_BYTES-1:0] found_bytes;
  logic [8:0] found_at, found_ip_at, found_l4_at;
  logic [15:0] found_head, found_ip_checksum, found_ip_bytes, found_l4_checksum, end_bytes;

  fs_parse #(
      .DATA_WIDTH(DATA_WIDTH), .SHIM_PROTOCOL(SHIM), .SHIM_BYTES(SHIM_BYTES), .IDENTIFIER(IDENTIFIER)
  ) parse (
      .clk(clk), .rst(rst), .in_valid(s_axis_tvalid && s_axis_tready), .in_last(s_axis_tlast),
      .in_count(s_axis_tlast ? s_count : (LOG + 1)'(BYTES)), .in_data(s_axis_tdata), .found_valid(found_valid),
      .found_ours(found_ours), .found_shim(found_shim), .found_bytes(found_bytes), .found_at(found_at),
      .found_ip(found_ip), .found_v6(found_v6), .found_ip_at(found_ip_at), .found_head(found_head),
      .found_ip_checksum(found_ip_checksum), .found_ip_bytes(found_ip_bytes), .found_l4_at(found_l4_at),
      .found_l4_checksum(found_l4_checksum), .end_valid(end_valid), .end_bytes(end_bytes)
  );

  // ---- the law
  logic write, write_head, snapshot, commit, wr;
  logic [31:0] was, is, wr_data, law_data, input_bytes;
  logic [15:0] head_is;
  logic [7:0] wr_at, rd_at;
  logic [2:0] overflow;
  localparam LATENCY = LAW == `FS_XCP ? 10 : LAW == `FS_RCP ? 2 : 1;

  generate
    if (LAW == `FS_RCP) begin : g_rcp
      fs_rcp law (
          .clk(clk), .rst(rst), .end_valid(end_valid), .end_bytes(end_bytes), .found(found_valid && found_ours),
          .shim(found_shim), .bytes(found_bytes), .write(write), .was(was), .is(is), .snapshot(snapshot), .wr(wr),
          .wr_at(wr_at), .wr_data(wr_data), .rd_at(rd_at), .rd_data(law_data), .input_bytes(input_bytes),
          .overflow(overflow)
      );
    end else if (LAW == `FS_XCP) begin : g_xcp
      // A standard header of the draft's version 3, in a packet that says its length.
      wire standard = found_bytes[15:8] == 20 && found_bytes[23:16] == 8'h31 && found_ip_bytes != 0;
      fs_xcp law (
          .clk(clk), .rst(rst), .end_valid(end_valid), .end_bytes(end_bytes),
          .found(found_valid && found_ours && standard), .bytes(found_bytes),
          .frame_bytes(found_ip_bytes + {7'd0, found_ip_at}), .write(write), .was(was), .is(is),
          .queue_bytes(queue_bytes), .snapshot(snapshot), .commit(commit), .wr(wr), .wr_at(wr_at), .wr_data(wr_data),
          .rd_at(rd_at), .rd_data(law_data), .input_bytes(input_bytes), .overflow(overflow)
      );
    end else begin : g_vcp
      fs_vcp law (
          .clk(clk), .rst(rst), .end_valid(end_valid), .end_bytes(end_bytes), .found(found_valid && found_ours),
          .found_ip(found_valid && found_ip), .v6(found_v6), .bytes(found_bytes[31:0]), .head(found_head),
          .write(write), .was(was), .is(is), .write_head(write_head), .head_is(head_is), .snapshot(snapshot), .wr(wr),
          .wr_at(wr_at), .wr_data(wr_data), .rd_at(rd_at), .rd_data(law_data), .input_bytes(input_bytes),
          .overflow(overflow)
      );
    end
    if (LAW != `FS_VCP) begin : g_no_head
      assign write_head = 0;
      assign head_is = 0;
    end
  endgenerate

  // ---- what the law does not change goes along for its LATENCY
  localparam ALONG = 78;
  wire [8:0] stamp_at = found_at + (LAW == `FS_XCP ? 9'd16 : 9'd0);
  logic [ALONG-1:0] along[LATENCY];
  always_ff @(posedge clk) begin
    along[0] <= {
      found_valid & ~rst, found_shim, found_v6, stamp_at, found_l4_at, found_l4_checksum, found_ip_at, found_head,
      found_ip_checksum
    };
    for (int i = 1; i < LATENCY; i++) along[i] <= along[i-1];
  end
  wire [ALONG-1:0] now = along[LATENCY-1];

  // ---- edits
  logic edit_valid;
  logic [110:0] edit;
  fs_mend mend (
      .clk(clk), .rst(rst), .in_valid(now[77]), .write_stamp(write), .in_tcp(!now[76]), .write_head(write_head),
      .v6(now[75]), .stamp_at(now[74:66]), .stamp_was(was), .stamp_is(is), .l4_at(now[65:57]),
      .l4_checksum(now[56:41]), .ip_at(now[40:32]), .head_was(now[31:16]), .head_is(head_is),
      .ip_checksum(now[15:0]), .out_valid(edit_valid), .out_edit(edit)
  );

  fs_delay #(
      .DATA_WIDTH(DATA_WIDTH), .DEPTH(DEPTH), .EDIT_BITS(EDIT_BITS)
  ) delay (
      .clk(clk), .rst(rst), .in_valid(s_axis_tvalid), .in_ready(s_axis_tready), .in_data(s_axis_tdata),
      .in_count(s_axis_tlast ? s_count : (LOG + 1)'(BYTES)), .in_last(s_axis_tlast), .edit_valid(edit_valid),
      .edit(edit[EDIT_BITS-1:0]), .out_valid(m_axis_tvalid), .out_ready(m_axis_tready), .out_data(m_axis_tdata),
      .out_count(m_count), .out_last(m_axis_tlast)
  );

  // ---- registers
  assign s_axil_bresp = 0;
  assign s_axil_rresp = 0;
  fs_registers #(
      .LAW(LAW), .DATA_WIDTH(DATA_WIDTH), .CLOCK_MHZ(CLOCK_MHZ)
  ) registers (
      .clk(clk), .rst(rst), .awvalid(s_axil_awvalid), .awready(s_axil_awready), .awaddr(s_axil_awaddr),
      .wvalid(s_axil_wvalid), .wready(s_axil_wready), .wdata(s_axil_wdata), .bvalid(s_axil_bvalid),
      .bready(s_axil_bready), .arvalid(s_axil_arvalid), .arready(s_axil_arready), .araddr(s_axil_araddr),
      .rvalid(s_axil_rvalid), .rready(s_axil_rready), .rdata(s_axil_rdata), .queue_bytes(queue_bytes),
      .slot_over(slot_over), .snapshot(snapshot), .commit(commit), .wr(wr), .wr_at(wr_at), .wr_data(wr_data),
      .rd_at(rd_at), .rd_data(law_data), .input_bytes(input_bytes), .overflow(overflow)
  );
endmodule
