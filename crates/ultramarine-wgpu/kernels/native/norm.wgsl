// RMS_NORM, and with CENTERED LAYER_NORM, of a row. The number among the words is epsilon. Tensors: x, output, weight, bias.

fn norm_row(row: u32, lane: u32, live: bool, local: u32) {
  find_row(row);
  let n = word(2u);
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) {
      let x = R(load_a(place(0u, j)));
      add(turn, select(x * x, x, CENTERED));
    }
  }
  var sum = team_sum(added(), local);
  var mean = R();
  if (CENTERED) {
    mean = sum / R(n);
    for (var turn = 0u; turn < turns(); turn++) {
      let j = turn * TEAM + lane;
      if (j < n && live) {
        let x = R(load_a(place(0u, j))) - mean;
        add(turn, x * x);
      }
    }
    sum = team_sum(added(), local);
  }
  let scale = R(1) / sqrt(sum / R(n) + number());
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) {
      var x = R(load_a(place(0u, j)));
      if (CENTERED) { x -= mean; }
      store_out(place(1u, j), shifted(x * scale * load_weight(place(2u, j)), j));
    }
  }
}

fn norm_held(row: u32, lane: u32, live: bool, local: u32) {
  find_row(row);
  let n = R(word(2u));
  hold_row(lane, live);
  var sum = R();
  for (var v = 0u; v < HELD; v++) {
    let x = inside(held[v], first_of(v, lane), R());
    sum += sum_of_four(select(x * x, x, vec4<bool>(CENTERED)));
  }
  sum = team_sum(sum, local);
  if (CENTERED) {
    let mean = sum / n;
    sum = R();
    for (var v = 0u; v < HELD; v++) {
      held[v] -= vec4<R>(mean);
      let x = inside(held[v], first_of(v, lane), R());
      sum += sum_of_four(x * x);
    }
    sum = team_sum(sum, local);
  }
  let scale = vec4<R>(R(1) / sqrt(sum / n + number()));
  for (var v = 0u; v < HELD; v++) {
    let j = first_of(v, lane);
    give_out(j, live, four_shifted(held[v] * scale * take_weight(j, live), j, live));
  }
}
