// RMS_NORM_GRADIENT and LAYER_NORM_GRADIENT of rows: a team of threads makes the gradient of a row by x. Sums over rows are made of
// parts, which are joined in order: by the same threads where a team holds a row, else in a pass of their own, of the rows' means
// and scales. Parts follow from sizes alone, so results are the same on every device. After nn/row_kernels.cuh and nn/norm.cuh.

template <bool B> struct Flag { static const bool value = B; };

struct NormGradient {
  i64 rows, n;
  // Strides of x, of the cotangent, and of the gradients by x, weight and bias.
  i64 pitch, step, t_pitch, t_step, out_pitch, out_step, weight, by_weight, by_bias;
};

// V neighbours as they are stored.
template <class D, int V>
union NormPack {
  FoldChunk<V * sizeof(typename D::T)> chunk;
  typename D::T at[V];
};

template <class D, int V>
INLINE void norm_read(const typename D::T *from, NormPack<D, V> &to) {
  to.chunk = *(const FoldChunk<V * sizeof(typename D::T)> *)from;
}

// Blocks of `each` rows, of which a team's threads hold E times V elements each of x and of the cotangent, which is all; where V
// is 1 neighbours lie anywhere. SUMS: a thread adds up what its columns give to the gradients by weight and bias, and a block
// writes the sums of its rows, those by weight before those by bias, each E x V x TEAM: element v of a thread's pack e is
// TEAM (V e + v) + thread.
template <class D, bool CENTERED, bool SUMS, int TEAM, int E, int V>
static __device__ __forceinline__ void norm_gradient_held(const typename D::T *x, const typename D::T *weight,
                                                          const typename D::T *cotangent, typename D::T *out,
                                                          typename D::A *partial, double eps, i64 each,
                                                          const NormGradient &s) {
  typedef typename D::A R;
  const int THREADS = TEAM == 32 ? 256 : TEAM, TEAMS = THREADS / TEAM;
  const int lane = threadIdx.x % TEAM, team = threadIdx.x / TEAM, columns = (int)s.n;
  __shared__ R shared[32];
  const R n = (R)s.n;
  const i64 begin = blockIdx.x * each, end = begin + each < s.rows ? begin + each : s.rows;
  R by_weight[E][V], by_bias[E][V];
#pragma unroll
  for (int e = 0; e < E; e++) {
#pragma unroll
    for (int v = 0; v < V; v++) by_weight[e][v] = by_bias[e][v] = 0;
  }
  for (i64 first = begin; first < end; first += TEAMS) {
    const bool live = first + team < end;
    const i64 row = live ? first + team : end - 1;
    NormPack<D, V> xs[E], ts[E];
#pragma unroll
    for (int e = 0; e < E; e++) {
      const int i = (e * TEAM + lane) * V;
      if (i < columns) {
        norm_read<D, V>(x + row * s.pitch + i * s.step, xs[e]);
        norm_read<D, V>(cotangent + row * s.t_pitch + i * s.t_step, ts[e]);
      }
    }
    // f(e, first column) of the thread's packs.
    const auto packs = [&](auto f) {
#pragma unroll
      for (int e = 0; e < E; e++) {
        const int i = (e * TEAM + lane) * V;
        if (i < columns) f(e, i);
      }
    };
    R mean = 0, sum = 0, direct = 0, along = 0;
    if (CENTERED) {
      packs([&](int e, int) {
#pragma unroll
        for (int v = 0; v < V; v++) sum += D::up(xs[e].at[v]);
      });
      mean = team_all<Sum<D>, TEAM>(sum, shared) / n;
      sum = 0;
    }
    packs([&](int e, int) {
#pragma unroll
      for (int v = 0; v < V; v++) sum += (D::up(xs[e].at[v]) - mean) * (D::up(xs[e].at[v]) - mean);
    });
    sum = team_all<Sum<D>, TEAM>(sum, shared);
    const R scale = (R)1 / norm_sqrt(sum / n + (R)eps);
    packs([&](int e, int i) {
      R w[V];
      read_many<D, V, false>(weight + i * s.weight, 0, w);
#pragma unroll
      for (int v = 0; v < V; v++) {
        const R t = D::up(ts[e].at[v]), y = (D::up(xs[e].at[v]) - mean) * scale, slope = t * w[v];
        direct += slope;
        along += slope * y;
        if (SUMS && live) {
          by_weight[e][v] += t * y;
          by_bias[e][v] += t;
        }
      }
    });
    direct = CENTERED ? team_all<Sum<D>, TEAM>(direct, shared) / n : 0;
    along = team_all<Sum<D>, TEAM>(along, shared) / n;
    if (live) {
      packs([&](int e, int i) {
        R y[V], w[V];
        read_many<D, V, false>(weight + i * s.weight, 0, w);
#pragma unroll
        for (int v = 0; v < V; v++) {
          y[v] = (D::up(ts[e].at[v]) * w[v] - direct - (D::up(xs[e].at[v]) - mean) * scale * along) * scale;
        }
        write_many<D, V>(out + row * s.out_pitch + i * s.out_step, y);
      });
    }
  }
  if constexpr (SUMS) {
    R *to = partial + blockIdx.x * (i64)(2 * E * V * TEAM);
    __shared__ R sums[TEAMS > 1 ? TEAMS : 1][TEAMS > 1 ? V * TEAM : 1];
#pragma unroll
    for (int which = 0; which < (CENTERED ? 2 : 1); which++) {
#pragma unroll
      for (int e = 0; e < E; e++) {
        R *const part = to + (which * E + e) * (V * TEAM);
#pragma unroll
        for (int v = 0; v < V; v++) {
          const R sum = which ? by_bias[e][v] : by_weight[e][v];
          if (TEAMS > 1) sums[team][v * TEAM + lane] = sum;
          else part[v * TEAM + lane] = sum;
        }
        if (TEAMS > 1) {
          __syncthreads();
          for (int i = threadIdx.x; i < V * TEAM; i += THREADS) {
            R sum = 0;
#pragma unroll
            for (int k = 0; k < TEAMS; k++) sum += sums[k][i];
            part[i] = sum;
          }
          __syncthreads();
        }
      }
    }
  }
}

// Rows that no team holds: a block reads each again for each sum, and writes its mean and scale.
template <class D, bool CENTERED, int V>
static __device__ __forceinline__ void norm_gradient_rows(const typename D::T *x, const typename D::T *weight,
                                                          const typename D::T *cotangent, typename D::T *out,
                                                          typename D::A *stats, double eps, const NormGradient &s) {
  typedef typename D::A R;
  const int TEAM = 1024;
  __shared__ R shared[32];
  const R n = (R)s.n;
  for (i64 row = blockIdx.x; row < s.rows; row += gridDim.x) {
    // f(first column, x, the cotangents times the weight) of packs; SLOPES: the last are needed.
    const auto packs = [&](auto slopes, auto f) {
      for (i64 i = (i64)threadIdx.x * V; i < s.n; i += TEAM * V) {
        R v[V], t[V], w[V];
        read_many<D, V, false>(x + row * s.pitch + i * s.step, 0, v);
        if constexpr (decltype(slopes)::value) {
          read_many<D, V, false>(cotangent + row * s.t_pitch + i * s.t_step, 0, t);
          read_many<D, V, false>(weight + i * s.weight, 0, w);
#pragma unroll
          for (int e = 0; e < V; e++) t[e] *= w[e];
        }
        f(i, v, t);
      }
    };
    const Flag<false> alone;
    const Flag<true> both;
    R mean = 0, sum = 0, direct = 0, along = 0;
    if (CENTERED) {
      packs(alone, [&](i64, const R (&v)[V], const R (&)[V]) {
#pragma unroll
        for (int e = 0; e < V; e++) sum += v[e];
      });
      mean = team_all<Sum<D>, TEAM>(sum, shared) / n;
      sum = 0;
    }
    packs(alone, [&](i64, const R (&v)[V], const R (&)[V]) {
#pragma unroll
      for (int e = 0; e < V; e++) sum += (v[e] - mean) * (v[e] - mean);
    });
    sum = team_all<Sum<D>, TEAM>(sum, shared);
    const R scale = (R)1 / norm_sqrt(sum / n + (R)eps);
    packs(both, [&](i64, const R (&v)[V], const R (&t)[V]) {
#pragma unroll
      for (int e = 0; e < V; e++) {
        direct += t[e];
        along += t[e] * ((v[e] - mean) * scale);
      }
    });
    direct = CENTERED ? team_all<Sum<D>, TEAM>(direct, shared) / n : 0;
    along = team_all<Sum<D>, TEAM>(along, shared) / n;
    packs(both, [&](i64 i, const R (&v)[V], const R (&t)[V]) {
      R y[V];
#pragma unroll
      for (int e = 0; e < V; e++) y[e] = (t[e] - direct - (v[e] - mean) * scale * along) * scale;
      write_many<D, V>(out + row * s.out_pitch + i * s.out_step, y);
    });
    if (threadIdx.x == 0) {
      stats[2 * row] = mean;
      stats[2 * row + 1] = scale;
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

// The sums of parts of `width` numbers by weight and as many by bias: 32 of them a block, over which 32 lines of threads share the
// parts. They are in the order of norm_gradient_held's threads and packs; with `vector` 1, in that of the columns.
template <class D, bool CENTERED>
static __device__ __forceinline__ void norm_gradient_sums(const typename D::A *partial, typename D::T *by_weight,
                                                          typename D::T *by_bias, i64 parts, i64 width, i32 team,
                                                          i32 vector, const NormGradient &s) {
  __shared__ typename D::A sums[32][32];
  const int lane = threadIdx.x % 32, line = threadIdx.x / 32;
  const i64 place = (i64)blockIdx.x * 32 + lane;
  typename D::A sum = 0;
  if (place < (CENTERED ? 2 : 1) * width) {
#pragma unroll 8
    for (i64 part = line; part < parts; part += 32) sum += partial[part * 2 * width + place];
  }
  sums[line][lane] = sum;
  __syncthreads();
  for (int half = 16; half > 0; half /= 2) {
    if (line < half) sums[line][lane] += sums[line + half][lane];
    __syncthreads();
  }
  if (line > 0 || place >= (CENTERED ? 2 : 1) * width) return;
  const i64 at = place < width ? place : place - width, pack = at / ((i64)team * vector);
  const i64 inside = at - pack * team * vector, column = (pack * team + inside % team) * vector + inside / team;
  if (column >= s.n) return;
  if (place < width) by_weight[column * s.by_weight] = D::down(sums[0][lane]);
  else by_bias[column * s.by_bias] = D::down(sums[0][lane]);
}
