// Convolutions of stride 1 whose taps read the input from shared memory. Rows of a tile are outputs that follow one another,
// so what they meet of a plane of taps lies in one range of the input's places: the tile and a halo of border lines. A block
// loads the range once for each chunk, which is a plane of taps and CHUNK bytes of channels. For each tap a row reads the
// place of the range that the tap meets, or zeros outside of the image; only weights are loaded for every tap. Strides of
// places in Convolution::x count places here, not elements.

enum { AXIS_TAPS = 10 };  // of an axis: bits of 32 for three axes

struct Halo {
  i64 pitch;    // elements of the input from a place to the next
  i64 places;   // of a range
  i64 before;   // from the first place of a range to the first row's first tap in the plane
  i64 buffers;  // 2: the next chunk's range is loaded beside this one's products
};

// A row of a tile: where its first tap is in the range, in bytes, and which taps are inside of the image, a bit for each of
// each axis.
struct __align__(8) HaloRow {
  int at;
  u32 inside;
};

template <class I> INLINE u32 taps_inside(const Convolution &s, const Row<I> &row) {
  u32 inside = 0;
#pragma unroll
  for (int d = 0; d < 3; d++)
    for (I t = 0; t < (I)s.taps[d]; t++)
      if (is_inside(row.at[d] + t * (I)s.spread[d], (I)s.in[d])) inside |= 1u << (AXIS_TAPS * d + (int)t);
  return inside;
}

// The products of a tile on tensor cores: each of 4 warps has 16 TILES rows and all columns.
template <class D, int TILES, int COLUMNS, int CHUNK> struct HaloCores {
  enum { WARPS = 4, THREADS = WARPS * WARP, ROWS = WARPS * 16 * TILES, OWN = TILES, PITCH = CHUNK + 16 };
  enum { BYTES = 32, STEPS = CHUNK / BYTES };  // of a row at a time
  float sum[TILES][COLUMNS / 8][4];
  int row;

  __device__ __forceinline__ void begin() {
    row = (int)threadIdx.x / WARP * 16 * TILES;
    clear(sum);
  }
  // The rows that a thread reads, and where in them it begins.
  __device__ __forceinline__ int own(int i) const { return row + i * 16 + lane_of() % 16; }
  __device__ __forceinline__ int begins() const { return lane_of() / 16 * 16; }
  __device__ __forceinline__ void step(const char *shared, const int (&rows)[OWN], const char *weights, int at) {
    u32 a[TILES][4];
#pragma unroll
    for (int i = 0; i < TILES; i++) {
      load_matrices(a[i], place_of(shared) + rows[i] + at * 32);
      round_fragment<D>(a[i]);
    }
    const Place b = right_columns<PITCH / 2>(weights);
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; j += 2) {
      u32 columns[4];
      load_matrices(columns, b + j * 8 * PITCH + at * 32);
      round_fragment<D>(columns);
      multiply_columns<D>(sum, j, a, columns);
    }
  }
  // Hands results to `store`, two neighbours in a row at a time.
  template <class F> __device__ __forceinline__ void each(F store) const {
    const int lane = lane_of();
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
      for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
        for (int half = 0; half < 2; half++)
          store(row + i * 16 + half * 8 + lane / 4, j * 8 + lane % 4 * 2, sum[i][j][2 * half], sum[i][j][2 * half + 1]);
  }
};

// The same by multiply-adds.
template <class D, int COLUMNS, int CHUNK> struct HaloThreads : Threads<D, COLUMNS, CHUNK> {
  typedef Threads<D, COLUMNS, CHUNK> Base;
  enum { ROWS = Base::DOWN * EACH, THREADS = Base::DOWN * Base::WIDE, OWN = EACH };
  enum { BYTES = 16, STEPS = CHUNK / BYTES };

  __device__ __forceinline__ int own(int i) const { return this->row + i * Base::DOWN; }
  __device__ __forceinline__ int begins() const { return 0; }
  __device__ __forceinline__ void step(const char *shared, const int (&rows)[OWN], const char *weights, int at) {
    const char *from[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) from[i] = shared + rows[i];
    Base::template step<false>(from, weights, at);
  }
};

template <bool CORES, class D, int TILES, int COLUMNS, int CHUNK> struct HaloEngine {
  typedef HaloThreads<D, COLUMNS, CHUNK> E;
};
template <class D, int TILES, int COLUMNS, int CHUNK> struct HaloEngine<true, D, TILES, COLUMNS, CHUNK> {
  typedef HaloCores<D, TILES, COLUMNS, CHUNK> E;
};

// Results of a tile, by way of shared memory: 16 bytes of a row for each thread.
template <class D, class I, int COLUMNS, class E>
INLINE void store_vectors(const E &engine, char *tile, const Target<D, I> &to) {
  typedef typename D::T T;
  enum { PER = 16 / sizeof(T), PIECES = COLUMNS / PER };
  engine.each([&](int r, int c, typename D::A first, typename D::A second) {
    T *pair = (T *)(tile + r * E::PITCH) + c;
    pair[0] = D::down(first);
    pair[1] = D::down(second);
  });
  __syncthreads();
  for (int i = (int)threadIdx.x; i < E::ROWS * PIECES; i += E::THREADS) {
    const int r = i / PIECES, c = i % PIECES * PER;
    if (r < to.rows && c < to.columns)
      *(Vector<T> *)(to.y + to.places[r] + c) = *(const Vector<T> *)((const T *)(tile + r * E::PITCH) + c);
  }
}

// A block makes a tile of a group, or a part of its sums: `part` chunks. x and w are as for convolve_tiles. UNROLLED: the
// products of a tap in one piece, which takes more registers.
template <class D, class I, int TILES, int COLUMNS, int CHUNK, bool CORES, bool UNROLLED>
INLINE void convolve_halo(const typename D::T *x, const typename D::T *w, typename D::T *y, typename D::A *partial,
                          i64 part, const Halo &halo, const Convolution &s) {
  typedef typename D::T T;
  typedef typename HaloEngine<CORES, D, TILES, COLUMNS, CHUNK>::E E;
  enum {
    PARTS = CHUNK / 16, PER = 16 / sizeof(T), DEEP = CHUNK / sizeof(T), PITCH = E::PITCH, STEP = E::THREADS / PARTS,
    STAGE = COLUMNS * PITCH, ROWS_AT = 2 * STAGE, ZEROS = ROWS_AT + E::ROWS * sizeof(HaloRow), RANGES = ZEROS + PITCH
  };
  DYNAMIC_SHARED(char, shared);  // weights of two taps, rows, zeros, ranges

  const I n_rows = (I)(s.batch * s.out[0] * s.out[1] * s.out[2]), channels = (I)s.channels;
  const int taps = (int)(s.taps[1] * s.taps[2]), places = (int)halo.places;
  const I plane = taps * channels, depth = (I)s.taps[0] * plane;
  const I per_plane = (channels + DEEP - 1) / DEEP, chunks = (I)s.taps[0] * per_plane;
  const TileAt<I> tile(s, n_rows, E::ROWS, COLUMNS);
  const I begin = tile.share * (I)part, end = begin + (I)part < chunks ? begin + (I)part : chunks;

  E engine;
  engine.begin();
  for (int i = (int)threadIdx.x; i < PITCH / 4; i += E::THREADS) ((u32 *)(shared + ZEROS))[i] = 0;
  i64 unused;
  const I from = row_of<I>(s, tile.row, unused).from - (I)halo.before;
  HaloRow *rows = (HaloRow *)(shared + ROWS_AT);
  for (int r = (int)threadIdx.x; r < E::ROWS; r += E::THREADS) {
    const I index = tile.row + r;
    const Row<I> row = index < n_rows ? row_of<I>(s, index, unused) : no_row<I>();
    rows[r].at = index < n_rows ? (int)(row.from - from) * PITCH : 0;
    rows[r].inside = index < n_rows ? taps_inside(s, row) : 0;
  }

  const int lane = (int)threadIdx.x % PARTS, line = (int)threadIdx.x / PARTS;
  const int columns = tile.column + COLUMNS < (I)s.outputs ? (int)COLUMNS : (int)((I)s.outputs - tile.column);
  const I all = (I)(s.batch * s.in[0] * s.in[1] * s.in[2]), pitch = (I)halo.pitch;
  const T *inputs = x + tile.group * s.x[4] + lane * PER;
  const T *weights = w + (tile.group * s.outputs + tile.column + line) * (i64)depth + lane * PER;
  char *const to = shared + line * PITCH + lane * 16;
  const bool ahead = halo.buffers > 1;
  // A chunk: its plane of taps, first channel, and range in shared memory.
  struct Chunk {
    I z, channel;
    int range;
  };
  auto after = [&](Chunk chunk) {
    chunk.channel += DEEP;
    if (chunk.channel >= channels) chunk.channel = 0, chunk.z++;
    if (ahead) chunk.range = 2 * RANGES + places * PITCH - chunk.range;
    return chunk;
  };
  auto load_range = [&](const Chunk &chunk, int first, int last) {
    const I start = from + chunk.z * (I)(s.spread[0] * s.x[1]);
    const bool inside = chunk.channel + lane * PER < channels;
    for (int p = first + line; p < last; p += STEP)
      copy_async(place_of(to + chunk.range + (p - line) * PITCH), inputs + (start + p) * pitch + chunk.channel,
                 inside && is_inside(start + p, all));
  };
  auto load_weights = [&](const Chunk &chunk, int tap, int stage) {
    const I along = chunk.z * plane + tap * channels + chunk.channel;
    const int there = chunk.channel + lane * PER < channels ? columns - line : 0;
#pragma unroll
    for (int c = 0; c < COLUMNS; c += STEP)
      copy_async<true>(place_of(to + stage * STAGE + c * PITCH), weights + c * depth + along, c < there);
  };

  const int slice = (places + taps - 1) / taps;
  int stage = 0;
  const I first_z = divide_whole(begin, per_plane);
  Chunk chunk = {first_z, (begin - first_z * per_plane) * DEEP, RANGES};
  load_range(chunk, 0, places);
  load_weights(chunk, 0, stage);
  commit_copies();
  for (I i = begin; i < end; i++) {
    const Chunk next = after(chunk);
    const bool more = i + 1 < end;
    const I left = channels - chunk.channel;
    const int steps = left < DEEP ? (int)(left * (int)sizeof(T) + E::BYTES - 1) / E::BYTES : (int)E::STEPS;
    int v = 0, u = 0;
    for (int tap = 0; tap < taps; tap++) {
      wait_for_copies<0>();
      __syncthreads();
      if (tap + 1 < taps) load_weights(chunk, tap + 1, 1 - stage);
      else if (more) load_weights(next, 0, 1 - stage);
      if (ahead && more) load_range(next, tap * slice, (tap + 1) * slice < places ? (tap + 1) * slice : places);
      commit_copies();

      const u32 bits = 1u << chunk.z | 1u << (AXIS_TAPS + v) | 1u << (2 * AXIS_TAPS + u);
      const int shift = chunk.range + (v * (int)(s.spread[1] * s.x[2]) + u * (int)s.spread[2]) * PITCH;
      int from_rows[E::OWN];
#pragma unroll
      for (int r = 0; r < E::OWN; r++) {
        const HaloRow row = rows[engine.own(r)];
        from_rows[r] = ((row.inside & bits) == bits ? row.at + shift : (int)ZEROS) + engine.begins();
      }
      const char *of_tap = shared + stage * STAGE;
      if (UNROLLED && steps == E::STEPS) {
#pragma unroll
        for (int step = 0; step < E::STEPS; step++) engine.step(shared, from_rows, of_tap, step);
      } else {
#pragma unroll 1
        for (int step = 0; step < steps; step++) engine.step(shared, from_rows, of_tap, step);
      }
      if (++u == (int)s.taps[2]) u = 0, v++;
      stage = 1 - stage;
    }
    if (!ahead && more) {
      __syncthreads();
      load_range(next, 0, places);
      commit_copies();
    }
    chunk = next;
  }

  __syncthreads();
  i64 *row_places = (i64 *)rows;
  for (int r = (int)threadIdx.x; r < E::ROWS && tile.row + r < n_rows; r += E::THREADS)
    row_of<I>(s, tile.row + r, row_places[r]);
  __syncthreads();
  Target<D, I> target;
  target.begin(s, tile, n_rows, y, partial, row_places);
  if constexpr (CORES && COLUMNS * sizeof(T) <= CHUNK) {
    if (!partial && target.columns % PER == 0 && target.fits(s, PER)) {
      store_vectors<D, I, COLUMNS>(engine, shared + RANGES, target);
      return;
    }
  }
  engine.each(target);
}
