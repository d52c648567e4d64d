// REDUCE. Accumulators of type N take BLOCK elements each and are added to one of type W (float64 for floating dtypes,
// where there is any), of which what rounding loses is kept too. A long reduction is cut into segments, whose results
// are merged in order; how it is cut depends on shapes and on the device alone.
//
// Words: invocations or workgroups, outputs, elements of a reduction, length of a segment, segments, where the layout of the
// reduced axes is, lanes of a segment, 1 if they come before outputs (both for `group.wgsl`); the layout of the kept axes
// (input, output); that of the reduced axes.

const BLOCK: u32 = 16u;

// The offset of element `r` of a reduction, and how many follow at the last axis' stride, itself included.
fn reduced_at(r: u32) -> vec2<u32> {
  var q = word(5u);
  var axes = word(q);
  q += 2u;
  var at = 0u;
  var run = 1u;
  var rest = r;
  var innermost = true;
  loop {
    if (axes == 0u) { break; }
    axes -= 1u;
    let size = word(q);
    let next = rest / size;
    let index = rest - next * size;
    if (innermost) {
      run = size - index;
      innermost = false;
    }
    rest = next;
    at += index * word(q + 1u);
    q += 2u;
  }
  return vec2<u32>(at, run);
}

fn fold_each(i: u32) {
  let outputs = word(1u);
  let segment = i / outputs;
  let place = locate2(8u, i - segment * outputs);
  var r = segment * word(3u);
  let end = r + min(word(3u), word(2u) - r);
  let stride = word(word(5u) + 3u);
  var total = widen(neutral());
  var lost = W();
  var sum = neutral();
  var room = BLOCK;
  loop {
    if (r >= end) { break; }
    let first = reduced_at(r);
    var at = place.x + first.x;
    var run = min(first.y, end - r);
    r += run;
    loop {
      if (run == 0u) { break; }
      run -= 1u;
      sum = step_narrow(sum, read_value(load_a(at)));
      at += stride;
      room -= 1u;
      if (room == 0u) {
        fold_block(&total, &lost, widen(sum));
        sum = neutral();
        room = BLOCK;
      }
    }
  }
  fold_block(&total, &lost, widen(sum));
  total = fold_close(total, lost);
  if (word(4u) == 1u) {
    store_out(place.y, finish(total));
  } else {
    partial[i] = total;
  }
}

// The segments of each output, in order.
fn fold_merge(o: u32) {
  let place = locate2(8u, o);
  let outputs = word(1u);
  let segments = word(4u);
  var total = partial[o];
  var lost = W();
  for (var s = 1u; s < segments; s++) { fold_block(&total, &lost, partial[s * outputs + o]); }
  store_out(place.y, finish(fold_close(total, lost)));
}

// float64 to float32 in a way that a later rounding to fewer bits does not mistake: inexact results are odd.
fn f32_to_odd(x: f64) -> f32 {
  let near = f32(x);
  if (f64(near) == x || !isfinite32(near)) { return near; }
  var bits = bitcast<u32>(near);
  if (abs(f64(near)) > abs(x)) { bits -= 1u; }
  return bitcast<f32>(bits | 1u);
}

fn less_complex(x: vec2<f32>, y: vec2<f32>) -> bool { return x.x < y.x || (x.x == y.x && x.y < y.y); }
fn nan_complex(z: vec2<f32>) -> bool { return isnan32(z.x) || isnan32(z.y); }
fn less_wide(x: vec2<f64>, y: vec2<f64>) -> bool { return x.x < y.x || (x.x == y.x && x.y < y.y); }
fn nan_wide(z: vec2<f64>) -> bool { return isnan64(z.x) || isnan64(z.y); }
