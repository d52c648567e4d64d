// Products of a tile's rows with any second factor, by multiply-adds: TILE rows and columns of a block pass through shared
// memory, DEEP of the depth at a time. Elements of the factor come from a Source, which knows how they lie.

enum { TILE = 64, DEEP = 16, SIDE = 16, EACH = TILE / SIDE, THREADS = SIDE * SIDE, LOADS = TILE * DEEP / THREADS };

// Elements as they are.
template <class D> struct Plainly {
  const typename D::T *from;
  i64 down, along;
  __device__ __forceinline__ Plainly(const Grouped &s, i32 matrix) {
    from = (const typename D::T *)s.factor + matrix * s.factor_step[0];
    down = s.factor_step[1];
    along = s.factor_step[2];
  }
  __device__ __forceinline__ bool depth_first() const { return down == 1; }
  __device__ __forceinline__ typename D::A at(i32 depth, i32 column) const {
    return D::up(from[depth * down + column * along]);
  }
  __device__ __forceinline__ typename D::A finish(typename D::A sum) const { return sum; }
};

template <class D, class Source, Arrangement HOW> INLINE void grouped_tiles(const Grouped &s) {
  typedef typename D::A A;
  typedef typename D::T T;
  __shared__ A x_tile[DEEP][TILE + 1];
  __shared__ A factor_tile[DEEP][TILE + 1];
  __shared__ Tile<TILE> tile;
  DYNAMIC_SHARED(i32, counts);
  const i32 across = ((i32)s.columns + TILE - 1) / TILE, column = (i32)blockIdx.x % across * TILE;
  if (!find_tile<HOW, TILE, THREADS>(s, (i32)blockIdx.x / across, tile, counts)) return;
  const Source source(s, tile.matrix);
  const int x = (int)threadIdx.x % SIDE, y = (int)threadIdx.x / SIDE;
  const bool depth_first = source.depth_first();
  const T *rows[LOADS];
#pragma unroll
  for (int l = 0; l < LOADS; l++) {
    const i32 row = tile.row[y + l * SIDE];
    rows[l] = row < 0 ? nullptr : (const T *)s.x + row_offset(s, row);
  }
  A sum[EACH][EACH], x_next[LOADS], next[LOADS];
#pragma unroll
  for (int i = 0; i < EACH; i++)
#pragma unroll
    for (int j = 0; j < EACH; j++) sum[i][j] = 0;
  // Which element of the factor's tile a load fetches: neighbours go along the axis that lies together.
  auto depth_of = [&](int l) { return depth_first ? x : ((int)threadIdx.x + l * THREADS) / TILE; };
  auto column_of = [&](int l) { return depth_first ? y + l * SIDE : (int)threadIdx.x % TILE; };
  auto fetch = [&](i32 start) {
#pragma unroll
    for (int l = 0; l < LOADS; l++) {
      const i32 depth = start + depth_of(l), at = column + column_of(l);
      x_next[l] = rows[l] && start + x < tile.end ? D::up(rows[l][(start + x) * s.x_step[2]]) : (A)0;
      next[l] = depth < tile.end && at < (i32)s.columns ? source.at(depth, at) : (A)0;
    }
  };
  if (tile.begin < tile.end) fetch(tile.begin);
  for (i32 start = tile.begin; start < tile.end; start += DEEP) {
    __syncthreads();
#pragma unroll
    for (int l = 0; l < LOADS; l++) {
      x_tile[x][y + l * SIDE] = x_next[l];
      factor_tile[depth_of(l)][column_of(l)] = next[l];
    }
    __syncthreads();
    if (start + DEEP < tile.end) fetch(start + DEEP);
#pragma unroll
    for (int depth = 0; depth < DEEP; depth++) {
      A left[EACH], right[EACH];
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        left[i] = x_tile[depth][y + i * SIDE];
        right[i] = factor_tile[depth][x + i * SIDE];
      }
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sum[i][j] = multiply_add(left[i], right[j], sum[i][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const i32 row = tile.row[y + i * SIDE];
    if (row < 0) continue;
    T *to = (T *)s.out + out_offset(s, row);
#pragma unroll
    for (int j = 0; j < EACH; j++) {
      const i32 at = column + x + j * SIDE;
      if (at < (i32)s.columns) to[at * s.out_step[2]] = D::down(source.finish(sum[i][j]));
    }
  }
}
