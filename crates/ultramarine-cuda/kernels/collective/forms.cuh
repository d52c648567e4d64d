// Around NCCL's collectives: what it has no dtype or no function for.

// Elements of another dtype.
template <class To, class From>
static __device__ __forceinline__ void convert_elements(typename To::T *out, const typename From::T *in, i64 n) {
  for (i64 i = thread_number<i64>(); i < n; i += thread_count<i64>()) out[i] = convert<To, From>(in[i]);
}

// Floats as unsigned keys of the same order. NCCL passes over NaN: here it has the key that wins, of which there is no number.
// BITS is the unsigned type of the float's size, KEY one that NCCL has.
template <class BITS, class KEY, bool LARGEST>
static __device__ __forceinline__ void keys_of_floats(KEY *out, const BITS *in, i64 n, BITS infinity) {
  const BITS sign = (BITS)1 << (8 * sizeof(BITS) - 1), all = (BITS)~(BITS)0;
  for (i64 i = thread_number<i64>(); i < n; i += thread_count<i64>()) {
    BITS bits = in[i], key = bits & sign ? (BITS)~bits : (BITS)(bits | sign);
    out[i] = (BITS)(bits & (BITS)~sign) > infinity ? (LARGEST ? all : (BITS)0) : key;
  }
}
template <class BITS, class KEY>
static __device__ __forceinline__ void floats_of_keys(BITS *out, const KEY *in, i64 n, BITS nan) {
  const BITS sign = (BITS)1 << (8 * sizeof(BITS) - 1), all = (BITS)~(BITS)0;
  for (i64 i = thread_number<i64>(); i < n; i += thread_count<i64>()) {
    BITS key = (BITS)in[i];
    out[i] = key == all || key == 0 ? nan : key & sign ? (BITS)(key & (BITS)~sign) : (BITS)~key;
  }
}
