/* z = alpha x + beta y in the Metal Shading Language. The bits are those of the composed expression: products and sum are
 * rounded to T one by one. */
#pragma METAL fp contract(off)

/* A factor times an element. A complex element is multiplied by (factor, 0) in full, for the sake of infinities. */
inline float times(float a, float x) { return a * x; }
inline um_complex64 times(float a, um_complex64 x) { return um_complex64(a, 0.0f) * x; }

/* To the dtype and back. */
template <typename T> inline um_compute(T) rounded(um_compute(T) x) {
  return static_cast<um_compute(T)>(static_cast<T>(x));
}

template <typename T> inline um_compute(T) combine(float alpha, um_compute(T) x, float beta, um_compute(T) y) {
  return rounded<T>(times(alpha, x)) + rounded<T>(times(beta, y));
}

template <typename T>
[[kernel]] void axpby(device const T *x [[buffer(0)]], device const T *y [[buffer(1)]], device T *z [[buffer(2)]],
                      constant const float &alpha [[buffer(3)]], constant const float &beta [[buffer(4)]],
                      constant const ulong &n [[buffer(5)]], uint first [[thread_position_in_grid]],
                      uint step [[threads_per_grid]]) {
  for (ulong i = first; i < n; i += step) {
    um_store(T, z, i, combine<T>(alpha, um_load(T, x, i), beta, um_load(T, y, i)));
  }
}

template <typename T>
[[kernel]] void axpby_strided(device const T *x [[buffer(0)]], device const T *y [[buffer(1)]],
                              device T *z [[buffer(2)]], constant const float &alpha [[buffer(3)]],
                              constant const float &beta [[buffer(4)]], constant const ulong &n [[buffer(5)]],
                              constant const long *shape [[buffer(6)]], constant const long *x_strides [[buffer(7)]],
                              constant const long *y_strides [[buffer(8)]], constant const int &ndim [[buffer(9)]],
                              uint first [[thread_position_in_grid]], uint step [[threads_per_grid]]) {
  for (ulong i = first; i < n; i += step) {
    long u = um_elem_to_loc_long(i, shape, x_strides, ndim), v = um_elem_to_loc_long(i, shape, y_strides, ndim);
    um_store(T, z, i, combine<T>(alpha, um_load(T, x, u), beta, um_load(T, y, v)));
  }
}

#define INSTANTIATE(entry, name) template [[host_name(#entry "_" #name)]] [[kernel]] decltype(entry<um_##name>) entry<um_##name>;
INSTANTIATE(axpby, float16)
INSTANTIATE(axpby, bfloat16)
INSTANTIATE(axpby, float32)
INSTANTIATE(axpby, complex64)
INSTANTIATE(axpby_strided, float16)
INSTANTIATE(axpby_strided, bfloat16)
INSTANTIATE(axpby_strided, float32)
INSTANTIATE(axpby_strided, complex64)
