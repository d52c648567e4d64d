// The largest or smallest of each element over the ranks, whose inputs lie one behind the other.
template <bool LARGEST>
static __device__ __forceinline__ void choose_over_ranks(complex64 *out, const complex64 *in, i64 n, i32 ranks) {
  for (i64 i = thread_number<i64>(); i < n; i += thread_count<i64>()) {
    complex64 chosen = in[i];
    for (i32 rank = 1; rank < ranks; rank++) {
      complex64 next = in[i + rank * n];
      chosen = LARGEST ? c_maximum(chosen, next) : c_minimum(chosen, next);
    }
    out[i] = chosen;
  }
}
