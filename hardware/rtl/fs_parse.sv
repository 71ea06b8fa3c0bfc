// SPDX-License-Identifier: Apache-2.0 OR MIT
`include "fs_fields.svh"
// Finds the stamp in the frames that pass, and reports each frame once: a pipeline that never stalls.
//
//   stage  0      holds a word until the next one is there, because an option may lie across both
//          1, 2   Ethernet and IP                                                     fs_parse_ip
//          1..3   where a walk through options leads from each byte                   fs_option_scan
//          3      TCP's header length and checksum
//          4      the walk: one look-up per word
//          5      takes the stamp's bytes
//          6      reports the frame, at its last word or behind byte 143
//
// A frame is the law's if it is whole up to the stamp, says so in IP's length and TCP's, and carries either the header
// between IP and the transport (SHIM_PROTOCOL, if that is not zero) or the TCP option (IDENTIFIER, if that is not zero).
// The checks are those of crates/flowstamp-linux/bpf/packet.h.
module fs_parse #(
    parameter DATA_WIDTH = 64,
    parameter [7:0] SHIM_PROTOCOL = 254,
    parameter SHIM_BYTES = 12,
    parameter [15:0] IDENTIFIER = 16'h5243,
    localparam BYTES = DATA_WIDTH / 8,
    localparam LOG = $clog2(BYTES)
) (
    input  logic                    clk,
    input  logic                    rst,
    // Words as they come: `count` bytes, all but in the last word of a frame.
    input  logic                    in_valid,
    input  logic                    in_last,
    input  logic [LOG:0]            in_count,
    input  logic [DATA_WIDTH-1:0]   in_data,
    // One frame's headers.
    output logic                    found_valid,
    output logic                    found_ours,
    output logic                    found_shim,
    output logic [8*SHIM_BYTES-1:0] found_bytes,     // the shim, or the option from its byte 8; the first in the low bits
    output logic [7:0]              found_at,        // where these bytes are
    output logic                    found_ip,        // an IP header, whole
    output logic                    found_v6,
    output logic [7:0]              found_ip_at,
    output logic [15:0]             found_head,
    output logic [15:0]             found_ip_checksum,
    output logic [15:0]             found_ip_bytes,
    output logic [7:0]              found_l4_at,
    output logic [15:0]             found_l4_checksum,
    // One frame's end.
    output logic                    end_valid,
    output logic [15:0]             end_bytes        // at most 65535
);
  localparam TAKEN = SHIM_BYTES < 8 ? 8 : SHIM_BYTES;

  // ---- stage 0
  logic c_valid, c_first, c_last;
  logic [7:0] c_base;
  logic [LOG:0] c_count;
  logic [DATA_WIDTH-1:0] c_data;
  wire go = c_valid && (c_last || in_valid);
  logic s0_valid, s0_first, s0_last;
  logic [7:0] s0_base;
  logic [LOG:0] s0_count;
  logic [DATA_WIDTH-1:0] s0_data;
  logic [23:0] s0_after;
  logic begins;

  always_ff @(posedge clk) begin
    if (rst) begin
      c_valid <= 0;
      s0_valid <= 0;
      begins <= 1;
    end else begin
      if (in_valid) begin
        c_valid <= 1;
        begins <= in_last;
      end else if (go) c_valid <= 0;
      s0_valid <= go;
    end
    if (in_valid) begin
      c_first <= begins;
      c_last <= in_last;
      c_base <= begins ? 8'd0 : c_base == `FS_FAR ? c_base : c_base + 8'(BYTES);
      c_count <= in_count;
      c_data <= in_data;
    end
    if (go) begin
      s0_first <= c_first;
      s0_last <= c_last;
      s0_base <= c_base;
      s0_count <= c_count;
      s0_data <= c_data;
      s0_after <= in_data[23:0];
    end
  end

  // ---- stages 1 and 2
  logic s2_valid, s2_first, s2_last, ip_ok, ip_whole, ip_v6;
  logic [7:0] s2_base, ip_at, ip_protocol, l4_at;
  logic [LOG:0] s2_count;
  logic [DATA_WIDTH-1:0] s2_data;
  logic [15:0] ip_head, ip_checksum, ip_bytes;

  fs_parse_ip #(
      .DATA_WIDTH(DATA_WIDTH)
  ) ip (
      .clk(clk), .rst(rst), .in_valid(s0_valid), .in_first(s0_first), .in_last(s0_last), .in_base(s0_base),
      .in_count(s0_count), .in_data(s0_data), .out_valid(s2_valid), .out_first(s2_first), .out_last(s2_last),
      .out_base(s2_base), .out_count(s2_count), .out_data(s2_data), .ip_ok(ip_ok), .ip_whole(ip_whole), .ip_v6(ip_v6), .ip_at(ip_at),
      .ip_head(ip_head), .ip_checksum(ip_checksum), .ip_protocol(ip_protocol), .ip_bytes(ip_bytes), .l4_at(l4_at)
  );

  logic [16*BYTES-1:0] nodes;
  fs_option_scan #(
      .DATA_WIDTH(DATA_WIDTH), .STAGES(3), .IDENTIFIER(IDENTIFIER)
  ) scan (
      .clk(clk), .data(s0_data), .after(s0_after), .nodes(nodes)
  );

  // What is known of IP goes along with the word. Its first bit says that the fixed header is whole.
  localparam IP = 68;
  wire is_shim = ip_ok && SHIM_PROTOCOL != 0 && ip_protocol == SHIM_PROTOCOL;
  wire is_tcp = ip_ok && IDENTIFIER != 0 && ip_protocol == 8'd6;
  wire [IP-1:0] ip2 = {ip_whole, is_shim, is_tcp, ip_v6, ip_at, ip_head, ip_checksum, ip_bytes, l4_at};
  logic [IP-1:0] ip3, ip4, ip5;

  function automatic logic holds(input logic [7:0] base, input logic [LOG:0] count, input logic [7:0] at);
    holds = at[7:LOG] == base[7:LOG] && {1'b0, at[LOG-1:0]} < count;
  endfunction

  // ---- stage 3: TCP's header length and checksum, each within one 16-bit half
  logic s3_valid, s3_first, s3_last;
  logic [7:0] s3_base;
  logic [LOG:0] s3_count;
  logic [DATA_WIDTH-1:0] s3_data;
  logic [3:0] offset3, offset4, offset5;
  logic [15:0] checksum3, checksum4, checksum5;
  wire [7:0] at_offset = l4_at + 8'd12;
  wire [7:0] at_checksum = l4_at + 8'd16;

  always_ff @(posedge clk) begin
    s3_valid <= s2_valid & ~rst;
    if (s2_valid) begin
      s3_first <= s2_first;
      s3_last <= s2_last;
      s3_base <= s2_base;
      s3_count <= s2_count;
      s3_data <= s2_data;
      ip3 <= ip2;
      if (is_tcp && holds(s2_base, s2_count, at_offset)) offset3 <= s2_data[8*at_offset[LOG-1:0]+4+:4];
      else if (s2_first) offset3 <= 0;
      if (is_tcp && holds(s2_base, s2_count, at_checksum))
        checksum3 <= {s2_data[16*at_checksum[LOG-1:1]+:8], s2_data[16*at_checksum[LOG-1:1]+8+:8]};
    end
  end

  // ---- stage 4: the walk. It begins behind TCP's fixed header; `rest` is how far the next option is from this word.
  localparam [1:0] BEFORE = 0, WALKS = 1, OVER = 2;
  wire [7:0] starts_at = ip3[7:0] + 8'd20;
  wire tcp3 = ip3[IP-3];
  logic [1:0] walk, walk_now;
  logic [6:0] rest, rest_now;
  logic hit, hit_now;
  logic [7:0] option_at, option_now;
  logic [8:0] node;

  always_comb begin
    walk_now = s3_first ? BEFORE : walk;
    rest_now = rest;
    hit_now = !s3_first && hit;
    option_now = option_at;
    if (walk_now == BEFORE && tcp3 && starts_at[7:LOG] == s3_base[7:LOG]) begin
      walk_now = WALKS;
      rest_now = 7'(starts_at[LOG-1:0]);
    end
    node = nodes[16*rest_now[LOG-1:0]+:9];
    if (walk_now == WALKS) begin
      if (rest_now >= 7'(BYTES)) rest_now = rest_now - 7'(BYTES);
      else begin
        if (node[8] || node[7]) walk_now = OVER;
        if (node[7]) begin
          hit_now = 1;
          option_now = s3_base + {1'b0, node[6:0]};
        end
        rest_now = node[6:0] - 7'(BYTES);
      end
    end
  end

  logic s4_valid, s4_first, s4_last;
  logic [7:0] s4_base;
  logic [LOG:0] s4_count;
  logic [DATA_WIDTH-1:0] s4_data;

  always_ff @(posedge clk) begin
    s4_valid <= s3_valid & ~rst;
    if (s3_valid) begin
      s4_first <= s3_first;
      s4_last <= s3_last;
      s4_base <= s3_base;
      s4_count <= s3_count;
      s4_data <= s3_data;
      ip4 <= ip3;
      offset4 <= offset3;
      checksum4 <= checksum3;
      walk <= walk_now;
      rest <= rest_now;
      hit <= hit_now;
      option_at <= option_now;
    end
  end

  // ---- stage 5: the stamp's bytes
  logic s5_valid, s5_last, hit5;
  logic [7:0] s5_base, taken_at, option5;
  logic [8*TAKEN-1:0] taken;
  logic [TAKEN-1:0] has;
  logic [15:0] length, length_now;
  wire shim4 = ip4[IP-2];
  wire [7:0] take_at = shim4 ? ip4[7:0] : option_at + 8'd8;
  wire takes = shim4 || hit;
  wire [16:0] longer = {1'b0, s4_first ? 16'd0 : length} + 17'(s4_count);
  assign length_now = longer[16] ? 16'hffff : longer[15:0];

  always_ff @(posedge clk) begin
    s5_valid <= s4_valid & ~rst;
    if (s4_valid) begin
      s5_last <= s4_last;
      s5_base <= s4_base;
      ip5 <= ip4;
      offset5 <= offset4;
      checksum5 <= checksum4;
      taken_at <= take_at;
      option5 <= option_at;
      hit5 <= hit;
      length <= length_now;
    end
  end
  genvar b;
  generate
    for (b = 0; b < TAKEN; b++) begin : g_take
      wire [7:0] at = take_at + 8'(b);
      always_ff @(posedge clk)
        if (s4_valid) begin
          if (takes && holds(s4_base, s4_count, at)) begin
            taken[8*b+:8] <= s4_data[8*at[LOG-1:0]+:8];
            has[b] <= 1;
          end else if (s4_first) has[b] <= 0;
        end
    end
  endgenerate

  // ---- stage 6: the report
  wire ok5 = ip5[IP-1];
  wire shim5 = ip5[IP-2];
  wire [7:0] ip_at5 = ip5[IP-5-:8];
  wire [15:0] bytes5 = ip5[23:8];
  wire [7:0] l4_5 = ip5[7:0];
  wire [7:0] options_end = l4_5 + {2'b0, offset5, 2'b0};
  // The headers end within the packet, or within the frame if IP does not say how long the packet is.
  wire [7:0] headers_end = shim5 ? l4_5 + 8'(SHIM_BYTES) : options_end;
  wire fits = bytes5 == 0 ? !s5_last || {8'd0, headers_end} <= length : {8'd0, headers_end - ip_at5} <= bytes5;
  wire option_fits = hit5 && &has[7:0] && option5 + 8'd16 <= options_end;
  wire shim_fits = shim5 && &has[SHIM_BYTES-1:0];
  // Reported at the last word, or at the word that reaches the last header byte.
  logic reported;
  wire report = !reported && (s5_last || s5_base >= 8'(`FS_HEADER_BYTES - BYTES));

  always_ff @(posedge clk) begin
    found_valid <= s5_valid && report && !rst;
    end_valid <= s5_valid && s5_last && !rst;
    if (rst) reported <= 0;
    else if (s5_valid) reported <= (reported || report) && !s5_last;
    found_ours <= (shim_fits || option_fits) && fits;
    found_shim <= shim5;
    found_bytes <= taken[8*SHIM_BYTES-1:0];
    found_at <= taken_at;
    found_ip <= ok5;
    found_v6 <= ip5[IP-4];
    found_ip_at <= ip_at5;
    found_head <= ip5[55:40];
    found_ip_checksum <= ip5[39:24];
    found_ip_bytes <= bytes5;
    found_l4_at <= l4_5;
    found_l4_checksum <= checksum5;
    end_bytes <= length;
  end
endmodule
