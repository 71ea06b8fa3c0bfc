// SPDX-License-Identifier: Apache-2.0 OR MIT
// Multiplies in three stages: products of 16 by 12 bits, which a DSP block has, and two additions.
module fs_multiply (
    input  logic        clk,
    input  logic [31:0] a,
    input  logic [23:0] b,
    output logic [55:0] product  // three cycles later
);
  logic [27:0] low, a_high, b_high, high;
  logic [55:0] outer;
  logic [32:0] inner;
  always_ff @(posedge clk) begin
    low <= a[15:0] * b[11:0];
    a_high <= a[31:16] * b[11:0];
    b_high <= a[15:0] * b[23:12];
    high <= a[31:16] * b[23:12];
    outer <= {high, low};
    inner <= {1'b0, a_high, 4'd0} + {5'd0, b_high};
    product <= outer + {11'd0, inner, 12'd0};
  end
endmodule
