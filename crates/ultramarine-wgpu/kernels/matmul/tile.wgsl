// MATMUL with shared memory: a workgroup of 256 makes a tile of SIDE by SIDE results, each invocation SIDE / 16 by
// SIDE / 16 of them in registers. An invocation brings 4 elements of each matrix for DEPTH steps of k while the last ones
// are multiplied; they lie in shared memory as they came, along k or across it, so that all copies there are of vectors.
//
// Limits, for SIDE 128 and DEPTH 8: 16 vectors of accumulators and about 30 registers besides, which leaves two workgroups
// on a multiprocessor of 65536 registers. A step of k takes 64 multiply-adds and 4 vectors of shared memory, of which the 32
// invocations of a warp, 4 by 8, read 4 and 8 different ones: a fourth of what the banks give. 32 multiply-adds for each byte
// that is read from memory. Rows along k lie an odd number of vectors apart, so that lanes meet different banks.

fn tile(g: u32, local: u32) {
  let job = job_of(g);
  let first_row = job.row * SIDE;
  let first_column = job.column * SIDE;
  let a_at = job.place.x + first_row * word(8u);
  let b_at = job.place.y + first_column * word(11u);
  let a_rows = word(3u) - first_row;
  let b_columns = word(4u) - first_column;
  let lane = local % 32u;
  let warp = local / 32u;
  // Warps are 4 by 2, lanes 4 by 8.
  let warp_row = warp / 2u;
  let warp_column = warp % 2u;
  let lane_row = lane / 8u;
  let lane_column = lane % 8u;
  let a_steps = vec2<u32>(word(8u), word(9u));
  let b_steps = vec2<u32>(word(11u), word(10u));
  DECLARE
  var k = job.first;
  var side = 0u;
  var next_a = fetch_a(a_at, a_steps, a_rows, local, k, job.end);
  var next_b = fetch_b(b_at, b_steps, b_columns, local, k, job.end);
  loop {
    tile_a[side * SIZE_A + put_a(local)] = next_a;
    tile_b[side * SIZE_B + put_b(local)] = next_b;
    workgroupBarrier();
    k += DEPTH;
    if (k < job.end) {
      next_a = fetch_a(a_at, a_steps, a_rows, local, k, job.end);
      next_b = fetch_b(b_at, b_steps, b_columns, local, k, job.end);
    }
    let from_a = side * SIZE_A + first_a(warp_row, lane_row);
    let from_b = side * SIZE_B + first_b(warp_column, lane_column);
    ACCUMULATE
    if (k >= job.end) { break; }
    TURN
  }
  let row = first_row + row_of(warp_row, lane_row);
  let column = first_column + column_of(warp_column, lane_column);
  let to = job.place.z + row * word(12u) + column * word(13u);
  let rows = word(3u) - min(row, word(3u));
  let columns = word(4u) - min(column, word(4u));
  STORE
}

// Offsets of the 4 columns of a vector are APART, those of the columns before it are behind `first`.
fn store_row(to: u32, first: u32, columns: u32, s: Q) {
  let step = word(13u);
  if (first < columns) { store_out(to + first * step, s.x); }
  if (first + APART < columns) { store_out(to + (first + APART) * step, s.y); }
  if (first + 2u * APART < columns) { store_out(to + (first + 2u * APART) * step, s.z); }
  if (first + 3u * APART < columns) { store_out(to + (first + 3u * APART) * step, s.w); }
}
