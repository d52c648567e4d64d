// RMS_NORM_GRADIENT and LAYER_NORM_GRADIENT of rows: a team of threads makes the gradient of a row by x, and keeps the row's mean
// and scale; sums over rows are made of blocks of columns and rows, and joined in order. After nn/row_kernels.cuh and nn/norm.cuh.

struct NormGradient {
  i64 rows, n;
  // Strides of x, of the cotangent, and of the gradients by x, weight and bias.
  i64 pitch, step, t_pitch, t_step, out_pitch, out_step, weight, by_weight, by_bias;
};

// V neighbours at a time; where V is 1 they lie anywhere.
template <class D, bool CENTERED, int TEAM, int V>
static __device__ __forceinline__ void norm_gradient_rows(const typename D::T *x, const typename D::T *weight,
                                                          const typename D::T *cotangent, typename D::T *out,
                                                          typename D::A *stats, double eps, const NormGradient &s) {
  typedef typename D::A R;
  const int THREADS = TEAM < 256 ? 256 : TEAM, TEAMS = THREADS / TEAM, lane = threadIdx.x % TEAM;
  __shared__ R shared[32];
  const R n = (R)s.n;
  for (i64 first = (i64)blockIdx.x * TEAMS; first < s.rows; first += (i64)gridDim.x * TEAMS) {
    const i64 own = first + threadIdx.x / TEAM, row = own < s.rows ? own : s.rows - 1;
    const typename D::T *const from = x + row * s.pitch, *const of = cotangent + row * s.t_pitch;
    R v[V], t[V], w[V], mean = 0, sum = 0;
    if (CENTERED) {
      for (i64 i = (i64)lane * V; i < s.n; i += TEAM * V) {
        read_many<D, V, false>(from + i * s.step, 0, v);
#pragma unroll
        for (int e = 0; e < V; e++) sum += v[e];
      }
      mean = team_all<Sum<D>, TEAM>(sum, shared) / n;
      sum = 0;
    }
    for (i64 i = (i64)lane * V; i < s.n; i += TEAM * V) {
      read_many<D, V, false>(from + i * s.step, 0, v);
#pragma unroll
      for (int e = 0; e < V; e++) sum += (v[e] - mean) * (v[e] - mean);
    }
    sum = team_all<Sum<D>, TEAM>(sum, shared);
    const R scale = (R)1 / norm_sqrt(sum / n + (R)eps);
    R direct = 0, along = 0;
    for (i64 i = (i64)lane * V; i < s.n; i += TEAM * V) {
      read_many<D, V, false>(from + i * s.step, 0, v);
      read_many<D, V, false>(of + i * s.t_step, 0, t);
      read_many<D, V, false>(weight + i * s.weight, 0, w);
#pragma unroll
      for (int e = 0; e < V; e++) {
        t[e] *= w[e];
        direct += t[e];
        along += t[e] * ((v[e] - mean) * scale);
      }
    }
    direct = CENTERED ? team_all<Sum<D>, TEAM>(direct, shared) / n : 0;
    along = team_all<Sum<D>, TEAM>(along, shared) / n;
    if (own < s.rows) {
      for (i64 i = (i64)lane * V; i < s.n; i += TEAM * V) {
        read_many<D, V, false>(from + i * s.step, 0, v);
        read_many<D, V, false>(of + i * s.t_step, 0, t);
        read_many<D, V, false>(weight + i * s.weight, 0, w);
#pragma unroll
        for (int e = 0; e < V; e++) v[e] = (t[e] * w[e] - direct - (v[e] - mean) * scale * along) * scale;
        write_many<D, V>(out + row * s.out_pitch + i * s.out_step, v);
      }
      if (lane == 0) {
        stats[2 * row] = mean;
        stats[2 * row + 1] = scale;
      }
    }
  }
}

// The sums of `each` rows, of 32 columns a block.
template <class D>
static __device__ __forceinline__ void norm_gradient_columns(const typename D::T *x, const typename D::T *cotangent,
                                                             const typename D::A *stats, typename D::A *partial, i64 each,
                                                             const NormGradient &s) {
  typedef typename D::A R;
  __shared__ R sums[2][8][32];
  const i64 across = (s.n + 31) / 32, part = blockIdx.x / across;
  const int lane = threadIdx.x % 32, line = threadIdx.x / 32;
  const i64 column = (blockIdx.x - part * across) * 32 + lane, last = (part + 1) * each, end = last < s.rows ? last : s.rows;
  R by_weight = 0, by_bias = 0;
  if (column < s.n) {
#pragma unroll 4
    for (i64 row = part * each + line; row < end; row += 8) {
      const R t = D::up(cotangent[row * s.t_pitch + column * s.t_step]);
      const R y = (D::up(x[row * s.pitch + column * s.step]) - stats[2 * row]) * stats[2 * row + 1];
      by_weight += t * y;
      by_bias += t;
    }
  }
  sums[0][line][lane] = by_weight;
  sums[1][line][lane] = by_bias;
  __syncthreads();
  if (line < 2 && column < s.n) {
    R sum = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) sum += sums[line][i][lane];
    partial[(part * 2 + line) * s.n + column] = sum;
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
