/* z = alpha x + beta y in OpenCL C. T, a dtype of the prelude, comes as a macro. The bits are those of the composed
 * expression: products and sum are rounded to T one by one. */
#pragma OPENCL FP_CONTRACT OFF

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* To the dtype and back. Not every device has variables of half. */
#define ROUND JOIN(round_, T)
static inline float round_um_float16(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (half *)&bits);
  return vload_half(0, (half *)&bits);
}
static inline float round_um_bfloat16(float x) { return um_from_bfloat16(um_to_bfloat16(x)); }
static inline float round_um_float32(float x) { return x; }
static inline float2 round_um_complex64(float2 x) { return x; }
#ifdef cl_khr_fp64
static inline double round_um_float64(double x) { return x; }
#endif

/* A factor times an element. A complex element is multiplied by (factor, 0) in full, for the sake of infinities. */
#define TIMES JOIN(times_, T)
static inline float times_um_float16(float a, float x) { return a * x; }
static inline float times_um_bfloat16(float a, float x) { return a * x; }
static inline float times_um_float32(float a, float x) { return a * x; }
static inline float2 times_um_complex64(float a, float2 x) { return um_multiply((float2)(a, 0.0f), x); }
#ifdef cl_khr_fp64
static inline double times_um_float64(double a, double x) { return a * x; }
#endif

/* The type of the factors. */
#define FACTOR JOIN(factor_, T)
typedef float factor_um_float16, factor_um_bfloat16, factor_um_float32, factor_um_complex64;
#ifdef cl_khr_fp64
typedef double factor_um_float64;
#endif

#define COMBINE(x, y) (ROUND(TIMES(alpha, (x))) + ROUND(TIMES(beta, (y))))

__kernel void axpby(__global const T *x, __global const T *y, __global T *z, FACTOR alpha, FACTOR beta, ulong n) {
  for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
    um_store(T, z, i, COMBINE(um_load(T, x, i), um_load(T, y, i)));
  }
}

__kernel void axpby_strided(__global const T *x, __global const T *y, __global T *z, FACTOR alpha, FACTOR beta, ulong n,
                            __global const long *shape, __global const long *x_strides,
                            __global const long *y_strides, int ndim) {
  for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
    long u = um_elem_to_loc_long(i, shape, x_strides, ndim), v = um_elem_to_loc_long(i, shape, y_strides, ndim);
    um_store(T, z, i, COMBINE(um_load(T, x, u), um_load(T, y, v)));
  }
}
