// MATMUL of halves by the device's units for small matrices. A workgroup makes a tile of ROWS by COLUMNS results, a subgroup of
// 32 a part of it, in units of 16 by 16. Each invocation brings vectors of 8 elements of both matrices for DEPTH steps of k
// while the last ones are multiplied; they lie in shared memory as they came, along k or across it, in rows that are 16 bytes
// longer, so that 8 of them meet all banks.
//
// Limits, for tiles of 128 by 128 and 4 subgroups: 16 units of sums are 128 registers, and 32 more hold what is under way, which
// leaves two workgroups on a multiprocessor. A step of 16 of k takes 8 loads of units, 4 KiB, and 16 multiplications of 4096
// multiply-adds. 64 multiply-adds for each byte that is read from memory.

fn matrices(g: u32, local: u32) {
  let job = job_of(g);
  let first_row = job.row * ROWS;
  let first_column = job.column * COLUMNS;
  let a_at = job.place.x + first_row * word(8u);
  let b_at = job.place.y + first_column * word(11u);
  let a_rows = word(3u) - first_row;
  let b_columns = word(4u) - first_column;
  let warp = local / 32u;
  lane = local % 32u;
  let a_steps = vec2<u32>(word(8u), word(9u));
  let b_steps = vec2<u32>(word(11u), word(10u));
  // Vectors between those of one turn and the next. Behind the last there is nothing to read; what lies behind k is cleared.
  let step_a = DEPTH * a_steps.y / 8u;
  let step_b = DEPTH * b_steps.y / 8u;
  let last_a = arrayLength(&a) - 1u;
  let last_b = arrayLength(&b) - 1u;
  var k = job.first;
  var side = 0u;
  DECLARE
  loop {
    if (k + DEPTH > job.end) {
      CLEAR
    }
    PUT
    workgroupBarrier();
    k += DEPTH;
    if (k < job.end) {
      FETCH
    }
    let from_a = side * SIZE_A + first_a(warp / ACROSS);
    let from_b = side * SIZE_B + first_b(warp % ACROSS);
    MULTIPLY
    if (k >= job.end) { break; }
    if (BUFFERS == 1u) { workgroupBarrier(); } else { side = 1u - side; }
  }
  let row = first_row + warp / ACROSS * WARP_ROWS;
  let column = first_column + warp % ACROSS * WARP_COLUMNS;
  STORE
}

// Stores a unit of sums, which lies in this subgroup's part of `meet`: two rows at a time.
fn store_unit(place: u32, row: u32, column: u32, warp: u32) {
  let to = column + lane % 16u;
  for (var r = lane / 16u; r < 16u; r += 2u) {
    if (row + r < word(3u) && to < word(4u)) {
      store_out(place + (row + r) * word(12u) + to * word(13u), meet[warp * 320u + r * 20u + lane % 16u]);
    }
  }
}
