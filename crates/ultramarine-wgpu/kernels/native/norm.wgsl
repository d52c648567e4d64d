// RMS_NORM, and with CENTERED LAYER_NORM, of a row. The number among the words is epsilon. Tensors: x, output, weight, bias.

fn norm_row(row: u32, lane: u32, live: bool, local: u32) {
  find_row(row);
  let n = word(2u);
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) {
      let x = R(load_a(place(0u, j)));
      keep(turn, x);
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
        let x = kept(turn, j) - mean;
        add(turn, x * x);
      }
    }
    sum = team_sum(added(), local);
  }
  let scale = R(1) / sqrt(sum / R(n) + number());
  for (var turn = 0u; turn < turns(); turn++) {
    let j = turn * TEAM + lane;
    if (j < n && live) {
      var x = kept(turn, j);
      if (CENTERED) { x -= mean; }
      store_out(place(1u, j), shifted(x * scale * load_weight(place(2u, j)), j));
    }
  }
}
