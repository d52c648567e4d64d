// How kernels walk tensors of one shape: a layout of K tensors is, from word `w` on, the number of axes, K offsets, and
// for each axis, the innermost first, its size and K strides. All count elements, modulo 2^32. There is an axis at least.

// A quotient, from the factor and the shift of its divisor.
fn divide(n: u32, factor: u32, shift: u32) -> u32 {
  let t = u32((u64(n) * u64(factor)) >> 32u);
  return (t + ((n - t) >> 1u)) >> shift;
}

fn locate1(w: u32, first: u32) -> u32 {
  var q = w;
  var axes = word(q);
  var at = word(q + 1u);
  q += 2u;
  var i = first;
  loop {
    if (axes == 0u) { break; }
    axes -= 1u;
    var index = i;
    if (axes != 0u) {
      let size = word(q);
      i = i / size;
      index -= i * size;
    }
    at += index * word(q + 1u);
    q += 2u;
  }
  return at;
}

fn locate2(w: u32, first: u32) -> vec2<u32> {
  var q = w;
  var axes = word(q);
  var at = vec2<u32>(word(q + 1u), word(q + 2u));
  q += 3u;
  var i = first;
  loop {
    if (axes == 0u) { break; }
    axes -= 1u;
    var index = i;
    if (axes != 0u) {
      let size = word(q);
      i = i / size;
      index -= i * size;
    }
    at += index * vec2<u32>(word(q + 1u), word(q + 2u));
    q += 3u;
  }
  return at;
}

fn locate3(w: u32, first: u32) -> vec3<u32> {
  var q = w;
  var axes = word(q);
  var at = vec3<u32>(word(q + 1u), word(q + 2u), word(q + 3u));
  q += 4u;
  var i = first;
  loop {
    if (axes == 0u) { break; }
    axes -= 1u;
    var index = i;
    if (axes != 0u) {
      let size = word(q);
      i = i / size;
      index -= i * size;
    }
    at += index * vec3<u32>(word(q + 1u), word(q + 2u), word(q + 3u));
    q += 4u;
  }
  return at;
}
