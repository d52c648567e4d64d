// MATMUL: an invocation makes a block of 4 by 4 results from registers. Rows and columns behind the edges are those at
// the edges, which are read and not stored. `Parts` is 4 columns of a row: one vector, or two for complex numbers.
//
// Words: invocations, rows of blocks, columns of blocks, m, n, k, steps of a, b and the output by row and column; the
// layout of the batch.

fn block(i: u32) {
  let rows = word(1u);
  let columns = word(2u);
  let m = word(3u);
  let n = word(4u);
  let k = word(5u);
  let product = i / (rows * columns);
  let rest = i - product * rows * columns;
  let row = (rest / columns) * 4u;
  let column = (rest - (rest / columns) * columns) * 4u;
  let place = locate3(12u, product);
  let a_row = word(6u);
  let a_step = word(7u);
  let b_step = word(8u);
  let b_column = word(9u);
  var a0 = place.x + row * a_row;
  var a1 = place.x + min(row + 1u, m - 1u) * a_row;
  var a2 = place.x + min(row + 2u, m - 1u) * a_row;
  var a3 = place.x + min(row + 3u, m - 1u) * a_row;
  var b0 = place.y + column * b_column;
  var b1 = place.y + min(column + 1u, n - 1u) * b_column;
  var b2 = place.y + min(column + 2u, n - 1u) * b_column;
  var b3 = place.y + min(column + 3u, n - 1u) * b_column;
  var s0 = Parts();
  var s1 = Parts();
  var s2 = Parts();
  var s3 = Parts();
  for (var j = 0u; j < k; j++) {
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
  let to = place.z + row * word(10u) + column * word(11u);
  store_row(to, n - column, s0);
  if (row + 1u < m) { store_row(to + word(10u), n - column, s1); }
  if (row + 2u < m) { store_row(to + 2u * word(10u), n - column, s2); }
  if (row + 3u < m) { store_row(to + 3u * word(10u), n - column, s3); }
}

fn store_row(to: u32, columns: u32, s: Parts) {
  let step = word(11u);
  store_out(to, part0(s));
  if (columns > 1u) { store_out(to + step, part1(s)); }
  if (columns > 2u) { store_out(to + 2u * step, part2(s)); }
  if (columns > 3u) { store_out(to + 3u * step, part3(s)); }
}
