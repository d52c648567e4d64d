// Products whose items choose their matrices: which rows of x, and which matrix of the second factor, a tile has. Rows that
// meet one matrix share tiles, so that the matrix is read once for many of them.

// A request: operands, sizes and strides in elements, those of matrices first.
struct Grouped {
  const void *x, *factor, *scales, *biases;
  const float *global_scales;
  const i32 *lhs, *rhs;  // indices, or NULL; segments are rhs
  void *out;
  const i32 *starts, *order;  // of LISTED
  i64 items, rows, columns, depth;     // t, m, n, k
  i64 x_count, factor_count;           // matrices
  i64 x_step[3], factor_step[3], scale_step[3], bias_step[3], out_step[3];
  i64 global_step, lhs_step, rhs_step[2];
};

// TOGETHER: one matrix is met by all rows, those of an item behind those of the one before. APART: tiles are cut from items.
// SORTED: rows of the items that meet a matrix lie together. LISTED: as SORTED, by a list of the items that was made before.
// SEGMENTS: as APART, over parts of the depth.
enum Arrangement { TOGETHER, APART, SORTED, LISTED, SEGMENTS };

INLINE i64 within(i64 index, i64 count) {
  if (index < 0) index += count;
  return index < 0 ? 0 : index >= count ? count - 1 : index;
}
INLINE i64 x_matrix(const Grouped &s, i64 item) { return s.lhs ? within(s.lhs[item * s.lhs_step], s.x_count) : item; }
INLINE i64 factor_matrix(const Grouped &s, i64 item) {
  return s.rhs ? within(s.rhs[item * s.rhs_step[0]], s.factor_count) : item;
}
INLINE i64 row_offset(const Grouped &s, i32 row) {
  const i32 item = row / (i32)s.rows;
  return x_matrix(s, item) * s.x_step[0] + (row - item * (i32)s.rows) * s.x_step[1];
}
INLINE i64 out_offset(const Grouped &s, i32 row) {
  const i32 item = row / (i32)s.rows;
  return item * s.out_step[0] + (row - item * (i32)s.rows) * s.out_step[1];
}

// The rows of a tile: item times rows of an item, plus row; -1 where there is none.
template <int ROWS> struct Tile {
  i32 matrix;       // of the second factor; -1: the tile is empty
  i32 first, last;  // of its rows among those that meet the matrix
  i32 begin, end;   // of the depth
  i32 warps[32];
  i32 row[ROWS];
};

// Counts the items that meet each matrix.
template <int THREADS> INLINE void count_items(const Grouped &s, i32 *counts) {
  for (i32 e = (i32)threadIdx.x; e < (i32)s.factor_count; e += THREADS) counts[e] = 0;
  __syncthreads();
#pragma unroll 4
  for (i32 i = (i32)threadIdx.x; i < (i32)s.items; i += THREADS) atomicAdd(&counts[factor_matrix(s, i)], 1);
  __syncthreads();
}

// The sum of a value of this lane and of the lower ones.
INLINE i32 sum_below(i32 value) {
#pragma unroll
  for (int step = 1; step < WARP; step *= 2) {
    const i32 lower = __shfl_up_sync(0xffffffffu, value, step);
    if (lane_of() >= step) value += lower;
  }
  return value;
}

// Finds which of the tiles of all matrices this one is, `count` being the items that meet one.
template <int ROWS, class F> INLINE void find_sorted(const Grouped &s, i32 number, Tile<ROWS> &tile, F count) {
  const i32 matrices = (i32)s.factor_count, lane = lane_of();
  if (threadIdx.x < WARP) {
    i32 before = 0, found = -1;
    for (i32 base = 0; base < matrices && found < 0; base += WARP) {
      const i32 e = base + lane, met = e < matrices ? count(e) * (i32)s.rows : 0, tiles = (met + ROWS - 1) / ROWS;
      const i32 sum = sum_below(tiles);
      const u32 beyond = __ballot_sync(0xffffffffu, number < before + sum);
      if (beyond) {
        found = __ffs((int)beyond) - 1;
        if (lane == found) {
          tile.matrix = e;
          tile.first = (number - (before + sum - tiles)) * ROWS;
          tile.last = min(tile.first + ROWS, met) - 1;
        }
      }
      before += __shfl_sync(0xffffffffu, sum, WARP - 1);
    }
    if (lane == 0 && found < 0) tile.matrix = -1;
  }
  __syncthreads();
}

// Lists the items by the matrices that they meet, for LISTED: one block does.
INLINE void list_items(const Grouped &s, i32 *starts, i32 *order) {
  enum { THREADS = 1024 };
  DYNAMIC_SHARED(i32, counts);
  count_items<THREADS>(s, counts);
  if (threadIdx.x < WARP) {
    i32 before = 0;
    for (i32 e = lane_of(); e - lane_of() < (i32)s.factor_count; e += WARP) {
      const i32 own = e < (i32)s.factor_count ? counts[e] : 0, sum = sum_below(own);
      if (e < (i32)s.factor_count) starts[e] = counts[e] = before + sum - own;
      before += __shfl_sync(0xffffffffu, sum, WARP - 1);
    }
    if (lane_of() == 0) starts[s.factor_count] = before;
  }
  __syncthreads();
#pragma unroll 4
  for (i32 i = (i32)threadIdx.x; i < (i32)s.items; i += THREADS) order[atomicAdd(&counts[factor_matrix(s, i)], 1)] = i;
}

// Lists the rows of a tile that was found. Each warp looks at a part of the items, whose matches it counts first.
template <int ROWS, int THREADS> INLINE void list_sorted(const Grouped &s, Tile<ROWS> &tile) {
  enum { WARPS = THREADS / WARP };
  const i32 items = (i32)s.items, rows = (i32)s.rows, lane = lane_of(), warp = (i32)threadIdx.x / WARP;
  const i32 part = (items + THREADS - 1) / THREADS * WARP, begin = warp * part, end = min(begin + part, items);
  auto meets = [&](i32 i) { return i < end && factor_matrix(s, i) == tile.matrix; };
  i32 rank = 0;
#pragma unroll 4
  for (i32 i = begin; i < end; i += WARP) rank += __popc(__ballot_sync(0xffffffffu, meets(i + lane)));
  if (lane == 0) tile.warps[warp] = rank;
  __syncthreads();
  rank = 0;
  for (int w = 0; w < warp; w++) rank += tile.warps[w];
#pragma unroll 4
  for (i32 i = begin; i < end; i += WARP) {
    const bool own = meets(i + lane);
    const u32 all = __ballot_sync(0xffffffffu, own);
    const i32 first = (rank + __popc(all & ((1u << lane) - 1))) * rows;
    if (own && first <= tile.last && first + rows > tile.first)
      for (i32 r = max(first, tile.first); r < first + rows && r <= tile.last; r++)
        tile.row[r - tile.first] = (i + lane) * rows + r - first;
    rank += __popc(all);
  }
}

// Finds what a tile has; false: nothing. `counts` is memory for the numbers of SORTED. All threads of the block meet here.
template <Arrangement HOW, int ROWS, int THREADS>
INLINE bool find_tile(const Grouped &s, i32 number, Tile<ROWS> &tile, i32 *counts) {
  const i32 rows = (i32)s.rows;
  if (threadIdx.x == 0) {
    tile.begin = 0;
    tile.end = (i32)s.depth;
  }
  for (i32 r = (i32)threadIdx.x; r < ROWS; r += THREADS) tile.row[r] = -1;
  if (HOW == SORTED) {
    count_items<THREADS>(s, counts);
    find_sorted(s, number, tile, [&](i32 e) { return counts[e]; });
    if (tile.matrix < 0) return false;
    list_sorted<ROWS, THREADS>(s, tile);
  } else if (HOW == LISTED) {
    find_sorted(s, number, tile, [&](i32 e) { return s.starts[e + 1] - s.starts[e]; });
    if (tile.matrix < 0) return false;
    for (i32 r = (i32)threadIdx.x; r <= tile.last - tile.first; r += THREADS) {
      const i32 row = tile.first + r, item = s.order[s.starts[tile.matrix] + row / rows];
      tile.row[r] = item * rows + row % rows;
    }
  } else {
    const i32 each = HOW == TOGETHER ? (i32)s.items * rows : rows, tiles = (each + ROWS - 1) / ROWS;
    const i32 item = HOW == TOGETHER ? 0 : number / tiles, first = (number - item * tiles) * ROWS;
    for (i32 r = (i32)threadIdx.x; r < ROWS && first + r < each; r += THREADS) tile.row[r] = item * rows + first + r;
    if (threadIdx.x == 0) {
      tile.matrix = HOW == SEGMENTS ? 0 : (i32)factor_matrix(s, item);
      if (HOW == SEGMENTS) {
        const i32 *segment = s.rhs + item * s.rhs_step[0];
        tile.begin = (i32)min(max((i64)segment[0], 0ll), s.depth);
        tile.end = (i32)min(max((i64)segment[s.rhs_step[1]], 0ll), s.depth);
      }
    }
  }
  __syncthreads();
  return true;
}
