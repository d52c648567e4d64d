// ARG_REDUCE, with the words of REDUCE. There is one reduced axis.

fn step_along() -> u32 { return word(word(5u) + 3u); }

fn arg_each(i: u32) {
  let outputs = word(1u);
  let segment = i / outputs;
  let place = locate2(8u, i - segment * outputs);
  let stride = step_along();
  var r = segment * word(3u);
  let end = r + min(word(3u), word(2u) - r);
  var best = r;
  var old = load_a(place.x + r * stride);
  r += 1u;
  loop {
    if (r >= end) { break; }
    let value = load_a(place.x + r * stride);
    if (beats(value, old)) {
      old = value;
      best = r;
    }
    r += 1u;
  }
  if (word(4u) == 1u) {
    store_out(place.y, best);
  } else {
    partial[i] = best;
  }
}

fn arg_merge(o: u32) {
  let outputs = word(1u);
  let segments = word(4u);
  let place = locate2(8u, o);
  let stride = step_along();
  var best = partial[o];
  var old = load_a(place.x + best * stride);
  for (var s = 1u; s < segments; s++) {
    let next = partial[s * outputs + o];
    let value = load_a(place.x + next * stride);
    if (beats(value, old)) {
      old = value;
      best = next;
    }
  }
  store_out(place.y, best);
}
