// Before and after the products of conv/product.cuh and conv/weight.cuh.

// A tensor whose last axis is copied to one of a multiple of 16 bytes: `padded` elements, zeros at their end.
struct Lines {
  i64 n, channels, padded, channel;
  i64 size[5], stride[5];
};

template <class T, class I>
INLINE void convolve_pack(const T *from, T *to, const Lines &s) {
  enum { EACH = 16 / sizeof(T) };
  const I parts = (I)s.padded / EACH, n = (I)s.n * parts;
  for (I i = thread_number<I>(); i < n; i += thread_count<I>()) {
    I line = divide_whole(i, parts);
    const I first = (i - line * parts) * EACH;
    const T *source = from;
#pragma unroll
    for (int d = 4; d >= 0; d--) {
      const I next = divide_whole(line, (I)s.size[d]);
      source += (line - next * (I)s.size[d]) * s.stride[d];
      line = next;
    }
    Vector<T> vector;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      vector.v[e] = T();
      if (first + e < (I)s.channels) vector.v[e] = source[(first + e) * s.channel];
    }
    ((Vector<T> *)to)[i] = vector;
  }
}

// Sums of which there are parts, `step` elements apart, as they are stored.
template <class D, int N, class I>
INLINE void convolve_join(const typename D::A *partial, typename D::T *out, i64 parts, i64 step, const Walk<2, N> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[2];
    locate<2, N, I>(w, i, at);
    typename D::A sum = 0;
#pragma unroll 8
    for (i64 part = 0; part < parts; part++) sum += partial[at[0] + part * step];
    out[at[1]] = D::down(sum);
  }
}
