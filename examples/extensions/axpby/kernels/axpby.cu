/* z = alpha x + beta y in CUDA C++. The bits are those of the composed expression: products and sum are rounded to T one by
 * one (and --fmad=false keeps them apart). */

/* Type of the factors, and a factor times an element. A complex element is multiplied by (factor, 0) in full, for the sake of
 * infinities. */
template <typename T> struct Factor { typedef float type; };
template <> struct Factor<um_float64> { typedef double type; };
template <typename A, typename X> __device__ inline X times(A a, X x) { return a * x; }
__device__ inline um_complex64 times(float a, um_complex64 x) { return um_complex64(a, 0.0f) * x; }

/* To the dtype and back. */
template <typename T, typename C> __device__ inline C rounded(C x) {
  T kept;
  um_down(&kept, x);
  return um_up(kept);
}

template <typename T, typename A>
__device__ inline um_compute(T) combine(A alpha, um_compute(T) x, A beta, um_compute(T) y) {
  return rounded<T>(times(alpha, x)) + rounded<T>(times(beta, y));
}

template <typename T>
__global__ void axpby(const T *x, const T *y, T *z, typename Factor<T>::type alpha, typename Factor<T>::type beta,
                      unsigned long long n) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    um_store(T, z, i, combine<T>(alpha, um_load(T, x, i), beta, um_load(T, y, i)));
  }
}

template <typename T>
__global__ void axpby_strided(const T *x, const T *y, T *z, typename Factor<T>::type alpha,
                              typename Factor<T>::type beta, unsigned long long n, const long long *shape,
                              const long long *x_strides, const long long *y_strides, int ndim) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    long long u = um_elem_to_loc_long(i, shape, x_strides, ndim), v = um_elem_to_loc_long(i, shape, y_strides, ndim);
    um_store(T, z, i, combine<T>(alpha, um_load(T, x, u), beta, um_load(T, y, v)));
  }
}
