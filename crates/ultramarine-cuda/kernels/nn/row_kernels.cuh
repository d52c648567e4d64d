// Operations along rows that fit in the registers of a team of TEAM threads, of which a thread holds E times V
// neighbours. After reduce.cuh.

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

// V neighbours of a tensor, or one element for all of them.
template <class D, int V, bool ONE>
INLINE void read_many(const typename D::T *from, int i, typename D::A (&x)[V]) {
  Load<D, i32, V> load = {from};
  const int at[1] = {ONE ? 0 : i};
  if constexpr (ONE) {
    typename D::A one = load(at);
#pragma unroll
    for (int v = 0; v < V; v++) x[v] = one;
  } else {
    FoldRead<V>::of(load, at, x);
  }
}

// V neighbours written at once.
template <class D, int V>
INLINE void write_many(typename D::T *to, const typename D::A (&x)[V]) {
  if constexpr (V == 1) {
    to[0] = D::down(x[0]);
  } else {
    typedef FoldChunk<V * sizeof(typename D::T)> Chunk;
    union { Chunk chunk; typename D::T elements[V]; } all;
#pragma unroll
    for (int v = 0; v < V; v++) all.elements[v] = D::down(x[v]);
    *(Chunk *)to = all.chunk;
  }
}

// What thread `lane` of a team holds of a row; `none` stands for what is behind the row.
template <class D, int TEAM, int E, int V>
INLINE void read_row(const typename D::T *from, int lane, int count, typename D::A none, typename D::A (&x)[E][V]) {
#pragma unroll
  for (int e = 0; e < E; e++) {
    const int at = (e * TEAM + lane) * V;
    if (at < count) read_many<D, V, false>(from, at, x[e]);
    else {
#pragma unroll
      for (int v = 0; v < V; v++) x[e][v] = none;
    }
  }
}

// Has a team do each row: `f.row(base, lane, live, shared)`, where the rows of the K tensors begin at `base`. All
// threads of a block do as many rows, since they meet in joins; one that is not `live` is not written.
template <class F, class R, int K, int KN, class I, int TEAM>
INLINE void each_row(const F &f, const Fold<K, KN, 1> &w) {
  const int THREADS = TEAM < 256 ? 256 : TEAM, TEAMS = THREADS / TEAM, lane = threadIdx.x % TEAM;
  __shared__ R shared[32];
  for (i64 first = (i64)blockIdx.x * TEAMS; first < w.outputs; first += (i64)gridDim.x * TEAMS) {
    const i64 o = first + threadIdx.x / TEAM;
    const bool live = o < w.outputs;
    I base[K], none;
    fold_kept<K, KN, 1, I>(w, live ? (I)o : (I)0, base, none);
    f.row(base, lane, live, shared);
  }
}
