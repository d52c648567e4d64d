// RMS_NORM_GRADIENT and LAYER_NORM_GRADIENT of rows: a team of threads makes the gradient of a row by x, and keeps the row's mean
// and scale; sums over rows are made of blocks of columns and rows, and joined in order. After nn/row_kernels.cuh and nn/norm.cuh.

struct NormGradient {
  i64 rows, n;
  // Strides of x, of the cotangent, and of the gradients by x, weight and bias.
  i64 pitch, step, t_pitch, t_step, out_pitch, out_step, weight, by_weight, by_bias;
};

// V neighbours at a time; where V is 1 they lie anywhere. A thread holds E times V elements of x and of the cotangent, which is
// all; where E is 0 it reads them again for each sum.
template <class D, bool CENTERED, int TEAM, int E, int V>
struct NormGradientRow {
  typedef typename D::A R;
  typedef typename D::T T;
  const T *x, *cotangent, *weight;
  i64 step, t_step, w_step;
  i64 n;
  int lane;
  R held[E ? E : 1][V], slopes[E ? E : 1][V];

  INLINE void read(const T *from, i64 at, R (&to)[V]) { read_many<D, V, false>(from + at, 0, to); }
  // The cotangents times the weight.
  __device__ __forceinline__ void read_slopes(i64 i, R (&to)[V]) {
    R w[V];
    read(cotangent, i * t_step, to);
    read(weight, i * w_step, w);
#pragma unroll
    for (int v = 0; v < V; v++) to[v] *= w[v];
  }
  __device__ __forceinline__ void hold() {
#pragma unroll
    for (int e = 0; e < E; e++) {
      const int i = (e * TEAM + lane) * V;
      if (i < n) {
        read(x, i * step, held[e]);
        read_slopes(i, slopes[e]);
      }
    }
  }
  // f(i, x, slopes) of each V elements; SLOPES: they are needed.
  template <bool SLOPES, class F>
  __device__ __forceinline__ void each(F f) {
    if constexpr (E > 0) {
#pragma unroll
      for (int e = 0; e < E; e++) {
        const int i = (e * TEAM + lane) * V;
        if (i < n) f(i, held[e], slopes[e]);
      }
    } else {
      for (i64 i = (i64)lane * V; i < n; i += TEAM * V) {
        R v[V], t[V];
        read(x, i * step, v);
        if (SLOPES) read_slopes(i, t);
        f(i, v, t);
      }
    }
  }
};

template <class D, bool CENTERED, int TEAM, int E, int V>
static __device__ __forceinline__ void norm_gradient_rows(const typename D::T *x, const typename D::T *weight,
                                                          const typename D::T *cotangent, typename D::T *out,
                                                          typename D::A *stats, double eps, const NormGradient &s) {
  typedef typename D::A R;
  const int THREADS = TEAM < 256 ? 256 : TEAM, TEAMS = THREADS / TEAM, lane = threadIdx.x % TEAM;
  __shared__ R shared[32];
  const R n = (R)s.n;
  for (i64 first = (i64)blockIdx.x * TEAMS; first < s.rows; first += (i64)gridDim.x * TEAMS) {
    const i64 own = first + threadIdx.x / TEAM, row = own < s.rows ? own : s.rows - 1;
    NormGradientRow<D, CENTERED, TEAM, E, V> r;
    r.x = x + row * s.pitch, r.cotangent = cotangent + row * s.t_pitch, r.weight = weight;
    r.step = s.step, r.t_step = s.t_step, r.w_step = s.weight;
    r.n = s.n, r.lane = lane;
    r.hold();
    R mean = 0, sum = 0, direct = 0, along = 0;
    if (CENTERED) {
      r.template each<false>([&](i64, const R (&v)[V], const R (&)[V]) {
#pragma unroll
        for (int e = 0; e < V; e++) sum += v[e];
      });
      mean = team_all<Sum<D>, TEAM>(sum, shared) / n;
      sum = 0;
    }
    r.template each<false>([&](i64, const R (&v)[V], const R (&)[V]) {
#pragma unroll
      for (int e = 0; e < V; e++) sum += (v[e] - mean) * (v[e] - mean);
    });
    sum = team_all<Sum<D>, TEAM>(sum, shared);
    const R scale = (R)1 / norm_sqrt(sum / n + (R)eps);
    r.template each<true>([&](i64, const R (&v)[V], const R (&t)[V]) {
#pragma unroll
      for (int e = 0; e < V; e++) {
        direct += t[e];
        along += t[e] * ((v[e] - mean) * scale);
      }
    });
    direct = CENTERED ? team_all<Sum<D>, TEAM>(direct, shared) / n : 0;
    along = team_all<Sum<D>, TEAM>(along, shared) / n;
    if (own < s.rows) {
      r.template each<true>([&](i64 i, const R (&v)[V], const R (&t)[V]) {
        R y[V];
#pragma unroll
        for (int e = 0; e < V; e++) y[e] = (t[e] - direct - (v[e] - mean) * scale * along) * scale;
        write_many<D, V>(out + row * s.out_pitch + i * s.out_step, y);
      });
      if (lane == 0) {
        stats[2 * row] = mean;
        stats[2 * row + 1] = scale;
      }
    }
  }
}

// The sums of `each` rows, of 32 V columns a block; where V is not 1, they are neighbours.
template <class D, int V>
static __device__ __forceinline__ void norm_gradient_columns(const typename D::T *x, const typename D::T *cotangent,
                                                             const typename D::A *stats, typename D::A *partial, i64 each,
                                                             const NormGradient &s) {
  typedef typename D::A R;
  __shared__ R sums[2][8][32 * V];
  const i64 across = (s.n + 32 * V - 1) / (32 * V), part = blockIdx.x / across;
  const int lane = threadIdx.x % 32, line = threadIdx.x / 32;
  const i64 column = ((blockIdx.x - part * across) * 32 + lane) * V, last = (part + 1) * each;
  const i64 end = last < s.rows ? last : s.rows;
  R by_weight[V], by_bias[V];
#pragma unroll
  for (int v = 0; v < V; v++) by_weight[v] = by_bias[v] = 0;
  if (column < s.n) {
#pragma unroll 4
    for (i64 row = part * each + line; row < end; row += 8) {
      R t[V], y[V];
      read_many<D, V, false>(cotangent + row * s.t_pitch + column * s.t_step, 0, t);
      read_many<D, V, false>(x + row * s.pitch + column * s.step, 0, y);
      const R mean = stats[2 * row], scale = stats[2 * row + 1];
#pragma unroll
      for (int v = 0; v < V; v++) {
        by_weight[v] += t[v] * ((y[v] - mean) * scale);
        by_bias[v] += t[v];
      }
    }
  }
#pragma unroll
  for (int v = 0; v < V; v++) {
    sums[0][line][lane * V + v] = by_weight[v];
    sums[1][line][lane * V + v] = by_bias[v];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * 32 * V; i += 256) {
    const int which = i / (32 * V), at = i % (32 * V);
    const i64 to = (column / V - lane) * V + at;
    R sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += sums[which][k][at];
    if (to < s.n) partial[(part * 2 + which) * s.n + to] = sum;
  }
}

template <class D, bool CENTERED>
static __device__ __forceinline__ void norm_gradient_sums(const typename D::A *partial, typename D::T *by_weight,
                                                          typename D::T *by_bias, i64 parts, const NormGradient &s) {
  const i64 all = CENTERED ? 2 * s.n : s.n;
  for (i64 i = thread_number<i64>(); i < all; i += thread_count<i64>()) {
    typename D::A sum = 0;
#pragma unroll 8
    for (i64 part = 0; part < parts; part++) sum += partial[part * 2 * s.n + i];
    if (i < s.n) by_weight[i * s.by_weight] = D::down(sum);
    else by_bias[(i - s.n) * s.by_bias] = D::down(sum);
  }
}
