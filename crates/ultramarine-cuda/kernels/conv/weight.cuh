// The gradient of a convolution by its weight as an implicit product: rows are outputs of a group, columns taps and
// channels, and sums go over the places of the output, in parts. Tiles as in conv/product.cuh, with the sum's axis outside.

enum { OUTPUTS = 64, TAPS = 128, WEIGHT_THREADS = OUTPUTS * TAPS / (EACH * EACH) };

// A warp has all rows and 32 columns.
template <class D, int CHUNK> struct WeightCores : WarpTile<1> {
  typedef typename D::T T;
  enum { A_PITCH = OUTPUTS + 8, B_PITCH = TAPS + 8 };
  __device__ __forceinline__ void add(const T *a, const T *b) {
    add_columns_product<D, CHUNK / 2, A_PITCH, B_PITCH>(sum, left_columns<A_PITCH>(a), right_rows<B_PITCH>(b + column));
  }
};

template <class D, int CHUNK> struct WeightThreads {
  typedef typename D::T T;
  enum { PER = 16 / sizeof(T), DOWN = OUTPUTS / EACH, WIDE = TAPS / EACH, A_PITCH = OUTPUTS, B_PITCH = TAPS };
  T sum[EACH][EACH];
  int row, column;

  __device__ __forceinline__ void begin() {
    row = (int)threadIdx.x / WIDE * PER;
    column = (int)threadIdx.x % WIDE * PER;
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
      for (int j = 0; j < EACH; j++) sum[i][j] = 0;
  }
  __device__ __forceinline__ void add(const T *a, const T *b) {
#pragma unroll
    for (int k = 0; k < CHUNK / (int)sizeof(T); k++) {
      T rows[EACH], columns[EACH];
#pragma unroll
      for (int i = 0; i < EACH; i += PER) {
        const Vector<T> p = *(const Vector<T> *)(a + k * A_PITCH + row + i * DOWN);
        const Vector<T> q = *(const Vector<T> *)(b + k * B_PITCH + column + i * WIDE);
#pragma unroll
        for (int e = 0; e < PER; e++) rows[i + e] = p.v[e], columns[i + e] = q.v[e];
      }
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sum[i][j] = multiply_add(rows[i], columns[j], sum[i][j]);
    }
  }
  template <class F> __device__ __forceinline__ void each(F store) const {
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
      for (int j = 0; j < EACH; j++)
        store(row + i / PER * PER * DOWN + i % PER, column + j / PER * PER * WIDE + j % PER, sum[i][j]);
  }
};

template <bool CORES, class D, int CHUNK> struct WeightEngine { typedef WeightThreads<D, CHUNK> E; };
template <class D, int CHUNK> struct WeightEngine<true, D, CHUNK> { typedef WeightCores<D, CHUNK> E; };

// ct is (places, groups, outputs), `pitch` elements from a place to the next, with 16 bytes of outputs together; x has 16
// bytes of channels together. Results are (parts, groups, outputs, taps, channels). Parts have `part` places, a multiple of
// a chunk's.
template <class D, class I, int CHUNK, int STAGES, bool CORES>
INLINE void convolve_weight_tiles(const typename D::T *x, const typename D::T *ct, typename D::A *partial, i64 part,
                                  i64 pitch, const Convolution &s) {
  typedef typename D::T T;
  typedef typename WeightEngine<CORES, D, CHUNK>::E E;
  enum {
    PER = 16 / sizeof(T), DEEP = CHUNK / sizeof(T), A_PARTS = OUTPUTS / PER, B_PARTS = TAPS / PER,
    A_STEP = WEIGHT_THREADS / A_PARTS, B_STEP = WEIGHT_THREADS / B_PARTS, STAGE = DEEP * (E::A_PITCH + E::B_PITCH)
  };
  DYNAMIC_SHARED(T, stages);
  Row<I> *rows = (Row<I> *)(stages + STAGES * STAGE);  // those of two chunks

  const I n_rows = (I)(s.batch * s.out[0] * s.out[1] * s.out[2]), channels = (I)s.channels;
  const I columns = (I)(s.taps[0] * s.taps[1] * s.taps[2]) * channels;
  const u64 across = ((u64)columns + TAPS - 1) / TAPS, down = ((u64)s.outputs + OUTPUTS - 1) / OUTPUTS;
  u64 block = blockIdx.x;
  const I column = (I)(block % across * TAPS), output = (I)(block / across % down * OUTPUTS);
  block /= across * down;
  const I group = (I)(block % (u64)s.groups), share = (I)(block / (u64)s.groups);
  const I first = share * (I)part, last = first + (I)part < n_rows ? first + (I)part : n_rows;

  const int a_lane = (int)threadIdx.x % A_PARTS, a_line = (int)threadIdx.x / A_PARTS;
  const int b_lane = (int)threadIdx.x % B_PARTS, b_line = (int)threadIdx.x / B_PARTS;
  const bool a_there = output + a_lane * PER < (I)s.outputs;
  const T *cts = ct + group * s.outputs + output + a_lane * PER;
  Tap<I> tap;
  tap.begin(s, column + b_lane * PER, channels);
  const bool b_there = tap.is_there(s);
  const T *inputs = x + group * s.x[4] + tap.offset(s);

  // The rows of a chunk are found while the one before it is loaded.
  auto find = [&](I from) {
    const int r = (int)threadIdx.x;
    i64 unused;
    if (r < DEEP && from < last)
      rows[(int)((from - first) / DEEP % 2) * DEEP + r] = from + r < last ? row_of<I>(s, from + r, unused) : no_row<I>();
  };
  auto load = [&](I from) {
    if (from < last) {
      const int chunk = (int)((from - first) / DEEP);
      T *a = stages + chunk % STAGES * STAGE, *b = a + DEEP * E::A_PITCH;
#pragma unroll
      for (int k = a_line; k < DEEP; k += A_STEP) {
        const bool there = a_there && from + k < last;
        copy_async(place_of(a + k * E::A_PITCH + a_lane * PER), there ? cts + (from + k) * pitch : ct, there);
      }
#pragma unroll
      for (int k = b_line; k < DEEP; k += B_STEP) {
        const Row<I> row = rows[chunk % 2 * DEEP + k];
        const bool there = b_there && tap.meets(s, row);
        copy_async<true>(place_of(b + k * E::B_PITCH + b_lane * PER), there ? inputs + row.from : x, there);
      }
    }
    commit_copies();
  };

  E engine;
  engine.begin();
  find(first);
#pragma unroll
  for (int stage = 0; stage < STAGES - 1; stage++) {
    __syncthreads();
    load(first + stage * DEEP);
    find(first + (stage + 1) * DEEP);
  }
  int stage = 0;
  for (I from = first; from < last; from += DEEP) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    load(from + (STAGES - 1) * DEEP);
    find(from + STAGES * DEEP);
    const T *a = stages + stage * STAGE;
    engine.add(a, a + DEEP * E::A_PITCH);
    stage = stage + 1 < STAGES ? stage + 1 : 0;
  }

  Target<D, I> to = {};
  to.partial = partial + (((i64)share * s.groups + group) * s.outputs + output) * columns + column;
  to.pitch = columns;
  to.rows = (I)s.outputs - output;
  to.columns = columns - column;
  engine.each(to);
}
