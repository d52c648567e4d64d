// Reductions over any axes of K tensors that are walked together: what is reduced comes from a functor F.
//
//   struct F {
//     // The value at offset at[k], in elements, of each tensor k.
//     typename D::A operator()(const I (&at)[K]) const;
//     // V values along an axis where each tensor has stride 1 (or 0); only for kernels of vector V > 1.
//     void many(const I (&at)[K], typename D::A (&x)[V]) const;
//   };
//
// An Op says how values are joined: `Acc`, `Out` (the output's dtype), `lift(value, number in the reduction)`,
// `join`, `neutral`, `drop`. Which kernel, its grid and its words are chosen in src/ops/reduction.rs.
//
// fold_rows: the axis that is next in memory is reduced. A team of TEAM threads for each output and segment.
// fold_columns: the axis that is next in memory is kept. Neighbouring threads have neighbouring outputs, and the
// rows of threads of a block take turns along the reduction.
// fold_merge: the segments' results, of which there are several where outputs are few.
//
// The order of joining depends on the kernel, V and the words alone, so GATHER, which reads each of the V values by
// itself, joins a tensor of any strides as its row-major copy would be. Every thread joins a few hundred values at most
// one after another, in several chains, so that rounding errors of long sums stay small.

#define FOLD_THREADS 256

// Mirrors `Fold::words`. KN kept and RN reduced axes are held; RN below 4 is exactly as many as are reduced.
template <int K, int KN, int RN>
struct Fold {
  i64 outputs, count, length, segments;  // length of a segment, which is a multiple of the vector
  i32 kept, axes;
  i64 lanes;  // fold_columns: log2 of the threads beside each other
  i64 kept_size[KN];
  u64 kept_magic[KN];
  i64 out_stride[KN];
  i64 kept_stride[K][KN];
  i64 size[RN];
  u64 magic[RN];
  i64 stride[K][RN];
};

// ---- what is joined ---------------------------------------------------------------------------------------------

template <class D> struct FoldValue {
  typedef typename D::A Acc;
  typedef D Out;
  template <class I> INLINE Acc lift(typename D::A x, I) { return x; }
  INLINE typename D::T drop(Acc x) { return D::down(x); }
};

INLINE bool fold_nan(complex64 z) { return z.re != z.re || z.im != z.im; }
template <class X> INLINE bool fold_nan(X x) { return x != x; }
INLINE bool fold_less(complex64 x, complex64 y) { return x.re < y.re || (x.re == y.re && x.im < y.im); }
template <class X> INLINE bool fold_less(X x, X y) { return x < y; }
INLINE complex64 fold_pair(float re, float im) { complex64 z; z.re = re; z.im = im; return z; }

// The largest or the smallest value of a dtype.
template <class D, Kind K> struct FoldEnd;
template <class D> struct FoldEnd<D, BOOL> { INLINE u8 of(bool most) { return most ? 1 : 0; } };
template <class D> struct FoldEnd<D, INTEGER> {
  INLINE typename D::A of(bool most) {
    const u64 top = 1ull << (D::bits - 1);
    if (D::is_signed) return (typename D::A)(most ? top - 1 : top);
    return (typename D::A)(most ? (top << 1) - 1 : 0);
  }
};
template <class D> struct FoldEnd<D, REAL> {
  INLINE typename D::A of(bool most) { return (typename D::A)__uint_as_float(most ? 0x7f800000 : 0xff800000); }
};
template <class D> struct FoldEnd<D, COMPLEX> {
  INLINE complex64 of(bool most) { float x = __uint_as_float(most ? 0x7f800000 : 0xff800000); return fold_pair(x, x); }
};

// -0 keeps the sign of zero.
template <class D, Kind K> struct FoldZero { INLINE typename D::A of() { return 0; } };
template <class D> struct FoldZero<D, REAL> { INLINE typename D::A of() { return (typename D::A)-0.0f; } };
template <class D> struct FoldZero<D, COMPLEX> { INLINE complex64 of() { return fold_pair(-0.0f, -0.0f); } };

INLINE complex64 fold_add(complex64 a, complex64 b) { return fold_pair(a.re + b.re, a.im + b.im); }
INLINE complex64 fold_multiply(complex64 a, complex64 b) {
  return fold_pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
INLINE i32 fold_add(i32 a, i32 b) { return (i32)((u32)a + (u32)b); }
INLINE i64 fold_add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
INLINE i32 fold_multiply(i32 a, i32 b) { return (i32)((u32)a * (u32)b); }
INLINE i64 fold_multiply(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
template <class X> INLINE X fold_add(X a, X b) { return (X)(a + b); }
// Through 32 bits: a product of two narrow unsigned numbers may not fit in int.
INLINE u16 fold_multiply(u16 a, u16 b) { return (u16)((u32)a * (u32)b); }
template <class X> INLINE X fold_multiply(X a, X b) { return (X)(a * b); }
template <class D> INLINE typename D::A fold_one() { return (typename D::A)1; }
template <> __device__ __forceinline__ complex64 fold_one<C64>() { return fold_pair(1.0f, 0.0f); }

template <class D> struct Sum : FoldValue<D> {
  typedef typename D::A Acc;
  INLINE Acc neutral() { return FoldZero<D, D::kind>::of(); }
  INLINE Acc join(Acc a, Acc b) { return fold_add(a, b); }
};
template <class D> struct Prod : FoldValue<D> {
  typedef typename D::A Acc;
  INLINE Acc neutral() { return fold_one<D>(); }
  INLINE Acc join(Acc a, Acc b) { return fold_multiply(a, b); }
};
template <class D> struct Min : FoldValue<D> {
  typedef typename D::A Acc;
  INLINE Acc neutral() { return FoldEnd<D, D::kind>::of(true); }
  INLINE Acc join(Acc a, Acc b) { return !fold_nan(a) && (fold_less(b, a) || fold_nan(b)) ? b : a; }
};
template <class D> struct Max : FoldValue<D> {
  typedef typename D::A Acc;
  INLINE Acc neutral() { return FoldEnd<D, D::kind>::of(false); }
  INLINE Acc join(Acc a, Acc b) { return !fold_nan(a) && (fold_less(a, b) || fold_nan(b)) ? b : a; }
};
template <class D> struct All {
  typedef u32 Acc;
  typedef Bool Out;
  template <class I> INLINE Acc lift(typename D::A x, I) { return nonzero(x) ? 1 : 0; }
  INLINE Acc neutral() { return 1; }
  INLINE Acc join(Acc a, Acc b) { return a & b; }
  INLINE u8 drop(Acc x) { return (u8)x; }
};
template <class D> struct Any : All<D> {
  INLINE u32 neutral() { return 0; }
  INLINE u32 join(u32 a, u32 b) { return a | b; }
};

// ---- where things are -------------------------------------------------------------------------------------------

// n / d, and what remains in n. For 32-bit indices the host gives a factor and a shift: n is below 2^31.
INLINE i32 fold_split(i32 &n, i64 size, u64 magic) {
  u32 high = (u32)((u64)(u32)n * (u32)magic >> 32);
  i32 q = (i32)((high + (u32)n) >> (u32)(magic >> 32));
  n -= q * (i32)size;
  return q;
}
INLINE i64 fold_split(i64 &n, i64 size, u64) {
  i64 q = divide_whole(n, size);
  n -= q * size;
  return q;
}

// The offsets of output o, in the tensors and in the output.
template <int K, int KN, int RN, class I>
INLINE void fold_kept(const Fold<K, KN, RN> &w, I o, I (&at)[K], I &to) {
  to = 0;
#pragma unroll
  for (int k = 0; k < K; k++) at[k] = 0;
  for (int d = w.kept - 1; d >= 0; d--) {
    I next = 0;
    if (d > 0) next = fold_split(o, w.kept_size[d], w.kept_magic[d]);
    to += o * (I)w.out_stride[d];
#pragma unroll
    for (int k = 0; k < K; k++) at[k] += o * (I)w.kept_stride[k][d];
    o = next;
  }
}

// The offsets of element r of a reduction whose first element is at `base`.
template <int K, int KN, int RN, class I>
INLINE void fold_place(const Fold<K, KN, RN> &w, const I (&base)[K], I r, I (&at)[K]) {
#pragma unroll
  for (int k = 0; k < K; k++) at[k] = base[k];
  if (RN < 4) {
#pragma unroll
    for (int d = RN - 1; d >= 0; d--) {
      I next = 0;
      if (d > 0) next = fold_split(r, w.size[d], w.magic[d]);
#pragma unroll
      for (int k = 0; k < K; k++) at[k] += r * (I)w.stride[k][d];
      r = next;
    }
  } else {
    for (int d = w.axes - 1; d >= 0; d--) {
      I next = 0;
      if (d > 0) next = fold_split(r, w.size[d], w.magic[d]);
#pragma unroll
      for (int k = 0; k < K; k++) at[k] += r * (I)w.stride[k][d];
      r = next;
    }
  }
}

// V values: with V = 1 the one at `at`.
template <int V> struct FoldRead {
  template <class F, class I, int K, class A> INLINE void of(const F &f, const I (&at)[K], A (&x)[V]) { f.many(at, x); }
};
template <> struct FoldRead<1> {
  template <class F, class I, int K, class A> INLINE void of(const F &f, const I (&at)[K], A (&x)[1]) { x[0] = f(at); }
};

// Elements r to r + V of a reduction. GATHER: each lies anywhere.
template <bool GATHER, int V, class F, int K, int KN, int RN, class I, class A>
INLINE void fold_read(const F &f, const Fold<K, KN, RN> &w, const I (&base)[K], I r, A (&x)[V]) {
  I at[K];
  if constexpr (GATHER) {
#pragma unroll
    for (int v = 0; v < V; v++) {
      fold_place<K, KN, RN, I>(w, base, r + v, at);
      x[v] = f(at);
    }
  } else {
    fold_place<K, KN, RN, I>(w, base, r, at);
    FoldRead<V>::of(f, at, x);
  }
}

// Element r of V neighbouring outputs. Without GATHER the first of `base` tells where all are.
template <bool GATHER, int V, class F, int K, int KN, int RN, class I, int BASES, class A>
INLINE void fold_read_across(const F &f, const Fold<K, KN, RN> &w, const I (&base)[BASES][K], I r, A (&x)[V]) {
  I at[K];
  if constexpr (GATHER) {
#pragma unroll
    for (int v = 0; v < V; v++) {
      fold_place<K, KN, RN, I>(w, base[v], r, at);
      x[v] = f(at);
    }
  } else {
    fold_place<K, KN, RN, I>(w, base[0], r, at);
    FoldRead<V>::of(f, at, x);
  }
}

// The join of N values, a power of two, as a tree.
template <class Op, int N>
INLINE typename Op::Acc fold_tree(typename Op::Acc (&x)[N]) {
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; i++) x[i] = Op::join(x[i], x[i + half]);
  }
  return x[0];
}

// ---- joining across threads -------------------------------------------------------------------------------------

template <class X>
INLINE X fold_shuffle(X x, int mask) {
  union { X x; u32 words[(sizeof(X) + 3) / 4]; } a, b;
  a.words[0] = 0;
  a.x = x;
#pragma unroll
  for (int i = 0; i < (int)((sizeof(X) + 3) / 4); i++) b.words[i] = __shfl_xor_sync(0xffffffffu, a.words[i], mask);
  return b.x;
}

// The join over a team's threads, in its first thread. All threads of the block come here.
template <class Op, int TEAM>
INLINE typename Op::Acc fold_team(typename Op::Acc x, typename Op::Acc *shared) {
#pragma unroll
  for (int mask = (TEAM < 32 ? TEAM : 32) / 2; mask > 0; mask /= 2) x = Op::join(x, fold_shuffle(x, mask));
  if (TEAM <= 32) return x;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  if (warp == 0) {
    x = lane < TEAM / 32 ? shared[lane] : Op::neutral();
#pragma unroll
    for (int mask = TEAM / 64; mask > 0; mask /= 2) x = Op::join(x, fold_shuffle(x, mask));
  }
  __syncthreads();
  return x;
}

// ---- the kernels ------------------------------------------------------------------------------------------------

template <class Op, class F, int K, int KN, int RN, class I, int TEAM, int V, bool GATHER>
static __device__ __forceinline__ void fold_rows(const F &f, typename Op::Out::T *out, typename Op::Acc *partial,
                                                 const Fold<K, KN, RN> &w) {
  typedef typename Op::Acc Acc;
  typedef decltype(f(*(const I(*)[K])0)) A;
  const int TEAMS = FOLD_THREADS / TEAM, U = TEAM < 32 ? 2 : V == 1 ? 8 : V >= 8 ? 2 : 4;
  __shared__ Acc shared[32];
  const i64 teams = w.outputs * w.segments;
  const int lane = threadIdx.x % TEAM;
  for (i64 first = (i64)blockIdx.x * TEAMS; first < teams; first += (i64)gridDim.x * TEAMS) {
    const i64 team = first + threadIdx.x / TEAM;
    Acc total = Op::neutral();
    I to = 0;
    if (team < teams) {
      const i64 segment = w.segments == 1 ? 0 : divide_whole(team, w.outputs);
      I base[K], at[K];
      fold_kept<K, KN, RN, I>(w, (I)(team - segment * w.outputs), base, to);
      const i64 last = (segment + 1) * w.length;
      const I begin = (I)(segment * w.length), end = (I)(last < w.count ? last : w.count), step = TEAM * V;
      const I whole = V == 1 ? end : begin + (end - begin) / V * V;
      Acc sum[U];
#pragma unroll
      for (int u = 0; u < U; u++) sum[u] = Op::neutral();
      I r = begin + lane * V;
      for (; r + (U - 1) * step < whole; r += U * step) {
        A x[U][V];
#pragma unroll
        for (int u = 0; u < U; u++) fold_read<GATHER, V>(f, w, base, (I)(r + u * step), x[u]);
#pragma unroll
        for (int u = 0; u < U; u++) {
          Acc y[V];
#pragma unroll
          for (int v = 0; v < V; v++) y[v] = Op::lift(x[u][v], r + u * step + v);
          sum[u] = Op::join(sum[u], fold_tree<Op, V>(y));
        }
      }
      for (; r < whole; r += step) {
        A x[V];
        fold_read<GATHER, V>(f, w, base, r, x);
        Acc y[V];
#pragma unroll
        for (int v = 0; v < V; v++) y[v] = Op::lift(x[v], r + v);
        sum[0] = Op::join(sum[0], fold_tree<Op, V>(y));
      }
      if (V > 1) {
        for (I t = whole + lane; t < end; t += TEAM) {
          fold_place<K, KN, RN, I>(w, base, t, at);
          sum[1] = Op::join(sum[1], Op::lift(f(at), t));
        }
      }
      total = fold_tree<Op, U>(sum);
    }
    total = fold_team<Op, TEAM>(total, shared);
    if (team < teams && lane == 0) {
      if (w.segments == 1) out[to] = Op::drop(total);
      else partial[team] = total;
    }
  }
}

template <class Op, class F, int K, int KN, int RN, class I, int V, bool GATHER>
static __device__ __forceinline__ void fold_columns(const F &f, typename Op::Out::T *out, typename Op::Acc *partial,
                                                    const Fold<K, KN, RN> &w) {
  typedef typename Op::Acc Acc;
  typedef decltype(f(*(const I(*)[K])0)) A;
  const int U = V == 1 ? 8 : V > 8 ? 2 : 4;
  __shared__ Acc shared[FOLD_THREADS * V];
  const int x = threadIdx.x & ((1 << w.lanes) - 1), y = threadIdx.x >> w.lanes, rows = FOLD_THREADS >> w.lanes;
  const i64 groups = ((w.outputs / V - 1) >> w.lanes) + 1, all = groups * w.segments;
  for (i64 block = blockIdx.x; block < all; block += gridDim.x) {
    const i64 segment = divide_whole(block, groups), o = (((block - segment * groups) << w.lanes) + x) * V;
    Acc sum[V];
#pragma unroll
    for (int v = 0; v < V; v++) sum[v] = Op::neutral();
    I to[GATHER ? V : 1] = {0};
    if (o < w.outputs) {
      I base[GATHER ? V : 1][K];
#pragma unroll
      for (int v = 0; v < (GATHER ? V : 1); v++) fold_kept<K, KN, RN, I>(w, (I)(o + v), base[v], to[v]);
      const i64 last = (segment + 1) * w.length;
      const I begin = (I)(segment * w.length), end = (I)(last < w.count ? last : w.count), step = rows;
      I r = begin + y;
      for (; r + (U - 1) * step < end; r += U * step) {
        A value[U][V];
#pragma unroll
        for (int u = 0; u < U; u++) fold_read_across<GATHER, V>(f, w, base, (I)(r + u * step), value[u]);
#pragma unroll
        for (int v = 0; v < V; v++) {
          Acc lifted[U];
#pragma unroll
          for (int u = 0; u < U; u++) lifted[u] = Op::lift(value[u][v], r + u * step);
          sum[v] = Op::join(sum[v], fold_tree<Op, U>(lifted));
        }
      }
      for (; r < end; r += step) {
        A value[V];
        fold_read_across<GATHER, V>(f, w, base, r, value);
#pragma unroll
        for (int v = 0; v < V; v++) sum[v] = Op::join(sum[v], Op::lift(value[v], r));
      }
    }
    if (rows > 1) {
#pragma unroll
      for (int v = 0; v < V; v++) shared[v * FOLD_THREADS + threadIdx.x] = sum[v];
      __syncthreads();
      for (int half = rows / 2; half > 0; half /= 2) {
        if (y < half) {
#pragma unroll
          for (int v = 0; v < V; v++) {
            Acc *mine = shared + v * FOLD_THREADS + threadIdx.x;
            *mine = Op::join(*mine, mine[half << w.lanes]);
          }
        }
        __syncthreads();
      }
#pragma unroll
      for (int v = 0; v < V; v++) sum[v] = shared[v * FOLD_THREADS + threadIdx.x];
      __syncthreads();
    }
    if (y == 0 && o < w.outputs) {
      const I step = w.kept > 0 ? (I)w.out_stride[w.kept - 1] : (I)0;
#pragma unroll
      for (int v = 0; v < V; v++) {
        if (w.segments == 1) out[GATHER ? to[GATHER ? v : 0] : to[0] + v * step] = Op::drop(sum[v]);
        else partial[segment * w.outputs + o + v] = sum[v];
      }
    }
  }
}

template <class Op, int K, int KN, int RN, class I, int TEAM>
static __device__ __forceinline__ void fold_merge(typename Op::Out::T *out, const typename Op::Acc *partial,
                                                  const Fold<K, KN, RN> &w) {
  typedef typename Op::Acc Acc;
  const int TEAMS = FOLD_THREADS / TEAM, lane = threadIdx.x % TEAM;
  __shared__ Acc shared[32];
  for (i64 first = (i64)blockIdx.x * TEAMS; first < w.outputs; first += (i64)gridDim.x * TEAMS) {
    const i64 o = first + threadIdx.x / TEAM;
    Acc total = Op::neutral();
    if (o < w.outputs) {
      for (i64 s = lane; s < w.segments; s += TEAM) total = Op::join(total, partial[s * w.outputs + o]);
    }
    total = fold_team<Op, TEAM>(total, shared);
    if (o < w.outputs && lane == 0) {
      I at[K], to;
      fold_kept<K, KN, RN, I>(w, (I)o, at, to);
      out[to] = Op::drop(total);
    }
  }
}

// ---- the functor of REDUCE --------------------------------------------------------------------------------------

template <int BYTES> struct FoldChunk;
template <> struct FoldChunk<2> { u16 word; };
template <> struct FoldChunk<4> { u32 word; };
template <> struct __align__(8) FoldChunk<8> { u32 words[2]; };
template <> struct __align__(16) FoldChunk<16> { u32 words[4]; };

// The elements of one tensor; V of them lie at a multiple of their bytes.
template <class D, class I, int V>
struct Load {
  typedef typename D::A A;
  const typename D::T *in;
  __device__ __forceinline__ A operator()(const I (&at)[1]) const { return D::up(in[at[0]]); }
  __device__ __forceinline__ void many(const I (&at)[1], A (&x)[V]) const {
    typedef FoldChunk<(V > 1 ? V * sizeof(typename D::T) : 4)> Chunk;
    union { Chunk chunk; typename D::T elements[V]; } all;
    all.chunk = *(const Chunk *)(in + at[0]);
#pragma unroll
    for (int v = 0; v < V; v++) x[v] = D::up(all.elements[v]);
  }
};
