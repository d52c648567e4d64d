// RMS_NORM and LAYER_NORM of the last axis: of rows that fit in a team's registers in one pass (nn/row_kernels.cuh), else a
// reduction into moments (reduce.cuh) and a second pass over the elements.

INLINE float norm_sqrt(float x) { return sqrtf(x); }
INLINE double norm_sqrt(double x) { return sqrt(x); }

// The sum of the squares.
template <class D>
struct Squares : FoldValue<D> {
  typedef typename D::A Acc;
  struct Out { typedef Acc T; };
  template <class I> INLINE Acc lift(Acc x, I) { return x * x; }
  INLINE Acc neutral() { return 0; }
  INLINE Acc join(Acc a, Acc b) { return a + b; }
  INLINE Acc drop(Acc x) { return x; }
};

// How many there are, their mean and the sum of their squared distances from it.
template <class R>
struct Distances {
  R n, mean, squares;
};

template <class D>
struct Moments {
  typedef typename D::A R;
  typedef Distances<R> Acc;
  struct Out { typedef Acc T; };
  template <class I> INLINE Acc lift(R x, I) { Acc y; y.n = 1; y.mean = x; y.squares = 0; return y; }
  INLINE Acc neutral() { Acc y; y.n = 0; y.mean = 0; y.squares = 0; return y; }
  INLINE Acc join(Acc a, Acc b) {
    Acc y;
    y.n = a.n + b.n;
    R apart = b.mean - a.mean, part = y.n > 0 ? apart * (b.n / y.n) : (R)0;
    y.mean = a.mean + part;
    y.squares = a.squares + b.squares + a.n * part * apart;
    return y;
  }
  INLINE Acc drop(Acc x) { return x; }
};

template <class R> INLINE R norm_mean(R) { return 0; }
template <class R> INLINE R norm_mean(Distances<R> x) { return x.mean; }
template <class R> INLINE R norm_squares(R x) { return x; }
template <class R> INLINE R norm_squares(Distances<R> x) { return x.squares; }

// Input, output, the weight, the bias if there is one, and the rows' moments walked together.
template <class D, bool BIAS, class S, int K, int N, class I>
static __device__ __forceinline__ void norm_apply(const typename D::T *in, typename D::T *out,
                                                  const typename D::T *weight, const typename D::T *bias,
                                                  const S *moments, double eps, i64 count, const Walk<K, N> &w) {
  typedef typename D::A R;
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[K];
    locate<K, N, I>(w, i, at);
    S row = moments[at[K - 1]];
    R scale = (R)1 / norm_sqrt(norm_squares(row) / (R)count + (R)eps);
    R y = (D::up(in[at[0]]) - norm_mean(row)) * scale * D::up(weight[at[2]]);
    if (BIAS) y += D::up(bias[at[3]]);
    out[at[1]] = D::down(y);
  }
}

// Elements of the tensor whose row begins at the first of the places.
template <class D, int V>
struct NormRead {
  const typename D::T *in;
  template <class I, int K>
  __device__ __forceinline__ void operator()(const I (&base)[K], int at, typename D::A (&x)[V]) const {
    read_many<D, V, false>(in + base[0], at, x);
  }
};

// A row, by a team, of elements that `from` gives. Of the K tensors OUT is the output, behind which the weight and, if
// CENTERED, the bias are. Bit k of ONE: tensor k has one element for all of a row.
template <class D, class From, bool CENTERED, int K, class I, int TEAM, int E, int V, int ONE, int OUT>
struct NormRow {
  typedef typename D::A R;
  From from;
  typename D::T *out;
  const typename D::T *weight, *bias;
  double eps;
  int count;
  __device__ __forceinline__ void row(const I (&base)[K], int lane, bool live, R *shared) const {
    R x[E][V], sum = 0, mean = 0;
#pragma unroll
    for (int e = 0; e < E; e++) {
      const int at = (e * TEAM + lane) * V;
      // Other outputs of `from` are written once.
      if (live && at < count) from(base, at, x[e]);
      else {
#pragma unroll
        for (int v = 0; v < V; v++) x[e][v] = 0;
      }
    }
    if (CENTERED) {
#pragma unroll
      for (int e = 0; e < E; e++) {
#pragma unroll
        for (int v = 0; v < V; v++) sum += x[e][v];
      }
      mean = team_all<Sum<D>, TEAM>(sum, shared) / (R)count;
      sum = 0;
    }
#pragma unroll
    for (int e = 0; e < E; e++) {
      if ((e * TEAM + lane) * V < count) {
#pragma unroll
        for (int v = 0; v < V; v++) {
          x[e][v] -= mean;
          sum += x[e][v] * x[e][v];
        }
      }
    }
    sum = team_all<Sum<D>, TEAM>(sum, shared);
    const R scale = (R)1 / norm_sqrt(sum / (R)count + (R)eps);
#pragma unroll
    for (int e = 0; e < E; e++) {
      const int at = (e * TEAM + lane) * V;
      if (live && at < count) {
        R y[V];
        read_many<D, V, (ONE >> (OUT + 1) & 1) != 0>(weight + base[OUT + 1], at, y);
#pragma unroll
        for (int v = 0; v < V; v++) x[e][v] = x[e][v] * scale * y[v];
        if (CENTERED) {
          read_many<D, V, (ONE >> (OUT + 2) & 1) != 0>(bias + base[K - 1], at, y);
#pragma unroll
          for (int v = 0; v < V; v++) x[e][v] += y[v];
        }
        write_many<D, V>(out + base[OUT] + at, x[e]);
      }
    }
  }
};

template <class D, class From, bool CENTERED, int K, int KN, class I, int TEAM, int E, int V, int ONE, int OUT>
static __device__ __forceinline__ void norm_rows_of(const From &from, typename D::T *out, const typename D::T *weight,
                                                    const typename D::T *bias, double eps, const Fold<K, KN, 1> &w) {
  typedef NormRow<D, From, CENTERED, K, I, TEAM, E, V, ONE, OUT> Row;
  Row f = {from, out, weight, bias, eps, (int)w.count};
  each_row<Row, typename D::A, K, KN, I, TEAM>(f, w);
}

// K is 3, or 4 with a bias.
template <class D, int K, int KN, class I, int TEAM, int E, int V, int ONE>
static __device__ __forceinline__ void norm_rows(const typename D::T *in, typename D::T *out,
                                                 const typename D::T *weight, const typename D::T *bias, double eps,
                                                 const Fold<K, KN, 1> &w) {
  typedef NormRead<D, V> From;
  From from = {in};
  norm_rows_of<D, From, K == 4, K, KN, I, TEAM, E, V, ONE, 1>(from, out, weight, bias, eps, w);
}
