// LOGSUMEXP as a reduction (reduce.cuh), and SOFTMAX: of rows that fit in a team's registers in one pass
// (nn/row_kernels.cuh), else a reduction and a second pass over the elements.

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

// A row, by a team.
template <class D, class I, int TEAM, int E, int V>
struct SoftmaxRow {
  typedef typename D::A R;
  const typename D::T *in;
  typename D::T *out;
  int count;
  __device__ __forceinline__ void row(const I (&base)[2], int lane, bool live, R *shared) const {
    R x[E][V], top = FoldEnd<D, REAL>::of(false), sum = 0;
    read_row<D, TEAM, E, V>(in + base[0], lane, count, top, x);
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
};

template <class D, int KN, class I, int TEAM, int E, int V>
static __device__ __forceinline__ void softmax_rows(const typename D::T *in, typename D::T *out,
                                                    const Fold<2, KN, 1> &w) {
  typedef SoftmaxRow<D, I, TEAM, E, V> Row;
  Row f = {in, out, (int)w.count};
  each_row<Row, typename D::A, 2, KN, I, TEAM>(f, w);
}
