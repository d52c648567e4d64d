// SCAN. Two ways: a warp or block goes along a row (`scan_rows`), or a thread goes along a lane beside its
// neighbours' (`scan_lanes`). Where there are too few of them, each is cut into chunks whose totals are taken and
// scanned first: what the results are never depends on timing.
//
// Rows and lanes begin where `Walk` says, `in_step` and `out_step` lead along them (backwards for a reversed scan).

enum Running { SUM = 0, PROD = 1, MIN = 2, MAX = 3, LOGADDEXP = 6 };

// ---- steps ----------------------------------------------------------------------------------------------------
// `of(running, value)`, and `start()`, which is what an exclusive scan begins with. It is not everywhere neutral (an
// infinite complex number times 1 is NaN), so nothing is combined with it.

template <class D, int OP, Kind K> struct Step;

template <class D, int OP> struct Step<D, OP, BOOL> {
  typedef typename D::A A;
  INLINE A of(A x, A y) { return OP == SUM || OP == MAX ? x | y : x & y; }
  INLINE A start() { return OP == SUM || OP == MAX ? 0 : 1; }
};

template <class D, int OP> struct Step<D, OP, INTEGER> {
  typedef typename D::A A;
  INLINE A of(A x, A y) {
    if (OP == SUM) return (A)((u64)x + (u64)y);
    if (OP == PROD) return (A)((u64)x * (u64)y);
    return OP == MIN ? (y < x ? y : x) : (y < x ? x : y);
  }
  INLINE A start() {
    const u64 lowest = D::is_signed ? 1ull << (D::bits - 1) : 0;
    return (A)(OP == SUM ? 0 : OP == PROD ? 1 : OP == MIN ? ~lowest : lowest);
  }
};

INLINE bool is_nan(float x) { return x != x; }
INLINE bool is_nan(double x) { return x != x; }
INLINE bool is_nan(complex64 z) { return z.re != z.re || z.im != z.im; }
INLINE bool before(complex64 x, complex64 y) { return x.re < y.re || (x.re == y.re && x.im < y.im); }
INLINE complex64 complex_of(float re, float im) { complex64 z; z.re = re; z.im = im; return z; }

INLINE float log_add_exp(float low, float high) { return high + log1pf(expf(low - high)); }
INLINE double log_add_exp(double low, double high) { return high + log1p(exp(low - high)); }

template <class D, int OP> struct Step<D, OP, REAL> {
  typedef typename D::A A;
  INLINE A infinity() { return (A)__uint_as_float(0x7f800000u); }
  INLINE A of(A x, A y) {
    if (OP == SUM) return x + y;
    if (OP == PROD) return x * y;
    if (OP == MIN) return is_nan(y) || y < x ? y : x;
    if (OP == MAX) return is_nan(x) || y < x ? x : y;
    if (is_nan(x) || is_nan(y)) return x + y;
    A low = x < y ? x : y, high = x < y ? y : x;
    return low == -infinity() || high == infinity() ? high : log_add_exp(low, high);
  }
  INLINE A start() { return OP == SUM ? (A)0 : OP == PROD ? (A)1 : OP == MIN ? infinity() : -infinity(); }
};

template <class D, int OP> struct Step<D, OP, COMPLEX> {
  INLINE float infinity() { return __uint_as_float(0x7f800000u); }
  INLINE complex64 of(complex64 x, complex64 y) {
    if (OP == SUM) return complex_of(x.re + y.re, x.im + y.im);
    if (OP == PROD) return complex_of(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
    if (OP == MIN) return !is_nan(x) && (is_nan(y) || before(y, x)) ? y : x;
    if (OP == MAX) return is_nan(x) || before(y, x) ? x : y;
    if (is_nan(x) || is_nan(y)) return complex_of(x.re + y.re + x.im + y.im, x.re + y.re + x.im + y.im);
    bool less = before(x, y);
    complex64 low = less ? x : y, high = less ? y : x;
    if (low.re == -infinity() || high.re == infinity()) return high;
    // In double precision, for the sum may come near zero. The angle is not brought back into (-pi, pi].
    double scale = exp((double)low.re - (double)high.re), angle = (double)low.im - (double)high.im;
    double re = 1 + scale * cos(angle), im = scale * sin(angle);
    return complex_of((float)((double)high.re + log(hypot(re, im))), (float)((double)high.im + atan2(im, re)));
  }
  INLINE complex64 start() {
    if (OP == SUM || OP == PROD) return complex_of(OP == SUM ? 0.0f : 1.0f, 0.0f);
    if (OP == LOGADDEXP) return complex_of(-infinity(), 0.0f);
    float all = OP == MIN ? infinity() : -infinity();
    return complex_of(all, all);
  }
};

// ---- what lanes of a warp tell each other ----------------------------------------------------------------------

#define EVERYONE 0xffffffffu
template <class A> INLINE A from_lower(A x, int by) { return (A)__shfl_up_sync(EVERYONE, (i32)x, by); }
template <class A> INLINE A from_lane(A x, int lane) { return (A)__shfl_sync(EVERYONE, (i32)x, lane); }
#define SHUFFLED(A)                                                                 \
  INLINE A from_lower(A x, int by) { return __shfl_up_sync(EVERYONE, x, by); }      \
  INLINE A from_lane(A x, int lane) { return __shfl_sync(EVERYONE, x, lane); }
SHUFFLED(float)
SHUFFLED(double)
SHUFFLED(i64)
SHUFFLED(u64)
INLINE complex64 from_lower(complex64 z, int by) { return complex_of(from_lower(z.re, by), from_lower(z.im, by)); }
INLINE complex64 from_lane(complex64 z, int lane) { return complex_of(from_lane(z.re, lane), from_lane(z.im, lane)); }

// ---- rows -----------------------------------------------------------------------------------------------------

// Mirrors `Line` of scan.rs.
struct Line {
  i64 length;
  i64 chunk;  // elements of a chunk: whole tiles of a block
  i64 chunks;
  i64 in_step;
  i64 out_step;
};

// 16 bytes of elements.
template <class T>
union Pack {
  uint4 words;
  T element[16 / sizeof(T)];
};

// E elements from `j` of a row, which ends at `end`. E is 1, or a pack's number where steps are 1 (-1 if reversed)
// and packs are aligned.
template <class D, int E, bool REVERSE>
INLINE void load_pack(const typename D::T *row, i64 step, i64 j, i64 end, typename D::A (&x)[E]) {
  if (E > 1 && j + E <= end) {
    Pack<typename D::T> pack;
    pack.words = *(const uint4 *)(REVERSE ? row - j - (E - 1) : row + j);
#pragma unroll
    for (int e = 0; e < E; e++) x[e] = D::up(pack.element[REVERSE ? E - 1 - e : e]);
  } else {
#pragma unroll
    for (int e = 0; e < E; e++) {
      if (j + e < end) x[e] = D::up(row[(j + e) * step]);
    }
  }
}

template <class D, int E, bool REVERSE>
INLINE void store_pack(typename D::T *row, i64 step, i64 j, i64 end, const typename D::A (&x)[E]) {
  if (E > 1 && j + E <= end) {
    Pack<typename D::T> pack;
#pragma unroll
    for (int e = 0; e < E; e++) pack.element[REVERSE ? E - 1 - e : e] = D::down(x[e]);
    *(uint4 *)(REVERSE ? row - j - (E - 1) : row + j) = pack.words;
  } else {
#pragma unroll
    for (int e = 0; e < E; e++) {
      if (j + e < end) row[(j + e) * step] = D::down(x[e]);
    }
  }
}

const int SCAN_WARPS = 8;

// A block (or, with ONE_WARP, each of its warps) scans a chunk of a row, tile by tile: V packs of E elements for each
// lane. `carries` holds what precedes each chunk, row by row; chunk 0 has nothing before it.
template <class D, int OP, bool INCLUSIVE, int E, int V, bool REVERSE, bool ONE_WARP, int N>
static __device__ __forceinline__ void scan_rows(const typename D::T *in, typename D::T *out,
                                                 const typename D::A *carries, const Line &line,
                                                 const Walk<2, N> &w) {
  typedef typename D::A A;
  typedef Step<D, OP, D::kind> S;
  const int workers = ONE_WARP ? SCAN_WARPS : 1, tile = 32 * E * V * (ONE_WARP ? 1 : SCAN_WARPS);
  __shared__ A totals[2][SCAN_WARPS];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int place = (ONE_WARP ? 0 : warp * (32 * E * V)) + lane * E;
  int turn = 0;
  const i64 tasks = w.n * line.chunks, all = (i64)gridDim.x * workers;
  for (i64 task = (i64)blockIdx.x * workers + (ONE_WARP ? warp : 0); task < tasks; task += all) {
    i64 r = line.chunks == 1 ? task : divide_whole(task, line.chunks), c = task - r * line.chunks, at[2];
    locate<2, N, i64>(w, r, at);
    const typename D::T *from = in + at[0];
    typename D::T *to = out + at[1];
    const i64 first = c * line.chunk;
    i64 end = first + line.chunk;
    if (end > line.length) end = line.length;
    bool have = c > 0;
    A carry = have ? carries[task] : S::start();
    for (i64 base = first; base < end; base += tile) {
      A x[V][E], sum[V];
#pragma unroll
      for (int v = 0; v < V; v++) {
#pragma unroll
        for (int e = 0; e < E; e++) x[v][e] = S::start();
      }
#pragma unroll
      for (int v = 0; v < V; v++) load_pack<D, E, REVERSE>(from, line.in_step, base + place + v * 32 * E, end, x[v]);
      // Within packs, then over the lanes; a lane's own part is what it had before.
#pragma unroll
      for (int v = 0; v < V; v++) {
#pragma unroll
        for (int e = 1; e < E; e++) x[v][e] = S::of(x[v][e - 1], x[v][e]);
        sum[v] = x[v][E - 1];
      }
#pragma unroll
      for (int by = 1; by < 32; by *= 2) {
#pragma unroll
        for (int v = 0; v < V; v++) {
          A lower = from_lower(sum[v], by);
          if (lane >= by) sum[v] = S::of(lower, sum[v]);
        }
      }
      A lower[V], prefix = carry;
#pragma unroll
      for (int v = 0; v < V; v++) {
        lower[v] = from_lower(sum[v], 1);
        sum[v] = from_lane(sum[v], 31);
      }
      bool preceded = have;
      if (!ONE_WARP) {
        A whole = sum[0];
#pragma unroll
        for (int v = 1; v < V; v++) whole = S::of(whole, sum[v]);
        if (lane == 0) totals[turn][warp] = whole;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SCAN_WARPS; k++) {
          if (k == warp) prefix = carry;
          A total = totals[turn][k];
          carry = have || k > 0 ? S::of(carry, total) : total;
        }
        preceded = have || warp > 0;
        turn ^= 1;  // so that the next tile's totals do not overwrite what others still read
      }
#pragma unroll
      for (int v = 0; v < V; v++) {
        A mine = lane == 0 ? prefix : preceded ? S::of(prefix, lower[v]) : lower[v], y[E];
        const bool some = preceded || lane > 0;
#pragma unroll
        for (int e = 0; e < E; e++) {
          if (INCLUSIVE) y[e] = some ? S::of(mine, x[v][e]) : x[v][e];
          else if (e == 0) y[e] = some ? mine : S::start();
          else y[e] = some ? S::of(mine, x[v][e - 1]) : x[v][e - 1];
        }
        store_pack<D, E, REVERSE>(to, line.out_step, base + place + v * 32 * E, end, y);
        prefix = preceded ? S::of(prefix, sum[v]) : sum[v];
        preceded = true;
      }
      if (ONE_WARP) carry = prefix;
      have = true;
    }
  }
}

// The total of every chunk but a row's last, a block for each.
template <class D, int OP, int E, bool REVERSE, int N>
static __device__ __forceinline__ void scan_row_totals(const typename D::T *in, typename D::A *totals,
                                                       const Line &line, const Walk<2, N> &w) {
  typedef typename D::A A;
  typedef Step<D, OP, D::kind> S;
  const int V = E == 1 ? 8 : E >= 16 ? 1 : E == 8 ? 2 : 4, tile = 32 * SCAN_WARPS * E * V;
  __shared__ A parts[SCAN_WARPS];
  const i64 most = line.chunks - 1, tasks = w.n * most;
  for (i64 task = blockIdx.x; task < tasks; task += gridDim.x) {
    i64 r = divide_whole(task, most), c = task - r * most, at[2];
    locate<2, N, i64>(w, r, at);
    const i64 first = c * line.chunk, end = first + line.chunk;
    A total = S::start();
    for (i64 base = first; base < end; base += tile) {
      A x[V][E];
#pragma unroll
      for (int v = 0; v < V; v++) {
        i64 j = base + (v * 32 * SCAN_WARPS + (int)threadIdx.x) * E;
        load_pack<D, E, REVERSE>(in + at[0], line.in_step, j, end, x[v]);
      }
      A sum = x[0][0];
#pragma unroll
      for (int i = 1; i < V * E; i++) sum = S::of(sum, x[i / E][i % E]);
      total = base == first ? sum : S::of(total, sum);
    }
#pragma unroll
    for (int by = 1; by < 32; by *= 2) total = S::of(total, from_lane(total, ((int)threadIdx.x & 31) ^ by));
    __syncthreads();
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int k = 1; k < SCAN_WARPS; k++) total = S::of(total, parts[k]);
      totals[r * line.chunks + c] = total;
      // It is read with the others, though nothing comes of it.
      if (c + 1 == most) totals[r * line.chunks + most] = S::start();
    }
  }
}

// ---- lanes ----------------------------------------------------------------------------------------------------

const int AHEAD = 8;  // elements that a thread loads before it needs them

#define CHUNK_OF_LANE                                                             \
  i64 c = divide_whole(i, w.n), lane = i - c * w.n, at[2];                        \
  locate<2, N, i64>(w, lane, at);                                                 \
  const i64 first = c * line.chunk;                                               \
  i64 end = first + line.chunk;                                                   \
  if (end > line.length) end = line.length;                                       \
  const typename D::T *from = in + at[0] + first * line.in_step;

template <class D, int OP, bool INCLUSIVE, int N>
static __device__ __forceinline__ void scan_lanes(const typename D::T *in, typename D::T *out,
                                                  const typename D::A *carries, const Line &line,
                                                  const Walk<2, N> &w) {
  typedef typename D::A A;
  typedef Step<D, OP, D::kind> S;
  for (i64 i = thread_number<i64>(); i < w.n * line.chunks; i += thread_count<i64>()) {
    CHUNK_OF_LANE
    typename D::T *to = out + at[1] + first * line.out_step;
    bool have = c > 0;
    A running = have ? carries[lane * line.chunks + c] : S::start();
    for (i64 j = first; j < end; j += AHEAD) {
      const int count = end - j < AHEAD ? (int)(end - j) : AHEAD;
      typename D::T x[AHEAD];
#pragma unroll
      for (int k = 0; k < AHEAD; k++) {
        if (k < count) x[k] = from[k * line.in_step];
      }
#pragma unroll
      for (int k = 0; k < AHEAD; k++) {
        if (k < count) {
          A value = D::up(x[k]), next = have ? S::of(running, value) : value;
          to[k * line.out_step] = D::down(INCLUSIVE ? next : running);
          running = next;
          have = true;
        }
      }
      from += AHEAD * line.in_step;
      to += AHEAD * line.out_step;
    }
  }
}

// The total of every chunk but a lane's last.
template <class D, int OP, int N>
static __device__ __forceinline__ void scan_lane_totals(const typename D::T *in, typename D::A *totals,
                                                        const Line &line, const Walk<2, N> &w) {
  typedef typename D::A A;
  typedef Step<D, OP, D::kind> S;
  for (i64 i = thread_number<i64>(); i < w.n * (line.chunks - 1); i += thread_count<i64>()) {
    CHUNK_OF_LANE
    A total = D::up(*from);
#pragma unroll 8
    for (i64 j = first + 1; j < end; j++) {
      from += line.in_step;
      total = S::of(total, D::up(*from));
    }
    totals[lane * line.chunks + c] = total;
    if (c + 2 == line.chunks) totals[lane * line.chunks + c + 1] = S::start();
  }
}
