// Implicit products by tiles that pass through shared memory, a chunk of the sum ahead (cp.async): CHUNK bytes of a row at
// a time. Neighbouring taps read much the same, so copies go by way of L1. Halves (and float32 as TF32) on tensor cores, the
// others by multiply-adds of a thread.

enum { ROWS = 128, EACH = 8 };  // rows of a tile; results of a thread along each axis

// Sums of a warp on tensor cores: 64 rows and 32 columns of a tile that is DOWN warps high.
template <int DOWN> struct WarpTile {
  enum { TILES = 4, WIDE = 4 };
  float sum[TILES][WIDE][4];
  int row, column;

  __device__ __forceinline__ void begin() {
    const int warp = (int)threadIdx.x / WARP;
    row = warp % DOWN * 64;
    column = warp / DOWN * 32;
    clear(sum);
  }
  // Hands results to `store`, two neighbours in a row at a time.
  template <class F> __device__ __forceinline__ void each(F store) const {
    const int lane = lane_of();
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
      for (int j = 0; j < WIDE; j++)
#pragma unroll
        for (int half = 0; half < 2; half++)
          store(row + i * 16 + half * 8 + lane / 4, column + j * 8 + lane % 4 * 2, sum[i][j][2 * half],
                sum[i][j][2 * half + 1]);
  }
};

// The products of a tile by tensor cores.
template <class D, int COLUMNS, int CHUNK> struct Cores : WarpTile<ROWS / 64> {
  enum { PITCH = CHUNK + 16 };
  __device__ __forceinline__ void add(const char *a, const char *b) {
    add_rows_product<D, CHUNK / 2, PITCH / 2>(sum, left_rows<PITCH / 2>(a + row * PITCH),
                                              right_columns<PITCH / 2>(b + column * PITCH));
  }
};

// The same by multiply-adds: a thread has EACH rows and EACH columns, which lie apart: neighbours read neighbours, which are
// in different banks.
template <class D, int COLUMNS, int CHUNK> struct Threads {
  typedef typename D::T T;
  enum { WIDE = COLUMNS / EACH, DOWN = ROWS / EACH, PER = 16 / sizeof(T), PITCH = CHUNK + 16 };
  T sum[EACH][EACH];
  int row, column;

  // A warp has 8 threads one way and 4 the other, so that half of it reads 128 different bytes and pairs read the same.
  __device__ __forceinline__ void begin() {
    const int lane = lane_of(), warp = (int)threadIdx.x / WARP, of_8 = lane / 2 % 8, of_4 = lane % 2 + lane / 16 * 2;
    row = WIDE < 8 ? warp * 8 + of_8 : warp / (WIDE / 8) * 4 + of_4;
    column = WIDE < 8 ? of_4 : warp % (WIDE / 8) * 8 + of_8;
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
      for (int j = 0; j < EACH; j++) sum[i][j] = 0;
  }
  // Adds 16 bytes of each row. Those of rows, or of columns, are held while the others pass: as each kernel was faster.
  template <bool HOLDS_ROWS>
  __device__ __forceinline__ void step(const char *const (&a)[EACH], const char *b, int at) {
    auto of_row = [&](int i) { return *(const Vector<T> *)(a[i] + at * 16); };
    auto of_column = [&](int j) { return *(const Vector<T> *)(b + (column + j * WIDE) * PITCH + at * 16); };
    Vector<T> held[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) held[i] = HOLDS_ROWS ? of_row(i) : of_column(i);
#pragma unroll
    for (int j = 0; j < EACH; j++) {
      const Vector<T> passing = HOLDS_ROWS ? of_column(j) : of_row(j);
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        T &to = HOLDS_ROWS ? sum[i][j] : sum[j][i];
#pragma unroll
        for (int e = 0; e < PER; e++) to = multiply_add(held[i].v[e], passing.v[e], to);
      }
    }
  }
  __device__ __forceinline__ void add(const char *a, const char *b) {
    const char *rows[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) rows[i] = a + (row + i * DOWN) * PITCH;
#pragma unroll
    for (int at = 0; at < CHUNK / 16; at++) step<true>(rows, b, at);
  }
  template <class F> __device__ __forceinline__ void each(F store) const {
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
      for (int j = 0; j < EACH; j++) store(row + i * DOWN, column + j * WIDE, sum[i][j]);
  }
};

template <bool CORES, class D, int COLUMNS, int CHUNK> struct Engine { typedef Threads<D, COLUMNS, CHUNK> E; };
template <class D, int COLUMNS, int CHUNK> struct Engine<true, D, COLUMNS, CHUNK> {
  typedef Cores<D, COLUMNS, CHUNK> E;
};

// The tile of a block: its group, first row and column, and which part of the sums it makes.
template <class I> struct TileAt {
  I group, row, column, share;
  __device__ __forceinline__ TileAt(const Convolution &s, I n_rows, int high, int wide) {
    const u64 across = ((u64)s.outputs + wide - 1) / wide, down = ((u64)n_rows + high - 1) / high;
    u64 block = blockIdx.x;
    column = (I)(block % across * wide);
    row = (I)(block / across % down * high);
    block /= across * down;
    group = (I)(block % (u64)s.groups);
    share = (I)(block / (u64)s.groups);
  }
};

// Where a tile's results go: to y, or to a part's sums.
template <class D, class I> struct Target {
  typedef typename D::T T;
  typedef typename D::A A;
  T *y;
  A *partial;
  const i64 *places;  // of rows in y
  i64 pitch, step;    // of a row of sums; from a column of y to the next
  I rows, columns;    // that there are of the tile
  bool pairs;         // two columns of y are aligned, and go together

  __device__ __forceinline__ void begin(const Convolution &s, const TileAt<I> &tile, I n_rows, T *y_of, A *sums,
                                        const i64 *places_of) {
    pitch = s.groups * s.outputs;
    step = s.y[5];
    y = y_of + tile.group * s.y[4] + tile.column * step;
    partial = sums ? sums + ((i64)tile.share * n_rows + tile.row) * pitch + tile.group * s.outputs + tile.column : sums;
    places = places_of;
    rows = n_rows - tile.row;
    columns = (I)s.outputs - tile.column;
    pairs = fits(s, 2);
  }
  // Columns of y lie together, and so many of them are aligned.
  __device__ __forceinline__ bool fits(const Convolution &s, int together) const {
    bool aligned = step == 1 && (u64)y % (together * sizeof(T)) == 0;
#pragma unroll
    for (int d = 0; d < 4; d++) aligned = aligned && s.y[d] % together == 0;
    return aligned;
  }
  __device__ __forceinline__ void operator()(int r, int c, A value) const {
    if (r >= rows || c >= columns) return;
    if (partial) partial[r * pitch + c] = value;
    else y[places[r] + c * step] = D::down(value);
  }
  __device__ __forceinline__ void operator()(int r, int c, A first, A second) const {
    struct __align__(2 * sizeof(T)) Pair { T v[2]; };
    if (pairs && !partial && r < rows && c + 1 < columns) {
      Pair pair;
      pair.v[0] = D::down(first);
      pair.v[1] = D::down(second);
      *(Pair *)(y + places[r] + c) = pair;
      return;
    }
    (*this)(r, c, first);
    (*this)(r, c + 1, second);
  }
};

// A block makes a tile of a group, or a part of its sums: `part` chunks, of which it writes what they add up to.
// x (n, d, h, w, group, channel) has 16 bytes of channels together; w is (groups, outputs, taps, channels) without gaps.
template <class D, class I, int COLUMNS, int CHUNK, int STAGES, bool CORES>
INLINE void convolve_tiles(const typename D::T *x, const typename D::T *w, typename D::T *y, typename D::A *partial,
                           i64 part, const Convolution &s) {
  typedef typename D::T T;
  typedef typename D::A A;
  enum {
    THREADS = ROWS * COLUMNS / (EACH * EACH), PARTS = CHUNK / 16, PER = 16 / sizeof(T), DEEP = CHUNK / sizeof(T),
    PITCH = CHUNK + 16, STEP = THREADS / PARTS, A_LOADS = ROWS / STEP, B_LOADS = COLUMNS / STEP, STAGE = (ROWS + COLUMNS) * PITCH
  };
  DYNAMIC_SHARED(char, stages);
  Row<I> *rows = (Row<I> *)(stages + STAGES * STAGE);

  const I n_rows = (I)(s.batch * s.out[0] * s.out[1] * s.out[2]), channels = (I)s.channels;
  const I depth = (I)(s.taps[0] * s.taps[1] * s.taps[2]) * channels, chunks = (depth + DEEP - 1) / DEEP;
  const TileAt<I> tile(s, n_rows, ROWS, COLUMNS);
  const I column = tile.column, row = tile.row;
  const I first = tile.share * (I)part, last = first + (I)part < chunks ? first + (I)part : chunks;
  x += tile.group * s.x[4];
  w += (tile.group * s.outputs + column) * (i64)depth;

  for (int r = (int)threadIdx.x; r < ROWS; r += THREADS) {
    i64 unused;
    rows[r] = row + r < n_rows ? row_of<I>(s, row + r, unused) : no_row<I>();
  }
  __syncthreads();
  const int lane = (int)threadIdx.x % PARTS, line = (int)threadIdx.x / PARTS;
  const Row<I> *own = rows + line;
  Tap<I> tap;
  I along = first * DEEP + lane * PER;
  tap.begin(s, along, channels);

  auto load = [&](I chunk) {
    if (chunk < last) {
      char *to = stages + (int)((chunk - first) % STAGES) * STAGE + line * PITCH + lane * 16;
      const bool inside = tap.is_there(s);
      const I offset = tap.offset(s);
#pragma unroll
      for (int l = 0; l < A_LOADS; l++) {
        const Row<I> row = own[l * STEP];
        const bool there = inside && tap.meets(s, row);
        copy_async<true>(place_of(to + l * STEP * PITCH), there ? x + row.from + offset : x, there);
      }
#pragma unroll
      for (int l = 0; l < B_LOADS; l++) {
        const bool there = inside && column + line + l * STEP < (I)s.outputs;
        copy_async<true>(place_of(to + (ROWS + l * STEP) * PITCH), there ? w + (i64)(line + l * STEP) * depth + along : w,
                   there);
      }
      tap.advance(s, DEEP, channels);
      along += DEEP;
    }
    commit_copies();
  };

  typename Engine<CORES, D, COLUMNS, CHUNK>::E engine;
  engine.begin();
#pragma unroll
  for (int stage = 0; stage < STAGES - 1; stage++) load(first + stage);
  int stage = 0;
  for (I chunk = first; chunk < last; chunk++) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    load(chunk + STAGES - 1);
    const char *a = stages + stage * STAGE;
    engine.add(a, a + ROWS * PITCH);
    stage = stage + 1 < STAGES ? stage + 1 : 0;
  }

  wait_for_copies<0>();
  __syncthreads();
  i64 *places = (i64 *)stages;  // the tiles are done
  for (int r = (int)threadIdx.x; r < ROWS && row + r < n_rows; r += THREADS) row_of<I>(s, row + r, places[r]);
  __syncthreads();
  Target<D, I> to;
  to.begin(s, tile, n_rows, y, partial, places);
  engine.each(to);
}
