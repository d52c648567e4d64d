// ATTENTION of halves by units (`units.rs`), with the words and functions of `attention.wgsl`. A workgroup of 128 has 64 rows,
// each of its 4 subgroups 16 of them, and sees 32 keys at a time. Sums in units cannot be scaled row by row, so there are two
// passes over the keys: the first finds each row's largest score, the second makes the powers and their products with the
// values. An invocation has a row, of which it sees 16 of the 32 keys.
//
// Limits: the products, 3 of 16 x 32 x SIZE for each subgroup and turn, against one load of a unit for each multiplication.

fn attend_units(g: u32, local: u32) {
  let unit = g / word(BLOCKS);
  let first = (g - unit * word(BLOCKS)) * 64u;
  let per_batch = word(HEADS) / word(SPAN);
  batch = unit / per_batch;
  first_head = (unit - batch * per_batch) * word(SPAN);
  key_head = first_head / word(GROUP);
  let rows = word(SPAN) * word(QUERIES);
  let length = length_of(batch);
  let warp = local / 32u;
  lane = local % 32u;
  let mine = warp * 16u + lane / 2u;
  let row = min(first + mine, rows - 1u);
  head_of[0] = first_head + row / word(QUERIES);
  query_of[0] = row % word(QUERIES);
  seen[0] = end_of(query_of[0], length);
  if (local == 0u) {
    var needed = length;
    let last = min(first + 64u, rows) - 1u;
    if (first / word(QUERIES) == last / word(QUERIES)) { needed = end_of(last % word(QUERIES), length); }
    key_end = u32(max(needed, 0i));
  }
  let end = workgroupUniformLoad(&key_end);
  for (var v = local; v < 64u * EIGHTS; v += 128u) {
    let r = min(first + v / EIGHTS, rows - 1u);
    let h = r / word(QUERIES);
    let at = place(Q, batch, first_head + h, r - h * word(QUERIES)) / 8u + v % EIGHTS;
    put_line(v / EIGHTS, v % EIGHTS, q[at]);
  }
  workgroupBarrier();
  let queries = warp * 16u * LINE;
  QUERIES_HELD
  workgroupBarrier();

  var top = -inf32();
  for (var key = 0u; key < end; key += 32u) {
    FETCH_KEYS
    PUT_KEYS
    workgroupBarrier();
    SCORES
    workgroupBarrier();
    for (var j = 0u; j < 16u; j++) { top = max(top, score_of(warp, key, j)); }
  }
  // Both halves of a row.
  workgroupBarrier();
  meet[local] = top;
  workgroupBarrier();
  top = max(top, meet[local ^ 1u]);
  workgroupBarrier();

  let base = select(top, zero32(), top == -inf32());
  var total = 0.0;
  DECLARE
  for (var key = 0u; key < end; key += 32u) {
    FETCH_KEYS
    FETCH_VALUES
    PUT_KEYS
    PUT_VALUES
    workgroupBarrier();
    SCORES
    workgroupBarrier();
    for (var j = 0u; j < 16u; j += 8u) {
      let w = powers_of(warp, key, j, base);
      total += (w.x + w.y) + (w.z + w.w);
      let w4 = powers_of(warp, key, j + 4u, base);
      total += (w4.x + w4.y) + (w4.z + w4.w);
      powers[(warp * 16u + lane / 2u) * 5u + lane % 2u * 2u + j / 8u] = eight_of(w, w4);
    }
    workgroupBarrier();
    let from_powers = warp * 80u;
    VALUES
    workgroupBarrier();
  }
  meet[local] = total;
  workgroupBarrier();
  total += meet[local ^ 1u];
  workgroupBarrier();
  let joined = with_sink(top, total, batch, head_of[0]);
  total = joined.z;
  if (first + mine < rows && lane % 2u == 0u) {
    store_lse(place(LSE, batch, head_of[0], query_of[0]), logarithm(joined.y, total));
  }
  let here = first + mine < rows;
  STORE
}

// Puts zeros for keys behind the last.
fn put_inside(line: u32, part: u32, x: Eight, inside: bool) {
  lines[line * LINE + part] = select(Eight(), x, inside);
}

fn put_line(line: u32, part: u32, x: Eight) {
  lines[line * LINE + part] = x;
}

fn fetch_key(key: u32, end: u32, part: u32) -> Eight {
  return k[place(K, batch, key_head, min(key, end - 1u)) / 8u + part];
}

fn fetch_value(key: u32, end: u32, part: u32) -> Eight {
  return v[place(V, batch, key_head, min(key, end - 1u)) / 8u + part];
}

// Score `j` of this invocation's 16 of a turn.
fn score_of(warp: u32, key: u32, j: u32) -> f32 {
  let column = lane % 2u * 16u + j;
  let at = warp * 640u + lane % 2u * 320u + lane / 2u * MEET + j;
  return masked(meet[at], 0u, key + column);
}

// The powers of 4 scores.
fn powers_of(warp: u32, key: u32, j: u32, base: f32) -> vec4<f32> {
  return vec4<f32>(exp_f32(score_of(warp, key, j) - base), exp_f32(score_of(warp, key, j + 1u) - base),
    exp_f32(score_of(warp, key, j + 2u) - base), exp_f32(score_of(warp, key, j + 3u) - base));
}

// Stores 8 neighbours of a row's results, which are in this subgroup's unit of `meet`. A row that sees no key weighs all of
// them equally.
fn store_results(warp: u32, column: u32, factor: f32, total: f32) {
  let first = column + lane % 2u * 8u;
  let out_at = place(OUT, batch, head_of[0], query_of[0]);
  for (var e = 0u; e < 8u; e++) {
    var sum = meet[warp * 640u + lane / 2u * MEET + lane % 2u * 8u + e] * factor;
    var by = total;
    if (total == 0.0) {
      sum = 0.0;
      by = f32(word(KEYS));
      for (var key = 0u; key < word(KEYS); key++) { sum += value_element(key, first + e); }
    }
    store_out(out_at + (first + e) * word(OUT + 4u), sum / by);
  }
}
