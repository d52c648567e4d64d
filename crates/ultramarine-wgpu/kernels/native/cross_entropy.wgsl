// CROSS_ENTROPY of a row, by the sums of `softmax.wgsl`. Tensors: logits, logarithms, targets, losses.

fn cross_entropy_row(row: u32, lane: u32, live: bool, local: u32) {
  let sums = row_sums(row, lane, live, local);
  if (lane == 0u && live) {
    let logarithm = logarithm_of(sums);
    store_out(row_begin[1], logarithm);
    let own = chosen(load_targets(row_begin[2]), word(2u));
    store_losses(row_begin[3], logarithm - R(load_a(place(0u, own))));
  }
}

// Its gradient. Words: elements, classes, offset and steps of logits, of their gradient; offset and step of targets,
// logarithms, cotangents.
fn cross_entropy_slope(i: u32) {
  let row = i / word(1u);
  let class_of = i - row * word(1u);
  let x = R(load_a(word(2u) + row * word(3u) + class_of * word(4u)));
  let own = chosen(load_targets(word(8u) + row * word(9u)), word(1u));
  let weight = exp_of(x - load_logarithms(word(10u) + row * word(11u)));
  let slope = select(weight, weight - R(1), class_of == own);
  store_out(word(5u) + row * word(6u) + class_of * word(7u), slope * load_cotangents(word(12u) + row * word(13u)));
}
