// ATTENTION in blocks of queries and keys (Dao, FlashAttention-2: Faster attention with better parallelism and work
// partitioning, 2023): scores stay in registers. The parts of the kernels that do not depend on how products are computed:
// sizes, loads, and the softmax of rows that are spread over registers as mma.cuh's fragments are.

// Sizes and strides, in elements. A unit is what blocks of rows are cut from: the queries of one head or, where they are
// few, those of all heads of a key head, one behind the other.
struct Attention {
  i32 batches, span;         // and heads of a unit
  i32 heads, group;          // query heads, and those of a key head
  i32 queries, keys, size, value_size;
  i64 causal;
  double scale, log2_scale;
  i64 q[4], k[4], v[4], out[4], lse[3], mask[4], sinks[2], lengths[1];
};

enum { NO_MASK, BOOL_MASK, ADDED_MASK };

// In this type of sums.
#define LOG2_E ((A)1.4426950408889634)
#define LN_2 ((A)0.6931471805599453)
#define LOWEST (lowest((A)0))
#define INFINITE ((A)__int_as_float(0x7f800000))

INLINE float lowest(float) { return -3.4028234663852886e38f; }
INLINE double lowest(double) { return -1.7976931348623157e308; }
INLINE float larger(float a, float b) { return fmaxf(a, b); }
INLINE double larger(double a, double b) { return fmax(a, b); }
INLINE float log_2(float x) { return log2f(x); }
INLINE double log_2(double x) { return log2(x); }
INLINE double power_of_2(double x) { return exp2(x); }

// Where a row of a unit is.
struct Query { i32 head, query; };

INLINE Query query_of_row(const Attention &s, i32 unit_head, i32 row) {
  Query p;
  p.head = unit_head + row / s.queries;
  p.query = row % s.queries;
  return p;
}

// Which block of which unit this one is: some units at a time, whose tensors stay in the L2 cache, and of these the first
// blocks first, which have most to do.
struct Placed { i32 unit, block; };

INLINE Placed placed_of(i32 units, i32 blocks) {
  enum { TOGETHER = 16 };
  i32 before = (i32)blockIdx.x / (TOGETHER * blocks) * TOGETHER, of_them = min(TOGETHER, units - before);
  i32 place = (i32)blockIdx.x - before * blocks;
  Placed placed;
  placed.unit = before + place % of_them;
  placed.block = place / of_them;
  return placed;
}

// Rows of a unit that a block has, and the keys that they see.
struct Rows {
  i32 batch, head, first, last, length, needed;
};

INLINE Rows rows_of(const Attention &s, const i32 *lengths, i32 unit, i32 first, i32 most) {
  Rows r;
  i32 per_batch = s.heads / s.span, rows = s.span * s.queries;
  r.batch = unit / per_batch;
  r.head = unit % per_batch * s.span;
  r.first = first;
  r.last = min(first + most, rows) - 1;
  r.length = lengths ? min(lengths[r.batch * s.lengths[0]], s.keys) : s.keys;
  r.needed = r.length;
  if (s.causal) {
    i32 latest = first / s.queries == r.last / s.queries ? r.last % s.queries : s.queries - 1;
    r.needed = min(r.length, latest + r.length - s.queries + 1);
  }
  return r;
}

// The keys that a query sees by its place.
INLINE i32 end_of(const Attention &s, i32 query, i32 length) {
  return s.causal ? min(length, query + length - s.queries + 1) : length;
}

// Rows in shared memory, so many elements from one to the next.
template <int PITCH> struct Pitched {
  INLINE int at(int row, int column) { return row * PITCH + column; }
};

// Loads 16 bytes of a row, of which `count` elements are there, and zeros. `any` is an address that may be read.
template <bool VECTORS, class T>
INLINE void load_part(T *to, const T *from, const T *any, i64 step, i32 count) {
  if (VECTORS) {
    copy_async(place_of(to), count > 0 ? from : any, count > 0);
  } else {
    for (int i = 0; i < (int)(16 / sizeof(T)); i++) to[i] = i < count ? from[i * step] : T();
  }
}

// Hands the parts of ROWS rows of COLUMNS elements, 16 bytes each, to the block's threads.
template <int COLUMNS, int ROWS, int THREADS, class T, class F> INLINE void each_part(F load) {
  enum { EACH = 16 / sizeof(T), PARTS = COLUMNS / EACH };
  if (THREADS % PARTS == 0) {
    const int row = (int)threadIdx.x / PARTS, part = (int)threadIdx.x % PARTS * EACH;
#pragma unroll
    for (int r = 0; r < ROWS; r += THREADS / PARTS)
      if (ROWS % (THREADS / PARTS) == 0 || row + r < ROWS) load(row + r, part);
  } else {
    for (int c = (int)threadIdx.x; c < ROWS * PARTS; c += THREADS) load(c / PARTS, c % PARTS * EACH);
  }
}

// Loads `count` rows of `size` elements; what is not there is 0.
template <class L, int COLUMNS, int ROWS, int THREADS, bool VECTORS, class T>
INLINE void load_rows(T *to, const T *from, i64 stride, i64 step, i32 count, i32 size) {
  each_part<COLUMNS, ROWS, THREADS, T>([&](int row, int part) {
    load_part<VECTORS>(to + L::at(row, part), from + row * stride + part * step, from, step,
                       row < count ? size - part : 0);
  });
}

// Loads rows of queries, or of what has their rows, of a unit.
template <class L, int COLUMNS, int ROWS, int THREADS, bool VECTORS, class T>
INLINE void load_queries(T *to, const T *from, const i64 (&strides)[4], const Attention &s, i32 head, i32 first,
                         i32 count, i32 size) {
  each_part<COLUMNS, ROWS, THREADS, T>([&](int row, int part) {
    bool in = row < count;
    Query p = query_of_row(s, head, in ? first + row : first);
    const T *source = from + p.head * strides[1] + p.query * strides[2] + part * strides[3];
    load_part<VECTORS>(to + L::at(row, part), source, from, strides[3], in ? size - part : 0);
  });
}

// The place of row i of a thread's 2 TILES among those of its block.
template <int TILES> INLINE i32 row_of_thread(int i) {
  return ((i32)threadIdx.x / WARP * TILES + i / 2) * 16 + lane_of() / 4 + i % 2 * 8;
}

// Stores this lane's part of a row of `size` sums times `factor`, which is the upper or the lower one of a fragment.
template <class D, int COLUMNS>
INLINE void store_row(const typename D::A (&sums)[COLUMNS][4], int lower, typename D::T *row, i64 step, i32 size,
                      typename D::A factor) {
  const bool pairs = D::is_half && step == 1 && ((u64)row | size * sizeof(typename D::T)) % 4 == 0;
#pragma unroll
  for (int j = 0; j < COLUMNS; j++) {
    const typename D::A first = sums[j][2 * lower] * factor, second = sums[j][2 * lower + 1] * factor;
    const i32 e = j * 8 + lane_of() % 4 * 2;
    if (e >= size) continue;
    if constexpr (D::is_half) {
      if (pairs) {
        *(u32 *)(row + e) = pack_halves<D>(first, second);
        continue;
      }
    }
    row[e * step] = D::down(first);
    if (e + 1 < size) row[(e + 1) * step] = D::down(second);
  }
}

// The softmax of a thread's rows so far, over KT times 8 keys at a time.
template <class D, int TILES, int KT, int MASK, bool SCALED> struct Softmax {
  typedef typename D::T T;
  typedef typename D::A A;
  // Largest score, in units of ln 2 if SCALED; and the sum of 2^(score - top). Sums are scaled again where a score is far
  // above what they are relative to, which is seldom: floats have room for the others (Zadouri and others, FlashAttention-4).
  A top[2 * TILES], total[2 * TILES], scale, unit_scale;
  // The number of keys that each row sees by its place.
  i32 ends[2 * TILES], least;
  bool whole[2 * TILES];  // sees no key, and so weighs all values equally

  __device__ __forceinline__ void begin(const Attention &s, const Rows &r) {
    scale = (A)s.log2_scale;
    unit_scale = SCALED ? (A)1 : scale;
    least = r.length;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      ends[i] = end_of(s, min(r.first + row_of_thread<TILES>(i), r.last) % s.queries, r.length);
      least = min(least, ends[i]);
      top[i] = -INFINITE;
      total[i] = 0;
      whole[i] = false;
    }
  }

  // Scales and masks the scores of keys from `from` on. They are scaled where numbers are added, or the scale would turn
  // their order round.
  __device__ __forceinline__ void mask_scores(A (&scores)[TILES][KT][4], i32 from, const void *mask, const Attention &s,
                                              const Rows &r) const {
    const int lane = lane_of();
    if (SCALED || MASK != NO_MASK) {
#pragma unroll
      for (int i = 0; i < 2 * TILES; i++) {
        Query p = query_of_row(s, r.head, min(r.first + row_of_thread<TILES>(i), r.last));
        i64 mask_row = r.batch * s.mask[0] + p.head * s.mask[1] + p.query * s.mask[2];
#pragma unroll
        for (int j = 0; j < KT; j++)
#pragma unroll
          for (int c = 0; c < 2; c++) {
            A &score = scores[i / 2][j][2 * (i % 2) + c];
            i32 key = from + j * 8 + lane % 4 * 2 + c;
            if (SCALED) score *= scale;
            if (MASK != NO_MASK && key < r.length) {
              i64 at = mask_row + key * s.mask[3];
              if (MASK == BOOL_MASK) {
                if (!((const u8 *)mask)[at]) score = -INFINITE;
              } else {
                score = multiply_add(D::up(((const T *)mask)[at]), LOG2_E, score);
                if (score < LOWEST) score = -INFINITE;
              }
            }
          }
      }
    }
    if (from + KT * 8 > least) {
#pragma unroll
      for (int i = 0; i < 2 * TILES; i++)
#pragma unroll
        for (int j = 0; j < KT; j++)
#pragma unroll
          for (int c = 0; c < 2; c++)
            if (from + j * 8 + lane % 4 * 2 + c >= ends[i]) scores[i / 2][j][2 * (i % 2) + c] = -INFINITE;
    }
  }

  // True if a score of the warp's rows is so much larger that what was summed has to be scaled, by `factors`.
  __device__ __forceinline__ bool grows(const A (&scores)[TILES][KT][4], A (&factors)[2 * TILES]) {
    const A room = 8;
    A largest[2 * TILES];
    bool any = false;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      largest[i] = top[i];
#pragma unroll
      for (int j = 0; j < KT; j++)
        largest[i] = larger(largest[i], larger(scores[i / 2][j][2 * (i % 2)], scores[i / 2][j][2 * (i % 2) + 1]));
      largest[i] = larger(largest[i], __shfl_xor_sync(0xffffffffu, largest[i], 1));
      largest[i] = larger(largest[i], __shfl_xor_sync(0xffffffffu, largest[i], 2));
      any = any || (largest[i] - top[i]) * unit_scale > room;
    }
    if (!__any_sync(0xffffffffu, any)) return false;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      A shift = largest[i] == -INFINITE ? (A)0 : largest[i] * unit_scale;
      factors[i] = power_of_2(multiply_add(top[i], unit_scale, -shift));
      top[i] = largest[i];
      total[i] *= factors[i];
    }
    return true;
  }

  // Makes weights of scores, and adds them to the totals.
  __device__ __forceinline__ void weigh(A (&scores)[TILES][KT][4]) {
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      A shift = top[i] == -INFINITE ? (A)0 : top[i] * unit_scale, sum = 0;
#pragma unroll
      for (int j = 0; j < KT; j++)
#pragma unroll
        for (int c = 0; c < 2; c++) {
          A &score = scores[i / 2][j][2 * (i % 2) + c];
          score = power_of_2(multiply_add(score, unit_scale, -shift));
          sum += score;
        }
      total[i] += sum;
    }
  }

  // Joins what the four lanes of a row have; `top` is in units of ln 2 then.
  __device__ __forceinline__ void join() {
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      total[i] += __shfl_xor_sync(0xffffffffu, total[i], 1);
      total[i] += __shfl_xor_sync(0xffffffffu, total[i], 2);
      if (top[i] != -INFINITE) top[i] *= unit_scale;
    }
  }

  // Adds the sinks. True if a row sees no key.
  template <int VT>
  __device__ __forceinline__ bool finish(A (&sums)[TILES][VT][4], const T *sinks, const Attention &s, const Rows &r) {
    bool any = false;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      if (sinks) {
        Query p = query_of_row(s, r.head, min(r.first + row_of_thread<TILES>(i), r.last));
        A sink = D::up(sinks[r.batch * s.sinks[0] + p.head * s.sinks[1]]) * LOG2_E;
        A largest = larger(top[i], sink), shift = largest == -INFINITE ? (A)0 : largest;
        A factor = power_of_2(top[i] - shift);
        total[i] = multiply_add(total[i], factor, power_of_2(sink - shift));
        top[i] = largest;
        scale_row(sums, i, factor);
      }
      whole[i] = total[i] == 0;
      any = any || whole[i];
    }
    return any;
  }

  template <int VT>
  __device__ __forceinline__ static void scale_row(A (&sums)[TILES][VT][4], int i, A factor) {
#pragma unroll
    for (int j = 0; j < VT; j++) {
      sums[i / 2][j][2 * (i % 2)] *= factor;
      sums[i / 2][j][2 * (i % 2) + 1] *= factor;
    }
  }

  // The weights of rows that see no key.
  __device__ __forceinline__ void weigh_whole(A (&weights)[TILES][KT][4], i32 from, const Attention &s) const {
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
      for (int j = 0; j < KT; j++)
#pragma unroll
        for (int c = 0; c < 4; c++)
          weights[i][j][c] = whole[2 * i + c / 2] && from + j * 8 + lane_of() % 4 * 2 + c % 2 < s.keys ? 1 : 0;
  }

  template <int VT>
  __device__ __forceinline__ void store(const A (&sums)[TILES][VT][4], T *out, A *lse, const Attention &s,
                                        const Rows &r) const {
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      i32 row = r.first + row_of_thread<TILES>(i);
      if (row > r.last) continue;
      Query p = query_of_row(s, r.head, row);
      A factor = (A)1 / (whole[i] ? (A)s.keys : total[i]);
      store_row<D>(sums[i / 2], i % 2, out + r.batch * s.out[0] + p.head * s.out[1] + p.query * s.out[2], s.out[3],
                   s.value_size, factor);
      if (lane_of() % 4 == 0)
        lse[r.batch * s.lse[0] + p.head * s.lse[1] + p.query * s.lse[2]] =
            whole[i] ? LOWEST : (top[i] + log_2(total[i])) * LN_2;
    }
  }
};
