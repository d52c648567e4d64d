// A tile of 64 by 64 results by a workgroup of 256 invocations, each of which has 4 by 4 of them. Both factors pass through
// workgroup memory, 32 elements of a sum at a time; rows there are an element longer, so that columns lie in different banks.

fn tile(group: u32, local: u32) {
  let columns = (word(N) + 63u) / 64u;
  let blocks = columns * word(BLOCKS);
  let item = group / blocks;
  let rest = group - item * blocks;
  let row = rest / columns * 64u;
  let column = (rest - rest / columns * columns) * 64u;
  let matrix = second_of(item);
  let x = start(X, first_of(item));
  let a = local / 16u * 4u * 33u;
  let b = local % 16u;
  var s0 = vec4<R>();
  var s1 = vec4<R>();
  var s2 = vec4<R>();
  var s3 = vec4<R>();
  for (var first = 0u; first < word(K); first += 32u) {
    for (var l = local; l < 2048u; l += 256u) {
      let r = l / 32u;
      let k = first + l % 32u;
      var value = R();
      if (row + r < word(M) && k < word(K)) {
        value = R(load_x(x + (row + r) * word(X + 2u) + k * word(X + 3u)));
      }
      room_a[r * 33u + l % 32u] = value;
    }
    load_tile(matrix, column, first, local);
    workgroupBarrier();
    for (var k = 0u; k < 32u; k++) {
      let at = k * 65u + b;
      let y = vec4<R>(room_b[at], room_b[at + 16u], room_b[at + 32u], room_b[at + 48u]);
      s0 += room_a[a + k] * y;
      s1 += room_a[a + 33u + k] * y;
      s2 += room_a[a + 66u + k] * y;
      s3 += room_a[a + 99u + k] * y;
    }
    workgroupBarrier();
  }
  let global = global_of(matrix);
  let to = start(OUT, item);
  let r = row + local / 16u * 4u;
  store_row(to, r, column + b, s0 * global);
  store_row(to, r + 1u, column + b, s1 * global);
  store_row(to, r + 2u, column + b, s2 * global);
  store_row(to, r + 3u, column + b, s3 * global);
}

fn store_row(to: u32, row: u32, column: u32, s: vec4<R>) {
  if (row >= word(M)) { return; }
  let at = to + row * word(OUT + 2u);
  for (var c = 0u; c < 4u; c++) {
    if (column + c * 16u < word(N)) { store_out(at + (column + c * 16u) * word(OUT + 3u), s[c]); }
  }
}
