/* What kernels in the Metal Shading Language find before their text; docs/kernels.md has the table. All names begin
 * with um_. */
#include <metal_stdlib>
using namespace metal;

/* Complex numbers. */
struct um_complex64 {
  float re, im;
  um_complex64() thread = default;
  um_complex64() threadgroup = default;
  constexpr um_complex64(float re, float im = 0) : re(re), im(im) {}
};
inline um_complex64 operator+(um_complex64 a, um_complex64 b) { return {a.re + b.re, a.im + b.im}; }
inline um_complex64 operator-(um_complex64 a, um_complex64 b) { return {a.re - b.re, a.im - b.im}; }
inline um_complex64 operator-(um_complex64 a) { return {-a.re, -a.im}; }
inline um_complex64 operator*(um_complex64 a, um_complex64 b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
inline um_complex64 operator/(um_complex64 a, um_complex64 b) {
  float n = b.re * b.re + b.im * b.im;
  return {(a.re * b.re + a.im * b.im) / n, (a.im * b.re - a.re * b.im) / n};
}
inline um_complex64 um_complex(float re, float im) { return {re, im}; }
inline float um_real(um_complex64 z) { return z.re; }
inline float um_imag(um_complex64 z) { return z.im; }
inline um_complex64 um_conjugate(um_complex64 z) { return {z.re, -z.im}; }
inline um_complex64 um_multiply(um_complex64 a, um_complex64 b) { return a * b; }
inline um_complex64 um_divide(um_complex64 a, um_complex64 b) { return a / b; }

/* Elements of each dtype. (Metal has no float64.) */
typedef bool um_bool;
typedef uint8_t um_uint8;
typedef uint16_t um_uint16;
typedef uint32_t um_uint32;
typedef uint64_t um_uint64;
typedef int8_t um_int8;
typedef int16_t um_int16;
typedef int32_t um_int32;
typedef int64_t um_int64;
typedef half um_float16;
typedef bfloat um_bfloat16;
typedef float um_float32;

/* What an element is computed with: float for the halves. */
template <typename T> struct um_computed { typedef T type; };
template <> struct um_computed<um_float16> { typedef float type; };
template <> struct um_computed<um_bfloat16> { typedef float type; };
inline float um_from_bfloat16(um_bfloat16 x) { return float(x); }
inline um_bfloat16 um_to_bfloat16(float x) { return um_bfloat16(x); }

/* um_compute(T): the type to compute with. um_load(T, p, i): element i of p, as that. um_store(T, p, i, x): back. */
#define um_compute(T) typename um_computed<T>::type
#define um_load(T, p, i) (static_cast<um_compute(T)>((p)[i]))
#define um_store(T, p, i, x) ((p)[i] = static_cast<T>(x))

/* The offset, in elements, of element `elem` in row-major order. */
template <typename I, typename S, typename L>
inline long um_elem_to_loc(I elem, S shape, L strides, int ndim) {
  long at = 0;
  for (int d = ndim - 1; d >= 0; d--) {
    I size = I(shape[d]), next = elem / size;
    at += long(elem - next * size) * long(strides[d]);
    elem = next;
  }
  return at;
}
#define um_elem_to_loc_long um_elem_to_loc

/* um_atomic_add(T, p, i, x): adds to element i of p, which is a pointer to atomic<T>. */
#define um_atomic_add(T, p, i, x) atomic_fetch_add_explicit(&(p)[i], T(x), memory_order_relaxed)
