// GATHER, SCATTER and their forms along an axis. A place is the absolute position of an element in its buffer; none is
// the last number of 32 bits, since buffers have fewer bytes.

const NOWHERE: u32 = 0xffffffffu;

// An index is its size, and 1 behind it if it is negative: llvmpipe takes integers of 32 bits for positive once they were
// widened to 64. What 32 bits do not hold is far outside of any axis.
fn index_of_u32(x: u32) -> vec2<u32> { return vec2<u32>(x, 0u); }

fn index_of_i32(x: i32) -> vec2<u32> {
  if (x < 0i) { return vec2<u32>(0u - bitcast<u32>(x), 1u); }
  return vec2<u32>(bitcast<u32>(x), 0u);
}

fn index_of_u64(x: u64) -> vec2<u32> {
  if (x > 0xfffffffflu) { return vec2<u32>(0xffffffffu, 0u); }
  return vec2<u32>(u32(x), 0u);
}

fn index_of_i64(x: i64) -> vec2<u32> {
  let bits = bitcast<u64>(x);
  if ((bits >> 63u) == 0lu) { return index_of_u64(bits); }
  return vec2<u32>(index_of_u64(0lu - bits).x, 1u);
}

// The number that an index stands for, from the end if it is negative: held to those below `limit`, or nowhere if it is
// outside of them.
fn position_of(index: vec2<u32>, size: u32, limit: u32, skip: bool) -> u32 {
  if (index.y != 0u && index.x > size) { return select(0u, NOWHERE, skip); }
  let position = select(index.x, size - index.x, index.y != 0u);
  if (position >= limit) { return select(limit - 1u, NOWHERE, skip); }
  return position;
}

// Words: positions, first array, skip, size, limit, step, the offset of the first; the layout of the index array.
fn add_places(i: u32) {
  let position = position_of(load_index(locate1(7u, i)), word(3u), word(4u), word(2u) != 0u);
  var place = word(6u);
  if (word(1u) == 0u) { place = places[i]; }
  if (position == NOWHERE || place == NOWHERE) {
    places[i] = NOWHERE;
  } else {
    places[i] = place + position * word(5u);
  }
}

// Without index arrays. Words: positions, the offset.
fn fill_places(i: u32) { places[i] = word(1u); }

// Words: elements of the output, elements of a slice, where the second layout is; the layout of the output's positions;
// that of a slice (source, output).
fn gather(i: u32) {
  let each = word(1u);
  let position = i / each;
  let within = locate2(word(2u), i - position * each);
  store_out(locate1(3u, position) + within.y, load_a(places[position] + within.x));
}

// Words: elements of the output, size and step of the axis; the layout of source (which stands still along the axis),
// indices, output.
fn gather_axis(i: u32) {
  let at = locate3(3u, i);
  let position = position_of(load_index(at.y), word(1u), word(1u), false);
  store_out(at.z, load_a(at.x + position * word(2u)));
}

// An invocation per element of a slice off the indexed axes, through positions and along those axes: no two write one
// element, and the updates of one come in their order. Words: invocations, the first of the updates and the one behind the last
// (of all positions, along the indexed axes), elements along those axes, where the second and the third layout are; the
// layout of the updates' positions; those of a slice off and along the indexed axes (output, updates).
fn scatter(i: u32) {
  let off = locate2(word(4u), i);
  let along = word(3u);
  let end = word(2u);
  for (var t = word(1u); t < end; t++) {
    let position = t / along;
    let place = places[position];
    if (place == NOWHERE) { continue; }
    let within = locate2(word(5u), t - position * along);
    let source = locate1(6u, position) + off.y + within.y;
    let to = place + off.x + within.x;
    store_out(to, combine(load_out(to), load_u(source)));
  }
}

// An invocation per lane. Words: lanes, the first of the updates and the one behind the last of a lane, size of the axis, steps
// of output, indices, updates; the layout of the lanes (output, indices, updates).
fn scatter_axis(i: u32) {
  let at = locate3(7u, i);
  let end = word(2u);
  for (var j = word(1u); j < end; j++) {
    let position = position_of(load_index(at.y + j * word(5u)), word(3u), word(3u), true);
    if (position == NOWHERE) { continue; }
    let to = at.x + position * word(4u);
    store_out(to, combine(load_out(to), load_u(at.z + j * word(6u))));
  }
}

// The window that begins at the starts. Words: its elements, whether it is the output's, number of starts, the offset of
// the first and the step to the next, where the layout of the window (source, output) is; for each start the number of
// places where a window can begin, and the step between them.
fn window(i: u32) {
  var at = locate2(word(5u), i);
  var by = 0u;
  for (var k = 0u; k < word(2u); k++) {
    let start = load_index(word(3u) + k * word(4u));
    let most = word(6u + 2u * k) - 1u;
    by += select(min(start.x, most), 0u, start.y != 0u) * word(7u + 2u * k);
  }
  at += select(vec2<u32>(by, 0u), vec2<u32>(0u, by), word(1u) != 0u);
  store_out(at.y, load_a(at.x));
}

fn less_complex(x: vec2<f32>, y: vec2<f32>) -> bool { return x.x < y.x || (x.x == y.x && x.y < y.y); }

// Updates whose places are known, in pieces; their order is that of numbers of pieces. Words: invocations, elements of a
// piece, pieces, where sorted places and the numbers of their pieces are among `places`, where the second layout is, where
// `lead` begins; the layout of pieces (updates); that of a piece (output, updates).
//
// Limits: the bytes of updates, and the sort of places: 16 bytes for each piece and pass, of which there are log2(n / 1024).

fn sorted_place(p: u32) -> u32 { return places[word(3u) + p]; }

fn load_piece(p: u32, within: u32) -> U { return load_u(locate1(7u, places[word(4u) + p]) + within); }

fn is_head(p: u32, place: u32) -> bool {
  if (p == 0u) { return true; }
  return sorted_place(p - 1u) != place;
}

// A piece that is the last of its place.
fn scatter_last(i: u32) {
  let each = word(1u);
  let p = i / each;
  let place = sorted_place(p);
  if (place == NOWHERE) { return; }
  if (p + 1u < word(2u)) {
    if (sorted_place(p + 1u) == place) { return; }
  }
  let within = locate2(word(5u), i - p * each);
  store_out(place + within.x, load_piece(p, within.y));
}

// All pieces of a place, from the first on.
fn scatter_sorted(i: u32) {
  let each = word(1u);
  let p = i / each;
  let place = sorted_place(p);
  if (place == NOWHERE || !is_head(p, place)) { return; }
  let within = locate2(word(5u), i - p * each);
  let to = place + within.x;
  var value = combine(load_out(to), load_piece(p, within.y));
  for (var s = p + 1u; s < word(2u); s++) {
    if (sorted_place(s) != place) { break; }
    value = combine(value, load_piece(s, within.y));
  }
  store_out(to, value);
}

const CHUNK: u32 = 256u;

// Sums and products: those of a place that are in one chunk of sorted pieces. The first of them go to the output, others
// are kept: a chunk begins with them, so there is one place at most.
fn scatter_chunks(i: u32) {
  let each = word(1u);
  let p = i / each;
  let place = sorted_place(p);
  let head = is_head(p, place);
  if (place == NOWHERE || (!head && p % CHUNK != 0u)) { return; }
  let end = min(word(2u), (p / CHUNK + 1u) * CHUNK);
  let within = locate2(word(5u), i - p * each);
  let to = place + within.x;
  var value = load_piece(p, within.y);
  if (head) { value = combine(load_out(to), value); }
  for (var s = p + 1u; s < end; s++) {
    if (sorted_place(s) != place) { break; }
    value = combine(value, load_piece(s, within.y));
  }
  if (head) {
    store_out(to, value);
  } else {
    lead[word(6u) + (p / CHUNK) * each + i - p * each] = value;
  }
}

// The kept part of a place that begins in a chunk and goes on behind it.
fn scatter_rest(i: u32) {
  let each = word(1u);
  let c = i / each;
  let behind = (c + 1u) * CHUNK;
  if (behind >= word(2u)) { return; }
  let place = sorted_place(behind);
  let goes_on = sorted_place(behind - 1u) == place;
  let begins = sorted_place(c * CHUNK) != place || is_head(c * CHUNK, place);
  if (place == NOWHERE || !goes_on || !begins) { return; }
  let e = i - c * each;
  let to = place + locate2(word(5u), e).x;
  var value = load_out(to);
  for (var d = c + 1u; d * CHUNK < word(2u); d++) {
    if (sorted_place(d * CHUNK) != place) { break; }
    value = combine(value, lead[word(6u) + d * each + e]);
  }
  store_out(to, value);
}

// Each piece for itself.
fn scatter_atomic(i: u32) {
  let each = word(1u);
  let p = i / each;
  let place = places[p];
  if (place == NOWHERE) { return; }
  let within = locate2(word(5u), i - p * each);
  meet_at(place + within.x, load_u(locate1(7u, p) + within.y));
}

// The places of elements along an axis. Words: elements, length of a lane, size of the axis, steps of output and indices; the
// layout of the lanes (output, indices, updates).
fn axis_places(i: u32) {
  let length = word(1u);
  let lane = i / length;
  let at = locate3(5u, lane);
  let position = position_of(load_index(at.y + (i - lane * length) * word(4u)), word(2u), word(2u), true);
  places[i] = select(at.x + position * word(3u), NOWHERE, position == NOWHERE);
}
