// ARANGE and FILL.

// start + i step, in int64, which wraps, or in float64, each operation rounded.
INLINE i64 counted(i64 start, i64 step, i64 i) { return (i64)((u64)start + (u64)i * (u64)step); }
INLINE double counted(double start, double step, i64 i) { return start + (double)i * step; }

template <class To, class From>
static __device__ __forceinline__ void count_up(typename To::T *out, typename From::T start, typename From::T step,
                                                i64 n, i64 stride) {
  for (i64 i = thread_number<i64>(); i < n; i += thread_count<i64>()) {
    out[i * stride] = convert<To, From>(counted(start, step, i));
  }
}

template <class D, int N, class I>
static __device__ __forceinline__ void fill_elements(typename D::T *out, u64 value, const Walk<1, N> &w) {
  for (I i = thread_number<I>(); i < (I)w.n; i += thread_count<I>()) {
    I at[1];
    locate<1, N, I>(w, i, at);
    out[at[0]] = (typename D::T)value;
  }
}

// 16 bytes at once of words of 8; the output begins at a multiple of 16.
INLINE void fill_pairs(u64 *out, u64 value, i64 n) {
  Pack<u64, 2> pair;
  pair.at[0] = pair.at[1] = value;
  i64 first = thread_number<i64>();
  for (i64 i = first; i < n / 2; i += thread_count<i64>()) ((Pack<u64, 2> *)out)[i] = pair;
  if (first == 0 && n % 2) out[n - 1] = value;
}
