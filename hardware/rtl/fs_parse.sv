// SPDX-License-Identifier: Apache-2.0 OR MIT
`include "fs_fields.svh"
// Finds the stamp in the frames that pass, and reports each frame once: a pipeline that never stalls.
//
//   stage  0      holds a word until the next one is there, because an option may lie across both
//          1, 2   Ethernet and IP                                                     fs_parse_ip
//          3..e   IPv6's extension headers                                            fs_extensions
//          1..t   where a walk through options leads from each byte                   fs_option_scan
//          t      TCP's header length and checksum
//          t+1    the walk: one look-up per word
//          t+2    where the stamp's bytes are in the word
//          t+3    takes them
//          t+4    reports the frame, at its last word or behind its last possible header byte
//
// t is 5, 6 or 7 for words of 64, 256 or 512 bits, and e is one less.
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
    output logic [8:0]              found_at,        // where these bytes are
    output logic                    found_ip,        // an IP header, whole
    output logic                    found_v6,
    output logic [8:0]              found_ip_at,
    output logic [15:0]             found_head,
    output logic [15:0]             found_ip_checksum,
    output logic [15:0]             found_ip_bytes,
    output logic [8:0]              found_l4_at,
    output logic [15:0]             found_l4_checksum,
    // One frame's end.
    output logic                    end_valid,
    output logic [15:0]             end_bytes        // at most 65535
);
  localparam TAKEN = SHIM_BYTES < 8 ? 8 : SHIM_BYTES;

  // ---- stage 0
  logic c_valid, c_first, c_last;
  logic [8:0] c_base;
  logic [LOG:0] c_count;
  logic [DATA_WIDTH-1:0] c_data;
  wire go = c_valid && (c_last || in_valid);
  logic s0_valid, s0_first, s0_last;
  logic [8:0] s0_base;
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
      c_base <= begins ? 9'd0 : c_base == `FS_FAR ? c_base : c_base + 9'(BYTES);
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
  logic [8:0] s2_base, ip_at, ip_l4_at;
  logic [7:0] ip_protocol;
  logic [LOG:0] s2_count;
  logic [DATA_WIDTH-1:0] s2_data;
  logic [15:0] s2_after;
  logic [15:0] ip_head, ip_checksum, ip_bytes;

  fs_parse_ip #(
      .DATA_WIDTH(DATA_WIDTH)
  ) ip (
      .clk(clk), .rst(rst), .in_valid(s0_valid), .in_first(s0_first), .in_last(s0_last), .in_base(s0_base),
      .in_count(s0_count), .in_data(s0_data), .in_after(s0_after[15:0]), .out_valid(s2_valid), .out_first(s2_first),
      .out_last(s2_last), .out_base(s2_base), .out_count(s2_count), .out_data(s2_data), .out_after(s2_after),
      .ip_ok(ip_ok), .ip_whole(ip_whole), .ip_v6(ip_v6), .ip_at(ip_at), .ip_head(ip_head),
      .ip_checksum(ip_checksum), .ip_protocol(ip_protocol), .ip_bytes(ip_bytes), .l4_at(ip_l4_at)
  );

  // ---- extension headers. A word, and what is known of IP with it, go along.
  localparam WALK = 1 + ($clog2(DATA_WIDTH / 64) + 1) / 2;  // stages before the walk
  localparam WORD = 12 + LOG + DATA_WIDTH;
  localparam IP = 59;
  logic [WALK:0] w_valid;
  logic [WORD-1:0] w_word[WALK+1];
  logic [IP+17:0] w_ip[WALK+1];
  logic is_tcp, is_shim, extended;
  logic [8:0] l4_at;

  always_ff @(posedge clk) begin
    w_valid <= rst ? '0 : {w_valid[WALK-1:0], s2_valid};
    w_word[0] <= {s2_first, s2_last, s2_base, s2_count, s2_data};
    w_ip[0] <= {ip_ok, ip_protocol, ip_l4_at, ip_whole, ip_v6, ip_at, ip_head, ip_checksum, ip_bytes};
    for (int i = WALK; i > 0; i--) w_word[i] <= w_word[i-1];
    for (int i = WALK; i > 0; i--) w_ip[i] <= w_ip[i-1];
  end

  fs_extensions #(
      .DATA_WIDTH(DATA_WIDTH), .SHIM_PROTOCOL(SHIM_PROTOCOL)
  ) extensions (
      .clk(clk), .data(s2_data), .after(s2_after), .late(ip_at[2]), .walk_valid(w_valid[WALK-1]),
      .walk_first(w_word[WALK-1][WORD-1]), .walk_base(w_word[WALK-1][WORD-3-:9]), .walk_ip(w_ip[WALK-1][IP+17]),
      .walk_v6(w_ip[WALK-1][IP-2]), .walk_protocol(w_ip[WALK-1][IP+16-:8]), .walk_l4_at(w_ip[WALK-1][IP+8-:9]),
      .is_tcp(is_tcp), .is_shim(is_shim), .extended(extended), .l4_at(l4_at)
  );

  logic [16*BYTES-1:0] nodes;
  fs_option_scan #(
      .DATA_WIDTH(DATA_WIDTH), .STAGES(WALK + 4), .IDENTIFIER(IDENTIFIER)
  ) scan (
      .clk(clk), .data(s0_data), .after(s0_after), .nodes(nodes)
  );

  // ---- the transport's header: its length and checksum, each within one 16-bit half
  logic e_first, e_last;
  logic [8:0] e_base;
  logic [LOG:0] e_count;
  logic [DATA_WIDTH-1:0] e_data;
  assign {e_first, e_last, e_base, e_count, e_data} = w_word[WALK];
  wire e_valid = w_valid[WALK];
  wire tcp_e = IDENTIFIER != 0 && is_tcp;
  wire shim_e = SHIM_PROTOCOL != 0 && is_shim;

  // What is known of a frame's headers goes along with its words.
  localparam HEADERS = IP + 12;
  logic [HEADERS-1:0] h3, h4, h5, h6;

  function automatic logic holds(input logic [8:0] base, input logic [LOG:0] count, input logic [8:0] at);
    holds = at[8:LOG] == base[8:LOG] && {1'b0, at[LOG-1:0]} < count;
  endfunction

  logic s3_valid, s3_first, s3_last, starts3;
  logic [8:0] s3_base;
  logic [LOG:0] s3_count;
  logic [LOG-1:0] start3;
  logic [DATA_WIDTH-1:0] s3_data;
  logic [3:0] offset3, offset4, offset5, offset6;
  logic [15:0] checksum3, checksum4, checksum5, checksum6;
  wire [8:0] at_offset = l4_at + 9'd12;
  wire [8:0] at_checksum = l4_at + 9'd16;
  wire [8:0] at_options = l4_at + 9'd20;

  always_ff @(posedge clk) begin
    s3_valid <= e_valid & ~rst;
    if (e_valid) begin
      s3_first <= e_first;
      s3_last <= e_last;
      s3_base <= e_base;
      s3_count <= e_count;
      s3_data <= e_data;
      h3 <= {extended, shim_e, tcp_e, l4_at, w_ip[WALK][IP-1:0]};
      starts3 <= tcp_e && at_options[8:LOG] == e_base[8:LOG];
      start3 <= at_options[LOG-1:0];
      if (tcp_e && holds(e_base, e_count, at_offset)) offset3 <= e_data[8*at_offset[LOG-1:0]+4+:4];
      else if (e_first) offset3 <= 0;
      if (tcp_e && holds(e_base, e_count, at_checksum))
        checksum3 <= {e_data[16*at_checksum[LOG-1:1]+:8], e_data[16*at_checksum[LOG-1:1]+8+:8]};
    end
  end

  // ---- the walk. It begins behind TCP's fixed header; `rest` is how far the next option is from this word.
  localparam [1:0] BEFORE = 0, WALKS = 1, OVER = 2;
  logic [1:0] walk, walk_now;
  logic [6:0] rest, rest_now;
  logic hit, hit_now;
  logic [8:0] option_at, option_now;
  logic [8:0] node;

  always_comb begin
    walk_now = s3_first ? BEFORE : walk;
    rest_now = rest;
    hit_now = !s3_first && hit;
    option_now = option_at;
    if (walk_now == BEFORE && starts3) begin
      walk_now = WALKS;
      rest_now = 7'(start3);
    end
    node = nodes[16*rest_now[LOG-1:0]+:9];
    if (walk_now == WALKS) begin
      if (rest_now >= 7'(BYTES)) rest_now = rest_now - 7'(BYTES);
      else begin
        if (node[8] || node[7]) walk_now = OVER;
        if (node[7]) begin
          hit_now = 1;
          option_now = s3_base + {2'b0, node[6:0]};
        end
        rest_now = node[6:0] - 7'(BYTES);
      end
    end
  end

  logic s4_valid, s4_first, s4_last;
  logic [8:0] s4_base;
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
      h4 <= h3;
      offset4 <= offset3;
      checksum4 <= checksum3;
      walk <= walk_now;
      rest <= rest_now;
      hit <= hit_now;
      option_at <= option_now;
    end
  end

  // ---- where the stamp's bytes are: from byte `low` of the word that came `ago` words before, if that is near
  wire shim4 = h4[HEADERS-2];
  wire [8:0] take_at = shim4 ? h4[IP+8-:9] : option_at + 9'd8;
  wire [9-LOG:0] words_ago = {1'b0, s4_base[8:LOG]} - {1'b0, take_at[8:LOG]};
  wire [16:0] longer = {1'b0, s4_first ? 16'd0 : length5} + 17'(s4_count);
  logic s5_valid, s5_first, s5_last, near5, hit5, hit6;
  logic [8:0] s5_base, taken5, taken6, option5, option6;
  logic [1:0] ago5;
  logic [LOG:0] s5_count;
  logic [DATA_WIDTH-1:0] s5_data;
  logic [15:0] length5, length6;

  always_ff @(posedge clk) begin
    s5_valid <= s4_valid & ~rst;
    if (s4_valid) begin
      s5_first <= s4_first;
      s5_last <= s4_last;
      s5_base <= s4_base;
      s5_count <= s4_count;
      s5_data <= s4_data;
      h5 <= h4;
      offset5 <= offset4;
      checksum5 <= checksum4;
      near5 <= (shim4 || hit) && words_ago < (10 - LOG)'(4);
      ago5 <= words_ago[1:0];
      taken5 <= take_at;
      option5 <= option_at;
      hit5 <= hit;
      length5 <= longer[16] ? 16'hffff : longer[15:0];
    end
  end

  // ---- the stamp's bytes
  logic s6_valid, s6_last;
  logic [8:0] s6_base;
  logic [8*TAKEN-1:0] taken;
  logic [TAKEN-1:0] has;

  always_ff @(posedge clk) begin
    s6_valid <= s5_valid & ~rst;
    if (s5_valid) begin
      s6_last <= s5_last;
      s6_base <= s5_base;
      h6 <= h5;
      offset6 <= offset5;
      checksum6 <= checksum5;
      taken6 <= taken5;
      option6 <= option5;
      hit6 <= hit5;
      length6 <= length5;
    end
  end
  genvar b;
  generate
    for (b = 0; b < TAKEN; b++) begin : g_take
      wire [LOG+1:0] at = {2'b0, taken5[LOG-1:0]} + (LOG + 2)'(b);
      always_ff @(posedge clk)
        if (s5_valid) begin
          if (near5 && at[LOG+1:LOG] == ago5 && {1'b0, at[LOG-1:0]} < s5_count) begin
            taken[8*b+:8] <= s5_data[8*at[LOG-1:0]+:8];
            has[b] <= 1;
          end else if (s5_first) has[b] <= 0;
        end
    end
  endgenerate

  // ---- the report
  wire [8:0] l4_6 = h6[IP+8-:9];
  wire [8:0] ip_at6 = h6[IP-3-:9];
  wire [15:0] bytes6 = h6[15:0];
  wire shim6 = h6[HEADERS-2];
  wire [8:0] options_end = l4_6 + {3'b0, offset6, 2'b0};
  // The headers end within the packet, or within the frame if IP does not say how long the packet is.
  wire [8:0] headers_end = shim6 ? l4_6 + 9'(SHIM_BYTES) : options_end;
  wire fits = bytes6 == 0 ? !s6_last || {7'd0, headers_end} <= length6 : {7'd0, headers_end - ip_at6} <= bytes6;
  wire option_fits = hit6 && &has[7:0] && option6 + 9'd16 <= options_end;
  wire shim_fits = shim6 && &has[SHIM_BYTES-1:0];
  // Reported at the last word, or at the word that reaches the last possible header byte.
  logic reported;
  wire [8:0] far = h6[HEADERS-1] ? `FS_FAR : 9'(`FS_HEADER_BYTES);
  wire report = !reported && (s6_last || s6_base >= far - 9'(BYTES));

  always_ff @(posedge clk) begin
    found_valid <= s6_valid && report && !rst;
    end_valid <= s6_valid && s6_last && !rst;
    if (rst) reported <= 0;
    else if (s6_valid) reported <= (reported || report) && !s6_last;
    found_ours <= (shim_fits || option_fits) && fits;
    found_shim <= shim6;
    found_bytes <= taken[8*SHIM_BYTES-1:0];
    found_at <= taken6;
    found_ip <= h6[IP-1];
    found_v6 <= h6[IP-2];
    found_ip_at <= ip_at6;
    found_head <= h6[47:32];
    found_ip_checksum <= h6[31:16];
    found_ip_bytes <= bytes6;
    found_l4_at <= l4_6;
    found_l4_checksum <= checksum6;
    end_bytes <= length6;
  end
endmodule
