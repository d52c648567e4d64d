// SOFTMAX and LOGSUMEXP of a row: e^(x - top), and their sum.

fn softmax_row(row: u32, lane: u32, live: bool, local: u32) {
  let sums = sums_by_turns(row, lane, live, local);
  let n = word(2u);
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) { store_out(place(1u, j), exp_of(R(load_a(place(0u, j))) - sums[0]) / sums[1]); }
  }
}

fn softmax_held(row: u32, lane: u32, live: bool, local: u32) {
  // The sum is 1 at least, or NaN.
  let scale = vec4<R>(R(1) / sums_held(row, lane, live, local)[1]);
  for (var v = 0u; v < HELD; v++) { give_out(first_of(v, lane), live, held[v] * scale); }
}

fn logsumexp_row(row: u32, lane: u32, live: bool, local: u32) {
  let sums = row_sums(row, lane, live, local);
  if (lane == 0u && live) {
    store_out(row_begin[1], logarithm_of(sums));
  }
}

fn logarithm_of(sums: vec2<R>) -> R {
  return select(sums[0] + log_of(sums[1]), sums[0], is_infinite_r(sums[0]));
}

// The largest element, and the sum.
fn sums_by_turns(row: u32, lane: u32, live: bool, local: u32) -> vec2<R> {
  find_row(row);
  let n = word(2u);
  var top = -infinity_r();
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) { top = larger(top, R(load_a(place(0u, j)))); }
  }
  top = team_max(top, local);
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) { add(turn, exp_of(R(load_a(place(0u, j))) - top)); }
  }
  return vec2<R>(top, team_sum(added(), local));
}

// Likewise; what members hold become the powers.
fn sums_held(row: u32, lane: u32, live: bool, local: u32) -> vec2<R> {
  find_row(row);
  hold_row(lane, live);
  var top = -infinity_r();
  for (var v = 0u; v < HELD; v++) {
    let x = inside(held[v], first_of(v, lane), -infinity_r());
    top = larger(larger(larger(larger(top, x.x), x.y), x.z), x.w);
  }
  top = team_max(top, local);
  var sum = R();
  for (var v = 0u; v < HELD; v++) {
    let x = held[v] - vec4<R>(top);
    let powers = vec4<R>(exp_of(x.x), exp_of(x.y), exp_of(x.z), exp_of(x.w));
    held[v] = inside(powers, first_of(v, lane), R());
    sum += sum_of_four(held[v]);
  }
  return vec2<R>(top, team_sum(sum, local));
}
