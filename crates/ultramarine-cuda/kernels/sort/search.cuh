// SEARCHSORTED: a bisection of a sorted row for each value. Goes behind sort.cuh, whose keys it compares.

// The walk: rows, which stand still along the axes that are the values' own; values; output. Elements of a row lie
// `along` apart; `half` is the largest power of two that is not above their number.
template <class D, int N, class I>
static __device__ __forceinline__ void searchsorted(const typename D::T *rows, const typename D::T *values, u32 *out,
                                                    i64 length, i64 half, i64 along, i32 right, const Walk<3, N> &w) {
  typedef typename Unsigned<sizeof(typename D::T)>::K Key;
  const I n = (I)w.n, all = thread_count<I>();
  for (I i = thread_number<I>(); i < n; i += all) {
    I at[3];
    locate<3, N, I>(w, i, at);
    const typename D::T *row = rows + at[0];
    const Key key = key_of<D>(values[at[1]]);
    i64 passed = 0;  // elements that are known to come before the value
    for (i64 step = half; step > 0; step /= 2) {
      const i64 next = passed + step;
      if (next > length) continue;
      const Key other = key_of<D>(row[(next - 1) * along]);
      if (right ? other <= key : other < key) passed = next;
    }
    out[at[2]] = (u32)passed;
  }
}
