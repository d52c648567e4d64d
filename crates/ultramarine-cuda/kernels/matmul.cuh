// MATMUL: out (m, n) = a (m, k) x b (k, n) for each element of a batch, over any strides. The walk of a batch has
// the strides of a, b and out. I is int where 32 bits reach every element of one matrix.

struct Sides {
  i64 m, n, k;
  i64 a_row, a_col, b_row, b_col, out_row, out_col;
};

// ---- sums of products -----------------------------------------------------------------------------------------

template <bool WIDE> struct Wrapping { typedef u32 S; };
template <> struct Wrapping<true> { typedef u64 S; };

// S is what products of D are summed in: float for halves, unsigned words for integers, which wrap.
template <class D, Kind K> struct Sum {
  typedef typename D::A S;
  typedef typename D::T T;
  INLINE S zero() { return (S)0; }
  INLINE S load(T x) { return D::up(x); }
  INLINE T store(S s) { return D::down(s); }
  INLINE S add(S s, S t) { return s + t; }
  INLINE S dot(S s, S a, S b) { return multiply_add(a, b, s); }
  INLINE S across(S s, int lanes) { return __shfl_xor_sync(0xffffffffu, s, lanes); }
};
template <class D> struct Sum<D, INTEGER> {
  typedef typename Wrapping<D::bits == 64>::S S;
  typedef typename D::T T;
  INLINE S zero() { return 0; }
  INLINE S load(T x) { return (S)x; }
  INLINE T store(S s) { return (T)s; }
  INLINE S add(S s, S t) { return s + t; }
  INLINE S dot(S s, S a, S b) { return s + a * b; }
  INLINE S across(S s, int lanes) { return __shfl_xor_sync(0xffffffffu, s, lanes); }
};
template <class D> struct Sum<D, COMPLEX> {
  typedef complex64 S;
  typedef complex64 T;
  INLINE S zero() { S s; s.re = s.im = 0.0f; return s; }
  INLINE S load(T x) { return x; }
  INLINE T store(S s) { return s; }
  INLINE S add(S s, S t) { s.re += t.re; s.im += t.im; return s; }
  INLINE S dot(S s, S a, S b) {
    s.re = fmaf(-a.im, b.im, fmaf(a.re, b.re, s.re));
    s.im = fmaf(a.im, b.re, fmaf(a.re, b.im, s.im));
    return s;
  }
  INLINE S across(S s, int lanes) {
    s.re = __shfl_xor_sync(0xffffffffu, s.re, lanes);
    s.im = __shfl_xor_sync(0xffffffffu, s.im, lanes);
    return s;
  }
};

// ---- tiles ----------------------------------------------------------------------------------------------------

// A block of SIDE * SIDE threads makes TILE * TILE results, each thread EACH * EACH of them, SIDE apart so that
// neighbouring threads read neighbouring places. Operands pass through shared memory DEPTH of k at a time; the next
// ones are on their way while these are multiplied.
enum { TILE = 64, DEPTH = 16, EACH = 4, SIDE = TILE / EACH, THREADS = SIDE * SIDE, LOADS = TILE * DEPTH / THREADS };

INLINE i64 step_size(i64 stride) { return stride < 0 ? -stride : stride; }

// Which element of a tile a thread's load `l` fetches: consecutive threads go along the axis whose stride is smaller.
INLINE void place_of(int l, bool depth_first, int &depth, int &side) {
  int e = l * THREADS + (int)threadIdx.x;
  depth = depth_first ? e % DEPTH : e / TILE;
  side = depth_first ? e / DEPTH : e % TILE;
}

template <class D, class I>
INLINE void fetch(typename Sum<D, D::kind>::S (&to)[LOADS], const typename D::T *from, I first, I count, I stride,
                  I start, I k, I k_stride, bool depth_first) {
  typedef Sum<D, D::kind> Sums;
#pragma unroll
  for (int l = 0; l < LOADS; l++) {
    int depth, side;
    place_of(l, depth_first, depth, side);
    I at = first + side, along = start + depth;
    to[l] = at < count && along < k ? Sums::load(from[at * stride + along * k_stride]) : Sums::zero();
  }
}

// Adds the products of the tiles in shared memory.
template <class Sums, class S>
INLINE void multiply_step(S (&sum)[EACH][EACH], const S (&a_tile)[DEPTH][TILE + 1], const S (&b_tile)[DEPTH][TILE + 1],
                          int x, int y) {
#pragma unroll
  for (int depth = 0; depth < DEPTH; depth++) {
    S left[EACH], right[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      left[i] = a_tile[depth][y + i * SIDE];
      right[i] = b_tile[depth][x + i * SIDE];
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
#pragma unroll
      for (int j = 0; j < EACH; j++) sum[i][j] = Sums::dot(sum[i][j], left[i], right[j]);
    }
  }
}

template <class D, int N, class I>
INLINE void multiply_tiles(const typename D::T *a, const typename D::T *b, typename D::T *out, const Sides &s,
                           const Walk<3, N> &w) {
  typedef Sum<D, D::kind> Sums;
  typedef typename Sums::S S;
  __shared__ S a_tile[DEPTH][TILE + 1];
  __shared__ S b_tile[DEPTH][TILE + 1];
  const int x = (int)threadIdx.x % SIDE, y = (int)threadIdx.x / SIDE;
  const bool a_first = step_size(s.a_col) <= step_size(s.a_row), b_first = step_size(s.b_row) < step_size(s.b_col);
  const u64 across = ((u64)s.n + TILE - 1) / TILE, down = ((u64)s.m + TILE - 1) / TILE;
  const u64 tiles = across * down * (u64)w.n;
  for (u64 t = blockIdx.x; t < tiles; t += gridDim.x) {
    const I row = (I)(t / across % down * TILE), column = (I)(t % across * TILE);
    i64 at[3];
    locate<3, N, i64>(w, (i64)(t / (across * down)), at);
    S sum[EACH][EACH], a_next[LOADS], b_next[LOADS];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
#pragma unroll
      for (int j = 0; j < EACH; j++) sum[i][j] = Sums::zero();
    }
    fetch<D, I>(a_next, a + at[0], row, (I)s.m, (I)s.a_row, 0, (I)s.k, (I)s.a_col, a_first);
    fetch<D, I>(b_next, b + at[1], column, (I)s.n, (I)s.b_col, 0, (I)s.k, (I)s.b_row, b_first);
    for (I start = 0; start < (I)s.k; start += DEPTH) {
      __syncthreads();
#pragma unroll
      for (int l = 0; l < LOADS; l++) {
        int depth, side;
        place_of(l, a_first, depth, side);
        a_tile[depth][side] = a_next[l];
        place_of(l, b_first, depth, side);
        b_tile[depth][side] = b_next[l];
      }
      __syncthreads();
      if (start + DEPTH < (I)s.k) {
        const I next = start + DEPTH;
        fetch<D, I>(a_next, a + at[0], row, (I)s.m, (I)s.a_row, next, (I)s.k, (I)s.a_col, a_first);
        fetch<D, I>(b_next, b + at[1], column, (I)s.n, (I)s.b_col, next, (I)s.k, (I)s.b_row, b_first);
      }
      multiply_step<Sums>(sum, a_tile, b_tile, x, y);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
#pragma unroll
      for (int j = 0; j < EACH; j++) {
        const I r = row + y + i * SIDE, c = column + x + j * SIDE;
        if (r < (I)s.m && c < (I)s.n) out[at[2] + r * (i64)s.out_row + c * (i64)s.out_col] = Sums::store(sum[i][j]);
      }
    }
  }
}

// ---- a matrix and a vector ------------------------------------------------------------------------------------

// out (rows) = matrix (rows, k) x vector (k). The walk has the strides of matrix, vector and out.
struct Lines {
  i64 rows, k;
  i64 row, col, vector, out;
};

template <class T> struct __align__(16) Pack { T v[16 / sizeof(T)]; };

// Numbers of a matrix, which are read once, and so take no place in L1. Not by `ld.global.nc`: the assembler moves that behind a
// wait that it is written before.
template <class T> INLINE Pack<T> read_once(const Pack<T> *from) {
#ifdef __EMULATED_CUDA__
  return *from;
#else
  Pack<T> pack;
  uint4 &words = *(uint4 *)&pack;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
      : "l"(from)
      : "memory");
  return pack;
#endif
}

// Number `e` of a pack. Of two brain floats in a word, each is one instruction away from a float.
template <class D> INLINE typename Sum<D, D::kind>::S number_at(const Pack<typename D::T> &pack, int e) {
  if constexpr (Same<D, BF16>::value) {
    const u32 both = ((const u32 *)pack.v)[e / 2];
    return __uint_as_float(e % 2 ? both & 0xffff0000 : both << 16);
  } else {
    return Sum<D, D::kind>::load(pack.v[e]);
  }
}

// Adds the products of COUNT packs of a thread, and others that are STEP apart.
template <class D, int COUNT, int STEP, class S, int SUMS>
INLINE void add_own(S (&sum)[SUMS], const Pack<typename D::T> (&p)[COUNT], const Pack<typename D::T> *x) {
  typedef Sum<D, D::kind> Sums;
  enum { PER = 16 / sizeof(typename D::T) };
  Pack<typename D::T> q[COUNT];
#pragma unroll
  for (int u = 0; u < COUNT; u++) q[u] = x[u * STEP];
#pragma unroll
  for (int u = 0; u < COUNT; u++) {
#pragma unroll
    for (int e = 0; e < PER; e++) {
      S &to = sum[(u * PER + e) % SUMS];
      to = Sums::dot(to, number_at<D>(p[u], e), number_at<D>(q[u], e));
    }
  }
}

// Adds the products of COUNT packs of a thread, STEP apart, all of which are on their way before the first is used.
template <class D, int COUNT, int STEP, class S, int SUMS>
INLINE void add_packs(S (&sum)[SUMS], const Pack<typename D::T> *line, const Pack<typename D::T> *x) {
  Pack<typename D::T> own[COUNT];
#pragma unroll
  for (int u = 0; u < COUNT; u++) own[u] = read_once(line + u * STEP);
  add_own<D, COUNT, STEP>(sum, own, x);
}

// TEAM threads make a result: a warp, or a block of 256 where rows are few. Where k is contiguous in both, and all rows
// begin at multiples of 16 bytes, PACKS is how many of 16 bytes a thread reads at once: 1, 2, 4 or 8. Else it is 0. The
// compiler has to be told that blocks may be few, or it saves registers and waits for each pack.
//
// EARLY: no kernel of the graph writes the matrix. It is asked for while the kernel before, which may make x, still runs.
//
// A block, by its number, is one of `blocks`.
template <class D, int N, class I, int TEAM, int PACKS, bool EARLY>
INLINE void multiply_some_rows(const typename D::T *matrix, const typename D::T *vector, typename D::T *out, const Lines &s,
                               const Walk<3, N> &w, u64 block, u64 blocks) {
  typedef Sum<D, D::kind> Sums;
  typedef typename Sums::S S;
  typedef typename D::T T;
  enum { PER = 16 / sizeof(T), SUMS = 4, TEAMS = TEAM > 32 ? 1 : 4 };
  __shared__ S parts[TEAM > 32 ? TEAM / 32 : 1];
  const int lane = (int)threadIdx.x % TEAM;
  const u64 rows = (u64)s.rows * (u64)w.n;
  for (u64 first = block * TEAMS; first < rows; first += blocks * TEAMS) {
    // All threads take the same turns, since they meet in shuffles and barriers.
    const u64 mine = first + threadIdx.x / TEAM, r = mine < rows ? mine : rows - 1;
    i64 at[3] = {0, 0, 0}, row = (i64)r;
    // Divisions would hold up what is asked for.
    if (w.n > 1) {
      locate<3, N, i64>(w, (i64)(r / (u64)s.rows), at);
      row = (i64)(r % (u64)s.rows);
    }
    const T *line = matrix + at[0] + row * s.row, *x = vector + at[1];
    S sum[SUMS];
#pragma unroll
    for (int u = 0; u < SUMS; u++) sum[u] = Sums::zero();
    I i = lane;
    if constexpr (PACKS > 0) {
      const Pack<T> *lines = (const Pack<T> *)line, *xs = (const Pack<T> *)x;
      const I packs = (I)s.k / PER;
      if constexpr (EARLY) {
        if (first == block * TEAMS) {
          Pack<T> own[PACKS];
          const bool whole = i + (PACKS - 1) * TEAM < packs;
          if (whole) {
#pragma unroll
            for (int u = 0; u < PACKS; u++) own[u] = read_once(lines + i + u * TEAM);
          }
          wait_for_last();
          if (whole) {
            add_own<D, PACKS, TEAM>(sum, own, xs + i);
            i += PACKS * TEAM;
          }
        }
      }
#pragma unroll 1
      for (; i + (PACKS - 1) * TEAM < packs; i += PACKS * TEAM) add_packs<D, PACKS, TEAM>(sum, lines + i, xs + i);
      if constexpr (PACKS > 4) {
        if (i + 3 * TEAM < packs) {
          add_packs<D, 4, TEAM>(sum, lines + i, xs + i);
          i += 4 * TEAM;
        }
      }
      if constexpr (PACKS > 2) {
        if (i + TEAM < packs) {
          add_packs<D, 2, TEAM>(sum, lines + i, xs + i);
          i += 2 * TEAM;
        }
      }
      if (i < packs) add_packs<D, 1, TEAM>(sum, lines + i, xs + i);
      i = packs * PER + lane;
    }
    const I col = (I)s.col, step = (I)s.vector;
    for (; i + (SUMS - 1) * TEAM < (I)s.k; i += SUMS * TEAM) {
#pragma unroll
      for (int u = 0; u < SUMS; u++) {
        const I j = i + u * TEAM;
        sum[u] = Sums::dot(sum[u], Sums::load(line[j * col]), Sums::load(x[j * step]));
      }
    }
    for (; i < (I)s.k; i += TEAM) sum[0] = Sums::dot(sum[0], Sums::load(line[i * col]), Sums::load(x[i * step]));
    S total = Sums::add(Sums::add(sum[0], sum[1]), Sums::add(sum[2], sum[3]));
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) total = Sums::add(total, Sums::across(total, lanes));
    if (TEAM > 32) {
      __syncthreads();
      if (lane % 32 == 0) parts[lane / 32] = total;
      __syncthreads();
      total = parts[0];
      for (int part = 1; part < TEAM / 32; part++) total = Sums::add(total, parts[part]);
    }
    if (lane == 0 && mine < rows) out[at[2] + row * s.out] = Sums::store(total);
  }
}

template <class D, int N, class I, int TEAM, int PACKS, bool EARLY>
INLINE void multiply_rows(const typename D::T *matrix, const typename D::T *vector, typename D::T *out, const Lines &s,
                          const Walk<3, N> &w) {
  multiply_some_rows<D, N, I, TEAM, PACKS, EARLY>(matrix, vector, out, s, w, blockIdx.x, gridDim.x);
}

// A matrix and its results.
template <class T> struct RowsOf {
  const T *matrix;
  T *out;
  Lines lines;
};

// Up to three matrices and one vector. The blocks of the second and the third begin at these.
template <class D, int N, class I, int TEAM, int PACKS, bool EARLY>
INLINE void multiply_rows_together(const RowsOf<typename D::T> &a, const RowsOf<typename D::T> &b,
                                   const RowsOf<typename D::T> &c, const typename D::T *vector, u64 second, u64 third,
                                   const Walk<3, N> &w) {
  const u64 block = blockIdx.x;
  const RowsOf<typename D::T> s = block >= third ? c : block >= second ? b : a;
  const u64 before = block >= third ? third : block >= second ? second : 0;
  multiply_some_rows<D, N, I, TEAM, PACKS, EARLY>(s.matrix, vector, s.out, s.lines, w, block - before, gridDim.x);
}

// For matrices whose rows lie side by side: a warp makes 32 results, and the 8 warps of a block share k.
template <class D, int N, class I>
INLINE void multiply_columns(const typename D::T *matrix, const typename D::T *vector, typename D::T *out,
                             const Lines &s, const Walk<3, N> &w) {
  typedef Sum<D, D::kind> Sums;
  typedef typename Sums::S S;
  enum { SHARES = 8, DEEP = 4 };
  __shared__ S parts[SHARES][32];
  const int lane = (int)threadIdx.x % 32, share = (int)threadIdx.x / 32;
  const u64 blocks = ((u64)s.rows + 31) / 32;
  for (u64 t = blockIdx.x; t < blocks * (u64)w.n; t += gridDim.x) {
    i64 at[3];
    locate<3, N, i64>(w, (i64)(t / blocks), at);
    const i64 row = (i64)(t % blocks * 32) + lane;
    const typename D::T *line = matrix + at[0] + (row < s.rows ? row : s.rows - 1) * s.row, *x = vector + at[1];
    const I col = (I)s.col, step = (I)s.vector;
    S sum[DEEP];
#pragma unroll
    for (int u = 0; u < DEEP; u++) sum[u] = Sums::zero();
    I i = share;
    for (; i + (DEEP - 1) * SHARES < (I)s.k; i += DEEP * SHARES) {
#pragma unroll
      for (int u = 0; u < DEEP; u++) {
        const I j = i + u * SHARES;
        sum[u] = Sums::dot(sum[u], Sums::load(line[j * col]), Sums::load(x[j * step]));
      }
    }
    for (; i < (I)s.k; i += SHARES) sum[0] = Sums::dot(sum[0], Sums::load(line[i * col]), Sums::load(x[i * step]));
    __syncthreads();
    parts[share][lane] = Sums::add(Sums::add(sum[0], sum[1]), Sums::add(sum[2], sum[3]));
    __syncthreads();
    if (share == 0 && row < s.rows) {
      S total = parts[0][lane];
#pragma unroll
      for (int part = 1; part < SHARES; part++) total = Sums::add(total, parts[part][lane]);
      out[at[2] + row * s.out] = Sums::store(total);
    }
  }
}

// ---- operands -------------------------------------------------------------------------------------------------

// An operand as the library can read it.
template <class D, int N, class I>
INLINE void pack_operand(const typename D::T *in, typename D::T *out, const Walk<2, N> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[2];
    locate<2, N, I>(w, i, at);
    out[at[1]] = in[at[0]];
  }
}
