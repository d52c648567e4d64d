// MATMUL with few rows of a, ROWS of them for a workgroup of 256: b is read once, and its bytes are the limit. Along k (DOT)
// 32 lanes go along a column of b, 8 columns for a workgroup; across it 8 lanes go through k for 4 columns each, 128
// columns for a workgroup: 16 bytes for each invocation and turn, side by side. Sums of lanes meet in shared memory.

fn few_dot(g: u32, local: u32) {
  let job = job_of(g);
  let row = job.row * ROWS;
  let column = job.column * 8u + local / 32u;
  let rows = word(3u) - row;
  let here = column < word(4u);
  let a_at = job.place.x + row * word(8u);
  let b_at = job.place.y + select(0u, column, here) * word(11u);
  DECLARE
  for (var k = job.first + 4u * (local % 32u); k < job.end; k += 128u) {
    let room = job.end - k;
    let b = pick_b(b_at + k * word(10u), word(10u), room);
    DOT
  }
  let to = job.place.z + row * word(12u) + column * word(13u);
  MEET_DOT
}

fn few_columns(g: u32, local: u32) {
  let job = job_of(g);
  let row = job.row * ROWS;
  let column = job.column * 128u + 4u * (local % 32u);
  let rows = word(3u) - row;
  let room = word(4u) - min(column, word(4u));
  let a_at = job.place.x + row * word(8u);
  let b_at = job.place.y + select(0u, column, room != 0u) * word(11u);
  DECLARE
  for (var k = job.first + local / 32u; k < job.end; k += 8u) {
    let b = pick_b(b_at + k * word(10u), word(11u), room);
    COLUMNS
  }
  let to = job.place.z + row * word(12u) + column * word(13u);
  MEET_COLUMNS
}

fn store_columns(to: u32, room: u32, s: Q) {
  let step = word(13u);
  if (room > 0u) { store_out(to, s.x); }
  if (room > 1u) { store_out(to + step, s.y); }
  if (room > 2u) { store_out(to + 2u * step, s.z); }
  if (room > 3u) { store_out(to + 3u * step, s.w); }
}
