// DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE. Elements are only moved: W is a word of one or several.

// The starts of a window: where they are, how far apart, and for each the number of places where a window can begin on its
// axis, and the step from one to the next.
template <int N>
struct Starts {
  const void *starts;
  i64 apart;
  i64 limit[N];
  i64 step[N];
};

// The window that begins at starts, moved from `source` to `out`. The walk is that of the window: source, output.
template <class W, int N, int R>
struct Window {
  const W *source;
  W *out;
  Starts<N> starts;
  Walk<2, R> walk;
};

// OUT says that the starts are about the output, not the source. Every thread reads them: they are one line of the cache.
template <class W, class X, int N, bool OUT, int R, class I, int M>
static __device__ __forceinline__ void move_window(const Several<Window<W, N, R>, M> &several) {
  const Starts<N> &s = several.own().starts;
  const Walk<2, R> &w = several.own().walk;
  const W *source = several.own().source;
  W *out = several.own().out;
  const int ahead = 4;
  const I n = (I)w.n, all = thread_count<I>();
  I from = 0;
#pragma unroll
  for (int k = 0; k < N; k++) {
    i64 start = index_of<X>((const typename X::T *)s.starts, k * s.apart, 0);
    from += (I)clamped(start, s.limit[k]) * (I)s.step[k];
  }
  if (OUT) out += from;
  else source += from;
  for (I first = thread_number<I>(); first < n; first += ahead * all) {
    W words[ahead];
    I to[ahead];
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      I i = first + u * all, at[2];
      if (i < n) {
        locate<2, R, I>(w, i, at);
        words[u] = source[at[0]];
        to[u] = at[1];
      }
    }
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      if (first + u * all < n) out[to[u]] = words[u];
    }
  }
}
