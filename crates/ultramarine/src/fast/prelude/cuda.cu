/* What kernels in CUDA C++ find before their text; docs/kernels.md has the table. All names begin with um_. */
#if defined(__has_include)
#if __has_include(<cuda_fp16.h>)
#include <cuda_fp16.h>
#endif
#if __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#endif
#if __has_include(<cooperative_groups.h>)
#include <cooperative_groups.h>
#endif
#endif

/* Complex numbers. */
struct um_complex64 {
  float re, im;
  um_complex64() = default;
  __host__ __device__ um_complex64(float re, float im = 0) : re(re), im(im) {}
};
__device__ inline um_complex64 operator+(um_complex64 a, um_complex64 b) { return {a.re + b.re, a.im + b.im}; }
__device__ inline um_complex64 operator-(um_complex64 a, um_complex64 b) { return {a.re - b.re, a.im - b.im}; }
__device__ inline um_complex64 operator-(um_complex64 a) { return {-a.re, -a.im}; }
__device__ inline um_complex64 operator*(um_complex64 a, um_complex64 b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ inline um_complex64 operator/(um_complex64 a, um_complex64 b) {
  float n = b.re * b.re + b.im * b.im;
  return {(a.re * b.re + a.im * b.im) / n, (a.im * b.re - a.re * b.im) / n};
}
__device__ inline um_complex64 um_complex(float re, float im) { return {re, im}; }
__device__ inline float um_real(um_complex64 z) { return z.re; }
__device__ inline float um_imag(um_complex64 z) { return z.im; }
__device__ inline um_complex64 um_conjugate(um_complex64 z) { return {z.re, -z.im}; }
__device__ inline um_complex64 um_multiply(um_complex64 a, um_complex64 b) { return a * b; }
__device__ inline um_complex64 um_divide(um_complex64 a, um_complex64 b) { return a / b; }

/* Elements of each dtype. */
typedef bool um_bool;
typedef unsigned char um_uint8;
typedef unsigned short um_uint16;
typedef unsigned int um_uint32;
typedef unsigned long long um_uint64;
typedef signed char um_int8;
typedef short um_int16;
typedef int um_int32;
typedef long long um_int64;
typedef __half um_float16;
typedef __nv_bfloat16 um_bfloat16;
typedef float um_float32;
typedef double um_float64;

/* What an element is computed with: float for the halves. */
template <typename T> struct um_computed { typedef T type; };
template <> struct um_computed<um_float16> { typedef float type; };
template <> struct um_computed<um_bfloat16> { typedef float type; };
template <typename T> __device__ inline T um_up(T x) { return x; }
__device__ inline float um_up(um_float16 x) { return __half2float(x); }
__device__ inline float um_up(um_bfloat16 x) { return __bfloat162float(x); }
template <typename T, typename X> __device__ inline void um_down(T *to, X x) { *to = static_cast<T>(x); }
template <typename X> __device__ inline void um_down(um_float16 *to, X x) { *to = __float2half_rn(x); }
template <typename X> __device__ inline void um_down(um_bfloat16 *to, X x) { *to = __float2bfloat16_rn(x); }
__device__ inline float um_from_bfloat16(um_bfloat16 x) { return __bfloat162float(x); }
__device__ inline um_bfloat16 um_to_bfloat16(float x) { return __float2bfloat16_rn(x); }

/* um_compute(T): the type to compute with. um_load(T, p, i): element i of p, as that. um_store(T, p, i, x): back. */
#define um_compute(T) typename um_computed<T>::type
#define um_load(T, p, i) um_up((p)[i])
#define um_store(T, p, i, x) um_down(&(p)[i], (x))

/* A list that was bound to the kernel: of sizes, of strides. */
template <typename T> struct um_list {
  const T *items;
  template <typename I> __device__ T operator[](I i) const { return items[i]; }
  __device__ const T *data() const { return items; }
};

/* The offset, in elements, of element `elem` in row-major order. */
template <typename S, typename L>
__device__ inline long long um_elem_to_loc(unsigned long long elem, const S &shape, const L &strides, int ndim) {
  long long at = 0;
  for (int d = ndim - 1; d >= 0; d--) {
    unsigned long long size = (unsigned long long)shape[d], next = elem / size;
    at += (long long)(elem - next * size) * (long long)strides[d];
    elem = next;
  }
  return at;
}
#define um_elem_to_loc_long um_elem_to_loc

/* um_atomic_add(T, p, i, x): adds to element i of p. */
#define um_atomic_add(T, p, i, x) atomicAdd(&(p)[i], (x))
