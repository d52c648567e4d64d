/* MATMUL: a tile of TILE by TILE results per group, each work-item EACH by EACH of them; operands pass through local
 * memory. Strides are any. The halves are widened on the way in and narrowed once at the end. */

#define TILE 32
#define SIDE 8
#define EACH 4
#define DEPTH 16

#ifdef IS_COMPLEX
#define MULTIPLY_ADD(c, a, b) (c) += complex_multiply((a), (b))
#else
#define MULTIPLY_ADD(c, a, b) (c) += (a) * (b)
#endif

#ifdef IS_INT
typedef U Element; /* products and sums wrap */
#else
typedef A Element;
#endif

/* `l` walks the batch: a, b, out. The rest are row and column steps. */
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void matmul(
    __global const T *a, __global const T *b, __global T *out, ulong m, ulong n, ulong k, long a_row, long a_col,
    long b_row, long b_col, long out_row, long out_col, ulong first, const Layout l) {
  __local Element a_tile[DEPTH][TILE + 1];
  __local Element b_tile[DEPTH][TILE + 1];
  int x = get_local_id(0), y = get_local_id(1);
  ulong row = get_group_id(1) * TILE, column = get_group_id(0) * TILE;
  long at[3];
  locate(&l, first + get_group_id(2), 3, at);
  Element sum[EACH][EACH];
  for (int i = 0; i < EACH; i++) {
    for (int j = 0; j < EACH; j++) sum[i][j] = (Element)(0);
  }
  for (ulong start = 0; start < k; start += DEPTH) {
    for (int e = y * SIDE + x; e < TILE * DEPTH; e += SIDE * SIDE) {
      int depth = e % DEPTH, i = e / DEPTH;
      bool inside = start + depth < k && row + i < m;
      a_tile[depth][i] = inside ? (Element)up(a[at[0] + (long)(row + i) * a_row + (long)(start + depth) * a_col])
                                : (Element)(0);
      depth = e / TILE;
      i = e % TILE;
      inside = start + depth < k && column + i < n;
      b_tile[depth][i] = inside ? (Element)up(b[at[1] + (long)(start + depth) * b_row + (long)(column + i) * b_col])
                                : (Element)(0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int depths = (int)min((ulong)DEPTH, k - start);
    for (int depth = 0; depth < depths; depth++) {
      Element left[EACH], right[EACH];
      for (int i = 0; i < EACH; i++) left[i] = a_tile[depth][y + i * SIDE];
      for (int j = 0; j < EACH; j++) right[j] = b_tile[depth][x + j * SIDE];
      for (int i = 0; i < EACH; i++) {
        for (int j = 0; j < EACH; j++) MULTIPLY_ADD(sum[i][j], left[i], right[j]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < EACH; i++) {
    for (int j = 0; j < EACH; j++) {
      ulong r = row + y + i * SIDE, c = column + x + j * SIDE;
      if (r < m && c < n) out[at[2] + (long)r * out_row + (long)c * out_col] = down((A)sum[i][j]);
    }
  }
}
