// ATTENTION of halves by units (`units.rs`), with the words and functions of `attention.wgsl`. A workgroup of 128 has 64 rows,
// each of its 4 subgroups 16 of them, and sees 32 keys at a time. Sums in units cannot be scaled row by row (a product by
// elements with a unit of factors gave infinities on NVIDIA's driver 580), so each row needs a base for its powers before it
// adds them. There are two passes over the keys: the first finds each row's largest score, the second makes the powers and
// their products with the values. An invocation has a row, of which it sees 16 of the 32 keys. What comes next is loaded while
// units are multiplied. Scores are in powers of 2.
//
// With the flag GUESSED the first pass sees the first and the last keys alone. A row whose later scores are far above its base
// has weights that are too large for a half: then the workgroup begins again, with a whole first pass.
//
// Limits: the products, 3 of 16 x 32 x SIZE for each subgroup and turn (2 with GUESSED), against one load of a unit for each
// multiplication. Rows of `meet` are 20 apart and units of a subgroup 336, so that neighbours meet different banks.

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

  DECLARE
  seen[0] = min(seen[0], i32(end));
  let own = lane % 2u;
  var base = -inf32();
  var total = 0.0;
  var whole = !flag(GUESSED);
  loop {
    base = -inf32();
    let step = select(max((max(end, 1u) - 1u) / 32u * 32u, 32u), 32u, whole);
    var key = 0u;
    if (key < end) {
      FETCH_KEYS
    }
    loop {
      if (key >= end) { break; }
      workgroupBarrier();
      PUT_KEYS
      workgroupBarrier();
      let first_key = key;
      key += step;
      if (key < end) {
        FETCH_KEYS
      }
      SCORES
      workgroupBarrier();
      for (var j = 0u; j < 16u; j += 4u) { base = max(base, largest(scores_of(warp, own, first_key, j))); }
    }
    // Both halves of a row.
    workgroupBarrier();
    meet[local] = base;
    workgroupBarrier();
    base = max(base, meet[local ^ 1u]);

    RESET
    total = 0.0;
    var above = false;
    key = 0u;
    if (key < end) {
      FETCH_KEYS
      FETCH_VALUES
    }
    loop {
      if (key >= end) { break; }
      workgroupBarrier();
      PUT_KEYS
      PUT_VALUES
      workgroupBarrier();
      let first_key = key;
      key += 32u;
      if (key < end) {
        FETCH_KEYS
        FETCH_VALUES
      }
      SCORES
      workgroupBarrier();
      if (base == -inf32()) {
        // The row has added nothing, and may take any base.
        for (var j = 0u; j < 32u; j += 4u) { base = max(base, largest(scores_of(warp, j / 16u, first_key, j % 16u))); }
      }
      let by = select(base, zero32(), base == -inf32());
      let w0 = weights_of(scores_of(warp, own, first_key, 0u) - by);
      let w1 = weights_of(scores_of(warp, own, first_key, 4u) - by);
      let w2 = weights_of(scores_of(warp, own, first_key, 8u) - by);
      let w3 = weights_of(scores_of(warp, own, first_key, 12u) - by);
      let w = (w0 + w1) + (w2 + w3);
      let sum = (w.x + w.y) + (w.z + w.w);
      total += sum;
      above = above || sum > HIGHEST;
      let to = (warp * 16u + lane / 2u) * 5u + own * 2u;
      powers[to] = eight_weights(w0, w1);
      powers[to + 1u] = eight_weights(w2, w3);
      workgroupBarrier();
      let from_powers = warp * 80u;
      VALUES
    }
    if (whole) { break; }
    workgroupBarrier();
    if (local == 0u) { again = 0u; }
    workgroupBarrier();
    if (above) { again = 1u; }
    if (workgroupUniformLoad(&again) == 0u) { break; }
    whole = true;
  }
  workgroupBarrier();
  meet[local] = total;
  workgroupBarrier();
  total += meet[local ^ 1u];
  workgroupBarrier();
  let top = base * LN2;
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

// 4 scores from number `j` of a half of a turn's 32, by which 2 is raised: -infinity where they do not count.
fn scores_of(warp: u32, half: u32, key: u32, j: u32) -> vec4<f32> {
  let at = warp * 672u + half * 336u + lane / 2u * MEET + j;
  let first = key + half * 16u + j;
  let products = vec4<f32>(meet[at], meet[at + 1u], meet[at + 2u], meet[at + 3u]);
  let scale = bitcast<f32>(word(SCALE));
  var x = products * (scale * LOG2E);
  if (flag(MASKED)) {
    x = products * scale;
    x = vec4<f32>(mask_of(x.x, first), mask_of(x.y, first + 1u), mask_of(x.z, first + 2u), mask_of(x.w, first + 3u));
    // The lowest numbers of masks stay finite: a row that has no others weighs its keys equally.
    let infinite = vec4<f32>(-inf32());
    let scaled = x * LOG2E;
    x = select(scaled, vec4<f32>(-3.4028234e38), (scaled == infinite) & (x != infinite));
  }
  let keys = vec4<i32>(i32(first)) + vec4<i32>(0i, 1i, 2i, 3i);
  return select(vec4<f32>(-inf32()), x, keys < vec4<i32>(seen[0]));
}

fn mask_of(score: f32, key: u32) -> f32 {
  let at = place(MASK, batch, head_of[0], query_of[0]);
  return with_mask(score, at + min(key, word(KEYS) - 1u) * word(MASK + 4u));
}

fn largest(x: vec4<f32>) -> f32 { return max(max(x.x, x.y), max(x.z, x.w)); }

const LOG2E: f32 = 1.4426950408889634;
const LN2: f32 = 0.6931471805599453;

// 2^x. The device's own is within 3 + 2 |x| units of the last place, by Vulkan's specification, and halves have 11 bits.
fn weights_of(x: vec4<f32>) -> vec4<f32> {
  let power = select(exp2(x), vec4<f32>(), x < vec4<f32>(-126.0));
  return select(power, x, x != x);
}

// Stores 8 neighbours of a row's results, which are in this subgroup's unit of `meet`. A row that sees no key weighs all of
// them equally.
fn store_results(warp: u32, column: u32, factor: f32, total: f32) {
  let first = column + lane % 2u * 8u;
  let out_at = place(OUT, batch, head_of[0], query_of[0]);
  for (var e = 0u; e < 8u; e++) {
    var sum = meet[warp * 672u + lane / 2u * MEET + lane % 2u * 8u + e] * factor;
    var by = total;
    if (total == 0.0) {
      sum = 0.0;
      by = f32(word(KEYS));
      for (var key = 0u; key < word(KEYS); key++) { sum += value_element(key, first + e); }
    }
    store_out(out_at + (first + e) * word(OUT + 4u), sum / by);
  }
}
