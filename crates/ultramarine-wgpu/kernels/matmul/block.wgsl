// MATMUL without shared memory: an invocation makes a block of 4 by 4 results from registers. Rows and columns behind the
// edges are those at the edges, which are read and not stored. `Parts` is 4 columns of a row: one vector, or two for
// complex numbers. Words as in `words.wgsl`; invocations in place of workgroups.

fn block(i: u32) {
  let job = job_of(i);
  let m = word(3u);
  let n = word(4u);
  let row = job.row * 4u;
  let column = job.column * 4u;
  let a_row = word(8u);
  let a_step = word(9u);
  let b_step = word(10u);
  let b_column = word(11u);
  let a = job.place.x + job.first * a_step;
  let b = job.place.y + job.first * b_step;
  var a0 = a + row * a_row;
  var a1 = a + min(row + 1u, m - 1u) * a_row;
  var a2 = a + min(row + 2u, m - 1u) * a_row;
  var a3 = a + min(row + 3u, m - 1u) * a_row;
  var b0 = b + column * b_column;
  var b1 = b + min(column + 1u, n - 1u) * b_column;
  var b2 = b + min(column + 2u, n - 1u) * b_column;
  var b3 = b + min(column + 3u, n - 1u) * b_column;
  var s0 = Parts();
  var s1 = Parts();
  var s2 = Parts();
  var s3 = Parts();
  for (var j = job.first; j < job.end; j++) {
    let b = gathered(load_b(b0), load_b(b1), load_b(b2), load_b(b3));
    s0 = added(s0, load_a(a0), b);
    s1 = added(s1, load_a(a1), b);
    s2 = added(s2, load_a(a2), b);
    s3 = added(s3, load_a(a3), b);
    a0 += a_step;
    a1 += a_step;
    a2 += a_step;
    a3 += a_step;
    b0 += b_step;
    b1 += b_step;
    b2 += b_step;
    b3 += b_step;
  }
  let to = job.place.z + row * word(12u) + column * word(13u);
  store_parts(to, n - column, s0);
  if (row + 1u < m) { store_parts(to + word(12u), n - column, s1); }
  if (row + 2u < m) { store_parts(to + 2u * word(12u), n - column, s2); }
  if (row + 3u < m) { store_parts(to + 3u * word(12u), n - column, s3); }
}

fn store_parts(to: u32, columns: u32, s: Parts) {
  let step = word(13u);
  store_out(to, part0(s));
  if (columns > 1u) { store_out(to + step, part1(s)); }
  if (columns > 2u) { store_out(to + 2u * step, part2(s)); }
  if (columns > 3u) { store_out(to + 3u * step, part3(s)); }
}
