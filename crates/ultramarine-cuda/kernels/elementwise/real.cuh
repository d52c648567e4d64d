// Functions of real numbers, in float and in double. The halves use those of float.

INLINE float infinite(float) { return __uint_as_float(0x7f800000u); }
INLINE double infinite(double) { return (double)infinite(0.0f); }
INLINE float not_a_number(float) { return __uint_as_float(0x7fc00000u); }
INLINE double not_a_number(double) { return (double)not_a_number(0.0f); }

// The same function by its names in float and in double.
#define REAL_1(name, single, wide)                \
  INLINE float r_##name(float x) { return single(x); } \
  INLINE double r_##name(double x) { return wide(x); }
#define REAL_2(name, single, wide)                            \
  INLINE float r_##name(float x, float y) { return single(x, y); } \
  INLINE double r_##name(double x, double y) { return wide(x, y); }

REAL_1(abs, fabsf, fabs)
REAL_1(sqrt, sqrtf, sqrt)
REAL_1(rsqrt, rsqrtf, rsqrt)
REAL_1(exp, expf, exp)
REAL_1(expm1, expm1f, expm1)
REAL_1(log, logf, log)
REAL_1(log2, log2f, log2)
REAL_1(log10, log10f, log10)
REAL_1(log1p, log1pf, log1p)
REAL_1(sin, sinf, sin)
REAL_1(cos, cosf, cos)
REAL_1(tan, tanf, tan)
REAL_1(arcsin, asinf, asin)
REAL_1(arccos, acosf, acos)
REAL_1(arctan, atanf, atan)
REAL_1(sinh, sinhf, sinh)
REAL_1(cosh, coshf, cosh)
REAL_1(tanh, tanhf, tanh)
REAL_1(arcsinh, asinhf, asinh)
REAL_1(arccosh, acoshf, acosh)
REAL_1(arctanh, atanhf, atanh)
REAL_1(erf, erff, erf)
REAL_1(erfinv, erfinvf, erfinv)
REAL_1(floor, floorf, floor)
REAL_1(ceil, ceilf, ceil)
REAL_1(round, rintf, rint)
REAL_1(trunc, truncf, trunc)
REAL_2(power, powf, pow)
REAL_2(arctan2, atan2f, atan2)
REAL_2(truncated_remainder, fmodf, fmod)
REAL_2(copysign, copysignf, copysign)
#undef REAL_1
#undef REAL_2

template <class R> INLINE bool r_isnan(R x) { return x != x; }
template <class R> INLINE bool r_isinf(R x) { return r_abs(x) == infinite(x); }
template <class R> INLINE bool r_isfinite(R x) { return r_abs(x) < infinite(x); }

template <class R> INLINE R r_sign(R x) { return (R)((x > 0) - (x < 0)); }

// The hyperbolic tangent for a result of 8 bits: the processor's own is within 2^-11 of its value.
INLINE float brain_tanh(float x) {
#ifdef __EMULATED_CUDA__
  return tanhf(x);
#else
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

// The exponential is of a number below 0, so that it cannot overflow.
template <class R> INLINE R r_sigmoid(R x) {
  R e = r_exp(-r_abs(x));
  return (x < 0 ? e : (R)1) / (1 + e);
}

// Python's %: of the divisor's sign, a zero too.
template <class R> INLINE R r_remainder(R x, R y) {
  R r = r_truncated_remainder(x, y);
  if (r == 0) return r_copysign(r, y);
  return (r < 0) != (y < 0) ? r + y : r;
}

// NaN if either is.
template <class R> INLINE R r_maximum(R x, R y) { return x > y || x != x ? x : y; }
template <class R> INLINE R r_minimum(R x, R y) { return x < y || x != x ? x : y; }

template <class R> INLINE R r_logaddexp(R x, R y) {
  R high = x > y ? x : y, low = x > y ? y : x;
  if (x != x || y != y) return not_a_number(x);
  // Infinities of one sign have no difference.
  if (low == -infinite(x) || (low == high && r_isinf(high))) return high;
  return high + r_log1p(r_exp(low - high));
}
