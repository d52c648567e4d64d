// RANDOM_BITS: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// 2011). WIDTH is the number of an element's bytes.
//
// Words: elements of the output, elements for each key, steps along a key and along its elements; the layout of the keys
// (keys, output).

fn turned(x: u32, by: u32) -> u32 { return (x << by) | (x >> (32u - by)); }

fn round_of(s: vec2<u32>, by: u32) -> vec2<u32> {
  let a = s.x + s.y;
  return vec2<u32>(a, turned(s.y, by) ^ a);
}

fn four_rounds(s: vec2<u32>, by: vec4<u32>) -> vec2<u32> {
  return round_of(round_of(round_of(round_of(s, by.x), by.y), by.z), by.w);
}

fn threefry(key: vec2<u32>, counter: vec2<u32>) -> vec2<u32> {
  let third = key.x ^ key.y ^ 0x1bd11bdau;
  let even = vec4<u32>(13u, 15u, 26u, 6u);
  let odd = vec4<u32>(17u, 29u, 16u, 24u);
  var s = counter + key;
  s = four_rounds(s, even) + vec2<u32>(key.y, third + 1u);
  s = four_rounds(s, odd) + vec2<u32>(third, key.x + 2u);
  s = four_rounds(s, even) + vec2<u32>(key.x, key.y + 3u);
  s = four_rounds(s, odd) + vec2<u32>(key.y, third + 4u);
  return four_rounds(s, even) + vec2<u32>(third, key.x + 5u);
}

fn random_bits(i: u32) {
  let each = word(1u);
  let index = i / each;
  let element = i - index * each;
  let at = locate2(4u, index);
  let key = vec2<u32>(load_keys(at.x), load_keys(at.x + word(2u)));
  let byte = element * WIDTH;
  let n = (each * WIDTH + 3u) / 4u;
  let half_way = n / 2u;
  let odd = n & 1u;
  let place = byte / 4u;
  var bits = 0u;
  if (place < half_way) {
    bits = threefry(key, vec2<u32>(place, half_way + odd + place)).x;
  } else if (odd == 1u && place == half_way) {
    bits = threefry(key, vec2<u32>(half_way, 0u)).x;
  } else {
    bits = threefry(key, vec2<u32>(place - half_way - odd, place)).y;
  }
  store_out(at.y + element * word(3u), bits >> (8u * (byte & 3u)));
}
