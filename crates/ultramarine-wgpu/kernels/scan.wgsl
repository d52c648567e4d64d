// SCAN: an invocation per lane, or per chunk of one where there are few long lanes: then the totals of the chunks are
// scanned first. The halves run in float32 and are rounded at each element.
//
// Words: invocations, lanes, length of a lane, length of a chunk, chunks, steps of input and output, inclusive; the
// layout of the lanes (input, output).

fn scan_totals(i: u32) {
  let lanes = word(1u);
  let chunk = i / lanes;
  let place = locate2(8u, i - chunk * lanes);
  let step = word(5u);
  var j = chunk * word(3u);
  let end = j + min(word(3u), word(2u) - j);
  var running = load_a(place.x + j * step);
  j += 1u;
  loop {
    if (j >= end) { break; }
    running = next_of(running, load_a(place.x + j * step));
    j += 1u;
  }
  totals[i] = running;
}

// Each total is replaced by what came before its chunk.
fn scan_carry(lane: u32) {
  let lanes = word(1u);
  let chunks = word(4u);
  var running = totals[lane];
  for (var chunk = 1u; chunk < chunks; chunk++) {
    let total = totals[chunk * lanes + lane];
    totals[chunk * lanes + lane] = running;
    running = next_of(running, total);
  }
}

fn scan_lanes(i: u32) {
  let lanes = word(1u);
  let chunk = i / lanes;
  let place = locate2(8u, i - chunk * lanes);
  let step = word(5u);
  let out_step = word(6u);
  let inclusive = word(7u) != 0u;
  var j = chunk * word(3u);
  let end = j + min(word(3u), word(2u) - j);
  var running = start_of();
  if (chunk != 0u) {
    running = totals[i];
  } else if (inclusive) {
    // The first element is the first result, whatever is neutral.
    running = load_a(place.x);
    store_out(place.y, running);
    j = 1u;
  }
  loop {
    if (j >= end) { break; }
    let next = next_of(running, load_a(place.x + j * step));
    if (inclusive) {
      store_out(place.y + j * out_step, next);
    } else {
      store_out(place.y + j * out_step, running);
    }
    running = next;
    j += 1u;
  }
}

fn less_complex(x: vec2<f32>, y: vec2<f32>) -> bool { return x.x < y.x || (x.x == y.x && x.y < y.y); }
