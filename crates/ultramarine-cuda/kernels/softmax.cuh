// LOGSUMEXP as a reduction (reduce.cuh), and SOFTMAX: of rows that fit in a team's registers in one pass, else a
// reduction and a second pass over the elements.

INLINE float softmax_exp(float x) { return expf(x); }
INLINE double softmax_exp(double x) { return exp(x); }
INLINE float softmax_log(float x) { return logf(x); }
INLINE double softmax_log(double x) { return log(x); }

// The sum of e^x as `sum * e^top`.
template <class R>
struct ScaledSum {
  R top, sum;
};

template <class D>
struct LogSumExp {
  typedef typename D::A R;
  typedef ScaledSum<R> Acc;
  typedef D Out;
  template <class I> INLINE Acc lift(R x, I) { Acc y; y.top = x; y.sum = 1; return y; }
  INLINE Acc neutral() { Acc y; y.top = FoldEnd<D, REAL>::of(false); y.sum = 0; return y; }
  INLINE Acc join(Acc a, Acc b) {
    // Infinities of one sign are equal; NaN gets into the sum, and stays there.
    bool first = a.top > b.top, same = a.top == b.top;
    R scale = same ? (R)1 : softmax_exp(first ? b.top - a.top : a.top - b.top);
    Acc y;
    y.top = first ? a.top : b.top;
    y.sum = first ? a.sum + b.sum * scale : b.sum + a.sum * scale;
    return y;
  }
  INLINE typename D::T drop(Acc x) { return D::down(x.top + softmax_log(x.sum)); }
};

// The same, of which the accumulators are the results. An infinite top makes NaN of the row.
template <class D>
struct SoftmaxSum : LogSumExp<D> {
  typedef typename LogSumExp<D>::Acc Acc;
  struct Out { typedef Acc T; };
  INLINE Acc drop(Acc x) { x.sum += x.top - x.top; return x; }
};

// Input, output and the rows' sums walked together.
template <class D, int N, class I>
static __device__ __forceinline__ void softmax_apply(const typename D::T *in, typename D::T *out,
                                                     const ScaledSum<typename D::A> *sums, const Walk<3, N> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[3];
    locate<3, N, I>(w, i, at);
    ScaledSum<typename D::A> row = sums[at[2]];
    out[at[1]] = D::down(softmax_exp(D::up(in[at[0]]) - row.top) / row.sum);
  }
}

// The join over a team in all its threads.
template <class Op, int TEAM>
INLINE typename Op::Acc team_all(typename Op::Acc x, typename Op::Acc *shared) {
  x = fold_team<Op, TEAM>(x, shared);
  if (TEAM <= 32) return x;
  if (threadIdx.x == 0) shared[0] = x;
  __syncthreads();
  x = shared[0];
  __syncthreads();
  return x;
}

// V neighbours written at once.
template <class D, int V>
INLINE void write_many(typename D::T *to, const typename D::A (&x)[V]) {
  typedef FoldChunk<(V > 1 ? V * sizeof(typename D::T) : 4)> Chunk;
  if (V == 1) {
    to[0] = D::down(x[0]);
    return;
  }
  union { Chunk chunk; typename D::T elements[V]; } all;
#pragma unroll
  for (int v = 0; v < V; v++) all.elements[v] = D::down(x[v]);
  *(Chunk *)to = all.chunk;
}

// A team of TEAM threads for each row, of which a thread holds E times V neighbours.
template <class D, int KN, class I, int TEAM, int E, int V>
static __device__ __forceinline__ void softmax_rows(const typename D::T *in, typename D::T *out,
                                                    const Fold<2, KN, 1> &w) {
  typedef typename D::A R;
  const int THREADS = TEAM < 256 ? 256 : TEAM, TEAMS = THREADS / TEAM, lane = threadIdx.x % TEAM;
  __shared__ R shared[32];
  const int count = (int)w.count;
  for (i64 first = (i64)blockIdx.x * TEAMS; first < w.outputs; first += (i64)gridDim.x * TEAMS) {
    const i64 o = first + threadIdx.x / TEAM;
    const bool live = o < w.outputs;
    I base[2], none;
    fold_kept<2, KN, 1, I>(w, live ? (I)o : (I)0, base, none);
    const typename D::T *from = in + base[0];
    R x[E][V], top = FoldEnd<D, REAL>::of(false), sum = 0;
    Load<D, i32, V> load = {from};
#pragma unroll
    for (int e = 0; e < E; e++) {
      const int at[1] = {(e * TEAM + lane) * V};
      if (at[0] < count) FoldRead<V>::of(load, at, x[e]);
      else {
#pragma unroll
        for (int v = 0; v < V; v++) x[e][v] = FoldEnd<D, REAL>::of(false);
      }
    }
#pragma unroll
    for (int e = 0; e < E; e++) {
#pragma unroll
      for (int v = 0; v < V; v++) top = Max<D>::join(top, x[e][v]);
    }
    top = team_all<Max<D>, TEAM>(top, shared);
#pragma unroll
    for (int e = 0; e < E; e++) {
#pragma unroll
      for (int v = 0; v < V; v++) {
        x[e][v] = softmax_exp(x[e][v] - top);
        sum += x[e][v];
      }
    }
    sum = team_all<Sum<D>, TEAM>(sum, shared);
    const R scale = (R)1 / sum;
#pragma unroll
    for (int e = 0; e < E; e++) {
      const int at = (e * TEAM + lane) * V;
      if (live && at < count) {
        // What is rounded to half its bits needs no exact quotient.
#pragma unroll
        for (int v = 0; v < V; v++) x[e][v] = D::is_half ? x[e][v] * scale : x[e][v] / sum;
        write_many<D, V>(out + base[1] + at, x[e]);
      }
    }
  }
}
