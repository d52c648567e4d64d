// Joins the parts of a row's keys: an invocation for each part of a value. Words as in `attention.wgsl`.

fn join(i: u32) {
  let row = i / word(VALUE_SIZE);
  let part = i - row * word(VALUE_SIZE);
  let rows = word(SPAN) * word(QUERIES);
  let unit = row / rows;
  let of_unit = row - unit * rows;
  let per_batch = word(HEADS) / word(SPAN);
  let b = unit / per_batch;
  let h = (unit - b * per_batch) * word(SPAN) + of_unit / word(QUERIES);
  let query = of_unit % word(QUERIES);
  let each = word(VALUE_SIZE) + 2u;
  let begin = row * word(SPLITS) * each;
  var top = -inf32();
  for (var s = 0u; s < word(SPLITS); s++) { top = max(top, partial[begin + s * each]); }
  let base = select(top, zero32(), top == -inf32());
  var total = 0.0;
  var sum = 0.0;
  for (var s = 0u; s < word(SPLITS); s++) {
    let at = begin + s * each;
    let factor = exp_f32(partial[at] - base);
    total += partial[at + 1u] * factor;
    sum += partial[at + 2u + part] * factor;
  }
  let joined = with_sink(top, total, b, h);
  sum *= joined.x;
  total = joined.z;
  if (total == 0.0) {
    sum = 0.0;
    let start_at = place(V, b, h / word(GROUP), 0u) + part * word(V + 4u);
    for (var key = 0u; key < word(KEYS); key++) { sum += load_v(start_at + key * word(V + 3u)); }
  }
  let by = select(total, f32(word(KEYS)), total == 0.0);
  store_out(place(OUT, b, h, query) + part * word(OUT + 4u), sum / by);
  if (part == 0u) { store_lse(place(LSE, b, h, query), logarithm(joined.y, total)); }
}
