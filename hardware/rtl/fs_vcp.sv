// SPDX-License-Identifier: Apache-2.0 OR MIT
// VCP: raises the load code in IP's ECN bits, and t_rho in our TCP option (Xia 2008, III-B; R.4: never from 00).
//
// CODE bit 2 chooses whose ECN bits these are: of every IP packet, as in the paper, or of packets with our option, as on Linux.
module fs_vcp (
    input  logic        clk,
    input  logic        rst,
    input  logic        end_valid,
    input  logic [15:0] end_bytes,
    input  logic        found,      // with our option
    input  logic        found_ip,
    input  logic        v6,
    input  logic [31:0] bytes,
    input  logic [15:0] head,
    output logic        write,      // one cycle later
    output logic [31:0] was,
    output logic [31:0] is,
    output logic        write_head,
    output logic [15:0] head_is,
    input  logic        snapshot,
    input  logic        wr,
    input  logic [7:0]  wr_at,
    input  logic [31:0] wr_data,
    input  logic [7:0]  rd_at,
    output logic [31:0] rd_data,
    output logic [31:0] input_bytes,
    output logic [2:0]  overflow
);
  logic [31:0] t_rho_us, live_input;
  logic [2:0] code;
  logic live_overflow;
  wire [31:0] word = {bytes[7:0], bytes[15:8], bytes[23:16], bytes[31:24]};
  wire [1:0] carried = v6 ? head[5:4] : head[1:0];
  wire raises = (found || (found_ip && code[2])) && carried != 0 && carried < code[1:0];
  wire [32:0] more_input = {1'b0, snapshot ? 32'd0 : live_input} + (end_valid ? {17'd0, end_bytes} : 33'd0);

  always_ff @(posedge clk) begin
    write <= found && word < t_rho_us;
    was <= word;
    is <= t_rho_us;
    write_head <= raises;
    head_is <= v6 ? {head[15:6], code[1:0], head[3:0]} : {head[15:2], code[1:0]};
    if (rst) begin
      {t_rho_us, code, live_input, live_overflow, input_bytes, overflow} <= 0;
    end else begin
      if (wr && wr_at == 8'h20) code <= wr_data[2:0];
      if (wr && wr_at == 8'h24) t_rho_us <= wr_data;
      live_input <= more_input[32] ? 32'hffffffff : more_input[31:0];
      live_overflow <= (!snapshot && live_overflow) || more_input[32];
      if (snapshot) begin
        input_bytes <= live_input;
        overflow <= {2'b00, live_overflow};
      end
    end
  end

  always_comb
    case (rd_at)
      8'h20: rd_data = {29'd0, code};
      8'h24: rd_data = t_rho_us;
      default: rd_data = 0;
    endcase
endmodule
