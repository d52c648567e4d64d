// The 16-bit floats of <cuda_fp16.h> and <cuda_bf16.h>, computed as floats and rounded to nearest even.
// In namespaces that those headers open: a program that forgot to include them does not compile.
#pragma once

inline float um_emulated_from_half(unsigned short bits) {
  unsigned sign = (unsigned)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return __uint_as_float(sign | 0x7F800000 | fraction << 13);
  if (exponent) return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
  float small = (float)fraction * 5.9604644775390625e-8f; // 2^-24
  return sign ? -small : small;
}
// From a double, so that nothing is rounded twice.
inline unsigned short um_emulated_to_half(double x) {
  unsigned short sign = signbit(x) ? 0x8000 : 0;
  double a = fabs(x);
  if (isnan(x)) return 0x7FFF;
  if (a >= 65520) return sign | 0x7C00;
  if (a < 6.103515625e-5) return sign | (unsigned short)rint(a * 16777216.0); // below 2^-14: steps of 2^-24
  um_emulated_u64 bits = (um_emulated_u64)__double_as_longlong(a);
  bits += (1ull << 41) - 1 + (bits >> 42 & 1);
  return sign | (unsigned short)((bits >> 42) - (1008ull << 10));
}
inline float um_emulated_from_bfloat(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }
inline unsigned short um_emulated_to_bfloat(double x) {
  if (isnan(x)) return 0x7FFF;
  float f = (float)x;
  // Rounded to odd first where the float is not exact, so that the second rounding is right.
  unsigned bits = __float_as_uint(f);
  if ((double)f != x && !isinf(f)) {
    if (fabs((double)f) > fabs(x)) bits--;
    bits |= 1;
  } else if (isinf(f) && !isinf(x)) {
    return (unsigned short)(bits >> 16);
  }
  if (!isinf(f)) bits += 0x7FFF + (bits >> 16 & 1);
  return (unsigned short)(bits >> 16);
}

#define UM_EMULATED_16(H, H2, raw, raw2, from, to)                                                                     \
  struct raw {                                                                                                         \
    unsigned short x;                                                                                                  \
  };                                                                                                                   \
  struct __attribute__((aligned(4))) raw2 {                                                                            \
    unsigned short x, y;                                                                                               \
  };                                                                                                                   \
  struct H {                                                                                                           \
    unsigned short __x;                                                                                                \
    H() = default;                                                                                                     \
    constexpr H(raw r) : __x(r.x) {}                                                                                   \
    H(float v) : __x(to(v)) {}                                                                                         \
    H(double v) : __x(to(v)) {}                                                                                        \
    H(int v) : __x(to(v)) {}                                                                                           \
    H(unsigned v) : __x(to(v)) {}                                                                                      \
    H(short v) : __x(to(v)) {}                                                                                         \
    H(unsigned short v) : __x(to(v)) {}                                                                                \
    H(long v) : __x(to((double)v)) {}                                                                                  \
    H(unsigned long v) : __x(to((double)v)) {}                                                                         \
    H(long long v) : __x(to((double)v)) {}                                                                             \
    H(unsigned long long v) : __x(to((double)v)) {}                                                                    \
    operator float() const { return from(__x); }                                                                       \
    operator raw() const { return {__x}; }                                                                             \
    explicit operator bool() const { return (__x & 0x7FFF) != 0; }                                                     \
    H &operator=(raw r) { return __x = r.x, *this; }                                                                   \
    H &operator=(float v) { return __x = to(v), *this; }                                                               \
    H &operator=(double v) { return __x = to(v), *this; }                                                              \
    H &operator=(int v) { return __x = to(v), *this; }                                                                 \
    H &operator=(unsigned v) { return __x = to(v), *this; }                                                            \
    H &operator=(long long v) { return __x = to((double)v), *this; }                                                   \
    H &operator=(unsigned long long v) { return __x = to((double)v), *this; }                                          \
  };                                                                                                                   \
  struct __attribute__((aligned(4))) H2 {                                                                              \
    H x, y;                                                                                                            \
    H2() = default;                                                                                                    \
    H2(H a, H b) : x(a), y(b) {}                                                                                       \
  };                                                                                                                   \
  inline H operator-(H a) {                                                                                            \
    a.__x ^= 0x8000;                                                                                                   \
    return a;                                                                                                          \
  }                                                                                                                    \
  inline H operator+(H a) { return a; }                                                                                \
  UM_EMULATED_16_ARITHMETIC(H, H2, +, __hadd)                                                                          \
  UM_EMULATED_16_ARITHMETIC(H, H2, -, __hsub)                                                                          \
  UM_EMULATED_16_ARITHMETIC(H, H2, *, __hmul)                                                                          \
  UM_EMULATED_16_ARITHMETIC(H, H2, /, __hdiv)                                                                          \
  UM_EMULATED_16_COMPARE(H, ==, __heq)                                                                                 \
  UM_EMULATED_16_COMPARE(H, !=, __hne)                                                                                 \
  UM_EMULATED_16_COMPARE(H, <, __hlt)                                                                                  \
  UM_EMULATED_16_COMPARE(H, <=, __hle)                                                                                 \
  UM_EMULATED_16_COMPARE(H, >, __hgt)                                                                                  \
  UM_EMULATED_16_COMPARE(H, >=, __hge)                                                                                 \
  inline H __hneg(H a) { return -a; }                                                                                  \
  inline H2 __hneg2(H2 a) { return H2(-a.x, -a.y); }                                                                   \
  inline H __habs(H a) {                                                                                               \
    a.__x &= 0x7FFF;                                                                                                   \
    return a;                                                                                                          \
  }                                                                                                                    \
  inline H2 __habs2(H2 a) { return H2(__habs(a.x), __habs(a.y)); }                                                     \
  inline H __hfma(H a, H b, H c) { return H(fma((double)(float)a, (double)(float)b, (double)(float)c)); }              \
  inline H2 __hfma2(H2 a, H2 b, H2 c) { return H2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }                     \
  inline bool __hisnan(H a) { return isnan((float)a); }                                                                \
  inline int __hisinf(H a) { return isinf((float)a) ? (a.__x & 0x8000 ? -1 : 1) : 0; }                                 \
  inline H __hmax(H a, H b) { return H(fmaxf((float)a, (float)b)); }                                                   \
  inline H __hmin(H a, H b) { return H(fminf((float)a, (float)b)); }                                                   \
  inline H2 __hmax2(H2 a, H2 b) { return H2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }                                     \
  inline H2 __hmin2(H2 a, H2 b) { return H2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }                                     \
  inline H hexp(H a) { return H(exp((double)(float)a)); }                                                              \
  inline H hexp2(H a) { return H(exp2((double)(float)a)); }                                                            \
  inline H hlog(H a) { return H(log((double)(float)a)); }                                                              \
  inline H hlog2(H a) { return H(log2((double)(float)a)); }                                                            \
  inline H hlog10(H a) { return H(log10((double)(float)a)); }                                                          \
  inline H hsqrt(H a) { return H(sqrt((double)(float)a)); }                                                            \
  inline H hrsqrt(H a) { return H(rsqrt((double)(float)a)); }                                                          \
  inline H hrcp(H a) { return H(1.0 / (double)(float)a); }                                                             \
  inline H hsin(H a) { return H(sin((double)(float)a)); }                                                              \
  inline H hcos(H a) { return H(cos((double)(float)a)); }                                                              \
  inline H htanh(H a) { return H(tanh((double)(float)a)); }                                                            \
  inline H hfloor(H a) { return H(floorf((float)a)); }                                                                 \
  inline H hceil(H a) { return H(ceilf((float)a)); }                                                                   \
  inline H htrunc(H a) { return H(truncf((float)a)); }                                                                 \
  inline H hrint(H a) { return H(rintf((float)a)); }                                                                   \
  inline H atomicAdd(H *at, H v) {                                                                                     \
    H old = *at;                                                                                                       \
    *at = old + v;                                                                                                     \
    return old;                                                                                                        \
  }                                                                                                                    \
  inline H2 atomicAdd(H2 *at, H2 v) {                                                                                  \
    H2 old = *at;                                                                                                      \
    *at = old + v;                                                                                                     \
    return old;                                                                                                        \
  }                                                                                                                    \
  UM_EMULATED_SHUFFLES(H)                                                                                              \
  UM_EMULATED_SHUFFLES(H2)

#define UM_EMULATED_16_ARITHMETIC(H, H2, op, name)                                                                     \
  inline H operator op(H a, H b) { return H((double)(float)a op (double)(float)b); }                                   \
  inline H &operator op##=(H &a, H b) { return a = a op b; }                                                           \
  inline H2 operator op(H2 a, H2 b) { return H2(a.x op b.x, a.y op b.y); }                                             \
  inline H2 &operator op##=(H2 &a, H2 b) { return a = a op b; }                                                        \
  inline H name(H a, H b) { return a op b; }                                                                           \
  inline H name##_rn(H a, H b) { return a op b; }                                                                      \
  inline H2 UM_EMULATED_16_PAIR(name)(H2 a, H2 b) { return a op b; }
#define UM_EMULATED_16_PAIR(name) UM_EMULATED_16_PAIR_##name
#define UM_EMULATED_16_PAIR___hadd __hadd2
#define UM_EMULATED_16_PAIR___hsub __hsub2
#define UM_EMULATED_16_PAIR___hmul __hmul2
#define UM_EMULATED_16_PAIR___hdiv __h2div
#define UM_EMULATED_16_COMPARE(H, op, name)                                                                            \
  inline bool operator op(H a, H b) { return (float)a op (float)b; }                                                   \
  inline bool name(H a, H b) { return (float)a op (float)b; }
// How conversions are named: the word for the type in functions' names.
#define UM_EMULATED_16_CONVERT(H, H2, raw, word)                                                                           \
  inline H __float2##word(float x) { return H(x); }                                                                    \
  inline H __float2##word##_rn(float x) { return H(x); }                                                               \
  inline H __double2##word(double x) { return H(x); }                                                                  \
  inline H __int2##word##_rn(int x) { return H(x); }                                                                   \
  inline H __uint2##word##_rn(unsigned x) { return H(x); }                                                             \
  inline H __short2##word##_rn(short x) { return H(x); }                                                               \
  inline H __ushort2##word##_rn(unsigned short x) { return H(x); }                                                     \
  inline H __ll2##word##_rn(long long x) { return H(x); }                                                              \
  inline H __ull2##word##_rn(unsigned long long x) { return H(x); }                                                    \
  inline float __##word##2float(H x) { return (float)x; }                                                              \
  inline int __##word##2int_rn(H x) { return __float2int_rn((float)x); }                                               \
  inline int __##word##2int_rz(H x) { return __float2int_rz((float)x); }                                               \
  inline unsigned __##word##2uint_rn(H x) { return __float2uint_rn((float)x); }                                        \
  inline unsigned __##word##2uint_rz(H x) { return __float2uint_rz((float)x); }                                        \
  inline long long __##word##2ll_rn(H x) { return __float2ll_rn((float)x); }                                           \
  inline long long __##word##2ll_rz(H x) { return __float2ll_rz((float)x); }                                           \
  inline unsigned short __##word##_as_ushort(H x) { return x.__x; }                                                    \
  inline short __##word##_as_short(H x) { return (short)x.__x; }                                                       \
  inline H __ushort_as_##word(unsigned short x) { return raw{(unsigned short)x}; }                                     \
  inline H __short_as_##word(short x) { return raw{(unsigned short)x}; }                                               \
  inline float2 __##word##22float2(H2 x) { return {(float)x.x, (float)x.y}; }                                          \
  inline H2 __float2##word##2_rn(float x) { return H2(H(x), H(x)); }                                                   \
  inline H2 __floats2##word##2_rn(float x, float y) { return H2(H(x), H(y)); }                                         \
  inline H2 __float22##word##2_rn(float2 x) { return H2(H(x.x), H(x.y)); }                                             \
  inline H2 __##word##2##word##2(H x) { return H2(x, x); }                                                             \
  inline H2 make_##word##2(H x, H y) { return H2(x, y); }                                                              \
  inline float __low2float(H2 x) { return (float)x.x; }                                                                \
  inline float __high2float(H2 x) { return (float)x.y; }                                                               \
  inline H __low2##word(H2 x) { return x.x; }                                                                          \
  inline H __high2##word(H2 x) { return x.y; }                                                                         \
  inline H2 __halves2##word##2(H x, H y) { return H2(x, y); }

namespace um_emulated_fp16 {
UM_EMULATED_16(__half, __half2, __half_raw, __half2_raw, um_emulated_from_half, um_emulated_to_half)
UM_EMULATED_16_CONVERT(__half, __half2, __half_raw, half)
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
inline __half __float2half_rz(float x) {
  __half h(x);
  if (fabsf((float)h) > fabsf(x)) h.__x--;
  return h;
}
} // namespace um_emulated_fp16

namespace um_emulated_bf16 {
UM_EMULATED_16(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, __nv_bfloat162_raw, um_emulated_from_bfloat,
               um_emulated_to_bfloat)
UM_EMULATED_16_CONVERT(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, bfloat16)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
} // namespace um_emulated_bf16
