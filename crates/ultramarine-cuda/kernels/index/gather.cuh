// GATHER and GATHER_AXIS. Elements are only moved: W is a word of one or several.

// Slices of the source, one for each position. `where` finds where they begin; the walk is that of a slice: source,
// output. A thread has several words on their way at a time.
template <class W, class Where, int S, class I>
static __device__ __forceinline__ void gather_slices(const W *source, W *out, const Where &where, I positions,
                                                     const Walk<2, S> &slice) {
  const int ahead = 4;
  const I each = (I)slice.n, n = positions * each, all = thread_count<I>();
  for (I first = thread_number<I>(); first < n; first += ahead * all) {
    W words[ahead];
    I to[ahead];
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      I i = first + u * all;
      if (i < n) {
        I position = divide_whole(i, each), from, at[2];
        where.find(position, from, to[u]);
        locate<2, S, I>(slice, i - position * each, at);
        words[u] = source[from + at[0]];
        to[u] += at[1];
      }
    }
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      if (first + u * all < n) out[to[u]] = words[u];
    }
  }
}

// The walk: source, which stands still along the axis, indices, output.
template <class W, class X, int N, class I>
static __device__ __forceinline__ void gather_axis(const W *source, const typename X::T *indices, W *out, i64 size,
                                                   i64 step, const Walk<3, N> &w) {
  const int ahead = 4;
  const I n = (I)w.n, all = thread_count<I>();
  for (I first = thread_number<I>(); first < n; first += ahead * all) {
    W words[ahead];
    I to[ahead];
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      I i = first + u * all, at[3];
      if (i < n) {
        locate<3, N, I>(w, i, at);
        words[u] = source[at[0] + (I)clamped(index_of<X>(indices, at[1], size), size) * (I)step];
        to[u] = at[2];
      }
    }
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      if (first + u * all < n) out[to[u]] = words[u];
    }
  }
}
