// Products of a tile's rows on tensor cores. Columns of the second factor are the left operand, so that numbers that are
// unpacked in registers are multiplied where they are: a group of four warps has 64 of them, and meets all ROWS of the tile.
// Both factors pass through shared memory, DEEP of the depth at a time. WARPGROUPS: the four warps drive the cores together;
// their products run on behind a barrier, so stages are overwritten one step later than they could be without.

enum { DEEP = 64 };

// The column, among those of the block, of this lane's upper row of fragments.
INLINE int own_column() { return (int)threadIdx.x / WARP * 16 + lane_of() / 4; }

// Where a thread's part of rows that are copied begins.
INLINE int own_part() { return (int)threadIdx.x % 8 * 8; }

// c += a b, for 16 of the depth: b's columns are rows of x.
template <class D, bool WARPGROUPS, int ROWS>
INLINE void multiply_rows_of_x(float (&c)[1][ROWS / 8][4], const u32 (&a)[4], const u16 *x, int step) {
  if constexpr (WARPGROUPS) {
    multiply_group<D, false>(c, a, advanced(matrix_at(x, ROWS), step * 32), true);
  } else {
    const int row = lane_of() % 8 + lane_of() / 16 * 8, part = step * 2 + lane_of() / 8 % 2;
#pragma unroll
    for (int j = 0; j < ROWS / 8; j += 2) {
      u32 b[4];
      load_matrices(b, place_of(x + Swizzled<ROWS>::at(row + j * 8, part * 8)));
      const u32 left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
      multiply_add<D>(c[0][j], a, left);
      multiply_add<D>(c[0][j + 1], a, right);
    }
  }
}

// Copies a quarter of COUNT rows of DEEP elements, each thread the same part of some: `offset` says where a row begins behind
// `base`, which is of the thread's part, and `there` whether there is one; else it is zeros.
template <int COUNT, int THREADS, class T, class O, class F>
INLINE void copy_rows(u16 *to, int quarter, const T *base, O offset, F there) {
  enum { DOWN = THREADS / 8, EACH = (COUNT + DOWN - 1) / DOWN };
  static_assert(DOWN % 8 == 0, "rows of a thread are permuted alike");
  const int first = (int)threadIdx.x / 8;
  u16 *own = to + Swizzled<COUNT>::at(first, own_part());
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int row = first + i * DOWN;
    if (i * 4 / EACH == quarter && (COUNT % DOWN == 0 || row < COUNT))
      copy_async(place_of(own + i * DOWN * PANEL), base + offset(row), there(row));
  }
}

// A source is a second factor's matrix: `copy` makes a quarter of a step's copies to BYTES of a stage, `begin` follows when a
// step is there, `fragment` gives 16 of its depth as a left operand, and `finish` is for sums. `aside` is memory of its own.

// Elements as they are, whose depth lies together.
template <class D, int GROUPS> struct ByDepth {
  typedef typename D::T T;
  enum { WIDE = GROUPS * 64, BYTES = WIDE * DEEP * 2 };
  const T *from;
  i64 along;
  i32 columns;
  __device__ __forceinline__ ByDepth(const Grouped &s, i32 matrix, i32 column) {
    along = s.factor_step[2];
    from = (const T *)s.factor + matrix * s.factor_step[0] + column * along;
    columns = (i32)s.columns - column;
  }
  __device__ __forceinline__ void copy(char *to, int quarter, i32 start, i32 depth) const {
    // Columns beyond the last are copies of it, which are not stored.
    const bool there = own_part() < depth - start;
    copy_rows<WIDE, GROUPS * 128>((u16 *)to, quarter, from + (there ? start + own_part() : 0),
                                  [&](int r) { return (u32)min(r, columns - 1) * (u32)along; }, [&](int) { return there; });
  }
  __device__ __forceinline__ void begin(const char *, i32, char *) {}
  __device__ __forceinline__ void fragment(u32 (&a)[4], const char *at, const char *, int step) const {
    const int row = (int)threadIdx.x / WARP * 16 + lane_of() % 16, part = step * 2 + lane_of() / 16;
    load_matrices(a, place_of((const u16 *)at + Swizzled<WIDE>::at(row, part * 8)));
  }
  __device__ __forceinline__ float finish(float sum) const { return sum; }
};

// A fragment of rows of the depth: a panel for each group of warps.
INLINE void load_column_fragment(u32 (&a)[4], const u16 *at, int step) {
  const int lane = lane_of(), row = step * 16 + lane % 8 + lane / 16 * 8;
  load_transposed(a, place_of(at + Swizzled<DEEP>::at(row, (int)threadIdx.x / WARP * 16 + lane / 8 % 2 * 8)));
}

// The same where columns lie together.
template <class D, int GROUPS> struct ByColumns {
  typedef typename D::T T;
  enum { BYTES = GROUPS * 64 * DEEP * 2 };
  const T *from;
  i64 down;
  i32 columns;
  __device__ __forceinline__ ByColumns(const Grouped &s, i32 matrix, i32 column) {
    down = s.factor_step[1];
    from = (const T *)s.factor + matrix * s.factor_step[0] + column;
    columns = (i32)s.columns - column;
  }
  __device__ __forceinline__ void copy(char *to, int quarter, i32 start, i32 depth) const {
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      const bool in = g * PANEL + own_part() < columns;
      copy_rows<DEEP, GROUPS * 128>((u16 *)to + g * DEEP * PANEL, quarter, from + (in ? g * PANEL + own_part() : 0),
                                    [&](int r) { return (u32)min(start + r, depth - 1) * (u32)down; },
                                    [&](int r) { return in && start + r < depth; });
    }
  }
  __device__ __forceinline__ void begin(const char *, i32, char *) {}
  __device__ __forceinline__ void fragment(u32 (&a)[4], const char *at, const char *, int step) const {
    load_column_fragment(a, (const u16 *)at, step);
  }
  __device__ __forceinline__ float finish(float sum) const { return sum; }
};

template <class D, class Source, Arrangement HOW, int GROUPS, int ROWS, int STAGES, bool WARPGROUPS>
INLINE void grouped_cores(const Grouped &s) {
  typedef typename D::T T;
  enum {
    THREADS = GROUPS * 128, WIDE = GROUPS * 64, X = ROWS * DEEP * 2, STAGE = (X + Source::BYTES + 1023) / 1024 * 1024,
    BATCH = WARPGROUPS && GROUPS * ROWS < 768 ? 2 : 1  // the largest tiles leave no registers for more
  };
  __shared__ Tile<ROWS> tile;
  __shared__ i64 places[ROWS];
  DYNAMIC_SHARED(u16, memory);
  char *stages = (char *)aligned_panels(memory), *aside = stages + STAGES * STAGE;  // the latter is a source's
  const i32 across = ((i32)s.columns + WIDE - 1) / WIDE, column = (i32)blockIdx.x % across * WIDE, depth = (i32)s.depth;
  if (!find_tile<HOW, ROWS, THREADS>(s, (i32)blockIdx.x / across, tile, (i32 *)memory)) return;
  // Rows that are not there are copies of others, which are not stored: of several, since one alone would be fought for.
  u32 *from = (u32 *)places;
  for (int r = (int)threadIdx.x; r < ROWS; r += THREADS) {
    int other = r;
    while (tile.row[other] < 0) other /= 2;
    from[r] = (u32)row_offset(s, tile.row[other]);
  }
  __syncthreads();

  Source source(s, tile.matrix, column);
  const T *x = (const T *)s.x;
  // A quarter of a step's copies.
  auto load = [&](char *to, i32 start, int quarter) {
    if (start >= depth) return;
    const bool there = own_part() < depth - start;
    copy_rows<ROWS, THREADS>((u16 *)to, quarter, x + (there ? start + own_part() : 0), [&](int r) { return from[r]; },
                             [&](int) { return there; });
    source.copy(to + X, quarter, start, depth);
  };
  float sums[1][ROWS / 8][4];
  clear(sums);
  if constexpr (WARPGROUPS) pin(sums);
#pragma unroll 1
  for (int step = 0; step < STAGES - 2; step++) {
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) load(stages + step * STAGE, step * DEEP, quarter);
    commit_copies();
  }
  char *stage = stages, *next = stages + (STAGES - 2) * STAGE;
  const char *const last = stages + (STAGES - 1) * STAGE;
#pragma unroll 1
  for (i32 start = 0; start < depth; start += DEEP) {
    wait_for_copies<STAGES - 3>();
    if constexpr (WARPGROUPS) show_copies();
    __syncthreads();
    source.begin(stage + X, start, aside);
    // Products of a batch run on while the next one is unpacked, and copies are made.
    u32 a[2][BATCH][4];
#pragma unroll
    for (int j = 0; j < DEEP / 16; j += BATCH) {
      u32(&batch)[BATCH][4] = a[j / BATCH % 2];
#pragma unroll
      for (int i = 0; i < BATCH; i++) source.fragment(batch[i], stage + X, aside, j + i);
      if constexpr (WARPGROUPS) begin_products();
#pragma unroll
      for (int i = 0; i < BATCH; i++)
        multiply_rows_of_x<D, WARPGROUPS, ROWS>(sums, batch[i], (const u16 *)stage, j + i);
      if constexpr (WARPGROUPS) end_products();
#pragma unroll
      for (int i = 0; i < BATCH; i++) load(next, start + (STAGES - 2) * DEEP, j + i);
      if constexpr (WARPGROUPS) wait_for_products<1>();
    }
    commit_copies();
    stage = stage == last ? stages : stage + STAGE;
    next = next == last ? stages : next + STAGE;
  }
  if constexpr (WARPGROUPS) wait_for_products<0>();
  wait_for_copies<0>();
  __syncthreads();

  // By way of shared memory, since the columns of a fragment are rows of the result. Lanes of neighbouring columns exchange
  // halves, so that each has two columns of a row.
  enum { PITCH = WIDE + 8 };
  u16 *results = memory + (lane_of() % 4 * 2 + lane_of() / 4 % 2) * PITCH + own_column() / 2 * 2;
  const u32 select = lane_of() / 4 % 2 ? 0x3276 : 0x5410;
#pragma unroll
  for (int j = 0; j < ROWS / 8; j++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const u32 own = pack_halves<D>(source.finish(sums[0][j][2 * i]), source.finish(sums[0][j][2 * i + 1]));
      const u32 other = __shfl_xor_sync(0xffffffffu, own, 4);
      *(u32 *)(results + j * 8 * PITCH + i * 8) = __byte_perm(own, other, select);
    }
  for (int r = (int)threadIdx.x; r < ROWS; r += THREADS) places[r] = tile.row[r] < 0 ? -1 : out_offset(s, tile.row[r]);
  __syncthreads();
  T *out = (T *)s.out + column * s.out_step[2];
  const bool lines = s.out_step[2] == 1 && ((u64)out | (s.out_step[0] | s.out_step[1] | s.columns) * sizeof(T)) % 16 == 0;
  struct __align__(16) Line { T v[8]; };
  for (int i = (int)threadIdx.x; i < ROWS * WIDE / 8; i += THREADS) {
    const int r = i / (WIDE / 8), c = i % (WIDE / 8) * 8, count = (i32)s.columns - column - c;
    if (places[r] < 0) continue;
    const Line line = *(const Line *)(memory + r * PITCH + c);
    T *to = out + places[r] + c * s.out_step[2];
    if (lines && count >= 8) {
      *(Line *)to = line;
    } else {
#pragma unroll
      for (int e = 0; e < 8; e++)
        if (e < count) to[e * s.out_step[2]] = line.v[e];
    }
  }
}
