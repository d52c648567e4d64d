// ATTENTION in blocks of queries and keys (Dao, FlashAttention-2: Faster attention with better parallelism and work
// partitioning, 2023). A workgroup has BLOCK rows of a unit: the queries of a head or, where they are few, those of all
// heads of a key head, one behind the other. It sees 32 keys at a time. Invocation (y, x) of 8 columns has LINES rows and
// every eighth of 32 keys or parts of a value. Queries, keys and values pass through workgroup memory, 32 elements of each
// row at a time; rows there are an element longer, so that columns lie in different banks.

const PITCH: u32 = 33u;
var<workgroup> room_a: array<f32, BLOCK * PITCH>;
var<workgroup> room_b: array<f32, 32u * PITCH>;
var<workgroup> room_rows: array<f32, BLOCK * 8u>;
var<workgroup> query_at: array<u32, BLOCK>;
var<workgroup> key_begin: u32;
var<workgroup> key_end: u32;
var<workgroup> any_whole: u32;

var<private> batch: u32;
var<private> first_head: u32;
var<private> key_head: u32;
var<private> score: array<vec4<f32>, LINES>;
var<private> top: array<f32, LINES>;
var<private> total: array<f32, LINES>;
// Keys that a row sees by its place.
var<private> seen: array<i32, LINES>;
var<private> head_of: array<u32, LINES>;
var<private> query_of: array<u32, LINES>;

fn place(t: u32, b: u32, h: u32, i: u32) -> u32 {
  return word(t) + b * word(t + 1u) + h * word(t + 2u) + i * word(t + 3u);
}

fn flag(bit: u32) -> bool { return (word(FLAGS) & bit) != 0u; }

fn length_of(b: u32) -> i32 {
  if (!flag(LENGTHS)) { return i32(word(KEYS)); }
  return min(load_lengths(word(LENGTH) + b * word(LENGTH + 1u)), i32(word(KEYS)));
}

fn end_of(query: u32, length: i32) -> i32 {
  if (!flag(CAUSAL)) { return length; }
  return min(length, i32(query) + length - i32(word(QUERIES)) + 1i);
}

fn attend(g: u32, local: u32) {
  let splits = word(SPLITS);
  let split = g % splits;
  let rest = g / splits;
  let unit = rest / word(BLOCKS);
  let first = (rest - unit * word(BLOCKS)) * BLOCK;
  let per_batch = word(HEADS) / word(SPAN);
  batch = unit / per_batch;
  first_head = (unit - batch * per_batch) * word(SPAN);
  key_head = first_head / word(GROUP);
  let rows = word(SPAN) * word(QUERIES);
  let length = length_of(batch);
  let x = local % 8u;
  let y = local / 8u * LINES;
  for (var r = local; r < BLOCK; r += SIZE) {
    let row = min(first + r, rows - 1u);
    let h = row / word(QUERIES);
    query_at[r] = place(Q, batch, first_head + h, row - h * word(QUERIES));
  }
  for (var i = 0u; i < LINES; i++) {
    let row = min(first + y + i, rows - 1u);
    let h = row / word(QUERIES);
    head_of[i] = first_head + h;
    query_of[i] = row - h * word(QUERIES);
    seen[i] = end_of(query_of[i], length);
    top[i] = -inf32();
    total[i] = 0.0;
  }
  if (local == 0u) {
    var needed = length;
    let last = min(first + BLOCK, rows) - 1u;
    if (first / word(QUERIES) == last / word(QUERIES)) { needed = end_of(last % word(QUERIES), length); }
    key_begin = split * word(SHARE);
    key_end = min(u32(max(needed, 0i)), key_begin + word(SHARE));
    any_whole = 0u;
  }
  let begin = workgroupUniformLoad(&key_begin);
  let end = workgroupUniformLoad(&key_end);
  for (var key = begin; key < end; key += 32u) {
    score_keys(key, end, x, y, local);
    for (var i = 0u; i < LINES; i++) {
      score[i] = vec4<f32>(masked(score[i].x, i, key + x), masked(score[i].y, i, key + x + 8u),
        masked(score[i].z, i, key + x + 16u), masked(score[i].w, i, key + x + 24u));
      room_rows[(y + i) * 8u + x] = max(max(score[i].x, score[i].y), max(score[i].z, score[i].w));
    }
    workgroupBarrier();
    var factors = vec4<f32>(1.0);
    for (var i = 0u; i < LINES; i++) {
      var next = top[i];
      for (var c = 0u; c < 8u; c++) { next = max(next, room_rows[(y + i) * 8u + c]); }
      let base = select(next, zero32(), next == -inf32());
      factors[i] = exp_f32(top[i] - base);
      top[i] = next;
      let w = vec4<f32>(exp_f32(score[i].x - base), exp_f32(score[i].y - base),
        exp_f32(score[i].z - base), exp_f32(score[i].w - base));
      total[i] = total[i] * factors[i] + (w.x + w.y + w.z + w.w);
      let at = (y + i) * PITCH + x;
      room_a[at] = w.x;
      room_a[at + 8u] = w.y;
      room_a[at + 16u] = w.z;
      room_a[at + 24u] = w.w;
    }
    scale_sums(factors);
    add_values(key, end, x, y, local);
  }
  finish(unit, split, first, x, y, local);
}

// Products of the rows with 32 keys.
fn score_keys(key: u32, end: u32, x: u32, y: u32, local: u32) {
  for (var i = 0u; i < LINES; i++) { score[i] = vec4<f32>(); }
  for (var d = 0u; d < word(HEAD_SIZE); d += 32u) {
    workgroupBarrier();
    for (var l = local; l < BLOCK * 32u; l += SIZE) {
      let part = d + l % 32u;
      var value = 0.0;
      if (part < word(HEAD_SIZE)) { value = load_q(query_at[l / 32u] + part * word(Q + 4u)); }
      room_a[l / 32u * PITCH + l % 32u] = value;
    }
    let start_at = place(K, batch, key_head, key);
    for (var l = local; l < 1024u; l += SIZE) {
      let part = d + l % 32u;
      var value = 0.0;
      if (part < word(HEAD_SIZE) && key + l / 32u < end) {
        value = load_k(start_at + l / 32u * word(K + 3u) + part * word(K + 4u));
      }
      room_b[l / 32u * PITCH + l % 32u] = value;
    }
    workgroupBarrier();
    for (var j = 0u; j < 32u; j++) {
      let at = x * PITCH + j;
      let b = vec4<f32>(
        room_b[at], room_b[at + 8u * PITCH], room_b[at + 16u * PITCH], room_b[at + 24u * PITCH]);
      for (var i = 0u; i < LINES; i++) { score[i] += room_a[(y + i) * PITCH + j] * b; }
    }
  }
  workgroupBarrier();
}

// A score scaled and masked: -infinity where it does not count.
fn masked(product: f32, i: u32, key: u32) -> f32 {
  if (i32(key) >= seen[i] || key >= key_end) { return -inf32(); }
  let scaled = product * bitcast<f32>(word(SCALE));
  if (!flag(MASKED)) { return scaled; }
  return with_mask(scaled, place(MASK, batch, head_of[i], query_of[i]) + key * word(MASK + 4u));
}

fn load_values(key: u32, end: u32, part: u32, local: u32) {
  let start_at = place(V, batch, key_head, key);
  for (var l = local; l < 1024u; l += SIZE) {
    var value = 0.0;
    if (part + l % 32u < word(VALUE_SIZE) && key + l / 32u < end) {
      value = load_v(start_at + l / 32u * word(V + 3u) + (part + l % 32u) * word(V + 4u));
    }
    room_b[l / 32u * PITCH + l % 32u] = value;
  }
}

fn value_parts(j: u32, x: u32) -> vec4<f32> {
  let at = j * PITCH + x;
  return vec4<f32>(room_b[at], room_b[at + 8u], room_b[at + 16u], room_b[at + 24u]);
}

// Sums of a row over its 8 invocations, the sinks, and the results.
fn finish(unit: u32, split: u32, first: u32, x: u32, y: u32, local: u32) {
  workgroupBarrier();
  for (var i = 0u; i < LINES; i++) { room_rows[(y + i) * 8u + x] = total[i]; }
  workgroupBarrier();
  for (var i = 0u; i < LINES; i++) {
    total[i] = 0.0;
    for (var c = 0u; c < 8u; c++) { total[i] += room_rows[(y + i) * 8u + c]; }
  }
  let rows = word(SPAN) * word(QUERIES);
  if (SPLIT) {
    for (var i = 0u; i < LINES; i++) {
      let row = first + y + i;
      if (row < rows) {
        let at = ((unit * rows + row) * word(SPLITS) + split) * (word(VALUE_SIZE) + 2u);
        if (x == 0u) {
          keep_one(at, 0u, top[i]);
          keep_one(at, 1u, total[i]);
        }
        keep_sums(at + 2u, i, x);
      }
    }
    return;
  }
  var factors = vec4<f32>(1.0);
  for (var i = 0u; i < LINES; i++) {
    let joined = with_sink(top[i], total[i], batch, head_of[i]);
    factors[i] = joined.x;
    top[i] = joined.y;
    total[i] = joined.z;
    if (total[i] == 0.0) { any_whole = 1u; }
  }
  scale_sums(factors);
  if (workgroupUniformLoad(&any_whole) != 0u) {
    // Rows that see no key weigh all of them equally.
    for (var key = 0u; key < word(KEYS); key += 32u) { add_whole(key, x, local); }
  }
  for (var i = 0u; i < LINES; i++) {
    if (first + y + i < rows) {
      let whole = total[i] == 0.0;
      let by = select(total[i], f32(word(KEYS)), whole);
      store_sums(place(OUT, batch, head_of[i], query_of[i]), i, x, by);
      if (x == 0u) { store_lse(place(LSE, batch, head_of[i], query_of[i]), logarithm(top[i], total[i])); }
    }
  }
}

fn logarithm(top: f32, total: f32) -> f32 {
  return select(top + log_f32(total), -bitcast<f32>(0x7f7fffffu), total == 0.0);
}

// The factor of the sums so far, and the largest score and total with the sink.
fn with_sink(top: f32, total: f32, b: u32, h: u32) -> vec3<f32> {
  if (!flag(SINKS)) { return vec3<f32>(1.0, top, total); }
  let sink = load_sinks(word(SINK) + b * word(SINK + 1u) + h * word(SINK + 2u));
  let next = max(top, sink);
  let base = select(next, zero32(), next == -inf32());
  let factor = exp_f32(top - base);
  return vec3<f32>(factor, next, total * factor + exp_f32(sink - base));
}
