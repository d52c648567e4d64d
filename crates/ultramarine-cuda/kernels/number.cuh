// Dtypes. A tag type for each has `T`, as it is stored, `A`, as it is computed with, and what is known of it.
// Included first; no header of CUDA's is needed.

#ifndef __EMULATED_CUDA__
#pragma nv_diag_suppress 177  // no kernel uses every function of its headers
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;

#define INLINE static __device__ __forceinline__
#ifdef __EMULATED_CUDA__
#define DYNAMIC_SHARED(type, name) type *name = (type *)um_emulated_shared()
#else
// 16-byte aligned dynamic shared memory.
#define DYNAMIC_SHARED(type, name)                      \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  type *name = (type *)name##_bytes
#endif

// Lets the next kernel begin, where it is launched early, and waits until the one before has ended. Entries begin with both, or
// with the first, where the kernel waits itself.
#if !defined(__EMULATED_CUDA__) && __CUDA_ARCH__ >= 900
INLINE void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
INLINE void wait_for_last() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
INLINE void let_next_begin() {}
INLINE void wait_for_last() {}
#endif

struct __align__(2) half_bits { u16 bits; };
struct __align__(2) brain_bits { u16 bits; };
struct __align__(8) complex64 { float re, im; };

// ---- halves ---------------------------------------------------------------------------------------------------

#ifdef __EMULATED_CUDA__
INLINE float half_up(u16 bits) {
  u32 sign = (u32)(bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest >= 0x7c00) return __uint_as_float(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  float magnitude = __uint_as_float(rest << 13) * __uint_as_float(0x77800000);  // 2^112
  return __uint_as_float(sign | __float_as_uint(magnitude));
}
INLINE u16 half_down(float x) {
  u32 bits = __float_as_uint(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return (u16)(sign | 0x7e00);
  if (rest >= 0x477ff000) return (u16)(sign | 0x7c00);
  if (rest < 0x38800000) {  // subnormal: a multiple of 2^-24
    float units = __uint_as_float(rest) * 16777216.0f;
    return (u16)(sign | (u32)rintf(units));
  }
  rest += 0xfff + (rest >> 13 & 1);
  return (u16)(sign | (rest - 0x38000000) >> 13);
}
INLINE u16 brain_down(float x) {
  u32 bits = __float_as_uint(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return (u16)(bits >> 16 | 0x40);
  return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#else
INLINE float half_up(u16 bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
INLINE u16 half_down(float x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
INLINE u16 brain_down(float x) {
#if __CUDA_ARCH__ >= 900
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  u32 bits = __float_as_uint(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return (u16)(bits >> 16 | 0x40);
  return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}
#endif
INLINE float brain_up(u16 bits) { return __uint_as_float((u32)bits << 16); }

// ---- kinds ------------------------------------------------------------------------------------------------------

enum Kind { BOOL, INTEGER, REAL, COMPLEX };

// A dtype whose elements are computed with as they are stored.
template <class Stored, Kind K, bool SIGNED>
struct Plain {
  typedef Stored T;
  typedef Stored A;
  static const Kind kind = K;
  static const bool is_signed = SIGNED, is_half = false;
  static const int bits = 8 * sizeof(Stored);
  INLINE A up(T x) { return x; }
  INLINE T down(A x) { return x; }
};

struct Bool : Plain<u8, BOOL, false> {};
struct U8 : Plain<u8, INTEGER, false> {};
struct U16 : Plain<u16, INTEGER, false> {};
struct U32 : Plain<u32, INTEGER, false> {};
struct U64 : Plain<u64, INTEGER, false> {};
struct I8 : Plain<i8, INTEGER, true> {};
struct I16 : Plain<i16, INTEGER, true> {};
struct I32 : Plain<i32, INTEGER, true> {};
struct I64 : Plain<i64, INTEGER, true> {};
struct F32 : Plain<float, REAL, true> {};
struct F64 : Plain<double, REAL, true> {};
struct C64 : Plain<complex64, COMPLEX, true> {};

struct F16 {
  typedef half_bits T;
  typedef float A;
  static const Kind kind = REAL;
  static const bool is_signed = true, is_half = true;
  static const int bits = 16;
  INLINE A up(T x) { return half_up(x.bits); }
  INLINE T down(A x) { T y; y.bits = half_down(x); return y; }
};
struct BF16 {
  typedef brain_bits T;
  typedef float A;
  static const Kind kind = REAL;
  static const bool is_signed = true, is_half = true;
  static const int bits = 16;
  INLINE A up(T x) { return brain_up(x.bits); }
  INLINE T down(A x) { T y; y.bits = brain_down(x); return y; }
};

// A value rounded to its dtype: what an operation of its own would have stored and the next one read.
template <class D>
INLINE typename D::A rounded(typename D::A x) {
  if (D::is_half) return D::up(D::down(x));
  return x;
}

INLINE float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
INLINE double multiply_add(double a, double b, double c) { return fma(a, b, c); }

template <class X, class Y> struct Same { static const bool value = false; };
template <class X> struct Same<X, X> { static const bool value = true; };

// ---- conversions ---------------------------------------------------------------------------------------------

// Floats to integers: cut off; out of range and NaN the smallest integer, of which narrow ones take the low bits.
template <class R>
INLINE i32 to_i32(R x) {
  if (sizeof(R) == 8) return x < (R)2147483648.0 && x > (R)-2147483649.0 ? (i32)x : (i32)0x80000000;
  return x < (R)2147483648.0f && x >= (R)-2147483648.0f ? (i32)x : (i32)0x80000000;
}
template <class R>
INLINE i64 to_i64(R x) {
  return x < (R)9223372036854775808.0f && x >= (R)-9223372036854775808.0f ? (i64)x : (i64)0x8000000000000000ull;
}
template <class R>
INLINE u32 to_u32(R x) {
  bool high = x >= (R)2147483648.0f;
  u32 low = (u32)to_i32<R>(high ? x - (R)2147483648.0f : x);
  return high ? low ^ 0x80000000u : low;
}
template <class R>
INLINE u64 to_u64(R x) {
  bool high = x >= (R)9223372036854775808.0f;
  u64 low = (u64)to_i64<R>(high ? x - (R)9223372036854775808.0f : x);
  return high ? low ^ 0x8000000000000000ull : low;
}

INLINE float real_part(complex64 z) { return z.re; }
template <class X> INLINE X real_part(X x) { return x; }
INLINE bool nonzero(complex64 z) { return z.re != 0.0f || z.im != 0.0f; }
template <class X> INLINE bool nonzero(X x) { return x != (X)0; }

template <class D, Kind FROM> struct Whole {  // integers and bools
  template <class X> INLINE typename D::A of(X x) { return (typename D::A)x; }
};
template <class D> struct Whole<D, REAL> {
  template <class X> INLINE typename D::A of(X x) {
    if (D::bits == 64) return D::is_signed ? (typename D::A)to_i64(x) : (typename D::A)to_u64(x);
    if (D::bits == 32 && !D::is_signed) return (typename D::A)to_u32(x);
    return (typename D::A)to_i32(x);
  }
};
template <class D> struct Whole<D, COMPLEX> : Whole<D, REAL> {};

template <class To, class From, Kind TO> struct Converter;
template <class To, class From> struct Converter<To, From, BOOL> {
  INLINE u8 of(typename From::A x) { return nonzero(x) ? 1 : 0; }
};
template <class To, class From> struct Converter<To, From, INTEGER> {
  INLINE typename To::A of(typename From::A x) { return Whole<To, From::kind>::of(real_part(x)); }
};
template <class To, class From> struct Converter<To, From, REAL> {
  INLINE typename To::A of(typename From::A x) { return (typename To::A)real_part(x); }
};
template <class To, class From> struct Converter<To, From, COMPLEX> {
  INLINE complex64 of(typename From::A x) { complex64 z; z.re = (float)real_part(x); z.im = 0.0f; return z; }
};
template <> struct Converter<C64, C64, COMPLEX> {
  INLINE complex64 of(complex64 z) { return z; }
};

// A value of one dtype as the other computes with it, rounded to the other.
template <class To, class From>
INLINE typename To::A convert_value(typename From::A x) {
  return rounded<To>(Converter<To, From, To::kind>::of(x));
}
// An element of one dtype as the other stores it.
template <class To, class From>
INLINE typename To::T convert(typename From::T x) {
  return To::down(Converter<To, From, To::kind>::of(From::up(x)));
}

// ---- indices --------------------------------------------------------------------------------------------------

INLINE int divide_whole(int a, int b) { return (int)((u32)a / (u32)b); }
INLINE i64 divide_whole(i64 a, i64 b) {
  // Most quotients fit in 32 bits, whose division is several times faster.
  if ((((u64)a | (u64)b) >> 32) == 0) return (i64)((u32)a / (u32)b);
  return (i64)((u64)a / (u64)b);
}
