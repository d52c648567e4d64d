// Intrinsics on bits and integers, conversions with a stated rounding, loads and stores with a cache hint.
#pragma once

#define UM_EMULATED_BITS(To, name, From)                                                                               \
  inline To name(From x) {                                                                                             \
    To y;                                                                                                              \
    __builtin_memcpy(&y, &x, sizeof y);                                                                                \
    return y;                                                                                                          \
  }
UM_EMULATED_BITS(unsigned, __float_as_uint, float)
UM_EMULATED_BITS(int, __float_as_int, float)
UM_EMULATED_BITS(float, __uint_as_float, unsigned)
UM_EMULATED_BITS(float, __int_as_float, int)
UM_EMULATED_BITS(long long, __double_as_longlong, double)
UM_EMULATED_BITS(double, __longlong_as_double, long long)
inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)((um_emulated_u64)(unsigned)high << 32 | (unsigned)low));
}

// CUDA's conversions to integers saturate and take NaN to 0 (for 64 bits, to the highest bit alone).
#define UM_EMULATED_SATURATE(T, name, low, high, not_a_number)                                                         \
  inline T um_emulated_##name(double x) {                                                                              \
    if (isnan(x)) return not_a_number;                                                                                 \
    if (x <= (double)(low)) return low;                                                                                \
    return x >= (double)(high) ? high : (T)x;                                                                          \
  }
UM_EMULATED_SATURATE(int, int, -2147483647 - 1, 2147483647, 0)
UM_EMULATED_SATURATE(unsigned, uint, 0, 4294967295u, 0)
UM_EMULATED_SATURATE(long long, ll, -9223372036854775807ll - 1, 9223372036854775807ll, -9223372036854775807ll - 1)
UM_EMULATED_SATURATE(um_emulated_u64, ull, 0, ~0ull, 1ull << 63)
#define UM_EMULATED_CONVERT(from, F, mode, round)                                                                      \
  inline int __##from##2int_##mode(F x) { return um_emulated_int(round((double)x)); }                                  \
  inline unsigned __##from##2uint_##mode(F x) { return um_emulated_uint(round((double)x)); }                           \
  inline long long __##from##2ll_##mode(F x) { return um_emulated_ll(round((double)x)); }                              \
  inline um_emulated_u64 __##from##2ull_##mode(F x) { return um_emulated_ull(round((double)x)); }
#define UM_EMULATED_CONVERTS(from, F)                                                                                  \
  UM_EMULATED_CONVERT(from, F, rn, rint)                                                                               \
  UM_EMULATED_CONVERT(from, F, rz, trunc)                                                                              \
  UM_EMULATED_CONVERT(from, F, ru, ceil)                                                                               \
  UM_EMULATED_CONVERT(from, F, rd, floor)
UM_EMULATED_CONVERTS(float, float)
UM_EMULATED_CONVERTS(double, double)
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline float __ull2float_rn(um_emulated_u64 x) { return (float)x; }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return (double)x; }
inline double __ull2double_rn(um_emulated_u64 x) { return (double)x; }
inline float __double2float_rn(double x) { return (float)x; }
inline float __double2float_rz(double x) {
  float y = (float)x;
  return fabs((double)y) > fabs(x) ? nextafterf(y, 0.0f) : y;
}

inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((um_emulated_u64)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline um_emulated_u64 __umul64hi(um_emulated_u64 a, um_emulated_u64 b) {
  return (um_emulated_u64)((unsigned __int128)a * b >> 64);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xFFFFFF) * (b & 0xFFFFFF); }
inline unsigned __sad(int a, int b, unsigned c) { return (unsigned)llabs((long long)a - b) + c; }
// g++'s own call a function of a library that modules are not linked with.
inline int __popc(unsigned x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  return (int)(((x + (x >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24);
}
inline int __popcll(um_emulated_u64 x) { return __popc((unsigned)x) + __popc((unsigned)(x >> 32)); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((um_emulated_u64)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0F0F0F0F) | (x & 0x0F0F0F0F) << 4;
  return __builtin_bswap32(x);
}
inline um_emulated_u64 __brevll(um_emulated_u64 x) {
  return (um_emulated_u64)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  um_emulated_u64 bytes = (um_emulated_u64)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) {
    unsigned s = selector >> 4 * i, byte = (unsigned)(bytes >> 8 * (s & 7)) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((um_emulated_u64)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((um_emulated_u64)high << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++) c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; i++) c += (a >> 8 * i & 255) * (b >> 8 * i & 255);
  return c;
}

template <typename T> inline T __ldg(const T *p) { return *p; }
template <typename T> inline T __ldca(const T *p) { return *p; }
template <typename T> inline T __ldcg(const T *p) { return *p; }
template <typename T> inline T __ldcs(const T *p) { return *p; }
template <typename T> inline T __ldlu(const T *p) { return *p; }
template <typename T> inline T __ldcv(const T *p) { return *p; }
template <typename T> inline void __stwb(T *p, T x) { *p = x; }
template <typename T> inline void __stcg(T *p, T x) { *p = x; }
template <typename T> inline void __stcs(T *p, T x) { *p = x; }
template <typename T> inline void __stwt(T *p, T x) { *p = x; }
inline size_t __cvta_generic_to_shared(const void *p) { return (size_t)p; }
inline size_t __cvta_generic_to_global(const void *p) { return (size_t)p; }

inline void __nanosleep(unsigned) { um_emulated.yield(); }
inline long long um_emulated_clock() {
  static long long ticks;
  return ticks += 100;
}
inline long long clock64() { return um_emulated_clock(); }
inline int clock() { return (int)um_emulated_clock(); }
inline um_emulated_u64 __globaltimer() { return (um_emulated_u64)um_emulated_clock(); }
inline void __prof_trigger(int) {}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
