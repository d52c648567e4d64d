// COPY between tensors that lie along different axes: the workgroups of 256 have tiles of SIDE by SIDE elements, which are
// read along axis `a`, where the input lies together, and written along axis `b`, where the output does. A row of the tile
// has one element more, so that those of a column are in different banks.
//
// Words: workgroups, sizes of axes `a` and `b`, tiles along `a`, tiles of both, the input's stride along `b`, the output's
// along `a`; the layout of the other axes.

fn copy_tile(g: u32, local: u32) {
  let outer = g / word(4u);
  let number = g - outer * word(4u);
  let tile_b = number / word(3u);
  let first_a = (number - tile_b * word(3u)) * SIDE;
  let first_b = tile_b * SIDE;
  let base = locate2(7u, outer);
  let x = local % SIDE;
  let y = local / SIDE;
  let last_a = word(1u) - 1u;
  let last_b = word(2u) - 1u;
  let begin = base.x + min(first_a + x, last_a);
  // Rows of a turn lie 256 / SIDE apart. All loads come before the first store.
  LOAD
  KEEP
  workgroupBarrier();
  let end = base.y + first_b + x;
  if (first_b + x > last_b) { return; }
  for (var r = y; r < SIDE; r += 256u / SIDE) {
    if (first_a + r <= last_a) { store_out(end + (first_a + r) * word(6u), tile[x * (SIDE + 1u) + r]); }
  }
}
