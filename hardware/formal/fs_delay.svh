// SPDX-License-Identifier: Apache-2.0 OR MIT
// Proves of fs_delay, which includes this under yosys -formal, whatever the far end's back-pressure and whenever edits come:
// the n-th word out is the n-th word in, with the same length and end, and with the same bytes if its frame's edit writes
// none. So no word is lost, repeated or reordered. An offered word stays as it is until it is taken.
//

  // The parser reports each frame at most once, not before its first word has come.
  logic [ROW:0] frames_in;  // frames whose first word has come
  logic inside;             // within a frame
  always_ff @(posedge clk)
    if (rst) begin
      frames_in <= 0;
      inside <= 0;
    end else if (push) begin
      inside <= !in_last;
      if (!inside) frames_in <= frames_in + 1'b1;
    end
  // Edits write nothing here: their places are checked by simulation.
  always_comb begin
    if (edit_valid) assume (edit_in != frames_in);
    assume (edit[1:0] == 0);
  end

  // One word of all, chosen by the solver.
  (* anyconst *) logic [3:0] number;
  logic [3:0] pushed, popped;  // modulo 16, more than is inside
  logic [DATA_WIDTH+LOG+1:0] chosen;
  logic seen, done;
  wire taken = out_valid && out_ready;
  initial assume (rst);
  always_ff @(posedge clk)
    if (rst) begin
      pushed <= 0;
      popped <= 0;
      seen <= 0;
      done <= 0;
    end else begin
      if (push) pushed <= pushed + 1'b1;
      if (taken) popped <= popped + 1'b1;
      if (push && pushed == number && !seen) begin
        seen <= 1;
        chosen <= {in_last, in_count, in_data};
      end
      if (taken && popped == number && seen) done <= 1;
    end

  // ---- what holds
  logic then, waited;
  logic [DATA_WIDTH+LOG+1:0] offered;
  initial then = 0;
  always_ff @(posedge clk) begin
    then <= 1;
    waited <= !rst && out_valid && !out_ready;
    offered <= {out_last, out_count, out_data};
  end
  wire [ROW:0] held = word_in - word_out;
  always_comb
    if (then) begin
      assert (held <= (ROW + 1)'(DEPTH));
      assert (pushed - popped == 4'(held) + 4'(read_valid) + 4'(out_valid));
      if (seen && !done && taken && popped == number) assert ({out_last, out_count, out_data} == chosen);
      if (waited) assert (out_valid && {out_last, out_count, out_data} == offered);
    end
