// SORT and ARG_SORT: a stable merge sort of keys, unsigned integers in the order of the elements, with the indices they
// came from. Blocks of SMALL are ranked element by element; then runs of twice the width are merged, every element
// finding its place by a binary search in the other run. Keys and indices lie in the workspace. On GPUs a workgroup merges
// the runs of LARGE elements in shared memory first.
//
// Limits: a pass moves 16 bytes for each element (24 with keys of 64 bits), and searches log2(width) keys, most of them in the
// caches; there are log2(n / LARGE) passes.
//
// Words: elements, length of a lane, steps of input and output, width of a run, where keys and indices are taken from
// and put, in elements of theirs: keys from, keys to, indices from, indices to; the layout of the lanes (input, output).

const SMALL: u32 = 32u;

fn sort_blocks(i: u32) {
  let length = word(1u);
  let step = word(2u);
  let lane = i / length;
  let j = i - lane * length;
  let place = locate2(9u, lane);
  let first = (j / SMALL) * SMALL;
  let end = min(first + SMALL, length);
  let key = key_of(load_a(place.x + j * step));
  var rank = first;
  for (var k = first; k < end; k++) {
    let other = key_of(load_a(place.x + k * step));
    if (other < key || (other == key && k < j)) { rank += 1u; }
  }
  keys[word(6u) + lane * length + rank] = key;
  indices[word(8u) + lane * length + rank] = j;
}

const LARGE: u32 = 1024u;

// A workgroup for each LARGE elements of a lane, 4 for each invocation.
fn sort_large(g: u32, local: u32) {
  let length = word(1u);
  let step = word(2u);
  let blocks = (length + LARGE - 1u) / LARGE;
  let lane = g / blocks;
  let first = (g - lane * blocks) * LARGE;
  let count = min(LARGE, length - first);
  let place = locate2(9u, lane);
  for (var p = local; p < count; p += 256u) {
    shared_keys[p] = key_of(load_a(place.x + (first + p) * step));
    shared_indices[p] = first + p;
  }
  for (var width = 1u; width < LARGE; width = width * 2u) {
    workgroupBarrier();
    let a = moved(local, width, count);
    let b = moved(local + 256u, width, count);
    let c = moved(local + 512u, width, count);
    let d = moved(local + 768u, width, count);
    workgroupBarrier();
    put_moved(a);
    put_moved(b);
    put_moved(c);
    put_moved(d);
  }
  workgroupBarrier();
  for (var p = local; p < count; p += 256u) {
    keys[word(6u) + lane * length + first + p] = shared_keys[p];
    indices[word(8u) + lane * length + first + p] = shared_indices[p];
  }
}

// Where an element goes when runs of a width are merged.
fn moved(j: u32, width: u32, count: u32) -> Moved {
  if (j >= count) { return Moved(Key(0), 0u, LARGE); }
  let start = (j / (2u * width)) * (2u * width);
  let middle = start + min(width, count - start);
  let end = middle + min(width, count - middle);
  let key = shared_keys[j];
  let left = j < middle;
  var low = select(start, middle, left);
  var high = select(middle, end, left);
  let first = low;
  loop {
    if (low >= high) { break; }
    let m = low + (high - low) / 2u;
    let other = shared_keys[m];
    if (other < key || (!left && other == key)) {
      low = m + 1u;
    } else {
      high = m;
    }
  }
  let to = start + select(j - middle, j - start, left) + (low - first);
  return Moved(key, shared_indices[j], to);
}

fn put_moved(element: Moved) {
  if (element.to == LARGE) { return; }
  shared_keys[element.to] = element.key;
  shared_indices[element.to] = element.index;
}

fn sort_merge(i: u32) {
  let length = word(1u);
  let width = word(4u);
  let lane = i / length;
  let j = i - lane * length;
  let base = word(5u) + lane * length;
  let start = (j / (2u * width)) * (2u * width);
  let middle = start + min(width, length - start);
  let end = middle + min(width, length - middle);
  let key = keys[base + j];
  // How many of the other run come before: of equals, the left run does.
  let left = j < middle;
  var low = select(start, middle, left);
  var high = select(middle, end, left);
  let first = low;
  loop {
    if (low >= high) { break; }
    let m = low + (high - low) / 2u;
    let other = keys[base + m];
    if (other < key || (!left && other == key)) {
      low = m + 1u;
    } else {
      high = m;
    }
  }
  let place = lane * length + start + select(j - middle, j - start, left) + (low - first);
  keys[word(6u) + place] = key;
  indices[word(8u) + place] = indices[word(7u) + i];
}

fn sort_values(i: u32) {
  let length = word(1u);
  let lane = i / length;
  let place = locate2(9u, lane);
  let value = load_a(place.x + indices[word(7u) + i] * word(2u));
  store_out(place.y + (i - lane * length) * word(3u), value);
}

fn sort_indices(i: u32) {
  let length = word(1u);
  let lane = i / length;
  let place = locate2(9u, lane);
  store_out(place.y + (i - lane * length) * word(3u), indices[word(7u) + i]);
}

// Equal elements have equal keys: both zeros, and all NaNs, whose key is the highest.
fn key_of_f32(x: f32) -> u32 {
  var bits = bitcast<u32>(x);
  if (bits == 0x80000000u) { bits = 0u; }
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return 0xffffffffu; }
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

fn key_of_f64(x: f64) -> u64 {
  var bits = bitcast<u64>(x);
  if (bits == 0x8000000000000000lu) { bits = 0lu; }
  if ((bits & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu) { return 0xfffffffffffffffflu; }
  return select(bits | 0x8000000000000000lu, ~bits, (bits >> 63u) == 1lu);
}

fn key_of_c64(z: vec2<f32>) -> u64 {
  if (isnan32(z.x) || isnan32(z.y)) { return 0xfffffffffffffffflu; }
  return (u64(key_of_f32(z.x)) << 32u) | u64(key_of_f32(z.y));
}

// SEARCHSORTED: a bisection of a row for each value. Words: values, length of a row, the step along it, 1 for the right
// side; the layout of rows (which stand still along the axes that are the values' own), values and output.
fn search(i: u32) {
  let at = locate3(4u, i);
  let length = word(1u);
  let key = key_of(load_v(at.y));
  var passed = 0u;
  var step = 1u << (31u - countLeadingZeros(length));
  loop {
    if (step == 0u) { break; }
    if (step <= length - passed) {
      let other = key_of(load_a(at.x + (passed + step - 1u) * word(2u)));
      if (other < key || (word(3u) != 0u && other == key)) { passed += step; }
    }
    step = step >> 1u;
  }
  store_out(at.z, passed);
}
