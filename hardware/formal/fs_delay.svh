// SPDX-License-Identifier: Apache-2.0 OR MIT
// Proves by induction that fs_delay, which includes this file under yosys -formal, is right. The far end may stop the output at any
// time, and edits may come at any time. The n-th word out is the n-th word in, changed only by its own frame's edit. Therefore no
// word is lost, repeated or reordered, for any length of time. An offered word does not change until it is taken.
//
// The solver chooses a frame and one of its words. The proof follows that word through every place of the delay line.

  // ---- what comes in: a frame's number, which is its edit's place, and a word's position in its frame
  logic [ROW:0] frame_in;
  logic [8:0] at_in;
  wire [ROW:0] begun = frame_in + (ROW + 1)'(at_in != 0);  // frames whose first word has come
  always_ff @(posedge clk)
    if (rst) begin
      frame_in <= 0;
      at_in <= 0;
    end else if (push) begin
      frame_in <= frame_in + (ROW + 1)'(in_last);
      at_in <= following(in_last, at_in);
    end
  // The parser reports each frame at most once, not before its first word has come. IP and TCP begin at even positions.
  always_comb
    if (edit_valid) begin
      assume (edit_in != begun);
      assume (!edit[59] && !edit[102]);
    end

  // Number and position of each word in the ring.
  logic [ROW:0] frames[DEPTH];
  logic [8:0] places[DEPTH];
  always_ff @(posedge clk)
    if (push) begin
      frames[word_in[ROW-1:0]] <= frame_in;
      places[word_in[ROW-1:0]] <= at_in;
    end

  // ---- what holds for any word in the ring, and for any two: frames are numbered in order
  wire [ROW:0] held = word_in - word_out;
  (* anyconst *) logic [ROW:0] one, two;
  // 0, 1: any two; 2, 3: the head and its successor; 4: the chosen word; 5: the newest
  wire [ROW:0] ring[6];
  logic [ROW:0] chosen_in;
  assign ring[0] = one;
  assign ring[1] = two;
  assign ring[2] = word_out;
  assign ring[3] = word_out + 1'b1;
  assign ring[4] = chosen_in;
  assign ring[5] = word_in - 1'b1;
  wire [5:0] inside;
  wire [ROW:0] frame[6], next_frame[6];
  wire [8:0] place[6], next_place[6];
  wire [DATA_WIDTH+LOG+1:0] stored[6];
  genvar g;
  generate
    for (g = 0; g < 6; g++) begin : g_ring
      assign inside[g] = ring[g] - word_out < held;
      assign stored[g] = words[ring[g][ROW-1:0]];
      assign frame[g] = frames[ring[g][ROW-1:0]];
      assign place[g] = places[ring[g][ROW-1:0]];
      assign next_frame[g] = frame[g] + (ROW + 1)'(stored[g][DATA_WIDTH+LOG+1]);
      assign next_place[g] = following(stored[g][DATA_WIDTH+LOG+1], place[g]);
    end
  endgenerate

  // From an earlier word to a later one, at most as many frames end as there are words.
  wire ordered01 = !(inside[0] && inside[1] && one - word_out < two - word_out) || frame[1] - next_frame[0] <= two - one - 1'b1;
  wire ordered23 = !(inside[2] && inside[3] && held > 1) || frame[3] - next_frame[2] == 0;
  wire ordered24 = !(inside[2] && inside[4] && chosen_in != word_out) ||
      frame[4] - next_frame[2] <= chosen_in - word_out - 1'b1;
  wire [1:0] few;  // no more frames than words have come since
  wire [1:0] adjacent;
  generate
    for (g = 0; g < 2; g++) begin : g_any
      assign few[g] = !inside[g] || (begun - frame[g] <= word_in - ring[g] &&
          frame_in - next_frame[g] <= word_in - ring[g] - 1'b1);
    end
  endgenerate
  wire few3 = !(inside[3] && held > 1) || begun - frame[3] <= held - 1'b1;
  wire few2 = held == 0 || frame_in - next_frame[2] <= held - 1'b1;
  assign adjacent[0] = !(inside[0] && inside[1] && two - one == 1) || place[1] == next_place[0];
  assign adjacent[1] = !(inside[2] && inside[3] && held > 1) || place[3] == next_place[2];

  // ---- the chosen frame and word
  (* anyseq *) logic follow, choose;
  localparam [2:0] NOWHERE = 0, RING = 1, READ = 2, ONE = 3, TWO = 4, OUT = 5, GONE = 6;
  logic [2:0] where;
  logic followed, known;
  logic [ROW:0] chosen_frame;
  logic [DATA_WIDTH+LOG+1:0] chosen;
  logic [8:0] chosen_at;
  logic [EDIT_BITS-1:0] chosen_edit;
  logic [ROW+3:0] ahead;  // words that leave before the chosen one
  wire [ROW:0] before = chosen_in - word_out;  // in the ring
  wire taken = out_valid && out_ready;
  wire [ROW+3:0] in_stages = (ROW + 4)'(read_valid) + (ROW + 4)'(valid1) + (ROW + 4)'(valid2) + (ROW + 4)'(out_valid);
  wire open = followed && where == NOWHERE && frame_in == chosen_frame && at_in != 0;
  wire chooses = push && choose && where == NOWHERE && (open || (follow && !followed && at_in == 0));
  initial assume (rst);
  always_ff @(posedge clk)
    if (rst) begin
      where <= NOWHERE;
      followed <= 0;
      known <= 0;
    end else begin
      if (push && follow && !followed && at_in == 0) begin
        followed <= 1;
        chosen_frame <= frame_in;
      end
      // A frame is no longer followed if it ends without a chosen word.
      if (open && push && in_last && !chooses) {followed, known} <= 0;
      if (push && follow && !followed && at_in == 0 && in_last && !chooses) followed <= 0;
      else if (followed && !known && edit_valid && edit_in == chosen_frame && !(open && push && in_last && !chooses)) begin
        known <= 1;
        chosen_edit <= edit;
      end
      if (chooses) begin
        where <= RING;
        chosen <= {in_last, in_count, in_data};
        chosen_at <= at_in;
        chosen_in <= word_in;
        ahead <= (ROW + 4)'(held) + in_stages - (ROW + 4)'(taken);
      end else if (taken) ahead <= ahead - 1'b1;
      if (where == RING && pop && word_out == chosen_in) where <= READ;
      if (go && (where == READ || where == ONE || where == TWO)) where <= where + 1'b1;
      if (where == OUT && taken) where <= GONE;
    end

  // What the chosen word must become.
  wire [110:0] ce = 111'(chosen_edit);
  logic [DATA_WIDTH-1:0] expected;
  logic [8:0] position, in_stamp;
  always_comb begin
    expected = chosen[DATA_WIDTH-1:0];
    position = 0;
    in_stamp = 0;
    for (int lane = 0; lane < BYTES; lane++) begin
      position = chosen_at + 9'(lane);
      in_stamp = position - ce[42:34];
      if (ce[0] && in_stamp < 4) expected[8*lane+:8] = 8'(ce[33:2] >> (24 - 8 * in_stamp[1:0]));
      if (ce[1] && position == ce[67:59]) expected[8*lane+:8] = ce[58:51];
      if (ce[1] && position == ce[67:59] + 9'd1) expected[8*lane+:8] = ce[50:43];
      if (EDIT_BITS > 68) begin
        if (ce[68] && position == ce[110:102]) expected[8*lane+:8] = ce[85:78];
        if (ce[68] && position == ce[110:102] + 9'd1) expected[8*lane+:8] = ce[77:70];
        if (ce[69] && position == ce[110:102] + 9'd10) expected[8*lane+:8] = ce[101:94];
        if (ce[69] && position == ce[110:102] + 9'd11) expected[8*lane+:8] = ce[93:86];
      end
    end
  end
  wire [DATA_WIDTH+LOG+1:0] result = {chosen[DATA_WIDTH+:LOG+2], expected};

  // ---- the invariants. Each follows from all invariants of the cycle before, so all of them always hold. With PART, one step of
  // induction proves one of them. Without PART, all are asserted from reset on.
  localparam PARTS = 10;
  logic then, waited, hypothesis;
  logic [DATA_WIDTH+LOG+1:0] offered;
  wire [ROW:0] edits_held = edit_in - edit_out;
  wire [ROW:0] frames_held = begun - edit_out;
  wire [ROW:0] to_chosen = chosen_frame - edit_out;
  wire [8:0] next_base = read_valid ? following(word[DATA_WIDTH+LOG+1], base) : base;
  logic [PARTS-1:0] holds;
  always_comb begin
    holds = '1;
    holds[0] = held <= (ROW + 1)'(DEPTH) && edits_held <= frames_held &&
        frames_held <= (held == 0 ? (ROW + 1)'(at_in != 0) : held);
    holds[1] = ordered01 && few[0] && adjacent[0];
    holds[2] = held == 0 ? frame_in == edit_out && at_in == next_base :
        frame[2] == edit_out && place[2] == next_base && frame_in == next_frame[5] && at_in == next_place[5];
    holds[3] = at_in[LOG-1:0] == 0 && at_in <= `FS_FAR && (where == NOWHERE || chosen_at[LOG-1:0] == 0) &&
        (!known || (!chosen_edit[59] && !chosen_edit[102])) && (!followed || where != NOWHERE || open) &&
        (followed || (where == NOWHERE && !known)) && where <= GONE;
    // The chosen frame's edit is the one that is kept for it.
    if (where == RING || open)
      holds[4] = to_chosen <= held && (known ? to_chosen < edits_held && edits[chosen_frame[ROW-1:0]] == chosen_edit :
          to_chosen >= edits_held);
    if (where == RING)
      holds[5] = inside[4] && stored[4] == chosen && frame[4] == chosen_frame && place[4] == chosen_at &&
          to_chosen <= before && ahead == (ROW + 4)'(before) + in_stages;
    if (where == READ)
      holds[6] = known && read_valid && word == chosen && word_edit == chosen_edit && base == chosen_at &&
          ahead == in_stages - 1'b1;
    if (where == ONE)
      holds[7] = known && valid1 && word1 == chosen && edit1 == chosen_edit && base1 == chosen_at &&
          ahead == in_stages - 1'b1 - (ROW + 4)'(read_valid);
    if (where == TWO)
      holds[8] = known && valid2 && {word2[DATA_WIDTH+:LOG+2], mended} == result && ahead == (ROW + 4)'(out_valid);
    // The property: when the chosen word leaves, all words before it have left, and its bytes are the expected ones.
    if (where == OUT) holds[9] = known && out_valid && ahead == 0 && {out_last, out_count, out_data} == result;
  end

  initial then = 0;
  always_ff @(posedge clk) begin
    then <= 1;
    waited <= !rst && out_valid && !out_ready;
    offered <= {out_last, out_count, out_data};
    // Parts 1 and 2 hold for any two words, and so for the head and any other word.
    hypothesis <= rst || (ordered23 && ordered24 && few2 && few3 && adjacent[1]
`ifdef PART
      && &holds
`endif
    );
  end
  always_comb
    if (then) begin
      assume (hypothesis);
`ifdef PART
      assert (holds[`PART]);
`else
      assert (&holds);
`endif
      if (waited) assert (out_valid && {out_last, out_count, out_data} == offered);
    end
