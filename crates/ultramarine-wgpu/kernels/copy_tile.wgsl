// COPY between tensors that lie along different axes: the workgroups of 256 have tiles of 32 by 32 elements, which are read
// along axis `a`, where the input lies together, and written along axis `b`, where the output does. A row of the tile has
// one element more, so that those of a column are in different banks.
//
// Words: workgroups, sizes of axes `a` and `b`, tiles along `a`, tiles of both, the input's stride along `b`, the output's
// along `a`; the layout of the other axes.

var<workgroup> tile: array<A, 1056>;

fn copy_tile(g: u32, local: u32) {
  let outer = g / word(4u);
  let number = g - outer * word(4u);
  let tile_b = number / word(3u);
  let first_a = (number - tile_b * word(3u)) * 32u;
  let first_b = tile_b * 32u;
  let base = locate2(7u, outer);
  let x = local % 32u;
  let y = local / 32u;
  let last_a = word(1u) - 1u;
  let last_b = word(2u) - 1u;
  let begin = base.x + min(first_a + x, last_a);
  let v0 = load_a(begin + min(first_b + y, last_b) * word(5u));
  let v1 = load_a(begin + min(first_b + y + 8u, last_b) * word(5u));
  let v2 = load_a(begin + min(first_b + y + 16u, last_b) * word(5u));
  let v3 = load_a(begin + min(first_b + y + 24u, last_b) * word(5u));
  tile[y * 33u + x] = v0;
  tile[(y + 8u) * 33u + x] = v1;
  tile[(y + 16u) * 33u + x] = v2;
  tile[(y + 24u) * 33u + x] = v3;
  workgroupBarrier();
  let end = base.y + first_b + x;
  if (first_b + x > last_b) { return; }
  for (var r = y; r < 32u; r += 8u) {
    if (first_a + r <= last_a) { store_out(end + (first_a + r) * word(6u), tile[x * 33u + r]); }
  }
}
