/* What kernels in OpenCL C find before their text; docs/kernels.md has the table. All names begin with um_. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

/* Elements of each dtype. The halves are for memory only: um_load and um_store convert. */
typedef uchar um_bool;
typedef uchar um_uint8;
typedef ushort um_uint16;
typedef uint um_uint32;
typedef ulong um_uint64;
typedef char um_int8;
typedef short um_int16;
typedef int um_int32;
typedef long um_int64;
typedef half um_float16;
typedef struct {
  ushort bits;
} um_bfloat16;
typedef float um_float32;
typedef float2 um_complex64;

/* What an element is computed with. */
typedef um_bool um_compute_um_bool;
typedef um_uint8 um_compute_um_uint8;
typedef um_uint16 um_compute_um_uint16;
typedef um_uint32 um_compute_um_uint32;
typedef um_uint64 um_compute_um_uint64;
typedef um_int8 um_compute_um_int8;
typedef um_int16 um_compute_um_int16;
typedef um_int32 um_compute_um_int32;
typedef um_int64 um_compute_um_int64;
typedef float um_compute_um_float16;
typedef float um_compute_um_bfloat16;
typedef float um_compute_um_float32;
typedef float2 um_compute_um_complex64;
#ifdef cl_khr_fp64
typedef double um_float64;
typedef double um_compute_um_float64;
#else
typedef ulong um_float64;
typedef ulong um_compute_um_float64;
#endif

#define um_join_(a, b) a##b
#define um_join(a, b) um_join_(a, b)
/* um_compute(T): the type to compute with. um_load(T, p, i): element i of p, as that. um_store(T, p, i, x): back. T is
 * one of the names above, or a template argument. */
#define um_compute(T) um_join(um_compute_, T)
#define um_load(T, p, i) um_join(um_load_, T)(p, i)
#define um_store(T, p, i, x) um_join(um_store_, T)(p, i, x)

static inline float um_from_bfloat16(um_bfloat16 x) { return as_float((uint)x.bits << 16); }
/* To the nearest, ties to even; a NaN stays one. */
static inline um_bfloat16 um_to_bfloat16(float x) {
  uint bits = as_uint(x);
  um_bfloat16 r;
  r.bits = (bits & 0x7fffffffu) > 0x7f800000u ? (ushort)(bits >> 16 | 0x40u)
                                              : (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  return r;
}

#define um_load_um_bool(p, i) ((p)[i])
#define um_load_um_uint8(p, i) ((p)[i])
#define um_load_um_uint16(p, i) ((p)[i])
#define um_load_um_uint32(p, i) ((p)[i])
#define um_load_um_uint64(p, i) ((p)[i])
#define um_load_um_int8(p, i) ((p)[i])
#define um_load_um_int16(p, i) ((p)[i])
#define um_load_um_int32(p, i) ((p)[i])
#define um_load_um_int64(p, i) ((p)[i])
#define um_load_um_float16(p, i) vload_half((i), (p))
#define um_load_um_bfloat16(p, i) um_from_bfloat16((p)[i])
#define um_load_um_float32(p, i) ((p)[i])
#define um_load_um_float64(p, i) ((p)[i])
#define um_load_um_complex64(p, i) ((p)[i])

#define um_store_um_bool(p, i, x) ((p)[i] = (x) ? 1 : 0)
#define um_store_um_uint8(p, i, x) ((p)[i] = (x))
#define um_store_um_uint16(p, i, x) ((p)[i] = (x))
#define um_store_um_uint32(p, i, x) ((p)[i] = (x))
#define um_store_um_uint64(p, i, x) ((p)[i] = (x))
#define um_store_um_int8(p, i, x) ((p)[i] = (x))
#define um_store_um_int16(p, i, x) ((p)[i] = (x))
#define um_store_um_int32(p, i, x) ((p)[i] = (x))
#define um_store_um_int64(p, i, x) ((p)[i] = (x))
#define um_store_um_float16(p, i, x) vstore_half_rte((x), (i), (p))
#define um_store_um_bfloat16(p, i, x) ((p)[i] = um_to_bfloat16(x))
#define um_store_um_float32(p, i, x) ((p)[i] = (x))
#define um_store_um_float64(p, i, x) ((p)[i] = (x))
#define um_store_um_complex64(p, i, x) ((p)[i] = (x))

/* Complex numbers; + and - are the language's. */
#define um_complex(re, im) ((float2)((re), (im)))
#define um_real(z) ((z).x)
#define um_imag(z) ((z).y)
static inline float2 um_conjugate(float2 z) { return (float2)(z.x, -z.y); }
static inline float2 um_multiply(float2 a, float2 b) { return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
static inline float2 um_divide(float2 a, float2 b) {
  float n = b.x * b.x + b.y * b.y;
  return (float2)((a.x * b.x + a.y * b.y) / n, (a.y * b.x - a.x * b.y) / n);
}

/* The offset, in elements, of element `elem` in row-major order. */
static inline long um_elem_to_loc(ulong elem, __global const int *shape, __global const long *strides, int ndim) {
  long at = 0;
  for (int d = ndim - 1; d >= 0; d--) {
    ulong size = (ulong)shape[d], next = elem / size;
    at += (long)(elem - next * size) * strides[d];
    elem = next;
  }
  return at;
}
/* The same for a shape of 64-bit integers. */
static inline long um_elem_to_loc_long(ulong elem, __global const long *shape, __global const long *strides, int ndim) {
  long at = 0;
  for (int d = ndim - 1; d >= 0; d--) {
    ulong size = (ulong)shape[d], next = elem / size;
    at += (long)(elem - next * size) * strides[d];
    elem = next;
  }
  return at;
}

/* um_atomic_add(T, p, i, x): adds to element i of p. */
#define um_atomic_add(T, p, i, x) um_join(um_atomic_add_, T)((p) + (i), (x))
#define um_atomic_add_um_int32(p, x) atomic_add((p), (x))
#define um_atomic_add_um_uint32(p, x) atomic_add((p), (x))
static inline void um_atomic_add_um_float32(volatile __global float *p, float x) {
  uint seen = as_uint(*p), before;
  do {
    before = seen;
    seen = atomic_cmpxchg((volatile __global uint *)p, before, as_uint(as_float(before) + x));
  } while (seen != before);
}
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define um_atomic_add_um_int64(p, x) atom_add((p), (x))
#define um_atomic_add_um_uint64(p, x) atom_add((p), (x))
#ifdef cl_khr_fp64
static inline void um_atomic_add_um_float64(volatile __global double *p, double x) {
  ulong seen = as_ulong(*p), before;
  do {
    before = seen;
    seen = atom_cmpxchg((volatile __global ulong *)p, before, as_ulong(as_double(before) + x));
  } while (seen != before);
}
#endif
#endif
