// MATMUL of halves by the device's units for small matrices. A workgroup of 128, four subgroups of 32, makes a tile of SIDE by
// SIDE results, a subgroup a quarter of it, in units of 16 by 16. Each invocation brings EACH vectors of 8 elements of both
// matrices for DEPTH steps of k while the last ones are multiplied; they lie in shared memory as they came, along k or across
// it, in rows that are 16 bytes longer, so that 8 of them meet all banks.
//
// Limits, for SIDE 128: 16 units of sums are 128 registers, and 32 more hold what is under way, which leaves two workgroups on a
// multiprocessor. A step of 16 of k takes 8 loads of units, 4 KiB, and 16 multiplications of 4096 multiply-adds. 64
// multiply-adds for each byte that is read from memory.

const THREADS: u32 = 128u;
const DEPTH: u32 = 32u;

fn matrices(g: u32, local: u32) {
  let job = job_of(g);
  let first_row = job.row * SIDE;
  let first_column = job.column * SIDE;
  let a_at = job.place.x + first_row * word(8u);
  let b_at = job.place.y + first_column * word(11u);
  let a_rows = word(3u) - first_row;
  let b_columns = word(4u) - first_column;
  let warp = local / 32u;
  lane = local % 32u;
  let a_steps = vec2<u32>(word(8u), word(9u));
  let b_steps = vec2<u32>(word(11u), word(10u));
  DECLARE
  var k = job.first;
  var side = 0u;
  FETCH
  loop {
    PUT
    workgroupBarrier();
    k += DEPTH;
    if (k < job.end) {
      FETCH
    }
    let from_a = side * SIZE_A + first_a(warp / 2u);
    let from_b = side * SIZE_B + first_b(warp % 2u);
    MULTIPLY
    if (k >= job.end) { break; }
    side = 1u - side;
  }
  let row = first_row + warp / 2u * (SIDE / 2u);
  let column = first_column + warp % 2u * (SIDE / 2u);
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
