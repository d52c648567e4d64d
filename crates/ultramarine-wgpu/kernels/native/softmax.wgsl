// SOFTMAX and LOGSUMEXP of a row: e^(x - top), and their sum.

fn softmax_row(row: u32, lane: u32, live: bool, local: u32) {
  let sums = row_sums(row, lane, live, local);
  let n = word(2u);
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) { store_out(place(1u, j), weight(turn, j, sums[0]) / sums[1]); }
  }
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
fn row_sums(row: u32, lane: u32, live: bool, local: u32) -> vec2<R> {
  find_row(row);
  let n = word(2u);
  var top = -infinity_r();
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) {
      let x = R(load_a(place(0u, j)));
      keep(turn, x);
      top = larger(top, x);
    }
  }
  top = team_max(top, local);
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) {
      let w = exp_of(kept(turn, j) - top);
      keep(turn, w);
      add(turn, w);
    }
  }
  return vec2<R>(top, team_sum(added(), local));
}

fn weight(turn: u32, j: u32, top: R) -> R {
  if (HELD != 0u) { return held[turn]; }
  return exp_of(kept(turn, j) - top);
}
