// The words of products of matrices: workgroups, rows and columns of tiles, m, n, k, the length of a split of k, splits,
// steps of a by row and by k, of b by k and by column, of the output by row, column and split; the layout of the batch.

// A tile of a product: its number of row and column, the places of the matrices, the elements of k that it sums.
fn job_of(g: u32) -> Job {
  let rows = word(1u);
  let columns = word(2u);
  let k = word(5u);
  let length = word(6u);
  let splits = word(7u);
  let above = g / (rows * columns);
  let rest = g - above * rows * columns;
  let product = above / splits;
  let split = above - product * splits;
  // Bands of 8 rows of tiles, so that tiles at work together share rows and columns in the cache.
  let band = rest / (8u * columns);
  let height = min(rows - band * 8u, 8u);
  let within = rest - band * 8u * columns;
  let column = within / height;
  let row = band * 8u + within - column * height;
  let place = locate3(15u, product) + vec3<u32>(0u, 0u, split * word(14u));
  let first = split * length;
  return Job(row, column, place, first, first + min(length, k - first));
}

// The sums of the splits, in order. Words: results, splits, results of a split; the layout of the output.
fn merge_splits(i: u32) {
  let splits = word(1u);
  let apart = word(2u);
  var total = load_part(i);
  for (var s = 1u; s < splits; s++) { total = total + load_part(s * apart + i); }
  store_out(locate1(3u, i), total);
}
